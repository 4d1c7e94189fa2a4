//! Building and asking with little memory: the same index, byte by byte, and a refusal with numbers where it cannot work.

use hprof_cli::ObjectIndex;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::kit::dump::Dump;
use crate::kit::portion;
use hprof_writer::{HeapModel, Options, Order, Root};

/// A dump of many small objects that refer to one another here and there, of which some are reachable; with an array
/// that is longer than what is looked up at once, and objects to which many refer.
fn model(objects: u32) -> HeapModel {
    let mut model = HeapModel::default();
    let object = model.class("java.lang.Object", None, &[]);
    let node = model.class(
        "Node",
        Some(object),
        &[("left", hprof_writer::Type::Object), ("right", hprof_writer::Type::Object)],
    );
    let nodes = model.array_class(node);
    let mut state = 1u64;
    let mut all = Vec::new();
    for at in 0..objects {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let other = |shift: u32| match all.len() {
            0 => hprof_writer::ObjectId::NULL,
            len => all[(state >> shift) as usize % len],
        };
        let right = if at % 3 == 0 {
            all.first().copied().unwrap_or(hprof_writer::ObjectId::NULL)
        } else {
            other(20)
        };
        all.push(model.instance(node, &[other(33).into(), right.into()]));
    }
    // Some twice, and none.
    let mut elements: Vec<_> = all.iter().rev().copied().chain(all.iter().step_by(7).copied()).collect();
    elements.push(hprof_writer::ObjectId::NULL);
    let array = model.object_array(nodes, &elements);
    model.root(all[all.len() - 5], Root::Unknown);
    model.root(array, Root::JniGlobal { reference: 1 });
    model
}

/// Runs `hprof-cli index` with an index directory of its own.
fn index(dump: &Path, dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
    command.arg("index").arg(dump).arg("--index-dir").arg(dir).args(arguments);
    command.env_remove("HPROF_CLI_MEMORY").env_remove("HPROF_CLI_INDEX_DIR").output().unwrap()
}

/// All files of an index.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let dirs = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let files = dirs.flat_map(|dir| std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()));
    files.map(|file| (file.file_name().unwrap().into(), std::fs::read(&file).unwrap())).collect()
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn the_index_is_the_same_in_any_memory_with_any_threads() {
    let model = model(150_000);
    for order in [Order::ClassesFirst, Order::Shuffled(3)] {
        let written = model.write(&Options { order, ..Options::hotspot() });
        let dump = Dump::written(&written);
        let dir = tempfile::tempdir().unwrap();
        let built = |name: &str, arguments: &[&str]| {
            let dir = dir.path().join(name);
            let output = index(&dump.path, &dir, arguments);
            assert_eq!(output.status.code(), Some(0), "{name}: {}", String::from_utf8_lossy(&output.stderr));
            files(&dir)
        };
        let usual = built("usual", &[]);
        assert!(usual.keys().any(|name| name == Path::new("dominators")), "{:?}", usual.keys());
        // The first leaves next to nothing for arrays, so that they lie in files.
        for (memory, threads) in [
            ("30MB", "1"),
            ("34MB", "1"),
            ("1GB", "1"),
            ("44MB", "2"),
            ("1GB", "2"),
            ("80MB", "5"),
            ("1GB", "5"),
        ] {
            let name = format!("{memory}, {threads} threads");
            assert!(built(&name, &["--threads", threads, "--memory", memory]) == usual, "{name}");
        }
    }
}

