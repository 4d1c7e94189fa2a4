//! Damaged dumps: the readable part is used, and the account of the rest is right. Expected figures come from offsets
//! noted by the tests' own writer, never from the reader.

use crate::kit::dump::{Dump, count, problems};
use hprof_cli::ObjectId;
use hprof_index::MissingObjects;
use hprof_index::model::problem::{Account, ProblemKind};
use hprof_query::dump::doctor::{self, RetainedSizes, Subject};
use hprof_writer::{
    ClassDump, DumpWriter, Elements, HeapModel, HeapWriter, IdSize, Jdk, Options, Order, Root, Type, Value,
    Version, Written, damage, examples,
};

fn account(dump: &Dump) -> Account {
    dump.open().summary().account()
}

/// Objects in a chain of pairs, in many small segments.
fn segments(objects: i32) -> Written {
    segments_with(objects, &Options { segment_bytes: Some(2000), ..Options::hotspot() })
}

fn segments_with(objects: i32, options: &Options) -> Written {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    jdk.thread(&mut model, "main", false, 5);
    let pair = model.class("t.Pair", Some(jdk.object), &[("left", Type::Object), ("n", Type::Int)]);
    let mut last = model.instance_with(pair, &[("n", Value::Int(-1))]);
    for n in 0..objects {
        last = model.instance_with(pair, &[("left", last.into()), ("n", Value::Int(n))]);
    }
    model.root(last, Root::JniGlobal { reference: 1 });
    model.root(pair, Root::StickyClass);
    model.write(options)
}

