//! Rules about servers, clients and languages: sessions, queues, pools and caches by the names that their users know.

use hprof_writer::Value;

use super::{TestHeap, description_parts};
use crate::frameworks::FrameworkVerdict;

const CONTENT: Option<FrameworkVerdict> = Some(FrameworkVerdict::Content);
const LEAK: Option<FrameworkVerdict> = Some(FrameworkVerdict::Leak);

/// Creates a reference of `java.util.concurrent.atomic`.
fn reference(made: &mut TestHeap, to: Value) -> Value {
    made.object("java.util.concurrent.atomic.AtomicReference", &[("value", to)])
}

/// Creates a map with this number of entries, all with the same value.
fn entries(made: &mut TestHeap, count: usize, value: Value) -> Value {
    let keys: Vec<Value> = (0..count).map(|number| made.text(&format!("key {number}"))).collect();
    let entries: Vec<(Value, Value)> = keys.into_iter().map(|key| (key, value)).collect();
    made.map(&entries)
}

/// Creates a Clojure var of the namespace `acme` that holds an object.
fn var(made: &mut TestHeap, name: &str, root: Value) {
    let (name, namespace) = (made.text(name), made.text("acme"));
    let null = Value::NULL;
    let symbol = made.object("clojure.lang.Symbol", &[("name", namespace), ("ns", null)]);
    let namespace = made.object("clojure.lang.Namespace", &[("name", symbol)]);
    let symbol = made.object("clojure.lang.Symbol", &[("name", name), ("ns", null)]);
    made.object("clojure.lang.Var", &[("root", root), ("sym", symbol), ("ns", namespace)]);
}

#[test]
fn mina_names_the_session_by_its_attribute() {
    let mut made = TestHeap::new();
    let request = made.object("org.apache.mina.core.write.DefaultWriteRequest", &[]);
    let q = made.list(&[request; 100]);
    let queue = "org.apache.mina.core.session.DefaultIoSessionDataStructureFactory$DefaultWriteRequestQueue";
    let queue = made.object(queue, &[("q", q)]);
    let (key, name) = (made.text("client"), made.text("desk-4"));
    let attributes = made.map(&[(key, name)]);
    let map =
        "org.apache.mina.core.session.DefaultIoSessionDataStructureFactory$DefaultIoSessionAttributeMap";
    let attributes = made.object(map, &[("attributes", attributes)]);
    made.object(
        "org.apache.mina.transport.socket.nio.NioSocketSession",
        &[("writeRequestQueue", queue), ("attributes", attributes), ("currentWriteRequest", request)],
    );
    let text = "101 WriteRequests wait for a peer that does not read";
    assert_eq!(
        description_parts(&made.describe(queue)),
        (Some("write queue of NioSocketSession desk-4"), Some(text), None)
    );
}

#[test]
fn mailboxes_are_named_by_the_path_of_their_actor() {
    let mut made = TestHeap::new();
    let (root, user, store) = (made.text("/"), made.text("user"), made.text("order-store"));
    let root = made.object("org.apache.pekko.actor.RootActorPath", &[("name", root)]);
    let child = "org.apache.pekko.actor.ChildActorPath";
    let user = made.object(child, &[("parent", root), ("name", user)]);
    let path = made.object(child, &[("parent", user), ("name", store)]);
    let actor = made.object("org.apache.pekko.actor.LocalActorRef", &[("path", path)]);
    let cell = made.object("org.apache.pekko.actor.ActorCell", &[("self", actor)]);
    let save = made.object("com.acme.Save", &[]);
    let envelope = made.object("org.apache.pekko.dispatch.Envelope", &[("message", save)]);
    let messages = made.list(&[envelope, envelope]);
    let mailbox = "org.apache.pekko.dispatch.Dispatcher$$anon$1 < org.apache.pekko.dispatch.Mailbox";
    let mailbox = made.object(mailbox, &[("messageQueue", messages), ("actor", cell)]);
    assert_eq!(
        description_parts(&made.describe(mailbox)),
        (Some("mailbox of /user/order-store"), Some("2 messages, mostly Save"), None)
    );

    // A queue of nodes, of which the first is a sentinel.
    let mut made = TestHeap::new();
    let node = "akka.dispatch.AbstractNodeQueue$Node";
    let mut next = Value::NULL;
    for _ in 0..4 {
        next = made.object(node, &[("value", Value::NULL), ("_nextDoNotCallMeDirectly", next)]);
    }
    let queue = made.object("akka.dispatch.NodeMessageQueue", &[("_tailDoNotCallMeDirectly", next)]);
    let mailbox = [("messageQueue", queue), ("actor", Value::NULL)];
    let mailbox = made.object("akka.dispatch.Mailbox", &mailbox);
    assert_eq!(description_parts(&made.describe(mailbox)), (Some("mailbox"), Some("3 messages"), None));
}

