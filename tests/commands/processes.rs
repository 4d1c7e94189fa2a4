//! The commands as processes: exit codes, stdout and stderr, and what they leave on disk. What they print is in
//! `tests/cmd`.

use std::path::Path;
use std::process::{Output, Stdio};

use hprof_writer::{HeapModel, Options, Root, damage};

use crate::kit::process::{Folder, stderr};
use crate::kit::texts::code;

const SAMPLE: &str = "samples/jdk/jdk11.hprof.zst";

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Creates a dump of a class with this name, and an instance of it.
fn dump_of(class: &str) -> Vec<u8> {
    let mut model = HeapModel::default();
    let object = model.class("java.lang.Object", None, &[]);
    let named = model.class(class, Some(object), &[]);
    let instance = model.instance(named, &[]);
    model.root(instance, Root::Unknown);
    model.write(&Options::hotspot()).bytes()
}

#[test]
fn an_index_is_built_checked_and_removed() {
    let place = Folder::new();
    assert_eq!(code(&place.run(&["index", SAMPLE, "--verify"])), 1, "there is none yet");
    assert_eq!(code(&place.run(&["index", SAMPLE])), 0);
    let verified = place.run(&["index", SAMPLE, "--verify", "--format", "csv"]);
    assert_eq!(code(&verified), 0);
    let states: Vec<String> = stdout(&verified)
        .lines()
        .skip(1)
        .map(|row| row.split(',').take(2).collect::<Vec<_>>().join(" "))
        .collect();
    let stages =
        ["unpacked", "summary", "objects", "references", "referrers", "dominators", "places", "containers"];
    assert_eq!(states, stages.map(|stage| format!("{stage} good")));

    let json: serde_json::Value =
        serde_json::from_str(&stdout(&place.run(&["index", SAMPLE, "--verify", "--format", "json"])))
            .unwrap();
    assert_eq!((&json["command"], &json["rows"][1]["stage"]), (&"index".into(), &"summary".into()));

    // One flipped byte in the last third, which is a section, not the header.
    let summary = json["rows"][1]["file"].as_str().unwrap();
    let mut bytes = std::fs::read(summary).unwrap();
    let at = bytes.len() * 2 / 3;
    bytes[at] ^= 1;
    std::fs::write(summary, bytes).unwrap();
    assert_eq!(code(&place.run(&["index", SAMPLE, "--verify"])), 1);
    let again = place.run(&["histo", SAMPLE]);
    assert_eq!(code(&again), 0);
    assert!(stderr(&again).contains("the file is truncated or damaged; rebuilding it"), "{}", stderr(&again));
    assert_eq!(code(&place.run(&["index", SAMPLE, "--verify"])), 0);

    let removed = place.run(&["index", SAMPLE, "--remove"]);
    assert_eq!(code(&removed), 0);
    assert!(stdout(&removed).contains("removed"));
    assert_eq!(std::fs::read_dir(place.path("index")).unwrap().count(), 0);
    let nothing = place.run(&["index", SAMPLE, "--remove"]);
    assert_eq!(code(&nothing), 1);
    assert!(stderr(&nothing).contains("has no index"));
}

#[test]
fn an_index_lies_beside_the_dump_and_can_be_removed_after_it() {
    let place = Folder::new();
    let dump = place.write("heap.hprof", dump_of("A"));
    let run =
        |arguments: &[&str]| place.command(arguments).env_remove("HPROF_CLI_INDEX_DIR").output().unwrap();
    assert_eq!(code(&run(&["histo", &dump])), 0);
    let beside = place.path("heap.hprof.index");
    assert!(beside.join("summary").is_file() && !beside.join("objects").exists());
    assert_eq!(code(&run(&["index", &dump])), 0);
    assert!(beside.join("objects").is_file());
    std::fs::remove_file(&dump).unwrap();
    assert_eq!(code(&run(&["index", &dump, "--remove"])), 0);
    assert!(!beside.exists());
}

#[test]
fn removal_leaves_what_is_not_its_own() {
    let place = Folder::new();
    let dump = place.write("heap.hprof", dump_of("A"));
    let run =
        |arguments: &[&str]| place.command(arguments).env_remove("HPROF_CLI_INDEX_DIR").output().unwrap();
    run(&["histo", &dump]);
    let stranger = place.path("heap.hprof.index").join("notes.txt");
    std::fs::write(&stranger, "keep").unwrap();
    assert_eq!(code(&run(&["index", &dump, "--remove"])), 0);
    assert_eq!(std::fs::read_dir(place.path("heap.hprof.index")).unwrap().count(), 1);
    assert!(stranger.exists());
}

