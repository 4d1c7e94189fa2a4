//! Waste that a program planted (`samples/leaks/src/S6Waste.java`), and the independent reading of `docs/waste/check.py`.

use std::process::Command;

use crate::kit::dump::Dump;
use crate::kit::texts::sample_path;

use super::Waste;

/// Waste planted in s6: kind, field, count, bytes. Sizes are those of the JVM: 12 bytes of header, references of 4
/// bytes, all rounded up to 8.
const PLANTED: [(&str, &str, u64, u64); 8] = [
    ("duplicate_strings", "waste.Row.currency", 29_995, 29_995 * (24 + 24)),
    ("empty_collections", "waste.S6Waste.emptyMaps", 5000, 5000 * (48 + 80)),
    ("sparse_collections", "waste.S6Waste.sparseLists", 3000, 3000 * (416 - 24)),
    ("single_element_collections", "waste.S6Waste.sparseLists", 3000, 3000 * (24 + 416)),
    ("boxed_numbers", "waste.S6Waste.boxedLists", 20_000, 20_000 * 16),
    ("duplicate_arrays", "waste.S6Waste.equalBytes", 499, 499 * 1016),
    ("constant_arrays", "waste.S6Waste.zeroInts", 200, 200 * 4016),
    ("zero_length_arrays", "waste.S6Waste.zeroLength", 300, 300 * 16),
];

#[test]
#[ignore = "needs dumps that are not in the repository: HPROF_CLI_LEAK_DUMPS names their directory"]
fn planted_waste_is_found() {
    let dir = std::env::var_os("HPROF_CLI_LEAK_DUMPS").expect("HPROF_CLI_LEAK_DUMPS names a directory");
    let waste = Waste::of(&Dump::at(Some(&std::path::Path::new(&dir).join("s6.hprof.zst"))));
    for (kind, field, count, bytes) in PLANTED {
        assert_eq!(waste.field(kind, field), (count, bytes), "{kind} {field}");
    }
    // 40 bytes, 32 without three null references, 24 without an int that is zero.
    let of = |field: &str| waste.field("constant_fields", &format!("waste.Customer.{field}"));
    assert_eq!(of("fax").1 + of("pager").1 + of("telex").1, 4000 * 8);
    assert_eq!(of("loyaltyPoints"), (4000, 4000 * 8));
    assert_eq!(waste.sum("constant_fields"), (4000, 4000 * 16));
}

#[test]
#[ignore = "needs python3, and takes minutes"]
fn an_independent_reading_says_the_same() {
    for (name, options) in [
        ("jdk/jdk17.hprof.zst", &[][..]),
        ("jdk/jdk11.hprof.zst", &["--classic"]),
        ("jdk/jdk25-compact.hprof.zst", &["--header", "8", "--array-base", "12"]),
        ("leaks/s1.hprof.zst", &[]),
        ("leaks/s5.hprof.zst", &[]),
    ] {
        let packed = std::fs::File::open(sample_path(name)).unwrap();
        let unpacked = zstd::decode_all(packed).unwrap();
        let dump = Dump::of(&unpacked);
        let answer = dump.path.with_extension("json");
        std::fs::write(&answer, dump.run(&["waste", "-q", "--format", "json"]).stdout).unwrap();
        let sizes = dump.path.with_extension("csv");
        std::fs::write(&sizes, dump.run(&["dominators", "-q", "--all", "--format", "csv"]).stdout).unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/waste/check.py");
        let mut check = Command::new("python3");
        check
            .arg(script)
            .arg(&dump.path)
            .arg("--sizes")
            .arg(&sizes)
            .arg("--compare")
            .arg(&answer)
            .args(options);
        let output = check.output().expect("python3 runs");
        assert!(
            matches!(output.status.code(), Some(0 | 1)),
            "{name}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        // Known differences: docs/waste.md.
        let known = [
            "java.lang.Object[]",
            "unreachable",
            "total",
            "free nothing",
            "VThreadContinuation",
            "HeapZoo$A",
            "Layouts$Deep1",
        ];
        let known = |line: &&str| !known.iter().any(|known| line.contains(known));
        let said = String::from_utf8(output.stdout).unwrap();
        let differences: Vec<&str> = said.lines().filter(known).collect();
        assert!(differences.len() <= 3, "{name}: {differences:#?}");
    }
}
