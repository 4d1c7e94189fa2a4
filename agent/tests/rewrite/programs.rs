//! Java programs that count their own calls. They are compiled, rewritten, and run with a tracker that has a stack, which must
//! see exactly these calls, and an entry for each exit.

use crate::jdk::{Jdk, TempDir, class_files, jdks, rewrite_file};
use hprof_agent::rewrite::Tracker;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;

const TRACKER: Tracker<'_> = Tracker::new("TestTracker", "enter", "exit");

const SHARED: [(&str, &str); 3] = [
    ("TestTracker", include_str!("java/TestTracker.java")),
    ("Calls", include_str!("java/Calls.java")),
    ("Start", include_str!("java/Start.java")),
];

/// Results of running a program before and after rewriting.
struct Program {
    /// `Class.method` by method number.
    names: BTreeMap<u32, String>,
    skipped: BTreeSet<String>,
    counts: Counts,
}

/// Counts printed by a run of a program.
#[derive(Default)]
struct Counts {
    /// Calls that the program counted, by `Class.method`.
    calls: BTreeMap<String, u64>,
    /// Entries that the tracker counted, by number.
    entries: BTreeMap<u32, u64>,
    /// Number of constructors whose exit the tracker did not see.
    missed: u64,
}

/// Selection of the numbers that methods get.
#[derive(Clone, Copy, PartialEq)]
enum NumberSizes {
    /// Numbers of all sizes, so that every instruction that pushes an int is needed.
    OfAllSizes,
    /// Numbers less than 128.
    Small,
}

fn counts(output: &str) -> Counts {
    let mut counts = Counts::default();
    for line in output.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["call", name, count] => {
                counts.calls.insert(name.to_owned(), count.parse().unwrap());
            }
            ["enter", number, count] => {
                let number = number.parse::<i32>().unwrap().cast_unsigned();
                counts.entries.insert(number, count.parse().unwrap());
            }
            ["missed", count] => counts.missed = count.parse().unwrap(),
            _ => panic!("{line}"),
        }
    }
    counts
}

/// Compiles a program, runs it, rewrites it, and runs it again.
fn run(jdk: &Jdk, class: &str, source: &str, numbers: NumberSizes, compiler: &[&str]) -> Program {
    let dir = TempDir::new(&format!("{class}-{}{}", jdk.version, compiler.len()));
    let mut arguments = compiler.to_vec();
    let (plain, rewritten) = (dir.text("plain"), dir.text("rewritten"));
    arguments.extend(["-nowarn", "-d", &plain]);
    let mut files = Vec::new();
    for (name, text) in SHARED.iter().copied().chain([(class, source)]) {
        let file = dir.join(&format!("{name}.java"));
        fs::write(&file, text).unwrap();
        files.push(file.to_str().unwrap().to_owned());
    }
    arguments.extend(files.iter().map(String::as_str));
    jdk.run("javac", &arguments);
    let before = counts(&jdk.run("java", &["-cp", &plain, "Start", class]));
    assert!(before.entries.is_empty() && before.calls.values().any(|&count| count > 0));

    let mut names = BTreeMap::new();
    let mut skipped = BTreeSet::new();
    let mut index = 0;
    for file in class_files(&dir.join("plain")) {
        let target = dir.join("rewritten").join(file.file_name().unwrap());
        let result = rewrite_file(&file, &target, &TRACKER, &mut |method| {
            let class = str::from_utf8(method.class).unwrap();
            if SHARED.iter().any(|(shared, _)| *shared == class) {
                return None;
            }
            assert!(method.source_file.is_some_and(|file| file.ends_with(b".java")));
            assert!(method.first_line.is_some_and(|line| line > 0));
            let name = str::from_utf8(method.name).unwrap();
            let bridge = if method.access_flags & 0x0040 == 0 { "" } else { "(bridge)" };
            let blocks = [0, 1000, 100_000, 0x9000_0000];
            let block = if numbers == NumberSizes::Small { 0 } else { blocks[index as usize % 4] };
            let number = block + index * 2 + u32::from(name == "<init>");
            index += 1;
            names.insert(number, format!("{class}.{name}{bridge}"));
            Some(number)
        })
        .unwrap();
        skipped.extend(result.skipped.iter().map(|number| names[number].clone()));
    }
    let after = counts(&jdk.run("java", &["-Xverify:all", "-cp", &rewritten, "Start", class]));
    assert_eq!(after.calls, before.calls, "what the program counts does not depend on being rewritten");
    Program { names, skipped, counts: after }
}

