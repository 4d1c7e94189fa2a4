//! All classes of some modules of a JDK, rewritten, verified by the JVM, and used by it; and those of any
//! JAR files. This takes long, so it runs only on request: `HPROF_AGENT_JARS=DIR cargo test --release -p
//! hprof-agent --test rewrite modules -- --ignored --nocapture`.

use crate::jdk::{Jdk, TempDir, class_files, jdks, rewrite_file};
use hprof_agent::rewrite::{Tracker, rewrite};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const TRACKER: Tracker<'_> = Tracker::new("java/lang/HprofTracker", "enter", "exit");

const MODULES: [&str; 6] =
    ["java.base", "java.xml", "java.compiler", "java.logging", "jdk.compiler", "jdk.zipfs"];

/// Rewrites the classes of all modules in `from` to `to`; returns the names of the classes.
fn rewrite_modules(from: &Path, to: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let mut next = 0;
    for module in MODULES {
        let root = from.join(module);
        let mut bytes = 0;
        let mut methods = 0;
        let mut skipped = 0;
        let mut new_bytes = 0;
        let mut time = Duration::ZERO;
        for file in class_files(&root) {
            let path = file.strip_prefix(&root).unwrap();
            let name = path.to_str().unwrap().strip_suffix(".class").unwrap().replace('/', ".");
            if name == "module-info" {
                continue;
            }
            names.push(name);
            let class = fs::read(&file).unwrap();
            let start = Instant::now();
            let rewritten = rewrite(&class, &TRACKER, &mut |_| {
                next += 1;
                Some(next - 1)
            });
            time += start.elapsed();
            let rewritten = rewritten.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            bytes += class.len();
            methods += rewritten.methods;
            skipped += rewritten.skipped.len();
            let new = rewritten.bytes.unwrap_or(class);
            new_bytes += new.len();
            let target = to.join(module).join(path);
            fs::create_dir_all(target.parent().unwrap()).unwrap();
            fs::write(target, new).unwrap();
        }
        let rate = bytes as f64 / 1e6 / time.as_secs_f64();
        eprintln!(
            "{module}: {methods} methods, {skipped} skipped, {bytes} bytes, then {new_bytes}, {time:?}, {rate:.0} MB/s"
        );
        assert!(methods > 0);
    }
    names
}

fn check(jdk: &Jdk) {
    let dir = TempDir::new(&format!("modules-{}", jdk.version));
    eprintln!("JDK {}", jdk.version);
    let image = jdk.home.join("lib/modules");
    let include = format!("regex:/({})/.*", MODULES.join("|"));
    let plain = dir.text("plain");
    jdk.run("jimage", &["extract", "--dir", &plain, "--include", &include, image.to_str().unwrap()]);
    let names = rewrite_modules(&dir.join("plain"), &dir.join("rewritten"));
    fs::write(dir.join("names"), names.join("\n")).unwrap();

    let source = |name: &str, text: &str| {
        fs::write(dir.join(name), text).unwrap();
        dir.text(name)
    };
    let tracker = source("HprofTracker.java", include_str!("java/HprofTracker.java"));
    let load_all = source("LoadAll.java", include_str!("java/LoadAll.java"));
    let counted = source("Counted.java", include_str!("java/Counted.java"));
    let base = dir.text("rewritten/java.base");
    let programs = dir.text("programs");
    let sources = format!("java.base={}", dir.text("."));
    jdk.run("javac", &["--patch-module", &sources, "-d", &base, &tracker]);
    jdk.run("javac", &["-d", &programs, &load_all, &counted]);

    let patches: Vec<String> = MODULES
        .iter()
        .flat_map(|module| {
            ["--patch-module".to_owned(), format!("{module}={}", dir.text(&format!("rewritten/{module}")))]
        })
        .collect();
    let run = |options: &[&str], arguments: &[&str]| {
        let mut all: Vec<&str> = options.to_vec();
        all.extend(["--add-modules", "ALL-SYSTEM", "-cp", &programs]);
        all.extend(arguments);
        jdk.run("java", &all)
    };
    let mut options: Vec<&str> = vec!["-Xverify:all"];
    options.extend(patches.iter().map(String::as_str));

    let loaded = run(&options, &["LoadAll", &dir.text("names")]);
    eprintln!("{}", loaded.lines().last().unwrap());
    assert_eq!(loaded, run(&["-Xverify:all"], &["LoadAll", &dir.text("names")]));
    assert_eq!(loaded.lines().last(), Some(format!("linked {}", names.len()).as_str()));

    let out = run(&options, &["Counted"]);
    let lines: Vec<&str> = out.lines().collect();
    let [one @ .., entered, left] = lines.as_slice() else { panic!("{out}") };
    assert_eq!(one, ["0 0+2.5+x", "1 1+2.5+x", "2 2+2.5+x", "3 3+2.5+x"]);
    eprintln!("{entered}, {left}");
    let number = |line: &str, word| line.strip_prefix(word).unwrap().parse::<f64>().unwrap();
    // Entries without an exit are methods on the stacks of threads, and constructors that throw. Threads that count
    // concurrently lose a few counts.
    let (entered, left) = (number(entered, "entered "), number(left, "left "));
    assert!(entered > 100_000.0 && (entered - left).abs() / entered < 0.01, "{entered} {left}");

    let compiled = dir.text("compiled");
    run(&options, &["com.sun.tools.javac.Main", "-d", &compiled, &counted, &load_all]);
    assert_eq!(
        fs::read(dir.join("compiled/Counted.class")).unwrap(),
        fs::read(dir.join("programs/Counted.class")).unwrap(),
        "what the rewritten compiler writes"
    );
}

