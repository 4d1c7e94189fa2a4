//! One conclusion, the same wherever it is shown; and what is no conclusion.

use hprof_writer::{ClassId, ObjectId, Root, StackFrame, Type, Value as Field};
use serde_json::Value;

use super::made::Heaped;
use super::{DUMPS, sample, samples, text};
use crate::kit::dump::Dump;

/// The headline as each answer has it, with the name of the answer.
fn headlines(dump: &Dump) -> Vec<(&'static str, String)> {
    let run = |arguments: &[&str]| String::from_utf8(dump.run(arguments).stdout).unwrap();
    let json = |arguments: &[&str]| -> Value {
        serde_json::from_str(&run(&[arguments, &["--format", "json"]].concat())).unwrap()
    };
    // On a screen of any width, and with what Markdown and HTML escape.
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let leaks = json(&["leaks"]);
    let headline = text(&leaks["headline"]).to_owned();
    let markdown = |text: &str| text.replace('\\', "");
    let html = |text: &str| {
        let title = text.split_once("<h1>").unwrap().1.split_once("</h1>").unwrap().0;
        title.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
    };
    let of_overview = one_line(&run(&["overview"]));
    let of_overview = of_overview.contains(&one_line(&headline)).then(|| headline.clone());
    let shell = run(&["leaks"]);
    let ticket = run(&["leaks", "--format", "markdown"]);
    let report = run(&["report", "--format", "markdown", "-q"]);
    let bold = report.lines().find(|line| line.starts_with("**")).unwrap_or_default();
    vec![
        ("leaks --format json", headline),
        ("leaks", shell.lines().next().unwrap_or_default().to_owned()),
        ("overview", of_overview.unwrap_or_default()),
        ("overview --format json", text(&json(&["overview"])["rows"][0]["headline"]).to_owned()),
        (
            "leaks --format markdown",
            markdown(ticket.lines().next().unwrap_or_default().trim_start_matches("# ")),
        ),
        ("report", html(&run(&["report", "-q"]))),
        ("report --format markdown", markdown(bold.trim_matches('*'))),
        ("report --format json", text(&json(&["report", "-q"])["headline"]).to_owned()),
    ]
}

/// The headline, which all answers agree on, and the exit code of `leaks`.
fn headline(dump: &Dump) -> (String, i32) {
    let all = headlines(dump);
    for (answer, found) in &all {
        assert_eq!(*found, all[0].1, "{answer}");
    }
    (all[0].1.clone(), dump.run(&["leaks"]).status.code().unwrap())
}

/// Status, percentage and message of each rule on suspects, one for each maximum.
fn check(dump: &Dump, maxima: &[&str]) -> Vec<(String, f64, String)> {
    let rules = tempfile::NamedTempFile::new().unwrap();
    let rule = |max: &&str| format!("[[rule]]\nname = \"{max}\"\nmeasure = \"suspects\"\nmax = \"{max}\"\n");
    std::fs::write(rules.path(), maxima.iter().map(rule).collect::<String>()).unwrap();
    let check = dump.run(&["check", "--rules", rules.path().to_str().unwrap(), "--format", "json"]);
    let check: Value = serde_json::from_slice(&check.stdout).unwrap();
    let rows = check["rows"].as_array().unwrap();
    assert_eq!(rows.len(), maxima.len(), "{rows:#?}");
    let result = |row: &Value| {
        (text(&row["status"]).to_owned(), row["value"].as_f64().unwrap(), text(&row["message"]).to_owned())
    };
    rows.iter().map(result).collect()
}

#[test]
fn every_answer_has_the_same_headline() {
    for name in DUMPS {
        let dump = sample(&samples(), name);
        let (line, code) = headline(&dump);
        assert!(line.contains("leak suspect") && code == 0, "{name}: {line}");
        // A rule says it in the same words and figures, whether it fails or passes, and whatever its limit is.
        let leaks = dump.run(&["leaks", "--format", "json"]);
        let leaks: Value = serde_json::from_slice(&leaks.stdout).unwrap();
        let share = |value: &Value| super::number(value) as f64;
        let first = &leaks["conclusions"][0];
        let expected = share(&first["retained_bytes"]) * 100.0 / share(&leaks["total"]["reachable_bytes"]);
        let results = check(&dump, &["1 %", "5 %", "10 %", "99 %"]);
        let statuses: Vec<&str> = results.iter().map(|(status, ..)| status.as_str()).collect();
        assert_eq!(statuses, ["failed", "failed", "failed", "passed"], "{name}");
        for (_, percent, said) in results {
            assert!((percent - expected).abs() < 1e-6, "{name}: {percent} {expected}");
            let sentence = text(&first["sentence"]).trim_end_matches('.');
            assert!(said.ends_with(&format!("; {sentence}")), "{name}: {said}\n{sentence}");
            // There is one percentage of what accumulates, and one of the limit.
            let shares: Vec<&str> = said.split(['(', ',', ' ']).filter(|word| word.ends_with('%')).collect();
            let [.., last] = shares.as_slice() else { panic!("{said}") };
            assert!(
                said.starts_with(&format!("largest leak suspect: {} %", last.trim_end_matches('%'))),
                "{said}"
            );
        }
    }
}

