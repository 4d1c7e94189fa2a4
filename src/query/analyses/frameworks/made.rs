//! Tests of the rules on synthetic heaps with the fields of the frameworks' classes, and on hostile heaps.

mod applications;
mod names;
mod servers;

use std::collections::BTreeMap;
use std::time::Instant;

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::{Dump, Heap, Options as HeapOptions, Quiet};
use hprof_values::ObjectId;
use hprof_writer::{ClassId, Elements, HeapModel, Jdk, Options, Root, StackFrame, Type, Value};

use super::{FrameworkDescription, FrameworkFact, FrameworkVerdict, Frameworks, KnownFrameworks};

const BOUNDED: &str = "org.hibernate.internal.util.collections.BoundedConcurrentHashMap";
/// Name of a class, followed by its superclass that declares the fields.
const WORKER: &str =
    "java.util.concurrent.ThreadPoolExecutor$Worker < java.util.concurrent.locks.AbstractQueuedSynchronizer";

/// A synthetic heap. Creating an object creates its class, with the fields of the object.
struct TestHeap {
    model: HeapModel,
    jdk: Jdk,
    classes: BTreeMap<String, ClassId>,
    /// Objects with the names of their reference fields.
    references: Vec<(hprof_writer::ObjectId, String)>,
}

impl TestHeap {
    fn new() -> Self {
        let mut model = HeapModel::default();
        let jdk = Jdk::add_to(&mut model);
        Self { model, jdk, classes: BTreeMap::new(), references: Vec::new() }
    }

    fn class(&mut self, name: &str, fields: &[(&str, Value)]) -> ClassId {
        if let Some(known) = self.classes.get(name) {
            return *known;
        }
        let (above, own) = match name.split_once(" < ") {
            Some((_, above)) => (self.class(above, fields), &[][..]),
            None => (self.jdk.object, fields),
        };
        let types: Vec<_> = own.iter().map(|(name, value)| (*name, value.ty())).collect();
        let simple = name.split(" < ").next().expect("a name");
        let class = self.model.class(simple, Some(above), &types);
        self.classes.insert(name.to_owned(), class);
        class
    }

    /// Creates an object of `Class` or `Class < Superclass` with these fields.
    fn object(&mut self, class: &str, fields: &[(&str, Value)]) -> Value {
        let class = self.class(class, fields);
        let object = self.model.instance_with(class, fields);
        self.model.root(object, Root::JniGlobal { reference: 0x7f00 });
        let references = fields.iter().filter(|(_, value)| value.ty() == Type::Object);
        self.references.extend(references.map(|(name, _)| (object, (*name).to_owned())));
        object.into()
    }

    fn text(&mut self, text: &str) -> Value {
        self.jdk.string(&mut self.model, text).into()
    }

    fn array(&mut self, elements: &[Value]) -> Value {
        let ids: Vec<_> = elements.iter().map(|value| hprof_writer::ObjectId(id(*value))).collect();
        self.model.object_array(self.jdk.object_array, &ids).into()
    }

    fn list(&mut self, elements: &[Value]) -> Value {
        let array = self.array(elements);
        let size = Value::Int(i32::try_from(elements.len()).expect("a small list"));
        self.object("java.util.ArrayList", &[("elementData", array), ("size", size)])
    }

    fn map(&mut self, entries: &[(Value, Value)]) -> Value {
        let nodes: Vec<Value> = entries
            .iter()
            .map(|(key, value)| {
                let fields =
                    [("hash", Value::Int(0)), ("key", *key), ("value", *value), ("next", Value::NULL)];
                self.object("java.util.HashMap$Node", &fields)
            })
            .collect();
        let table = self.array(&nodes);
        let size = Value::Int(i32::try_from(entries.len()).expect("a small map"));
        self.object("java.util.HashMap", &[("table", table), ("size", size)])
    }

    fn atomic(&mut self, value: i64) -> Value {
        self.object("java.util.concurrent.atomic.AtomicLong", &[("value", Value::Long(value))])
    }

