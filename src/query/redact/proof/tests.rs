//! Search for texts with too small filters and memory for a few windows: the result must be the same.

use hprof_index::{Heap, ObjectGraph, Options, Quiet};
use hprof_writer::{HeapModel, Jdk, Layout, Root};

use super::super::{DumpBytes, Key, Plan, RedactOptions, kept_values_of_file, redact};
use super::texts::anywhere_in_parts;
use hprof_index::Dump;

const TEXTS: u32 = 300;

fn text(number: u32) -> String {
    format!("{} of the customers {} and {}", number * 7919, number * 104_729, number ^ 0x5555)
}

fn dump() -> Vec<u8> {
    let mut model = HeapModel::new(Layout::COMPRESSED);
    let jdk = Jdk::add_to(&mut model);
    let texts: Vec<_> = (0..TEXTS).map(|number| jdk.string(&mut model, &text(number))).collect();
    let all = model.object_array(jdk.object_array, &texts);
    model.root(all, Root::JniGlobal { reference: 1 });
    model.root_boot_classes();
    model.write(&hprof_writer::Options::hotspot()).bytes().to_vec()
}

/// Opens a dump.
fn opened(dir: &std::path::Path, name: &str, bytes: &[u8]) -> (Heap, ObjectGraph) {
    let path = dir.join(name);
    std::fs::write(&path, bytes).unwrap();
    let options = Options { index_dir: Some(dir.join("index")), ..Options::default() };
    Heap::open_graph(&path, &options, &Quiet).unwrap()
}

#[test]
fn full_filters_and_little_memory_miss_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let original = dump();
    let plan = Plan::read(DumpBytes::Mapped(&original, &mut |_| ()), &[]).unwrap();
    let options = RedactOptions::default();
    let kept = kept_values_of_file(&plan, &options, &original);
    let mut out = Vec::new();
    let from = DumpBytes::Mapped(&original, &mut |_| ());
    redact(&plan, &kept, &options, Key::new([7; 32]), from, &mut out, &|_| ()).unwrap();
    let a = opened(dir.path(), "in.hprof", &original);
    let find = |name: &str, bytes: &[u8], parts: u64, amount: u64, max_windows: usize| {
        let b = opened(dir.path(), name, bytes);
        let [a, b] = [&a, &b].map(|(heap, graph)| Dump::new(heap, graph).unwrap());
        anywhere_in_parts(&plan, &kept, (&a, &b), parts, amount, max_windows).differences
    };
    // One text at the offset of another.
    let place = |text: &str| original.windows(text.len()).position(|part| part == text.as_bytes()).unwrap();
    let (found, at) = (text(17), place(&text(290)));
    let mut one = out.clone();
    one[at..at + found.len()].copy_from_slice(found.as_bytes());
    let windows = found.len() as u64 - 15;
    for (parts, amount, max_windows) in [(1, 1 << 20, 1 << 20), (1, 1, 1 << 20), (5, 1, 500), (1, 1, 2500)] {
        let name = format!("{parts}-{amount}-{max_windows}");
        let find = |name: &str, bytes| find(name, bytes, parts, amount, max_windows);
        assert_eq!(find(&format!("out-{name}"), &out), 0, "{name}");
        let found = find(&format!("one-{name}"), &one);
        // A failure may end the search.
        assert!(
            found > 0 && found <= windows && (max_windows < 1 << 20 || found == windows),
            "{name}: {found}"
        );
        assert!(find(&format!("copy-{name}"), &original) > 100, "{name}");
    }
}
