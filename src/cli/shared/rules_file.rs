//! Reading rules files: `--rules` and `--frameworks`.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Context;

use hprof_parser::sniff::{FileKind, sniff};
use hprof_query::naming::toml_file::{MAX_BYTES, TomlErrors, position};

use super::context::RunContext;
use super::messages;

/// Reads a file and calls `parse` with its text and its name. `hint` is advice if the file is of another kind.
///
/// # Errors
/// If the file cannot be read, is not a rules file, or contains errors. All errors except the last were printed.
pub(crate) fn read<T>(
    cx: &RunContext,
    path: &Path,
    hint: &str,
    parse: impl FnOnce(&str, &str) -> Result<T, TomlErrors>,
) -> anyhow::Result<T> {
    let shown = path.display().to_string();
    let text = read_text(path, &shown, hint)?;
    parse(&text, &shown).map_err(|TomlErrors { lines }| messages::last_error(cx, lines))
}

fn read_text(path: &Path, shown: &str, hint: &str) -> anyhow::Result<String> {
    let fail = || format!("cannot read the rules file {shown}");
    let file = File::open(path).with_context(fail)?;
    let is_dir = file.metadata().with_context(fail)?.is_dir();
    anyhow::ensure!(!is_dir, "{shown} is a directory; name a rules file in it");
    let mut bytes = Vec::new();
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).with_context(fail)?;
    let reason = match sniff(&bytes) {
        // `[[rule]]` looks like JSON.
        FileKind::Text | FileKind::Json | FileKind::Other => None,
        _ if bytes.is_empty() => None,
        FileKind::Hprof => Some("it is a heap dump".to_owned()),
        looks => Some(looks.describe()),
    };
    let is_long = bytes.len() > MAX_BYTES;
    if let Some(reason) = reason.or_else(|| is_long.then(|| "it is larger than 1 MiB".to_owned())) {
        anyhow::bail!("{shown} is not a rules file: {reason}; {hint}");
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let (line, column) = position(&String::from_utf8_lossy(error.as_bytes()), at);
        anyhow::anyhow!("{shown}:{line}:{column}: not UTF-8, which TOML requires; {hint}")
    })
}
