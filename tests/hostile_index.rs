//! Indexes that are not right: cut, changed, of another dump, half written. None is ever believed: the answer is the one
//! that the dump itself gives.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::cast_possible_truncation)]

mod common;
mod support;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::time::{Duration, SystemTime};

use common::{Dump, bytes, digest, digest_objects};
use hprof_cli::index::Quiet;
use hprof_cli::index::heap::{Error, Heap, Options as OpenOptions, State};
use hprof_cli::index::store::Stage;
use proptest::prelude::*;
use support::{DumpWriter, Elements, HeapModel, Options, Version, examples};

/// All that a dump says, from its index or not.
fn answers(dump: &Dump) -> (String, String) {
    let (heap, objects) = dump.open_indexed();
    (digest(heap.summary()), digest_objects(&objects, bytes(&heap), heap.summary().id_size()))
}

/// A small dump with its index built, what it says, and the bytes of the stage's file.
struct Indexed {
    dump: Dump,
    answers: (String, String),
    stage: &'static str,
    file: Vec<u8>,
}

impl Indexed {
    fn new(stage: Stage) -> Self {
        let dump = Dump::written(&examples::zoo().write(&Options::hotspot()));
        let answers = answers(&dump);
        let stage = stage.name();
        let file = fs::read(dump.index().join(stage)).unwrap();
        Self { dump, answers, stage, file }
    }

    /// Puts other bytes in the place of the stage's file, and asks the dump again.
    ///
    /// The file may only be used if it was changed where no section is; otherwise it is built again, with a note.
    fn check(&self, bytes: &[u8], what: &dyn Fn() -> String) -> bool {
        let path = self.dump.index().join(self.stage);
        fs::write(&path, bytes).unwrap();
        let (heap, objects) = self.dump.open_indexed();
        let id_size = heap.summary().id_size();
        let all = digest_objects(&objects, common::bytes(&heap), id_size);
        assert!((digest(heap.summary()), all) == self.answers, "{}", what());
        if heap.is_fresh() {
            let notes = heap.notes().join("\n");
            let words = notes.contains("building it again") && notes.contains(path.to_str().unwrap());
            assert!(words, "{}: {notes}", what());
            assert!(fs::read(&path).unwrap() == self.file, "{}: not as it was at first", what());
        }
        heap.is_fresh()
    }
}

#[test]
fn bytes_of_an_index_are_verified() {
    for stage in [Stage::Summary, Stage::Objects] {
        let indexed = Indexed::new(stage);
        let path = indexed.dump.index().join(stage.name());
        let mut padding = 0;
        // All of header and table, and a seventh of the rest: each section by the same code.
        for at in (0..indexed.file.len()).filter(|at| *at < 1000 || at % 7 == 0) {
            let mut changed = indexed.file.clone();
            changed[at] ^= 1 << (at % 8);
            fs::write(&path, &changed).unwrap();
            let reports = Heap::verify_index(&indexed.dump.path, &indexed.dump.options()).unwrap();
            let report = reports.iter().find(|report| report.stage == stage).unwrap();
            let good = report.state == State::Good;
            assert!(report.state != State::Missing && (!good || indexed.file[at] == 0), "byte {at}");
            padding += usize::from(good);
        }
        // Padding between sections is read by nobody: up to 63 bytes before each.
        assert!(padding < 64 * 25 / 5, "{padding} of {} bytes are not checked", indexed.file.len());
    }
}

#[test]
fn bytes_of_a_summary_are_checked() {
    let indexed = Indexed::new(Stage::Summary);
    let len = indexed.file.len();
    for at in (0..len).filter(|at| *at < 200 || at % 61 == 0 || at + 50 > len) {
        let mut changed = indexed.file.clone();
        changed[at] ^= 1 << (at % 8);
        indexed.check(&changed, &|| format!("byte {at}"));
    }
}

#[test]
fn bytes_of_objects_are_checked() {
    let indexed = Indexed::new(Stage::Objects);
    let len = indexed.file.len();
    for at in (0..len).filter(|at| *at < 200 || at % 41 == 0 || at + 50 > len) {
        let mut changed = indexed.file.clone();
        changed[at] = !changed[at];
        indexed.check(&changed, &|| format!("byte {at}"));
    }
}

#[test]
fn a_file_cut_anywhere_is_built_again() {
    for stage in [Stage::Summary, Stage::Objects] {
        let indexed = Indexed::new(stage);
        let len = indexed.file.len();
        for cut in (0..len).filter(|cut| *cut < 130 || cut % 97 == 0 || cut + 20 > len) {
            assert!(indexed.check(&indexed.file[..cut], &|| format!("{} cut to {cut}", stage.name())));
        }
        assert!(indexed.check(&[&indexed.file[..], &[0]].concat(), &|| "one byte more".to_owned()));
        assert!(!indexed.check(&indexed.file, &|| "as it was".to_owned()));
    }
}

