//! Running the program as a process with bounded time and memory, and counting how it went.

// wait4 returns the memory of one child; nothing in the standard library does.
#![allow(unsafe_code, clippy::cast_possible_truncation)]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// No run may take longer.
pub(crate) const MOST_TIME: Duration = Duration::from_secs(10);
/// Bytes of addresses that a process may have, with all that it maps.
pub(crate) const MOST_MEMORY: u64 = 1 << 30;
/// Bytes of stderr that are kept.
pub(crate) const MOST_SAID: u64 = 1 << 20;

/// Expected outcome of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// An answer or an error.
    Any,
    /// An answer from a damaged dump.
    Damaged,
    /// The same, or the requested object is in the missing part.
    DamagedOrNo,
    /// An error.
    Refused,
}

impl Expected {
    /// Returns the outcome for a command: `show` may not find its object in a damaged dump.
    pub(crate) fn of(self, command: &str) -> Self {
        if command == "show" && self == Self::Damaged { Self::DamagedOrNo } else { self }
    }

    fn allows(self, code: i32) -> bool {
        match self {
            Self::Any => (0..=3).contains(&code),
            Self::Damaged => code == 3,
            Self::DamagedOrNo => code == 3 || code == 1,
            Self::Refused => code == 2,
        }
    }
}

