//! JDKs, the agent's library, Java programs, and JVMs that have to end.
//!
//! Programs that wait do so for the end of their standard input, so that they end with the test, however it ends.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::process;

/// Longer than any of the programs runs; what takes longer hangs.
pub const AT_ALL: Duration = Duration::from_secs(120);

/// A JDK.
#[derive(Debug)]
pub struct Jdk {
    pub home: PathBuf,
    /// Feature release, such as 17.
    pub release: u32,
}

/// Runs a test on each JDK; says NOT RUN if there is none.
pub fn each_jdk(test: &str, run: impl Fn(&Jdk)) {
    let jdks = jdks();
    if jdks.is_empty() {
        not_run(test, "no JDK: set HPROF_AGENT_JDKS, or put java and javac on the path");
    }
    for jdk in jdks {
        eprintln!("{test}: JDK {}", jdk.release);
        run(jdk);
    }
}

/// Says that a test did not run.
pub fn not_run(test: &str, why: &str) {
    eprintln!("NOT RUN: {test}: {why}");
}

fn jdks() -> &'static [Jdk] {
    static JDKS: OnceLock<Vec<Jdk>> = OnceLock::new();
    JDKS.get_or_init(|| {
        let homes: Vec<PathBuf> = match std::env::var("HPROF_AGENT_JDKS") {
            Ok(homes) => homes.split(':').filter(|home| !home.is_empty()).map(PathBuf::from).collect(),
            Err(_) => on_path().into_iter().collect(),
        };
        homes.into_iter().map(|home| Jdk { release: release(&home), home }).collect()
    })
}

/// The home of the JDK whose `javac` is on the path.
fn on_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let javac = std::env::split_paths(&path).map(|dir| dir.join("javac")).find(|javac| javac.exists())?;
    let home = javac.canonicalize().ok()?.parent()?.parent()?.to_owned();
    home.join("bin/java").exists().then_some(home)
}

fn release(home: &Path) -> u32 {
    let output = Command::new(home.join("bin/java")).args(["-XshowSettings:properties", "-version"]).output();
    let said = String::from_utf8_lossy(&output.unwrap().stderr).into_owned();
    let version = said.lines().find_map(|line| line.trim().strip_prefix("java.specification.version = "));
    version.unwrap().trim().parse().unwrap()
}

/// The library of the agent: cargo builds it for this binary, beside it.
pub fn library() -> PathBuf {
    let name = format!("{}hprof_agent{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let own = std::env::current_exe().unwrap();
    let near = own.ancestors().skip(1).take(2).map(|dir| dir.join(&name)).find(|path| path.exists());
    near.unwrap_or_else(|| panic!("there is no {name} beside {}", own.display()))
}

/// The helper of `--via`, a program of another package: cargo builds it when it is first needed, as `cargo test` has, which
/// is with other features of dependencies than `cargo build` does.
#[cfg(target_os = "linux")]
pub fn helper() -> &'static Path {
    static HELPER: OnceLock<PathBuf> = OnceLock::new();
    HELPER.get_or_init(|| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args([
            "test",
            "--no-run",
            "--locked",
            "-p",
            "hprof-helper",
            "--test",
            "helper",
        ]);
        let output = cargo.args(["--message-format", "json"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let messages = String::from_utf8(output.stdout).unwrap();
        let mut messages =
            messages.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let program = messages.find(|message| message["target"]["name"] == "hprof-helper");
        program.unwrap()["executable"].as_str().unwrap().into()
    })
}

/// Programs that are dumped and recorded elsewhere too, in `samples/java`.
const SAMPLES: [&str; 3] = ["Busy.java", "HeapZoo.java", "Plain.java"];

/// The directory of the compiled programs of `tests/agent/java`, and of [`SAMPLES`].
fn classes() -> &'static Path {
    static CLASSES: OnceLock<PathBuf> = OnceLock::new();
    CLASSES.get_or_init(|| {
        let classes = Path::new(env!("CARGO_TARGET_TMPDIR")).join("agent-classes");
        std::fs::create_dir_all(&classes).unwrap();
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let own = std::fs::read_dir(package.join("tests/agent/java")).unwrap();
        let mut sources: Vec<_> = own.map(|entry| entry.unwrap().path()).collect();
        sources.extend(SAMPLES.map(|name| package.join("samples/java").join(name)));
        sources.sort();
        // Of runtimes without a compiler, another one's classes.
        let javac = jdks().iter().find_map(|jdk| jdk.tool("javac"));
        let mut javac = javac.unwrap_or_else(|| Command::new("javac"));
        // Names of files beyond ASCII need a locale that has them.
        javac.env("LC_ALL", "C.UTF-8");
        javac.args(["-g", "-nowarn", "-encoding", "UTF-8", "--release", "11", "-d"]).arg(&classes);
        let output = javac.args(sources).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        classes
    })
}