#[test]
fn no_place_for_an_index_is_a_note_and_the_answer_comes() {
    let place = Folder::new();
    let file = place.write("file", b"");
    let dump = place.write("heap.hprof", dump_of("A"));
    let output = place.run(&["histo", &dump, "--index-dir", &file]);
    assert_eq!((code(&output), stdout(&output).contains("A")), (0, true));
    assert!(stderr(&output).contains("note: the index is not saved"), "{}", stderr(&output));
    assert!(place.run(&["histo", &dump, "--index-dir", &file, "--quiet"]).stderr.is_empty());
    // `index` must produce the index itself.
    let output = place.run(&["index", &dump, "--index-dir", &file]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("hint: name a writable directory"), "{}", stderr(&output));
}

#[test]
fn a_damaged_dump_is_answered_with_exit_code_3() {
    let place = Folder::new();
    let whole = dump_of("A");
    let dump = place.write("cut.hprof", damage::cut(&whole, whole.len() - 12));
    for command in ["histo", "info", "index"] {
        for _ in ["cold", "warm"] {
            let output = place.run(&[command, &dump]);
            assert_eq!(code(&output), 3, "{command}");
            assert!(!output.stdout.is_empty());
            assert!(stderr(&output).contains("warning: ") && stderr(&output).contains("hint: "));
        }
    }
    // A warning of damage is no note.
    assert!(stderr(&place.run(&["histo", &dump, "--quiet"])).contains("the file is truncated"));
    let json: serde_json::Value =
        serde_json::from_str(&stdout(&place.run(&["info", &dump, "--format", "json"]))).unwrap();
    assert_eq!(json["dump"]["is_damaged"], true);
    assert_eq!(json["rows"][0]["problems"][0]["severity"], "damage");
}

#[test]
fn hostile_names_reach_no_terminal() {
    let place = Folder::new();
    let name = "=evil\u{1b}[2J\u{202e}\u{7}";
    let dump = place.write("hostile.hprof", dump_of(name));
    for format in ["table", "csv", "json"] {
        let output = place.run(&["histo", &dump, "--format", format]);
        let text = stdout(&output);
        assert!(text.contains("evil"), "{format}: {text}");
        let harmful = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
        assert!(!text.contains(harmful), "{format}: {text:?}");
    }
    let csv = stdout(&place.run(&["histo", &dump, "--format", "csv"]));
    assert!(csv.lines().any(|line| line.starts_with("'=evil\\u001b[2J\\u202e\\u0007,")), "{csv}");
    let json: serde_json::Value =
        serde_json::from_str(&stdout(&place.run(&["histo", &dump, "--format", "json"]))).unwrap();
    assert!(json["rows"].as_array().unwrap().iter().any(|row| row["class"] == name));
    // The path is hostile too.
    let output = place.run(&["histo", "no\u{1b}[2Jfile"]);
    assert!(code(&output) == 2 && !stderr(&output).contains('\u{1b}'));
}

