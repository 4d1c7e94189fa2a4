//! Rules about frameworks: as `show` tells them, with a file of the user's, and on heaps of real frameworks against what
//! their programs did.

use std::path::PathBuf;

use hprof_index::graph::numbers::ObjectIndex;
use hprof_query::frameworks::{
    FrameworkDescription, FrameworkFact, FrameworkVerdict, Frameworks, KnownFrameworks, Naming,
};
use hprof_writer::{Elements, HeapModel, Jdk, ObjectId, Options, Root, Type, Value};
use serde_json::json;

use crate::kit::dump::{Dump, whole_dump};

const RULES: &str = r#"
framework = "Acme"

[[class]]
name = "com.acme.Queue"
fields = ["name"]
called = "queue {name}"

[class.facts]
name = "this.name"
waiting = "this.waiting"
is_open = "this.open = 1"
load = "waiting / 8"
none = "this.nothing"

[[class.says]]
when = "waiting > 2"
text = "{waiting:#order} wait"
"#;

/// A dump with a `com.acme.Queue`, and its object ID.
fn queue() -> (Dump, String) {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let name = jdk.string(&mut model, "orders");
    let fields = [("name", Type::Object), ("waiting", Type::Int), ("open", Type::Byte)];
    let class = model.class("com.acme.Queue", Some(jdk.object), &fields);
    let values = [("name", name.into()), ("waiting", Value::Int(12)), ("open", Value::Byte(1))];
    let object = model.instance_with(class, &values);
    model.root(object, Root::JniGlobal { reference: 0x7f00 });
    (Dump::written(&model.write(&Options::hotspot())), format!("{:#x}", object.0))
}