    fn constant(&mut self, class: &str, name: &str) -> Value {
        let name = self.text(name);
        self.object(&format!("{class} < java.lang.Enum"), &[("name", name)])
    }

    /// Creates a thread in a method of a class outside the JDK.
    fn thread(&mut self, serial: u32, name: &str, class: &str, method: &str) -> Value {
        let thread = self.jdk.thread(&mut self.model, name, false, 5);
        let (jdk, own) = (self.class("java.net.SocketInputStream", &[]), self.class(class, &[]));
        let frames = [StackFrame::new(jdk, "read", "S.java", 1), StackFrame::new(own, method, "O.java", 2)];
        let trace = self.model.trace(serial, &frames);
        self.model.root(thread, Root::ThreadObject { thread: serial, trace });
        thread.into()
    }

    /// Checks that a redacted dump has the same numbers in the fields that the rules read.
    fn check_redaction(&self) {
        let is_of_rules =
            |name: &str| !["com.acme.", "java.lang."].iter().any(|start| name.starts_with(start));
        for class in self.model.classes().iter().filter(|class| is_of_rules(&class.name)) {
            for (field, kind) in &class.fields {
                let is_number = !matches!(kind, Type::Object | Type::Boolean);
                let is_known = || hprof_model::objects::hiding::fields::is_known(&class.name, field);
                let name = &class.name;
                assert!(!is_number || is_known(), "{name}.{field} is not in kept_fields.txt of redact");
            }
        }
    }

    fn with<T>(
        &mut self,
        rules: &Frameworks,
        hide_values: bool,
        test: impl FnOnce(&KnownFrameworks<'_, '_>, &dyn Fn(Value) -> ObjectIndex) -> T,
    ) -> T {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("heap.hprof");
        self.model.root_boot_classes();
        if !hide_values {
            self.check_redaction();
        }
        self.model.write(&Options::hotspot()).write_file(&path).expect("a dump");
        let options = HeapOptions {
            index_dir: Some(dir.path().join("index")),
            heap_dump: None,
            memory_bytes: None,
            hide_values,
        };
        let (heap, graph) = Heap::open_graph(&path, &options, &Quiet).expect("a heap");
        let dump = Dump::new(&heap, &graph).expect("bytes");
        let known = KnownFrameworks::new(&dump, rules);
        test(&known, &|value| graph.objects.addresses.index_of(ObjectId(id(value))).expect("an object"))
    }

    fn describe(&mut self, object: Value) -> FrameworkDescription {
        let rules = Frameworks::builtin();
        self.with(&rules, false, |known, index| known.describe(index(object)).expect("a rule"))
    }
}

fn id(value: Value) -> u64 {
    if let Value::Object(id) = value { id } else { panic!("{value:?} is no object") }
}

fn fact(of: &FrameworkDescription, name: &str) -> FrameworkFact {
    of.facts.iter().find(|(fact, _)| fact == name).expect(name).1.clone()
}

fn description_parts(of: &FrameworkDescription) -> (Option<&str>, Option<&str>, Option<FrameworkVerdict>) {
    (of.called.as_deref(), of.text.as_deref(), of.verdict)
}

/// Creates a store of sessions with these timeouts in seconds.
fn sessions(made: &mut TestHeap, timeouts: &[i32]) -> Value {
    let entries: Vec<(Value, Value)> = timeouts
        .iter()
        .map(|timeout| {
            let (id, key, cart) = (made.text("id"), made.text("cart"), made.text("a book"));
            let attributes = made.map(&[(key, cart)]);
            let fields = [("maxInactiveInterval", Value::Int(*timeout)), ("attributes", attributes)];
            (id, made.object("org.apache.catalina.session.StandardSession", &fields))
        })
        .collect();
    let sessions = made.map(&entries);
    let path = made.text("/shop");
    let context = made.object("org.apache.catalina.core.StandardContext", &[("path", path)]);
    made.object(
        "org.apache.catalina.session.StandardManager < org.apache.catalina.session.ManagerBase",
        &[("sessions", sessions), ("context", context)],
    )
}

