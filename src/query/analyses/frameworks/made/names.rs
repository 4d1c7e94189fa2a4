//! Tests of names that the program gave its objects, which are found through the objects around them.

use super::*;

const CONTENT: Option<FrameworkVerdict> = Some(FrameworkVerdict::Content);

#[test]
fn spark_reads_the_name_of_an_rdd_from_the_context() {
    let mut made = TestHeap::new();
    let (row, name) = (made.object("com.acme.Basket", &[]), made.text("baskets"));
    let rows = made.array(&[row]);
    let id = made.object("org.apache.spark.storage.RDDBlockId", &[("rddId", Value::Int(14))]);
    let fields = [("size", Value::Long(2 << 20)), ("value", rows)];
    let block = made.object("org.apache.spark.storage.memory.DeserializedMemoryEntry", &fields);
    let blocks = made.map(&[(id, block)]);
    let manager = made.object("org.apache.spark.storage.BlockManager", &[("executorId", Value::NULL)]);
    let env = made.object("org.apache.spark.SparkEnv", &[("blockManager", manager)]);
    // A weak value of a MapMaker, in the second of two segments.
    let fields = [("id", Value::Int(14)), ("name", name)];
    let rdd = made.object("org.apache.spark.rdd.MapPartitionsRDD < org.apache.spark.rdd.RDD", &fields);
    let guava = "org.sparkproject.guava.collect.MapMakerInternalMap";
    let weak = made.object(&format!("{guava}$WeakValueReferenceImpl"), &[("referent", rdd)]);
    let entry = made.object(&format!("{guava}$StrongKeyWeakValueEntry"), &[("valueReference", weak)]);
    let segments = [vec![Value::NULL], vec![Value::NULL, entry]].map(|entries| {
        let array = made.array(&entries);
        let table = "java.util.concurrent.atomic.AtomicReferenceArray";
        let table = made.object(table, &[("array", array)]);
        made.object(&format!("{guava}$Segment"), &[("table", table)])
    });
    let segments = made.array(&segments);
    let map = made.object(guava, &[("segments", segments)]);
    let map = made.object(
        "scala.collection.convert.JavaCollectionWrappers$JConcurrentMapWrapper",
        &[("underlying", map)],
    );
    made.object("org.apache.spark.SparkContext", &[("_env", env), ("persistentRdds", map)]);
    let pool =
        made.object("org.apache.spark.memory.StorageMemoryPool", &[("_memoryUsed", Value::Long(5 << 20))]);
    let fields = [("onHeapStorageMemoryPool", pool), ("maxHeapMemory", Value::Long(8 << 20))];
    let memory = made.object("org.apache.spark.memory.UnifiedMemoryManager", &fields);
    let fields = [("entries", blocks), ("memoryManager", memory), ("blockEvictionHandler", manager)];
    let store = made.object("org.apache.spark.storage.memory.MemoryStore", &fields);
    let text = "1 RDD, 5.0 MiB of 8.0 MiB; 2.0 MiB of RDD 14 baskets, of Basket";
    assert_eq!(description_parts(&made.describe(store)), (Some("block store"), Some(text), CONTENT));
}

#[test]
fn h2_names_the_table_of_a_map() {
    let mut made = TestHeap::new();
    let root = made.object("org.h2.mvstore.RootReference", &[("root", Value::NULL)]);
    let root = made.object("java.util.concurrent.atomic.AtomicReference", &[("value", root)]);
    let map = made.object("org.h2.mvstore.MVMap", &[("root", root)]);
    let name = made.text("INVOICE");
    let table = made.object("org.h2.mvstore.db.MVTable", &[("objectName", name)]);
    let of_table = made.object("org.h2.mvstore.tx.TransactionMap", &[("map", map)]);
    made.object("org.h2.mvstore.db.MVPrimaryIndex", &[("dataMap", of_table), ("table", table)]);
    assert_eq!(made.describe(map).called.as_deref(), Some("H2 map of table INVOICE"));
}