#[test]
fn what_cannot_work_is_refused_with_numbers() {
    let dump = Dump::written(&model(1000).write(&Options::hotspot()));
    let dir = tempfile::tempdir().unwrap();
    let refused = index(&dump.path, dir.path(), &["--memory", "1MB"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(2), 0), "{said}");
    let numbers =
        said.contains("more memory is needed, but only 0 B is available (limited by the memory budget)");
    assert!(numbers && said.contains("hint: raise --memory"), "{said}");
    // An empty variable is as good as none.
    let mut command = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
    command.arg("index").arg(&dump.path).arg("--index-dir").arg(dir.path()).env("HPROF_CLI_MEMORY", "");
    assert_eq!(command.output().unwrap().status.code(), Some(0));
    let mut command = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
    command.arg("index").arg(&dump.path).env("HPROF_CLI_INDEX_DIR", "");
    assert_eq!(command.output().unwrap().status.code(), Some(0));
    // An empty option is a slip.
    let refused = index(&dump.path, Path::new(""), &[]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && said.contains("expected a directory"), "{said}");
    let name = format!("{}.index", dump.path.file_name().unwrap().to_str().unwrap());
    assert!(dump.path.with_file_name(name).join("summary").is_file());
}

#[test]
fn an_estimate_tells_what_there_is_and_builds_nothing() {
    let dump = Dump::written(&model(20_000).write(&Options::hotspot()));
    let dir = tempfile::tempdir().unwrap();
    let ask = |arguments: &[&str]| {
        let output =
            index(&dump.path, dir.path(), &[&["--estimate", "--format", "json"], arguments].concat());
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code().unwrap(), json["rows"][0].clone())
    };
    let (code, row) = ask(&[]);
    // 20,000 nodes, an array, three classes; all pieces of a small dump are looked at.
    assert_eq!((code, &row["objects"], &row["is_counted"]), (0, &20_004.into(), &false.into()), "{row}");
    assert_eq!((&row["is_fitting"], &row["is_built"]), (&true.into(), &false.into()));
    assert_eq!(row["dump_bytes"].as_u64().unwrap(), std::fs::metadata(&dump.path).unwrap().len());
    assert_eq!(row["scratch_most_bytes"], 0);
    assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none(), "nothing is written");
    let (code, row) = ask(&["--memory", "1MB"]);
    assert_eq!((code, &row["is_fitting"], &row["memory_limit"]), (1, &false.into(), &"--memory".into()));
    assert_eq!(index(&dump.path, dir.path(), &[]).status.code(), Some(0));
    let (code, row) = ask(&["--memory", "1MB"]);
    assert_eq!((code, &row["is_built"], &row["is_counted"]), (0, &true.into(), &true.into()), "{row}");
}

/// Runs a command under a limit of the shell.
#[cfg(target_os = "linux")]
fn limited(limit: &str, arguments: &[&str]) -> Output {
    let script = format!("ulimit {limit}; exec \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_hprof-cli")]).args(arguments);
    command.env_remove("HPROF_CLI_MEMORY").output().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_limit_of_data_is_obeyed() {
    let dump = Dump::written(&model(400_000).write(&Options::hotspot()));
    let (path, dir) = (dump.path.to_str().unwrap(), tempfile::tempdir().unwrap());
    let usual = dir.path().join("usual");
    assert_eq!(index(&dump.path, &usual, &[]).status.code(), Some(0));
    // Its arrays alone would take 35 MB.
    let small = dir.path().join("small");
    let run = limited("-d 49152", &["index", path, "--index-dir", small.to_str().unwrap(), "--threads", "1"]);
    assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
    assert!(files(&small) == files(&usual));
    let asked = limited("-d 49152", &["paths-to-root", path, "Node", "--index-dir", small.to_str().unwrap()]);
    assert_eq!(asked.status.code(), Some(0), "{}", String::from_utf8_lossy(&asked.stderr));
    let refused = limited("-d 8192", &["index", path, "--index-dir", dir.path().join("x").to_str().unwrap()]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && said.contains("limited by ulimit -d"), "{said}");
}