/// A holder of different things: `parts` of as many classes.
fn holder(heap: &mut Heaped, parts: u64) {
    let held: Vec<_> = (0..parts)
        .map(|part| {
            let class = heap.class(&format!("app.Part{part}"), 1);
            heap.many(class, 1, 100_000)[0]
        })
        .collect();
    let array = heap.array(&held);
    heap.holder("app.Main", "HELD", array);
}

#[test]
fn what_only_holds_is_no_suspect_anywhere() {
    let mut heap = Heaped::new();
    holder(&mut heap, 6);
    let (line, code) = headline(&heap.dump());
    assert!(line.starts_with("No leak suspect: class app.Main retains 9"), "{line}");
    assert!(line.ends_with("and nothing accumulates there") && code == 1, "{line}");
    let (_, _, said) = check(&heap.dump(), &["10 %"]).remove(0);
    assert!(said.starts_with("what retains most: ") && !said.contains("largest leak suspect"), "{said}");
    assert!(said.contains("no leak suspect, as nothing accumulates there: Class app.Main retains"), "{said}");
    // If something else accumulates, a rule that measures the holder reports it.
    let item = heap.class("app.Item", 1);
    let items = heap.many(item, 40, 100_000);
    let array = heap.array(&items);
    heap.holder("app.Cache", "CACHE", array);
    let dump = heap.dump();
    let (line, _) = headline(&dump);
    let (_, what) = line.split_once(": ").unwrap();
    let (_, _, said) = check(&dump, &["10 %"]).remove(0);
    assert!(said.contains("; nothing accumulates there: Class app.Main retains"), "{said}");
    assert!(said.contains(&format!("; leak suspect: {what}: ")), "{said}");
}

/// A limit below the threshold of `leaks` is compared with the largest holder that `leaks` reports, and creates no
/// suspects: objects of one class that are none by themselves would be one together at one limit, and only some of
/// them at another.
#[test]
fn a_limit_does_not_make_suspects() {
    let mut heap = Heaped::new();
    for number in 0..60 {
        let item = heap.class(&format!("app.Item{number}"), 1);
        let items = heap.many(item, 40, 10_000 + 100 * number);
        let held = heap.array(&items);
        let class = heap.class(&format!("app.Cache{number}"), 1);
        let cache = heap.instance(class, &[held]);
        heap.root(cache);
    }
    let dump = heap.dump();
    let (line, code) = headline(&dump);
    assert!(line.starts_with("No leak suspect: nothing retains more than 10.0%") && code == 1, "{line}");
    let overview = dump.run(&["overview", "--format", "json"]);
    let overview: Value = serde_json::from_slice(&overview.stdout).unwrap();
    let row = &overview["rows"][0];
    let largest = &row["largest"][0];
    let bytes = super::number(&largest["retained_bytes"]);
    let expected = bytes as f64 * 100.0 / super::number(&row["reachable"]["shallow_bytes"]) as f64;
    assert!((1.0..3.0).contains(&expected), "{expected}");
    for (max, status) in [("0 %", "failed"), ("1 %", "failed"), ("3 %", "passed"), ("10 %", "passed")] {
        let (found, percent, said) = check(&dump, &[max]).remove(0);
        assert_eq!(found, status, "{max}");
        assert!((percent - expected).abs() < 1e-6, "{percent} {expected}");
        assert!(said.starts_with("what retains most: "), "{said}");
        let what = text(&largest["text"]);
        let told = "; no leak suspect, as nothing retains more than 10.0% of the reachable heap: ";
        assert!(said.ends_with(&format!("{told}{what}")), "{said}");
    }
    // Nothing at all: the least limit there is, and no more evidence than at any other.
    let (found, value, said) = check(&dump, &["0 B"]).remove(0);
    assert_eq!((found.as_str(), value), ("failed", bytes as f64));
    assert!(said.len() < 300, "{said}");
}