#[test]
fn tomcat() {
    let mut made = TestHeap::new();
    let manager = sessions(&mut made, &[60, 1800, 300]);
    let found = made.describe(manager);
    assert_eq!(
        description_parts(&found),
        (Some("session store of /shop"), Some("3 sessions, timeout 30 min, largest attribute cart"), None)
    );
    assert_eq!(&*found.framework, "Tomcat");
    assert_eq!(fact(&found, "sessions"), FrameworkFact::Whole(3));
    assert_eq!(fact(&found, "attribute"), FrameworkFact::Text("cart".to_owned()));
    // Texts of the dump are hidden, numbers and names of classes are not.
    let hidden = made.with(&Frameworks::builtin(), true, |known, index| known.describe(index(manager)));
    let hidden = hidden.expect("a rule");
    let text = "3 sessions, timeout 30 min, largest attribute (attribute hidden)";
    assert_eq!(description_parts(&hidden), (Some("session store of (path hidden)"), Some(text), None));
    assert_eq!(fact(&hidden, "attribute"), FrameworkFact::Hidden);

    let mut made = TestHeap::new();
    let never = sessions(&mut made, &[-1]);
    assert_eq!(
        made.describe(never).text.as_deref(),
        Some("1 session, which never expire, largest attribute cart")
    );

    let mut made = TestHeap::new();
    let state = made.constant("org.apache.catalina.LifecycleState", "STOPPED");
    let loader = made.object(
        "org.apache.catalina.loader.ParallelWebappClassLoader < org.apache.catalina.loader.WebappClassLoaderBase",
        &[("state", state), ("resources", Value::NULL)],
    );
    assert_eq!(
        description_parts(&made.describe(loader)),
        (
            Some("class loader of web application"),
            Some("the web application is STOPPED, but its classes are still reachable"),
            Some(FrameworkVerdict::Leak)
        )
    );

    let mut made = TestHeap::new();
    let (name, connection, waiting) = (made.text("orders"), made.text("connection"), made.atomic(4));
    let (busy, idle) = (made.list(&[connection]), made.list(&[]));
    let properties = [("name", name), ("maxActive", Value::Int(1))];
    let properties = made.object("org.apache.tomcat.jdbc.pool.PoolProperties", &properties);
    let pool = made.object(
        "org.apache.tomcat.jdbc.pool.ConnectionPool",
        &[("busy", busy), ("idle", idle), ("waitcount", waiting), ("poolProperties", properties)],
    );
    let found = made.describe(pool);
    let text = "1 of 1 connections in use, 4 threads wait";
    assert_eq!(
        description_parts(&found),
        (Some("connection pool orders"), Some(text), Some(FrameworkVerdict::Leak))
    );
}

#[test]
fn jetty() {
    let mut made = TestHeap::new();
    let fields = [("_maxInactiveMs", Value::Long(7_200_000)), ("_attributes", Value::NULL)];
    let data = made.object("org.eclipse.jetty.server.session.SessionData", &fields);
    let session = made.object("org.eclipse.jetty.server.session.Session", &[("_sessionData", data)]);
    let key = made.text("node0");
    let (sessions, path) = (made.map(&[(key, session)]), made.text("_shop"));
    let context =
        made.object("org.eclipse.jetty.server.session.SessionContext", &[("_canonicalContextPath", path)]);
    let cache = made.object(
        "org.eclipse.jetty.server.session.DefaultSessionCache",
        &[("_sessions", sessions), ("_context", context)],
    );
    assert_eq!(
        description_parts(&made.describe(cache)),
        (Some("session store of _shop"), Some("1 session, timeout 2 h"), None)
    );

    let mut made = TestHeap::new();
    let (name, size) = (made.text("portal"), made.atomic(120));
    let jobs = made.object("org.eclipse.jetty.util.BlockingArrayQueue", &[("_size", size)]);
    let threads = made.list(&[name, name]);
    let pool = made.object(
        "org.eclipse.jetty.util.thread.QueuedThreadPool",
        &[("_threads", threads), ("_maxThreads", Value::Int(8)), ("_name", name), ("_jobs", jobs)],
    );
    let text = "120 tasks wait for 2 of at most 8 threads";
    assert_eq!(description_parts(&made.describe(pool)), (Some("thread pool portal"), Some(text), None));
}

