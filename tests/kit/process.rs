//! Commands as processes that have to end: in a temporary directory, with its index, and the files that they leave.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

/// Longer than any of these commands takes on any machine; a command that takes longer waits forever.
const AT_ALL: Duration = Duration::from_secs(300);

/// A query that needs the graph, and one that needs the dominator tree.
pub const GRAPH: &[&str] = &["dominators", "--format", "json", "--top", "40"];
pub const RETAINED: &[&str] = &["histo", "--retained", "--format", "json"];

/// A directory for dumps, answers and indexes.
pub struct Folder {
    dir: tempfile::TempDir,
}

impl Folder {
    /// Creates an empty directory.
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns the path of a file, as an argument.
    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Writes a file, and returns its path as an argument.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), bytes).unwrap();
        self.text(name)
    }

    /// Runs hprof-cli with indexes in this directory.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
        command.args(arguments).env("HPROF_CLI_INDEX_DIR", self.path("index")).env_remove("NO_COLOR");
        command.env("XDG_DATA_HOME", self.path("data"));
        command
    }

    /// Runs a command to the end, which must not be a panic.
    pub fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = finish(command.spawn().unwrap());
        let said = stderr(&output);
        assert!(!said.contains("panicked"), "{arguments:?}: {said}");
        assert!(output.status.code().is_some_and(|code| code <= 3), "{arguments:?}: {:?}", output.status);
        output
    }

    /// Runs a command that has to end with exit code 0.
    pub fn stdout(&self, arguments: &[&str]) -> Vec<u8> {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
        output.stdout
    }

    /// Returns the document of a JSON answer.
    pub fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let arguments = [arguments, &["--format", "json", "--quiet"]].concat();
        serde_json::from_slice(&self.stdout(&arguments)).unwrap()
    }
}

/// A directory with a dump in it, for everything that the program writes.
pub struct Place {
    dir: tempfile::TempDir,
    pub dump: PathBuf,
    /// Directory for indexes of a dump that is elsewhere.
    indexes: PathBuf,
}

impl Place {
    /// Creates a directory with a dump of these bytes; the suffix of `name` may state a compression.
    pub fn new(name: &str, bytes: &[u8]) -> Self {
        let place = Self::of(Path::new(name));
        let dump = place.path(name);
        fs::write(&dump, bytes).unwrap();
        Self { dump, ..place }
    }

    /// Creates a directory for a dump that is elsewhere.
    pub fn of(dump: &Path) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["tmp", "cache"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        Self { indexes: dir.path().join("indexes"), dir, dump: dump.to_owned() }
    }

    /// Creates a directory for a dump that is elsewhere, with an index in a shared directory (`samples::indexes`).
    pub fn sharing(indexes: &Path, dump: &Path) -> Self {
        Self { indexes: indexes.to_owned(), ..Self::of(dump) }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns the path of the index: next to a dump in this directory, else in a directory for indexes.
    pub fn index(&self) -> PathBuf {
        if self.dump.starts_with(self.dir.path()) {
            return self.path(&format!("{}.index", self.dump.file_name().unwrap().to_str().unwrap()));
        }
        assert!(self.indexes.starts_with(self.dir.path()), "others use this index");
        let entries = fs::read_dir(&self.indexes).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).next().unwrap_or_else(|| self.indexes.clone())
    }

    /// Returns a command on the dump: `arguments` are a command and its options; the dump is inserted after the command.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
        command.arg(arguments[0]).arg(&self.dump).args(&arguments[1..]);
        self.environment(&mut command);
        command
    }

    /// As [`Place::command`], in a shell that runs `before` first.
    pub fn in_shell(&self, before: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{before}; exec \"$@\""), "sh", env!("CARGO_BIN_EXE_hprof-cli")]);
        command.arg(arguments[0]).arg(&self.dump).args(&arguments[1..]);
        self.environment(&mut command);
        command
    }

    fn environment(&self, command: &mut Command) {
        command.env("XDG_CACHE_HOME", self.path("cache")).env("TMPDIR", self.path("tmp"));
        command.env("XDG_DATA_HOME", self.path("data"));
        command.env_remove("HPROF_CLI_INDEX_DIR");
        if !self.dump.starts_with(self.dir.path()) {
            command.env("HPROF_CLI_INDEX_DIR", &self.indexes);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        finish(self.command(arguments).spawn().unwrap())
    }

    /// Returns a command's answer, which must succeed.
    pub fn answer(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let said = stderr(&output);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{arguments:?}: {:?}: {said}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns the answers that depend on everything in the index.
    pub fn answers(&self) -> [String; 2] {
        [GRAPH, RETAINED].map(|question| self.answer(question))
    }

    /// Creates the index directory if it does not exist, with private permissions: one that others could write to, as some
    /// umasks allow, is not used.
    #[cfg(unix)]
    pub fn create_index(&self) {
        use std::os::unix::fs::PermissionsExt;
        fs::create_dir_all(self.index()).unwrap();
        fs::set_permissions(self.index(), fs::Permissions::from_mode(0o700)).unwrap();
    }

    pub fn forget_index(&self) {
        // Without an index there is nothing to remove.
        let _ = fs::remove_dir_all(self.index());
    }

    /// Returns temporary files, wherever the program creates some.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        let dirs = [self.path(""), self.path("tmp"), self.index()];
        let entries = dirs.iter().filter_map(|dir| fs::read_dir(dir).ok()).flatten();
        let is_left = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with('.') || path.parent() == Some(&self.path("tmp"))
        };
        entries.map(|entry| entry.unwrap().path()).filter(is_left).collect()
    }

    /// Returns whether `index --verify` finds every stage valid.
    pub fn is_verified(&self) -> bool {
        let code = self.run(&["index", "--verify"]).status.code();
        assert!(matches!(code, Some(0 | 1)), "{code:?}");
        code == Some(0)
    }
}

