//! Transfer of a helper to a machine through `sh` and `cat`.
//!
//! Two commands run at the same time. In the first, a shell prints facts about its machine ([`facts`]), creates the helper's
//! file, waits, and finally becomes the helper. If it ends earlier, it removes the file. In the second, `cat` fills the file.
//! It needs a separate command because it ends only with its stdin. It opens the file through the first shell, which holds the
//! file open, as do all later steps: other users who may write to the directory can replace the file, but the replacement is
//! neither written nor started.
//!
//! Lines are sent to a shell one at a time, when it has no other input, because some shells read ahead and would consume lines
//! for another program. Only the word `sh` is appended to the command, because `ssh` joins words, and another shell splits them
//! again.

use std::io::{BufRead, Read, Write};
use std::path::PathBuf;

use super::client::{RemoteMachine, wait_for_hello};
use super::command::{Contact, RunningCommand};
use super::facts::{self, MachineFacts};
use super::helper::{Helper, Launch};
use crate::random_name::random_name;
use crate::remote_error::RemoteError;

/// Prefix of the file names of helpers.
const PREFIX: &str = ".hprof-cli-helper-";

/// Maximum length of a shell's output in bytes.
const MAX_ANSWER: u64 = 1 << 20;

/// Sends a suitable helper to the machine to which the command connects, and starts it.
///
/// # Errors
///
/// If the command fails, or no helper runs on the machine.
pub fn connect(command: &str, helpers: &[PathBuf], contact: &Contact) -> Result<RemoteMachine, RemoteError> {
    let token = random_name("hprof-");
    let mut shell = RunningCommand::start(command, "sh", contact)?;
    let facts = ask(&mut shell, &token)?;
    let (helper, launch) = Helper::choose(helpers, &facts)?;
    let mut failed = Vec::new();
    for directory in &facts.directories {
        let file = random_name(&format!("{}/{PREFIX}", directory.trim_end_matches('/')));
        match bring(&mut shell, command, &token, &file, &helper, &launch, contact)? {
            Ok(()) => {
                let loader = launch.loader().map(|loader| format!(" {loader}")).unwrap_or_default();
                // The file is removed first, so that no file is left if the shell or the helper is killed.
                let serve = format!(
                    "{{ {}; }} 2>/dev/null || exit 1; trap - EXIT; exec {} {} {token}{loader}\n",
                    removal(&file, launch),
                    launch.program(),
                    super::SERVE
                );
                tell(&mut shell, &serve)?;
                let connected = hello(shell, &token);
                if connected.is_err() {
                    remove_afterwards(command, &token, &file, contact);
                }
                return connected;
            }
            Err(why) => failed.push(format!("{directory}: {why}")),
        }
    }
    let why = if failed.is_empty() { facts.refusal_reasons() } else { failed.join("; ") };
    Err(RemoteError::NoPlace { why })
}

/// Starts a helper that is already installed on the machine to which the command connects.
///
/// # Errors
///
/// If the command fails, or the program is not a helper of this version.
pub fn connect_to(command: &str, program: &str, contact: &Contact) -> Result<RemoteMachine, RemoteError> {
    let token = random_name("hprof-");
    let quoted = format!("'{}'", program.replace('\'', "'\\''"));
    let running = RunningCommand::start(command, &format!("{quoted} {} {token}", super::SERVE), contact)?;
    hello(running, &token)
}

fn hello(mut running: RunningCommand, token: &str) -> Result<RemoteMachine, RemoteError> {
    wait_for_hello(&mut running, token)?;
    running.set_connected();
    Ok(RemoteMachine::new(running))
}

fn tell(shell: &mut RunningCommand, line: &str) -> Result<(), RemoteError> {
    let written = shell.input()?.write_all(line.as_bytes());
    written.map_err(|error| shell.lost(error))
}

/// Reads lines until `last`. Returns the lines after `first`; `None` if the output ended before `last`.
fn lines(shell: &mut RunningCommand, first: &str, last: &str) -> Result<Option<Vec<String>>, RemoteError> {
    let mut found = None;
    let mut left = MAX_ANSWER;
    loop {
        let mut line = Vec::new();
        let read = shell.output.by_ref().take(left).read_until(b'\n', &mut line);
        let length = read.map_err(|error| shell.lost(error))?;
        left = left.saturating_sub(length as u64);
        if left == 0 {
            return Err(RemoteError::NotShell { command: shell.command.clone() });
        }
        if length == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
        match &mut found {
            None if line == first => found = Some(Vec::new()),
            None => {}
            Some(lines) if line == last => return Ok(Some(std::mem::take(lines))),
            Some(_) if line.is_empty() => {}
            Some(lines) => lines.push(line),
        }
    }
}

