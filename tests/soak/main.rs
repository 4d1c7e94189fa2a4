//! The long soak: every sample truncated everywhere, and changed in thousands of ways, processed by the program.
//! Changed samples are passed to the built program; for truncations, which are many more, each file is handled by one
//! process that is forked from this one and runs all commands (`soak/server.rs`).
//!
//! It takes two hours, so it must be requested:
//!
//! ```sh
//! cargo test --release --test soak -- --ignored --nocapture
//! ```
//!
//! `HPROF_CLI_SOAK_PARTS` (boundaries,bytes,inner,changed), `HPROF_CLI_SOAK_STRIDE` (every Nth boundary),
//! `HPROF_CLI_SOAK_CUTS` (random truncations of each sample), `HPROF_CLI_SOAK_CASES` (changed samples altogether),
//! `HPROF_CLI_SOAK_SEED`, `HPROF_CLI_SOAK_SECONDS` (time limit), `HPROF_CLI_SOAK_ONLY` (samples whose names contain
//! this), `HPROF_CLI_SOAK_FROM` (samples from this name on) and `HPROF_CLI_SOAK_DIR` configure it. Every 30 seconds a
//! line shows the progress; failures are reported at once, and their files are kept.

#![cfg(unix)]
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::indexing_slicing
)]

#[path = "../kit/mod.rs"]
mod kit;
mod run;
mod samples;
mod server;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::kit::mutate::{Base, Numbers, mutate, setting};
use run::{Expected, MOST_MEMORY, MOST_TIME, Runner, Tally};
use samples::{Kind, Sample};
use server::{Before, Server};

/// The part of a dump in which a case cuts, or what else it does.
const PARTS: [&str; 4] = ["boundaries", "bytes", "inner", "changed"];
/// Commands run on each file.
const COMMANDS: [&str; 7] = ["info", "histo", "dominators", "leaks", "waste", "convert", "show"];
/// The parts in which the program is forked and not started, and asked about several files: as processes of their own they
/// would take a night.
const FORKED: [&str; 3] = ["boundaries", "inner", "bytes"];
/// Samples below this length are cut at the boundaries of sub-records, too.
const SMALL: usize = 600_000;
/// Cuts that one forked process is asked about.
const TOGETHER: usize = 8;
/// Files of failures that are kept.
const KEPT: usize = 20;

/// State shared by the threads that run cases.
struct Soak {
    runner: Runner,
    dir: PathBuf,
    tally: Mutex<Tally>,
    start: Instant,
    /// When to end.
    end: Option<Instant>,
    last_line: Mutex<Instant>,
    kept: AtomicUsize,
}

/// A file and an index directory of one thread.
struct Place {
    dump: PathBuf,
    index: PathBuf,
    threads: usize,
    /// Process that runs the program, if it is not started anew each time.
    server: Option<Server>,
}

/// A file, and the expected answers.
struct Case<'a> {
    /// For `show`.
    object: String,
    expected: Expected,
    what: String,
    /// The start of a sample, of that length; else what lies at the place already.
    cut: Option<(&'a Sample, usize)>,
}

impl<'a> Case<'a> {
    fn of_cut(sample: &'a Sample, cut: usize) -> Self {
        Self {
            object: format!("{:#x}", sample.object_before(cut)),
            expected: sample.expected(cut),
            what: format!("{} cut to {cut} bytes", sample.name),
            cut: Some((sample, cut)),
        }
    }

    /// Returns the preparations for a file.
    fn before(&self, place: &Place) -> Vec<Before> {
        let cut = self.cut.map(|(_, len)| Before::Cut(place.dump.clone(), len as u64));
        [Before::Remove(place.index.clone())].into_iter().chain(cut).collect()
    }
}

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
    command.args(arguments);
    command
}

