use hprof_model::framework_rules::numbers;
use hprof_model::objects::hiding::fields as fields_list;
use hprof_model::objects::hiding::fields::FieldTreatment;
use std::collections::HashMap;
use std::fs;

use hprof_values::BasicType;

use super::contents::{BlockChain, ContentMapping, Treatment};
use super::kept::{KeptReason, KeptValues};
use super::symbol::class_of;
use hprof_base::keyed::{Key, STREAM_BYTES, Stream};

fn contents(seed: u8) -> ContentMapping {
    ContentMapping::new(Key::new([seed; 32]))
}

fn mapped(
    contents: &ContentMapping,
    kept: &KeptValues,
    kind: BasicType,
    data: &[u8],
) -> (Vec<u8>, Treatment) {
    let size = kind.dump_bytes(hprof_values::IdSize::Eight);
    let mut chain = BlockChain::new((data.len() / size) as u64, data.len() as u64);
    let mut out = data.to_vec();
    let treatment = contents.array(kept, kind, &mut chain, &mut out);
    (out, treatment)
}

/// All arrays of two bytes, and a part of those of three.
#[test]
fn short_arrays_are_permuted() {
    let contents = contents(1);
    let mut kept = KeptValues::default();
    for text in ["a", "ab", "zz", "abc"] {
        kept.add(text, KeptReason::FieldName);
    }
    let mut seen = HashMap::new();
    let mut check = |data: &[u8]| {
        let (out, treatment) = mapped(&contents, &kept, BasicType::Byte, data);
        let class = |byte: &u8| (*byte == 0, *byte < 0x80);
        assert!(out.iter().map(class).eq(data.iter().map(class)));
        let is_repeated = |data: &[u8]| data.iter().all(|byte| *byte == data[0]);
        assert_eq!(is_repeated(&out), is_repeated(data));
        assert_eq!(out == data && treatment == Treatment::Kept, kept.contains(BasicType::Byte, data));
        let before = seen.insert(out, data.to_vec());
        assert!(before.as_ref().is_none_or(|before| before == data), "{data:?} {before:?}");
    };
    for a in 0..=255 {
        check(&[a]);
        for b in 0..=255 {
            check(&[a, b]);
        }
    }
    for a in 0..=255 {
        for b in 90..130 {
            check(&[b'a', a, b]);
            check(&[b, 0, a]);
        }
    }
}

#[test]
fn arrays_of_all_types_and_lengths_keep_their_form() {
    let contents = contents(2);
    let kept = KeptValues::default();
    for kind in BasicType::PRIMITIVES {
        let size = kind.dump_bytes(hprof_values::IdSize::Eight);
        for length in [1, 2, 3, 15, 16, 17, 31, 32, 33, 34, 63, 64, 65, 1000] {
            let mut images = HashMap::new();
            for variant in 0..40_u64 {
                let mut data = Vec::new();
                for at in 0..length as u64 {
                    // One element differs between the variants.
                    let value = if at == variant % length as u64 { at + 2 * variant + 1 } else { at * 7 };
                    let value = if kind == BasicType::Boolean { value & 1 } else { value };
                    data.extend_from_slice(&value.to_be_bytes()[8 - size..]);
                }
                let (out, _) = mapped(&contents, &kept, kind, &data);
                let mut elements = data.chunks(size).zip(out.chunks(size));
                // Zeros and ones can be exchanged.
                assert!(
                    kind == BasicType::Boolean
                        || elements.all(|(a, b)| a.iter().all(|x| *x == 0) == b.iter().all(|x| *x == 0))
                );
                let before = images.insert(out, data.clone());
                assert!(before.is_none_or(|before| before == data), "{kind:?} {length}");
            }
        }
    }
}