#[test]
fn clojure_references_are_named_by_their_vars() {
    let mut made = TestHeap::new();
    let map = made.object("clojure.lang.PersistentArrayMap", &[]);
    let tail = made.array(&[map]);
    let vector = [("cnt", Value::Int(36_000)), ("tail", tail)];
    let vector = made.object("clojure.lang.PersistentVector", &vector);
    let state = reference(&mut made, vector);
    let atom = made.object("clojure.lang.Atom", &[("state", state)]);
    var(&mut made, "events", atom);
    assert_eq!(
        description_parts(&made.describe(atom)),
        (Some("atom acme/events"), Some("a vector of 36,000 maps"), None)
    );

    let mut made = TestHeap::new();
    let results = made.object("clojure.lang.PersistentHashMap", &[("count", Value::Int(400))]);
    let state = reference(&mut made, results);
    let atom = made.object("clojure.lang.Atom", &[("state", state)]);
    let function = made.object("clojure.core$memoize$fn__6946", &[("mem", atom)]);
    var(&mut made, "lookup", function);
    let found = made.describe(atom);
    assert_eq!(
        description_parts(&found),
        (Some("memoize cache of acme/lookup"), Some("400 results, never cleared"), None)
    );

    // Within a map, the keyword before it is its name.
    let mut made = TestHeap::new();
    let value = made.object("clojure.lang.PersistentHashMap", &[("count", Value::Int(7))]);
    let state = reference(&mut made, value);
    let atom = made.object("clojure.lang.Atom", &[("state", state)]);
    let name = made.text("cache");
    let symbol = made.object("clojure.lang.Symbol", &[("name", name), ("ns", Value::NULL)]);
    let keyword = made.object("clojure.lang.Keyword", &[("sym", symbol)]);
    made.array(&[keyword, atom]);
    assert_eq!(
        description_parts(&made.describe(atom)),
        (Some("atom :cache"), Some("a map of 7 entries"), None)
    );

    let mut made = TestHeap::new();
    let queue = made.object("clojure.lang.PersistentQueue", &[("cnt", Value::Int(30_000))]);
    let actions = made.object("clojure.lang.Agent$ActionQueue", &[("q", queue), ("error", Value::NULL)]);
    let actions = reference(&mut made, actions);
    let agent = made.object("clojure.lang.Agent", &[("state", Value::NULL), ("aq", actions)]);
    var(&mut made, "log", agent);
    assert_eq!(
        description_parts(&made.describe(agent)),
        (Some("agent acme/log"), Some("30,000 actions wait"), None)
    );
}

#[test]
fn operators_of_reactive_streams() {
    let mut made = TestHeap::new();
    let item = made.object("com.acme.Quote", &[]);
    let array = made.array(&[item, item]);
    let buffer = made.object("java.util.concurrent.atomic.AtomicReferenceArray", &[("array", array)]);
    let (produced, consumed) = (made.atomic(120), made.atomic(20));
    let queue = [("producerIndex", produced), ("consumerIndex", consumed), ("consumerBuffer", buffer)];
    let queue = made.object("io.reactivex.rxjava3.operators.SpscLinkedArrayQueue", &queue);
    let processor = made.object("io.reactivex.rxjava3.processors.PublishProcessor", &[]);
    made.object("com.acme.Ticker", &[("feed", processor)]);
    let upstream = "io.reactivex.rxjava3.processors.PublishProcessor$PublishSubscription";
    let upstream = made.object(upstream, &[("parent", processor)]);
    let operator = "io.reactivex.rxjava3.internal.operators.flowable.FlowableOnBackpressureBuffer$BackpressureBufferSubscriber";
    let operator = made.object(operator, &[("queue", queue), ("upstream", upstream)]);
    assert_eq!(
        description_parts(&made.describe(operator)),
        (Some("onBackpressureBuffer of feed"), Some("100 items wait, mostly Quote"), None)
    );

    // Reactor's queue stores its indexes itself.
    let mut made = TestHeap::new();
    let queue = [("producerIndex", Value::Long(50)), ("consumerIndex", Value::Long(8))];
    let queue = made.object("reactor.util.concurrent.SpscLinkedArrayQueue", &queue);
    let sink = made.object("reactor.core.publisher.SinkManyUnicast", &[("queue", queue)]);
    assert_eq!(
        description_parts(&made.describe(sink)),
        (Some("SinkManyUnicast"), Some("42 items wait"), None)
    );

    let mut made = TestHeap::new();
    let borrower = made.object("reactor.pool.AbstractPool$Borrower", &[]);
    let pending = made.list(&[borrower, borrower]);
    let strategy =
        "reactor.netty.internal.shaded.reactor.pool.AllocationStrategies$SizeBasedAllocationStrategy";
    let strategy = made.object(strategy, &[("max", Value::Int(500))]);
    let config = "reactor.netty.internal.shaded.reactor.pool.DefaultPoolConfig";
    let config = made.object(config, &[("allocationStrategy", strategy)]);
    let pool = made.object(
        "reactor.netty.internal.shaded.reactor.pool.SimpleDequePool",
        &[("pending", pending), ("acquired", Value::Int(500)), ("poolConfig", config)],
    );
    let text = "500 of 500 connections in use, 2 subscribers wait";
    assert_eq!(description_parts(&made.describe(pool)), (Some("connection pool"), Some(text), None));
}