#[test]
fn colour_is_used_only_when_it_is_asked_for() {
    let place = Folder::new();
    let dump = place.write("heap.hprof", dump_of("A"));
    let colored =
        |arguments: &[&str]| stdout(&place.run(&[&["histo", &dump], arguments].concat())).contains('\u{1b}');
    assert!(!colored(&[]) && !colored(&["--color", "never"]) && colored(&["--color", "always"]));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let place = Folder::new();
    place.run(&["histo", SAMPLE]);
    let mut child = place
        .command(&["histo", SAMPLE, "--top", "0", "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""));
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_behind_stdout_is_an_error_and_one_behind_stderr_is_not() {
    let place = Folder::new();
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let status = place.command(&["histo", SAMPLE]).stdout(full()).stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(2));
    let status = place.command(&["histo", "nothing"]).stderr(full()).status().unwrap();
    assert_eq!(status.code(), Some(2));
}

#[test]
fn several_heap_dumps_are_selected_by_number() {
    let place = Folder::new();
    let mut one = dump_of("First");
    let two = dump_of("Second");
    // The records of the second file behind those of the first: a file of two runs.
    let header = b"JAVA PROFILE 1.0.2\0".len() + 12;
    one.extend_from_slice(&two[header..]);
    let dump = place.write("two.hprof", &one);
    let classes = |arguments: &[&str]| stdout(&place.run(&[&["histo", &dump], arguments].concat()));
    for _ in ["cold", "warm"] {
        assert!(classes(&[]).contains("Second") && !classes(&[]).contains("First"));
        assert!(
            classes(&["--heap-dump", "1"]).contains("First")
                && !classes(&["--heap-dump", "1"]).contains("Second")
        );
        assert_eq!(classes(&["--heap-dump", "2"]), classes(&[]));
    }
    let missing = place.run(&["histo", &dump, "--heap-dump", "3"]);
    assert_eq!(code(&missing), 2);
    assert!(stderr(&missing).contains("heap dump 3 does not exist: the file contains 2"));
    assert_eq!(code(&place.run(&["histo", &dump, "--heap-dump", "0"])), 2);
}

#[test]
fn completions_and_man_pages_name_every_command() {
    let place = Folder::new();
    let commands = ["histo", "info", "index", "completions", "man"];
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = stdout(&place.run(&["completions", shell]));
        assert!(commands.iter().all(|command| script.contains(command)), "{shell}");
    }
    let dir = place.path("man");
    assert_eq!(code(&place.run(&["man", "--output-dir", dir.to_str().unwrap()])), 0);
    let page = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    assert!(commands.iter().all(|command| page("hprof-cli.1").contains(command)));
    for command in commands {
        assert!(page(&format!("hprof-cli-{command}.1")).contains("SYNOPSIS"));
    }
    assert!(page("hprof-cli-histo.1").contains("group\\-by"));
    assert_eq!(stdout(&place.run(&["man", "info"])), page("hprof-cli-info.1"));
}

#[test]
fn a_file_that_grows_is_not_taken_for_whole() {
    let place = Folder::new();
    let dump = place.write("growing.hprof", std::fs::read(Path::new(SAMPLE)).unwrap());
    let growing = std::sync::atomic::AtomicBool::new(true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use std::io::Write;
            let mut file = std::fs::File::options().append(true).open(&dump).unwrap();
            while growing.load(std::sync::atomic::Ordering::Relaxed) {
                file.write_all(b"x").unwrap();
            }
        });
        // On a busy machine the file may not grow while it is read.
        let runs = (0..20).map(|_| place.run(&["histo", &dump]));
        let output = runs.into_iter().find(|output| code(output) == 2).unwrap();
        growing.store(false, std::sync::atomic::Ordering::Relaxed);
        assert!(stderr(&output).contains("the file is still being written"), "{}", stderr(&output));
    });
}

#[test]
fn a_bug_report_has_features_target_and_the_agent_of_a_package() {
    // On the disk of the program, for a link to it.
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let [bin, lib] = ["bin", "lib/hprof-cli"].map(|name| place.path().join(name));
    for dir in [&bin, &lib] {
        std::fs::create_dir_all(dir).unwrap();
    }
    let library = format!("{}hprof_agent{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    std::fs::write(lib.join(&library), "").unwrap();
    let program = bin.join(format!("hprof-cli{}", std::env::consts::EXE_SUFFIX));
    std::fs::hard_link(env!("CARGO_BIN_EXE_hprof-cli"), &program).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new(&program);
        command.args(arguments).env_remove("HPROF_CLI_AGENT").output().unwrap()
    };
    let one_line = stdout(&run(&["--version"]));
    assert_eq!(one_line, format!("hprof-cli {}\n", env!("CARGO_PKG_VERSION")));
    let verbose = stdout(&run(&["--version", "--verbose"]));
    assert_eq!(stdout(&run(&["--verbose", "-V"])).lines().count(), verbose.lines().count());
    assert!(verbose.starts_with(&one_line), "{verbose}");
    for name in ["commit", "features", "target", "debug assertions", "system", "threads", "memory budget"] {
        assert!(verbose.contains(&format!("\n{name}: ")), "{name}: {verbose}");
    }
    let installed = std::fs::canonicalize(lib.join(&library)).unwrap();
    assert!(verbose.contains(&format!("\nagent: {}\n", installed.display())), "{verbose}");
    std::fs::remove_file(installed).unwrap();
    assert!(stdout(&run(&["--version", "--verbose"])).contains("\nagent: not found\n"));
    assert_eq!(code(&run(&["--verbose"])), 2, "it needs --version");
}