/// Returns a command on a dump with a limit of `kib` KiB of address space.
pub fn in_addresses(kib: u64, command: &str, dump: &Path, more: &[&str]) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -v \"$1\" && shift && exec \"$@\"", "sh", &kib.to_string()]);
    shell.arg(env!("CARGO_BIN_EXE_hprof-cli")).arg(command).arg(dump).args(more).args(["--threads", "2"]);
    shell.stdout(Stdio::piped()).stderr(Stdio::piped());
    shell
}

/// Waits for the end of a process, which must come.
pub fn wait(child: &mut Child) -> ExitStatus {
    wait_within(child, AT_ALL)
}

fn wait_within(child: &mut Child, most: Duration) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if start.elapsed() > most {
            let threads = threads(child.id());
            child.kill().unwrap();
            panic!("no end after {:?}; its threads:{threads}", start.elapsed());
        }
        sleep(Duration::from_millis(1));
    }
}

/// Describes what the threads of a process wait for, where the system provides it.
fn threads(id: u32) -> String {
    let tasks = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let about = tasks.map(|task| {
        let read = |name: &str| fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let status = read("status");
        let is_shown = |line: &&str| {
            ["State:", "SigPnd:", "ShdPnd:", "SigBlk:"].iter().any(|name| line.starts_with(name))
        };
        let status: Vec<&str> = status.lines().filter(is_shown).collect();
        format!(
            "\n{} in {}, {}, {}",
            read("comm").trim(),
            read("wchan"),
            read("syscall").trim(),
            status.join(" ")
        )
    });
    about.collect()
}

/// Reads the output of a process, and waits for its end.
pub fn finish(child: Child) -> Output {
    finish_within(child, AT_ALL, u64::MAX).0
}

/// Like [`finish`], with a time limit and a limit on the bytes of output that are kept. Also returns the number of further
/// bytes.
pub fn finish_within(mut child: Child, most: Duration, bytes: u64) -> (Output, u64) {
    fn all(pipe: Option<impl Read + Send + 'static>, bytes: u64) -> JoinHandle<(Vec<u8>, u64)> {
        std::thread::spawn(move || {
            let (mut text, mut more) = (Vec::new(), 0);
            if let Some(mut pipe) = pipe {
                pipe.by_ref().take(bytes).read_to_end(&mut text).unwrap();
                more = std::io::copy(&mut pipe, &mut std::io::sink()).unwrap();
            }
            (text, more)
        })
    }
    let (stdout, stderr) = (all(child.stdout.take(), bytes), all(child.stderr.take(), bytes));
    let status = wait_within(&mut child, most);
    let ((stdout, more), (stderr, _)) = (stdout.join().unwrap(), stderr.join().unwrap());
    (Output { status, stdout, stderr }, more)
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Returns whether this process ignores a signal, and so do all its children: in the background of a script, for
/// example. Known on Linux only.
pub fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() >> (signal - 1) & 1 != 0)
}

/// Returns a number from the environment, for longer runs.
pub fn number(name: &str, usual: u32) -> u32 {
    std::env::var(name).ok().map_or(usual, |value| value.parse().unwrap())
}

/// Returns the unpacked bytes of a sample.
pub fn sample(name: &str) -> Vec<u8> {
    let packed = fs::read(format!("samples/{name}.hprof.zst")).unwrap();
    zstd::decode_all(&packed[..]).unwrap()
}
