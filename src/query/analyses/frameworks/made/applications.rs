//! Rules about data that applications store: indexes, trees, entities, jobs, scripts, documents, messages.

use hprof_writer::{Elements, Value};

use super::{TestHeap, description_parts, fact};
use crate::frameworks::{FrameworkFact, FrameworkVerdict, Frameworks};

const CONTENT: Option<FrameworkVerdict> = Some(FrameworkVerdict::Content);

fn bytes(made: &mut TestHeap, length: usize) -> Value {
    made.model.prim_array(Elements::of_bytes(&vec![1; length])).into()
}

#[test]
fn lucene_explains_the_bytes_of_files() {
    let mut made = TestHeap::new();
    let blocks: Vec<Value> = (0..3)
        .map(|_| {
            let hb = bytes(&mut made, 1000);
            made.object("java.nio.HeapByteBufferR < java.nio.ByteBuffer", &[("hb", hb)])
        })
        .collect();
    let blocks = made.array(&blocks);
    let input = [("blocks", blocks), ("size", Value::Long(3000))];
    let input = made.object("org.apache.lucene.store.ByteBuffersDataInput", &input);
    let content = made.object("org.apache.lucene.store.ByteBuffersIndexInput", &[("in", input)]);
    let one = made.object("org.apache.lucene.store.ByteBuffersDirectory$FileEntry", &[("content", content)]);
    let whole = bytes(&mut made, 500);
    let content = made.object("org.apache.lucene.store.ByteArrayIndexInput", &[("bytes", whole)]);
    let other =
        made.object("org.apache.lucene.store.ByteBuffersDirectory$FileEntry", &[("content", content)]);
    // A file that is being written.
    let empty =
        made.object("org.apache.lucene.store.ByteBuffersDirectory$FileEntry", &[("content", Value::NULL)]);
    let names: Vec<Value> = ["_0.cfs", "_1.cfs", "_2.cfs"].into_iter().map(|name| made.text(name)).collect();
    let entries: Vec<(Value, Value)> = names.into_iter().zip([one, other, empty]).collect();
    let files = made.map(&entries);
    let directory = made.object("org.apache.lucene.store.ByteBuffersDirectory", &[("files", files)]);
    made.with(&Frameworks::builtin(), false, |known, index| {
        let found = known.describe(index(directory)).expect("a rule");
        assert_eq!(
            description_parts(&found),
            (Some("in-memory index"), Some("3 files of the index, 3.4 KiB"), CONTENT)
        );
        // The directory, three blocks and an array.
        assert_eq!(found.retains.len(), 5);
        assert!(found.retains.contains(&index(whole)));
        // The bytes are held elsewhere, so it retains little.
        assert_eq!(known.instances(u64::MAX), [index(directory)]);
    });

    let mut made = TestHeap::new();
    let buffer = bytes(&mut made, 1024);
    let buffers = made.list(&[buffer]);
    let file = made.object("org.apache.lucene.store.RAMFile", &[("buffers", buffers)]);
    let (name, size) = (made.text("_0.cfs"), made.atomic(1024));
    let files = made.map(&[(name, file)]);
    let fields = [("fileMap", files), ("sizeInBytes", size)];
    let directory = made.object("org.apache.lucene.store.RAMDirectory", &fields);
    let found = made.describe(directory);
    assert_eq!(
        description_parts(&found),
        (Some("in-memory index"), Some("1 file of the index, 1.0 KiB"), CONTENT)
    );
    assert_eq!(found.retains.len(), 2);

    let mut made = TestHeap::new();
    let query = made.text("query");
    let queries = made.map(&[(query, query)]);
    let fields = [("maxSize", Value::Int(1000)), ("uniqueQueries", queries)];
    let cache = made.object("org.apache.lucene.search.LRUQueryCache", &fields);
    let text = "1 of 1,000 queries, as configured";
    assert_eq!(description_parts(&made.describe(cache)), (Some("query cache"), Some(text), CONTENT));
}

