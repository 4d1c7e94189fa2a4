//! `convert` against the same text made the plain way from the bytes ([`texts::naive`]), line by line, against the model
//! that a dump was written from, and as a process: files, pipes, full disks, damage.

use std::collections::BTreeMap;

use crate::kit::dump::{Dump, with_threads};
use crate::kit::process::Folder;
use crate::kit::strategies;
use crate::kit::texts::naive::{Naive, masked};
use crate::kit::texts::{self, AGENT_BINARIES, OTHER_BINARIES, sample, sample_path};
use hprof_writer::{
    DumpWriter, Expected, HeapModel, HeapTag, HeapWriter, IdSize, ObjectId, ObjectKind, Options, Root,
    StatedLength, Type, Value, Version,
};
use proptest::prelude::*;

/// Compares two texts, and shows the first line that differs.
fn same_text(what: &str, found: &str, expected: &str) {
    if found == expected {
        return;
    }
    for (number, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "{what}: line {} behind the head", number + 1);
    }
    let lengths = (found.lines().count(), expected.lines().count());
    panic!("{what}: {lengths:?} lines, and all that both have are equal");
}

/// Objects and bytes of each class, as counted by `histo`.
type Histogram = BTreeMap<String, (u64, u64)>;

fn histo(place: &Folder, dump: &str) -> Histogram {
    let answer = place.json(&["histo", dump, "--top", "0"]);
    let mut sums = Histogram::new();
    for row in answer["rows"].as_array().unwrap() {
        let sum = sums.entry(row["class"].as_str().unwrap().to_owned()).or_default();
        sum.0 += row["instances"].as_u64().unwrap();
        sum.1 += row["shallow_bytes"].as_u64().unwrap();
    }
    sums
}

/// The same from the lines of a text: OBJ and ARR; class objects with no bytes.
fn histogram_of(text: &str) -> Histogram {
    let mut sums = Histogram::new();
    for line in text.lines() {
        if line.starts_with("CLS ") {
            sums.entry("java.lang.Class".to_owned()).or_default().0 += 1;
            continue;
        }
        let class = if line.starts_with("OBJ ") {
            line.split_once(", class=").unwrap().1.rsplit_once('@').unwrap().0
        } else if line.starts_with("ARR ") {
            let class = line.split_once(", elem type=").unwrap().1.strip_suffix(')').unwrap();
            class.rsplit_once('@').map_or(class, |(class, _)| class)
        } else {
            continue;
        };
        let size = line.split_once("(sz=").unwrap().1.split_once(',').unwrap().0;
        let sum = sums.entry(class.to_owned()).or_default();
        *sum = (sum.0 + 1, sum.1 + size.parse::<u64>().unwrap());
    }
    sums
}

/// Objects and bytes that HEAP DUMP BEGIN states.
fn stated(text: &str) -> (u64, u64) {
    let line = text.lines().find(|line| line.starts_with("HEAP DUMP BEGIN (")).unwrap();
    let words: Vec<&str> = line.split([' ', '(']).collect();
    (words[4].parse().unwrap(), words[6].parse().unwrap())
}

/// The rows of SITES: class, trace, and the four figures.
fn sites_of(text: &str) -> Vec<(String, u64, [u64; 4])> {
    let rows = text.lines().skip_while(|line| !line.starts_with("SITES BEGIN")).skip(3);
    rows.take_while(|line| *line != "SITES END")
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |at: usize| words[at].parse::<u64>().unwrap();
            (words[8..].join(" "), number(7), [3, 4, 5, 6].map(number))
        })
        .collect()
}