#[test]
fn netty_names_the_peer_of_a_channel() {
    for (flushed, expected) in [
        (7, "7 messages, 2.0 KiB, wait for a peer at /127.0.0.1:43970 that does not read"),
        (0, "2.0 KiB written to /127.0.0.1:43970, but not flushed"),
    ] {
        let mut made = TestHeap::new();
        let holder = [("hostName", Value::NULL), ("address", Value::Int(0x7f00_0001))];
        let holder = made.object("java.net.InetAddress$InetAddressHolder", &holder);
        let address = made.object("java.net.Inet4Address < java.net.InetAddress", &[("holder", holder)]);
        let holder = [("hostname", Value::NULL), ("addr", address), ("port", Value::Int(43_970))];
        let holder = made.object("java.net.InetSocketAddress$InetSocketAddressHolder", &holder);
        let remote = made.object("java.net.InetSocketAddress", &[("holder", holder)]);
        // Netty's own field is null until it is requested.
        let jdk = made.object("sun.nio.ch.SocketChannelImpl", &[("remoteAddress", remote)]);
        let fields = [("remoteAddress", Value::NULL), ("ch", jdk)];
        let channel = made.object("io.netty.channel.socket.nio.NioSocketChannel", &fields);
        let fields = [
            ("channel", channel),
            ("flushed", Value::Int(flushed)),
            ("totalPendingSize", Value::Long(2048)),
            ("unwritable", Value::Int(1)),
        ];
        let buffer = made.object("io.netty.channel.ChannelOutboundBuffer", &fields);
        assert_eq!(made.describe(buffer).text.as_deref(), Some(expected));
        // A text derived from a hidden one is also hidden.
        let name = made.text("screen.example.com");
        let of = |value| hprof_writer::ObjectId(super::id(value));
        made.model.set_field(of(holder), "addr", hprof_writer::ObjectId::NULL);
        made.model.set_field(of(holder), "hostname", of(name));
        let expected = expected.replace("/127.0.0.1:43970", "screen.example.com:43970");
        assert_eq!(made.describe(buffer).text.as_ref(), Some(&expected));
        let rules = Frameworks::builtin();
        let hidden = made.with(&rules, true, |known, index| known.describe(index(buffer)).expect("a rule"));
        let expected = expected.replace("screen.example.com:43970", "(remote hidden)");
        assert_eq!((fact(&hidden, "remote"), hidden.text), (FrameworkFact::Hidden, Some(expected)));
    }
}

#[test]
fn coroutines_name_what_they_wait_for() {
    let mut made = TestHeap::new();
    let job = made.object("kotlinx.coroutines.CompletableDeferredImpl", &[]);
    made.object("com.acme.PriceClient", &[("name", Value::NULL), ("answer", job)]);
    let request = made.object("com.acme.Request", &[]);
    let fields = [("completion", Value::NULL), ("L$0", request), ("label", Value::Int(1))];
    let caller = made.object("com.acme.OrderService$price$1", &fields);
    let fields = [("completion", caller), ("this$0", job)];
    let awaiting = made.object("kotlinx.coroutines.CompletableDeferredImpl$await$1", &fields);
    let waiting = made.object(
        "kotlinx.coroutines.JobSupport$AwaitContinuation < kotlinx.coroutines.CancellableContinuationImpl",
        &[("delegate", awaiting), ("job", job)],
    );
    let text = "each with a Request, await PriceClient.answer";
    assert_eq!(
        description_parts(&made.describe(waiting)),
        (Some("coroutines in OrderService.price"), Some(text), None)
    );
}

#[test]
fn activemq_names_the_broker_of_a_queue() {
    let mut made = TestHeap::new();
    let (name, broker) = (made.text("orders"), made.text("shop-broker"));
    let destination = made.object("org.apache.activemq.command.ActiveMQQueue", &[("physicalName", name)]);
    let counter = made.atomic(20_000);
    let counter = made.object("org.apache.activemq.management.CountStatisticImpl", &[("counter", counter)]);
    let statistics = made.object(
        "org.apache.activemq.broker.region.DestinationStatistics",
        &[("messages", counter), ("enqueues", counter), ("dequeues", Value::NULL)],
    );
    let service = made.object("org.apache.activemq.broker.BrokerService", &[("brokerName", broker)]);
    let consumers = made.list(&[]);
    let queue = made.object(
        "org.apache.activemq.broker.region.Queue",
        &[
            ("consumers", consumers),
            ("destinationStatistics", statistics),
            ("destination", destination),
            ("brokerService", service),
        ],
    );
    let text = "20,000 pending, no consumer, in broker shop-broker";
    assert_eq!(description_parts(&made.describe(queue)), (Some("queue orders"), Some(text), None));
}