#[test]
fn trees_of_compilers() {
    let mut made = TestHeap::new();
    let positions = made.object("com.sun.tools.javac.parser.JavacParser$SimpleEndPosTable", &[]);
    let comments = made.object("com.sun.tools.javac.parser.LazyDocCommentTable", &[]);
    let unit = made.object(
        "com.sun.tools.javac.tree.JCTree$JCCompilationUnit",
        &[("endPositions", positions), ("docComments", comments)],
    );
    // Two types of one file.
    let types: Vec<(Value, Value)> = ["A", "A$B"]
        .into_iter()
        .map(|name| {
            (made.text(name), made.object("com.sun.tools.javac.comp.AttrContextEnv", &[("toplevel", unit)]))
        })
        .collect();
    let map = made.map(&types);
    let envs = made.object("com.sun.tools.javac.comp.TypeEnvs", &[("map", map)]);
    let found = made.describe(envs);
    assert_eq!(
        description_parts(&found),
        (Some("javac compilation"), Some("trees of 1 source file"), CONTENT)
    );
    assert_eq!((found.retains.len(), fact(&found, "types")), (4, FrameworkFact::Whole(2)));

    // Before JDK 9 the map is a field of Enter.
    let mut made = TestHeap::new();
    let unit = made.object("com.sun.tools.javac.tree.JCTree$JCCompilationUnit", &[]);
    let env = made.object("com.sun.tools.javac.comp.AttrContextEnv", &[("toplevel", unit)]);
    let name = made.text("A");
    let map = made.map(&[(name, env)]);
    let enter =
        made.object("com.sun.tools.javac.comp.Enter", &[("typeEnvs", map), ("uncompleted", Value::NULL)]);
    let found = made.describe(enter);
    assert_eq!(
        description_parts(&found),
        (Some("javac compilation"), Some("trees of 1 source file"), CONTENT)
    );

    let mut made = TestHeap::new();
    let name = made.text("A.java");
    let cache = made.map(&[(name, name)]);
    let manager = made.object(
        "com.sun.tools.javac.file.JavacFileManager < com.sun.tools.javac.file.BaseFileManager",
        &[("contentCache", cache)],
    );
    let text = "text of 1 source file";
    assert_eq!(description_parts(&made.describe(manager)), (Some("javac source cache"), Some(text), CONTENT));

    let mut made = TestHeap::new();
    let of = made.object("org.eclipse.jdt.internal.compiler.ast.TypeDeclaration", &[]);
    let types = made.array(&[of]);
    let unit =
        made.object("org.eclipse.jdt.internal.compiler.ast.CompilationUnitDeclaration", &[("types", types)]);
    let units = made.array(&[unit, Value::NULL]);
    let environment = made.object("org.eclipse.jdt.internal.compiler.lookup.LookupEnvironment", &[]);
    let compiler = made.object(
        "org.eclipse.jdt.internal.compiler.Compiler",
        &[("unitsToProcess", units), ("totalUnits", Value::Int(1)), ("lookupEnvironment", environment)],
    );
    let found = made.describe(compiler);
    assert_eq!(description_parts(&found), (Some("ecj compilation"), Some("trees of 1 source file"), CONTENT));
    // The compiler, its environment, the unit and its type.
    assert_eq!(found.retains.len(), 4);
}

/// Creates a unit of work with this number of entities, which belongs to an entity manager with or without an active
/// transaction.
fn unit_of_work(made: &mut TestHeap, entities: usize, is_active: bool) -> Value {
    let key = made.object("com.acme.Container", &[]);
    let backup = made.object("com.acme.Container", &[]);
    let clones = made.map(&vec![(key, backup); entities]);
    let unit = made.object(
        "org.eclipse.persistence.internal.sessions.RepeatableWriteUnitOfWork < \
         org.eclipse.persistence.internal.sessions.UnitOfWorkImpl",
        &[("cloneMapping", clones), ("cloneToOriginals", Value::NULL)],
    );
    let of = "org.eclipse.persistence.internal.jpa.transaction.EntityTransactionImpl";
    let transaction = made.object(of, &[("active", Value::Boolean(is_active))]);
    let wrapper = made.object(
        "org.eclipse.persistence.internal.jpa.transaction.EntityTransactionWrapper",
        &[("entityTransaction", transaction), ("localUOW", Value::NULL), ("entityManager", unit)],
    );
    made.object(
        "org.eclipse.persistence.internal.jpa.EntityManagerImpl",
        &[("extendedPersistenceContext", unit), ("transaction", wrapper)],
    );
    unit
}