/// Bytes are permuted eight at a time, and numbers by tables: all others of the class differ.
#[test]
fn many_short_texts_and_numbers_are_permuted() {
    let (contents, kept) = (contents(7), KeptValues::default());
    let mut seen = HashMap::new();
    for length in [5, 8, 9, 16, 17, 31, 32] {
        for number in 0..3000_u32 {
            let mut data = vec![0x61 + (number % 2) as u8 * 0x80; length];
            data[length - 5..].copy_from_slice(format!("{number:05}").as_bytes());
            let (out, _) = mapped(&contents, &kept, BasicType::Byte, &data);
            assert!(out.iter().zip(&data).all(|(out, byte)| *out != 0 && (*out < 0x80) == (*byte < 0x80)));
            assert_eq!(seen.insert(out, data), None);
        }
    }
    // Each byte value is about equally frequent at each position.
    let first: std::collections::HashSet<u8> = seen.keys().map(|text| text[0]).collect();
    assert_eq!(first.len(), 255);
    for (kind, base) in [(BasicType::Int, 0_u64), (BasicType::Int, 1 << 31), (BasicType::Float, 0x3f80_0000)]
    {
        let images = (1..100_000).map(|at| contents.number(kind, base + at, 77));
        let images: std::collections::HashSet<u64> = images.collect();
        assert_eq!(images.len(), 99_999);
        assert!(images.iter().all(|image| image >> 31 == base >> 31 && image << 33 != 0));
    }
}

#[test]
fn unused_ends_stay_unused_and_the_same_key_gives_the_same() {
    let kept = KeptValues::default();
    let data = [b"password=hunter2".as_slice(), &[0; 100]].concat();
    let (out, _) = mapped(&contents(3), &kept, BasicType::Byte, &data);
    assert!(out[..16].iter().all(|byte| (1..128).contains(byte)));
    assert_eq!(out[16..], [0; 100]);
    assert_eq!(mapped(&contents(3), &kept, BasicType::Byte, &data).0, out);
    assert_ne!(mapped(&contents(4), &kept, BasicType::Byte, &data).0, out);
}

#[test]
fn numbers_are_permuted_within_their_class() {
    let contents = contents(5);
    for kind in [BasicType::Short, BasicType::Int, BasicType::Long] {
        let bits = 8 * kind.dump_bytes(hprof_values::IdSize::Eight) as u32;
        let mask = u64::MAX >> (64 - bits);
        let signed = |value: u64| (value << (64 - bits)).cast_signed() >> (64 - bits);
        let mut seen = HashMap::new();
        for value in -300_i64..300 {
            let value = value.cast_unsigned() & mask;
            let boxed = contents.box_value(kind, value, 0);
            assert_eq!(seen.insert(boxed, value), None);
            let is_cached = |value| (-128..=127).contains(&signed(value));
            assert_eq!(is_cached(boxed), is_cached(value), "{kind:?} {value:x} {boxed:x}");
            assert_eq!(signed(boxed).signum(), signed(value).signum());
            let plain = contents.number(kind, value, 7);
            assert_eq!(signed(plain).signum(), signed(value).signum());
        }
    }
    for value in [0.0_f64, -0.0, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(contents.number(BasicType::Double, value.to_bits(), 7), value.to_bits());
    }
    assert!(f64::from_bits(contents.number(BasicType::Double, f64::NAN.to_bits(), 7)).is_nan());
    let finite = f64::from_bits(contents.number(BasicType::Double, 1.5_f64.to_bits(), 7));
    assert!(finite.is_finite() && finite > 0.0);
}

/// draft-strombergson-chacha-test-vectors-01: TC1, 256-bit key, 8 rounds. Words of the blocks are interleaved here.
#[test]
fn the_key_stream_is_that_of_chacha8() {
    let mut out = [0; STREAM_BYTES];
    Stream::new(&Key::new([0; 32]), [0, 0]).fill(&mut out);
    let words: Vec<&[u8]> = out.chunks(16).map(|lanes| &lanes[..4]).take(4).collect();
    let expected = [
        [0x3e, 0x00, 0xef, 0x2f],
        [0x89, 0x5f, 0x40, 0xd6],
        [0x7f, 0x5b, 0xb8, 0xe8],
        [0x1f, 0x09, 0xa5, 0xa1],
    ];
    assert_eq!(words, expected);
}

/// Large arrays are mapped block by block.
#[test]
fn blocks_of_a_large_array_depend_on_those_before() {
    let (contents, kept) = (contents(6), KeptValues::default());
    let block: Vec<u8> = (0..1000_u32).map(|at| (at % 100 + 1) as u8).collect();
    let map = |first: &[u8]| {
        let mut chain = BlockChain::new(2000, u64::MAX);
        let (mut a, mut b) = (first.to_vec(), block.clone());
        contents.array(&kept, BasicType::Byte, &mut chain, &mut a);
        contents.array(&kept, BasicType::Byte, &mut chain, &mut b);
        (a, b)
    };
    let mut other = block.clone();
    other[500] += 1;
    assert_ne!(map(&block).1, map(&other).1);
    assert_ne!(map(&block).0, map(&block).1);
}