/// Where mapped files count, it works or names the obstacle.
#[cfg(target_os = "linux")]
#[test]
fn a_limit_of_addresses_is_an_error_with_a_way_out() {
    let dump = Dump::written(&model(200_000).write(&Options::hotspot()));
    let (path, dir) = (dump.path.to_str().unwrap(), tempfile::tempdir().unwrap());
    let packed = concat!(env!("CARGO_MANIFEST_DIR"), "/samples/jdk/jdk17.hprof.zst");
    // The program's own needs vary: with less memory it does not start, which it cannot help.
    let starts = (30..400)
        .step_by(2)
        .find(|megabytes| limited(&format!("-v {}", megabytes * 1000), &["--version"]).status.success());
    let starts = starts.expect("it starts");
    let mut codes = Vec::new();
    // Threads, the maps of files and what is built fail in turn. From a few hundred on, the allocator's 64 MiB for each
    // thread decide.
    for megabytes in (starts..starts + 20).step_by(4).chain([starts + 40, 800]) {
        let index = dir.path().join(megabytes.to_string());
        let limit = format!("-v {}", megabytes * 1000);
        for dump in [path, packed] {
            let run =
                limited(&limit, &["index", dump, "--index-dir", index.to_str().unwrap(), "--threads", "2"]);
            let said = String::from_utf8_lossy(&run.stderr).into_owned();
            // When the last pages are used up, any small allocation may fail and end the process: the program's, or one of
            // the C library for a thread that begins.
            let is_small = ["memory allocation of", "register TLS destructor: out of memory"]
                .iter()
                .any(|text| said.contains(text));
            if run.status.code().is_none() && megabytes < starts + 20 && is_small {
                continue;
            }
            let code = run.status.code().unwrap_or_else(|| panic!("{limit}, {dump}: {}: {said}", run.status));
            let is_told =
                said.contains("ulimit -v") && !said.contains("damaged") && !said.contains("panicked");
            assert!(code == 0 || (code == 2 && is_told), "{limit}, {dump}: {code}: {said}");
            codes.push(code);
        }
    }
    assert!(codes.contains(&2) && codes.last() == Some(&0), "{codes:?}");
}

/// Dumps of millions of the same small record, which packs a thousand times.
#[cfg(target_os = "linux")]
const LONG_TABLES: &[&str] =
    &["roots", "strings", "locals", "repeated", "segments", "threads", "traces", "classes"];

/// Returns a dump of [`LONG_TABLES`] as gzip.
#[cfg(target_os = "linux")]
fn long_table(name: &str) -> Vec<u8> {
    const ROWS: usize = 4_000_000;
    let mut model = HeapModel::default();
    let object = model.class("java.lang.Object", None, &[]);
    let thread = model.class("java.lang.Thread", Some(object), &[]);
    let id = model.instance(object, &[]).0.to_be_bytes();
    let start = model.write(&Options { end: hprof_writer::EndRecord::Missing, ..Options::hotspot() }).bytes();
    let record = |tag: u8, body: &[u8]| {
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        [&[tag, 0, 0, 0, 0][..], &length, body].concat()
    };
    let root = [&[0xff][..], &id].concat();
    let local = [&[0x03][..], &id, &[0, 0, 0, 1, 0, 0, 0, 0]].concat();
    let many = |row: &[u8]| record(0x1c, &row.repeat(40_000)).repeat(ROWS / 40_000);
    let end = record(0x2c, &[]);
    let cut = [&[0x1c, 0, 0, 0, 0][..], &1000u32.to_be_bytes(), &[0x21, 0, 0]].concat();
    let packed_to = |middle: Vec<u8>, end: &[u8]| {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        [&start[..], &middle, end].iter().for_each(|part| std::io::Write::write_all(&mut out, part).unwrap());
        out.finish().unwrap()
    };
    let packed = |middle: Vec<u8>| packed_to(middle, &end);
    // Objects of no fields: ID and class of each.
    let objects = |rows: usize, of: &dyn Fn(u64) -> (u64, u64)| {
        let object = |at: usize| {
            let (id, class) = of(at as u64);
            [&[0x21][..], &id.to_be_bytes(), &[0; 4], &class.to_be_bytes(), &[0; 4]].concat()
        };
        let segment = |from: usize| record(0x1c, &(from..from + 40_000).flat_map(object).collect::<Vec<_>>());
        (0..rows).step_by(40_000).flat_map(segment).collect::<Vec<u8>>()
    };
    let id_at = |at: u64| (1 << 40) + at * 16;
    match name {
        "roots" => packed(many(&root)),
        "locals" => packed(many(&local)),
        "segments" => packed(record(0x1c, &root).repeat(ROWS)),
        "strings" => packed(record(0x01, &id).repeat(ROWS)),
        "traces" => packed(record(0x05, &[0; 12]).repeat(ROWS)),
        "threads" => packed_to(objects(ROWS, &|at| (id_at(at), thread.0)), &cut),
        "repeated" => packed(objects(2 * ROWS, &|_| (id_at(0), object.0))),
        "classes" => packed(objects(ROWS / 4, &|at| (id_at(at), (1 << 50) + at * 16))),
        _ => panic!("{name}"),
    }
}