#[test]
fn spring() {
    let mut made = TestHeap::new();
    let (name, key, value) = (made.text("prices"), made.text("7"), made.text("price"));
    let store = made.map(&[(key, value)]);
    let cache = made.object(
        "org.springframework.cache.concurrent.ConcurrentMapCache",
        &[("name", name), ("store", store)],
    );
    let beans = made.map(&[(name, cache)]);
    let factory = made.object(
        "org.springframework.beans.factory.support.DefaultListableBeanFactory < \
         org.springframework.beans.factory.support.DefaultSingletonBeanRegistry",
        &[("singletonObjects", beans)],
    );
    made.with(&Frameworks::builtin(), false, |known, index| {
        let found = known.describe(index(cache)).expect("a rule");
        assert_eq!(description_parts(&found), (Some("cache prices"), Some("1 entry, no bound"), None));
        assert_eq!(known.name_of(index(factory)).as_deref(), Some("bean factory"));
        assert_eq!(known.entries(index(factory)), Some((index(beans), Some("bean"))));
        assert_eq!(known.entries(index(cache)), Some((index(store), None)));
        // Found by its own retained size or that of its entries.
        assert!(known.instances(u64::MAX).is_empty());
        assert_eq!(known.instances(1), [index(cache), index(factory)]);
    });
}

#[test]
fn pools() {
    let mut made = TestHeap::new();
    let (name, waiters) = (made.text("billing"), made.atomic(24));
    let entries: Vec<Value> = (0..2)
        .map(|_| {
            let statements = made.object(
                "com.zaxxer.hikari.util.FastList",
                &[("elementData", Value::NULL), ("size", Value::Int(3))],
            );
            let connection = made.object("org.h2.jdbc.JdbcConnection", &[]);
            let fields =
                [("state", Value::Int(1)), ("openStatements", statements), ("connection", connection)];
            made.object("com.zaxxer.hikari.pool.PoolEntry", &fields)
        })
        .collect();
    let shared = made.list(&entries);
    let bag =
        made.object("com.zaxxer.hikari.util.ConcurrentBag", &[("sharedList", shared), ("waiters", waiters)]);
    let config =
        made.object("com.zaxxer.hikari.HikariConfig", &[("poolName", name), ("maxPoolSize", Value::Int(2))]);
    let pool = made.object(
        "com.zaxxer.hikari.pool.HikariPool < com.zaxxer.hikari.pool.PoolBase",
        &[("connectionBag", bag), ("config", config)],
    );
    let found = made.describe(pool);
    let text = "2 of 2 connections in use, 24 threads wait";
    assert_eq!(
        description_parts(&found),
        (Some("connection pool billing"), Some(text), Some(FrameworkVerdict::Leak))
    );
    assert_eq!((found.retains.len(), fact(&found, "open_statements")), (2, FrameworkFact::Whole(6)));

    let mut made = TestHeap::new();
    let state = made.constant("org.apache.commons.pool2.PooledObjectState", "ALLOCATED");
    let connection = made.object("org.apache.commons.dbcp2.PoolableConnection", &[]);
    let pooled = made.object(
        "org.apache.commons.pool2.impl.DefaultPooledObject",
        &[("state", state), ("object", connection)],
    );
    let (all, free) = (made.map(&[(connection, pooled)]), made.list(&[]));
    let pool = made.object(
        "org.apache.commons.pool2.impl.GenericObjectPool < org.apache.commons.pool2.impl.BaseGenericObjectPool",
        &[("allObjects", all), ("idleObjects", free), ("maxTotal", Value::Int(8))],
    );
    assert_eq!(description_parts(&made.describe(pool)), (Some("object pool"), Some("1 of 8 in use"), None));
}