#[test]
fn cancelled_tasks_are_told() {
    let mut made = TestHeap::new();
    let task = "java.util.concurrent.ScheduledThreadPoolExecutor$ScheduledFutureTask < java.util.concurrent.FutureTask";
    let mut tasks = |cancelled: usize| {
        let tasks: Vec<Value> = (0..200)
            .map(|number| {
                let state = Value::Int(if number < cancelled { 4 } else { 0 });
                made.object(task, &[("state", state), ("callable", Value::NULL)])
            })
            .collect();
        let queue = made.array(&tasks);
        let queue = [("queue", queue), ("size", Value::Int(200))];
        let queue = made.object("java.util.concurrent.ScheduledThreadPoolExecutor$DelayedWorkQueue", &queue);
        let workers = made.list(&[]);
        made.object("java.util.concurrent.ThreadPoolExecutor", &[("workQueue", queue), ("workers", workers)])
    };
    let (all, most, none) = (tasks(200), tasks(150), tasks(0));
    for (pool, text) in [
        (all, "200 tasks wait, all cancelled"),
        (most, "200 tasks wait, 150 of them cancelled"),
        (none, "200 tasks wait for 0 threads"),
    ] {
        assert_eq!(description_parts(&made.describe(pool)), (Some("executor"), Some(text), None));
    }
}

#[test]
fn event_buses_timers_and_mbeans() {
    let mut made = TestHeap::new();
    let handler = made.object("io.vertx.core.eventbus.impl.HandlerHolder", &[]);
    let elements = made.array(&[handler; 120]);
    let sequence = "io.vertx.core.impl.utils.ConcurrentCyclicSequence";
    let many = made.object(sequence, &[("elements", elements)]);
    let elements = made.array(&[handler]);
    let one = made.object(sequence, &[("elements", elements)]);
    let (news, mails) = (made.text("news"), made.text("mails"));
    let handlers = made.map(&[(news, many), (mails, one)]);
    let bus = made.object("io.vertx.core.eventbus.impl.EventBusImpl", &[("handlerMap", handlers)]);
    let text = "121 handlers, 120 of them at address news";
    assert_eq!(description_parts(&made.describe(bus)), (Some("event bus"), Some(text), None));

    let mut made = TestHeap::new();
    let (name, domain) = (made.text("com.acme:type=Cache,name=a"), made.text("com.acme"));
    let name = made.object("javax.management.ObjectName", &[("_canonicalName", name)]);
    let bean = made.object("com.sun.jmx.mbeanserver.NamedObject", &[("name", name)]);
    let beans = entries(&mut made, 3, bean);
    let domains = made.map(&[(domain, beans)]);
    let server = [("domainTb", domains), ("nbElements", Value::Int(3))];
    let server = made.object("com.sun.jmx.mbeanserver.Repository", &server);
    let text = "3 MBeans, 3 of domain com.acme, such as com.acme:type=Cache,name=a";
    assert_eq!(description_parts(&made.describe(server)), (Some("MBean server"), Some(text), None));
}