/// Names of numeric fields and statics of the JDK and of Android that the sources and the rules about frameworks
/// read: each is in the list, so a new one fails. Classes of frameworks are checked by the test heaps of their rules
/// (`frameworks::made`).
#[test]
fn fields_that_the_analyser_reads_are_in_the_list() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let samples = root.parent().unwrap().join("samples");
    let dumps = ["jdk/jdk8", "jdk/jdk17", "jdk/jdk25", "public/android-leak_service_binder"];
    let mut fields = std::collections::BTreeSet::new();
    for name in dumps {
        let path = samples.join(format!("{name}.hprof.zst"));
        let dir = tempfile::tempdir().unwrap();
        let source = crate::recover::RecoverSource::open(&path, dir.path(), &hprof_index::Quiet).unwrap();
        let plan = super::Plan::read(super::DumpBytes::Stream(&mut source.bytes()), &[]).unwrap();
        fields.extend(plan.numeric_fields.iter().cloned());
    }
    let numeric: std::collections::HashSet<&str> = fields.iter().map(|(_, field)| field.as_str()).collect();
    // Names of fields, or of all fields of a class.
    let known: std::collections::HashSet<&str> = fields
        .iter()
        .filter(|(class, field)| fields_list::is_known(class, field))
        .map(|(_, field)| field.as_str())
        .collect();
    assert!(
        numeric.len() > 500 && numeric.contains("MAX_MEMORY") && numeric.contains("threadStatus"),
        "{}",
        numeric.len()
    );
    let list = &*fields_list::FIELDS;
    let is_listed = |name: &str| {
        known.contains(name)
            || list.shown.contains(&name)
            || list.kept.iter().any(|rule| rule.fields.contains(&name))
            || numbers::numbers_by_file().iter().any(|rules| rules.fields.contains(name))
    };
    let mut missing = std::collections::BTreeSet::new();
    let mut dirs: Vec<_> = ["index/objects", "index/scan", "query/model", "query/analyses", "query/tables"]
        .iter()
        .map(|dir| root.join(dir))
        .collect();
    let read_field = regex::Regex::new(r"[a-z]\.([a-zA-Z_][A-Za-z0-9_]*)").unwrap();
    let literal = regex::Regex::new(r#""([a-zA-Z_][A-Za-z0-9_]*)""#).unwrap();
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let is_made = path.to_str().unwrap().contains("frameworks/made");
            if path.is_dir() || is_made {
                dirs.extend(path.is_dir().then_some(path));
                continue;
            }
            let name = path.file_name().unwrap().to_str().unwrap();
            if name.ends_with(".toml") && path.to_str().unwrap().contains("framework_rules/rules") {
                let text = fs::read_to_string(&path).unwrap();
                for found in read_field.captures_iter(&text) {
                    if numeric.contains(&found[1]) && !is_listed(&found[1]) {
                        missing.insert(format!("{}: {}", path.display(), &found[1]));
                    }
                }
            }
            // Words of languages and of names, which are no fields that are read.
            let is_of_words = path.ends_with("objects/bound_names.rs")
                || ["analyses/containers/", "analyses/oql/", "model/secret_rules/"]
                    .iter()
                    .any(|folder| path.to_str().unwrap().contains(folder));
            if !name.ends_with(".rs")
                || name == "tests.rs"
                || path.ends_with("hiding/fields.rs")
                || is_of_words
            {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("\nmod tests {").next().unwrap();
            for found in literal.captures_iter(code) {
                if numeric.contains(&found[1]) && !is_listed(&found[1]) {
                    missing.insert(format!("{}: {}", path.display(), &found[1]));
                }
            }
        }
    }
    assert!(missing.is_empty(), "in neither list of kept_fields.txt: {missing:#?}");
}

