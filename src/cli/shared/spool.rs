//! Dumps read from pipes: `-` is standard input, and `<(zcat heap.hprof.gz)` in a shell is a path. They are copied
//! into a private directory, together with their indexes, which is removed when the process ends.

use crate::cli::shared::context::RunContext;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::{ArgMatches, Command};
use serde::{Deserialize, Serialize};

use hprof_index::open::spool::SpooledCopy;
use hprof_index::storage::open_dir::OpenDir;
use hprof_index::storage::store::user_cache;

use super::terminal::progress_bar::Bar;

/// The argument for standard input.
pub(crate) const STDIN: &str = "-";
/// File name of the copy of standard input.
const STDIN_NAME: &str = "stdin.hprof";
/// Value names of arguments that are dumps.
const DUMPS: [&str; 5] = ["DUMP", "DUMP|TEXT", "DUMP|TEXT|PID", "OLD", "NEW"];

/// The copies that this process has made or taken over.
static COPIES: OnceLock<Vec<PipeCopy>> = OnceLock::new();

/// A copy of a pipe. No field is a `PathBuf`, which must be Unicode to be serialized as text.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PipeCopy {
    given: OsString,
    path: OsString,
    dir: OsString,
}

/// Returns the copies of this process, for another process that reads them.
pub(crate) fn copies() -> &'static [PipeCopy] {
    COPIES.get().map_or(&[], Vec::as_slice)
}

/// Takes over the copies of another process, which will remove them.
pub(crate) fn take_over(copies: Vec<PipeCopy>) {
    // Once per process: it works for one other process.
    let _ = COPIES.set(copies);
}

fn find_copy(path: &Path) -> Option<&'static PipeCopy> {
    COPIES.get()?.iter().find(|copied| copied.path == path.as_os_str())
}

/// Returns the argument that the user typed for this dump: for a copy, the pipe.
pub(crate) fn original_path(path: &Path) -> &Path {
    find_copy(path).map_or(path, |copied| Path::new(&copied.given))
}

/// Returns the directory for the index of this dump, if the dump is a copy.
pub(crate) fn index_dir(path: &Path) -> Option<&'static Path> {
    find_copy(path).map(|copied| Path::new(&copied.dir))
}

/// A command line in which pipes are replaced by copies. The copies are removed on drop.
pub(crate) struct SpooledLine {
    pub(crate) matches: ArgMatches,
    _copies: Vec<SpooledCopy>,
}

/// Copies the contents of pipes that are arguments of a command line. `parser` creates the parser of the command line, `words`
/// are its words.
pub(crate) fn line(
    cx: &RunContext,
    parser: impl Fn() -> Command,
    words: &[OsString],
    matches: ArgMatches,
) -> anyhow::Result<SpooledLine> {
    let pipes = pipes(&parser(), &matches);
    let mut copies = Vec::new();
    for (at, (_, given)) in pipes.iter().enumerate() {
        let again = pipes.iter().take(at).any(|(_, before)| before == given);
        anyhow::ensure!(!again, "{} can be read only once", name(given));
    }
    if pipes.is_empty() {
        return Ok(SpooledLine { matches, _copies: copies });
    }
    let quiet = flag(&matches, "quiet");
    let into = directory(&matches)?;
    let (mut words, mut parsed, mut table) = (words.to_vec(), matches, Vec::new());
    for (id, given) in pipes {
        let copy = copy(cx, &given, &into, quiet)?;
        let (path, dir) = (copy.path().to_owned(), copy.dir().to_owned());
        (words, parsed) = replace_argument(&parser, &words, &id, &given, &path)
            .ok_or_else(|| anyhow::anyhow!("cannot determine which argument is {}", name(&given)))?;
        table.push(PipeCopy { given, path: path.into(), dir: dir.into() });
        copies.push(copy);
    }
    // Once per process: there is only one command line.
    let _ = COPIES.set(table);
    Ok(SpooledLine { matches: parsed, _copies: copies })
}

/// Returns the name of a pipe that messages show.
fn name(given: &OsStr) -> String {
    if given == STDIN { "standard input".to_owned() } else { format!("the pipe {}", given.display()) }
}