/// Creates an executor with two threads and 200 tasks.
fn executor(made: &mut TestHeap) -> Value {
    let workers: Vec<(Value, Value)> = (1..3)
        .map(|number| {
            let thread =
                made.thread(number, &format!("mail-sender-{number}"), "com.acme.Smtp$Client", "send");
            let fields = [("state", Value::Int(1)), ("thread", thread)];
            (made.object(WORKER, &fields), Value::NULL)
        })
        .collect();
    let workers = made.map(&workers);
    let workers = made.object("java.util.HashSet", &[("map", workers)]);
    let service = made.object("com.acme.MailService", &[]);
    let tasks: Vec<Value> = (0..200)
        .map(|_| {
            let mail = made.object("com.acme.Mail", &[]);
            let lambda = made
                .object("com.acme.MailService$$Lambda/0x000000080", &[("arg$1", service), ("arg$2", mail)]);
            let adapter = made.object("java.util.concurrent.Executors$RunnableAdapter", &[("task", lambda)]);
            made.object("java.util.concurrent.FutureTask", &[("callable", adapter)])
        })
        .collect();
    let queue = made.list(&tasks);
    made.object(
        "java.util.concurrent.ThreadPoolExecutor",
        &[("workQueue", queue), ("workers", workers), ("maximumPoolSize", Value::Int(2))],
    )
}

#[test]
fn executors_say_what_their_threads_do() {
    let mut made = TestHeap::new();
    let pool = executor(&mut made);
    let found = made.describe(pool);
    let text = "200 tasks wait, each with a Mail; 2 of 2 threads in Client.send";
    assert_eq!(description_parts(&found), (Some("executor mail-sender"), Some(text), None));
    assert_eq!(fact(&found, "of"), FrameworkFact::Text("com.acme.Mail".to_owned()));
    // The queue and the mails.
    assert_eq!(found.retains.len(), 201);

    let mut made = TestHeap::new();
    let task = made.object("com.acme.Sweep", &[]);
    let array = made.array(&[Value::NULL, task]);
    let queue = made.object("java.util.TaskQueue", &[("queue", array), ("size", Value::Int(1))]);
    let thread = made.thread(1, "sweeper", "com.acme.Sweep", "run");
    let timer = made.object("java.util.Timer", &[("queue", queue), ("thread", thread)]);
    assert_eq!(
        description_parts(&made.describe(timer)),
        (Some("Timer sweeper"), Some("1 task, mostly Sweep"), None)
    );
}