#[test]
fn eclipselink() {
    let mut made = TestHeap::new();
    let unit = unit_of_work(&mut made, 12_000, false);
    let found = made.describe(unit);
    let text = "12,000 managed entities, mostly Container, though no transaction is active";
    assert_eq!(
        description_parts(&found),
        (Some("persistence context"), Some(text), Some(FrameworkVerdict::Leak))
    );
    assert_eq!(found.retains.len(), 3);

    let mut made = TestHeap::new();
    let unit = unit_of_work(&mut made, 12_000, true);
    let text = "12,000 managed entities, mostly Container";
    assert_eq!(description_parts(&made.describe(unit)), (Some("persistence context"), Some(text), None));

    let mut made = TestHeap::new();
    let unit = unit_of_work(&mut made, 10, false);
    assert_eq!(made.describe(unit).text, None);

    // Subclasses differ in the objects that they hold.
    for (class, text, verdict) in [
        ("SoftCacheWeakIdentityMap < W", "1 entity, kept only while referenced elsewhere", CONTENT),
        ("CacheIdentityMap", "1 of 100, as configured", CONTENT),
        ("FullIdentityMap", "1 entity, no bound", None),
    ] {
        let mut made = TestHeap::new();
        let name = made.text("com.acme.Container");
        let descriptor = [("javaClassName", name)];
        let descriptor = made.object("org.eclipse.persistence.descriptors.ClassDescriptor", &descriptor);
        let keys = made.map(&[(name, name)]);
        let package = "org.eclipse.persistence.internal.identitymaps.";
        let class = format!("{package}{class}").replace("< W", &format!("< {package}WeakIdentityMap"));
        let fields = [("cacheKeys", keys), ("descriptor", descriptor), ("maxSize", Value::Int(100))];
        let map = made.object(&class, &fields);
        assert_eq!(
            description_parts(&made.describe(map)),
            (Some("shared cache of Container"), Some(text), verdict)
        );
    }
}

#[test]
fn quartz() {
    let mut made = TestHeap::new();
    let job_class = made.class("com.acme.ReminderJob", &[]);
    let jobs: Vec<(Value, Value)> = (0..200)
        .map(|number| {
            let (name, group) = (made.text(&number.to_string()), made.text("reminders"));
            let key = made.object("org.quartz.JobKey", &[("name", name), ("group", group)]);
            let fields = [("jobClass", job_class.into()), ("durability", Value::Boolean(true))];
            let detail = made.object("org.quartz.impl.JobDetailImpl", &fields);
            (key, made.object("org.quartz.simpl.JobWrapper", &[("jobDetail", detail)]))
        })
        .collect();
    // Two triggers of one job.
    let first = jobs.first().expect("a job").0;
    let triggers: Vec<(Value, Value)> = (0..2)
        .map(|_| (first, made.object("org.quartz.simpl.TriggerWrapper", &[("jobKey", first)])))
        .collect();
    let (jobs, triggers) = (made.map(&jobs), made.map(&triggers));
    let name = made.text("Parcels");
    let resources = made.object("org.quartz.core.QuartzSchedulerResources", &[("name", name)]);
    let scheduler = made.object("org.quartz.core.QuartzScheduler", &[("resources", resources)]);
    let signaler = made.object("org.quartz.core.SchedulerSignalerImpl", &[("sched", scheduler)]);
    let fields = [("jobsByKey", jobs), ("triggersByKey", triggers), ("signaler", signaler)];
    let store = made.object("org.quartz.simpl.RAMJobStore", &fields);
    let text = "200 jobs, mostly ReminderJob, 2 triggers; 199 durable jobs have no trigger";
    assert_eq!(
        description_parts(&made.describe(store)),
        (Some("Quartz job store of Parcels"), Some(text), None)
    );

    let mut made = TestHeap::new();
    let job_class = made.class("com.acme.ReminderJob", &[]);
    let detail = made.object("org.quartz.JobDetail", &[("jobClass", job_class.into())]);
    let wrapper = made.object("org.quartz.simpl.JobWrapper", &[("jobDetail", detail)]);
    let name = made.text("reminders.1");
    let jobs = made.map(&[(name, wrapper)]);
    let fields = [("jobsByFQN", jobs), ("triggersByFQN", jobs)];
    let store = made.object("org.quartz.simpl.RAMJobStore", &fields);
    let text = "1 job, mostly ReminderJob, 1 trigger";
    assert_eq!(description_parts(&made.describe(store)), (Some("Quartz job store"), Some(text), None));
}

