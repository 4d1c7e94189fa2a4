//! Processes that are killed, interrupted, or deprived of their files while they work; and many at once. The files
//! that they leave are never wrong, and are only those that must be left.
//!
//! More kills, also of another dump: `HPROF_CLI_KILLS=100 HPROF_CLI_KILL_DUMP=heap.hprof cargo test --test commands
//! crashes::killed -- --nocapture`.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::kit::process::{GRAPH, Place, RETAINED, finish, is_ignored, number, sample, stderr, wait};

const INT: i32 = 2;
const TERM: i32 = 15;
const HUP: i32 = 1;

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Kills `index` at `kills` moments, spread over the time that it takes, and asks after each.
#[allow(clippy::print_stdout)] // The figures, for who runs it by hand.
fn kill(place: &Place, kills: u32) {
    place.forget_index();
    let right = place.answers();
    place.forget_index();
    let start = Instant::now();
    place.answer(&["index"]);
    let takes = start.elapsed();
    let (mut hits, mut left, mut partly) = (0, 0, 0);
    for number in 0..kills {
        place.forget_index();
        let mut victim = place.command(&["index"]).spawn().unwrap();
        sleep(takes * number / kills);
        hits += u32::from(victim.try_wait().unwrap().is_none());
        victim.kill().unwrap();
        wait(&mut victim);
        left += u32::from(!place.leftovers().is_empty());
        partly += u32::from(!place.is_verified());
        assert!(place.answers() == right, "killed after {number} of {kills} parts of {takes:?}");
        assert_eq!(place.leftovers(), Vec::<PathBuf>::new(), "{number} of {kills}");
        assert!(place.is_verified(), "{number} of {kills}");
    }
    println!(
        "{}: index takes {takes:?}; {kills} kills: {hits} while it ran, {left} left temporary files, {partly} an index \
         that is not whole; {kills} later runs were right",
        place.dump.display()
    );
    assert!(hits > 0 && partly > 0, "{hits} of {kills} came in time, {partly} left part of an index");
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn the_run_after_one_that_was_killed_is_right() {
    let kills = number("HPROF_CLI_KILLS", 15);
    if let Some(dump) = std::env::var_os("HPROF_CLI_KILL_DUMP") {
        return kill(&Place::of(Path::new(&dump)), kills);
    }
    kill(&Place::new("heap.hprof", &sample("jdk/jdk17")), kills);
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn the_run_after_one_that_was_killed_while_it_unpacked_is_right() {
    if std::env::var_os("HPROF_CLI_KILL_DUMP").is_none() {
        let packed = fs::read("samples/jdk/jdk17.hprof.zst").unwrap();
        kill(&Place::new("heap.hprof.zst", &packed), number("HPROF_CLI_KILLS", 15) / 2);
    }
}

#[test]
fn a_file_that_an_answer_was_written_to_is_removed_though_nothing_is_built() {
    let place = Place::new("heap.hprof", &sample("jdk/jdk17"));
    place.answer(&["index"]);
    fs::write(place.index().join(".new-0123456789abcdef"), "half an answer").unwrap();
    let lock = File::open(place.index().join("lock")).unwrap();
    lock.lock().unwrap();
    place.answer(GRAPH);
    assert_eq!(place.leftovers().len(), 1, "another process may be writing it");
    drop(lock);
    place.answer(GRAPH);
    assert_eq!(place.leftovers(), Vec::<PathBuf>::new());
}

/// Starts a command, and stops it when `is_there`; nothing if it was done before.
fn stopped(mut command: Command, is_there: impl Fn() -> bool) -> Option<Child> {
    let mut child = command.spawn().unwrap();
    loop {
        if is_there() {
            signal(&child, "STOP");
            // It may have gone on until it was stopped.
            sleep(Duration::from_millis(20));
            if is_there() && child.try_wait().unwrap().is_none() {
                return Some(child);
            }
            signal(&child, "CONT");
        }
        if child.try_wait().unwrap().is_some() {
            return None;
        }
    }
}

/// As [`stopped`], tried until it is so.
fn stop_while(place: &Place, command: impl Fn() -> Command, is_there: impl Fn() -> bool) -> Child {
    for _ in 0..200 {
        if let Some(child) = stopped(command(), &is_there) {
            return child;
        }
        place.forget_index();
        let _ = fs::remove_file(place.path("out.txt"));
    }
    panic!("it was never stopped in time");
}

#[test]
fn a_process_that_is_told_to_end_leaves_no_temporary_file() {
    let place = Place::new("heap.hprof", &sample("jdk/jdk17"));
    for (name, number) in [("TERM", TERM), ("INT", INT), ("HUP", HUP)] {
        if is_ignored(number) {
            continue;
        }
        place.forget_index();
        let child = stop_while(&place, || place.command(&["index"]), || !place.leftovers().is_empty());
        signal(&child, name);
        signal(&child, "CONT");
        let output = finish(child);
        assert_eq!((output.status.signal(), stderr(&output)), (Some(number), String::new()));
        assert_eq!(place.leftovers(), Vec::<PathBuf>::new());
        // An index directory that was created in vain is removed, too.
        let left: Vec<_> = fs::read_dir(place.index()).into_iter().flatten().map(Result::unwrap).collect();
        assert!(left.is_empty() || left.len() > 1, "{left:?}");

        place.forget_index();
        let convert = || place.command(&["convert", "--output", place.path("out.txt").to_str().unwrap()]);
        let parts = || place.leftovers().iter().any(|path| path.extension().is_some_and(|end| end == "part"));
        let child = stop_while(&place, convert, parts);
        signal(&child, name);
        signal(&child, "CONT");
        assert_eq!(finish(child).status.signal(), Some(number));
        assert_eq!(place.leftovers(), Vec::<PathBuf>::new());
        assert!(!place.path("out.txt").exists());
    }
    // And what it has built until then is right.
    assert!(place.answers()[0].contains("rows"));
}

/// Waits until a process has a handler for a signal.
#[cfg(target_os = "linux")]
fn wait_for_handler(process: u32, signal: i32) {
    let start = Instant::now();
    let has_handler = || {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        Some(u64::from_str_radix(caught.trim(), 16).ok()? >> (signal - 1) & 1 != 0)
    };
    while has_handler() != Some(true) {
        assert!(start.elapsed() < Duration::from_secs(60), "no handler for signal {signal}");
        sleep(Duration::from_millis(5));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_signal_ends_what_has_made_no_file() {
    let place = Place::new("heap.hprof", b"");
    for (name, number) in [("TERM", TERM), ("INT", INT), ("HUP", HUP)] {
        if is_ignored(number) {
            continue;
        }
        // It waits for its query.
        let mut command = place.command(&["sql"]);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        wait_for_handler(child.id(), number);
        signal(&child, name);
        assert_eq!(finish(child).status.signal(), Some(number));
    }
}

/// A container has no other process, and to its first one signals without a handler do nothing.
#[test]
#[cfg(target_os = "linux")]
#[allow(clippy::print_stderr)] // What was not run is said.
fn a_signal_ends_the_first_process_of_a_container() {
    let place = Place::new("heap.hprof", b"");
    let space = ["--user", "--map-root-user", "--pid", "--fork", "--kill-child"];
    let can = Command::new("unshare").args(space).arg("true").stderr(Stdio::null()).status();
    if !can.is_ok_and(|status| status.success()) {
        eprintln!("NOT RUN: no unshare, or it may not make a space for processes");
        return;
    }
    for (name, number) in [("TERM", TERM), ("INT", INT), ("HUP", HUP)] {
        let mut command = Command::new("unshare");
        command.args(space).arg(env!("CARGO_BIN_EXE_hprof-cli")).arg("sql").arg(&place.dump);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let children = format!("/proc/{0}/task/{0}/children", child.id());
        let start = Instant::now();
        let first = loop {
            let first = fs::read_to_string(&children).unwrap_or_default();
            if let Ok(first) = first.trim().parse::<u32>() {
                break first;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "unshare starts nothing");
            sleep(Duration::from_millis(5));
        };
        if is_ignored(number) {
            continue;
        }
        wait_for_handler(first, number);
        assert!(
            Command::new("kill").args([format!("-{name}"), first.to_string()]).status().unwrap().success()
        );
        assert_eq!(finish(child).status.code(), Some(2), "{name}");
    }
}

#[test]
fn a_signal_that_is_ignored_stays_ignored() {
    let place = Place::new("heap.hprof", &sample("jdk/jdk17"));
    let ignoring = || place.in_shell("trap '' HUP INT", &["index"]);
    let child = stop_while(&place, ignoring, || !place.leftovers().is_empty());
    for name in ["HUP", "INT", "CONT"] {
        signal(&child, name);
    }
    assert_eq!(finish(child).status.code(), Some(0));
    assert!(place.is_verified());
}

#[test]
fn what_a_killed_convert_left_is_removed_by_the_next() {
    let place = Place::new("heap.hprof", &sample("jdk/jdk17"));
    let out = place.path("out.txt");
    let convert = || {
        // Nobody is to wait for a process that is stopped while it builds the index.
        place.answer(&["histo"]);
        place.command(&["convert", "--output", out.to_str().unwrap()])
    };
    let parts = || place.leftovers().iter().any(|path| path.extension().is_some_and(|end| end == "part"));
    let mut child = stop_while(&place, convert, parts);
    // While it lives its file is its own.
    place.answer(&["convert", "--output", place.path("other.txt").to_str().unwrap()]);
    assert!(parts());
    child.kill().unwrap();
    wait(&mut child);
    assert!(parts());
    assert_eq!(finish(convert().spawn().unwrap()).status.code(), Some(0));
    assert_eq!(place.leftovers(), Vec::<PathBuf>::new());
    assert!(fs::read(out).unwrap() == fs::read(place.path("other.txt")).unwrap());
}

/// Starts a command with a long answer and reads its start. The rest waits until it is read.
fn begun(place: &Place, arguments: &[&str]) -> Child {
    let mut child = place.command(arguments).spawn().unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 1000]).unwrap();
    child
}

fn shorten(path: &Path) {
    File::options().write(true).open(path).unwrap().set_len(4096).unwrap();
}

fn is_told(child: Child, file: &Path) {
    let output = finish(child);
    let said = stderr(&output);
    assert_eq!((output.status.signal(), output.status.code()), (None, Some(2)), "{said}");
    let expected = format!(
        "hprof-cli: error: {} was truncated or replaced while it was read (or its disk cannot be read)\nhprof-cli: hint: ",
        file.display()
    );
    assert!(said.starts_with(&expected) && said.lines().count() == 2, "{said}");
}

#[test]
fn a_dump_that_is_shortened_while_it_is_read_is_an_error() {
    let place = Place::new("heap.hprof", &sample("jdk/jdk17"));
    place.answer(&["histo"]);
    let child = begun(&place, &["convert", "--threads", "1", "--sections", "heap"]);
    shorten(&place.dump);
    is_told(child, &place.dump);
    assert_eq!(place.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn a_shortened_dump_leaves_no_temporary_file_and_the_terminal_is_safe() {
    let place = Place::new("he\u{1b}[2Jap.hprof", &sample("jdk/jdk17"));
    let out = place.path("out.txt");
    let convert = || {
        place.answer(&["histo"]);
        place.command(&["convert", "--threads", "1", "--output", out.to_str().unwrap()])
    };
    // The file exists before the dump is opened and has contents afterwards: an empty one would be another dump, and
    // damaged.
    let is_begun = |path: &PathBuf| fs::metadata(path).is_ok_and(|file| file.len() > 0);
    let child = stop_while(&place, convert, || place.leftovers().iter().any(is_begun));
    shorten(&place.dump);
    signal(&child, "CONT");
    let output = finish(child);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    // Stopped when all was read already, it sees at the end that the file is another.
    let words = [" was truncated", ": the file changed while it was read"];
    assert!(words.iter().any(|words| said.contains(&format!("he\\u001b[2Jap.hprof{words}"))), "{said}");
    assert!(!said.contains('\u{1b}'), "{said}");
    assert!(!out.exists() && place.leftovers().is_empty(), "{:?}", place.leftovers());
}

#[test]
fn an_index_that_is_shortened_while_it_is_read_is_an_error_and_then_built_again() {
    let place = Place::new("heap.hprof", &sample("jdk/jdk17"));
    let right = place.answers();
    let child = begun(&place, &["dominators", "--all", "--format", "json", "--threads", "1"]);
    let file = place.index().join("dominators");
    shorten(&file);
    is_told(child, &file);
    assert!(place.answers() == right);
    assert!(place.is_verified());
}

#[test]
fn a_dump_that_is_written_to_while_it_is_read_is_an_error() {
    let place = Place::new("heap.hprof", &sample("jdk/jdk17"));
    place.answer(&["histo"]);
    let child = begun(&place, &["convert", "--threads", "1", "--sections", "heap"]);
    let file = File::options().write(true).open(&place.dump).unwrap();
    file.set_len(fs::metadata(&place.dump).unwrap().len() + 1).unwrap();
    let output = finish(child);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("the file is still being written"), "{}", stderr(&output));
}

#[test]
fn a_dump_that_is_replaced_or_removed_while_it_is_read_is_answered_as_it_was() {
    let place = Place::new("heap.hprof", &sample("jdk/jdk17"));
    place.answer(&["histo"]);
    let arguments = ["convert", "--threads", "1", "--sections", "heap"];
    let right = place.answer(&arguments).split_off(1000);
    let child = begun(&place, &arguments);
    fs::write(place.path("new"), "another").unwrap();
    fs::rename(place.path("new"), &place.dump).unwrap();
    let output = finish(child);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
    assert!(output.stdout == right.as_bytes());
}

/// Files of the index with data that shows whether they were rewritten. The lock is touched by each process that
/// holds it.
fn files(place: &Place) -> Vec<(PathBuf, u64, i64, i64)> {
    let mut files: Vec<_> = fs::read_dir(place.index())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_name() != "lock")
        .map(|entry| (entry.path(), entry.metadata().unwrap()))
        .map(|(path, metadata)| (path, metadata.ino(), metadata.mtime(), metadata.mtime_nsec()))
        .collect();
    files.sort();
    files
}

#[test]
fn processes_that_come_at_once_build_once() {
    let packed = fs::read("samples/jdk/jdk17.hprof.zst").unwrap();
    let place = Place::new("heap.hprof.zst", &packed);
    let right = place.answers();
    let built = files(&place).len();
    for crowd in [2, 8] {
        place.forget_index();
        // No process starts work before all have started: the test holds the lock.
        place.create_index();
        let lock = File::create(place.index().join("lock")).unwrap();
        lock.lock().unwrap();
        let questions: Vec<usize> = (0..crowd).map(|number| number % 2).collect();
        let spawn = |question: &usize| place.command([GRAPH, RETAINED][*question]).spawn().unwrap();
        let mut children: Vec<Child> = questions.iter().map(spawn).collect();
        sleep(Duration::from_millis(300));
        assert!(
            children.iter_mut().all(|child| child.try_wait().unwrap().is_none()),
            "they wait for the lock"
        );
        drop(lock);
        let mut first = None;
        let mut builders = 0;
        for (child, question) in children.into_iter().zip(&questions) {
            let output = finish(child);
            // The index is complete when the first one has its answer; nobody rewrites it.
            first.get_or_insert_with(|| files(&place));
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            assert!(output.stdout == right[*question].as_bytes());
            builders += stderr(&output).matches("unpacked into").count();
        }
        assert_eq!(builders, 1, "of {crowd}");
        assert_eq!((Some(files(&place)), files(&place).len()), (first, built));
        assert!(place.leftovers().is_empty() && place.is_verified());
    }
}

#[test]
fn who_waits_for_a_process_that_is_killed_builds_instead() {
    let place = Place::new("heap.hprof", &sample("jdk/jdk17"));
    let right = place.answers();
    place.forget_index();
    let mut victim = stop_while(&place, || place.command(&["index"]), || !place.leftovers().is_empty());
    let mut waiting = place.command(GRAPH).spawn().unwrap();
    sleep(Duration::from_millis(200));
    assert!(waiting.try_wait().unwrap().is_none());
    victim.kill().unwrap();
    wait(&mut victim);
    let output = finish(waiting);
    assert!(output.status.code() == Some(0) && output.stdout == right[0].as_bytes(), "{}", stderr(&output));
    assert!(place.leftovers().is_empty() && place.is_verified());
}

#[test]
fn who_is_interrupted_while_he_waits_takes_nothing_from_who_works() {
    let place = Place::new("heap.hprof", &sample("jdk/jdk17"));
    let worker = stop_while(&place, || place.command(&["index"]), || !place.leftovers().is_empty());
    let before = (place.leftovers(), place.index().join("lock").exists());
    let mut waiting = place.command(GRAPH).stdout(Stdio::null()).spawn().unwrap();
    sleep(Duration::from_millis(200));
    signal(&waiting, "TERM");
    assert_eq!(wait(&mut waiting).signal(), Some(TERM));
    assert_eq!((place.leftovers(), place.index().join("lock").exists()), before);
    signal(&worker, "CONT");
    assert_eq!(finish(worker).status.code(), Some(0));
    assert!(place.is_verified());
}
