//! A dump in which all names are the same text, which is meant to be misread.

use std::fs;
use std::path::PathBuf;

use hprof_writer::{
    AllocSite, AllocSites, ClassId, DumpWriter, Elements, HeapModel, IdSize, Jdk, Layout, ObjectId, Options,
    Root, StackFrame, StartThread, Type, Value, Version,
};

/// The dump, and its contents.
pub struct Made {
    pub dir: tempfile::TempDir,
    pub dump: PathBuf,
    pub class: ClassId,
    pub instance: ObjectId,
    pub text: ObjectId,
    pub thread: ObjectId,
}

/// Creates a dump in which everything that has a name has this one.
pub fn made(evil: &str) -> Made {
    let mut model = HeapModel::new(Layout::COMPRESSED);
    let jdk = Jdk::add_to(&mut model);
    let statics = [(evil, Value::Int(1))];
    let class = model.class_with_statics(evil, Some(jdk.object), &[(evil, Type::Object)], &statics);
    let below = model.class(&format!("{evil}Sub"), Some(class), &[]);
    let loader_class = model.class(&format!("java.lang.ClassLoader{evil}"), Some(jdk.object), &[]);
    let loader = model.instance(loader_class, &[]);
    model.class_mut(class).loader = loader.0;
    let text = jdk.string(&mut model, evil);
    jdk.string(&mut model, evil);
    let bytes = model.prim_array(Elements::of_bytes(evil.as_bytes()));
    let instance = model.instance_with(class, &[(evil, text.into())]);
    let other = model.instance_with(below, &[(evil, bytes.into())]);
    let array_class = model.array_class(class);
    let array = model.object_array(array_class, &[instance, other]);
    let thread = jdk.thread(&mut model, evil, false, 5);
    let trace =
        model.trace(1, &[StackFrame::new(class, evil, evil, 7), StackFrame::new(below, evil, evil, -3)]);
    model.root(thread, Root::ThreadObject { thread: 1, trace });
    model.root(array, Root::JavaFrame { thread: 1, frame: 0 });
    model.root(loader, Root::JniGlobal { reference: 1 });
    model.heap_info(0x5A, evil);

    let options = Options::hotspot();
    let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight);
    out.string(0x7_0001, evil);
    let names = StartThread {
        thread: 1,
        object: thread.0,
        trace,
        name: 0x7_0001,
        group: 0x7_0001,
        parent_group: 0x7_0001,
    };
    out.start_thread(&names);
    model.write_into(&mut out, &options);
    let serial = 1 + u32::try_from(model.classes().iter().position(|def| def.id == class).unwrap()).unwrap();
    let site = AllocSite {
        class_serial: serial,
        trace,
        live_bytes: 16,
        live_instances: 1,
        allocated_bytes: 32,
        allocated_instances: 2,
        ..AllocSite::default()
    };
    out.alloc_sites(&AllocSites {
        live_bytes: 16,
        live_instances: 1,
        sites: vec![site],
        ..AllocSites::default()
    });
    out.cpu_samples(3, &[(3, trace)]);

    let dir = tempfile::tempdir().unwrap();
    let dump = dir.path().join("made.hprof");
    fs::write(&dump, out.into_bytes()).unwrap();
    Made { dir, dump, class, instance, text, thread }
}
