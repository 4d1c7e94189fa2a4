//! Dumps that come through a pipe: `-`, and named pipes.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::kit::process;

/// A directory with nothing but a cache in it.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hprof-cli"));
        command.args(arguments).current_dir(self.0.path());
        command.env_remove("HPROF_CLI_INDEX_DIR").env("XDG_CACHE_HOME", self.0.path().join("cache"));
        command
    }

    /// Runs it with these bytes on standard input.
    fn piped(mut command: Command, bytes: &[u8]) -> Output {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::thread::scope(|scope| {
            // A program that does not read to the end closes the pipe.
            scope.spawn(move || stdin.write_all(bytes));
            let mut out = Vec::new();
            let mut said = Vec::new();
            let mut stderr = child.stderr.take().unwrap();
            let reader = scope.spawn(move || {
                stderr.read_to_end(&mut said).unwrap();
                said
            });
            child.stdout.take().unwrap().read_to_end(&mut out).unwrap();
            let stderr = reader.join().unwrap();
            Output { status: child.wait().unwrap(), stdout: out, stderr }
        })
    }

    /// Returns the remains of copies and their indexes.
    fn left(&self) -> Vec<String> {
        names(&self.0.path().join("cache/hprof-cli"))
    }
}

/// Returns the names in a directory.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn answer(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

#[test]
fn standard_input_is_read_packed_or_not() {
    let place = Place::new();
    let plain = process::sample("leaks/s3");
    let path = place.0.path().join("s3.hprof");
    fs::write(&path, &plain).unwrap();
    let packed = fs::read("samples/leaks/s3.hprof.zst").unwrap();
    let rows = |text: &str| {
        let document: serde_json::Value = serde_json::from_str(text).unwrap();
        (document["rows"].clone(), document["dump"]["path"].clone())
    };
    for command in [&["leaks"][..], &["histo", "--top", "3"], &["summary"], &["show", "0xfc25e870"]] {
        let (name, more) = &command.split_first().unwrap();
        let of = |dump: &'static str| [&[*name, dump], *more, &["--format", "json"]].concat();
        let expected = answer(&place.command(&of("s3.hprof")).output().unwrap());
        for bytes in [&plain, &packed, &gzip(&plain)] {
            let output = Place::piped(place.command(&of("-")), bytes);
            let (rows_of_pipe, shown) = rows(&answer(&output));
            if !command.contains(&"summary") {
                assert_eq!(rows_of_pipe, rows(&expected).0, "{name}");
            }
            assert_eq!(shown, "-", "{name}");
            // Nothing exists that could be removed.
            assert!(!String::from_utf8_lossy(&output.stderr).contains("--remove"), "{output:?}");
            assert_eq!(place.left(), Vec::<String>::new(), "{name}");
        }
    }
    // Without a command, and the commands that it names work on the next pipe.
    let text = answer(&Place::piped(place.command(&["-"]), &plain));
    let next = text.split("Next\n").nth(1).unwrap().lines().next().unwrap();
    assert!(next.contains("hprof-cli leaks -"), "{text}");
    // A comparison with an existing file.
    let same = Place::piped(place.command(&["diff", "s3.hprof", "-"]), &plain);
    assert!(String::from_utf8_lossy(&same.stderr).contains("nothing has changed"), "{same:?}");
}

#[cfg(unix)]
#[test]
fn a_named_pipe_is_read_once() {
    let place = Place::new();
    let fifo = place.0.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let plain = process::sample("leaks/s3");
    let text = std::thread::scope(|scope| {
        let path: &Path = &fifo;
        scope.spawn(move || fs::write(path, plain).unwrap());
        let directory = ["leaks", "fifo", "--index-dir", "indexes"];
        answer(&place.command(&directory).output().unwrap())
    });
    assert!(text.contains("40 class loaders"), "{text}");
    assert_eq!(fs::read_dir(place.0.path().join("indexes")).unwrap().count(), 0);
}

#[test]
fn what_cannot_be_read_is_said() {
    let place = Place::new();
    for (line, bytes, said) in [
        (&["diff", "-", "-"][..], &b"x"[..], "standard input can be read only once"),
        (&["leaks", "-"], b"", "standard input is empty"),
        (&["-", "leaks"], b"", "the command comes first: hprof-cli leaks -"),
        (&["leaks", "-"], b"no dump at all, but a text", "stdin.hprof"),
    ] {
        let output = Place::piped(place.command(line), bytes);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line:?}: {text}");
        assert!(text.contains(said), "{line:?}: {text}");
        assert_eq!(place.left(), Vec::<String>::new());
    }
}

