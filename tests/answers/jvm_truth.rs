//! Real dumps against what others say of them: sizes against the histogram of the JVM that was dumped, layouts against
//! its flags, counts against an independent reader.

use hprof_cli::ObjectIndex;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::kit::dump::{self, Dump};
use hprof_index::layout::fit::LayoutSource;
use hprof_index::layout::object_layout::{Layout, Packing};
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::summary::Summary;
use hprof_writer::Type;

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples")
}

/// The files of a folder whose names contain `part`, as paths below `samples/`.
fn files(folder: &str, part: &str) -> Vec<String> {
    let entries = fs::read_dir(samples().join(folder)).unwrap().map(|entry| entry.unwrap());
    // Samples that were used have their index beside them.
    let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
    let names = files.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> =
        names.filter(|name| name.contains(part)).map(|name| format!("{folder}/{name}")).collect();
    names.sort();
    names
}

/// Dumps with the JVM's histogram beside them: path of the dump, name of the sample.
fn jdk_dumps() -> Vec<(PathBuf, String)> {
    let name = |file: &str| file.trim_start_matches("jdk/").split('.').next().unwrap().to_owned();
    let dumps: Vec<_> =
        files("jdk", ".hprof").iter().map(|file| (samples().join(file), name(file))).collect();
    assert_eq!(dumps.len(), 12, "a sample came or went: say so here");
    dumps
}

fn beside(name: &str, kind: &str) -> String {
    fs::read_to_string(samples().join(format!("jdk/{name}.{kind}.txt"))).unwrap()
}

/// `[[B` to `byte[][]`; the JVM's histogram has dots already.
fn source_name(name: &str) -> String {
    let element = name.trim_start_matches('[');
    let dimensions = name.len() - element.len();
    let letters = ["Z", "C", "F", "D", "B", "S", "I", "J"];
    let element = match letters.iter().position(|letter| dimensions > 0 && *letter == element) {
        Some(at) => Type::PRIMITIVES[at].java_name(),
        None if dimensions > 0 => element.strip_prefix('L').and_then(|e| e.strip_suffix(';')).unwrap(),
        None => element,
    };
    format!("{element}{}", "[]".repeat(dimensions))
}

/// Instances and bytes by class name.
type Table = BTreeMap<String, (u64, u64)>;

/// `GC.class_histogram`: rows of number, instances, bytes and name. Classes of one name are added up.
fn jvm_histogram(text: &str) -> Table {
    let mut table = Table::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [number, instances, bytes, name, ..] = words[..] else { continue };
        if number.ends_with(':') && number.trim_end_matches(':').parse::<u32>().is_ok() {
            let row = table.entry(source_name(name)).or_default();
            row.0 += instances.parse::<u64>().unwrap();
            row.1 += bytes.parse::<u64>().unwrap();
        }
    }
    table
}

/// The library's answer, classes of one name added up; `java.lang.Class` with all class objects.
fn histogram(summary: &Summary) -> Table {
    let sizes = Sizes::new(summary, None);
    let mut table = Table::new();
    for (number, class) in summary.numbered_classes() {
        let row = table.entry(summary.class_name(class).to_owned()).or_default();
        row.0 += class.objects.get();
        row.1 += sizes.total(number);
    }
    if let Some(row) = table.get_mut("java.lang.Class") {
        row.0 += summary.facts().class_objects.get();
    }
    table.retain(|_, (instances, _)| *instances > 0);
    table
}

/// Result of comparing two tables.
#[derive(Debug, Default)]
struct Compared {
    /// Classes whose sizes were compared.
    fixed: usize,
    arrays: usize,
    /// Classes with the same number of instances in both.
    same_counts: usize,
    wrong: Vec<String>,
}