#[test]
fn maps_of_a_grid_are_content_if_they_are_evicted() {
    for (policy, max, expected) in [
        ("LRU", 50_000, ("7 of 50,000, evicted by LRU", CONTENT)),
        ("NONE", i32::MAX, ("7 entries, never evicted", None)),
    ] {
        let mut made = TestHeap::new();
        let segment = "com.hazelcast.util.ConcurrentReferenceHashMap$Segment";
        let segment = made.object(segment, &[("count", Value::Int(7))]);
        let segments = made.array(&[segment]);
        let records = "com.hazelcast.map.impl.recordstore.StorageSCHM";
        let records = made.object(records, &[("segments", segments)]);
        let storage = "com.hazelcast.map.impl.recordstore.StorageImpl";
        let storage = made.object(storage, &[("records", records)]);
        let store = "com.hazelcast.map.impl.recordstore.DefaultRecordStore";
        let store = made.object(store, &[("storage", storage)]);
        let name = made.text("orders");
        let maps = made.map(&[(name, store)]);
        let partition = made.object("com.hazelcast.map.impl.PartitionContainer", &[("maps", maps)]);
        let partitions = made.array(&[partition]);
        let per_node = made.constant("com.hazelcast.config.MaxSizeConfig$MaxSizePolicy", "PER_NODE");
        let size = [("maxSizePolicy", per_node), ("size", Value::Int(max))];
        let size = made.object("com.hazelcast.config.MaxSizeConfig", &size);
        let policy = made.constant("com.hazelcast.config.EvictionPolicy", policy);
        let config =
            [("maxSizeConfig", size), ("evictionPolicy", policy), ("timeToLiveSeconds", Value::Int(0))];
        let config = made.object("com.hazelcast.config.MapConfig", &config);
        let container = made.object("com.hazelcast.map.impl.MapContainer", &[("mapConfig", config)]);
        let name = made.text("orders");
        let containers = made.map(&[(name, container)]);
        let context = [("partitionContainers", partitions), ("mapContainers", containers)];
        let context = made.object("com.hazelcast.map.impl.MapServiceContextImpl", &context);
        let found = made.describe(context);
        assert_eq!(description_parts(&found), (Some("map orders"), Some(expected.0), expected.1));
        assert_eq!(found.retains.len(), 1);
    }
}

#[test]
fn pools_queues_and_caches_of_clients() {
    // MongoDB: a semaphore in older drivers, a count of permits in newer ones.
    for is_old in [true, false] {
        let mut made = TestHeap::new();
        let host = made.text("db1");
        let address =
            made.object("com.mongodb.ServerAddress", &[("host", host), ("port", Value::Int(27_017))]);
        let server = made.object("com.mongodb.connection.ServerId", &[("address", address)]);
        let settings = [("maxSize", Value::Int(100))];
        let settings = made.object("com.mongodb.connection.ConnectionPoolSettings", &settings);
        let pool = "com.mongodb.internal.connection.ConcurrentPool";
        let pool = if is_old {
            let sync = made.object("java.util.concurrent.Semaphore$NonfairSync", &[]);
            let permits = made.object("java.util.concurrent.Semaphore", &[("sync", sync)]);
            made.object(pool, &[("maxSize", Value::Int(100)), ("permits", permits)])
        } else {
            let state = "com.mongodb.internal.connection.ConcurrentPool$StateAndPermits";
            let mut first = Value::NULL;
            for _ in 0..12 {
                let node = "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionNode";
                first = made.object(node, &[("nextWaiter", first)]);
            }
            let condition = "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject";
            let condition = made.object(condition, &[("firstWaiter", first)]);
            let state = made.object(
                state,
                &[("permits", Value::Int(0)), ("permitAvailableOrClosedOrPausedCondition", condition)],
            );
            made.object(pool, &[("maxSize", Value::Int(100)), ("stateAndPermits", state)])
        };
        let waiting = [("value", Value::Int(12))];
        let waiting = made.object("java.util.concurrent.atomic.AtomicInteger", &waiting);
        let waiting = if is_old { waiting } else { Value::NULL };
        let pool = made.object(
            "com.mongodb.internal.connection.DefaultConnectionPool",
            &[("pool", pool), ("settings", settings), ("serverId", server), ("waitQueueSize", waiting)],
        );
        let text = "all of 100 connections in use, 12 threads wait";
        assert_eq!(
            description_parts(&made.describe(pool)),
            (Some("MongoDB connection pool of db1:27017"), Some(text), None),
            "{is_old}"
        );
    }

    let mut made = TestHeap::new();
    let request = made.object("com.acme.Request", &[]);
    let queue = made.list(&[request, request]);
    let throttler =
        "com.datastax.oss.driver.internal.core.session.throttling.ConcurrencyLimitingRequestThrottler";
    let throttler = made.object(
        throttler,
        &[("queue", queue), ("maxConcurrentRequests", Value::Int(10)), ("maxQueueSize", Value::Int(100))],
    );
    let text = "2 of 100 requests wait for one of 10";
    assert_eq!(
        description_parts(&made.describe(throttler)),
        (Some("Cassandra request throttler"), Some(text), None)
    );

    let mut made = TestHeap::new();
    let exchange = made.object("org.apache.camel.support.DefaultExchange", &[]);
    let (queue, uri) = (made.list(&[exchange, exchange]), made.text("seda://orders"));
    let fields = [("queue", queue), ("size", Value::Int(1000)), ("endpointUri", uri)];
    let endpoint = made.object("org.apache.camel.component.seda.SedaEndpoint", &fields);
    let found = made.describe(endpoint);
    assert_eq!(found.called.as_deref(), Some("queue seda://orders"));
    assert!(found.text.is_some_and(|text| text.starts_with("2 of 1,000 messages")));
}

