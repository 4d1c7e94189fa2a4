//! Hostile dumps that once took for ever: each has to end, in the time of an honest dump of its size.
//!
//! No time is measured. What would be quadratic has sizes here at which it does not end before the watchdog barks.

use std::time::{Duration, Instant};

use crate::kit::dump::Dump;
use crate::kit::portion;
use hprof_index::layout::sizes::Sizes;
use hprof_writer::{ClassDump, DumpWriter, Elements, HeapWriter, IdSize, Root, Type, Value, Version};

/// A hundred times what these take on a slow machine, in a debug build.
const BARK: Duration = Duration::from_secs(60);

/// Opens in both ways within the time that is left to it.
fn ends(name: &str, bytes: Vec<u8>) {
    let (done, wait) = std::sync::mpsc::channel();
    let start = Instant::now();
    std::thread::spawn(move || {
        let dump = Dump::of(&bytes);
        if let Ok(heap) = dump.try_open() {
            Sizes::new(heap.summary(), None);
        }
        let _ = dump.try_open_graph();
        let _ = done.send(());
    });
    assert!(wait.recv_timeout(BARK).is_ok(), "{name}: no end after {:?}", start.elapsed());
}

fn dump_of(loads: impl IntoIterator<Item = u64>, fill: impl FnOnce(&mut HeapWriter)) -> Vec<u8> {
    let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight);
    out.string(1, "A");
    for (serial, class) in (1u32..).zip(loads) {
        out.load_class(serial, class, 0, 1);
    }
    let mut heap = HeapWriter::new(IdSize::Eight);
    fill(&mut heap);
    out.heap_segment(&heap);
    out.heap_dump_end();
    out.into_bytes()
}

fn class(heap: &mut HeapWriter, id: u64, superclass: u64) {
    heap.class_dump(&ClassDump { id, superclass, ..ClassDump::default() });
}

#[test]
fn ids_scattered_over_the_address_space() {
    ends(
        "scattered",
        dump_of([0x10], |heap| {
            class(heap, 0x10, 0);
            for at in 0..6000u64 {
                heap.instance(0x1_0000_0000 + (at * 7919 % 6000) * (4 << 20), 0, 0x10, &[]);
            }
        }),
    );
}

#[test]
fn one_unaligned_id_late_in_a_segment() {
    ends(
        "unaligned",
        dump_of([0x10], |heap| {
            class(heap, 0x10, 0);
            for at in 0..80_000u64 {
                heap.instance(0x1_0000_0000 + at * 16 + u64::from(at == 60_000), 0, 0x10, &[]);
            }
        }),
    );
}

#[test]
fn classes_that_are_their_own_superclass_or_a_long_chain() {
    let ids = || (1..=40_000u64).map(|at| at * 16);
    ends("own superclass", dump_of(ids(), |heap| ids().for_each(|id| class(heap, id, id))));
    ends("chain", dump_of(ids(), |heap| ids().for_each(|id| class(heap, id, id + 16))));
    ends("cycle", dump_of(ids(), |heap| ids().for_each(|id| class(heap, id, (id + 16) % (40_000 * 16)))));
}

#[test]
fn runs_of_ids_that_pass_all_classes_again_and_again() {
    ends(
        "runs over classes",
        dump_of((1..=20_000u64).map(|at| 0x10_0000 + at * 16), |heap| {
            for at in 0..60_000u64 {
                heap.prim_array(0x9_0000_0000 + at * 16, 0, &Elements::Zeros(Type::Byte, 0));
            }
            for at in 0..10_000u64 {
                heap.prim_array(0x1000 + at * 8, 0, &Elements::Zeros(Type::Byte, 0));
                heap.prim_array(0xf_0000_0000 + at * 16, 0, &Elements::Zeros(Type::Byte, 0));
            }
        }),
    );
}

#[test]
fn arrays_that_are_followed_by_nothing_but_roots_where_a_boundary_is_sought() {
    ends(
        "roots behind damage",
        dump_of([0x10], |heap| {
            class(heap, 0x10, 0);
            heap.raw(&[0x77]);
            for at in 0..40_000u64 {
                heap.prim_array(0x1_0000_0000 + at * 16, 0, &Elements::Zeros(Type::Byte, 0));
                for _ in 0..4 {
                    heap.root(0x10, Root::Unknown);
                }
                heap.instance(0x1_0000_0000 + at * 16 + 8, 0, 0x10, &[Value::Int(0)]);
            }
            heap.raw(&[0x77]);
        }),
    );
}

#[test]
fn one_long_name_for_many_classes() {
    let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight);
    out.string(1, &"a/".repeat(1 << 20));
    for serial in 1..=5000u32 {
        out.load_class(serial, u64::from(serial) * 16, 0, 1);
    }
    ends("long name", out.into_bytes());
}

#[test]
fn unknown_records_without_end() {
    let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight);
    for at in 0..100_000u32 {
        out.raw_record(0x7f, 0, 4, &at.to_be_bytes());
        out.heap_dump_end();
    }
    ends("unknown records", out.into_bytes());
}

/// Records that look like segments until thousands of constants of a class were read, each inside of the one before.
#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn records_that_nearly_are_segments() {
    const CONSTANTS: u32 = 0xFFFF;
    // The second byte of eleven is the type of a constant, a long, wherever a class begins at the ninth of eleven.
    let mut block = Vec::new();
    for _ in 0..16 {
        block.extend([0x03, 11, 0, 0, 0, 0, 0, 0, 2, 0, 0]);
    }
    let start = block.len();
    // It ends at the sixth of eleven bytes, which is the tag of no record.
    block.extend([0x03, 11, 0, 0, 0]);
    block.extend((11 * (CONSTANTS + 20) + 7).to_be_bytes());
    block.push(0x20);
    block.resize(start + 77, 0);
    for at in (start + 12..start + 77).step_by(11) {
        block[at] = 11;
    }
    block[start + 74..start + 76].copy_from_slice(&[0xFF; 2]);
    let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight);
    let mut heap = HeapWriter::new(IdSize::Eight);
    class(&mut heap, 0x10, 0);
    out.heap_segment(&heap);
    let mut bytes = out.into_bytes();
    bytes.extend(block.repeat(400_000 / portion::step()));
    ends("segments in segments", bytes);
}
