//! Dumps shared by several tests.

use super::basic::{Elements, IdSize, Root, Type, Value, Version};
use super::class::ObjectId;
use super::heap::{ClassDump, HeapWriter};
use super::jdk::Jdk;
use super::model::{HeapModel, StackFrame};
use super::writer::{AllocSite, AllocSites, DumpWriter, StartThread, Written};

/// Returns a dump with every kind of record and sub-record.
pub fn every_kind(version: Version, id_size: IdSize) -> Written {
    let mut heap = HeapWriter::new(id_size);
    for root in Root::EXAMPLES {
        heap.root(0x1000, root);
    }
    heap.heap_info(0x50, 0x10);
    heap.class_dump(&ClassDump {
        id: 0x1000,
        fields: &[(0x10, Type::Int)],
        instance_size: 4,
        ..ClassDump::default()
    });
    heap.instance(0x2000, 1, 0x1000, &[Value::Int(7)]);
    heap.object_array(0x3000, 1, 0x1000, &[0x2000, 0]);
    for (ty, id) in Type::PRIMITIVES.into_iter().zip((0x4000..).step_by(0x100)) {
        heap.prim_array(id, 1, &Elements::of_bits(ty, &[1, 2, 3]));
        heap.prim_array(id + 0x80, 1, &Elements::NoData(ty, 3));
    }
    let mut out = DumpWriter::new(version, id_size).created_ms(1_700_000_000_000);
    out.string(0x10, "name");
    out.load_class(1, 0x1000, 1, 0x10);
    out.unload_class(2);
    out.frame(0x20, 0x10, 0x10, 0x10, 1, 42);
    out.trace(1, 1, &[0x20]);
    out.alloc_sites(&AllocSites { sites: vec![AllocSite::default()], ..AllocSites::default() });
    out.heap_summary(1, 2, 3, 4);
    out.start_thread(&StartThread { thread: 1, object: 0x2000, ..StartThread::default() });
    out.end_thread(1);
    out.cpu_samples(1, &[(1, 1)]);
    out.control_settings(3, 4);
    out.heap_dump(&heap);
    out.heap_segment(&heap);
    out.heap_segment(&HeapWriter::new(id_size));
    out.heap_dump_end();
    out.raw_record(0x7E, 1, 2, &[3, 4]);
    out.finish()
}

/// Returns a small heap with every kind of object.
pub fn zoo() -> HeapModel {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let node_fields = [("hash", Type::Int), ("key", Type::Object), ("next", Type::Object)];
    let node = model.class("java.util.HashMap$Node", Some(jdk.object), &node_fields);
    let tree_fields = [("red", Type::Boolean), ("next", Type::Object)];
    let tree_node = model.class("java.util.HashMap$TreeNode", Some(node), &tree_fields);
    let nodes = model.array_class(node);
    let key = jdk.string(&mut model, "key");
    let first = model.instance_with(node, &[("key", key.into()), ("hash", Value::Int(-1))]);
    let second = model.instance_with(tree_node, &[("next", first.into()), ("red", Value::Boolean(true))]);
    model.set_field(first, "next", second);
    model.sized(64).object_array(nodes, &[first, ObjectId::NULL, second, ObjectId(0xDEAD_BEE8)]);
    let thread = jdk.thread(&mut model, "main", false, 5);
    let trace = model.trace(1, &[StackFrame::new(node, "getKey", "HashMap.java", 301)]);
    let euro = jdk.string(&mut model, "€");
    model.class_mut(node).statics.push(("DEFAULT".to_owned(), euro.into()));
    model.class_mut(node).constants.push((3, Value::Double(0.75)));
    model.class_mut(tree_node).dumps = 2;
    model.root(thread, Root::ThreadObject { thread: 1, trace });
    model.root(first, Root::JavaFrame { thread: 1, frame: 0 });
    model.root(first, Root::JavaFrame { thread: 1, frame: 0 });
    model.root(node, Root::StickyClass);
    model.root(ObjectId::NULL, Root::JniGlobal { reference: 0x10 });
    model
}
