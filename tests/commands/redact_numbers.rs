//! `redact`: numbers stay only where an answer needs them. Numbers are planted in holders of the JDK, of a framework and of a
//! program, and searched for in the bytes of the redacted dump.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value as Json;

use hprof_writer::{Elements, HeapModel, Jdk, Layout, ObjectId, Options, Root, Type, Value};

use crate::kit::process::{Folder, finish, stderr};
use crate::kit::texts::code;

/// First planted number; each holder has one of its own, of 4 and of 8 bytes.
const SMALL: i32 = 1_739_204_100;
const LARGE: i64 = 4_539_148_803_436_400;

/// A holder, its number, and which options make it go: `None` if it always goes.
struct Planted {
    name: &'static str,
    bytes: Vec<u8>,
    stays: Stays,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stays {
    Never,
    /// With `--strict-numbers` it goes.
    Finer,
    Always,
}

struct Heap {
    model: HeapModel,
    jdk: Jdk,
    objects: Vec<ObjectId>,
    planted: Vec<Planted>,
}

impl Heap {
    fn new() -> Self {
        let mut model = HeapModel::new(Layout::COMPRESSED);
        let jdk = Jdk::add_to(&mut model);
        Self { model, jdk, objects: Vec::new(), planted: Vec::new() }
    }

    fn small(&mut self, name: &'static str, stays: Stays) -> Value {
        let number = SMALL + i32::try_from(self.planted.len()).unwrap();
        self.planted.push(Planted { name, bytes: number.to_be_bytes().to_vec(), stays });
        Value::Int(number)
    }

    fn large(&mut self, name: &'static str, stays: Stays) -> Value {
        let number = LARGE + i64::try_from(self.planted.len()).unwrap();
        self.planted.push(Planted { name, bytes: number.to_be_bytes().to_vec(), stays });
        Value::Long(number)
    }

    /// Adds an instance of a class with one field.
    fn holder(&mut self, class: &str, field: &str, value: Value) -> ObjectId {
        let class = self.model.class(class, Some(self.jdk.object), &[(field, value.ty())]);
        let object = self.model.instance(class, &[value]);
        self.objects.push(object);
        object
    }

