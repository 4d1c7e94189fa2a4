//! Running the program in processes that are forked, not started, and asked several commands each: most of what a run of
//! the program on a small file takes is the system's work to load it.
//!
//! A server is a process of this harness with one thread at work. For each request it forks, and the child does what
//! `main` of the program does, [`hprof_cli::run`], with one list of arguments after the other.

#![allow(unsafe_code)]

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::run::{self, MOST_SAID, Ran};

/// Says to a process of this harness that it is a server.
const SERVER: &str = "HPROF_CLI_SOAK_SERVER";

/// Preparation for running a command.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Before {
    /// Removes a directory and its contents, if it exists.
    Remove(PathBuf),
    /// Cuts a file.
    Cut(PathBuf, u64),
}

impl Before {
    pub(crate) fn make(&self) {
        match self {
            Self::Remove(dir) => drop(fs::remove_dir_all(dir)),
            Self::Cut(file, len) => File::options().write(true).open(file).unwrap().set_len(*len).unwrap(),
        }
    }
}

/// The end of a server that asks it.
pub(crate) struct Server {
    /// Stdin of the server, in both directions.
    stream: BufReader<UnixStream>,
    process: Child,
}

impl Server {
    /// Starts this program again; its test of that name has to call [`serve_if_asked`].
    pub(crate) fn start(test: &str, most_time: Duration) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([test, "--exact", "--include-ignored", "--nocapture"]);
        command.env(SERVER, most_time.as_millis().to_string());
        command.env_remove("HPROF_CLI_INDEX_DIR").env("RUST_BACKTRACE", "0");
        command.stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs))).stdout(Stdio::null());
        Self { stream: BufReader::new(ours), process: command.spawn().unwrap() }
    }

    /// Runs the program with these lists of arguments, without its name, after the preparations of each. A run
    /// without an exit code ends its process; the remaining lists are run by another one.
    pub(crate) fn run<'b>(
        &mut self,
        lists: &[Vec<&str>],
        before: impl Fn(usize) -> &'b [Before],
    ) -> Vec<Ran> {
        let mut all: Vec<Ran> = Vec::new();
        while all.len() < lists.len() {
            let jobs = lists.iter().enumerate().skip(all.len());
            let jobs: Vec<_> = jobs.map(|(number, list)| (before(number), list)).collect();
            let request = serde_json::to_string(&jobs).unwrap() + "\n";
            self.stream.get_mut().write_all(request.as_bytes()).unwrap();
            let mut reply = String::new();
            self.stream.read_line(&mut reply).unwrap();
            let reply: Value = serde_json::from_str(&reply).expect("the server does not answer");
            let said = reply["said"].as_str().unwrap();
            for run in reply["runs"].as_array().unwrap() {
                let [status, is_late, nanos] = [0, 1, 2].map(|at| run[at].as_u64().unwrap());
                let (status, took) = (i32::try_from(status).unwrap(), Duration::from_nanos(nanos));
                let largest = reply["largest"].as_u64().unwrap();
                all.push(Ran::new(status, is_late != 0, took, largest, said.to_owned()));
            }
        }
        all
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Answers requests until there are no more, if this process is a server.
pub(crate) fn serve_if_asked() -> bool {
    let Ok(most_time) = std::env::var(SERVER) else { return false };
    let most_time = Duration::from_millis(most_time.parse().unwrap());
    let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned().unwrap());
    let nowhere = File::options().read(true).write(true).open("/dev/null").unwrap();
    let mut requests = BufReader::new(stream);
    let mut request = String::new();
    while requests.read_line(&mut request).unwrap() > 0 {
        let jobs: Vec<Job> = serde_json::from_str(&request).unwrap();
        let ran = fork(&jobs, &nowhere, most_time);
        // In one piece.
        requests.get_mut().write_all(format!("{ran}\n").as_bytes()).unwrap();
        request.clear();
    }
    true
}

/// Preparations and arguments.
type Job = (Vec<Before>, Vec<String>);