/// Of a heap that is nearly all garbage the rest is no conclusion, though it keeps its row.
#[test]
fn garbage_is_the_headline_where_it_is_most() {
    for (garbage, is_suspect) in [(30_000_u64, false), (1_000, true)] {
        let mut heap = Heaped::new();
        let item = heap.class("app.Item", 1);
        let items = heap.many(item, 20, 200_000);
        let array = heap.array(&items);
        heap.holder("app.Main", "HELD", array);
        for _ in 0..garbage {
            heap.bytes(1024);
        }
        let dump = heap.dump();
        let leaks = super::Leaks::of(&dump);
        assert_eq!(leaks.rows.len(), 1, "its row stays");
        let (line, code) = headline(&dump);
        assert!(line.contains(" used is unreachable and will be collected"), "{line}");
        assert_eq!((line.contains("leak suspect"), code == 0), (is_suspect, is_suspect), "{line}");
        let overview = String::from_utf8(dump.run(&["overview"]).stdout).unwrap();
        assert_eq!(overview.contains("holds 20 x"), is_suspect, "{overview}");
        // A gate does not fail for what is no conclusion, and says what is.
        let (status, percent, said) = check(&dump, &["10 %"]).remove(0);
        assert_eq!(
            (status.as_str(), percent > 0.0),
            if is_suspect { ("failed", true) } else { ("passed", false) }
        );
        assert_eq!(said.contains(&line), !is_suspect, "{said}");
    }
}

/// A cache that the JVM may clear is described as such in any sentence, whether it is behind one soft reference or
/// each value is; it contains the values, not the references.
#[test]
fn a_cache_behind_soft_references_is_told() {
    for (kind, content) in [("all", "app.Item"), ("each", "app.Item"), ("map", "byte[]")] {
        let mut heap = Heaped::new();
        let reference = heap.jdk.reference;
        let soft = heap.class_below("java.lang.ref.SoftReference", reference, 0);
        let own = heap.class_below("app.SoftValue", soft, 0);
        let item = heap.class("app.Item", 1);
        let softly = |heap: &mut Heaped, class, value| {
            let reference = heap.instance(class, &[]);
            heap.set_referent(reference, value);
            reference
        };
        let held = match kind {
            "all" => {
                let items = heap.many(item, 50, 400_000);
                let array = heap.array(&items);
                softly(&mut heap, own, array)
            }
            "each" => {
                let items = heap.many(item, 50, 400_000);
                let each: Vec<_> = items.iter().map(|item| softly(&mut heap, own, *item)).collect();
                heap.array(&each)
            }
            _ => {
                let (object, int) = (heap.jdk.object, Type::Int);
                let fields = [("table", Type::Object), ("size", int)];
                let map = heap.model.class("java.util.HashMap", Some(object), &fields);
                let fields = ["key", "value", "next"].map(|name| (name, Type::Object));
                let node = heap.model.class("java.util.HashMap$Node", Some(object), &fields);
                let nodes: Vec<_> = (0..50)
                    .map(|number| {
                        let bytes = heap.bytes(8_000);
                        let value = softly(&mut heap, soft, bytes);
                        let jdk = heap.jdk.clone();
                        let key = jdk.string(&mut heap.model, &format!("key {number}"));
                        heap.model.instance_with(node, &[("key", key.into()), ("value", value.into())])
                    })
                    .collect();
                let of_nodes = heap.model.array_class(node);
                let table = heap.model.object_array(of_nodes, &nodes);
                heap.model.instance_with(map, &[("table", table.into()), ("size", Field::Int(50))])
            }
        };
        heap.holder("app.Cache", "CACHE", held);
        let dump = heap.dump();
        let row = super::Leaks::one(&dump);
        let sentence = text(&row["sentence"]);
        assert!(sentence.to_lowercase().contains("soft references"), "{kind}: {sentence}");
        let what = format!("50 x {content} behind soft references, which the JVM may clear");
        let (line, _) = headline(&dump);
        let (_, _, said) = check(&dump, &["10 %"]).remove(0);
        for told in [sentence, line.as_str(), said.as_str()] {
            assert!(told.contains(&what), "{kind}: {told}");
        }
    }
}