#[test]
fn groovy() {
    let mut made = TestHeap::new();
    let classes: Vec<(Value, Value)> = (0..60)
        .flat_map(|number| [format!("Script{number}"), format!("Script{number}$_run_closure1")])
        .map(|name| (made.text(&name), made.class(&name, &[]).into()))
        .collect();
    let map = made.map(&classes);
    // As in 2.5 and later.
    let cache = made.object("org.codehaus.groovy.runtime.memoize.UnlimitedConcurrentCache", &[("map", map)]);
    let fields = [("classCache", cache), ("sourceCache", Value::NULL)];
    let loader = made.object("groovy.lang.GroovyClassLoader", &fields);
    let text = "120 compiled classes of 60 scripts, cached without bound";
    let found = made.describe(loader);
    assert_eq!(description_parts(&found), (Some("Groovy class loader"), Some(text), None));
    assert!(found.retains.len() > 120);
}

#[test]
fn ehcache() {
    for (maximum, text, verdict) in
        [(1500, "24 of 1,500, as configured", CONTENT), (0, "24 entries, no bound", None)]
    {
        let mut made = TestHeap::new();
        let segment = "net.sf.ehcache.store.chm.SelectableConcurrentHashMap$Segment";
        let segment = made.object(segment, &[("count", Value::Int(12))]);
        let segments = made.array(&[segment, segment]);
        let map = "net.sf.ehcache.store.chm.SelectableConcurrentHashMap";
        let map = made.object(map, &[("segments", segments)]);
        let name = made.text("pages");
        let configuration = made.object("net.sf.ehcache.config.CacheConfiguration", &[("name", name)]);
        let cache = made.object("net.sf.ehcache.Cache", &[("configuration", configuration)]);
        let store = made.object(
            "net.sf.ehcache.store.NotifyingMemoryStore < net.sf.ehcache.store.MemoryStore",
            &[("map", map), ("maximumSize", Value::Int(maximum)), ("cache", cache)],
        );
        assert_eq!(description_parts(&made.describe(store)), (Some("Ehcache pages"), Some(text), verdict));
    }
}

#[test]
fn documents() {
    let mut made = TestHeap::new();
    let key = made.text("items");
    let array = made.list(&[key, key]);
    let array = made.object("com.fasterxml.jackson.databind.node.ArrayNode", &[("_children", array)]);
    let fields = made.map(&[(key, array)]);
    let object = made.object("com.fasterxml.jackson.databind.node.ObjectNode", &[("_children", fields)]);
    made.with(&Frameworks::builtin(), false, |known, index| {
        let found = known.describe(index(object)).expect("a rule");
        assert_eq!(description_parts(&found), (Some("JSON object"), Some("1 field"), CONTENT));
        let found = known.describe(index(array)).expect("a rule");
        assert_eq!(description_parts(&found), (Some("JSON array"), Some("2 elements"), None));
    });

    let mut made = TestHeap::new();
    let name = made.text("catalog");
    let element = made.object("org.apache.xerces.dom.ElementImpl", &[("name", name)]);
    let document = made.object(
        "org.apache.xerces.dom.DocumentImpl < org.apache.xerces.dom.CoreDocumentImpl",
        &[("docElement", element), ("fDocumentURI", Value::NULL)],
    );
    let text = "root element catalog";
    assert_eq!(description_parts(&made.describe(document)), (Some("XML document"), Some(text), CONTENT));
}

