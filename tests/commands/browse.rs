//! `browse`: what it refuses, and in builds that contain it a session in a terminal: in tmux, where it is installed; elsewhere
//! that test says NOT RUN and passes.

use std::process::Stdio;

use crate::kit::process::{Folder, finish, stderr};
use crate::kit::terminal;
use crate::kit::texts::code;

/// Runs it on a dump with these ends; `None` is a terminal. Returns its exit code and what it says on stderr.
fn refused(dump: &str, stdin: Option<Stdio>, stdout: Option<Stdio>) -> (i32, String) {
    let place = Folder::new();
    let (_screen, slave) = terminal::open(80, 24);
    let on_terminal = || Stdio::from(slave.try_clone().unwrap());
    let mut command = place.command(&["browse", dump]);
    command.stdin(stdin.unwrap_or_else(on_terminal)).stdout(stdout.unwrap_or_else(on_terminal));
    let output = finish(command.stderr(Stdio::piped()).spawn().unwrap());
    (code(&output), stderr(&output))
}

#[cfg(feature = "browse")]
#[test]
fn without_a_terminal_for_keys_and_screens_it_says_so() {
    const DUMP: &str = "samples/leaks/s1.hprof.zst";
    let keys = "error: standard input is not a terminal, and browse reads keys from it";
    let screens = "error: standard output is not a terminal, which browse requires";
    let dash = "error: browse reads keys from standard input, so it cannot read a dump from there";
    for (dump, stdin, stdout, expected) in [
        (DUMP, Some(Stdio::null()), None, keys),
        (DUMP, Some(Stdio::piped()), None, keys),
        (DUMP, None, Some(Stdio::piped()), screens),
        (DUMP, None, Some(Stdio::null()), screens),
        // Also a dump that does not exist: the terminal comes first.
        ("nothing.hprof", Some(Stdio::null()), Some(Stdio::piped()), keys),
        ("-", None, None, dash),
        // A writer that never writes: nothing is read.
        ("-", Some(Stdio::piped()), None, dash),
    ] {
        let (code, said) = refused(dump, stdin, stdout);
        assert_eq!(code, 2, "{dump}: {said}");
        assert!(said.contains(expected) && said.lines().count() == 1, "{dump}: {said}");
    }
}

#[cfg(not(feature = "browse"))]
#[test]
fn a_build_without_it_says_how_to_get_it() {
    for stdin in [Some(Stdio::null()), None] {
        let (code, said) = refused("samples/leaks/s1.hprof.zst", stdin, None);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("was built without browse") && said.contains("--features browse"), "{said}");
    }
}

#[cfg(feature = "browse")]
mod session {
    use std::io::{Read as _, Write as _};
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::{Command, Stdio};
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, Signal, kill_process};
    use rustix::termios::{LocalModes, tcgetattr};

    use crate::kit::process::{Folder, finish, is_ignored};
    use crate::kit::terminal;

    /// Sends signals to a browser that shows the overview, without a pause between them.
    fn is_restored_after(signals: &[Signal]) {
        let place = Folder::new();
        let (mut master, slave) = terminal::open(80, 24);
        let modes = || tcgetattr(&slave).unwrap().local_modes;
        let before = modes();
        let mut command = place.command(&["browse", "samples/leaks/s1.hprof.zst"]);
        let end = || Stdio::from(slave.try_clone().unwrap());
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        drop(command);
        let screen = Arc::new(Mutex::new(Vec::new()));
        let shown = screen.clone();
        // Ends with the test binary: this process has the other end too.
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = master.read(&mut bytes) {
                shown.lock().unwrap().extend_from_slice(&bytes[..length]);
            }
        });
        let text = || String::from_utf8_lossy(&screen.lock().unwrap()).into_owned();
        let since = Instant::now();
        while !text().contains("ProductService") {
            assert!(since.elapsed() < Duration::from_secs(120), "{}", text());
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!modes().contains(LocalModes::ICANON));
        for signal in signals {
            kill_process(Pid::from_child(&child), *signal).unwrap();
        }
        let status = finish(child).status;
        assert!(
            signals.iter().any(|signal| status.signal() == Some(signal.as_raw())),
            "{signals:?}: {status:?}"
        );
        assert_eq!(modes(), before, "{signals:?}");
        let since = Instant::now();
        // Leaves the alternate screen, and shows the cursor.
        while !(text().contains("\u{1b}[?1049l") && text().contains("\u{1b}[?25h")) {
            assert!(since.elapsed() < Duration::from_secs(10), "{signals:?}: {}", text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn signals_leave_a_terminal_restored_whatever_comes() {
        for signals in [
            &[Signal::TERM][..],
            &[Signal::INT, Signal::TERM],
            &[Signal::TERM, Signal::TERM, Signal::HUP],
            &[Signal::HUP, Signal::INT],
            &[Signal::QUIT],
            &[Signal::USR1, Signal::TERM],
            &[Signal::ABORT],
        ] {
            // In the background of a script, some have no effect.
            let signals: Vec<Signal> =
                signals.iter().copied().filter(|signal| !is_ignored(signal.as_raw())).collect();
            if !signals.is_empty() {
                is_restored_after(&signals);
            }
        }
    }

    /// Returns whether a program is installed.
    fn runs(program: &str, option: &str) -> bool {
        let status = Command::new(program).arg(option).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }

    #[test]
    fn a_terminal_shows_the_culprits_of_planted_leaks_and_is_restored() {
        if !runs("tmux", "-V") || !runs("python3", "--version") {
            let why =
                "NOT RUN: browse in a terminal: tmux and python3 are needed: apt-get install tmux python3\n";
            // Not by a macro: what passes would not be shown.
            std::io::stderr().write_all(why.as_bytes()).unwrap();
            return;
        }
        let root = env!("CARGO_MANIFEST_DIR");
        let walk = Command::new("python3")
            .arg(format!("{root}/docs/browse/tmux.py"))
            .args([env!("CARGO_BIN_EXE_hprof-cli"), &format!("{root}/samples/leaks")])
            .output()
            .unwrap();
        let (out, err) = (String::from_utf8_lossy(&walk.stdout), String::from_utf8_lossy(&walk.stderr));
        assert!(walk.status.success(), "{out}{err}");
    }
}