/// Sums up the objects of a text by class and trace; class objects are of `java.lang.Class`.
fn sites_by_lines(text: &str) -> BTreeMap<(String, u64), u64> {
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let class = match line.get(..4) {
            Some("CLS ") => "java.lang.Class",
            Some("OBJ ") => line.split_once(", class=").unwrap().1.rsplit_once('@').unwrap().0,
            Some("ARR ") => {
                let class = line.split_once(", elem type=").unwrap().1.strip_suffix(')').unwrap();
                class.rsplit_once('@').map_or(class, |(class, _)| class)
            }
            _ => continue,
        };
        let trace = line.split_once(", trace=").unwrap().1;
        let trace = trace[..trace.find([',', ')']).unwrap()].parse().unwrap();
        *counts.entry((class.to_owned(), trace)).or_default() += 1;
    }
    counts
}

#[test]
fn the_agents_binaries_line_by_line() {
    let place = Folder::new();
    for name in AGENT_BINARIES {
        let text = place.convert_sample(name);
        let naive = Naive::read(&sample(name));
        let (found, _) = masked(&text);
        // Sites that nobody recorded are counted over the objects; see below.
        let found = match found.find("SITES BEGIN").filter(|_| !naive.sites_are_recorded) {
            Some(at) => found[..at].to_owned(),
            None => found,
        };
        same_text(name, &found, &naive.sections.concat());
        assert!(text.starts_with(&format!("JAVA PROFILE 1.0.1, created {}\n\n", naive.date(0))), "{name}");
        let sections = naive.sections.each_ref().map(|section| section.lines().count());
        let expected = match name {
            "agent/all-cpu.hprof.zst" => [8, 6105, 27_149, 691, 16],
            _ => sections,
        };
        assert_eq!(sections, expected, "{name}");
        assert!(sections[0] > 3 && sections[1] > 100, "{name}: {sections:?}");
    }
}

#[test]
fn dumps_of_hotspot_and_android_line_by_line() {
    let place = Folder::new();
    for name in OTHER_BINARIES {
        let text = place.convert_sample(name);
        let naive = Naive::read(&sample(name));
        let (found, _) = masked(&text);
        let (found, _) = found.split_once("SITES BEGIN").unwrap();
        same_text(name, found, &naive.sections.concat());
        assert!(!naive.sites_are_recorded && naive.objects > 2000, "{name}");

        let by_lines = sites_by_lines(&text);
        let sites = sites_of(&text);
        let mut by_sites: BTreeMap<(String, u64), u64> = BTreeMap::new();
        for (class, trace, [live, objects, bytes, allocated]) in &sites {
            assert_eq!((live, objects), (bytes, allocated), "{name}: {class}");
            *by_sites.entry((class.clone(), *trace)).or_default() += objects;
        }
        assert_eq!(by_sites, by_lines, "{name}");
        let live: u64 = sites.iter().map(|(_, _, figures)| figures[0]).sum();
        assert_eq!(live, stated(&text).1, "{name}");
    }
}

#[test]
fn sizes_are_those_of_the_histogram() {
    let place = Folder::new();
    for name in AGENT_BINARIES.into_iter().chain(OTHER_BINARIES) {
        let dump = sample_path(name);
        let text = place.convert_sample(name);
        if !text.contains("\nHEAP DUMP BEGIN ") {
            continue;
        }
        let mut wanted = histo(&place, dump.to_str().unwrap());
        let sum = wanted.values().fold((0, 0), |sum, (objects, bytes)| (sum.0 + objects, sum.1 + bytes));
        assert_eq!(stated(&text), sum, "{name}");
        // Lines of classes state no size. The agent has instances of Class too, those of primitive types.
        let mut found = histogram_of(&text);
        let classes =
            [&mut found, &mut wanted].map(|sums| std::mem::take(sums.get_mut("java.lang.Class").unwrap()));
        assert!(classes[0].0 == classes[1].0 && classes[0].1 < classes[1].1, "{name}: {classes:?}");
        wanted.retain(|class, (objects, _)| *objects > 0 || class == "java.lang.Class");
        assert_eq!(found, wanted, "{name}");
    }
}