/// The number of the line of a program that ends with `// MARK`.
pub fn line(source: &str, mark: &str) -> u32 {
    let mark = format!("// {mark}");
    let mut lines = (1..).zip(source.lines()).filter(|(_, line)| line.ends_with(&mark));
    let (number, _) = lines.next().unwrap_or_else(|| panic!("no line {mark:?}"));
    assert!(lines.next().is_none(), "two lines {mark:?}");
    number
}

impl Jdk {
    /// Returns a tool of this JDK, if it exists.
    pub fn tool(&self, name: &str) -> Option<Command> {
        let tool = self.home.join("bin").join(name);
        tool.exists().then(|| Command::new(tool))
    }

    /// `jcmd PID COMMAND`; what it says.
    pub fn jcmd(&self, pid: u32, command: &[&str]) -> String {
        let mut jcmd = self.tool("jcmd").unwrap();
        jcmd.arg(pid.to_string()).args(command).stdin(Stdio::null());
        let child = jcmd.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (output, _) = process::finish_within(child, AT_ALL, u64::MAX);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "jcmd {command:?}: {said}");
        said
    }

    /// A program under the agent, whose output goes to `out` in a directory of its own if the options say nothing else.
    pub fn run(&self, options: &str) -> Run<'_> {
        let dir = tempfile::tempdir().unwrap();
        let mut options = options.to_owned();
        if !["file=", "net="].iter().any(|name| options.contains(name)) {
            options.push_str(&format!(
                "{}file={}",
                if options.is_empty() { "" } else { "," },
                dir.path().join("out").display()
            ));
        }
        Run { jdk: self, dir, agent: Some(options), jvm: Vec::new() }
    }

    /// A program under the agent with these options and no more.
    pub fn exact(&self, options: &str) -> Run<'_> {
        Run { agent: Some(options.to_owned()), ..self.bare() }
    }

    /// A program without it.
    pub fn bare(&self) -> Run<'_> {
        Run { jdk: self, dir: tempfile::tempdir().unwrap(), agent: None, jvm: Vec::new() }
    }
}

/// A JVM to be run.
pub struct Run<'j> {
    jdk: &'j Jdk,
    pub dir: tempfile::TempDir,
    agent: Option<String>,
    jvm: Vec<String>,
}

impl Run<'_> {
    /// Adds options of the JVM.
    pub fn jvm(mut self, options: &[&str]) -> Self {
        self.jvm.extend(options.iter().map(|option| (*option).to_owned()));
        self
    }

    fn command(&self, program: &[&str]) -> Command {
        let mut java = Command::new(self.jdk.home.join("bin/java"));
        // Object sizes depend on it; small enough for any machine.
        java.args(["-Xmx400m", "-XX:-UsePerfData"]);
        if !self.jvm.iter().any(|option| option.starts_with("-XX:+Use") && option.ends_with("GC")) {
            // It has the fewest threads.
            java.arg("-XX:+UseSerialGC");
        }
        if let Some(options) = &self.agent {
            java.arg(format!("-agentpath:{}={options}", library().display()));
        }
        java.args(&self.jvm).arg("-cp").arg(classes()).args(program).current_dir(self.dir.path());
        java.env("LC_ALL", "C.UTF-8");
        for name in ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH"] {
            java.env_remove(name);
        }
        java.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        java
    }

    /// Runs a program to its end, whatever that is.
    pub fn finish(self, program: &[&str]) -> Done {
        let child = self.command(program).spawn().unwrap();
        let (output, _) = process::finish_within(child, AT_ALL, u64::MAX);
        Done { dir: self.dir, output }
    }

    /// Runs a program to its end, which has to be a good one.
    pub fn ok(self, program: &[&str]) -> Done {
        let options = self.agent.clone();
        let done = self.finish(program);
        assert!(
            done.output.status.success(),
            "{options:?} {program:?}: {:?}\n{}",
            done.output.status,
            done.stderr()
        );
        done
    }

    /// Starts a program, which waits for the end of its input.
    pub fn start(self, program: &[&str]) -> Waiting {
        let mut child = self.command(program).spawn().unwrap();
        let said = Mutex::default();
        let (stdout, stderr) = (lines(child.stdout.take()), lines(child.stderr.take()));
        Waiting { stdin: child.stdin.take(), child, stdout, stderr, said, dir: Some(self.dir) }
    }
}

