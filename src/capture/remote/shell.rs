//! How a helper gets to a place where only `sh` and `cat` are.
//!
//! Two commands run at the same time. In the first, a shell says where it is ([`facts`](super::facts)), waits, and at last
//! becomes the helper. If it ends before, it removes the helper's file. In the second, `cat` writes that file; only the end
//! of its stdin ends it, so that it needs a command of its own. Lines are sent to a shell one at a time, when it has nothing
//! else to read: some shells read more than a line, and what follows is not for them.
//!
//! The only word that is appended to the command is `sh`: `ssh` joins words, and another shell splits them again.

use std::io::{BufRead, Read, Write};
use std::path::PathBuf;

use super::client::{RemoteMachine, greeted};
use super::command::{Note, Running};
use super::facts::{self, Facts};
use super::helper::{Helper, Start};
use crate::private;
use crate::remote_error::RemoteError;

/// Prefix of the names of helpers.
const PREFIX: &str = ".hprof-cli-helper-";

/// Maximum number of bytes that a shell says about its place.
const MAX_SAID: u64 = 4 << 20;

/// Brings one of these helpers to where the command leads, and starts it.
///
/// # Errors
///
/// If the command fails, or no helper runs there.
pub fn connect(command: &str, helpers: &[PathBuf], note: &Note) -> Result<RemoteMachine, RemoteError> {
    let token = private::random_name("hprof-");
    let mut shell = Running::start(command, "sh", note)?;
    let facts = ask(&mut shell, &token)?;
    let (helper, start) = Helper::choose(helpers, &facts)?;
    let mut failed = Vec::new();
    for directory in &facts.directories {
        let file = private::random_name(&format!("{}/{PREFIX}", directory.trim_end_matches('/')));
        let (program, loader) = match start {
            Start::Itself => (format!("'{file}'"), String::new()),
            Start::Loader(loader) => (format!("{loader} '{file}'"), format!(" {loader}")),
        };
        // Without `rm`, a helper that arrived removes its own file. What arrived in part is emptied.
        let remove = format!(
            "rm -f '{file}' 2>/dev/null || {program} {} '{file}' 2>/dev/null || {{ [ -e '{file}' ] && true >|'{file}'; }}",
            super::REMOVE
        );
        // `exec` is no end.
        tell(&mut shell, &format!("trap \"{remove}\" EXIT; trap 'exit 1' HUP INT TERM\n"))?;
        match send(command, &token, &file, &helper.bytes, note)? {
            Ok(()) => {}
            Err(why) => {
                failed.push(format!("{directory}: {why}"));
                tell(&mut shell, &format!("{remove}\n"))?;
                continue;
            }
        }
        tell(&mut shell, &format!("exec {program} {} {token} '{file}'{loader}\n", super::SERVE))?;
        let connected = hello(shell, &token);
        if connected.is_err() {
            // What became of the shell may have failed before it removed the file, as without its libraries.
            let mut shell = Running::start(command, "sh", note)?;
            tell(&mut shell, &format!("{remove}\n"))?;
        }
        return connected;
    }
    let why = if failed.is_empty() { facts.why() } else { failed.join("; ") };
    Err(RemoteError::NoPlace { why })
}

/// Starts a helper that is already where the command leads.
///
/// # Errors
///
/// If the command fails, or the program is no helper of this version.
pub fn connect_to(command: &str, program: &str, note: &Note) -> Result<RemoteMachine, RemoteError> {
    let token = private::random_name("hprof-");
    let quoted = format!("'{}'", program.replace('\'', "'\\''"));
    let running = Running::start(command, &format!("{quoted} {} {token}", super::SERVE), note)?;
    hello(running, &token)
}

fn hello(mut running: Running, token: &str) -> Result<RemoteMachine, RemoteError> {
    greeted(&mut running, token)?;
    running.when = "before it had answered";
    Ok(RemoteMachine::new(running))
}

fn tell(shell: &mut Running, line: &str) -> Result<(), RemoteError> {
    let written = shell.input()?.write_all(line.as_bytes());
    written.map_err(|error| shell.lost(error))
}

/// Reads lines until one is `last`. Returns those after `first`; `None` if the output ended before.
fn lines(shell: &mut Running, first: &str, last: &str) -> Result<Option<Vec<String>>, RemoteError> {
    let mut found = None;
    let mut left = MAX_SAID;
    loop {
        let mut line = Vec::new();
        let read = shell.output.by_ref().take(left).read_until(b'\n', &mut line);
        let length = read.map_err(|error| shell.lost(error))?;
        left = left.saturating_sub(length as u64);
        if length == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
        match &mut found {
            None if line == first => found = Some(Vec::new()),
            None => {}
            Some(lines) if line == last => return Ok(Some(std::mem::take(lines))),
            Some(lines) => lines.push(line),
        }
    }
}

/// Asks the shell about its place.
fn ask(shell: &mut Running, token: &str) -> Result<Facts, RemoteError> {
    tell(shell, &facts::question(token))?;
    let (begin, end) = (format!("{token}-begin"), format!("{token}-end"));
    match lines(shell, &begin, &end)?.map(|lines| Facts::of(&lines, token)) {
        Some(facts) if facts.is_terminal => {
            // The end of our output does not end what sits on a terminal.
            tell(shell, "exit\n")?;
            Err(RemoteError::NotShell { command: shell.command.clone() })
        }
        Some(facts) => Ok(facts),
        None => Err(match shell.ended() {
            RemoteError::Ended { command, status, .. } if status.ends_with(": 0") => {
                RemoteError::NotShell { command }
            }
            error => error,
        }),
    }
}

/// Writes the helper to a file there. Returns why it could not be written.
fn send(
    command: &str,
    token: &str,
    file: &str,
    bytes: &[u8],
    note: &Note,
) -> Result<Result<(), String>, RemoteError> {
    let mut shell = Running::start(command, "sh", note)?;
    // `set -C` creates only files that do not exist. `exit`: if `cat` fails, the rest of the helper is no script.
    let line = format!(
        "umask 077; set -C; echo; if true >'{file}'; then echo {token}-ready; echo {token}-go; cat >>'{file}'; \
         echo {token}-written $?; chmod 700 '{file}' 2>/dev/null; else echo {token}-ready; echo {token}-refused; \
         echo {token}-go; fi; echo {token}-end; exit\n"
    );
    tell(&mut shell, &line)?;
    let ended = |shell: &mut Running| Err(shell.ended());
    let Some(ready) = lines(&mut shell, &format!("{token}-ready"), &format!("{token}-go"))? else {
        return ended(&mut shell);
    };
    if !ready.is_empty() {
        return Ok(Err("it cannot be written to".to_owned()));
    }
    // If `cat` fails, it says so on stderr, which is passed on.
    let _ = shell.input()?.write_all(bytes);
    shell.close();
    match lines(&mut shell, &format!("{token}-written 0"), &format!("{token}-end"))? {
        Some(_) => Ok(Ok(())),
        None => Ok(Err("writing the helper failed".to_owned())),
    }
}