fn compare(ours: &Table, jvm: &Table) -> Compared {
    let mut compared = Compared::default();
    for (name, (count, bytes)) in ours {
        // Hidden classes are spelled otherwise; java.lang.Class has a test of its own.
        if name.contains("0x") || name == "java.lang.Class" {
            continue;
        }
        let Some((jvm_count, jvm_bytes)) = jvm.get(name) else { continue };
        let varies = name.ends_with("[]") || name == "jdk.internal.vm.StackChunk";
        compared.same_counts += usize::from(count == jvm_count);
        // Histogram and dump are taken a moment apart: the counts of a few classes differ.
        let right = if varies {
            if count != jvm_count {
                continue;
            }
            compared.arrays += 1;
            bytes == jvm_bytes
        } else {
            compared.fixed += 1;
            bytes * jvm_count == jvm_bytes * count
        };
        if !right {
            compared.wrong.push(format!("{name}: {count} of {bytes} bytes, JVM {jvm_count} of {jvm_bytes}"));
        }
    }
    compared
}

#[test]
fn sizes_are_those_of_the_jvm() {
    for (path, name) in jdk_dumps() {
        let heap = Dump::sample(&path).open();
        let compared = compare(&histogram(heap.summary()), &jvm_histogram(&beside(&name, "class_histogram")));
        assert_eq!(compared.wrong, Vec::<String>::new(), "{name}");
        let zoo = fs::metadata(&path).unwrap().len() > 800_000 && name != "jdk17-gz";
        let all = compared.fixed + compared.arrays;
        assert!(all > if zoo { 300 } else { 260 }, "{name}: only {all} compared");
        assert!(compared.fixed > 200 && compared.arrays > 45, "{name}: {compared:?}");
        assert!(compared.same_counts * 100 >= all * 95, "{name}: {} of {all}", compared.same_counts);
        assert!(!heap.summary().is_damaged(), "{name}: {}", dump::problems(heap.summary()));
    }
}

#[test]
fn class_objects_are_as_large_as_in_the_jvm() {
    for (path, name) in jdk_dumps() {
        let heap = Dump::sample(&path).open();
        let (count, bytes) = histogram(heap.summary())["java.lang.Class"];
        let (jvm_count, jvm_bytes) = jvm_histogram(&beside(&name, "class_histogram"))["java.lang.Class"];
        let (each, jvm_each) = (bytes as f64 / count as f64, jvm_bytes as f64 / jvm_count as f64);
        // With class data sharing the JVM counts mirrors of archived classes too, that were never loaded: they are
        // not in the dump, and smaller than others.
        let same_classes = count.abs_diff(jvm_count) * 100 <= jvm_count;
        let bound = if same_classes { 0.01 } else { 0.015 };
        let off = (each / jvm_each - 1.0).abs();
        assert!(off <= bound, "{name}: {count} of {each:.2} bytes, JVM {jvm_count} of {jvm_each:.2}");
    }
}

/// The layout that follows from the flags of `VM.flags` and the version in the sample's name.
fn layout_of(name: &str) -> Layout {
    let flags = beside(name, "flags");
    let on = |flag: &str| flags.contains(&format!("-XX:+{flag} "));
    let off = |flag: &str| flags.contains(&format!("-XX:-{flag} "));
    let version: u32 = name
        .trim_start_matches("jdk")
        .chars()
        .take_while(char::is_ascii_digit)
        .collect::<String>()
        .parse()
        .unwrap();
    let (header_bytes, array_base_bytes) = if on("UseCompactObjectHeaders") {
        (8, 12)
    } else if off("UseCompressedClassPointers") {
        (16, 24)
    } else {
        (12, 16)
    };
    Layout {
        reference_bytes: if off("UseCompressedOops") { 8 } else { 4 },
        header_bytes,
        array_base_bytes,
        alignment_bytes: if flags.contains("-XX:ObjectAlignmentInBytes=16 ") { 16 } else { 8 },
        word_bytes: 8,
        packing: if version < 15 { Packing::Classic } else { Packing::Dense },
    }
}

#[test]
fn layouts_are_those_of_the_flags() {
    let mut seen = Vec::new();
    for (path, name) in jdk_dumps() {
        let heap = Dump::sample(&path).open();
        let fit = Sizes::new(heap.summary(), None).fit;
        assert_eq!(fit.layout, layout_of(&name), "{name}: {:?}", fit.evidence);
        assert_eq!((fit.source, fit.sizes_stated), (LayoutSource::Distances, false), "{name}");
        assert!(fit.evidence.classes_exact >= 150, "{name}: {:?}", fit.evidence);
        seen.push(fit.layout.to_string());
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 7, "{seen:?}");
}