#[test]
fn messages_that_were_fetched_ahead() {
    let mut made = TestHeap::new();
    let message = made.object("org.apache.activemq.command.MessageDispatch", &[]);
    let list = made.list(&[message, message]);
    let channel = made.object("org.apache.activemq.FifoMessageDispatchChannel", &[("list", list)]);
    let (name, client) = (made.text("prices"), made.text("screen"));
    let topic = made.object("org.apache.activemq.command.ActiveMQTopic", &[("physicalName", name)]);
    let fields = [("destination", topic), ("prefetchSize", Value::Int(100))];
    let info = made.object("org.apache.activemq.command.ConsumerInfo", &fields);
    let of = made.object("org.apache.activemq.command.ConnectionInfo", &[("clientId", client)]);
    let connection = made.object("org.apache.activemq.ActiveMQConnection", &[("info", of)]);
    let session = made.object("org.apache.activemq.ActiveMQSession", &[("connection", connection)]);
    let fields = [("unconsumedMessages", channel), ("info", info), ("session", session)];
    let consumer = made.object("org.apache.activemq.ActiveMQMessageConsumer", &fields);
    let (called, text) =
        ("consumer of topic prices, client screen", "2 messages prefetched, not consumed, prefetch 100");
    assert_eq!(description_parts(&made.describe(consumer)), (Some(called), Some(text), None));

    let mut made = TestHeap::new();
    let topic = made.text("orders");
    let fetches: Vec<Value> = [0, 1, 1]
        .into_iter()
        .map(|number| {
            let fields = [("topic", topic), ("partition", Value::Int(number))];
            let partition = made.object("org.apache.kafka.common.TopicPartition", &fields);
            let of = "org.apache.kafka.clients.consumer.internals.CompletedFetch";
            made.object(of, &[("partition", partition)])
        })
        .collect();
    let fetches = made.list(&fetches);
    let buffer = "org.apache.kafka.clients.consumer.internals.FetchBuffer";
    let buffer = made.object(buffer, &[("completedFetches", fetches)]);
    let text = "3 fetches of 2 partitions, mostly of topic orders, not polled";
    assert_eq!(description_parts(&made.describe(buffer)), (Some("Kafka consumer buffer"), Some(text), None));
}

#[test]
fn spark_names_the_largest_rdd() {
    let mut made = TestHeap::new();
    let row = made.object("com.acme.Basket", &[]);
    let rows = made.array(&[row]);
    let blocks: Vec<(Value, Value)> = [(4, 1 << 20), (14, 2 << 20), (14, 2 << 20)]
        .into_iter()
        .map(|(rdd, size)| {
            let id = made.object("org.apache.spark.storage.RDDBlockId", &[("rddId", Value::Int(rdd))]);
            let fields = [("size", Value::Long(size)), ("value", rows)];
            (id, made.object("org.apache.spark.storage.memory.DeserializedMemoryEntry", &fields))
        })
        .collect();
    let blocks = made.map(&blocks);
    let pool =
        made.object("org.apache.spark.memory.StorageMemoryPool", &[("_memoryUsed", Value::Long(5 << 20))]);
    let fields = [("onHeapStorageMemoryPool", pool), ("maxHeapMemory", Value::Long(8 << 20))];
    let manager = made.object("org.apache.spark.memory.UnifiedMemoryManager", &fields);
    let fields = [("entries", blocks), ("memoryManager", manager)];
    let store = made.object("org.apache.spark.storage.memory.MemoryStore", &fields);
    let text = "2 RDDs, 5.0 MiB of 8.0 MiB; 4.0 MiB of RDD 14, of Basket";
    assert_eq!(description_parts(&made.describe(store)), (Some("block store"), Some(text), CONTENT));
}

