//! `listen` with clients that play agents, `run` and `agent` with a library that is none.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::Duration;

use hprof_format::commands::{self, Command as Sent, Incoming};

/// A `listen` that runs.
struct Listener {
    dir: tempfile::TempDir,
    child: Child,
    stderr: BufReader<ChildStderr>,
    address: SocketAddr,
}

impl Listener {
    fn start(arguments: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
        command
            .args(["listen", "--port", "0", "--format", "json", "--output-dir"])
            .arg(dir.path())
            .args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let (_, address) = line.trim().rsplit_once("net=").unwrap_or_else(|| panic!("{line}"));
        let address = address.parse().unwrap();
        Self { dir, child, stderr, address }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Reads stderr up to a line with this text.
    fn wait_for(&mut self, text: &str) {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert_ne!(self.stderr.read_line(&mut line).unwrap(), 0, "no `{text}`");
        }
    }

    /// Waits for the end: the exit code, and state and name of each recording.
    fn finish(self) -> (i32, Vec<(String, String)>) {
        let Self { dir, child, mut stderr, .. } = self;
        std::io::copy(&mut stderr, &mut std::io::sink()).unwrap();
        let output = child.wait_with_output().unwrap();
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let rows = json["rows"].as_array().unwrap().iter().map(|row| {
            let path = Path::new(row["file"].as_str().unwrap());
            assert_eq!(path.metadata().unwrap().len(), row["file_bytes"].as_u64().unwrap());
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (row["state"].as_str().unwrap().to_owned(), name)
        });
        let rows: Vec<_> = rows.collect();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), rows.len(), "only recordings are left");
        (output.status.code().unwrap(), rows)
    }
}

fn row(state: &str, name: &str) -> (String, String) {
    (state.to_owned(), name.to_owned())
}

/// A recording of the agent's format: header, a string, a heap dump of one segment.
fn recording() -> Vec<u8> {
    let mut bytes = b"JAVA PROFILE 1.0.2\0\0\0\0\x08\0\0\0\0\0\0\0\x01".to_vec();
    bytes.extend(b"\x01\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0\x01a");
    bytes.extend(b"\x1c\0\0\0\0\0\0\0\x09\xff\0\0\0\0\0\0\0\x01");
    bytes.extend(b"\x2c\0\0\0\0\0\0\0\0");
    bytes
}

#[test]
fn a_whole_recording_that_comes_slowly_is_saved() {
    let listener = Listener::start(&["--once"]);
    let mut agent = listener.connect();
    for piece in recording().chunks(5) {
        agent.write_all(piece).unwrap();
        agent.flush().unwrap();
        std::thread::sleep(Duration::from_millis(2));
    }
    drop(agent);
    assert_eq!(listener.finish(), (0, vec![row("complete", "recording-1.hprof")]));
}

#[test]
fn cut_recordings_are_kept_and_marked() {
    let whole = recording();
    // In the segment, and between it and the end of the heap dump.
    for cut in [whole.len() - 13, whole.len() - 9] {
        let listener = Listener::start(&["--once"]);
        listener.connect().write_all(&whole[..cut]).unwrap();
        assert_eq!(listener.finish(), (3, vec![row("truncated", "recording-1.cut.hprof")]), "{cut}");
    }
    let listener = Listener::start(&["--once"]);
    listener.connect().write_all(&[&whole[..], b"\x99 is no record"].concat()).unwrap();
    assert_eq!(listener.finish(), (3, vec![row("damaged", "recording-1.cut.hprof")]));
    let listener = Listener::start(&["--once", "--max-bytes", "50"]);
    listener.connect().write_all(&whole).unwrap();
    assert_eq!(listener.finish(), (3, vec![row("truncated", "recording-1.cut.hprof")]));
}

#[test]
fn texts_and_garbage() {
    let mut listener = Listener::start(&["--once"]);
    listener.connect().write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    listener.wait_for("refused agent");
    let text = b"JAVA PROFILE 1.0.1, created Mon Nov 23 00:00:00 2026\n\n--------\nSITES BEGIN (ordered by live bytes) \
        Mon Nov 23 00:00:00 2026\nSITES END\n";
    listener.connect().write_all(text).unwrap();
    assert_eq!(listener.finish(), (0, vec![row("complete", "recording-1.hprof.txt")]));
    let listener = Listener::start(&["--once"]);
    listener.connect().write_all(&text[..text.len() - 10]).unwrap();
    assert_eq!(listener.finish(), (3, vec![row("truncated", "recording-1.cut.hprof.txt")]));
}