/// Instances of `t.Pair`, as the tag and place of sub-records say.
fn pairs(written: &Written, keep: impl Fn(u64, u64) -> bool) -> u64 {
    // A pair is longer than any other instance of this dump that is not a String, Thread or the like: recognized by
    // its bytes.
    let all = written.bytes();
    let class = written.subs_of(0x20).last().unwrap().id;
    let of_pair = |at: u64| all[at as usize + 13..at as usize + 21] == class.to_be_bytes();
    written.subs_of(0x21).iter().filter(|sub| of_pair(sub.at) && keep(sub.at, sub.at + sub.len)).count()
        as u64
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn the_account_of_a_cut_says_what_is_read_and_what_had_to_come() {
    let written = segments(150);
    let all = written.bytes();
    let first = written.records[0].at as usize;
    for at in (first..all.len()).step_by(7).chain(written.records.iter().map(|record| record.at as usize)) {
        let dump = Dump::of(&damage::cut(&all, at));
        let heap = dump.open();
        let (summary, found) = (heap.summary(), heap.summary().account());
        assert!(summary.is_damaged(), "cut at {at}");
        assert_eq!(found.file_bytes, at as u64);
        let at = at as u64;
        // The record in which the file ends, unless it ends between two: then the missing part is unknown.
        let cut =
            written.records.iter().find(|record| record.at < at && record.at + 9 + record.body_len > at);
        let end = |record: &&hprof_writer::RecordMark| match at < record.at + 9 {
            true => record.at + 9,
            false => record.at + 9 + record.body_len,
        };
        let expected = cut.as_ref().map(end);
        assert_eq!(found.expected_bytes, expected, "cut at {at}");
        // The unusable bytes of it: a whole record, or the last sub-record.
        let in_heap = cut.filter(|record| record.tag == 0x1C && at >= record.at + 9);
        let unread = match (in_heap, cut) {
            (Some(record), _) => {
                let whole = written.subs.iter().map(|sub| sub.at + sub.len).filter(|end| *end <= at);
                at - whole.max().unwrap_or(0).max(record.at + 9)
            }
            (None, Some(record)) => at - record.at,
            (None, None) => 0,
        };
        assert_eq!(found.skipped_bytes, unread, "cut at {at}: {}", problems(summary));
        assert_eq!(found.lost_records, u64::from(cut.is_some() && in_heap.is_none()), "cut at {at}");
        assert_eq!(found.lost_places, u64::from(in_heap.is_some() && unread > 0), "cut at {at}");
        assert_eq!(count(summary, "t.Pair"), pairs(&written, |_, end| end <= at), "cut at {at}");
        // The end record alone may be missing: then the heap is whole, but nobody can know.
        assert!(found.heap_damaged, "cut at {at}");
    }
    let whole = account(&Dump::of(&all));
    assert_eq!((whole.read_bytes(), whole.expected_bytes), (all.len() as u64, Some(all.len() as u64)));
    assert_eq!((whole.heap_damaged, whole.lost_records, whole.lost_places), (false, 0, 0));
}

#[test]
fn damage_inside_a_segment_loses_nothing_of_the_others() {
    let written = segments(400);
    let all = written.bytes();
    let segments: Vec<_> = written.records.iter().filter(|record| record.tag == 0x1C).collect();
    assert!(segments.len() > 5);
    for record in &segments[1..segments.len() - 1] {
        let (start, end) = (record.at + 9, record.at + 9 + record.body_len);
        let subs: Vec<_> = written.subs.iter().filter(|sub| (start..end).contains(&sub.at)).collect();
        let hit = subs[subs.len() / 2];
        // A tag that none is, and a length that reaches beyond the segment.
        for mangled in [
            damage::with_byte(&all, hit.at as usize, 0x77),
            damage::with_u4(&all, hit.at as usize + 21, 0x00FF_FFFF),
        ] {
            let dump = Dump::of(&mangled);
            let heap = dump.open();
            let (summary, found) = (heap.summary(), heap.summary().account());
            assert!(summary.is_damaged() && found.heap_damaged, "{}", problems(summary));
            assert_eq!((found.lost_records, found.lost_places), (0, 1), "{}", problems(summary));
            assert!(found.skipped_bytes >= hit.len && found.skipped_bytes <= end - hit.at, "{found:?}");
            let sure = pairs(&written, |from, to| to <= hit.at || from >= end);
            let most = pairs(&written, |from, _| from != hit.at);
            let pairs = count(summary, "t.Pair");
            assert!((sure..=most).contains(&pairs), "{pairs} of {sure} to {most}: {}", problems(summary));
        }
    }
}

#[test]
fn a_wrong_length_of_a_string_loses_no_object() {
    let written = segments(100);
    let all = written.bytes();
    let strings = written.records_of(0x01);
    assert!(strings.len() > 20);
    let whole = Dump::of(&all).open();
    let names: std::collections::BTreeSet<String> = (whole.summary().classes().iter())
        .map(|class| whole.summary().class_name(class).to_owned())
        .collect();
    for (number, at) in strings.iter().enumerate() {
        let stated = u32::from_be_bytes(all[*at as usize + 5..*at as usize + 9].try_into().unwrap());
        // Beyond the end of the file, into the middle of another record, shorter than it is.
        for lie in [0x4000_0000, stated + 5, stated + 1000, stated.saturating_sub(2)] {
            let dump = Dump::of(&damage::with_u4(&all, *at as usize + 5, lie));
            let heap = dump.open();
            let summary = heap.summary();
            let what = || format!("string {number} states {lie} instead of {stated}: {}", problems(summary));
            assert!(summary.is_damaged(), "{}", what());
            assert!(summary.account().lost_records >= 1, "{}", what());
            let objects: u64 = summary.classes().iter().map(|class| class.objects.get()).sum();
            assert_eq!(
                objects,
                written.subs.iter().filter(|sub| matches!(sub.tag, 0x21..=0x23)).count() as u64,
                "{}",
                what()
            );
            assert_eq!(summary.roots().len(), 2, "{}", what());
            // At most this name and the one behind are lost, if the length led into it; no other name changes.
            assert!(summary.record_counts().strings + 2 >= strings.len(), "{}", what());
            let odd: Vec<&str> = (summary.classes().iter().map(|class| summary.class_name(class)))
                .filter(|name| !names.contains(*name) && !name.starts_with("<class "))
                .collect();
            let own = lie < stated;
            assert!(odd.len() <= usize::from(own), "{odd:?}: {}", what());
        }
    }
}

/// Checks a changed [`segments`]: it is damaged, but all its contents are found, as one heap dump.
fn nothing_is_lost(bytes: &[u8], pairs: u64, is_damaged: bool, what: &str) -> Account {
    let dump = Dump::of(bytes);
    let heap = dump.open();
    let summary = heap.summary();
    assert_eq!(summary.is_damaged(), is_damaged, "{what}: {}", problems(summary));
    assert!(!summary.problems().is_empty(), "{what}");
    assert_eq!(summary.facts().heap_dumps.get(), 1, "{what}: {}", problems(summary));
    assert_eq!(count(summary, "t.Pair"), pairs, "{what}: {}", problems(summary));
    assert_eq!(summary.roots().len(), 2, "{what}: {}", problems(summary));
    summary.account()
}

#[test]
fn a_wrong_tag_or_length_of_a_segment_loses_no_object() {
    let written = segments(400);
    let all = written.bytes();
    let whole = pairs(&written, |_, _| true);
    let segments: Vec<_> = written.records.iter().filter(|record| record.tag == 0x1C).collect();
    for (number, record) in segments.iter().enumerate() {
        let at = record.at as usize;
        let body = record.body_len as u32;
        let mut lies = vec![damage::with_byte(&all, at, 0x5C), damage::with_byte(&all, at, 0x33)];
        // Beyond the file, into another segment, into itself.
        for length in [0x4000_0000, body + 700, body - 11] {
            lies.push(damage::with_u4(&all, at + 5, length));
        }
        for (lie, bytes) in lies.iter().enumerate() {
            // A wrong length, with which nothing is lost, is a note.
            let found = nothing_is_lost(bytes, whole, lie < 2, &format!("segment {number}, lie {lie}"));
            assert_eq!(found.expected_bytes, Some(all.len() as u64), "segment {number}, lie {lie}");
        }
    }
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn a_segment_with_any_other_tag_loses_no_object() {
    let written = segments(200);
    let all = written.bytes();
    let whole = pairs(&written, |_, _| true);
    let segments = written.records_of(0x1C);
    assert!(segments.len() > 3);
    for (number, at) in segments.iter().enumerate() {
        for tag in (0..=0xFF).filter(|tag| *tag != 0x1C) {
            let bytes = damage::with_byte(&all, *at as usize, tag);
            let found = nothing_is_lost(&bytes, whole, true, &format!("segment {number} with tag {tag:#x}"));
            assert_eq!(found.skipped_bytes, 0, "segment {number} with tag {tag:#x}");
        }
    }
}

/// As HotSpot writes large arrays: in segments of their own.
#[test]
fn a_segment_of_one_array_with_any_other_tag_is_read() {
    let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight);
    out.string(1, "A");
    out.load_class(1, 0x10, 0, 1);
    let heap = |fill: &dyn Fn(&mut HeapWriter)| {
        let mut heap = HeapWriter::new(IdSize::Eight);
        fill(&mut heap);
        heap
    };
    out.heap_segment(&heap(&|heap| {
        heap.class_dump(&ClassDump { id: 0x10, ..ClassDump::default() });
        heap.instance(0x100, 0, 0x10, &[]);
    }));
    let at = out.len() as usize;
    out.heap_segment(&heap(&|heap| {
        heap.prim_array(0x200, 0, &Elements::of_bytes(&[7; 3000]));
    }));
    out.heap_segment(&heap(&|heap| {
        heap.instance(0x2000, 0, 0x10, &[]);
    }));
    out.heap_dump_end();
    let all = out.into_bytes();
    assert_eq!(all[at], 0x1C);
    for tag in (0..=0xFF).filter(|tag| *tag != 0x1C) {
        let dump = Dump::of(&damage::with_byte(&all, at, tag));
        let heap = dump.open();
        let summary = heap.summary();
        let found = (summary.is_damaged(), count(summary, "byte[]"), count(summary, "A"));
        assert_eq!(found, (true, 1, 2), "{tag:#x}: {}", problems(summary));
        assert_eq!(summary.facts().heap_dumps.get(), 1, "{tag:#x}: {}", problems(summary));
    }
}

/// Whatever becomes of the record between them, two heap dumps are two.
#[test]
fn a_wrong_end_of_a_heap_dump_mixes_none() {
    let (one, two) = (segments(100), segments(60));
    let first = two.records[0].at as usize;
    let bytes = [one.bytes(), two.bytes()[first..].to_vec()].concat();
    let end = *one.records_of(0x2C).last().unwrap() as usize;
    assert_eq!(bytes.len() - two.bytes().len() + first - end, 9);
    let wrong_tags = (0..=0xFF).filter(|tag| *tag != 0x2C).map(|tag| damage::with_byte(&bytes, end, tag));
    let wrong_lengths = [1, 0x10, 4045, 0x7FFF_FFFF].map(|length| damage::with_u4(&bytes, end + 5, length));
    for (number, wrong) in wrong_tags.chain(wrong_lengths).enumerate() {
        let dump = Dump::of(&wrong);
        let heap = dump.open();
        let summary = heap.summary();
        let is_length = number >= 255;
        assert_eq!(summary.is_damaged(), !is_length, "{number}: {}", problems(summary));
        assert_eq!(summary.facts().heap_dumps.get(), 2, "{number}: {}", problems(summary));
        assert_eq!(count(summary, "t.Pair"), pairs(&two, |_, _| true), "{number}: {}", problems(summary));
        assert_eq!(summary.account().skipped_bytes, 0, "{number}: {}", problems(summary));
    }
}

/// Heap dumps of one record each are not mixed where a tag says that one of them is a segment.
#[test]
fn a_heap_dump_with_the_tag_of_a_segment_is_one_of_its_own() {
    let one = examples::zoo().write(&Options { segment_bytes: None, ..Options::agent() });
    let all = one.bytes();
    let heap_dump = one.records.iter().find(|record| record.tag == 0x0C).unwrap();
    let (start, end) = (heap_dump.at as usize, (heap_dump.at + 9 + heap_dump.body_len) as usize);
    let three = [&all[..end], &all[start..end], &all[start..]].concat();
    let alone = objects(&Dump::of(&all).open());
    for number in 0..3 {
        let dump = Dump::of(&damage::with_byte(&three, start + number * (end - start), 0x1C));
        let heap = dump.open();
        assert_eq!(heap.summary().facts().heap_dumps.get(), 3, "{number}: {}", problems(heap.summary()));
        assert_eq!(objects(&heap), alone, "{number}: {}", problems(heap.summary()));
    }
}

fn objects(heap: &hprof_index::Heap) -> Vec<u64> {
    heap.summary().classes().iter().map(|class| class.objects.get()).collect()
}

#[test]
fn a_heap_dump_of_one_record_with_a_wrong_tag_is_read() {
    let written = examples::zoo().write(&Options { segment_bytes: None, ..Options::hotspot() });
    let all = written.bytes();
    let at = written.records_of(0x0C)[0] as usize;
    let dump = Dump::of(&damage::with_byte(&all, at, 0x4C));
    let (heap, whole) = (dump.open(), Dump::of(&all).open());
    assert!(heap.summary().is_damaged() && !whole.summary().is_damaged());
    assert_eq!(objects(&heap), objects(&whole), "{}", problems(heap.summary()));
}

/// Two kinds of damage at once: neither hides the other.
#[test]
fn a_cut_between_segments_is_told_beside_other_damage() {
    let written = segments(200);
    let string = written.records_of(0x01)[5] as usize;
    let third = written.records_of(0x1C)[2] as usize;
    let bytes = damage::cut(&damage::with_u4(&written.bytes(), string + 5, 0x4000_0000), third);
    let dump = Dump::of(&bytes);
    let heap = dump.open();
    let kinds: Vec<ProblemKind> = heap.summary().problems().iter().map(|problem| problem.kind).collect();
    assert!(kinds.contains(&ProblemKind::BadRecord) && kinds.contains(&ProblemKind::NoEnd), "{kinds:?}");
    let found = heap.summary().account();
    assert!(found.heap_damaged && found.expected_bytes.is_none());
}

#[test]
fn a_length_that_was_never_filled_in_is_damage_if_no_root_follows() {
    let heap_length = hprof_writer::StatedLength::Zero;
    let written = segments_with(60, &Options { heap_length, segment_bytes: None, ..Options::hotspot() });
    let all = written.bytes();
    assert!(!Dump::of(&all).open().summary().is_damaged());
    // Cut between two objects: roots come last.
    let middle = written.subs_of(0x21)[30].at as usize;
    let dump = Dump::of(&damage::cut(&all, middle));
    let heap = dump.open();
    assert!(heap.summary().is_damaged() && heap.summary().account().heap_damaged);
    assert_eq!(heap.summary().account().expected_bytes, None);
    assert!(problems(heap.summary()).contains("no GC root"), "{}", problems(heap.summary()));
}

#[test]
fn bytes_behind_the_last_record_are_no_cut() {
    let all = segments(20).bytes();
    for stray in [&b"\n"[..], b"\r\n\r\n\r\n\r\n\r\n\r\n\r\n", &[0; 500]] {
        let dump = Dump::of(&[&all[..], stray].concat());
        let heap = dump.open();
        let text = format!("{} stray byte", stray.len());
        assert!(!heap.summary().is_damaged() && problems(heap.summary()).contains(&text));
        assert_eq!(heap.summary().account().skipped_bytes, stray.len() as u64);
    }
}

#[test]
fn references_to_what_is_not_there_are_counted() {
    for options in [Options::hotspot(), Options::agent()] {
        let mut model = HeapModel::default();
        let object = model.class("java.lang.Object", None, &[]);
        let pair = model.class("t.Pair", Some(object), &[("left", Type::Object), ("right", Type::Object)]);
        let array = model.array_class(pair);
        let nowhere = |n: u64| hprof_writer::ObjectId(0x9000_0000 + 8 * n);
        let first = model.instance_with(pair, &[("left", nowhere(1).into()), ("right", nowhere(2).into())]);
        model.instance_with(pair, &[("left", nowhere(1).into()), ("right", first.into())]);
        model.object_array(array, &[first, nowhere(1), hprof_writer::ObjectId::NULL, nowhere(3)]);
        model.root(nowhere(7), Root::JniGlobal { reference: 1 });
        let dump = Dump::of(&model.write(&options).bytes());
        let (heap, graph) = dump.open_graph();
        let expected = MissingObjects { references: 5, objects: 3, more: false };
        assert_eq!(heap.missing_objects(), Some(expected));
        let found = doctor::doctor(&heap, Some(&graph));
        assert_eq!((found.extent.missing, found.extent.retained), (Some(expected), RetainedSizes::Exact));
        let subjects: Vec<Subject> = found.findings.iter().map(|finding| finding.subject).collect();
        assert!(subjects.contains(&Subject::MissingObjects) && subjects.contains(&Subject::MissingRoots));
        assert!(!heap.summary().is_damaged(), "a JVM may write so");
    }
}

/// As HotSpot does up to JDK 21: roots stand behind all objects.
#[test]
fn a_dump_that_is_cut_before_its_threads_takes_thread_objects_as_roots() {
    let mut model = HeapModel::default();
    let jdk = Jdk::add_to(&mut model);
    let thread_class = model.class("t.Worker", Some(jdk.thread), &[("work", Type::Object)]);
    let work = model.instance(jdk.object, &[]);
    let worker = model.instance_with(thread_class, &[("work", work.into())]);
    let main = jdk.thread(&mut model, "main", false, 5);
    model.root(main, Root::ThreadObject { thread: 1, trace: 1 });
    model.root(worker, Root::ThreadObject { thread: 2, trace: 1 });
    let written =
        model.write(&Options { order: Order::ClassesFirst, segment_bytes: None, ..Options::hotspot() });
    let all = written.bytes();
    let roots = written.subs_of(0x08).iter().map(|sub| sub.at).min().unwrap() as usize;
    assert!(written.subs_of(0x21).iter().all(|sub| sub.at < roots as u64), "roots come last");
    for (bytes, assumed) in [(damage::cut(&all, roots), true), (all.clone(), false)] {
        let dump = Dump::of(&bytes);
        let (heap, graph) = dump.open_graph();
        let reachable = |id: hprof_writer::ObjectId| {
            let index = graph.objects.addresses.index_of(ObjectId(id.0)).unwrap();
            graph.tree.reachable_position(index).is_some()
        };
        assert!(reachable(main) && reachable(worker) && reachable(work), "{}", problems(heap.summary()));
        let said =
            heap.summary().problems().iter().any(|problem| problem.kind == ProblemKind::ThreadsAssumed);
        assert_eq!(said, assumed);
    }
}

#[test]
fn classes_that_are_lost_or_odd_are_counted() {
    let mut out = DumpWriter::new(Version::V1_0_2, IdSize::Eight);
    for (id, name) in [(1, "A"), (2, "n"), (3, "Lost")] {
        out.string(id, name);
    }
    out.load_class(1, 0x1000, 0, 1);
    out.load_class(2, 0x1100, 0, 3);
    let mut heap = HeapWriter::new(IdSize::Eight);
    let fields = [(2, Type::Int)];
    let class = ClassDump { id: 0x1000, fields: &fields, instance_size: 4, ..ClassDump::default() };
    heap.class_dump(&class);
    heap.class_dump(&class);
    heap.instance(0x2000, 0, 0x1000, &[Value::Int(1)]);
    // More and fewer bytes than the class says.
    heap.instance(0x2010, 0, 0x1000, &[Value::Int(1), Value::Int(2)]);
    heap.instance(0x2020, 0, 0x1000, &[]);
    heap.instance(0x2030, 0, 0x1100, &[Value::Int(3)]);
    out.heap_segment(&heap);
    out.heap_dump_end();
    let dump = Dump::of(&out.into_bytes());
    let heap = dump.open();
    let found = heap.summary().account();
    assert_eq!((found.undumped_classes, found.objects_without_class, found.odd_instances), (1, 1, 2));
    assert_eq!(count(heap.summary(), "A"), 3);
    let kinds: Vec<ProblemKind> = heap.summary().problems().iter().map(|problem| problem.kind).collect();
    for kind in [ProblemKind::MissingClasses, ProblemKind::OddInstances, ProblemKind::RepeatedClasses] {
        assert!(kinds.contains(&kind), "{kind:?} of {kinds:?}");
    }
    assert_eq!(RetainedSizes::from_account(&found), RetainedSizes::OfWhatIsThere);
}

#[test]
fn a_file_that_ends_before_its_heap_is_damaged() {
    let all = examples::zoo().write(&Options::hotspot());
    let heap_starts = all.records_of(0x1C)[0] as usize;
    let dump = Dump::of(&damage::cut(&all.bytes(), heap_starts));
    let heap = dump.open();
    assert!(heap.summary().is_damaged());
    assert_eq!(heap.summary().problems()[0].kind, ProblemKind::NoHeapDump);
    // An agent's recording without a heap dump is whole.
    let mut out = DumpWriter::new(Version::V1_0_1, IdSize::Four);
    out.string(1, "A");
    out.control_settings(3, 4);
    assert!(!Dump::of(&out.into_bytes()).open().summary().is_damaged());
}

#[test]
fn what_is_alike_is_one_finding() {
    let written = segments(400);
    let mut all = written.bytes();
    let hits: Vec<_> = written.subs_of(0x21).into_iter().step_by(50).collect();
    for hit in &hits {
        all[hit.at as usize] = 0x77;
    }
    let dump = Dump::of(&all);
    let heap = dump.open();
    let found = doctor::doctor(&heap, None);
    let unknown: Vec<_> = (found.findings.iter())
        .filter(|one| one.subject == Subject::Problem(ProblemKind::UnknownSubRecord))
        .collect();
    assert_eq!(unknown.len(), 1);
    assert_eq!((unknown[0].count, found.extent.account.lost_places), (hits.len() as u64, hits.len() as u64));
    assert_eq!(unknown[0].offset, Some(hits[0].at));
    assert_eq!(unknown[0].skipped_bytes, found.extent.account.skipped_bytes);
    assert_eq!((found.extent.missing, found.extent.retained), (None, RetainedSizes::OfWhatIsThere));
}

/// As a slow reader in another language counts them: HotSpot leaves out some objects of its archive, to which arrays refer.
#[test]
fn references_of_real_dumps_to_what_is_not_there_are_counted() {
    for (sample, references, objects) in
        [("jdk/jdk8", 0, 0), ("jdk/jdk17", 622, 622), ("jdk/jdk25-compact", 666, 661)]
    {
        let path = format!("{}/samples/{sample}.hprof.zst", env!("CARGO_MANIFEST_DIR"));
        let dump = Dump::sample(path.as_ref());
        let (heap, _) = dump.open_graph();
        let expected = MissingObjects { references, objects, more: false };
        assert_eq!(heap.missing_objects(), Some(expected), "{sample}");
    }
}