/// A subtree that retains most of a tree is no place that anybody knows: the sentence is about the whole tree, though its
/// row has the accumulation point that MAT has.
#[test]
fn nodes_are_not_where_a_sentence_ends() {
    let mut heap = Heaped::new();
    let (tree, node) = (heap.class("app.Tree", 1), heap.class("app.Node", 3));
    let item = heap.class("app.Item", 1);
    let mut items = heap.many(item, 127, 400_000).into_iter();
    // A balanced tree is the right child of a right child, each with a leaf on its left.
    let mut level: Vec<_> = items.by_ref().take(64).map(|item| heap.instance(node, &[item])).collect();
    while level.len() > 1 {
        let pairs: Vec<_> = level.chunks(2).map(|pair| (pair[0], pair[1])).collect();
        level = pairs
            .into_iter()
            .zip(items.by_ref())
            .map(|((left, right), item)| heap.instance(node, &[item, left, right]))
            .collect();
    }
    let mut top = level[0];
    let count = 127;
    for _ in 0..3 {
        let more = heap.many(item, 2, 400_000 / 127 * 2);
        let leaf = heap.instance(node, &[more[0]]);
        top = heap.instance(node, &[more[1], leaf, top]);
    }
    let root = heap.instance(tree, &[top]);
    heap.holder("app.Main", "TREE", root);
    let row = super::Leaks::one(&heap.dump());
    let sentence = text(&row["sentence"]);
    assert!(sentence.contains(&format!("{} x app.Item", count + 6)), "{sentence}");
    assert!(!sentence.contains("app.Node 0x") && sentence.contains("app.Tree"), "{sentence}");
}

/// Class loaders of one application that two holders keep alive are one cause, reported before a leak that retains
/// less; if one holder has all of them, that is the cause. Rows stay MAT's.
#[test]
fn class_loaders_of_several_holders_are_one_cause() {
    for is_split in [true, false] {
        let mut heap = Heaped::new();
        let web_loader = super::verdicts::class_of_loaders(&mut heap, "app.WebLoader");
        let contexts: Vec<_> = (0..4)
            .map(|_| {
                let (_, class) = super::verdicts::loaded(&mut heap, web_loader, "shop.App", 120_000);
                heap.instance(class, &[])
            })
            .collect();
        let pools: Vec<&[_]> =
            if is_split { contexts.chunks(2).collect() } else { vec![contexts.as_slice()] };
        for (number, held) in pools.iter().enumerate() {
            let array = heap.array(held);
            heap.holder(&format!("app.Pool{number}"), "HELD", array);
        }
        let item = heap.class("app.Item", 1);
        let items = heap.many(item, 40, 300_000);
        let cache = heap.array(&items);
        heap.holder("app.Cache", "CACHE", cache);
        let dump = heap.dump();
        let (line, code) = headline(&dump);
        assert_eq!(code, 0, "{line}");
        let expected = if is_split {
            "are kept alive by static fields app.Pool0.HELD and app.Pool1.HELD"
        } else {
            "are held by Object[] app.Pool0.HELD"
        };
        assert!(line.contains(": 4 class loaders (app.WebLoader)") && line.contains(expected), "{line}");
        let answer = dump.run(&["leaks", "--format", "json"]);
        let answer: Value = serde_json::from_slice(&answer.stdout).unwrap();
        // The sum is of both; what is named has its own share beside it.
        let whole = super::number(&answer["total"]["reachable_bytes"]) as f64;
        let conclusions = answer["conclusions"].as_array().unwrap();
        let shares =
            conclusions.iter().map(|one| super::number(&one["retained_bytes"]) as f64 * 100.0 / whole);
        let [first, second] = shares.collect::<Vec<_>>()[..] else { panic!("{conclusions:?}") };
        let expected = format!("2 leak suspects retain {:.1}% of the reachable heap of ", first + second);
        assert!(line.starts_with(&expected), "{line}");
        let share = format!(" ({first:.1}%); ");
        assert!(line.contains(&share) && line.ends_with(&format!("({second:.1}%)")), "{line}");
        // Each cause has its holder, and its elements.
        assert!(line.contains("app.Cache.CACHE holds 40 x app.Item"), "{line}");
        let mut rows = answer["rows"].as_array().unwrap().clone();
        rows.retain(|row| row["rule"] == "mat");
        // The cache of 300,000 bytes comes before each half of the loaders, and after all of them.
        assert_eq!(rows.len(), if is_split { 3 } else { 2 });
        let is_cache = |row: &Value| text(&row["sentence"]).contains("app.Cache");
        assert_eq!(rows.iter().position(is_cache), Some(usize::from(!is_split)));
        // As many suspects are numbered as the headline says, from 1.
        for (format, start) in [("table", "Suspect "), ("markdown", "## Suspect ")] {
            let told = String::from_utf8(dump.run(&["leaks", "--format", format]).stdout).unwrap();
            let numbers = told.lines().filter_map(|line| line.strip_prefix(start)?.get(..1));
            assert_eq!(numbers.collect::<Vec<_>>(), ["1", "2"], "{told}");
            assert_eq!(told.contains(" and Holder 3 below are parts of it"), is_split, "{told}");
        }
        let conclusions = answer["conclusions"].as_array().unwrap();
        let told: Vec<(Option<u64>, Vec<u64>)> = conclusions
            .iter()
            .map(|one| {
                let suspects = one["suspect_ranks"].as_array().unwrap();
                (one["loader_group"].as_u64(), suspects.iter().map(super::number).collect())
            })
            .collect();
        if is_split {
            // The verdicts on MAT's rows come after these, and the row of the loaders last.
            assert_eq!(told, [(Some(1), vec![5, 2, 3]), (None, vec![4])]);
            let retained = super::number(&conclusions[0]["retained_bytes"]);
            assert!((480_000..500_000).contains(&retained), "{retained}");
        } else {
            assert_eq!(told, [(None, vec![3]), (None, vec![4])]);
        }
    }
}