proptest! {
    #![proptest_config(common::property(60))]

    #[test]
    fn any_bytes_are_no_index(
        stage in prop::sample::select(vec![Stage::Summary, Stage::Objects]),
        start in 0..2usize,
        changed in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        random in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let indexed = Indexed::new(stage);
        let mut file = indexed.file.clone();
        for (at, value) in &changed {
            *at.get_mut(&mut file) = *value;
        }
        indexed.check(&file, &|| format!("{changed:?}"));
        indexed.check(&[&indexed.file[..start * 40], &random].concat(), &|| format!("{random:x?}"));
    }
}

#[test]
fn the_other_stage_is_no_stage() {
    let summary = Indexed::new(Stage::Summary);
    let objects = fs::read(summary.dump.index().join("objects")).unwrap();
    assert!(summary.check(&objects, &|| "objects as summary".to_owned()));
}

#[test]
fn the_index_of_another_dump_is_not_used() {
    let dump = Dump::written(&examples::zoo().write(&Options::hotspot()));
    let other = Dump::written(&examples::zoo().write(&Options::agent()));
    let right = answers(&dump);
    answers(&other);
    for stage in ["summary", "objects"] {
        fs::copy(other.index().join(stage), dump.index().join(stage)).unwrap();
    }
    let reports = Heap::verify_index(&dump.path, &dump.options()).unwrap();
    assert!(reports.iter().all(|report| report.state == State::Stale), "{reports:?}");
    let heap = dump.open();
    assert!(
        heap.is_fresh() && heap.notes().join("").contains("belongs to another dump"),
        "{:?}",
        heap.notes()
    );
    assert_eq!(answers(&dump), right);
}

/// Two heap dumps in one file.
fn two_in_one() -> DumpWriter {
    let mut out = DumpWriter::new(Version::V1_0_2, support::IdSize::Eight);
    let mut small = HeapModel::default();
    small.class("one.Only", None, &[]);
    small.write_into(&mut out, &Options::hotspot());
    let second = Options { first_string: 0x9000_0000, first_class_serial: 100, ..Options::hotspot() };
    examples::zoo().write_into(&mut out, &second);
    out
}

#[test]
fn the_index_of_another_heap_dump_of_the_file_is_not_used() {
    let mut dump = Dump::of(&two_in_one().into_bytes());
    let last = answers(&dump);
    dump.heap_dump = Some(1);
    let first = answers(&dump);
    assert_ne!(first, last);
    dump.heap_dump = Some(2);
    assert_eq!(answers(&dump).1, last.1);
    for (from, to) in [("summary", "summary.1"), ("objects", "objects.1")] {
        fs::copy(dump.index().join(from), dump.index().join(to)).unwrap();
    }
    dump.heap_dump = Some(1);
    assert_eq!(answers(&dump), first);
}

#[test]
fn a_dump_that_changed_is_read_again() {
    let zoo = examples::zoo();
    let dump = Dump::written(&zoo.write(&Options::hotspot()));
    dump.open_indexed();
    assert!(!dump.open().is_fresh());

    // Touched.
    let file = File::options().write(true).open(&dump.path).unwrap();
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    file.set_modified(old).unwrap();
    let heap = dump.open();
    assert!(heap.is_fresh() && heap.notes().join("").contains("the dump has changed"), "{:?}", heap.notes());
    assert!(dump.open_indexed().0.is_fresh(), "the objects are of the time before");
    assert!(!dump.open_indexed().0.is_fresh());

    // Other bytes of the same length at the same time.
    let mut changed = fs::read(&dump.path).unwrap();
    let at = changed.windows(3).position(|part| part == b"key").unwrap();
    changed[at] = b'K';
    fs::write(&dump.path, &changed).unwrap();
    File::options().write(true).open(&dump.path).unwrap().set_modified(old).unwrap();
    assert!(dump.open_indexed().0.is_fresh());

    // Another dump in its place: the answer is that dump's.
    dump.replace(&HeapModel::default().write(&Options::hotspot()).bytes());
    assert_eq!(dump.open().summary().classes().len(), 0);
    dump.replace(b"no dump at all");
    assert!(matches!(dump.try_open(), Err(Error::Format { .. })));
}