#[test]
fn a_layout_holds_for_all_sections() {
    let place = Folder::new();
    let dump = sample_path("jdk/jdk17.hprof.zst");
    let convert = |more: &[&str]| place.convert(dump.to_str().unwrap(), more);
    let bytes = |text: &str| sites_of(text).iter().map(|(_, _, figures)| figures[0]).sum::<u64>();
    let (usual, wide) = (convert(&[]), convert(&["--layout", "reference=8,header=16"]));
    assert_eq!((bytes(&usual), bytes(&wide)), (stated(&usual).1, stated(&wide).1));
    assert!(bytes(&wide) > bytes(&usual));
}

/// Blocks of a heap dump: the first line of each object and what stands below it, by object id.
fn blocks(text: &str) -> BTreeMap<u64, String> {
    let mut blocks = BTreeMap::new();
    let mut last = None;
    for line in text.lines() {
        if ["CLS ", "OBJ ", "ARR "].iter().any(|word| line.starts_with(word)) {
            let id = u64::from_str_radix(line.split(' ').nth(1).unwrap(), 16).unwrap();
            last = Some(id);
            assert!(blocks.insert(id, format!("{line}\n")).is_none(), "{id:x} is there twice");
        } else if line.starts_with('\t') {
            if let Some(block) = last.and_then(|id| blocks.get_mut(&id)) {
                *block += &format!("{line}\n");
            }
        } else {
            last = None;
        }
    }
    blocks
}

/// Returns the expected text for each object of a model.
fn blocks_of(model: &HeapModel, expected: &Expected) -> BTreeMap<u64, String> {
    let name_of = |id: u64| {
        let def = model.classes().iter().find(|def| def.id.0 == id).unwrap();
        if def.loads > 0 { def.name.clone() } else { format!("<class {id:#x}>") }
    };
    let mut blocks = BTreeMap::new();
    for object in &expected.objects {
        let (id, trace) = (object.id, object.trace);
        let mut text = match (object.kind, object.class) {
            (ObjectKind::Class, _) => format!("CLS {id:x} (name={}, trace={trace})\n", name_of(id)),
            (ObjectKind::Instance, Some(class)) => {
                format!("OBJ {id:x} (sz=*, trace={trace}, class={}@{:x})\n", name_of(class.0), class.0)
            }
            (ObjectKind::ObjectArray, Some(class)) => {
                let (count, name) = (object.elements, name_of(class.0));
                format!("ARR {id:x} (sz=*, trace={trace}, nelems={count}, elem type={name}@{:x})\n", class.0)
            }
            _ => {
                let (count, name) = (object.elements, object.class_name.as_deref().unwrap());
                format!("ARR {id:x} (sz=*, trace={trace}, nelems={count}, elem type={name})\n")
            }
        };
        match object.kind {
            ObjectKind::Class => {
                let def = model.classes().iter().find(|def| def.id.0 == id).unwrap();
                let ids = [def.superclass.map_or(0, |class| class.0), def.loader, def.signers, def.domain];
                for (name, to) in
                    ["super", "loader", "signers", "domain"].iter().zip(ids).filter(|of| of.1 != 0)
                {
                    text += &format!("\t{name}\t\t{to:x}\n");
                }
                for (name, to) in &object.references {
                    text += &format!("\tstatic {name}\t{to:x}\n");
                }
                for (index, value) in &def.constants {
                    if let Value::Object(to @ 1..) = value {
                        text += &format!("\tconstant pool entry {index}\t{to:x}\n");
                    }
                }
            }
            ObjectKind::Instance => text += &fields_of(model, object.class.unwrap(), id),
            _ => {
                for (index, to) in &object.references {
                    text += &format!("\t{index}\t\t{to:x}\n");
                }
            }
        }
        blocks.insert(id, text);
    }
    blocks
}

