//! Suggested commands, with names and IDs from the dump.

use std::ffi::OsStr;
use std::path::Path;

use hprof_report::answer::UnwrappedLine;
use hprof_report::column::CellTarget;
use hprof_report::escape;

use super::args::Input;
use super::spool;

/// Maximum length of a name in a suggested command.
const LONGEST_NAME: usize = 40;

/// A suggested command.
#[derive(Debug, Clone)]
pub(crate) struct NextCommand {
    /// The command line.
    pub(crate) command: String,
    /// Words of the command line; line breaks occur only between them.
    words: Vec<String>,
    /// The command and its arguments, without the dump.
    target: CellTarget,
    /// Purpose of the command.
    pub(crate) why: String,
}

/// Builder of command lines for one dump.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Commands<'a> {
    dump: &'a Path,
    /// Number of the heap dump in the file, if given.
    heap_dump: Option<u32>,
    index_dir: Option<&'a Path>,
}

impl<'a> Commands<'a> {
    /// Creates a builder for the input, with the options that every command must repeat.
    pub(crate) fn new(input: &'a Input) -> Self {
        Self {
            dump: spool::original_path(input.path()),
            heap_dump: input.heap_dump(),
            index_dir: input.index_dir_option(),
        }
    }

    /// Builds a command line: the command, the dump, the arguments.
    pub(crate) fn step(
        &self,
        command: &str,
        arguments: impl IntoIterator<Item = String>,
        why: &str,
    ) -> NextCommand {
        let mut target = vec![command.to_owned()];
        target.extend(arguments);
        let mut words = vec!["hprof-cli".to_owned(), command.to_owned(), quoted_path(self.dump)];
        words.extend(target.iter().skip(1).map(quoted));
        // Without these options, the command would read another heap dump or build another index.
        words.extend(self.heap_dump.iter().flat_map(|number| ["--heap-dump".to_owned(), number.to_string()]));
        let index_dir = self.index_dir.map(quoted_path);
        words.extend(index_dir.into_iter().flat_map(|dir| ["--index-dir".to_owned(), dir]));
        let target = CellTarget::Command(target);
        NextCommand { command: words.join(" "), words, target, why: why.to_owned() }
    }
}

/// Formats the commands as lines; long ones continue after a backslash.
pub(crate) fn lines(steps: &[NextCommand], width: usize) -> Vec<UnwrappedLine> {
    let length = |step: &NextCommand| 2 + step.command.chars().count();
    // The purpose is a comment to a shell, so that the whole line can be pasted.
    let remark = |step: &NextCommand| format!("  # {}", step.why);
    let fits = |step: &&NextCommand| length(step) + remark(step).chars().count() <= width;
    let column = steps.iter().filter(fits).map(length).max().unwrap_or(0);
    let mut lines: Vec<UnwrappedLine> = vec![String::new().into(), "Next".to_owned().into()];
    for step in steps {
        let leading = |text| UnwrappedLine { text, target: Some(step.target.clone()) };
        let command = format!("  {}", step.command);
        if column + remark(step).chars().count() <= width && fits(&step) {
            lines.push(leading(format!("{command:column$}{}", remark(step))));
        } else if length(step) <= width {
            lines.push(leading(command));
        } else {
            let mut line = " ".to_owned();
            for word in &step.words {
                if line.trim().is_empty() || line.chars().count() + word.chars().count() + 3 <= width {
                    line.push_str(&format!(" {word}"));
                } else {
                    lines.push(leading(format!("{line} \\")));
                    line = format!("    {word}");
                }
            }
            lines.push(leading(line));
        }
    }
    lines
}

/// Returns whether a name can be typed and matches itself if used as a pattern.
pub(crate) fn is_typed(name: &str) -> bool {
    let is_plain = |c: char| c == ' ' || c.is_ascii_graphic() && !matches!(c, '\'' | '*' | '\\' | '"' | '!');
    !name.is_empty()
        && name.len() <= LONGEST_NAME
        && name.chars().all(is_plain)
        && !name.starts_with(['-', '0'])
}

/// Returns whether a class name matches itself if used as a pattern, and is not taken for an option or an object.
pub(crate) fn matches_itself(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(['-', '0'])
        && !name.contains(['*', '?', ' '])
        && !name.contains(escape::is_harmful)
}

/// Quotes a path for a shell so that no command takes it for an option or, if it is `-`, for standard input.
pub(crate) fn quoted_path(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes();
    if bytes.starts_with(b"-") && bytes != b"-" {
        return quoted(&Path::new(".").join(path));
    }
    quoted(path)
}

/// Quotes a word for a shell. Bytes that are not text or not printable use the form that bash, zsh, ksh and
/// POSIX.1-2024 read: `$'caf\351.hprof'`.
pub(crate) fn quoted(word: &(impl AsRef<OsStr> + ?Sized)) -> String {
    let name = word.as_ref();
    if let Some(text) = name.to_str().filter(|text| escape::text(text) == *text) {
        return in_quotes(text);
    }
    let mut word = String::from("$'");
    for byte in name.as_encoded_bytes() {
        match byte {
            b'\'' | b'\\' => word.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => word.push(char::from(*byte)),
            _ => word.push_str(&format!("\\{byte:03o}")),
        }
    }
    word + "'"
}

/// Quotes printable text if necessary.
fn in_quotes(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(all(test, unix))]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn any_path_is_a_word_of_a_shell() {
        for (name, word) in [
            (&b"a.hprof"[..], "a.hprof"),
            (b"a b's.hprof", "'a b'\\''s.hprof'"),
            ("é.hprof".as_bytes(), "é.hprof"),
            (b"caf\xe9's.hprof", "$'caf\\351\\'s.hprof'"),
            (b"two\nlines", "$'two\\012lines'"),
            ("bidi\u{202e}x".as_bytes(), "$'bidi\\342\\200\\256x'"),
            (b"-", "-"),
            (b"-x.hprof", "./-x.hprof"),
            (b"-x y.hprof", "'./-x y.hprof'"),
            (b"-x\xe9", "$'./-x\\351'"),
        ] {
            assert_eq!(quoted_path(Path::new(OsStr::from_bytes(name))), word);
        }
    }
}