/// Loaders of pages below the loaders of applications, as JSP engines have them, are part of what those retain.
#[test]
fn class_loaders_within_a_leak_are_counted_once() {
    let mut heap = Heaped::new();
    let web_loader = super::verdicts::class_of_loaders(&mut heap, "app.WebLoader");
    let page_loader = super::verdicts::class_of_loaders(&mut heap, "app.PageLoader");
    let contexts: Vec<_> = (0..20)
        .map(|_| {
            let (loader, class) = super::verdicts::loaded(&mut heap, web_loader, "shop.App", 30_000);
            let (_, page) = super::verdicts::loaded(&mut heap, page_loader, "shop.Page", 20_000);
            let page = heap.instance(page, &[]);
            heap.set(loader, "field0", page);
            heap.instance(class, &[])
        })
        .collect();
    let array = heap.array(&contexts);
    heap.holder("app.Server", "CONTEXTS", array);
    let dump = heap.dump();
    let (line, _) = headline(&dump);
    assert!(line.starts_with("1 leak suspect, 9") && line.contains("app.WebLoader"), "{line}");
    let answer = dump.run(&["leaks", "--format", "json"]);
    let answer: Value = serde_json::from_slice(&answer.stdout).unwrap();
    let conclusions = answer["conclusions"].as_array().unwrap();
    assert_eq!(conclusions.len(), 1, "{conclusions:?}");
}

/// The classes of ThreadLocals and of the entries of their maps.
fn thread_locals(heap: &mut Heaped) -> (ClassId, ClassId) {
    let (weak, fields) = (heap.jdk.weak_reference, [("value", Type::Object)]);
    let entry = heap.model.class("java.lang.ThreadLocal$ThreadLocalMap$Entry", Some(weak), &fields);
    (heap.class("java.lang.ThreadLocal", 0), entry)
}

/// The class of an application that was loaded repeatedly has a ThreadLocal each time: one line describes all.
#[test]
fn thread_locals_of_one_field_are_told_in_one_line() {
    let mut heap = Heaped::new();
    let web_loader = super::verdicts::class_of_loaders(&mut heap, "app.WebLoader");
    let thread = heap.jdk.thread;
    let worker = heap.class_below("app.Worker", thread, 1);
    let (local, entry) = thread_locals(&mut heap);
    for serial in 1..=2 {
        let entries: Vec<_> = (0..5)
            .map(|_| {
                let loader = heap.instance(web_loader, &[]);
                let (key, object) = (heap.instance(local, &[]), heap.jdk.object);
                let statics = [("CURRENT", key.into())];
                let class = heap.model.class_with_statics(
                    "shop.Context",
                    Some(object),
                    &[("held", Type::Object)],
                    &statics,
                );
                heap.model.class_mut(class).loader = loader.0;
                let held = heap.bytes(40_000);
                let value = heap.model.instance_with(class, &[("held", held.into())]);
                heap.model.instance_with(entry, &[("referent", key.into()), ("value", value.into())])
            })
            .collect();
        let table = heap.array(&entries);
        let thread = heap.thread(worker, serial);
        heap.set(thread, "field0", table);
    }
    let dump = heap.dump();
    let (line, _) = headline(&dump);
    assert!(line.starts_with("1 leak suspect, 9") && line.contains(": 10 class loaders"), "{line}");
    let told = String::from_utf8(dump.run(&["leaks"]).stdout).unwrap();
    // What each retains is one part, without the levels above it.
    assert_eq!(told.matches(": 5 x byte[] held of shop.Context (4").count(), 2, "{told}");
    assert!(!told.contains("mostly shop.Context"), "{told}");
    let locals: Vec<&str> =
        told.lines().filter_map(|line| line.trim_start().strip_prefix("thread local: ")).collect();
    assert_eq!(locals.len(), 2, "{told}");
    for line in locals {
        let expected = "5 ThreadLocals shop.Context.CURRENT keep 5 x shop.Context in 1 thread, ";
        assert!(line.starts_with(expected), "{line}");
    }
}