/// The fields of an instance that are not null, those of the topmost superclass first. Above a class that is not dumped
/// nothing is known.
fn fields_of(model: &HeapModel, class: hprof_writer::ClassId, object: u64) -> String {
    let mut values = model.values(ObjectId(object)).unwrap().iter();
    let mut levels = Vec::new();
    for class in model.chain(class) {
        let def = model.class_def(class);
        if def.dumps == 0 {
            break;
        }
        let mut level = String::new();
        for (name, _) in &def.fields {
            if let Some(Value::Object(to @ 1..)) = values.next() {
                let tab = if name.len() < 8 { "\t" } else { "" };
                level += &format!("\t{name}\t{tab}{to:x}\n");
            }
        }
        levels.push(level);
    }
    levels.reverse();
    levels.concat()
}

proptest! {
    #![proptest_config(crate::kit::strategies::property(80))]

    #[test]
    fn generated_dumps_line_by_line(arb in strategies::dump()) {
        let model = arb.model();
        let (written, expected) = (model.write(&arb.options), model.expected());
        let heap = Dump::written(&written).open();
        let text = String::from_utf8(texts::convert(&heap)).unwrap();
        let (found, _) = masked(&text);
        let naive = Naive::read(&written.bytes());
        let heap_dump = found.find("SITES BEGIN").map_or(found.as_str(), |at| &found[..at]);
        let with_sites = naive.sections[..4].concat();
        let wanted = if naive.sites_are_recorded { found.split("CPU SAMPLES").next().unwrap() } else { heap_dump };
        let without_samples = wanted.split("CPU SAMPLES").next().unwrap();
        same_text("a generated dump", without_samples, &with_sites);
        if !naive.sections[4].is_empty() {
            prop_assert!(found.ends_with(&naive.sections[4]));
        }

        // And what was to be written, by the model.
        let (found, wanted) = (blocks(&found), blocks_of(&model, &expected));
        for (id, block) in &wanted {
            prop_assert_eq!(found.get(id), Some(block));
        }
        prop_assert_eq!(found.len(), wanted.len());
        prop_assert_eq!(text.matches("\nROOT ").count(), expected.root_list.len());
    }
}