/// The kernel gives no more than twice the budget, and a little: what was taken beyond ended the process by a signal.
#[cfg(target_os = "linux")]
#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn tables_as_long_as_the_file_says_keep_within_the_budget() {
    for name in portion::samples(LONG_TABLES) {
        let (dump, dir) = (Dump::of(&long_table(name)), tempfile::tempdir().unwrap());
        let run = |memory: &str, limit: &str, command: &str| {
            let arguments =
                [command, dump.path.to_str().unwrap(), "--index-dir", dir.path().to_str().unwrap()];
            limited(limit, &[&arguments[..], &["--threads", "2", "--memory", memory]].concat())
        };
        for command in ["histo", "index"] {
            let refused = run("80MB", "-d 130000", command);
            let said = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert_eq!(refused.status.code(), Some(2), "{command}, {name}: {}: {said}", refused.status);
            let numbers =
                said.contains("more memory is needed") && said.contains("limited by the memory budget");
            assert!(numbers && said.contains("hint: raise --memory"), "{command}, {name}: {said}");
        }
        // Nothing is wrong with it otherwise.
        let output = run("1GB", "-d 1000000", "histo");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(matches!(output.status.code(), Some(0 | 3)), "{name}: {}: {said}", output.status);
    }
}

#[cfg(target_os = "linux")]
#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn tables_as_long_as_the_file_says_are_refused_under_a_limit_of_addresses() {
    for name in portion::samples(LONG_TABLES) {
        let (dump, dir) = (Dump::of(&long_table(name)), tempfile::tempdir().unwrap());
        let mut codes = Vec::new();
        for megabytes in [300, 400, 500, 1500] {
            let limit = format!("-v {}", megabytes * 1000);
            let arguments = ["index", dump.path.to_str().unwrap(), "--threads", "2", "--index-dir"];
            let run = limited(&limit, &[&arguments[..], &[dir.path().to_str().unwrap()]].concat());
            let said = String::from_utf8_lossy(&run.stderr).into_owned();
            let code = run.status.code().unwrap_or_else(|| panic!("{name}, {limit}: {}: {said}", run.status));
            assert!(code != 2 || said.contains("ulimit -v"), "{name}, {limit}: {said}");
            codes.push(code);
        }
        assert!(codes.contains(&2) && matches!(codes.last(), Some(0 | 3)), "{name}: {codes:?}");
    }
}