/// However many there are, all are counted.
#[test]
fn thread_locals_of_many_loaders_are_all_counted() {
    let mut heap = Heaped::new();
    let web_loader = super::verdicts::class_of_loaders(&mut heap, "app.WebLoader");
    let thread = heap.jdk.thread;
    let worker = heap.class_below("app.Worker", thread, 1);
    let (local, entry) = thread_locals(&mut heap);
    let scratch = heap.class("web.Scratch", 1);
    let keys: Vec<ObjectId> = (0..260)
        .map(|_| {
            let (loader, key) = (heap.instance(web_loader, &[]), heap.instance(local, &[]));
            let statics = [("CTX", key.into())];
            let class = heap.model.class_with_statics("web.Ctx", Some(heap.jdk.object), &[], &statics);
            heap.model.class_mut(class).loader = loader.0;
            heap.model.root(ObjectId(class.0), Root::JniGlobal { reference: 1 });
            key
        })
        .collect();
    for serial in 1..=20 {
        let entries: Vec<_> = keys
            .iter()
            .map(|key| {
                let held = heap.bytes(600);
                let value = heap.instance(scratch, &[held]);
                let fields = [("referent", (*key).into()), ("value", value.into())];
                heap.model.instance_with(entry, &fields)
            })
            .collect();
        let table = heap.array(&entries);
        let thread = heap.thread(worker, serial);
        heap.set(thread, "field0", table);
    }
    let dump = heap.dump();
    let (line, _) = headline(&dump);
    let expected = "260 ThreadLocals web.Ctx.CTX keep 5,200 x web.Scratch in 20 threads";
    assert!(line.contains(expected), "{line}");
    let answer = dump.run(&["leaks", "--format", "json"]);
    let answer: Value = serde_json::from_slice(&answer.stdout).unwrap();
    let mut rows = answer["rows"].as_array().unwrap().iter();
    let told = &rows.find(|row| row["rule"] != "mat").unwrap()["thread_locals"][0];
    assert_eq!((&told["key_count"], &told["values"]), (&260.into(), &5200.into()), "{told}");
}

/// What is kept about each class of leaking class loaders goes with these; a map of other classes does not.
#[test]
fn tables_of_the_classes_of_loaders_are_no_cause_of_their_own() {
    for is_theirs in [true, false] {
        let mut heap = Heaped::new();
        let loader = super::verdicts::class_of_loaders(&mut heap, "app.ScriptLoader");
        let scripts: Vec<(ObjectId, ClassId)> = (0..40)
            .map(|number| super::verdicts::loaded(&mut heap, loader, &format!("Script{number}"), 64))
            .collect();
        for (loader, class) in &scripts {
            heap.root(*loader);
            let bytes = heap.bytes(10_000);
            let held = heap.array(&[ObjectId(class.0), bytes]);
            heap.set(*loader, "field0", held);
        }
        let object = heap.jdk.object;
        let fields = [("key", Type::Object), ("value", Type::Object), ("next", Type::Object)];
        let node = heap.model.class("java.util.HashMap$Node", Some(object), &fields);
        let fields = [("table", Type::Object), ("size", Type::Int)];
        let map = heap.model.class("java.util.HashMap", Some(object), &fields);
        let about = heap.class("app.About", 1);
        let values = heap.many(about, 40, 200_000);
        let keys: Vec<ObjectId> = match is_theirs {
            true => scripts.iter().map(|(_, class)| ObjectId(class.0)).collect(),
            false => (0..40)
                .map(|number| heap.class(&format!("app.Own{number}"), 0))
                .map(|of| ObjectId(of.0))
                .collect(),
        };
        let nodes: Vec<ObjectId> = (keys.iter().zip(values))
            .map(|(key, value)| {
                heap.model.instance_with(node, &[("key", (*key).into()), ("value", value.into())])
            })
            .collect();
        let table = heap.array(&nodes);
        let map = heap.model.instance_with(map, &[("table", table.into()), ("size", Field::Int(40))]);
        heap.holder("app.Introspector", "ABOUT", map);
        let (line, _) = headline(&heap.dump());
        let (count, named) =
            if is_theirs { ("1 leak suspect, ", true) } else { ("2 leak suspects retain ", false) };
        let table = "with HashMap app.Introspector.ABOUT about these classes";
        assert!(line.starts_with(count) && line.contains(table) == named, "{line}");
        assert!(line.contains(": 40 class loaders of class app.ScriptLoader"), "{line}");
    }
}