/// Lets a shell run a line, and returns the lines that it prints.
fn run_line(shell: &mut RunningCommand, token: &str, line: &str) -> Result<Vec<String>, RemoteError> {
    tell(shell, &format!("echo; echo {token}-begin; {line}; echo; echo {token}-end\n"))?;
    match lines(shell, &format!("{token}-begin"), &format!("{token}-end"))? {
        Some(lines) => Ok(lines),
        None => Err(shell.closed_error()),
    }
}

/// Returns the facts about the machine of a shell.
fn ask(shell: &mut RunningCommand, token: &str) -> Result<MachineFacts, RemoteError> {
    let not_shell = |shell: &RunningCommand| RemoteError::NotShell { command: shell.command.clone() };
    match run_line(shell, token, &facts::question(token)) {
        Ok(lines) => {
            let facts = MachineFacts::parse(&lines, token);
            if facts.is_terminal {
                // Closing stdin does not end a command that uses a terminal.
                tell(shell, "exit\n")?;
                return Err(not_shell(shell));
            }
            Ok(facts)
        }
        Err(RemoteError::Ended { status, .. }) if status.ends_with(": 0") => Err(not_shell(shell)),
        Err(error) => Err(error),
    }
}

/// Transfers the helper to a file on the machine, and tests whether it can be started. Returns the reason if it cannot.
fn bring(
    shell: &mut RunningCommand,
    command: &str,
    token: &str,
    file: &str,
    helper: &Helper,
    launch: &Launch,
    contact: &Contact,
) -> Result<Result<(), String>, RemoteError> {
    let remove = format!(
        "{{ {} || true >|/proc/$$/fd/8 || true >|/proc/$$/fd/7; }} 2>/dev/null",
        removal(file, *launch)
    );
    // The trap is set first, because the connection may end at any time. `exec` of a program does not trigger it. `-C` only
    // creates files that do not exist. `command` prevents the shell from ending if it fails.
    let create = format!(
        "trap \"{remove}\" EXIT; trap 'exit 1' HUP INT PIPE TERM; umask 077; set -C; command exec 8>'{file}' && \
         echo {token}-shell $$ || trap - EXIT"
    );
    let made = run_line(shell, token, &create)?;
    let process =
        made.iter().find_map(|line| line.strip_prefix(token)?.strip_prefix("-shell ")?.parse::<u32>().ok());
    let Some(process) = process else { return Ok(Err("no file can be created there".to_owned())) };
    let failed = match send(command, token, process, &helper.bytes, contact)? {
        // A file that is open for writing cannot be executed.
        Ok(()) => {
            let start = format!(
                "chmod 700 /proc/$$/fd/8 2>/dev/null; exec 7</proc/$$/fd/8 8>&-; {} {} && echo {token}-starts",
                launch.program(),
                super::CHECK
            );
            let starts = run_line(shell, token, &start)?;
            let starts = starts.iter().any(|line| line.strip_prefix(token) == Some("-starts"));
            if starts { None } else { Some("the helper cannot be started there".to_owned()) }
        }
        Err(why) => {
            run_line(shell, token, "exec 7</proc/$$/fd/8 8>&-")?;
            Some(why)
        }
    };
    let Some(why) = failed else { return Ok(Ok(())) };
    run_line(shell, token, &format!("{remove}; trap - EXIT"))?;
    Ok(Err(why))
}

/// Returns the shell words that remove the file of the helper, if necessary by the helper itself.
fn removal(file: &str, launch: Launch) -> String {
    format!("rm -f '{file}' || {} {} '{file}'", launch.program(), super::REMOVE)
}

/// Writes the helper to the file that the first shell holds open. Returns the reason if it cannot be written.
fn send(
    command: &str,
    token: &str,
    process: u32,
    bytes: &[u8],
    contact: &Contact,
) -> Result<Result<(), String>, RemoteError> {
    let mut shell = RunningCommand::start(command, "sh", contact)?;
    // `exit` prevents the rest of the helper from being run as a script if `cat` fails.
    let line = format!(
        "echo; echo {token}-begin; cat >/proc/{process}/fd/8 && echo {token}-written; echo {token}-end; exit\n"
    );
    tell(&mut shell, &line)?;
    // After this output the shell has read the line. Errors of `cat` are on stderr, which is passed on.
    if lines(&mut shell, "", &format!("{token}-begin"))?.is_none() {
        return Err(shell.closed_error());
    }
    let _ = shell.input()?.write_all(bytes);
    shell.close();
    match lines(&mut shell, &format!("{token}-written"), &format!("{token}-end"))? {
        Some(_) => Ok(Ok(())),
        None => Ok(Err("the helper cannot be written there".to_owned())),
    }
}

/// Removes the file of a helper that did not reply. The shell may have ended before it removed the file.
fn remove_afterwards(command: &str, token: &str, file: &str, contact: &Contact) {
    if let Ok(mut shell) = RunningCommand::start(command, "sh", contact) {
        let _ = run_line(&mut shell, token, &format!("rm -f '{file}' 2>/dev/null"));
    }
}