impl Soak {
    fn new() -> Self {
        let dir = std::env::var_os("HPROF_CLI_SOAK_DIR").map(PathBuf::from);
        // Not on a disk, if possible.
        let memory = Some(PathBuf::from("/dev/shm")).filter(|dir| dir.is_dir());
        let dir = dir.or(memory).unwrap_or_else(std::env::temp_dir);
        let dir = dir.join(format!("hprof-cli-soak-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let seconds = setting("HPROF_CLI_SOAK_SECONDS", 0);
        let start = Instant::now();
        Self {
            runner: Runner::new(),
            dir,
            tally: Mutex::default(),
            start,
            end: (seconds > 0).then(|| start + Duration::from_secs(seconds)),
            last_line: Mutex::new(start),
            kept: AtomicUsize::new(0),
        }
    }

    fn is_over(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() > end)
    }

    fn place(&self, part: &str, worker: usize) -> Place {
        let dir = self.dir.join(worker.to_string());
        fs::create_dir_all(&dir).unwrap();
        let server = FORKED.contains(&part).then(|| Server::start("samples_cut_and_changed", MOST_TIME));
        // Both are tried, as files at which workers cut take turns.
        let threads = if FORKED.contains(&part) { 1 + worker % 2 } else { 2 };
        Place { dump: dir.join("dump.hprof"), index: dir.join("index"), threads, server }
    }

    /// Asks everything of files that come to lie at `place` one after the other, none of which anybody saw before.
    fn ask(&self, part: &'static str, place: &mut Place, cases: &[Case<'_>]) {
        let (dump, index) = (place.dump.to_str().unwrap(), place.index.to_str().unwrap());
        let threads = place.threads.to_string();
        let lists: Vec<Vec<&str>> = (cases.iter())
            .flat_map(|case| COMMANDS.map(|name| (case, name)))
            .map(|(case, name)| {
                let mut list = vec![name, dump, "--threads", &threads, "--index-dir", index];
                list.extend((name == "show").then_some(case.object.as_str()));
                list
            })
            .collect();
        let befores: Vec<Vec<Before>> = cases.iter().map(|case| case.before(place)).collect();
        // Before the first question about a file.
        let before = |list: usize| -> &[Before] {
            let is_first = list.is_multiple_of(COMMANDS.len());
            if is_first { &befores[list / COMMANDS.len()] } else { &[] }
        };
        let all: Vec<_> = match &mut place.server {
            Some(server) => server.run(&lists, before),
            None => (lists.iter().enumerate())
                .map(|(number, list)| {
                    before(number).iter().for_each(Before::make);
                    self.runner.run(program(list))
                })
                .collect(),
        };
        for (number, (ran, list)) in all.iter().zip(&lists).enumerate() {
            let (name, case) = (COMMANDS[number % COMMANDS.len()], &cases[number / COMMANDS.len()]);
            let wrong = ran.wrong(case.expected.of(name));
            let what = || format!("{} of {}", [&[name], &list[6..]].concat().join(" "), case.what);
            self.tally.lock().unwrap().add((part, name), ran, wrong.is_some(), &what);
            if let Some(wrong) = wrong {
                let kept = self.keep(place, case);
                println!("FAILED: {}: {wrong}; {kept}\n{}", what(), ran.said);
            }
        }
        let mut last = self.last_line.lock().unwrap();
        if last.elapsed() > Duration::from_secs(30) {
            *last = Instant::now();
            println!("{:>6} s  {}", self.start.elapsed().as_secs(), self.tally.lock().unwrap().line());
        }
    }