#[test]
fn two_agents_get_commands_from_stdin() {
    let mut listener = Listener::start(&["--once"]);
    let (mut one, mut two) = (listener.connect(), listener.connect());
    one.write_all(&recording()).unwrap();
    listener.wait_for("HEAP DUMP of 9 B received");
    two.write_all(&recording()).unwrap();
    listener.wait_for("HEAP DUMP of 9 B received");
    let mut stdin = listener.child.stdin.take().unwrap();
    stdin.write_all(b"nonsense\nheap\n1 control depth 7\neof\n").unwrap();
    drop(stdin);
    let commands = |stream: &mut TcpStream| {
        let mut all = Vec::new();
        while let Some(Incoming::Request(request)) = commands::read(stream).unwrap() {
            all.push(request.command);
            if request.command == Sent::Eof {
                break;
            }
        }
        all
    };
    // The order of acceptance decides which of them is the first.
    let depth = Sent::Control(commands::Control::Depth(7));
    assert_eq!(commands(&mut one), [Sent::DumpHeap, depth, Sent::Eof]);
    assert_eq!(commands(&mut two), [Sent::DumpHeap, Sent::Eof]);
    drop((one, two));
    let (code, mut rows) = listener.finish();
    rows.sort();
    assert_eq!(
        (code, rows),
        (0, ["recording-1.hprof", "recording-2.hprof"].map(|name| row("complete", name)).to_vec())
    );
}

#[test]
fn commands_are_sent_to_each_agent_that_connects() {
    let listener = Listener::start(&["--once", "--send", "summary,sites 0.5", "--after", "50ms"]);
    let mut agent = listener.connect();
    agent.write_all(&recording()).unwrap();
    let mut bytes = [0; 24];
    agent.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"\x04\0\0\0\x01\0\0\0\0\x03\0\0\0\x02\0\0\0\x06\0\0\x3f\0\0\0");
    drop(agent);
    assert_eq!(listener.finish().0, 0);
}

#[test]
fn too_many_are_refused() {
    let mut listener = Listener::start(&["--once"]);
    let connect = |listener: &mut Listener| {
        let mut agent = listener.connect();
        agent.write_all(&recording()).unwrap();
        listener.wait_for("receiving into");
        agent
    };
    let all: Vec<TcpStream> = (0..64).map(|_| connect(&mut listener)).collect();
    let mut more = listener.connect();
    assert_eq!(more.read(&mut [0]).unwrap_or(0), 0);
    listener.wait_for("64 agents are connected");
    drop(all);
    assert_eq!(listener.finish().1.len(), 64);
}

/// The agent sends nothing before it dumps in text `cpu=old`, perhaps after days: who is silent stays while there is room.
/// Beyond that the one that has been silent for longest goes, and an agent that has begun never.
#[test]
fn silent_connections_shut_nobody_out() {
    let mut listener = Listener::start(&["--once"]);
    let mut quiet = listener.connect();
    quiet.write_all(&recording()[..31]).unwrap();
    listener.wait_for("agent 1: receiving into");
    let mut silent: Vec<TcpStream> = (0..63).map(|_| listener.connect()).collect();
    listener.wait_for("agent 64 connected");
    // Part of a head is no recording yet.
    silent[0].write_all(b"JAVA PRO").unwrap();
    let mut agent = listener.connect();
    agent.write_all(&recording()).unwrap();
    listener.wait_for("agent 65: receiving into");
    assert_eq!(silent.remove(0).read(&mut [0]).unwrap_or(0), 0);
    // The others are still there, and are heard when they have something to say.
    let mut late = silent.remove(0);
    late.write_all(b"count callee caller time\n8360 Plain.fib(I)I Plain.fib(I)I 83\n").unwrap();
    drop(late);
    listener.wait_for("recording-3.hprof.txt");
    quiet.write_all(&recording()[31..]).unwrap();
    drop((quiet, agent, silent));
    let (code, mut rows) = listener.finish();
    rows.sort();
    let names = ["recording-1.hprof", "recording-2.hprof", "recording-3.hprof.txt"];
    assert_eq!((code, rows), (0, names.map(|name| row("complete", name)).to_vec()));
}