/// Rows of a long table are written while they are made: all of these would take more than the limit.
#[cfg(all(target_os = "linux", feature = "sql"))]
#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn a_table_of_any_length_takes_the_memory_of_a_part() {
    const OBJECTS: u32 = 250_000;
    let dump = Dump::written(&model(OBJECTS).write(&Options::hotspot()));
    let dir = tempfile::tempdir().unwrap();
    let (path, index_dir) = (dump.path.to_str().unwrap(), dir.path().to_str().unwrap());
    assert_eq!(index(&dump.path, dir.path(), &[]).status.code(), Some(0));
    let values = "SELECT o.@objectId AS id, o.@displayName AS name FROM INSTANCEOF java.lang.Object o";
    for (command, query) in [
        ("sql", "SELECT * FROM objects"),
        ("oql", values),
        ("oql", "SELECT * FROM INSTANCEOF java.lang.Object"),
    ] {
        let run = |top: &str| {
            let arguments = [command, path, query, "--top", top, "--index-dir", index_dir, "--threads", "2"];
            // A test build on a busy machine may take its time.
            let more = if command == "sql" { &["--time-limit", "0"][..] } else { &[] };
            let output = limited("-d 90000", &[&arguments[..], more].concat());
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(0), "{query}, {top}: {}: {said}", output.status);
            String::from_utf8(output.stdout).unwrap()
        };
        let all = run("0");
        let rows = all.lines().count() - 1;
        assert!(rows > OBJECTS as usize, "{query}: {rows}");
        // More are looked for behind any number of rows, also those that are made while others are written.
        for (top, has_more) in [(10_000, true), (20_000, true), (rows, false), (rows + 1, false)] {
            let some = run(&top.to_string());
            let expected: Vec<&str> = all.lines().take(top + 1).collect();
            let lines: Vec<&str> = some.lines().collect();
            assert!(lines[..expected.len()] == expected[..], "{query}, {top}");
            let below = lines[expected.len()..].join("\n");
            assert_eq!(below.contains("more rows (--top 0 shows all)"), has_more, "{query}, {top}: {below}");
        }
    }
}

/// Returns the output of a run and its peak memory in KiB, as reported by Linux until it ends.
#[cfg(target_os = "linux")]
fn largest(arguments: &[&str]) -> (Option<i32>, u64) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
    command.args(arguments).env_remove("HPROF_CLI_MEMORY").stderr(std::process::Stdio::null());
    let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        most = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(most);
        if let Some(ended) = child.try_wait().unwrap() {
            return (ended.code(), most);
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Tables of a stored index take no more than reading them from the dump does.
#[cfg(target_os = "linux")]
#[test]
fn long_tables_of_a_stored_index_keep_within_the_budget() {
    for name in portion::samples(&["roots", "segments", "strings", "traces"]) {
        let dump = Dump::of(&long_table(name));
        let (fresh_dir, stored_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (fresh_dir, stored_dir) =
            (fresh_dir.path().to_str().unwrap(), stored_dir.path().to_str().unwrap());
        let path = dump.path.to_str().unwrap();
        let run = |command: &str, dir: &str, more: &[&str]| {
            largest(&[&[command, path, "--threads", "2", "--index-dir", dir][..], more].concat())
        };
        let limit = ["--memory", "50MB"];
        let (code, fresh) = run("leaks", fresh_dir, &limit);
        assert_eq!(code, Some(2), "{name}");
        assert!(matches!(run("info", stored_dir, &[]).0, Some(0 | 3)), "{name}");
        let (code, stored) = run("leaks", stored_dir, &limit);
        assert_eq!(code, Some(2), "{name}");
        // 0 is of a process that was never seen.
        assert!(stored > 0 && fresh > 0, "{name}: {stored} and {fresh} KiB");
        assert!(stored < fresh + (48 << 10), "{name}: {stored} KiB, and {fresh} KiB without an index");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_dump_that_cannot_be_mapped_says_why() {
    let dump = Dump::of(b"");
    std::fs::File::options().write(true).open(&dump.path).unwrap().set_len(4 << 30).unwrap();
    let refused = limited("-v 2000000", &["histo", dump.path.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && said.contains("ulimit -v unlimited"), "{said}");
}

#[test]
fn long_arrays_refer_to_each_element_once() {
    let model = model(100_000);
    let dump = Dump::written(&model.write(&Options::hotspot()));
    let (heap, graph) = dump.open_graph();
    let all = || ObjectIndex::range(graph.objects.indices());
    let longest = all().max_by_key(|object| graph.references(*object).count()).unwrap();
    // All nodes, each once; and nothing that is null.
    let class =
        heap.summary().classes().iter().position(|class| heap.summary().class_name(class) == "Node").unwrap();
    let nodes =
        all().filter(|object| graph.objects.class(*object).is_some_and(|number| number.0 as usize == class));
    assert!(graph.references(longest).eq(nodes));
    assert_eq!(graph.references(longest).count(), 100_000);
}
