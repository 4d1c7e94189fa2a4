//! Dumps whose object IDs ascend in the file are described in that order, without a lookup of each ID. What could upset
//! the count is here: class objects with strange IDs, the highest ID, threads that are no threads.

use crate::kit::dump::{Dump, bytes, digest_graph};
use hprof_cli::ObjectId;
use hprof_writer::{
    ClassDump, DumpWriter, HeapModel, HeapWriter, IdSize, Jdk, Options, Root, Type, Value, Version,
};

const CLASS: u64 = 0x10_0000;

/// A dump of chained instances with these IDs, the first a root; CLASS DUMPs of the class and with `more` IDs.
fn dump(ids: &[u64], more: &[u64]) -> Dump {
    let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight);
    out.string(1, "Node");
    out.string(2, "next");
    out.load_class(1, CLASS, 0, 1);
    let mut heap = HeapWriter::new(IdSize::Eight);
    for id in more.iter().chain([&CLASS]) {
        heap.class_dump(&ClassDump { id: *id, fields: &[(2, Type::Object)], ..ClassDump::default() });
    }
    for (id, next) in ids.iter().zip(ids.iter().skip(1).chain([&0])) {
        heap.instance(*id, 0, CLASS, &[Value::Object(*next)]);
    }
    heap.root(ids[0], Root::JniGlobal { reference: 1 });
    heap.root(CLASS, Root::StickyClass);
    out.heap_segment(&heap);
    out.heap_dump_end();
    Dump::of(&out.into_bytes())
}

/// Checks that all objects exist, each refers to the next, and the tree is the same when only that is rebuilt.
fn check(ids: &[u64], more: &[u64]) {
    let dump = dump(ids, more);
    let (heap, graph) = dump.open_graph();
    let index = |id: u64| graph.objects.addresses.index_of(ObjectId(id)).unwrap();
    // An object with the ID of a class object is none.
    let is_object = |id: &u64| !more.contains(id);
    for pair in ids.windows(2).filter(|pair| is_object(&pair[0])) {
        assert!(graph.references(index(pair[0])).eq([index(pair[1])]), "{pair:x?}");
        let place = graph.objects.offset(bytes(&heap), heap.summary().id_size(), index(pair[0])).unwrap();
        let at = usize::try_from(place).unwrap() + 1;
        assert_eq!(bytes(&heap)[at..at + 8], pair[0].to_be_bytes());
    }
    let reached = ids.iter().take_while(|id| is_object(id)).count();
    assert!(graph.tree.reachable() as usize > reached);
    let digest = digest_graph(&graph, bytes(&heap), heap.summary().id_size());
    let tree = dump.index().join("dominators");
    let built = std::fs::read(&tree).unwrap();
    drop((heap, graph));
    std::fs::remove_file(&tree).unwrap();
    let (heap, graph) = dump.open_graph();
    assert_eq!(digest_graph(&graph, bytes(&heap), heap.summary().id_size()), digest);
    assert!(std::fs::read(&tree).unwrap() == built);
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn class_objects_with_strange_ids() {
    let near: Vec<u64> = (1..40_000).map(|at| 0x10_0000 + at * 16).collect();
    // Too far apart for a bitmap.
    let far: Vec<u64> = (1..200).map(|at| at << 40).collect();
    for ids in [near, far] {
        for more in [&[][..], &[0], &[0, 0], &[CLASS], &[ids[3]], &[ids[3] + 8], &[u64::MAX - 7]] {
            check(&ids, more);
        }
    }
}

#[test]
fn the_highest_id() {
    // Behind the objects that are looked at beforehand.
    let ids = (1..70_000).map(|at| at << 44 >> 4 | at << 3).filter(|id| *id < u64::MAX - 8);
    let mut ids: Vec<u64> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    ids.push(u64::MAX);
    check(&ids, &[]);
}

#[test]
fn a_long_array_that_is_a_thread() {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let trace = model.trace(1, &[]);
    let array = model.object_array(jdk.object_array, &vec![hprof_writer::ObjectId::NULL; 70_000]);
    let thread = jdk.thread(&mut model, "worker", false, 5);
    for (serial, thread) in [(1, array), (2, thread)] {
        let local = jdk.string(&mut model, "local");
        model.root(thread, Root::ThreadObject { thread: serial, trace });
        model.root(local, Root::JavaFrame { thread: serial, frame: 0 });
    }
    let dump = Dump::written(&model.write(&Options::hotspot()));
    let (_, graph) = dump.open_graph();
    let roots = model.expected().root_list;
    assert_eq!(roots.len(), 4);
    for pair in roots.chunks(2) {
        let [thread, local] =
            [0, 1].map(|at| graph.objects.addresses.index_of(ObjectId(pair[at].0)).unwrap());
        assert!(graph.references(thread).any(|target| target == local), "{pair:x?}");
        assert!(graph.tree.reachable_position(local).is_some(), "{pair:x?}");
    }
}