/// `--once` waits for an agent that has sent nothing yet.
#[test]
fn once_ends_when_no_agent_is_connected() {
    let mut listener = Listener::start(&["--once"]);
    let mut late = listener.connect();
    listener.wait_for("agent 1 connected");
    listener.connect().write_all(&recording()).unwrap();
    listener.wait_for("recording-1.hprof,");
    late.write_all(b"count callee caller time\n8360 Plain.fib(I)I Plain.fib(I)I 83\n").unwrap();
    drop(late);
    let (code, mut rows) = listener.finish();
    rows.sort();
    let names = ["recording-1.hprof", "recording-2.hprof.txt"];
    assert_eq!((code, rows), (0, names.map(|name| row("complete", name)).to_vec()));
}

#[cfg(unix)]
#[test]
fn a_signal_ends_it_and_keeps_what_is_there() {
    let mut listener = Listener::start(&[]);
    let mut agent = listener.connect();
    agent.write_all(&recording()).unwrap();
    listener.wait_for("HEAP DUMP");
    let id = listener.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(listener.finish(), (3, vec![row("truncated", "recording-1.cut.hprof")]));
    drop(agent);
}

fn program(arguments: &[&str], library: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
    command
        .args(arguments)
        .env("HPROF_CLI_AGENT", library)
        .env("JAVA_TOOL_OPTIONS", "-Da=b")
        .output()
        .unwrap()
}

#[test]
fn other_machines_are_not_let_in_by_mistake() {
    let output = program(&["listen", "--address", "0.0.0.0", "--port", "0"], Path::new(""));
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--allow-remote"));
}

#[cfg(unix)]
#[test]
fn programs_run_with_the_agent() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let library = dir.path().join("agent.so");
    std::fs::write(&library, "").unwrap();
    let script = |name: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, "#!/bin/sh\necho \"$JAVA_TOOL_OPTIONS|$*\"\nexit 42\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let lib = library.to_str().unwrap();
    let java = script("java");
    let output =
        program(&["run", "--heap", "sites", "--options", "thread=y", "--", &java, "-jar", "a b"], &library);
    assert_eq!(output.status.code(), Some(42));
    // By samples: every allocation makes a program 20 times slower, which is said before it starts.
    let expected = format!("-Da=b|-agentpath:{lib}=heap=sites,sample=524288,thread=y -jar a b\n");
    assert_eq!((String::from_utf8_lossy(&output.stdout).into_owned(), output.stderr), (expected, Vec::new()));
    let output = program(&["run", "--heap", "sites", "--options", "sample=4096", "--", &java], &library);
    let expected = format!("-Da=b|-agentpath:{lib}=heap=sites,sample=4096\n");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim_end(), expected.trim_end());
    let output = program(&["run", "--heap", "sites", "--exact", "--", &java], &library);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim_end(),
        format!("-Da=b|-agentpath:{lib}=heap=sites")
    );
    assert!(said.contains("20 to 30 times"), "{said}");
    assert_eq!(program(&["run", "--heap", "dump", "--exact", "--", &java], &library).status.code(), Some(2));
    let exact_and = |options| {
        let output =
            program(&["run", "--heap", "sites", "--exact", "--options", options, "--", &java], &library);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = exact_and("thread=y,sample=4096");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("sample=4096 in --options samples them; omit one of them"), "{said}");
    // All of them.
    assert_eq!(exact_and("sample=0").0, Some(42));
    let output = program(&["run", "--", &script("mvn"), "test"], &library);
    assert_eq!(output.status.code(), Some(42));
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("-Da=b -agentpath:{lib}=force=n|test\n"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("JAVA_TOOL_OPTIONS"));
    assert_eq!(program(&["run", "--", "/nowhere/java"], &library).status.code(), Some(2));

    let output = program(&["agent", "--path"], &library);
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{lib}\n"));
    let output = program(&["agent", "--format", "json"], &library);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["rows"][0]["library"], lib);
    let missing = program(&["agent"], &dir.path().join("missing.so"));
    assert_eq!((missing.status.code(), missing.stdout.len()), (Some(2), 0));
}