/// Returns the arguments that are pipes: ID and value.
fn pipes(program: &Command, matches: &ArgMatches) -> Vec<(String, OsString)> {
    let Some((command, matches)) = matches.subcommand() else { return Vec::new() };
    let Some(command) = program.get_subcommands().find(|known| known.get_name() == command) else {
        return Vec::new();
    };
    let names_dumps = |arg: &&clap::Arg| {
        let names = arg.get_value_names().unwrap_or_default();
        arg.get_action().takes_values() && names.iter().any(|name| DUMPS.contains(&name.as_str()))
    };
    let values = |arg: &clap::Arg| -> Vec<(String, OsString)> {
        let id = arg.get_id().as_str();
        // A default value is not a pipe: `-` is the placeholder where no dump is needed.
        let is_typed = matches.try_contains_id(id).is_ok()
            && matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
        let values = matches.try_get_raw(id).ok().flatten().filter(|_| is_typed).into_iter().flatten();
        let pipes = values.filter(|value| *value == STDIN || is_pipe(Path::new(value)));
        pipes.map(|value| (id.to_owned(), value.to_owned())).collect()
    };
    command.get_arguments().filter(names_dumps).flat_map(values).collect()
}

#[cfg(unix)]
fn is_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

#[cfg(not(unix))]
fn is_pipe(_: &Path) -> bool {
    false
}

fn flag(matches: &ArgMatches, id: &str) -> bool {
    let matches = matches.subcommand().map(|(_, matches)| matches);
    matches.and_then(|matches| matches.try_get_one::<bool>(id).ok().flatten()).copied().unwrap_or(false)
}

/// Returns the directory for copies: the index directory if given, or else the user's cache, or else the directory for
/// temporary files.
fn directory(matches: &ArgMatches) -> anyhow::Result<PathBuf> {
    let matches = matches.subcommand().map(|(_, matches)| matches);
    let asked = matches.and_then(|matches| matches.try_get_one::<PathBuf>("index_dir").ok().flatten());
    if let Some(dir) = asked.filter(|dir| !dir.as_os_str().is_empty()) {
        OpenDir::create_all(dir, 0o777)
            .map_err(|error| anyhow::anyhow!("cannot create {}: {error}", dir.display()))?;
        return Ok(dir.clone());
    }
    let is_usable =
        |dir: &PathBuf| OpenDir::create_all(dir, 0o777).is_ok_and(|dir| dir.create_unnamed().is_ok());
    Ok(user_cache().filter(is_usable).unwrap_or_else(std::env::temp_dir))
}

fn copy(cx: &RunContext, given: &OsStr, into: &Path, quiet: bool) -> anyhow::Result<SpooledCopy> {
    let bar = Bar::new(cx, quiet);
    let path = Path::new(given);
    let (mut reader, shown, copy_name): (Box<dyn Read>, &Path, &OsStr) = if given == STDIN {
        let stdin = io::stdin();
        anyhow::ensure!(
            !stdin.is_terminal(),
            "standard input is a terminal; pipe a dump into it: gzip -dc heap.hprof.gz | hprof-cli leaks -"
        );
        (Box::new(stdin.lock()), Path::new("standard input"), OsStr::new(STDIN_NAME))
    } else {
        let file =
            File::open(path).map_err(|error| anyhow::anyhow!("cannot open {}: {error}", path.display()))?;
        (Box::new(file), path, OsStr::new("pipe.hprof"))
    };
    let copy = SpooledCopy::copy(&mut *reader, shown, copy_name, into, &bar)?;
    let is_empty = fs::metadata(copy.path()).is_ok_and(|metadata| metadata.len() == 0);
    anyhow::ensure!(!is_empty, "{} is empty: its writer has failed, or has not started", name(given));
    Ok(copy)
}

/// Returns the command line with the value `old` of an argument replaced by `new`. Options may have the same value,
/// as in `-o -`: only the word that the parser assigns to the argument is replaced.
fn replace_argument(
    parser: &impl Fn() -> Command,
    words: &[OsString],
    id: &str,
    old: &OsStr,
    new: &Path,
) -> Option<(Vec<OsString>, ArgMatches)> {
    (2..words.len()).find_map(|at| {
        let word = words.get(at)?;
        let mut with = new.as_os_str().to_owned();
        if word != old {
            // `--option=-`
            let (option, value) = word.to_str()?.split_once('=')?;
            if value != old {
                return None;
            }
            with = OsString::from(format!("{option}="));
            with.push(new);
        }
        let mut line = words.to_vec();
        *line.get_mut(at)? = with;
        let matches = parser().try_get_matches_from(&line).ok()?;
        let (_, of_command) = matches.subcommand()?;
        let mut values = of_command.try_get_raw(id).ok().flatten()?;
        values.any(|value| value == new).then_some((line, matches))
    })
}