#[test]
fn arenas_and_pools_that_count() {
    let mut made = TestHeap::new();
    let memory = bytes(&mut made, 4096);
    let fields = |free, next| {
        [("chunkSize", Value::Int(4096)), ("freeBytes", Value::Int(free)), ("memory", memory), ("next", next)]
    };
    let second = made.object("io.netty.buffer.PoolChunk", &fields(0, Value::NULL));
    let first = made.object("io.netty.buffer.PoolChunk", &fields(1024, second));
    let full = made.object("io.netty.buffer.PoolChunkList", &[("head", first)]);
    let empty = made.object("io.netty.buffer.PoolChunkList", &[("head", Value::NULL)]);
    let small = made.object("io.netty.util.internal.LongAdderCounter", &[("base", Value::Long(7))]);
    let arena = made.object(
        "io.netty.buffer.PoolArena$HeapArena < io.netty.buffer.PoolArena",
        &[
            ("qInit", empty),
            ("q000", empty),
            ("q025", empty),
            ("q050", empty),
            ("q075", full),
            ("q100", empty),
            ("allocationsNormal", Value::Long(5)),
            ("deallocationsNormal", Value::Long(2)),
            ("allocationsSmall", small),
            ("deallocationsSmall", Value::Long(3)),
        ],
    );
    let found = made.describe(arena);
    let text = "7.0 KiB of 8.0 KiB in 2 chunks in use by 7 buffers";
    assert_eq!(description_parts(&found), (Some("Netty arena"), Some(text), None));
    assert_eq!(found.retains.len(), 2);

    let leak = Some(FrameworkVerdict::Leak);
    let mut made = TestHeap::new();
    let waiting = made.text("waiting");
    let queue = made.list(&[waiting, waiting]);
    let pool = made.object(
        "org.apache.commons.pool.impl.GenericObjectPool",
        &[
            ("_pool", Value::NULL),
            ("_numActive", Value::Int(8)),
            ("_maxActive", Value::Int(8)),
            ("_allocationQueue", queue),
        ],
    );
    let text = "8 of 8 in use, 2 threads wait";
    assert_eq!(description_parts(&made.describe(pool)), (Some("object pool"), Some(text), leak));

    let mut made = TestHeap::new();
    let name = made.text("orders");
    let pool = made.object(
        "com.alibaba.druid.pool.DruidDataSource",
        &[
            ("name", name),
            ("activeCount", Value::Int(8)),
            ("poolingCount", Value::Int(0)),
            ("maxActive", Value::Int(8)),
            ("notEmptyWaitThreadCount", Value::Int(3)),
        ],
    );
    let text = "8 of 8 connections in use, 3 threads wait";
    assert_eq!(description_parts(&made.describe(pool)), (Some("connection pool orders"), Some(text), leak));
}

#[test]
fn tomcat_names_a_thread_that_keeps_an_application() {
    let mut made = TestHeap::new();
    let state = made.constant("org.apache.catalina.LifecycleState", "STOPPED");
    let loader = made.object(
        "org.apache.catalina.loader.ParallelWebappClassLoader < org.apache.catalina.loader.WebappClassLoaderBase",
        &[("state", state), ("resources", Value::NULL)],
    );
    let name = made.text("sweeper-1");
    made.object("com.acme.Sweeper", &[("name", name), ("contextClassLoader", loader)]);
    let found = made.describe(loader);
    let text = "the web application is STOPPED, but its classes are still reachable: thread sweeper-1 has its class loader";
    assert_eq!(found.text.as_deref(), Some(text));
}

#[test]
fn diagnostic_contexts_by_key() {
    let mut made = TestHeap::new();
    let (key, value) = (made.text("request"), made.text("7"));
    let context = made.map(&[(key, value)]);
    let local = made.object("java.lang.ThreadLocal", &[]);
    for _ in 0..2 {
        let fields = [("referent", local), ("value", context)];
        made.object("java.lang.ThreadLocal$ThreadLocalMap$Entry", &fields);
    }
    let adapter =
        made.object("ch.qos.logback.classic.util.LogbackMDCAdapter", &[("copyOnThreadLocal", local)]);
    let found = made.describe(adapter);
    assert_eq!(
        description_parts(&found),
        (Some("Logback MDC"), Some("of 2 threads, mostly key request"), None)
    );
    assert_eq!(found.retains.len(), 1);
}