#[test]
fn show_tells_what_a_users_rule_says() {
    let (dump, object) = queue();
    let dir = tempfile::tempdir().unwrap();
    let rules = dir.path().join("acme.toml");
    std::fs::write(&rules, RULES).unwrap();
    let rules = rules.to_str().unwrap();
    let run = |arguments: &[&str]| {
        let output = dump.run(&[&["show", &object, "--frameworks", rules], arguments].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let row = |arguments: &[&str]| {
        let answer: serde_json::Value = serde_json::from_str(&run(arguments)).unwrap();
        answer["rows"][0].clone()
    };
    let shown = row(&["--format", "json"]);
    let facts = json!({"name": "orders", "waiting": 12, "is_open": true, "load": 1.5, "none": null});
    assert_eq!((&shown["framework"], &shown["called"]), (&json!("Acme"), &json!("queue orders")));
    assert_eq!((&shown["facts"], &shown["text"]), (&facts, &json!("12 orders wait")));
    let table = run(&[]);
    for line in ["framework  Acme", "called     queue orders", "says       12 orders wait"] {
        assert!(table.contains(line), "{table}");
    }
    // Without the file there is no rule.
    let output = dump.run(&["show", &object, "--format", "json"]);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["rows"][0]["framework"], json!(null));
    // What is wrong in a file is told with its place.
    std::fs::write(rules, RULES.replace("waiting > 2", "waitng > 2")).unwrap();
    let output = dump.run(&["show", &object, "--frameworks", rules]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("acme.toml:17:9: unknown name waitng"), "{said}");
    let wrong =
        RULES.replace("waiting > 2", "waitng > 2").replace("[class.facts]", "[class.facts]\nThis = 1");
    std::fs::write(rules, wrong).unwrap();
    let output = dump.run(&["show", &object, "--frameworks", rules]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().filter(|line| line.contains(": error: ")).count(), 3, "{said}");
    assert!(
        said.contains(": invalid name of a fact") && said.contains(": `This` is of type integer"),
        "{said}"
    );
}

/// A dump in which nearly all is in the items of such a queue.
fn full_queue() -> Dump {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let name = jdk.string(&mut model, "orders");
    let item = model.class("com.acme.Item", Some(jdk.object), &[("body", Type::Object)]);
    let items: Vec<ObjectId> = (0..50)
        .map(|_| {
            let body = model.prim_array(Elements::Zeros(Type::Byte, 8_000));
            model.instance_with(item, &[("body", body.into())])
        })
        .collect();
    let items = model.object_array(jdk.object_array, &items);
    let fields =
        [("name", Type::Object), ("waiting", Type::Int), ("open", Type::Byte), ("items", Type::Object)];
    let class = model.class("com.acme.Queue", Some(jdk.object), &fields);
    let values = [("name", name.into()), ("waiting", Value::Int(12)), ("items", items.into())];
    let object = model.instance_with(class, &values);
    model.class_with_statics("com.acme.Server", Some(jdk.object), &[], &[("QUEUE", object.into())]);
    model.root_boot_classes();
    Dump::written(&model.write(&Options::hotspot()))
}

/// Each answer that names places has the words of the user's rule, and the same.
#[test]
fn answers_are_in_the_words_of_a_users_rule() {
    let dump = full_queue();
    let dir = tempfile::tempdir().unwrap();
    let [rules, limits] = ["acme.toml", "limits.toml"].map(|name| dir.path().join(name));
    std::fs::write(&rules, RULES).unwrap();
    std::fs::write(&limits, "[[rule]]\nname = \"leaks\"\nmeasure = \"suspects\"\nmax = \"10 %\"\n").unwrap();
    let [rules, limits] = [&rules, &limits].map(|path| path.to_str().unwrap());
    let commands: [&[&str]; 7] = [
        &["overview"],
        &["overview", "--format", "json"],
        &["leaks", "--format", "json"],
        &["report", "--format", "json", "--sections", "overview"],
        &["report"],
        &["report", "--format", "markdown", "--sections", "overview"],
        &["check", "--rules", limits],
    ];
    for command in commands {
        let said = |arguments: &[&str]| {
            let output = dump.run(&[command, arguments].concat());
            String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let (own, without) = (said(&["--frameworks", rules, "--quiet"]), said(&["--quiet"]));
        assert!(own.contains("queue orders: 12 orders wait"), "{command:?}: {own}");
        assert!(
            !without.contains("orders wait") && without.contains("com.acme.Item"),
            "{command:?}: {without}"
        );
    }
}

/// The picture has the name, and tables of suspects the verdict.
#[test]
fn pictures_and_tables_follow_a_users_rule() {
    let dump = full_queue();
    let dir = tempfile::tempdir().unwrap();
    let [rules, out] = ["acme.toml", "out"].map(|name| dir.path().join(name));
    std::fs::write(&rules, format!("{RULES}verdict = \"content\"\n")).unwrap();
    let [rules, out] = [&rules, &out].map(|path| path.to_str().unwrap());
    let said = |arguments: &[&str]| {
        let output = dump.run(&[arguments, &["--quiet"]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let picture = ["report", "--sections", "treemap"];
    assert!(!said(&picture).contains("queue orders"));
    assert!(said(&[&picture[..], &["--frameworks", rules]].concat()).contains("queue orders"));
    let query = ["sql", "--format", "csv", "SELECT verdict FROM suspects WHERE verdict IS NOT NULL"];
    assert_eq!(said(&query), "verdict\naccumulation\n");
    assert_eq!(said(&[&query[..], &["--frameworks", rules]].concat()), "verdict\ncontent\n");
    said(&["export", "--tables", "suspects", "--format", "csv", "--output-dir", out, "--frameworks", rules]);
    let written = std::fs::read_dir(std::path::Path::new(out).join("suspects")).unwrap();
    let part = written.map(|entry| entry.unwrap().path().join("part-0.csv")).next().unwrap();
    assert!(std::fs::read_to_string(part).unwrap().contains(",content,"));
}

/// What the objects that a sentence explains retain together is theirs: rows that a connection and its result share.
#[test]
fn a_leak_of_a_rule_has_what_its_objects_retain_together() {
    const POOL: &str = r#"
framework = "Acme"

[[class]]
name = "com.acme.Pool"
called = "pool orders"

[class.facts]
in_use = "this.connections.@length"

[[class.says]]
text = "{in_use} of 40 in use"
verdict = "leak"
retains = "(SELECT c FROM OBJECTS (this.connections[0:-1]) c UNION (SELECT c.result FROM OBJECTS (this.connections[0:-1]) c))"
"#;
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let row = model.class("com.acme.Row", Some(jdk.object), &[("body", Type::Object)]);
    let result = model.class("com.acme.Result", Some(jdk.object), &[("row", Type::Object)]);
    let fields = [("row", Type::Object), ("result", Type::Object)];
    let connection = model.class("com.acme.Connection", Some(jdk.object), &fields);
    let (mut connections, mut results) = (Vec::new(), Vec::new());
    for _ in 0..40 {
        let body = model.prim_array(Elements::Zeros(Type::Byte, 8_000));
        let row = model.instance_with(row, &[("body", body.into())]);
        let result = model.instance_with(result, &[("row", row.into())]);
        let fields = [("row", row.into()), ("result", result.into())];
        connections.push(model.instance_with(connection, &fields));
        results.push(result);
    }
    let connections = model.object_array(jdk.object_array, &connections);
    let results = model.object_array(jdk.object_array, &results);
    let pool = model.class("com.acme.Pool", Some(jdk.object), &[("connections", Type::Object)]);
    let pool = model.instance_with(pool, &[("connections", connections.into())]);
    model.root(pool, Root::JniGlobal { reference: 0x7f00 });
    model.class_with_statics("com.shop.Report", Some(jdk.object), &[], &[("OPEN", results.into())]);
    model.root_boot_classes();
    let dump = Dump::written(&model.write(&Options::hotspot()));
    let dir = tempfile::tempdir().unwrap();
    let rules = dir.path().join("acme.toml");
    std::fs::write(&rules, POOL).unwrap();
    let output = dump.run(&["leaks", "--frameworks", rules.to_str().unwrap(), "--format", "json", "-q"]);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let headline = answer["headline"].as_str().unwrap();
    assert!(headline.starts_with("1 leak suspect, "), "{headline}");
    assert!(headline.contains(": pool orders: 40 of 40 in use"), "{headline}");
    let rows = answer["rows"].as_array().unwrap();
    let is_told = |row: &&serde_json::Value| row["framework"] == "Acme" && row["verdict"] == "accumulation";
    let leak = rows.iter().find(is_told).unwrap();
    assert!(leak["retained_bytes"].as_u64().unwrap() > 40 * 8_000, "{leak}");
}

/// What the programs of real frameworks did: dump, framework, name, sentence, verdict.
const TRUTH: &[(&str, &str, &str, &str, Option<FrameworkVerdict>)] = &[
    (
        "tomcat-sessions-t2",
        "Tomcat",
        "session store of /shop",
        "12,000 sessions, timeout 24 h, largest attribute cart",
        None,
    ),
    ("spring-beans-t2", "Spring", "cache prices", "70,000 entries, no bound", None),
    ("caches-t2", "Guava", "Guava cache", "40,000 entries, no bound", None),
    ("caches-t2", "Caffeine", "Caffeine cache", "40,000 entries, no bound, expire 30 d after access", None),
    (
        "caches-t2",
        "Caffeine",
        "Caffeine cache",
        "5,000 of 5,000, as configured",
        Some(FrameworkVerdict::Content),
    ),
    (
        "hikari-h2-t1",
        "HikariCP",
        "connection pool billing-pool",
        "10 of 10 connections in use, 24 threads wait",
        Some(FrameworkVerdict::Leak),
    ),
    (
        "netty-backlog-t2",
        "Netty",
        "event loop nioEventLoopGroup-3-2",
        "in AuditDao.save, 40,001 tasks waiting",
        None,
    ),
    (
        "netty-backlog-t2",
        "Netty",
        "outbound buffer of a channel",
        "30,701 messages, 15.4 MiB, wait for a peer at /127.0.0.1:43970 that does not read",
        None,
    ),
    (
        "executor-oom-t1",
        "JDK",
        "executor mail-sender",
        "29,560 tasks wait, each with a Mail; 2 of 2 threads in SmtpClient.send",
        None,
    ),
    ("executor-oom-t1", "JDK", "CompletableFuture", "never completed, 29,562 dependents wait for it", None),
    ("activemq-t2", "ActiveMQ", "queue orders", "20,000 pending, no consumer, in broker shop-broker", None),
    (
        "activemq-t2",
        "ActiveMQ",
        "subscription of client price-screen to prices",
        "5,000 prefetched, not acknowledged",
        None,
    ),
    (
        "coroutines-t2",
        "Kotlin coroutines",
        "coroutines in OrderService.price",
        "each with a Request, await PriceClient.answer",
        None,
    ),
];

/// Maximum number of objects with a common name that are described.
const MAX_OF_MANY: usize = 100;

/// Facts about the same: dump, name, fact, value.
const FACTS: &[(&str, &str, &str, &str)] = &[
    ("tomcat-sessions-t2", "session store of /shop", "timeout_seconds", "86,400"),
    ("tomcat-sessions-t2", "session store of /shop", "attribute", "cart"),
    ("spring-beans-t2", "bean factory", "beans", "24"),
    ("caches-t2", "Guava cache", "max_weight", "-1"),
    ("caches-t2", "Caffeine cache", "weight", "5,000"),
    ("hikari-h2-t1", "connection pool billing-pool", "in_use", "10"),
    ("hikari-h2-t1", "connection pool billing-pool", "open_statements", "10"),
    ("netty-backlog-t2", "outbound buffer of a channel", "pending_bytes", "16,142,016"),
    ("netty-backlog-t2", "outbound buffer of a channel", "flushed", "30,701"),
    (
        "netty-backlog-t2",
        "event loop nioEventLoopGroup-3-2",
        "doing",
        "com.acme.quotes.QuoteServer$AuditDao.save",
    ),
    ("executor-oom-t1", "executor mail-sender", "running", "2"),
    ("activemq-t2", "queue orders", "dequeued", "0"),
    ("activemq-t2", "queue orders", "consumers", "0"),
    ("coroutines-t2", "coroutines in OrderService.price", "label", "1"),
    (
        "vthreads-t2",
        "virtual threads in PaymentGateway.charge",
        "in",
        "com.acme.checkout.CheckoutServer$PaymentGateway.charge",
    ),
];

#[test]
#[ignore = "needs heaps of frameworks in HPROF_CLI_FRAME_DUMPS, as NAME.hprof or NAME.hprof.zst"]
fn real_heaps_are_told_as_their_users_would() {
    let dir = PathBuf::from(std::env::var_os("HPROF_CLI_FRAME_DUMPS").expect("HPROF_CLI_FRAME_DUMPS"));
    let rules = Frameworks::builtin();
    let mut names: Vec<&str> = FACTS.iter().map(|(name, ..)| *name).collect();
    names.dedup();
    for name in names {
        let path = ["hprof", "hprof.zst"].map(|end| dir.join(format!("{name}.{end}")));
        let dump = Dump::at(Some(path.iter().find(|path| path.exists()).expect(name)));
        let (heap, graph) = dump.open_graph();
        let opened = whole_dump(&heap, &graph);
        let known = KnownFrameworks::new(&opened, &rules);
        // Of thousands of coroutines a few are enough.
        let mut seen = 0;
        let is_early = |object: &ObjectIndex| {
            seen += usize::from(known.naming(*object) == Naming::Many);
            known.naming(*object) != Naming::Many || seen <= MAX_OF_MANY
        };
        let instances = known.instances(0).into_iter().filter(is_early);
        let found = instances.filter_map(|object| known.describe(object));
        let found: Vec<FrameworkDescription> = found.collect();
        for (_, called, fact, value) in FACTS.iter().filter(|(of, ..)| *of == name) {
            let has = |(found, is): &(String, FrameworkFact)| found == fact && is.to_string() == *value;
            let mut of_name = found.iter().filter(|of| of.called.as_deref() == Some(called));
            assert!(of_name.any(|of| of.facts.iter().any(has)), "{name}: {called}: {fact} {value}");
        }
        for (_, framework, called, text, verdict) in TRUTH.iter().filter(|(of, ..)| *of == name) {
            let is_it = |of: &FrameworkDescription| {
                &*of.framework == *framework
                    && of.called.as_deref() == Some(called)
                    && of.text.as_deref() == Some(text)
                    && of.verdict == *verdict
            };
            assert!(found.iter().any(is_it), "{name}: {called}: {text}");
        }
    }
}