impl Program {
    /// Returns the number of entries by `Class.method`.
    fn entries(&self) -> BTreeMap<&str, u64> {
        let mut entries = BTreeMap::new();
        for (number, count) in &self.counts.entries {
            *entries.entry(self.names[number].as_str()).or_default() += count;
        }
        entries
    }

    /// Checks that the tracker saw the calls that the program counted, and otherwise only calls of methods that a compiler
    /// generates.
    fn check(&self, uncounted: &[&str]) {
        let mut entries = self.entries();
        for (name, &count) in &self.counts.calls {
            if !self.skipped.contains(name) {
                assert_eq!(entries.remove(name.as_str()), Some(count), "{name}");
            }
        }
        for name in entries.keys() {
            let method = name.split('.').next_back().unwrap();
            let of_compiler = method.starts_with("lambda$") || method.ends_with("(bridge)");
            assert!(of_compiler || uncounted.contains(&method), "{name}: {}", entries[name]);
        }
    }
}

#[test]
fn every_construct() {
    let locals: String = (0..300).fold(String::new(), |mut text, index| {
        write!(text, "int l{index} = {index}; ").unwrap();
        text
    });
    let source = include_str!("java/Constructs.java").replace("LOCALS", &(locals + "int wideLocal = 10;"));
    for jdk in jdks("every_construct") {
        for compiler in [&["-g"][..], &["-g:source,lines", "--release", "17"]] {
            let program = run(&jdk, "Constructs", &source, NumberSizes::OfAllSizes, compiler);
            // Not in the source, or marked in it as not counted.
            program
                .check(&["spin", "x", "y", "equals", "toString", "values", "$values", "<clinit>", "<init>"]);
            assert!(program.skipped.is_empty());
            // Failing: 1 after and 1 before its super constructor, 9 and 8, 5; Outer and Outer.Inner; Point.
            assert_eq!(program.counts.missed, 8);
            let entries = program.entries();
            assert_eq!(entries["Constructs.spin"], 1, "the loop back to offset 0 enters once");
            assert_eq!(entries["Constructs.recursive"], 11);
            assert_eq!(entries["Constructs.thrower"], 10);
            assert_eq!(entries["Constructs$Failing.<init>"], 6);
        }
    }
}

#[test]
fn switches_over_patterns() {
    for jdk in jdks("switches_over_patterns").iter().filter(|jdk| jdk.version >= 21) {
        let source = include_str!("java/Patterns.java");
        let program = run(jdk, "Patterns", source, NumberSizes::OfAllSizes, &["-g"]);
        program.check(&["value", "left", "right", "<init>"]);
        assert!(program.skipped.is_empty());
        assert_eq!(program.entries()["Patterns.sum"], 3);
    }
}

/// Returns a method with `count` returns in a loop. Each takes 11 bytes, 16 where the compiler writes
/// `goto_w` because the loop is longer than 32 KiB, and becomes 5 bytes longer.
fn ladder(name: &str, count: u32) -> String {
    let mut text = format!("static int {name}(int n) {{ Calls.here(); for (;;) {{\n");
    for n in 0..count {
        let n = n + 1000;
        writeln!(text, "if (n == {n}) return {n};").unwrap();
    }
    writeln!(text, "n -= {count}; }} }}").unwrap();
    text
}

#[test]
fn long_methods() {
    let ladders = [("fits", 1900), ("branchTooLong", 2500), ("wideBranch", 3000), ("codeTooLong", 4000)];
    let mut source =
        String::from("public final class Long implements Runnable { public Long() { Calls.here(); }\n");
    source += "public void run() { Calls.here();\n";
    for (name, count) in ladders {
        let (n, expected) = (1005 + count, 1005);
        writeln!(source, "if ({name}({n}) != {expected}) throw new AssertionError(\"{name}\");").unwrap();
    }
    source += "}\n";
    for (name, count) in ladders {
        source += &ladder(name, count);
    }
    source += "}\n";
    for jdk in jdks("long_methods") {
        let program = run(&jdk, "Long", &source, NumberSizes::Small, &["-g"]);
        program.check(&[]);
        let skipped: Vec<&str> = program.skipped.iter().map(String::as_str).collect();
        assert_eq!(skipped, ["Long.branchTooLong", "Long.codeTooLong"]);
        assert_eq!(program.entries()["Long.fits"], 1);
        assert_eq!(program.entries()["Long.wideBranch"], 1);
    }
}