/// Constructs that are rare in real dumps.
#[test]
fn what_is_missing_hostile_or_twice() {
    let mut model = HeapModel::default();
    let object = model.class("java.lang.Object", None, &[]);
    model.class("java.lang.Class", Some(object), &[]);
    let fields = [("first", Type::Object), ("count", Type::Int), ("a tab\there", Type::Object)];
    let top = model.class("a.Top", Some(object), &fields);
    let below = model.class("a.Below", Some(top), &[("own", Type::Object), ("ownLonger", Type::Object)]);
    let undumped = model.class("a.Undumped", Some(top), &[("lost", Type::Object)]);
    let unloaded = model.class("a.Unloaded", Some(object), &[]);
    let thrice = model.class("a.Thrice", Some(object), &[]);
    let hostile = model.class("evil\u{1b}[2J\nOBJ 1 (sz=8, trace=1, class=x@1)\u{202e}", Some(object), &[]);
    let unnamed = model.class("", Some(object), &[]);
    let target = model.instance(object, &[]);
    let [one, two] = [Value::Object(target.0), Value::NULL];
    model.instance(below, &[one, one, one, Value::Int(7), two]);
    model.instance(below, &[two, two, two, Value::Int(7), one]);
    model.instance(undumped, &[one, one, Value::Int(7), one]);
    for class in [unloaded, thrice, hostile, unnamed] {
        model.instance(class, &[]);
    }
    model.object_array(unloaded, &[target, ObjectId::NULL, target]);
    model.class_mut(undumped).dumps = 0;
    model.class_mut(unloaded).loads = 0;
    model.class_mut(thrice).dumps = 3;
    let statics = [("object", one), ("none", two), ("number", Value::Int(1)), ("a\rb", one)];
    model.class_mut(hostile).statics = statics.map(|(name, value)| (name.to_owned(), value)).to_vec();
    let def = model.class_mut(hostile);
    (def.loader, def.signers, def.domain) = (target.0, 0x51, 0xD0);
    model.class_mut(hostile).constants = vec![(3, one), (4, two), (65_535, one), (5, Value::Long(1))];
    for (id, root) in [
        (0xDEAD, Root::StickyClass),
        (0xDEAD, Root::Unknown),
        (0, Root::JniGlobal { reference: 0xFFFF_FFFF_FFFF_FFF0 }),
        (target.0, Root::StickyClass),
        (undumped.0, Root::StickyClass),
        (unloaded.0, Root::StickyClass),
        (hostile.0, Root::StickyClass),
        (target.0, Root::JniLocal { thread: u32::MAX, frame: -1 }),
        (target.0, Root::JavaFrame { thread: 1, frame: i32::MAX }),
        (target.0, Root::ThreadObject { thread: 1, trace: u32::MAX }),
        (target.0, Root::JniMonitor { thread: 2, depth: 3 }),
    ] {
        model.root(ObjectId(id), root);
    }
    let place = Folder::new();
    let dump = place.write("dump.hprof", model.write(&Options::hotspot()).bytes());
    let text = place.convert(&dump, &[]);
    assert!(text.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'));
    let (found, _) = masked(&text);
    let found = found.split_once("SITES BEGIN").unwrap().0;
    let naive = Naive::read(&std::fs::read(&dump).unwrap());
    same_text("a dump of oddities", found, &naive.sections.concat());

    // And without the naive reading: what is shown for each.
    let has = |text: String| assert!(found.contains(&text), "{text:?} is not in\n{found}");
    let (to, object) = (target.0, object.0);
    let name = "evil\\u001b[2J\\nOBJ 1 (sz=8, trace=1, class=x@1)\\u202e";
    has("(kind=<JNI global ref>, id=fffffffffffffff0, trace=0)\n".to_owned());
    has("ROOT dead (kind=<system class>, name=<unknown class>)\n".to_owned());
    has("ROOT dead (kind=<unknown>)\n".to_owned());
    has(format!("ROOT {to:x} (kind=<system class>, name=<unknown class>)\n"));
    has(format!("ROOT {:x} (kind=<system class>, name=a.Undumped)\n", undumped.0));
    has(format!("ROOT {:x} (kind=<system class>, name={name})\n", hostile.0));
    has(format!("ROOT {to:x} (kind=<JNI local ref>, thread=4294967295, frame=-1)\n"));
    has(format!("ROOT {to:x} (kind=<Java stack>, thread=1, frame=2147483647)\n"));
    has(format!("ROOT {to:x} (kind=<thread>, id=1, trace=4294967295)\n"));
    has(format!("ROOT {to:x} (kind=<JNI monitor>, thread=2, frame=3)\n"));
    has(format!(
        "class=a.Below@{:x})\n\tfirst\t\t{to:x}\n\town\t\t{to:x}\n\townLonger\t{to:x}\nOBJ",
        below.0
    ));
    has(format!("class=a.Below@{:x})\n\ta\\there\t{to:x}\nOBJ", below.0).replace("a\\there", "a tab\\there"));
    has(format!("trace=0, class=a.Undumped@{:x})\nOBJ", undumped.0));
    has(format!("trace=0, class=<class {:#x}>@{:x})\n", unloaded.0, unloaded.0));
    has(format!(
        "nelems=3, elem type=<class {:#x}>@{:x})\n\t[0]\t\t{to:x}\n\t[2]\t\t{to:x}\n",
        unloaded.0, unloaded.0
    ));
    has(format!(
        "CLS {:x} (name={name}, trace=0)\n\tsuper\t\t{object:x}\n\tloader\t\t{to:x}\n\tsigners\t\t51\n\t\
         domain\t\td0\n\tstatic object\t{to:x}\n\tstatic a\\rb\t{to:x}\n\
         \tconstant pool entry 3\t{to:x}\n\tconstant pool entry 65535\t{to:x}\nCLS",
        hostile.0
    ));
    assert_eq!(found.matches(&format!("CLS {:x} ", thrice.0)).count(), 1);
    assert!(!found.contains(&format!("CLS {:x} ", undumped.0)));
    assert_eq!(stated(&text).0, histo(&place, &dump).values().map(|(objects, _)| objects).sum::<u64>());
}

/// An array of 400,000 references, of which every third is null.
fn long_array(heap: &mut HeapWriter, id: u64) {
    let elements: Vec<u64> = (0..400_000).map(|at| if at % 3 == 0 { 0 } else { 0x2000 + at }).collect();
    heap.object_array(id, 1, 0x1000, &elements);
}

/// Some hundred kilobytes of small objects.
fn small_objects(heap: &mut HeapWriter, from: u64, count: u64) {
    for at in 0..count {
        heap.instance(from + 16 * at, 1, 0x1000, &[Value::Object(from), Value::Int(3)]);
    }
}

/// A file with the class of all objects here, and segments or one heap dump.
fn file_of(version: Version, id_size: IdSize, bodies: &[HeapWriter]) -> Vec<u8> {
    let mut out = DumpWriter::new(version, id_size).created_ms(1_700_000_000_000);
    for (id, text) in [(1, "a/Node"), (2, "next"), (3, "count"), (4, "java/lang/Class")] {
        out.string(id, text);
    }
    out.load_class(1, 0x1000, 0, 1);
    out.load_class(2, 0x1100, 0, 4);
    let tag = if version == Version::V1_0_2 { HeapTag::Segment } else { HeapTag::Dump };
    for body in bodies {
        out.heap_record(tag, StatedLength::Real, body);
    }
    if tag == HeapTag::Segment {
        out.heap_dump_end();
    }
    out.finish().bytes()
}

fn class_of_all(heap: &mut HeapWriter, id_size: IdSize) {
    let fields = [(2, Type::Object), (3, Type::Int)];
    heap.class_dump(&hprof_writer::ClassDump {
        id: 0x1000,
        instance_size: id_size.bytes() + 4,
        fields: &fields,
        ..hprof_writer::ClassDump::default()
    });
    heap.class_dump(&hprof_writer::ClassDump { id: 0x1100, ..hprof_writer::ClassDump::default() });
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn long_arrays_stand_in_one_piece_wherever_they_were() {
    for id_size in IdSize::ALL {
        // Alone, first, in the middle, last, and two in a row; each segment is over 1.5 MiB.
        let segments: Vec<HeapWriter> = [(0, 0, 2), (0, 1, 1), (1, 1, 1), (1, 0, 1), (3, 3, 2)]
            .into_iter()
            .zip(1u64..)
            .map(|((before, after, arrays), number)| {
                let mut heap = HeapWriter::new(id_size);
                let base = number << 28;
                if number == 1 {
                    class_of_all(&mut heap, id_size);
                }
                small_objects(&mut heap, base, before * 20_000);
                for array in 0..arrays {
                    long_array(&mut heap, base + 0x800_0000 + array * 0x100_0000);
                }
                small_objects(&mut heap, base + 0x400_0000, after * 20_000);
                heap
            })
            .collect();
        let mut giant = HeapWriter::new(id_size);
        for segment in &segments {
            giant.append(segment);
        }
        for (version, bodies) in [(Version::V1_0_2, &segments[..]), (Version::V1_0_1, &[giant.clone()])] {
            let bytes = file_of(version, id_size, bodies);
            let expected = Naive::read(&bytes).sections.concat();
            let heap = Dump::of(&bytes).open();
            let texts = [1, 2, 7].map(|threads| with_threads(threads, || texts::convert(&heap)));
            let (found, _) = masked(std::str::from_utf8(&texts[0]).unwrap());
            let found = found.split_once("SITES BEGIN").unwrap().0;
            same_text(&format!("{version:?} {id_size:?}"), found, &expected);
            assert_eq!(found.matches("\nARR ").count(), 7);
            assert!(texts[0] == texts[1] && texts[0] == texts[2], "threads change the text");
        }
    }
}