/// Limits the memory of this process and of all that it starts.
pub(crate) fn limit_memory() {
    let limit = libc::rlimit { rlim_cur: MOST_MEMORY as libc::rlim_t, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` lives while it is read. Where the limit is lower already it stays.
    unsafe {
        libc::setrlimit(libc::RLIMIT_AS, &limit);
    }
}

/// The most memory that this process had. Until a child is a program of its own it has its parent's memory, and the system
/// counts that.
pub(crate) fn largest_of_this_process() -> u64 {
    // SAFETY: Plain numbers of C, for which zeros are values; the call writes to what lives here.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    bytes_of(usage.ru_maxrss)
}

fn bytes_of(maxrss: libc::c_long) -> u64 {
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    u64::try_from(maxrss).unwrap_or(0) * unit
}

/// End of a process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) is_panic: bool,
    pub(crate) is_late: bool,
    pub(crate) took: Duration,
    pub(crate) largest_bytes: u64,
    /// The start of stderr.
    pub(crate) said: String,
}

impl Ran {
    /// Creates the result of a process from its exit status.
    pub(crate) fn new(
        status: libc::c_int,
        is_late: bool,
        took: Duration,
        largest_bytes: u64,
        said: String,
    ) -> Self {
        let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
        Self {
            code,
            signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
            is_panic: said.contains("panicked at") || code == Some(101),
            is_late,
            took,
            largest_bytes,
            said,
        }
    }

    /// Returns a description of the failure, if any.
    pub(crate) fn wrong(&self, expected: Expected) -> Option<String> {
        if self.is_late {
            return Some(format!("ran longer than {MOST_TIME:?}: {:?}", self.took));
        }
        if let Some(signal) = self.signal {
            return Some(format!("signal {signal}"));
        }
        if self.is_panic {
            return Some("panic".to_owned());
        }
        let code = self.code.unwrap_or(-1);
        (!expected.allows(code)).then(|| format!("exit code {code}, expected {expected:?}"))
    }
}

/// Starts processes, and ends those that take too long.
pub(crate) struct Runner {
    workers: usize,
    most_time: Duration,
    /// Running processes, and their deadlines.
    running: Arc<Mutex<BTreeMap<libc::pid_t, Instant>>>,
}

impl Runner {
    pub(crate) fn new() -> Self {
        Self::with_time(MOST_TIME)
    }

    pub(crate) fn with_time(most_time: Duration) -> Self {
        let running: Arc<Mutex<BTreeMap<libc::pid_t, Instant>>> = Arc::default();
        let watched = Arc::downgrade(&running);
        std::thread::spawn(move || {
            while let Some(running) = watched.upgrade() {
                for (process, until) in running.lock().unwrap().iter() {
                    if Instant::now() > *until {
                        // SAFETY: What is listed is a child that nobody has waited for yet.
                        unsafe {
                            libc::kill(*process, libc::SIGKILL);
                        }
                    }
                }
                drop(running);
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let workers = std::thread::available_parallelism().map_or(2, usize::from);
        Self { workers, most_time, running }
    }

    /// Processes at a time.
    pub(crate) fn workers(&self) -> usize {
        self.workers
    }

    pub(crate) fn run(&self, mut command: Command) -> Ran {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.env_remove("HPROF_CLI_INDEX_DIR").env("RUST_BACKTRACE", "0");
        let start = Instant::now();
        // wait4 below waits for it.
        #[allow(clippy::zombie_processes)]
        let mut child = command.spawn().unwrap();
        let process = libc::pid_t::try_from(child.id()).unwrap();
        self.running.lock().unwrap().insert(process, start + self.most_time);
        let mut said = Vec::new();
        let mut stderr = child.stderr.take().unwrap();
        let _ = (&mut stderr).take(MOST_SAID).read_to_end(&mut said);
        let _ = std::io::copy(&mut stderr, &mut std::io::sink());
        // SAFETY: Plain numbers of C, for which zeros are values; the call writes to what lives here.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            // First wait without taking the process away: its number is not given to another while it may be killed.
            while libc::waitid(
                libc::P_PID,
                process as libc::id_t,
                &raw mut info,
                libc::WEXITED | libc::WNOWAIT,
            ) != 0
            {}
        }
        self.running.lock().unwrap().remove(&process);
        let (status, largest_bytes) = wait(process);
        let took = start.elapsed();
        let said = String::from_utf8_lossy(&said).into_owned();
        Ran::new(status, took > self.most_time, took, largest_bytes, said)
    }
}

/// Waits for a child's end; its status, and the most memory that it had.
pub(crate) fn wait(process: libc::pid_t) -> (libc::c_int, u64) {
    // SAFETY: Plain numbers of C, for which zeros are values; the call writes to what lives here.
    let (status, usage) = unsafe {
        let (mut status, mut usage): (libc::c_int, libc::rusage) = (0, std::mem::zeroed());
        while libc::wait4(process, &raw mut status, 0, &raw mut usage) != process {}
        (status, usage)
    };
    (status, bytes_of(usage.ru_maxrss))
}

/// Results of one command in one part.
#[derive(Debug, Clone, Default)]
struct Row {
    runs: u64,
    /// By exit code, 0 to 3.
    codes: [u64; 4],
    panics: u64,
    signals: u64,
    late: u64,
    wrong: u64,
    took: Duration,
    slowest: (Duration, String),
    largest: (u64, String),
}

impl Row {
    fn merge(&mut self, other: &Self) {
        self.runs += other.runs;
        self.codes.iter_mut().zip(other.codes).for_each(|(mine, theirs)| *mine += theirs);
        self.panics += other.panics;
        self.signals += other.signals;
        self.late += other.late;
        self.wrong += other.wrong;
        self.took += other.took;
        self.slowest = self.slowest.clone().max(other.slowest.clone());
        self.largest = self.largest.clone().max(other.largest.clone());
    }

    fn cells(&self) -> String {
        let [fine, no, error, damaged] = self.codes;
        format!(
            "{:>9} | {fine:>8} | {no:>8} | {error:>8} | {damaged:>8} | {:>6} | {:>7} | {:>9} | {:>11} | {:>10} | {:>10}",
            self.runs,
            self.panics,
            self.signals,
            self.late,
            self.wrong,
            self.slowest.0.as_millis(),
            self.largest.0 >> 20,
        )
    }
}

/// Results of all runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    rows: BTreeMap<(&'static str, &'static str), Row>,
}

impl Tally {
    pub(crate) fn add(
        &mut self,
        key: (&'static str, &'static str),
        ran: &Ran,
        is_wrong: bool,
        what: &dyn Fn() -> String,
    ) {
        let row = self.rows.entry(key).or_default();
        row.runs += 1;
        if let Some(count) = ran.code.and_then(|code| row.codes.get_mut(usize::try_from(code).ok()?)) {
            *count += 1;
        }
        row.panics += u64::from(ran.is_panic);
        row.late += u64::from(ran.is_late);
        // Late processes are killed, with our signal.
        row.signals += u64::from(ran.signal.is_some() && !ran.is_late);
        row.wrong += u64::from(is_wrong && !ran.is_panic && !ran.is_late && ran.signal.is_none());
        row.took += ran.took;
        if ran.took > row.slowest.0 {
            row.slowest = (ran.took, what());
        }
        if ran.largest_bytes > row.largest.0 {
            row.largest = (ran.largest_bytes, what());
        }
    }

    fn sum(&self) -> Row {
        let mut sum = Row::default();
        self.rows.values().for_each(|row| sum.merge(row));
        sum
    }

    pub(crate) fn runs(&self) -> u64 {
        self.sum().runs
    }

    /// Returns whether there were no failures.
    pub(crate) fn is_clean(&self) -> bool {
        let sum = self.sum();
        sum.panics + sum.signals + sum.late + sum.wrong == 0
    }

    /// All in one line.
    pub(crate) fn line(&self) -> String {
        let sum = self.sum();
        format!(
            "{} runs: {} panics, {} signals, {} over time, {} wrong exit codes; slowest {} ms, largest {} MiB",
            sum.runs,
            sum.panics,
            sum.signals,
            sum.late,
            sum.wrong,
            sum.slowest.0.as_millis(),
            sum.largest.0 >> 20
        )
    }

    pub(crate) fn table(&self) -> String {
        let mut out = format!(
            "| {:<10} | {:<10} | {:>9} | {:>8} | {:>8} | {:>8} | {:>8} | {:>6} | {:>7} | {:>9} | {:>11} | {:>10} | {:>10} |\n",
            "part",
            "command",
            "runs",
            "exit 0",
            "exit 1",
            "exit 2",
            "exit 3",
            "panics",
            "signals",
            "over time",
            "wrong codes",
            "slowest ms",
            "most MiB"
        );
        out += &format!("|{}\n", "---|".repeat(13));
        for ((part, command), row) in &self.rows {
            writeln!(out, "| {part:<10} | {command:<10} | {} |", row.cells()).unwrap();
        }
        let sum = self.sum();
        writeln!(out, "| {:<10} | {:<10} | {} |", "all", "", sum.cells()).unwrap();
        writeln!(out, "\nslowest: {:?}, {}", sum.slowest.0, sum.slowest.1).unwrap();
        writeln!(out, "largest: {} MiB, {}", sum.largest.0 >> 20, sum.largest.1).unwrap();
        out
    }
}