/// The list in the documentation equals the list in use.
#[test]
fn the_list_is_in_the_documentation() {
    use std::fmt::Write as _;
    const START: &str = "<!-- numbers that stay: made by src/query/redact/tests.rs -->\n";
    const END: &str = "<!-- end of the numbers that stay -->\n";
    let mut table = String::from(
        "\n| class | fields | only in instances of | for | result computed from it |\n|---|---|---|---|---|\n",
    );
    let joined = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    for rule in &fields_list::FIELDS.kept {
        let note = match rule.kind {
            fields_list::KeptKind::Needed => "",
            fields_list::KeptKind::Finer => " (finer)",
            fields_list::KeptKind::Held => " (the counter in it)",
        };
        let (fields, instances) = (joined(&rule.fields), joined(&rule.instances));
        writeln!(
            table,
            "| `{}` | {fields}{note} | {instances} | {} | {} |",
            rule.class, rule.commands, rule.answer
        )
        .unwrap();
    }
    table.push_str("\n| framework | classes | fields, if they are numbers or booleans | counters in |\n|---|---|---|---|\n");
    for rules in numbers::numbers_by_file() {
        let texts = |names: &std::collections::BTreeSet<String>, end: &str| {
            names.iter().map(|name| format!("`{name}{end}`")).collect::<Vec<_>>().join(", ")
        };
        if rules.packages.is_empty() || rules.fields.is_empty() {
            continue;
        }
        let (packages, fields) = (texts(&rules.packages, "*"), texts(&rules.fields, ""));
        writeln!(table, "| {} | {packages} | {fields} | {} |", rules.framework, texts(&rules.counters, ""))
            .unwrap();
    }
    table.push('\n');
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).unwrap();
    let path = root.join("docs/redact.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(START).expect("the start of the list");
    let (present, after) = rest.split_once(END).expect("the end of the list");
    if std::env::var_os("HPROF_CLI_BLESS").is_some() {
        fs::write(&path, [before, START, &table, END, after].concat()).unwrap();
    } else {
        assert!(present == table, "docs/redact.md is stale: `HPROF_CLI_BLESS=1 cargo test` rewrites it");
    }
}

/// Numbers of the program do not stay in its own classes, nor in unlisted fields of the JDK and of frameworks.
#[test]
fn numbers_stay_only_in_listed_fields() {
    let stays = |class: &str, field: &str, kind: BasicType| {
        let treatment = fields_list::treatment(class, field, kind).in_instance(0, false);
        treatment == FieldTreatment::Stays
    };
    for (class, field) in [
        ("com.acme.Account", "size"),
        ("com.acme.Account", "count"),
        ("com.acme.Account", "LIMIT"),
        ("com.acme.Account", "limitMillis"),
        ("java.util.concurrent.atomic.AtomicLong", "value"),
        ("java.util.concurrent.atomic.AtomicInteger", "value"),
        ("java.util.concurrent.atomic.AtomicBoolean", "value"),
        ("java.util.concurrent.atomic.Striped64", "base"),
        ("java.util.concurrent.atomic.Striped64$Cell", "value"),
        ("java.util.concurrent.locks.AbstractQueuedSynchronizer", "state"),
        ("java.util.concurrent.locks.AbstractQueuedLongSynchronizer", "state"),
        ("java.util.concurrent.Phaser", "state"),
        ("java.util.concurrent.CountDownLatch$Sync", "state"),
        ("java.util.concurrent.locks.StampedLock", "state"),
        ("java.util.Vector", "capacityIncrement"),
        ("java.util.HashMap", "threshold"),
        ("java.nio.Buffer", "position"),
        ("java.nio.Buffer", "limit"),
        ("java.nio.Buffer", "mark"),
        ("java.nio.Buffer", "capacity"),
        ("java.io.StringReader", "next"),
        ("java.io.PushbackInputStream", "pos"),
        ("java.lang.Enum", "ordinal"),
        ("org.apache.commons.text.StrBuilder", "size"),
        ("org.apache.kafka.clients.Metadata", "updateVersion"),
    ] {
        assert!(!stays(class, field, BasicType::Long), "{class} {field}");
    }
    let worker = fields_list::instance_rules("java.util.concurrent.ThreadPoolExecutor$Worker");
    let state = fields_list::treatment(
        "java/util/concurrent/locks/AbstractQueuedSynchronizer",
        "state",
        BasicType::Int,
    );
    assert_eq!(state.in_instance(worker, false), FieldTreatment::Stays);
    assert_eq!(state.in_instance(worker, true), FieldTreatment::Mapped);
    let semaphore = fields_list::instance_rules("java.util.concurrent.Semaphore$NonfairSync");
    assert_eq!(state.in_instance(semaphore, false), FieldTreatment::Mapped);
    assert!(stays("java.util.ArrayList", "size", BasicType::Int));
    assert!(stays("java.util.concurrent.FutureTask", "state", BasicType::Int));
    assert!(stays("com.acme.Account", "isOpen", BasicType::Boolean));
    let is_open = fields_list::treatment("com.acme.Account", "isOpen", BasicType::Boolean);
    assert_eq!(is_open.in_instance(0, true), FieldTreatment::Mapped);
}