#[cfg(unix)]
#[test]
fn a_full_disk_is_said_and_nothing_stays() {
    let place = Place::new();
    // Half of what comes.
    let plain = process::sample("leaks/s3");
    let mut command = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 1000; exec \"$0\" leaks -";
    command.args(["-c", script, env!("CARGO_BIN_EXE_hprof-cli")]).current_dir(place.0.path());
    command.env_remove("HPROF_CLI_INDEX_DIR").env("XDG_CACHE_HOME", place.0.path().join("cache"));
    let output = Place::piped(command, &plain);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("cannot copy standard input into"), "{text}");
    assert!(text.contains("--index-dir DIR"), "{text}");
    assert_eq!(place.left(), Vec::<String>::new());
}

/// The commands in a report that begin with this.
fn shown<'t>(text: &'t str, command: &str) -> Vec<&'t str> {
    let lines = text.lines().map(|line| line.trim_matches('`'));
    lines.filter(|line| line.starts_with(&format!("hprof-cli {command} "))).collect()
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn a_report_shows_commands_for_the_next_pipe() {
    let place = Place::new();
    let plain = process::sample("leaks/s1");
    fs::write(place.0.path().join("old.hprof"), &plain).unwrap();
    let directories = ["--index-dir", "indexes"];
    for more in [&[][..], &directories] {
        for format in ["markdown", "json", "html"] {
            let line = [&["report", "-", "--format", format], more].concat();
            let text = answer(&Place::piped(place.command(&line), &plain));
            assert!(!text.contains("hprof-cli-pipe-"), "{line:?}");
            assert_eq!(
                format == "markdown",
                shown(&text, "leaks") == ["hprof-cli leaks -"],
                "{line:?}: {text}"
            );
        }
    }
    assert_eq!(names(&place.0.path().join("indexes")), Vec::<String>::new());
    // A file is beside it: its index is in the directory that was named, and stays.
    let line =
        [&["report", "-", "--format", "markdown", "--baseline", "old.hprof"], &directories[..]].concat();
    let text = answer(&Place::piped(place.command(&line), &plain));
    assert_eq!(shown(&text, "leaks"), ["hprof-cli leaks -"]);
    let compared = shown(&text, "diff");
    assert!(!compared.is_empty(), "{text}");
    for command in compared {
        assert!(command.starts_with("hprof-cli diff old.hprof - "), "{command}");
        assert!(command.ends_with(" --index-dir=indexes"), "{command}");
    }
    let left = names(&place.0.path().join("indexes"));
    assert!(left.len() == 1 && left[0].starts_with("old.hprof-"), "{left:?}");
}

#[test]
fn notes_name_the_pipe() {
    let place = Place::new();
    let output = Place::piped(place.command(&["histo", "-", "0x7"]), &process::sample("leaks/s1"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("`hprof-cli show - 0x7`"), "{said}");
}

/// Ends it also if the test fails.
#[cfg(all(unix, feature = "serve"))]
struct Ended(std::process::Child);

#[cfg(all(unix, feature = "serve"))]
impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(all(unix, feature = "serve"))]
#[test]
fn a_server_of_a_pipe_leaves_nothing() {
    use crate::kit::http::Client;
    use std::ffi::OsStr;
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::ffi::OsStrExt as _;

    // Workers get the path of the copy, which need not be text.
    let name = OsStr::from_bytes(b"index\xe9s");
    for is_variable in [false, true] {
        let place = Place::new();
        let dir = place.0.path().join(name);
        let mut command = place.command(&["serve", "-", "--port", "0"]);
        if is_variable {
            command.env("HPROF_CLI_INDEX_DIR", &dir);
        } else {
            command.arg("--index-dir").arg(&dir);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = Ended(command.spawn().unwrap());
        server.0.stdin.take().unwrap().write_all(&process::sample("leaks/s1")).unwrap();
        let mut url = String::new();
        let mut stdout = BufReader::new(server.0.stdout.take().unwrap());
        stdout.read_line(&mut url).unwrap();
        let url = url.trim_end();
        let port = url.strip_prefix("http://127.0.0.1:").unwrap().split_once('/').unwrap().0;
        let client = Client::enter(port.parse().unwrap(), url);
        let page = client.ready("/1/leaks");
        assert_eq!(page.status, 200);
        let page = page.text();
        assert!(page.contains(">hprof-cli leaks -<"), "{page}");
        assert!(!page.contains("hprof-cli-pipe-"), "{page}");
        let rest = names(&dir).into_iter().filter(|name| !name.starts_with("hprof-cli-pipe-"));
        assert_eq!(rest.collect::<Vec<_>>(), Vec::<String>::new(), "{is_variable}");
        assert!(Command::new("kill").args(["-TERM", &server.0.id().to_string()]).status().unwrap().success());
        process::wait(&mut server.0);
        assert_eq!((names(&dir), place.left()), (Vec::new(), Vec::new()), "{is_variable}");
    }
}