#[test]
fn what_a_process_left_that_died_is_swept_away() {
    let dump = Dump::written(&examples::zoo().write(&Options::hotspot()));
    let right = answers(&dump);
    for name in [".new-dead1", ".new-dead2"] {
        fs::write(dump.index().join(name), b"half a file").unwrap();
    }
    fs::write(dump.index().join("mine.txt"), b"not the program's").unwrap();
    fs::remove_file(dump.index().join("summary")).unwrap();
    assert_eq!(answers(&dump), right);
    let left: BTreeSet<String> = fs::read_dir(dump.index())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(left.into_iter().collect::<Vec<_>>(), ["lock", "mine.txt", "objects", "summary"]);

    let dir = dump.index();
    let removed = Heap::remove_index(&dump.path, &dump.options()).unwrap();
    assert!(removed.len() == 1 && removed[0].1 > 0, "{removed:?}");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "only what is not the program's stays");
}

#[test]
fn directories_in_the_place_of_files_do_no_harm() {
    let dump = Dump::written(&examples::zoo().write(&Options::hotspot()));
    let right = answers(&dump).0;
    fs::remove_file(dump.index().join("summary")).unwrap();
    fs::create_dir(dump.index().join("summary")).unwrap();
    let heap = dump.open();
    assert_eq!(digest(heap.summary()), right);
    assert!(heap.notes().join("").contains("no index is kept"), "{:?}", heap.notes());
    assert!(matches!(dump.try_open_indexed(), Err(Error::WriteIndex { .. })));
}

#[test]
fn without_a_place_for_the_index_the_summary_is_still_known() {
    let dump = Dump::written(&examples::zoo().write(&Options::hotspot()));
    let options = OpenOptions { index_dir: Some(dump.path.join("below-a-file")), heap_dump: None };
    let heap = Heap::open(&dump.path, &options, &Quiet).unwrap();
    assert_eq!(digest(heap.summary()), digest(dump.open().summary()));
    assert!(heap.notes().join("").contains("no index is kept"), "{:?}", heap.notes());
    let refused = Heap::open_indexed(&dump.path, &options, &Quiet);
    assert!(matches!(refused, Err(Error::WriteIndex { .. })));
}

/// A dump that takes a moment: some megabytes.
fn large() -> Dump {
    let mut model = examples::zoo();
    for number in 0..30_000 {
        model.prim_array(Elements::of_bytes(&vec![1; number % 100]));
    }
    Dump::written(&model.write(&Options::hotspot()))
}

#[test]
fn threads_that_open_at_once_build_once() {
    let dump = large();
    let barrier = Barrier::new(6);
    let results: Vec<(bool, (String, String))> = std::thread::scope(|scope| {
        let open = || {
            barrier.wait();
            let (heap, objects) = dump.open_indexed();
            let all = digest_objects(&objects, bytes(&heap), heap.summary().id_size());
            (heap.is_fresh(), (digest(heap.summary()), all))
        };
        let threads: Vec<_> = (0..6).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(results.iter().all(|(_, answers)| *answers == results[0].1));
    assert_eq!(results.iter().filter(|(fresh, _)| *fresh).count(), 1, "one builds, the others wait for it");
}

/// Tells the children of the test below which dump to open.
const CHILDS_DUMP: &str = "HPROF_CLI_TEST_DUMP";
const CHILDS_INDEX: &str = "HPROF_CLI_TEST_INDEX";

/// Not a test by itself: what a child process does.
#[test]
fn opens_for_its_parent() {
    let (Some(dump), Some(index)) = (std::env::var_os(CHILDS_DUMP), std::env::var_os(CHILDS_INDEX)) else {
        return;
    };
    let options = OpenOptions { index_dir: Some(index.into()), heap_dump: None };
    let (heap, objects) = Heap::open_indexed(Path::new(&dump), &options, &Quiet).unwrap();
    assert!(objects.len() > 30_000 && !heap.summary().is_damaged());
}

fn child(dump: &Dump) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "opens_for_its_parent"]);
    command.env(CHILDS_DUMP, &dump.path).env(CHILDS_INDEX, dump.options().index_dir.unwrap());
    command.stdout(Stdio::null());
    command
}

#[test]
fn processes_that_open_at_once_do_not_disturb_each_other() {
    let dump = large();
    for _ in 0..3 {
        dump.forget_index();
        let children: Vec<_> = (0..3).map(|_| child(&dump).spawn().unwrap()).collect();
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        let (heap, _) = dump.open_indexed();
        assert!(!heap.is_fresh() && heap.notes().is_empty(), "{:?}", heap.notes());
    }
}

#[test]
fn a_process_that_is_killed_leaves_nothing_wrong() {
    let dump = large();
    let right = answers(&dump);
    for milliseconds in [1, 5, 10, 20, 30, 40, 60, 80] {
        dump.forget_index();
        let mut victim = child(&dump).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(milliseconds));
        victim.kill().unwrap();
        victim.wait().unwrap();
        assert!(answers(&dump) == right, "killed after {milliseconds} ms");
        let reports = Heap::verify_index(&dump.path, &dump.options()).unwrap();
        assert!(reports.iter().all(|report| report.state == State::Good), "{reports:?}");
    }
}
