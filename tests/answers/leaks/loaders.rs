//! Class loaders that should be gone: one cause, whatever holds each of them.

use hprof_writer::{ClassId, ObjectId, Root, Type, Value as Field};
use serde_json::Value;

use super::made::Heaped;
use super::{number, text};
use crate::kit::dump::Dump;

/// Loaders of a container, each of a deployment.
struct Deployed {
    heap: Heaped,
    loader: ClassId,
    path: ClassId,
    thread: ClassId,
}

impl Deployed {
    fn new() -> Self {
        let mut heap = Heaped::new();
        let object = heap.jdk.object;
        let base = heap.model.class("java.lang.ClassLoader", Some(object), &[("classes", Type::Object)]);
        let url = heap.model.class("java.net.URLClassLoader", Some(base), &[("ucp", Type::Object)]);
        let loader = heap.model.class("app.WebLoader", Some(url), &[("state", Type::Object)]);
        let fields = [("closed", Type::Boolean)];
        let path = heap.model.class("jdk.internal.loader.URLClassPath", Some(object), &fields);
        let thread = heap.jdk.thread;
        let fields =
            [("contextClassLoader", Type::Object), ("target", Type::Object), ("threadLocals", Type::Object)];
        let thread = heap.model.class("app.Worker", Some(thread), &fields);
        Self { heap, loader, path, thread }
    }

    /// A deployment with a class that holds 40,000 bytes, and one class more for each of the names.
    fn deploy(&mut self, is_closed: bool, names: &[&str]) -> (ObjectId, ClassId) {
        let path = self.heap.model.instance_with(self.path, &[("closed", Field::Boolean(is_closed))]);
        let loader = self.heap.model.instance_with(self.loader, &[("ucp", path.into())]);
        let cache = self.heap.bytes(40_000);
        let object = self.heap.jdk.object;
        let statics = [("CACHE", cache.into())];
        let main = self.heap.model.class_with_statics("shop.App", Some(object), &[], &statics);
        let mut classes = vec![main];
        classes.extend(names.iter().map(|name| self.heap.class(name, 0)));
        self.define(loader, &classes);
        (loader, main)
    }

    /// Lets a loader define classes: they refer to each other.
    fn define(&mut self, loader: ObjectId, classes: &[ClassId]) {
        for class in classes {
            self.heap.model.class_mut(*class).loader = loader.0;
        }
        let objects: Vec<ObjectId> = classes.iter().map(|class| ObjectId(class.0)).collect();
        let array = self.heap.array(&objects);
        self.heap.model.set_field(loader, "classes", array);
    }

    fn thread(&mut self, name: &str, fields: &[(&str, Field)]) -> ObjectId {
        let jdk = self.heap.jdk.clone();
        let thread = jdk.thread_of(&mut self.heap.model, self.thread, name, true, 5);
        for (field, value) in fields {
            self.heap.model.set_field(thread, field, *value);
        }
        thread
    }

    fn running(&mut self, serial: u32, name: &str, fields: &[(&str, Field)]) {
        let thread = self.thread(name, fields);
        let trace = self.heap.model.trace(serial, &[]);
        self.heap.model.root(thread, Root::ThreadObject { thread: serial, trace });
    }

    /// Other classes, so that the deployments are not all of the heap.
    fn others(&mut self) {
        for number in 0..12 {
            let held = self.heap.bytes(20_000);
            self.heap.holder(&format!("app.Part{number}"), "HELD", held);
        }
    }
}

fn leaks(dump: &Dump) -> Value {
    serde_json::from_slice(&dump.run(&["leaks", "--format", "json"]).stdout).unwrap()
}

/// The row of the loaders, if there is one.
fn row_of_loaders(answer: &Value) -> Option<&Value> {
    let mut rows = answer["rows"].as_array().unwrap().iter().filter(|row| row["rule"] == "loaders");
    let row = rows.next();
    assert!(rows.next().is_none(), "{answer}");
    row
}

/// Kind, number of loaders and names of each holder of a row.
fn holders(row: &Value) -> Vec<(String, u64, Vec<String>)> {
    let holders = row["loader_holders"].as_array().unwrap().iter();
    let names = |holder: &Value| -> Vec<String> {
        holder["holder_names"].as_array().unwrap().iter().map(|name| text(name).to_owned()).collect()
    };
    holders
        .map(|holder| (text(&holder["holder_kind"]).to_owned(), number(&holder["loaders"]), names(holder)))
        .collect()
}

