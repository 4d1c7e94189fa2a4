//! Threads and processes that open one dump at once, or are killed while they build: the index is right, and the answers
//! are those of the dump.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::time::Duration;

use hprof_index::Options as OpenOptions;
use hprof_index::Quiet;
use hprof_index::open::heap::{Heap, StageState};
use hprof_writer::{Elements, Options, examples};

use super::hostile_index::{answers, read};
use crate::kit::dump::Dump;

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
            let (heap, answers, _) = read(&dump);
            (heap.is_fresh(), answers)
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
    let options = OpenOptions { index_dir: Some(index.into()), ..OpenOptions::default() };
    let (heap, graph) = Heap::open_graph(Path::new(&dump), &options, &Quiet).unwrap();
    assert!(graph.objects.len() > 30_000 && graph.tree.objects() == graph.objects.len());
    assert!(!heap.summary().is_damaged());
}

fn child(dump: &Dump) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "hostile_index_processes::opens_for_its_parent"]);
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
        let (heap, _) = dump.open_graph();
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
        let reports = Heap::verify_index(&dump.path, &dump.options(), true).unwrap();
        assert!(
            reports.len() == 5 && reports.iter().all(|report| report.state == StageState::Good),
            "{reports:?}"
        );
    }
}