/// Zeros and ones are permuted: each array of up to 12 elements has a different image, and hardly any is mapped to
/// itself.
#[test]
fn arrays_of_booleans_are_permuted() {
    let (contents, kept) = (contents(8), KeptValues::default());
    for length in [1_u32, 2, 3, 5, 12] {
        let mut images = HashMap::new();
        let mut same = 0;
        for number in 0..1_u32 << length {
            let data: Vec<u8> = (0..length).map(|at| (number >> at & 1) as u8).collect();
            let (out, treatment) = mapped(&contents, &kept, BasicType::Boolean, &data);
            let is_plain = |data: &[u8]| data.iter().all(|value| *value == data[0]);
            assert_eq!(is_plain(&out), is_plain(&data));
            assert_eq!(treatment == Treatment::Nothing, is_plain(&data));
            same += u32::from(out == data && !is_plain(&data));
            assert_eq!(images.insert(out, data), None);
        }
        assert!(length < 12 || same < 10, "{same} of {length}");
    }
    let long: Vec<u8> = (0..1000_u32).map(|at| u8::from(at % 3 == 0)).collect();
    let (out, _) = mapped(&contents, &kept, BasicType::Boolean, &long);
    let ones = out.iter().filter(|value| **value == 1).count();
    assert!(out.iter().all(|value| *value < 2) && (400..600).contains(&ones), "{ones}");
    let hostile: Vec<u8> = [7, 0, 200].repeat(20);
    assert!(mapped(&contents, &kept, BasicType::Boolean, &hostile).0.iter().all(|value| *value < 2));
}

/// Numeric keys by the rules of `secrets` never stay.
#[test]
fn numbers_that_are_secrets_do_not_stay() {
    let rules = include_str!("../model/secret_rules/rules/structure.toml");
    let quoted = regex::Regex::new(r#""([^"]+)""#).unwrap();
    let lists = regex::Regex::new(r#"(?m)^(class|fields) = (\[[^\]]*\]|"[^"]*")"#).unwrap();
    let mut checked = 0;
    for rule in rules.split("\n[[held]]").skip(1) {
        let texts = |key: &str| -> Vec<&str> {
            let list = lists.captures_iter(rule).find(|list| &list[1] == key);
            let list = list.map_or("", |list| list.get(2).unwrap().as_str());
            quoted.captures_iter(list).map(|text| text.get(1).unwrap().as_str()).collect()
        };
        for class in texts("class") {
            for field in texts("fields") {
                let class = class.trim_end_matches('*');
                let treatment = fields_list::treatment(class, field, BasicType::Long);
                assert!(
                    !matches!(treatment, FieldTreatment::Stays | FieldTreatment::Finer),
                    "{class} {field}"
                );
                checked += 1;
            }
        }
    }
    assert!(checked > 100, "{checked}");
}

#[test]
fn a_known_number_tells_nothing_of_other_fields() {
    let contents = contents(3);
    let (one, other) = (contents.offset(1), contents.offset(2));
    let same = (1..10_000).filter(|at| {
        let images = [
            contents.number(BasicType::Int, *at, one),
            contents.number(BasicType::Int, *at, other),
            contents.hash(BasicType::Int, *at, 0),
            contents.box_value(BasicType::Int, *at, 0),
        ];
        (0..4).any(|a| (0..a).any(|b| images[a] == images[b]))
    });
    // Only by chance, within the cache of boxes.
    assert!(same.count() < 10);
    // The largest offsets stay in the class.
    for offset in [0, 1, u64::MAX, i64::MAX as u64, 1 << 63] {
        for (kind, value) in
            [(BasicType::Int, 5), (BasicType::Long, 5), (BasicType::Long, u64::MAX), (BasicType::Byte, 200)]
        {
            let image = contents.number(kind, value, offset);
            assert_eq!(class_of(kind, image), class_of(kind, value), "{kind:?} {value} {offset}");
        }
    }
}