/// The lines of a pipe, as they come.
fn lines(pipe: Option<impl Read + Send + 'static>) -> (Receiver<String>, JoinHandle<()>) {
    let (sender, receiver) = channel();
    let thread = std::thread::spawn(move || {
        for line in BufReader::new(pipe.unwrap()).lines() {
            if line.map(|line| sender.send(line)).is_err() {
                return;
            }
        }
    });
    (receiver, thread)
}

/// A JVM that ended.
pub struct Done {
    pub dir: tempfile::TempDir,
    pub output: Output,
}

impl Done {
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    pub fn out(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    /// The text that the agent wrote.
    pub fn text(&self) -> String {
        String::from_utf8(
            std::fs::read(self.out()).unwrap_or_else(|error| panic!("{error}: {}", self.stderr())),
        )
        .unwrap()
    }
}

/// A JVM that runs. It is killed when this is dropped.
pub struct Waiting {
    pub child: Child,
    stdin: Option<ChildStdin>,
    stdout: (Receiver<String>, JoinHandle<()>),
    stderr: (Receiver<String>, JoinHandle<()>),
    said: Mutex<Vec<String>>,
    dir: Option<tempfile::TempDir>,
}

impl Waiting {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.as_ref().unwrap().path().join(name)
    }

    /// Waits for a line of the program's that has these words.
    pub fn wait_for(&self, words: &str) {
        self.wait_in(&self.stdout.0, words);
    }

    /// Sends the program a line, and waits until it reports completion.
    pub fn tell(&self, line: &str) {
        writeln!(self.stdin.as_ref().unwrap(), "{line}").unwrap();
        self.wait_for(&format!("DONE {line}"));
    }

    /// Waits for a line on stderr, where the agent speaks.
    pub fn wait_for_agent(&self, words: &str) -> String {
        self.wait_in(&self.stderr.0, words)
    }

    fn wait_in(&self, lines: &Receiver<String>, words: &str) -> String {
        let start = Instant::now();
        loop {
            match lines.recv_timeout(AT_ALL.saturating_sub(start.elapsed())) {
                Ok(line) => {
                    self.said.lock().unwrap().push(line.clone());
                    if line.contains(words) {
                        return line;
                    }
                }
                Err(RecvTimeoutError::Timeout) => panic!("no {words:?}: {:#?}", self.said),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended before {words:?}: {:#?}", self.said),
            }
        }
    }

    /// Asks for a dump, and waits until the agent has written it.
    pub fn dump(&self) {
        self.signal(rustix::process::Signal::QUIT);
        self.wait_for_agent("done: ");
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.pid()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Lets the program go on to its end.
    pub fn end(mut self) -> (ExitStatus, tempfile::TempDir, Vec<String>) {
        drop(self.stdin.take());
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < AT_ALL, "no end: {:#?}", self.said);
            std::thread::sleep(Duration::from_millis(2));
        };
        let mut said = std::mem::take(&mut *self.said.lock().unwrap());
        said.extend(self.stdout.0.iter());
        said.extend(self.stderr.0.iter());
        (status, self.dir.take().unwrap(), said)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns hprof-cli's answer about a file, as JSON.
pub fn ask(command: &str, file: &Path, arguments: &[&str]) -> serde_json::Value {
    let output = cli(command, file, &[arguments, &["--format", "json"]].concat());
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns hprof-cli's answer about a file.
pub fn cli(command: &str, file: &Path, arguments: &[&str]) -> Output {
    let mut cli = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
    cli.arg(command).arg(file).args(arguments).env_remove("HPROF_CLI_INDEX_DIR");
    let child = cli.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let output = process::finish(child);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command} {arguments:?}: {:?}: {said}", output.status);
    output
}

/// Objects and bytes by class, as `GC.class_histogram` lists them.
pub fn class_histogram(text: &str) -> BTreeMap<String, (u64, u64)> {
    let mut classes = BTreeMap::<_, (u64, u64)>::new();
    for line in text.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        let [rank, objects, bytes, name, ..] = words[..] else { continue };
        if !rank.ends_with(':') {
            continue;
        }
        let (Ok(objects), Ok(bytes)) = (objects.parse::<u64>(), bytes.parse::<u64>()) else { continue };
        // Classes of several loaders have several lines.
        let class = classes.entry(name.to_owned()).or_default();
        *class = (class.0 + objects, class.1 + bytes);
    }
    assert!(classes.len() > 100, "{text}");
    classes
}