/// A web application that was deployed eleven times: each old deployment is held by something else, and has loaded other
/// classes; the last one runs.
#[test]
fn loaders_that_should_be_gone_are_one_cause_with_all_holders() {
    let mut made = Deployed::new();
    made.others();
    for generation in 1..=5u32 {
        let (loader, _) =
            made.deploy(true, &["shop.Poller", &format!("shop.App$$Lambda${generation}/0x000{generation}")]);
        made.running(generation, &format!("poller-{generation}"), &[("contextClassLoader", loader.into())]);
    }
    let hooks: Vec<ObjectId> = (6..=8)
        .map(|generation| {
            let (loader, _) =
                made.deploy(true, &["shop.Poller", "shop.Hook", &format!("shop.Page{generation}$$Lambda$7")]);
            let hook = made.heap.class("shop.Flush", 0);
            made.heap.model.class_mut(hook).loader = loader.0;
            let thread = made.heap.jdk.thread;
            let fields = [("target", Type::Object)];
            let plain = match generation {
                6 => made.heap.model.class("java.lang.Thread$Plain", Some(thread), &fields),
                _ => made.thread,
            };
            let target = made.heap.instance(hook, &[]);
            let jdk = made.heap.jdk.clone();
            let thread = jdk.thread_of(&mut made.heap.model, plain, "flush", false, 5);
            made.heap.model.set_field(thread, "target", target);
            thread
        })
        .collect();
    let hooks = made.heap.array(&hooks);
    made.heap.holder("java.lang.ApplicationShutdownHooks", "hooks", hooks);
    // A ThreadLocal of a pool's thread.
    let (_, main) = made.deploy(true, &["shop.Poller"]);
    let weak = made.heap.jdk.weak_reference;
    let fields = [("value", Type::Object)];
    let entry = made.heap.model.class("java.lang.ThreadLocal$ThreadLocalMap$Entry", Some(weak), &fields);
    let map = made.heap.class("java.lang.ThreadLocal$ThreadLocalMap", 1);
    let value = made.heap.instance(main, &[]);
    let entry = made.heap.model.instance_with(entry, &[("value", value.into())]);
    let map = made.heap.instance(map, &[entry]);
    made.running(20, "http-exec-1", &[("threadLocals", map.into())]);
    // A registered MBean.
    let (_, main) = made.deploy(true, &[]);
    let stats = made.heap.instance(main, &[]);
    let object = made.heap.jdk.object;
    let (jdk, model) = (made.heap.jdk.clone(), &mut made.heap.model);
    let name = model.class("javax.management.ObjectName", Some(object), &[("_canonicalName", Type::Object)]);
    let canonical = jdk.string(model, "com.acme:type=Stats");
    let name = model.instance_with(name, &[("_canonicalName", canonical.into())]);
    let fields = [("name", Type::Object), ("object", Type::Object)];
    let named = model.class("com.sun.jmx.mbeanserver.NamedObject", Some(object), &fields);
    let named = model.instance_with(named, &[("name", name.into()), ("object", stats.into())]);
    let registry = made.heap.class("com.sun.jmx.mbeanserver.Repository", 1);
    let registry = made.heap.instance(registry, &[named]);
    made.heap.holder("java.lang.management.ManagementFactory", "server", registry);
    // The deployment that runs.
    let (running, _) = made.deploy(false, &["shop.Poller", "shop.Hook"]);
    made.heap.root(running);
    let dump = made.heap.dump();
    let answer = leaks(&dump);
    let row = row_of_loaders(&answer).unwrap();
    let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let expected = [
        ("thread".to_owned(), 5, named(&["poller-1", "poller-2", "poller-3", "poller-4", "poller-5"])),
        ("shutdown_hook".to_owned(), 3, named(&["app.Worker", "java.lang.Thread$Plain"])),
        ("thread_local".to_owned(), 1, named(&["http-exec-1"])),
        ("mbean".to_owned(), 1, named(&["com.acme:type=Stats"])),
    ];
    assert_eq!(holders(row), expected);
    assert_eq!((text(&row["verdict"]), number(&row["objects"])), ("accumulation", 10));
    // All of what the ten retain, without the one that runs.
    assert!((400_000..440_000).contains(&number(&row["retained_bytes"])), "{row}");
    for (holder, start) in row["loader_holders"].as_array().unwrap().iter().zip([
        "app.Worker",
        "java.lang.ApplicationShutdownHooks",
        "app.Worker",
        "java.lang.management.ManagementFactory",
    ]) {
        let path = holder["path"].as_array().unwrap();
        assert_eq!(text(&path[0]["class"]), start, "{holder}");
        assert_eq!(path.last().unwrap()["object"], holder["loader_object"]);
        assert_ne!(text(&holder["loader_object"]), format!("{:#x}", running.0));
    }
    let conclusions = answer["conclusions"].as_array().unwrap();
    assert_eq!(conclusions.len(), 1, "{conclusions:?}");
    let rank = answer["rows"].as_array().unwrap().iter().position(|other| other == row).unwrap();
    assert_eq!(number(&conclusions[0]["suspect_ranks"][0]), rank as u64 + 1);
    assert_eq!(conclusions[0]["sentence"], row["sentence"]);
    let headline = text(&answer["headline"]);
    let expected = ": 10 closed class loaders (app.WebLoader), each with its own class shop.App, are kept alive: \
                    5 by threads \"poller-1\", \"poller-2\", \"poller-3\" and 2 more, \
                    3 by shutdown hooks (app.Worker and java.lang.Thread$Plain), \
                    1 by a ThreadLocal of thread \"http-exec-1\", 1 by an MBean (com.acme:type=Stats)";
    assert!(headline.starts_with("1 leak suspect, ") && headline.ends_with(expected), "{headline}");
    assert_eq!(dump.run(&["leaks"]).status.code(), Some(0));
    let told = String::from_utf8(dump.run(&["leaks"]).stdout).unwrap();
    for line in ["  5 of 10: class loader ", "  3 of 10: class loader ", "  1 of 10: class loader "] {
        assert!(told.contains(line), "{told}");
    }
    // Names may be hidden.
    let hidden = dump.command(&["leaks", "--format", "json"]).env("HPROF_CLI_HIDES_VALUES", "1").output();
    let hidden = String::from_utf8(hidden.unwrap().stdout).unwrap();
    assert!(!hidden.contains("poller-1") && !hidden.contains("type=Stats"), "{hidden}");
    assert!(hidden.contains("5 by threads, 3 by shutdown hooks"), "{hidden}");
}