    fn keep(&self, place: &Place, case: &Case<'_>) -> String {
        let number = self.kept.fetch_add(1, Ordering::Relaxed);
        if number >= KEPT {
            return "not kept".to_owned();
        }
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("soak");
        let file = dir.join(format!("failed-{}-{number}.hprof", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        // The file at its place may have been cut further meanwhile.
        fs::copy(case.cut.map_or(place.dump.as_path(), |(sample, _)| &sample.file), &file).unwrap();
        if let Some((_, len)) = case.cut {
            File::options().write(true).open(&file).unwrap().set_len(len as u64).unwrap();
        }
        format!("kept as {}", file.display())
    }

    /// Cuts a sample at these places, from the end downwards.
    fn cut(&self, part: &'static str, sample: &Sample, mut places: Vec<usize>) {
        places.sort_unstable_by_key(|place| std::cmp::Reverse(*place));
        places.dedup();
        let workers = self.runner.workers();
        std::thread::scope(|scope| {
            for worker in 0..workers {
                let mine: Vec<usize> = places.iter().copied().skip(worker).step_by(workers).collect();
                scope.spawn(move || {
                    let mut place = self.place(part, worker);
                    fs::copy(&sample.file, &place.dump).unwrap();
                    for cuts in mine.chunks(TOGETHER).take_while(|_| !self.is_over()) {
                        let cases: Vec<_> = cuts.iter().map(|cut| Case::of_cut(sample, *cut)).collect();
                        self.ask(part, &mut place, &cases);
                    }
                });
            }
        });
    }

    /// Tests `cases` changed samples.
    fn change(&self, all: &[Sample], cases: u64, seed: u64) {
        let workers = self.runner.workers() as u64;
        std::thread::scope(|scope| {
            for worker in 0..workers {
                scope.spawn(move || {
                    let mut place = self.place("changed", usize::try_from(worker).unwrap());
                    for number in (worker..cases).step_by(usize::try_from(workers).unwrap()) {
                        if self.is_over() {
                            break;
                        }
                        let mut numbers = Numbers::new(seed ^ number.wrapping_mul(0xA24B_AED4_963E_E407));
                        let sample = &all[usize::try_from(number).unwrap() % all.len()];
                        let other = &all[numbers.below(all.len())];
                        let len = write_changed(&place.dump, sample, other, &mut numbers);
                        let case = Case {
                            object: format!("{:#x}", sample.object_before(numbers.below(len))),
                            expected: Expected::Any,
                            what: format!("{} changed by seed {seed} case {number}", sample.name),
                            cut: None,
                        };
                        self.ask("changed", &mut place, &[case]);
                    }
                });
            }
        });
    }
}

/// Writes a sample changed, with parts of another; gives its length.
fn write_changed(file: &Path, sample: &Sample, other: &Sample, numbers: &mut Numbers) -> usize {
    let (bytes, theirs) = (sample.bytes(), other.bytes());
    let (map, their_map) = (sample.map(&bytes), other.map(&theirs));
    let base = Base { bytes: &bytes, map: map.as_ref() };
    let changed = mutate(&base, &Base { bytes: &theirs, map: their_map.as_ref() }, numbers);
    fs::write(file, &changed).unwrap();
    changed.len()
}

impl Drop for Soak {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

#[test]
#[ignore = "takes two hours: docs/testing.md says how to run it"]
fn samples_cut_and_changed() {
    run::limit_memory();
    if server::serve_if_asked() {
        return;
    }
    let soak = Soak::new();
    let seed = setting("HPROF_CLI_SOAK_SEED", 20_261_121);
    let stride = usize::try_from(setting("HPROF_CLI_SOAK_STRIDE", 1)).unwrap().max(1);
    let cuts = setting("HPROF_CLI_SOAK_CUTS", 2000);
    let cases = setting("HPROF_CLI_SOAK_CASES", 20_000);
    let chosen = std::env::var("HPROF_CLI_SOAK_PARTS").unwrap_or_default();
    let has = |part: &str| chosen.is_empty() || chosen.split(',').any(|name| name == part);
    assert!(chosen.split(',').all(|name| name.is_empty() || PARTS.contains(&name)), "parts are {PARTS:?}");
    let only = std::env::var("HPROF_CLI_SOAK_ONLY").unwrap_or_default();
    let from = std::env::var("HPROF_CLI_SOAK_FROM").unwrap_or_default();
    let is_chosen = |sample: &Sample| sample.name.contains(&only) && sample.name >= from;
    let all: Vec<Sample> = samples::all(&soak.dir).into_iter().filter(is_chosen).collect();
    println!(
        "{} samples, {} workers, seed {seed}, stride {stride}, {cuts} cuts each, {cases} changed; \
         each run may take {MOST_TIME:?} and {} MiB of addresses",
        all.len(),
        soak.runner.workers(),
        MOST_MEMORY >> 20,
    );
    for sample in &all {
        let boundaries = sample.boundaries();
        if has("boundaries") {
            soak.cut("boundaries", sample, boundaries.iter().copied().step_by(stride).collect());
        }
        if has("inner") && sample.len < SMALL {
            soak.cut("inner", sample, sample.inner_boundaries().into_iter().step_by(stride).collect());
        }
        if has("bytes") {
            let mut numbers = Numbers::new(seed ^ sample.len as u64);
            let places = (0..cuts).map(|_| numbers.below(sample.len)).collect();
            soak.cut("bytes", sample, places);
        }
        println!(
            "{:>6} s  {} done: {} bytes, {} boundaries; {}",
            soak.start.elapsed().as_secs(),
            sample.name,
            sample.len,
            boundaries.len(),
            soak.tally.lock().unwrap().line()
        );
    }
    if has("changed") {
        soak.change(&all, cases, seed);
    }
    let tally = soak.tally.lock().unwrap();
    let over = if soak.is_over() { "ended early, after " } else { "" };
    println!("\n{over}{} s\n{}", soak.start.elapsed().as_secs(), tally.table());
    println!(
        "this process took up to {} MiB itself: a run that took less shows that",
        run::largest_of_this_process() >> 20
    );
    assert!(tally.is_clean() && (tally.runs() > 0 || soak.is_over()), "{}", tally.line());
}

/// Tests of this harness: otherwise a soak would prove nothing.
mod this_harness {
    use super::*;

    fn shell(script: &str) -> run::Ran {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Runner::with_time(Duration::from_millis(500)).run(command)
    }

    #[test]
    fn notices_what_goes_wrong() {
        for (script, expected, words) in [
            ("exit 101", Expected::Any, "panic"),
            ("exit 4", Expected::Any, "exit code 4"),
            ("exit 0", Expected::Damaged, "exit code 0"),
            ("exit 2", Expected::Damaged, "exit code 2"),
            ("exit 3", Expected::Refused, "exit code 3"),
            ("exit 0", Expected::DamagedOrNo, "exit code 0"),
            ("exit 2", Expected::DamagedOrNo, "exit code 2"),
            ("echo \"thread 'main' panicked at x\" >&2; exit 3", Expected::Any, "panic"),
            ("kill -SEGV $$", Expected::Any, "signal 11"),
            ("kill -ABRT $$", Expected::Any, "signal 6"),
            ("exec sleep 20", Expected::Any, "longer than"),
            ("exec 2>&-; exec sleep 20", Expected::Any, "longer than"),
        ] {
            let ran = shell(script);
            let wrong = ran.wrong(expected).unwrap_or_default();
            assert!(wrong.contains(words), "{script}: {wrong:?}");
            let mut tally = Tally::default();
            tally.add(("bytes", "info"), &ran, true, &|| String::new());
            assert!(!tally.is_clean(), "{script}");
        }
        for (script, expected) in
            [("exit 0", Expected::Any), ("exit 3", Expected::Damaged), ("exit 2", Expected::Refused)]
        {
            let ran = shell(script);
            assert_eq!(ran.wrong(expected), None, "{script}");
            // Until it is a shell the process has the memory of this one, in which other tests run.
            let most = run::largest_of_this_process().max(100 << 20);
            assert!((100_000..=most).contains(&ran.largest_bytes), "{} of {most}", ran.largest_bytes);
        }
    }

    /// The server's answers are the program's.
    #[test]
    fn forks_what_it_would_start() {
        if server::serve_if_asked() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let all = samples::all(dir.path());
        let sample = all.iter().find(|sample| sample.name == "agent/all.hprof").unwrap();
        let file = dir.path().join("cut.hprof");
        fs::write(&file, &sample.bytes()[..sample.len - 3]).unwrap();
        let (whole, cut) = (sample.file.to_str().unwrap(), file.to_str().unwrap());
        let index = dir.path().join("index");
        let (runner, index) = (Runner::new(), index.to_str().unwrap());
        let test = "this_harness::forks_what_it_would_start";
        let mut server = Server::start(test, MOST_TIME);
        let lists = [
            ["histo", whole, "--quiet"],
            ["histo", cut, "--quiet"],
            ["info", cut, "--format=json"],
            ["info", "nothing-here", "--format=json"],
            ["show", whole, "0x12345"],
            ["histo", whole, "--no-such-option"],
        ]
        .map(|list| [&list[..], &["--index-dir", index]].concat());
        let forked = server.run(&lists, |_| &[]);
        let ran: Vec<_> = lists.iter().map(|list| runner.run(program(list))).collect();
        assert_eq!(forked.iter().map(|ran| ran.code).collect::<Vec<_>>(), [0, 3, 3, 2, 1, 2].map(Some));
        for (forked, (ran, list)) in forked.iter().zip(ran.iter().zip(&lists)) {
            assert_eq!((forked.code, forked.signal), (ran.code, ran.signal), "{list:?}");
            assert_eq!(forked.is_panic, ran.is_panic);
            assert!(forked.said.contains(&ran.said), "{list:?}: {} and {}", forked.said, ran.said);
        }
        // Commands that take too long are ended.
        let mut hurried = Server::start(test, Duration::ZERO);
        let all = hurried.run(&lists[..2], |_| &[]);
        assert_eq!(all.len(), 2);
        assert!(all[0].is_late && all[0].signal == Some(libc::SIGKILL), "{all:?}");
    }

    #[test]
    fn walks_over_all_of_every_dump() {
        let dir = tempfile::tempdir().unwrap();
        let all = samples::all(dir.path());
        assert!(all.iter().filter(|sample| sample.kind == Kind::Dump).count() >= 20);
        for sample in all.iter().filter(|sample| sample.kind == Kind::Dump) {
            let map = sample.map(&sample.bytes()).unwrap();
            assert_eq!(map.records.last().unwrap().end, sample.len, "{}", sample.name);
            let mut inner = map.inner.iter();
            for heap in map.records.iter().filter(|spot| matches!(spot.tag, 0x0C | 0x1C)) {
                let mut at = heap.at + 9;
                while at < heap.end {
                    let spot = inner.next().unwrap();
                    assert_eq!(spot.at, at, "{}", sample.name);
                    at = spot.end;
                }
                assert_eq!(at, heap.end, "{}", sample.name);
            }
        }
    }

    #[test]
    fn changes_what_it_is_given_and_the_same_way_each_time() {
        let dir = tempfile::tempdir().unwrap();
        let all = samples::all(dir.path());
        let sample = all.iter().find(|sample| sample.name.contains("busy-cpu-samples.hprof")).unwrap();
        let bytes = sample.bytes();
        let map = sample.map(&bytes);
        let base = Base { bytes: &bytes, map: map.as_ref() };
        let mut same = 0;
        for seed in 0..500 {
            let change = || mutate(&base, &base, &mut Numbers::new(seed));
            let changed = change();
            assert_eq!(changed, change());
            same += usize::from(changed == bytes);
        }
        assert!(same < 50, "{same}");
    }
}