/// Runs the program in a child and returns the results.
fn fork(jobs: &[Job], nowhere: &File, most_time: Duration) -> Value {
    let (mut said_to, says) = io::pipe().unwrap();
    // Nobody else in the child knows of this pipe, so it is closed when the child ends.
    let (mut codes, coded) = io::pipe().unwrap();
    // SAFETY: The other thread of this process waits for the end of this one; it holds no lock meanwhile.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "{}", io::Error::last_os_error());
    if child == 0 {
        for (from, to) in [(nowhere.as_raw_fd(), 0), (nowhere.as_raw_fd(), 1), (says.as_raw_fd(), 2)] {
            // SAFETY: They are open.
            unsafe { libc::dup2(from, to) };
        }
        // Only 2 may stay of it.
        drop(says);
        be_the_program(jobs, coded);
    }
    drop((says, coded));
    let (mut runs, mut said) = (Vec::new(), Vec::new());
    let mut start = Instant::now();
    let mut is_late = false;
    loop {
        match listen(&mut said_to, &mut codes, start + most_time, &mut said) {
            Heard::Code(code) => {
                // In the form of the system.
                runs.push(json!([u64::from(code) << 8, 0, nanos_since(start)]));
                start = Instant::now();
            }
            Heard::End => break,
            Heard::Nothing => {
                // SAFETY: It is a child that nobody has waited for yet.
                unsafe { libc::kill(child, libc::SIGKILL) };
                is_late = true;
                break;
            }
        }
    }
    let (status, largest_bytes) = run::wait(child);
    if runs.len() < jobs.len() {
        runs.push(json!([status, u64::from(is_late), nanos_since(start)]));
    } else if let Some(last) = runs.last_mut().filter(|_| status != 0) {
        // It answered and did not end well.
        last[0] = json!(status);
    }
    json!({ "runs": runs, "largest": largest_bytes, "said": String::from_utf8_lossy(&said) })
}

fn nanos_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap()
}

/// Runs the program once for each job and writes its exit codes.
fn be_the_program(jobs: &[Job], mut coded: PipeWriter) -> ! {
    for (before, list) in jobs {
        before.iter().for_each(Before::make);
        let arguments = ["hprof-cli"].into_iter().chain(list.iter().map(String::as_str));
        let run = || hprof_cli::run(arguments.map(Into::into));
        let Ok(code) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) else {
            std::process::exit(101);
        };
        let code = (0..=u8::MAX).find(|number| ExitCode::from(*number) == code).unwrap();
        coded.write_all(&[code]).unwrap();
    }
    std::process::exit(0)
}

/// Message from a child.
enum Heard {
    /// A command ended with it.
    Code(u8),
    /// It ended.
    End,
    /// Time is over.
    Nothing,
}

/// Reads a child's output until it writes a code, ends, or `until` is reached.
fn listen(said_to: &mut PipeReader, codes: &mut PipeReader, until: Instant, said: &mut Vec<u8>) -> Heard {
    let mut buffer = [0; 4096];
    let mut listens = true;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Heard::Nothing;
        }
        let wait = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // A negative one is passed over.
        let mut both = [wait(if listens { said_to.as_raw_fd() } else { -1 }), wait(codes.as_raw_fd())];
        let millis = i32::try_from(left.as_millis()).unwrap_or(i32::MAX).max(1);
        // SAFETY: The list lives while it is used.
        unsafe { libc::poll(both.as_mut_ptr(), 2, millis) };
        let [words, code] = both.map(|one| one.revents != 0);
        if words {
            let there = said_to.read(&mut buffer).unwrap();
            listens = there > 0;
            let room = usize::try_from(MOST_SAID).unwrap() - said.len();
            said.extend(&buffer[..there.min(room)]);
        } else if code {
            let there = codes.read(&mut buffer[..1]).unwrap();
            return if there == 1 { Heard::Code(buffer[0]) } else { Heard::End };
        }
    }
}