/// What is left of an application that is cleaned is the deployment that runs; as many that all run are no leak.
#[test]
fn deployments_that_run_are_none_too_many() {
    for (count, state, is_leak) in
        [(1, "DESTROYED", false), (10, "STARTED", false), (10, "STOPPED", true), (10, "NEW", true)]
    {
        let mut made = Deployed::new();
        made.others();
        let object = made.heap.jdk.object;
        let (jdk, model) = (made.heap.jdk.clone(), &mut made.heap.model);
        let lifecycle = model.class("app.LifecycleState", Some(object), &[("name", Type::Object)]);
        let name = jdk.string(model, state);
        let constant = model.instance_with(lifecycle, &[("name", name.into())]);
        for part in 0..count {
            let (loader, main) = made.deploy(false, &[]);
            made.heap.model.set_field(loader, "state", constant);
            let context = made.heap.instance(main, &[]);
            made.heap.holder(&format!("app.Registry{part}"), "CONTEXT", context);
        }
        let dump = made.heap.dump();
        let answer = leaks(&dump);
        let row = row_of_loaders(&answer);
        assert_eq!(row.is_some(), is_leak, "{count} {state}: {}", answer["headline"]);
        let Some(row) = row else { continue };
        let [(kind, loaders, names)] = holders(row).try_into().unwrap();
        assert_eq!((kind.as_str(), loaders, names.len()), ("static_field", 10, 10));
        assert_eq!(names[0], "app.Registry0.CONTEXT");
        let expected = "are kept alive by static fields app.Registry0.CONTEXT, app.Registry1.CONTEXT, \
                        app.Registry2.CONTEXT and 7 more";
        assert!(text(&answer["headline"]).contains(expected), "{}", answer["headline"]);
        assert_eq!(text(&answer["headline"]).contains("10 closed class loaders"), state == "STOPPED");
    }
}

/// Closed loaders of two applications are two causes, though both have the classes of one library.
#[test]
fn closed_loaders_of_two_applications_are_two_causes() {
    let mut made = Deployed::new();
    made.others();
    for generation in 0..8u32 {
        let own: Vec<String> = (0..4).map(|class| format!("own{}.Class{class}", generation % 2)).collect();
        let own: Vec<&str> = own.iter().map(String::as_str).chain(["lib.Logger"]).collect();
        // Every deployment has loaded fewer classes than the one before.
        let own = own.get((generation as usize / 2) % 2..).unwrap();
        let (loader, _) = made.deploy(true, own);
        made.heap.root(loader);
    }
    let answer = leaks(&made.heap.dump());
    let groups = answer["loader_groups"].as_array().unwrap();
    let loaders: Vec<u64> = groups.iter().map(|group| number(&group["loaders"])).collect();
    assert_eq!(loaders, [4, 4], "{groups:?}");
    assert!(groups.iter().all(|group| group["is_closed"] == true));
}

/// Unreachable loaders wait for the collector only.
#[test]
fn unreachable_loaders_are_not_counted() {
    let mut made = Deployed::new();
    made.others();
    for generation in 0..9 {
        let (loader, _) = made.deploy(true, &[]);
        if generation % 2 == 0 {
            made.heap.root(loader);
        }
    }
    let answer = leaks(&made.heap.dump());
    let row = row_of_loaders(&answer).unwrap();
    assert_eq!(number(&row["objects"]), 5);
    assert_eq!(holders(row), [("root".to_owned(), 5, Vec::new())]);
}