/// Counts per class of all samples: dump, class, objects. They were made once by a slow, independent reader (in
/// another language), with `java.lang.Class` as class dumps plus instances of it.
fn reference_counts() -> BTreeMap<String, BTreeMap<String, u64>> {
    let packed = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/reference_counts.tsv.zst"));
    let text = String::from_utf8(zstd::decode_all(packed.unwrap().as_slice()).unwrap()).unwrap();
    let mut tables: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for line in text.lines() {
        let [dump, class, count] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let table = tables.entry(dump.to_owned()).or_default();
        *table.entry(class.to_owned()).or_default() += count.parse::<u64>().unwrap();
    }
    tables
}

/// The suffix of hidden classes begins with `+0x` in dumps, and may be shown with `/0x`.
fn one_spelling(name: &str) -> String {
    name.replace("/0x", "+0x")
}

#[test]
fn counts_are_those_of_an_independent_reader() {
    let reference = reference_counts();
    let mut compared = (0, 0u64);
    for file in ["jdk", "agent", "public"].iter().flat_map(|folder| files(folder, ".hprof")) {
        let heap = Dump::sample(&samples().join(&file)).open();
        let mut ours: BTreeMap<String, u64> = BTreeMap::new();
        for (name, (count, _)) in histogram(heap.summary()) {
            *ours.entry(one_spelling(&name)).or_default() += count;
        }
        // Dumps without a heap have no rows.
        let wanted = reference.get(&file).cloned().unwrap_or_default();
        let differ: Vec<_> = (wanted.keys().chain(ours.keys()))
            .filter(|class| wanted.get(*class) != ours.get(*class))
            .map(|class| format!("{class}: {:?}, not {:?}", ours.get(class), wanted.get(class)))
            .collect();
        assert_eq!(differ, Vec::<String>::new(), "{file}");
        compared = (compared.0 + wanted.len(), compared.1 + wanted.values().sum::<u64>());
    }
    assert_eq!(compared, (6691, 1_228_541), "classes and objects compared");
}

/// Every object of a dump has its place, and the places are those of its records.
#[test]
fn all_objects_of_real_dumps_are_found_again() {
    let every_kind =
        ["jdk/jdk8", "jdk/jdk17-zgc", "jdk/jdk17-gz", "jdk/jdk25-align16", "agent/all.", "public/"];
    let all: Vec<String> = ["jdk", "agent", "public"].iter().flat_map(|f| files(f, ".hprof")).collect();
    let reference = reference_counts();
    for file in all.iter().filter(|file| every_kind.iter().any(|start| file.starts_with(start))) {
        let dump = Dump::sample(&samples().join(file));
        let (heap, graph) = dump.open_graph();
        let objects = &graph.objects;
        let bytes = dump::bytes(&heap);
        let summary = heap.summary();
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        let mut last = None;
        for index in 0..objects.len() {
            let id = objects.addresses.id_of(ObjectIndex(index)).unwrap();
            assert_eq!(objects.addresses.index_of(id), Some(ObjectIndex(index)), "{file} {id:#x}");
            assert!(last.is_none_or(|last| last < id), "{file} {id:#x}");
            last = Some(id);
            let at = objects.offset(bytes, summary.id_size(), ObjectIndex(index)).unwrap() as usize;
            assert!(matches!(bytes[at], 0x20..=0x23 | 0xC3), "{file} {id:#x} at {at:#x}");
            let width = summary.id_size().bytes();
            let there = bytes[at + 1..at + 1 + width].iter().fold(0, |id, byte| (id << 8) | u64::from(*byte));
            assert_eq!(there, id.0, "{file} at {at:#x}");
            let class = summary.class(objects.class(ObjectIndex(index)).unwrap()).unwrap();
            *counts.entry(one_spelling(summary.class_name(class))).or_default() += 1;
        }
        assert_eq!(Some(&counts), reference.get(file), "{file}");
    }
}