/// A pool of 12 threads, at most `max`, each with a `byte[]` of a size under a ThreadLocal.
fn pool_with_buffers(max: Option<i32>, sizes: [u64; 2]) -> Dump {
    let mut heap = Heaped::new();
    let (object, thread) = (heap.jdk.object, heap.jdk.thread);
    let fields = [("target", Type::Object), ("held", Type::Object)];
    let thread = heap.model.class("app.PoolThread", Some(thread), &fields);
    let fields = [("this$0", Type::Object)];
    let worker = heap.model.class("java.util.concurrent.ThreadPoolExecutor$Worker", Some(object), &fields);
    let fields = [("elementData", Type::Object), ("size", Type::Int)];
    let list = heap.model.class("java.util.ArrayList", Some(object), &fields);
    let fields = [("workQueue", Type::Object), ("workers", Type::Object), ("maximumPoolSize", Type::Int)];
    let executor = heap.model.class("java.util.concurrent.ThreadPoolExecutor", Some(object), &fields);
    let pool = heap.model.instance_with(executor, &[]);
    let (local, entry) = thread_locals(&mut heap);
    let (key, buffer) = (heap.instance(local, &[]), heap.class("app.PageBuffer", 1));
    let workers: Vec<ObjectId> = (1..=12)
        .map(|serial| {
            let bytes = heap.bytes(sizes[serial as usize % 2]);
            let value = heap.instance(buffer, &[bytes]);
            let fields = [("referent", key.into()), ("value", value.into())];
            let entry = heap.model.instance_with(entry, &fields);
            let worker = heap.model.instance_with(worker, &[]);
            let table = heap.array(&[entry]);
            let thread = heap.thread(thread, serial);
            heap.set(thread, "held", table);
            if max.is_some() {
                heap.set(thread, "target", worker);
                heap.set(worker, "this$0", pool);
            }
            worker
        })
        .collect();
    let workers = heap.array(&workers);
    let workers =
        heap.model.instance_with(list, &[("elementData", workers.into()), ("size", Field::Int(12))]);
    heap.model.set_field(pool, "workers", workers);
    heap.model.set_field(pool, "maximumPoolSize", Field::Int(max.unwrap_or(12)));
    heap.root(pool);
    heap.dump()
}

/// What a pool within its maximum needs for its threads does not grow.
#[test]
fn one_buffer_of_a_fixed_size_in_each_thread_of_a_pool_is_content() {
    let kept = "keeps one app.PageBuffer in each of 12 threads";
    let (line, code) = headline(&pool_with_buffers(Some(16), [40_000; 2]));
    let expected = format!("{kept}: 12 of at most 16 threads, each with a buffer of 39.1 KiB: ");
    assert!(line.starts_with("No leak suspect: ThreadLocal ") && line.contains(&expected), "{line}");
    assert_eq!(code, 1);
    // Buffers that grow, a pool without a maximum or above it, and threads of no pool.
    for (max, sizes) in [
        (Some(16), [40_000, 48_000]),
        (Some(i32::MAX), [40_000; 2]),
        (Some(11), [40_000; 2]),
        (None, [40_000; 2]),
    ] {
        let (line, code) = headline(&pool_with_buffers(max, sizes));
        assert!(line.starts_with("1 leak suspect, ") && line.ends_with(kept), "{line}");
        assert_eq!(code, 0);
    }
}