#[test]
#[ignore = "half a minute, some hundred megabytes of files"]
fn modules() {
    for jdk in jdks("modules") {
        check(&jdk);
    }
}

/// Every class of every JAR file in `HPROF_AGENT_JARS` can be linked after rewriting, or fails for the same reason as before.
#[test]
#[ignore = "needs a directory of JAR files in HPROF_AGENT_JARS"]
fn jars() {
    let jars = std::env::var_os("HPROF_AGENT_JARS").expect("HPROF_AGENT_JARS is a directory of JAR files");
    let mut jars: Vec<_> = fs::read_dir(jars)
        .unwrap()
        .map(|entry| fs::canonicalize(entry.unwrap().path()).unwrap())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jar"))
        .collect();
    jars.sort();
    jars.dedup();
    for jdk in jdks("jars") {
        let dir = TempDir::new(&format!("jars-{}", jdk.version));
        let programs = dir.text("programs");
        for (name, text) in [
            ("LoadAll.java", include_str!("java/LoadAll.java")),
            ("TestTracker.java", include_str!("java/TestTracker.java")),
        ] {
            fs::write(dir.join(name), text).unwrap();
            jdk.run("javac", &["-d", &programs, &dir.text(name)]);
        }
        let mut linked = 0;
        let mut versions = BTreeMap::new();
        for (index, jar) in jars.iter().enumerate() {
            linked += check_jar(&jdk, &dir, index, jar, &mut versions);
        }
        eprintln!(
            "JDK {}: {} JAR files, {linked} classes linked, of versions {versions:?}",
            jdk.version,
            jars.len()
        );
    }
}

/// Checks one JAR file; returns the number of its classes that can be linked.
fn check_jar(
    jdk: &Jdk,
    dir: &TempDir,
    index: usize,
    jar: &Path,
    versions: &mut BTreeMap<u8, usize>,
) -> usize {
    let root = dir.join(&index.to_string());
    let (plain, new) = (root.join("plain"), root.join("new"));
    fs::create_dir_all(&plain).unwrap();
    let unpacked = Command::new(jdk.home.join("bin/jar")).arg("xf").arg(jar).current_dir(&plain).status();
    assert!(unpacked.unwrap().success(), "{}", jar.display());
    let tracker = Tracker::new("TestTracker", "enter", "exit");
    let mut names = Vec::new();
    let mut next = 0;
    for file in class_files(&plain) {
        let path = file.strip_prefix(&plain).unwrap();
        let name = path.to_str().unwrap().strip_suffix(".class").unwrap().replace('/', ".");
        if name.starts_with("META-INF") || name == "module-info" {
            continue;
        }
        let result = rewrite_file(&file, &new.join(path), &tracker, &mut |_| {
            next += 1;
            Some(next)
        });
        let result = result.unwrap_or_else(|error| panic!("{} {name}: {error}", jar.display()));
        if !result.skipped.is_empty() {
            eprintln!("{} {name}: {} skipped", jar.display(), result.skipped.len());
        }
        let version = fs::read(&file).unwrap()[7];
        *versions.entry(version).or_default() += 1;
        names.push(name);
    }
    if names.is_empty() {
        return 0;
    }
    fs::write(root.join("names"), names.join("\n")).unwrap();
    let load = |classes: &Path| {
        // The other JAR files contain dependencies of its classes.
        let others = jar.parent().unwrap().display();
        let path = format!("{}:{}:{others}/*", dir.text("programs"), classes.display());
        let names = root.join("names");
        jdk.run("java", &["-Xverify:all", "-cp", &path, "LoadAll", names.to_str().unwrap()])
    };
    let (loaded, before) = (load(&new), load(&plain));
    for (after, before) in loaded.lines().zip(before.lines()) {
        assert_eq!(after, before, "{}", jar.display());
    }
    fs::remove_dir_all(&root).unwrap();
    loaded.lines().last().unwrap().strip_prefix("linked ").unwrap().parse().unwrap()
}