#[test]
fn stores_of_servers_by_name() {
    let mut made = TestHeap::new();
    let value = made.text("a book");
    let attributes = entries(&mut made, 1, value);
    let session = "io.undertow.server.session.InMemorySessionManager$SessionImpl";
    let session = made.object(session, &[("attributes", attributes)]);
    let (sessions, name) = (entries(&mut made, 5, session), made.text("shop.war"));
    let manager = made.object(
        "io.undertow.server.session.InMemorySessionManager",
        &[
            ("sessions", sessions),
            ("defaultSessionTimeout", Value::Int(1800)),
            ("deploymentName", name),
            ("maxSize", Value::Int(-1)),
        ],
    );
    let text = "5 sessions, timeout 30 min, largest attribute key 0";
    assert_eq!(
        description_parts(&made.describe(manager)),
        (Some("session store of shop.war"), Some(text), None)
    );

    let mut made = TestHeap::new();
    let value = made.text("entry");
    let map = entries(&mut made, 4, value);
    let map = made.object("org.infinispan.container.impl.PeekableTouchableContainerMap", &[("map", map)]);
    let container = [("entries", map), ("evictionCache", Value::NULL)];
    let container = made.object("org.infinispan.container.impl.DefaultDataContainer", &container);
    let name = made.text("carts");
    made.object("org.infinispan.cache.impl.CacheImpl", &[("dataContainer", container), ("name", name)]);
    let found = made.describe(container);
    assert_eq!(
        description_parts(&found),
        (Some("Infinispan cache carts"), Some("4 entries, no bound"), None)
    );

    let mut made = TestHeap::new();
    let (name, key) = (made.text("http.requests"), made.text("uri"));
    let tag = made.object("io.micrometer.core.instrument.ImmutableTag", &[("key", key)]);
    let tags = made.array(&[tag]);
    let tags = made.object("io.micrometer.core.instrument.Tags", &[("sortedSet", tags)]);
    let meters: Vec<(Value, Value)> = (0..1200)
        .map(|_| {
            let meter =
                made.object("io.micrometer.core.instrument.Meter$Id", &[("name", name), ("tags", tags)]);
            (meter, Value::NULL)
        })
        .collect();
    let meters = made.map(&meters);
    let registry = "io.micrometer.core.instrument.simple.SimpleMeterRegistry < io.micrometer.core.instrument.MeterRegistry";
    let registry = made.object(registry, &[("meterMap", meters)]);
    let text = "1,200 meters, 1,200 of them http.requests, by tags such as uri";
    assert_eq!(description_parts(&made.describe(registry)), (Some("MeterRegistry"), Some(text), None));
}

#[test]
fn old_readers_and_open_statements_are_leaks() {
    let mut made = TestHeap::new();
    let writer = made.object("org.apache.lucene.index.IndexWriter", &[]);
    let open = made.atomic(1);
    for _ in 0..25 {
        let segment = made.object("org.apache.lucene.index.SegmentReader", &[("core", Value::NULL)]);
        let segments = made.array(&[segment]);
        let reader = made.object(
            "org.apache.lucene.index.StandardDirectoryReader",
            &[("writer", writer), ("refCount", open), ("subReaders", segments)],
        );
        made.object("org.apache.lucene.search.IndexSearcher", &[("reader", reader)]);
    }
    let found = made.describe(writer);
    let text = "25 IndexSearchers with 25 open readers";
    assert_eq!(description_parts(&found), (Some("index"), Some(text), LEAK));
    assert_eq!(found.retains.len(), 75);
}