    /// Returns the dump.
    fn write(mut self) -> (Vec<u8>, Vec<Planted>) {
        let all = self.model.object_array(self.jdk.object_array, &self.objects);
        self.model.root(all, Root::JniGlobal { reference: 1 });
        self.model.root_boot_classes();
        (self.model.write(&Options::hotspot()).bytes().to_vec(), self.planted)
    }
}

fn heap() -> (Vec<u8>, Vec<Planted>) {
    use Stays::{Always, Finer, Never};
    let mut heap = Heap::new();
    for (class, field, stays) in [
        ("com.acme.Account", "size", Never),
        ("java.util.concurrent.FutureTask", "state", Finer),
        ("java.util.Vector", "capacityIncrement", Never),
        ("org.apache.kafka.clients.Metadata", "updateVersion", Never),
        ("com.zaxxer.hikari.pool.PoolEntry", "state", Always),
        ("java.util.ArrayList", "size", Always),
        ("java.util.concurrent.LinkedBlockingDeque", "capacity", Finer),
        ("java.util.concurrent.ThreadPoolExecutor", "maximumPoolSize", Finer),
    ] {
        let value = heap.small(class, stays);
        heap.holder(class, field, value);
    }
    for (class, field) in [
        ("java.util.concurrent.atomic.AtomicLong", "value"),
        ("java.util.concurrent.atomic.Striped64", "base"),
        ("java.util.concurrent.atomic.Striped64$Cell", "value"),
        ("java.util.concurrent.Phaser", "state"),
    ] {
        let value = heap.large(class, Never);
        heap.holder(class, field, value);
    }
    // The state of an executor's worker stays, that of other synchronizers goes.
    let queued = "java.util.concurrent.locks.AbstractQueuedSynchronizer";
    let above = heap.model.class(queued, Some(heap.jdk.object), &[("state", Type::Int)]);
    for (class, stays) in [
        ("java.util.concurrent.ThreadPoolExecutor$Worker", Finer),
        ("java.util.concurrent.Semaphore$NonfairSync", Never),
        ("com.acme.Gate", Never),
    ] {
        let value = heap.small(class, stays);
        let class = heap.model.class(class, Some(above), &[]);
        let object = heap.model.instance(class, &[value]);
        heap.objects.push(object);
    }
    // So does the capacity of a buffer outside the heap.
    let above = heap.model.class("java.nio.Buffer", Some(heap.jdk.object), &[("capacity", Type::Int)]);
    for (class, stays) in [("java.nio.DirectByteBuffer", Always), ("java.nio.HeapByteBuffer", Never)] {
        let value = heap.small(class, stays);
        let class = heap.model.class(class, Some(above), &[]);
        let object = heap.model.instance(class, &[value]);
        heap.objects.push(object);
    }
    // An AtomicInteger is the size of a queue, another is not. Both come after the queue.
    let counter = "java.util.concurrent.atomic.AtomicInteger";
    let counter = heap.model.class(counter, Some(heap.jdk.object), &[("value", Type::Int)]);
    let queue = "java.util.concurrent.LinkedBlockingQueue";
    let queue = heap.model.class(queue, Some(heap.jdk.object), &[("count", Type::Object)]);
    let (held, free) =
        (heap.small("AtomicInteger of a queue", Always), heap.small("AtomicInteger alone", Never));
    let held = heap.model.instance(counter, &[held]);
    let free = heap.model.instance(counter, &[free]);
    let queue = heap.model.instance(queue, &[held.into()]);
    heap.objects.extend([free, queue]);
    // A number in bits.
    let bits: Vec<bool> = (0..64).map(|at| LARGE >> at & 1 == 1).collect();
    let array = heap.model.prim_array(Elements::Boolean(bits.clone()));
    heap.objects.push(array);
    heap.planted.push(Planted {
        name: "boolean[]",
        bytes: bits.iter().map(|bit| u8::from(*bit)).collect(),
        stays: Never,
    });
    heap.write()
}

fn is_in(bytes: &[u8], what: &[u8]) -> bool {
    memchr::memmem::find(bytes, what).is_some()
}

fn check(name: &str, redacted: &[u8], planted: &[Planted], is_strict: bool) {
    for planted in planted {
        let stays = planted.stays == Stays::Always || planted.stays == Stays::Finer && !is_strict;
        assert_eq!(is_in(redacted, &planted.bytes), stays, "{name}: {}", planted.name);
    }
}

#[test]
fn numbers_stay_only_where_an_answer_needs_them() {
    let folder = Folder::new();
    let (bytes, planted) = heap();
    planted.iter().for_each(|planted| assert!(is_in(&bytes, &planted.bytes), "{}", planted.name));
    let (input, out) = (folder.write("in.hprof", &bytes), folder.text("out.hprof"));
    for strict in [&[][..], &["--strict-numbers"]] {
        let arguments =
            [&["redact", &input, "-o", &out, "--force", "--prove", "--format", "json"], strict].concat();
        let output = folder.run(&arguments);
        assert_eq!(code(&output), 0, "{}{}", stderr(&output), String::from_utf8_lossy(&output.stdout));
        check("file", &fs::read(&out).unwrap(), &planted, !strict.is_empty());
        // Which answers suffer is said.
        assert_eq!(stderr(&output).contains("limit of the queue"), !strict.is_empty(), "{}", stderr(&output));
        // The proof names each that stays.
        let json: Json = serde_json::from_slice(&output.stdout).unwrap();
        let row = json["rows"].as_array().unwrap().iter().find(|row| row["what"] == "numbers_that_stay");
        let kept = row.unwrap()["kept_numbers"].as_array().unwrap();
        let has = |class: &str, field: &str| {
            kept.iter()
                .any(|kept| kept["class"] == class && kept["kept_field"] == field && kept["numbers"] == 1)
        };
        assert!(
            has("java.util.ArrayList", "size") && has("com.zaxxer.hikari.pool.PoolEntry", "state"),
            "{kept:?}"
        );
        assert!(has("java.util.concurrent.atomic.AtomicInteger", "value"), "{kept:?}");
        let is_finer = has("java.util.concurrent.LinkedBlockingDeque", "capacity");
        assert_eq!(is_finer, strict.is_empty(), "{kept:?}");
        assert!(!has("com.acme.Account", "size"), "{kept:?}");
    }
    let output = folder.run(&["redact", "--check", &input, &out, "--strict-numbers"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(code(&output) == 0 && text.contains("are kept: see docs/redact.md"), "{text}");
}

/// A counter comes before the queue that holds it, and both are in the first window.
#[test]
fn counters_of_queues_stay_in_a_pipe() {
    let folder = Folder::new();
    let (bytes, planted) = heap();
    let out = folder.text("out.hprof");
    let mut command = folder.command(&["redact", "-", "-o", &out]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(&bytes).unwrap();
    let output = finish(child);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let redacted = fs::read(&out).unwrap();
    check("pipe", &redacted, &planted, false);
    // One that no queue holds is negative: where none was seen to hold it, a size is unknown rather than wrong.
    let free = planted.iter().find(|planted| planted.name == "AtomicInteger alone").unwrap();
    let at = memchr::memmem::find(&bytes, &free.bytes).unwrap();
    assert!(redacted[at] >= 0x80, "{:?}", &redacted[at..at + 4]);
    let output = folder.run(&["redact", "--check", &folder.write("in.hprof", &bytes), &out]);
    assert_eq!(code(&output), 0, "{}{}", stderr(&output), String::from_utf8_lossy(&output.stdout));
}