/// Threads that a program made and never started are called so, with what holds them.
#[test]
fn threads_that_were_never_started_are_told() {
    for (status, expected) in [
        (0, "60 threads \"job-*\" that were never started, in Object[] app.Jobs.WAITING"),
        (5, "60 threads \"job-*\""),
    ] {
        let mut heap = Heaped::new();
        let (thread, jdk) = (heap.jdk.thread, heap.jdk.clone());
        let worker = heap.class_below("app.Worker", thread, 1);
        let threads: Vec<ObjectId> = (1..=60)
            .map(|number| {
                let held = heap.bytes(8_000);
                let thread = jdk.thread_of(&mut heap.model, worker, &format!("job-{number}"), false, 5);
                heap.set(thread, "field0", held);
                let state = [("threadStatus", Field::Int(status))];
                let state = heap.model.instance_with(jdk.field_holder, &state);
                heap.model.set_field(thread, "holder", state);
                thread
            })
            .collect();
        let array = heap.array(&threads);
        heap.holder("app.Jobs", "WAITING", array);
        let (line, code) = headline(&heap.dump());
        assert!(line.starts_with("1 leak suspect, ") && line.ends_with(expected), "{line}");
        assert_eq!(code, 0);
    }
}

/// Many threads are described by what they do, virtual ones as virtual.
#[test]
fn threads_are_told_by_where_they_are() {
    for (elsewhere, expected) in [
        (0, "50 virtual threads \"pay-*\" in shop.Payment.charge, each with a byte[]"),
        (5, "50 virtual threads \"pay-*\" mostly in shop.Payment.charge, each with a byte[]"),
        (25, "50 virtual threads \"pay-*\""),
    ] {
        let mut heap = Heaped::new();
        let (thread, jdk) = (heap.jdk.thread, heap.jdk.clone());
        let class = heap.class_below("java.lang.VirtualThread", thread, 0);
        let (payment, other) = (heap.class("shop.Payment", 0), heap.class("java.util.Other", 0));
        for serial in 1..=50 {
            let name = format!("pay-{serial}");
            let thread = jdk.thread_of(&mut heap.model, class, &name, false, 5);
            let method = if serial <= elsewhere { "refund" } else { "charge" };
            let frames = [
                StackFrame::new(other, "park", "Other.java", 1),
                StackFrame::new(payment, method, "Payment.java", 2),
            ];
            let trace = heap.model.trace(serial, &frames);
            heap.model.root(thread, Root::ThreadObject { thread: serial, trace });
            let held = heap.bytes(8_000);
            heap.local(serial, held);
        }
        let (line, _) = headline(&heap.dump());
        assert!(line.ends_with(&format!(": {expected}")), "{line}");
    }
}

/// A thread that holds objects by two ways, so that they accumulate in the thread itself.
#[test]
fn what_a_thread_has_in_locals_is_not_held_by_its_fields() {
    for by_fields in [false, true] {
        let mut heap = Heaped::new();
        let (item, main) = (heap.class("app.Item", 1), heap.class("app.Main", 0));
        let items = heap.many(item, 100, 1_000_000);
        let [first, second] = [heap.array(&items), heap.array(&items)];
        let class = heap.class_below("app.Worker", heap.jdk.thread, 2);
        let thread = heap.instance(class, &[]);
        let trace = heap.model.trace(1, &[StackFrame::new(main, "run", "Main.java", 3)]);
        heap.model.root(thread, Root::ThreadObject { thread: 1, trace });
        for (field, array) in [("field0", first), ("field1", second)] {
            if by_fields {
                heap.set(thread, field, array);
            } else {
                heap.model.root(array, Root::JavaFrame { thread: 1, frame: 0 });
            }
        }
        let said = String::from_utf8(heap.dump().run(&["leaks"]).stdout).unwrap();
        assert_eq!(
            said.contains("references it only from a local variable in app.Main.run."),
            !by_fields,
            "{said}"
        );
        assert_eq!(said.contains("keeps it alive by its own fields"), by_fields, "{said}");
    }
}

/// What is in the collections of all threads is told.
#[test]
fn elements_of_the_values_of_a_thread_local_are_added_up() {
    let mut heap = Heaped::new();
    let thread = heap.class_below("app.Worker", heap.jdk.thread, 1);
    let (local, entry) = thread_locals(&mut heap);
    let key = heap.instance(local, &[]);
    let order = heap.class("app.Order", 1);
    for serial in 1..=12 {
        let orders = heap.many(order, 10, 40_000);
        let value = heap.list(&orders);
        let fields = [("referent", key.into()), ("value", value.into())];
        let entry = heap.model.instance_with(entry, &fields);
        let table = heap.array(&[entry]);
        let thread = heap.thread(thread, serial);
        heap.set(thread, "field0", table);
    }
    let (line, code) = headline(&heap.dump());
    let kept = "keeps one java.util.ArrayList in each of 12 threads, with 120 x app.Order in all";
    assert!(line.ends_with(kept) && code == 0, "{line}");
}