#[test]
fn content_is_no_alarm() {
    let is_content = |made: &mut TestHeap, object, called: &str, text: &str| {
        let found = made.describe(object);
        assert_eq!(description_parts(&found), (Some(called), Some(text), Some(FrameworkVerdict::Content)));
    };
    let mut made = TestHeap::new();
    let (key, value) = (made.text("k"), made.text("v"));
    let map = made.map(&[(key, value)]);
    let nodes = made.object("org.apache.zookeeper.server.NodeHashMapImpl", &[("nodes", map)]);
    let tree = made.object("org.apache.zookeeper.server.DataTree", &[("nodes", nodes), ("ephemerals", map)]);
    is_content(&mut made, tree, "ZooKeeper's DataTree", "1 znode");

    let mut made = TestHeap::new();
    let name = made.text("ORDERS");
    let name = made.object("org.hsqldb.HsqlNameManager$HsqlName", &[("name", name)]);
    let table = made.object("org.hsqldb.Table", &[("tableName", name)]);
    let rows = made.atomic(70_000);
    let store = made.object(
        "org.hsqldb.persist.RowStoreAVLMemory < org.hsqldb.persist.RowStoreAVL",
        &[("accessorList", Value::NULL), ("elementCount", rows), ("table", table)],
    );
    is_content(&mut made, store, "table ORDERS", "70,000 rows of the database");

    let mut made = TestHeap::new();
    let (file, bytes) = (made.text("_0.cfs"), made.atomic(2048));
    let files = made.map(&[(file, file)]);
    let directory =
        made.object("org.apache.lucene.store.RAMDirectory", &[("fileMap", files), ("sizeInBytes", bytes)]);
    is_content(&mut made, directory, "in-memory index", "1 file of the index, 2.0 KiB");
    let mut made = TestHeap::new();
    let file = made.text("_0.cfs");
    let files = made.map(&[(file, file)]);
    let directory = made.object("org.apache.lucene.store.ByteBuffersDirectory", &[("files", files)]);
    is_content(&mut made, directory, "in-memory index", "1 file of the index");

    let mut made = TestHeap::new();
    let suffix = made.text("co.uk");
    let rules = made.map(&[(suffix, suffix)]);
    let matcher = made.object("org.apache.http.conn.util.PublicSuffixMatcher", &[("rules", rules)]);
    is_content(&mut made, matcher, "public suffix list", "1 rule");

    let mut made = TestHeap::new();
    let rdd = made.object("org.apache.spark.storage.RDDBlockId", &[]);
    let broadcast = made.object("org.apache.spark.storage.BroadcastBlockId", &[]);
    let blocks = made.map(&[(rdd, rdd), (broadcast, rdd)]);
    let store = made.object("org.apache.spark.storage.memory.MemoryStore", &[("entries", blocks)]);
    is_content(&mut made, store, "block store", "2 blocks: 1 of RDDs, 1 of broadcasts");

    let mut made = TestHeap::new();
    let free = [("totalMemory", Value::Long(1 << 25)), ("nonPooledAvailableMemory", Value::Long(1 << 24))];
    let free = made.object("org.apache.kafka.clients.producer.internals.BufferPool", &free);
    let buffer =
        made.object("org.apache.kafka.clients.producer.internals.RecordAccumulator", &[("free", free)]);
    is_content(&mut made, buffer, "Kafka producer buffer", "16.0 MiB of 32.0 MiB");

    let mut made = TestHeap::new();
    let segment = made.object(&format!("{BOUNDED}$Segment"), &[("count", Value::Int(12))]);
    let segments = made.array(&[segment, Value::NULL, segment]);
    let plans = made.object(BOUNDED, &[("segments", segments)]);
    let cache = made.object("org.hibernate.engine.query.spi.QueryPlanCache", &[("queryPlanCache", plans)]);
    is_content(&mut made, cache, "query plan cache", "24 plans, within its bound");
}

#[test]
fn hibernate_and_caffeine() {
    let mut made = TestHeap::new();
    let name = made.text("com.acme.Order");
    let model = made.object("org.hibernate.tuple.entity.EntityMetamodel", &[("name", name)]);
    let persister = made
        .object("org.hibernate.persister.entity.SingleTableEntityPersister", &[("entityMetamodel", model)]);
    let key = made.object("org.hibernate.engine.spi.EntityKey", &[("persister", persister)]);
    let entries = vec![(key, name); 1200];
    let entities = made.map(&entries);
    let context = made
        .object("org.hibernate.engine.internal.StatefulPersistenceContext", &[("entitiesByKey", entities)]);
    let session = made.object("org.hibernate.internal.SessionImpl", &[("persistenceContext", context)]);
    let text = "1,200 entities of one session, mostly Order";
    assert_eq!(description_parts(&made.describe(session)), (Some("Hibernate session"), Some(text), None));

    let mut made = TestHeap::new();
    let (key, value) = (made.text("k"), made.text("v"));
    let data = made.map(&[(key, value)]);
    let cache = made.object("com.github.benmanes.caffeine.cache.UnboundedLocalCache", &[("data", data)]);
    assert_eq!(
        description_parts(&made.describe(cache)),
        (Some("Caffeine cache"), Some("1 entry, no bound"), None)
    );
}

