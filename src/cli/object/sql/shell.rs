//! The interactive SQL shell: `hprof-cli sql DUMP` on a terminal.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};

use crate::cli::Outcome;
use crate::cli::shared::context::RunContext;
use crate::cli::shared::messages;
use hprof_index::storage::open_dir::OpenDir;
use hprof_query::sql::SqlDump;

use super::complete::{Helper, statement};
use super::{OpenHeap, Sessions, SqlArgs, dot_commands, dumps, inputs, recording, with_all};

const PROMPT: &str = "sql> ";
/// Maximum number of lines of the history.
const HISTORY: usize = 1000;

const HELP: &str = "\
A query ends with `;` and may span several lines. Tab completes tables,
columns, classes and functions.
  .tables            the tables
  .schema [TABLE]    the columns of a table, or of all; a class is a table:
                     .schema java.lang.Thread
  .timing on|off     show how long queries take
  .help              show this help
  .quit              exit the shell, as Ctrl+D does
Ctrl+C discards the typed text; while a query runs it ends the shell.";

/// Runs the shell until the user exits.
pub(super) fn run(cx: &RunContext, args: &SqlArgs) -> anyhow::Result<Outcome> {
    let frameworks = args.frameworks.rules(cx)?;
    let recording = recording(cx, args)?;
    let (opened, dumps): (Vec<OpenHeap>, Vec<Arc<SqlDump>>) =
        with_all(cx, &inputs(args)?, Vec::new(), &|opened| {
            dumps(args, (&frameworks, recording.as_ref().map(|recording| &recording.file)), opened)
        })?;
    let sessions = Sessions::new(args, opened, recording.as_ref())?;
    let config = Config::builder().max_history_size(HISTORY)?.auto_add_history(true).build();
    let mut editor: Editor<Helper, FileHistory> = Editor::with_config(config)?;
    editor.set_helper(Some(Helper::new(&dumps)));
    let history = history_dir();
    if let Some(history) = &history {
        // The file does not exist before the first session.
        let _ = editor.load_history(&history.path_to(HISTORY_FILE));
    }
    if !args.input.quiet {
        cx.emit("note", ".help lists the other commands; .tables lists the tables");
    }
    let mut shell = Shell { cx, args, sessions, dumps, timing: true };
    loop {
        match editor.readline(PROMPT) {
            Ok(text) => {
                if shell.run_line(text.trim())? == Next::Quit {
                    break;
                }
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error.into()),
        }
    }
    if let Some(history) = &history
        && let Err(error) = editor.save_history(&history.path_to(HISTORY_FILE))
    {
        let path = history.path().join(HISTORY_FILE);
        cx.emit("note", &format!("cannot write the history to {}: {error}", path.display()));
    }
    Ok(Outcome::Fine)
}

/// Name of the history file.
const HISTORY_FILE: &str = "sql_history";

/// Opens the directory of the history file, in the user's state directory.
fn history_dir() -> Option<OpenDir> {
    let dir = |name| std::env::var_os(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    let state = dir("XDG_STATE_HOME").or_else(|| Some(dir("HOME")?.join(".local/state")))?;
    let own = OpenDir::create_all(&state.join("hprof-cli"), 0o777).ok()?;
    // Root's `$HOME` may be that of another user, who could put a link there.
    #[cfg(unix)]
    if rustix::process::geteuid().is_root() && !own.entry().is_ok_and(|entry| entry.is_private()) {
        return None;
    }
    Some(own)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    GoOn,
    Quit,
}

/// The SQL shell: the open dumps and the settings.
struct Shell<'a> {
    cx: &'a RunContext,
    args: &'a SqlArgs,
    sessions: Sessions,
    dumps: Vec<Arc<SqlDump>>,
    timing: bool,
}

impl Shell<'_> {
    /// Handles a line: a query, or a dot command.
    fn run_line(&mut self, text: &str) -> anyhow::Result<Next> {
        if let Some(command) = text.strip_prefix('.') {
            let (name, argument) = dot_commands::parts(command);
            match (name, argument) {
                ("quit" | "exit" | "q", _) => return Ok(Next::Quit),
                ("help", _) => dot_commands::print(self.cx, HELP, 0)?,
                ("timing", "on") => self.timing = true,
                ("timing", "off") => self.timing = false,
                ("timing", _) => self.cx.emit("error", ".timing takes on or off"),
                _ if dot_commands::run(self.cx, &self.dumps, (name, argument))?.is_some() => {}
                _ => self.cx.emit("error", &format!("unknown command .{name}; .help lists all commands")),
            }
            return Ok(Next::GoOn);
        }
        let Some(query) = statement(text) else { return Ok(Next::GoOn) };
        let start = Instant::now();
        let answered = super::answer(self.args, &self.dumps, query)
            .map_err(|error| super::report_error(self.cx, query, error))
            .and_then(|first| super::show(self.cx, self.args, &self.sessions, query, first));
        match answered {
            Ok(_) if self.timing => {
                self.cx.emit("note", &format!("{:.3} s", start.elapsed().as_secs_f64()));
            }
            Ok(_) => {}
            Err(error) => messages::error(self.cx, &error),
        }
        Ok(Next::GoOn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_fits_a_terminal() {
        assert!(HELP.lines().all(|line| line.chars().count() <= 80));
    }
}