/// Rules of a test about `a.Node`, which has `next` and `map`.
const OWN: &str = r#"
framework = "Own"
[[class]]
name = "a.Node"
fields = ["next"]
[class.facts]
chained = 'chain(this, "next").@size'
size = "this.map.@size"
most = "(SELECT max(e.value.@usedHeapSize) FROM OBJECTS (this.map[0:-1]) e)"
first = "(SELECT count(*) FROM OBJECTS (this.map[0:9]) e)"
some = "this.map[0:2]"
"#;

#[test]
fn circles_end_and_large_maps_are_not_walked() {
    let mut made = TestHeap::new();
    let one = made.object("a.Node", &[("next", Value::NULL), ("map", Value::NULL)]);
    let two = made.object("a.Node", &[("next", one), ("map", Value::NULL)]);
    // A map with more entries than are examined.
    let fields = [("hash", Value::Int(0)), ("key", one), ("value", two), ("next", Value::NULL)];
    let class = made.class("java.util.HashMap$Node", &fields);
    let nodes: Vec<_> = (0..300_000).map(|_| made.model.instance_with(class, &fields)).collect();
    let table = made.model.object_array(made.jdk.object_array, &nodes).into();
    let map = made.object("java.util.HashMap", &[("table", table), ("size", Value::Int(300_000))]);
    made.model.set_field(hprof_writer::ObjectId(id(one)), "next", hprof_writer::ObjectId(id(two)));
    made.model.set_field(hprof_writer::ObjectId(id(one)), "map", hprof_writer::ObjectId(id(map)));
    let rules = Frameworks::builtin().with(OWN, "own.toml").expect("rules");
    let started = Instant::now();
    let found = made.with(&rules, false, |known, index| known.describe(index(one)).expect("a rule"));
    assert_eq!(fact(&found, "chained"), FrameworkFact::Whole(2));
    assert_eq!(fact(&found, "size"), FrameworkFact::Whole(300_000));
    // More than are examined: no value instead of a partial one.
    assert_eq!(fact(&found, "most"), FrameworkFact::Null);
    assert_eq!(fact(&found, "first"), FrameworkFact::Whole(10));
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}

#[test]
fn classes_without_the_fields_or_without_a_rule_have_none() {
    let mut made = TestHeap::new();
    let other = made.object("a.Node", &[("previous", Value::NULL)]);
    let bytes: Value = made.model.prim_array(Elements::of_bytes(&[1])).into();
    let rules = Frameworks::default().with(OWN, "own.toml").expect("rules");
    made.with(&rules, false, |known, index| {
        assert_eq!(known.describe(index(other)), None);
        assert_eq!(known.name_of(index(bytes)), None);
        assert!(known.instances(0).is_empty());
    });
}

#[test]
fn fields_that_refer_to_anything_end_and_do_not_panic() {
    let rules = Frameworks::builtin();
    let mut random: u64 = 7;
    let mut next = move |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(random >> 33).expect("31 bits") % below
    };
    let mut described = 0;
    for _ in 0..40 {
        let mut made = TestHeap::new();
        let (pool, store) = (executor(&mut made), sessions(&mut made, &[60, 1800]));
        for _ in 0..60 {
            let (object, field) = made.references[next(made.references.len())].clone();
            let to = made.references[next(made.references.len())].0;
            made.model.set_field(object, &field, to);
        }
        made.with(&rules, false, |known, index| {
            for object in known.instances(0).into_iter().chain([index(pool), index(store)]) {
                described += usize::from(known.describe(object).is_some());
                let _ = (known.name_of(object), known.entries(object));
            }
        });
    }
    assert!(described >= 80, "{described}");
}
