//! `man`: man pages.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap_mangen::Man;

use crate::cli::Outcome;
use crate::cli::shared::context::RunContext;
use crate::cli::shared::output;
use crate::cli::shared::output::file::OutFile;
use hprof_index::storage::open_dir::OpenDir;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli man | man -l -
  hprof-cli man histo | man -l -
  hprof-cli man --output-dir ~/.local/share/man/man1";

/// Name of the program and of its page.
const ROOT: &str = "hprof-cli";

/// Date of the last change to the pages' content, shown in their footers with the version.
const DATE: &str = "2026-11-26";

/// Title of the exit codes in help.
const EXIT_CODES_TITLE: &str = "Exit codes";

/// Defines `\*(Aq` as an apostrophe; formatters other than groff lack it.
const PREAMBLE: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";

/// Print a man page, or write all of them to a directory
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Command whose page to print [default: hprof-cli itself]
    #[arg(value_name = "COMMAND", conflicts_with = "output_dir")]
    command: Option<String>,

    /// Write to this directory: hprof-cli.1 and a page for each command
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    output_dir: Option<PathBuf>,
}

pub(crate) fn run(cx: &RunContext, args: &ManArgs) -> anyhow::Result<Outcome> {
    let mut root = crate::cli::command().disable_help_subcommand(true);
    root.build();
    if let Some(dir) = &args.output_dir {
        OpenDir::create_all(dir, 0o777).with_context(|| format!("cannot create {}", dir.display()))?;
        let commands =
            root.get_subcommands().flat_map(|one| std::iter::once(one).chain(one.get_subcommands()));
        for command in std::iter::once(&root).chain(commands) {
            let name = page_name(command);
            let path = dir.join(format!("{name}.1"));
            let mut file = OutFile::create(&path, &[])?;
            file.write_all(&page(command)?).with_context(|| format!("cannot write {}", path.display()))?;
            file.commit()?;
        }
        return Ok(Outcome::Fine);
    }
    let command = match &args.command {
        None => &root,
        Some(name) => root
            .find_subcommand(name)
            .with_context(|| format!("unknown command '{name}'; `hprof-cli --help` lists all commands"))?,
    };
    let mut out = cx.writer();
    out.write_all(&page(command)?)?;
    output::finish(out)?;
    Ok(Outcome::Fine)
}

fn page_name(command: &clap::Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

/// Builds a page: clap_mangen writes NAME, DESCRIPTION and OPTIONS, this module the other sections. The text below the
/// options in `--help` (examples, exit codes) becomes sections.
fn page(command: &clap::Command) -> anyhow::Result<Vec<u8>> {
    let name = page_name(command);
    let man = Man::new(command.clone());
    let mut sections = Vec::new();
    man.render_name_section(&mut sections)?;
    let mut page = format!(
        "{PREAMBLE}.TH \"{}\" 1 \"{DATE}\" \"{}\" \"Java heap dumps\"\n",
        escaped(&name.to_uppercase()),
        escaped(&format!("hprof-cli {}", env!("CARGO_PKG_VERSION"))),
    );
    synopsis(&mut sections, command)?;
    man.render_description_section(&mut sections)?;
    man.render_options_section(&mut sections)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut sections)?;
    }
    let mut text = String::from_utf8(sections)?;
    let below = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let below = sections_of(&below);
    exit_status(&mut text, &below);
    environment_and_files(&mut text, command);
    for (title, lines) in below.iter().filter(|(title, _)| *title != EXIT_CODES_TITLE) {
        write_preformatted(&mut text, title, lines);
    }
    if name != ROOT {
        text += &format!(".SH \"SEE ALSO\"\n\\fB{}\\fR(1)\n", escaped(ROOT));
    }
    // Each section of clap_mangen begins with the preamble. Before a list of values it breaks the line three times, which
    // mandoc warns about.
    page += &text.replace(PREAMBLE, "").replace(".br\n\n.br\n", ".sp\n");
    Ok(page.into_bytes())
}

/// Writes the synopsis: options with the names of their values.
fn synopsis(out: &mut Vec<u8>, command: &clap::Command) -> std::io::Result<()> {
    write!(out, ".SH SYNOPSIS\n\\fB{}\\fR", escaped(command.get_bin_name().unwrap_or(ROOT)))?;
    for option in command.get_arguments().filter(|option| !option.is_positional() && !option.is_hide_set()) {
        let short = option.get_short().map(|short| format!("-{short}"));
        let long = option.get_long().map(|long| format!("--{long}"));
        let names: Vec<String> =
            [short, long].into_iter().flatten().map(|name| format!("\\fB{}\\fR", escaped(&name))).collect();
        // A line is not broken between an option and its value.
        let value = values(option).map(|value| format!("\\ {value}")).unwrap_or_default();
        write!(out, "\n[{}{value}]", names.join("|"))?;
    }
    for positional in command.get_positionals() {
        let more =
            if positional.get_num_args().is_some_and(|count| count.max_values() > 1) { "\\ ..." } else { "" };
        let value = values(positional).unwrap_or_default() + more;
        if positional.is_required_set() { write!(out, "\n{value}")? } else { write!(out, "\n[{value}]")? }
    }
    if command.is_subcommand_required_set() {
        write!(out, "\n\\fICOMMAND\\fR\n[\\fIARGUMENT\\fR\\ ...]")?;
    }
    writeln!(out)
}

/// Returns the names of an argument's values; `None` if it takes none.
fn values(argument: &clap::Arg) -> Option<String> {
    argument.get_action().takes_values().then_some(())?;
    let names = argument.get_value_names()?.iter().map(|name| format!("\\fI{}\\fR", escaped(name)));
    Some(names.collect::<Vec<_>>().join("\\ "))
}

/// Splits the text below the options in help into sections: title, and lines. A title is a line that ends with a colon.
fn sections_of(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut sections: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        match (line.strip_suffix(':').filter(|line| !line.starts_with(' ')), sections.last_mut()) {
            (Some(title), _) => sections.push((title, Vec::new())),
            (None, Some((_, lines))) => lines.push(line),
            (None, None) => {}
        }
    }
    sections
}

fn exit_status(out: &mut String, below: &[(&str, Vec<&str>)]) {
    let Some((_, lines)) = below.iter().find(|(title, _)| *title == EXIT_CODES_TITLE) else { return };
    *out += ".SH \"EXIT STATUS\"\n";
    for (code, meaning) in lines.iter().filter_map(|line| line.trim_start().split_once("  ")) {
        *out += &format!(".TP\n\\fB{}\\fR\n{}\n", escaped(code), escaped(meaning));
    }
}

/// Writes the environment variables and files of commands that read dumps; the program's page lists those of all commands.
fn environment_and_files(out: &mut String, command: &clap::Command) {
    let commands = || std::iter::once(command).chain(command.get_subcommands());
    let arguments = || commands().flat_map(clap::Command::get_arguments);
    let mut entries: Vec<(String, String)> = Vec::new();
    for argument in arguments() {
        let (Some(name), Some(long)) = (argument.get_env(), argument.get_long()) else { continue };
        let name = name.to_string_lossy().into_owned();
        if !entries.iter().any(|(known, _)| *known == name) {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            entries.push((name, format!("Default value of --{long}. {help}")));
        }
    }
    if commands().any(|command| ["agent", "run"].contains(&command.get_name())) {
        let text = "The agent's library, if it is not next to the program.";
        entries.push(("HPROF_CLI_AGENT".to_owned(), text.to_owned()));
    }
    if arguments().any(|argument| argument.get_id() == "color") {
        let text = "If set and not empty, output has no colors unless --color always is given.";
        entries.push(("NO_COLOR".to_owned(), text.to_owned()));
    }
    let has_index = arguments().any(|argument| argument.get_id() == "index_dir");
    if has_index {
        let text = "The user's cache directory, ~/.cache by default. Its directory hprof-cli stores indexes that \
                    cannot be written next to the dump.";
        entries.push(("XDG_CACHE_HOME".to_owned(), text.to_owned()));
    }
    write_entries(out, "ENVIRONMENT", &entries);
    if has_index {
        let files = [
            (
                "DUMP.index/",
                "The index of the dump DUMP, beside it. It may be deleted at any time: it is rebuilt when needed. \
                             `hprof-cli index` builds, verifies and removes it.",
            ),
            ("DUMP.index/unpacked.hprof", "The dump itself, if DUMP is compressed or in an archive."),
            (
                "~/.cache/hprof-cli/",
                "Indexes of dumps whose directory cannot be written to; with --index-dir they are stored there.",
            ),
        ];
        write_entries(out, "FILES", &files.map(|(name, text)| (name.to_owned(), text.to_owned())));
    }
}

/// Writes a section of names and descriptions.
fn write_entries(out: &mut String, title: &str, entries: &[(String, String)]) {
    if entries.is_empty() {
        return;
    }
    *out += &format!(".SH {title}\n");
    for (name, text) in entries {
        *out += &format!(".TP\n\\fB{}\\fR\n{}\n", escaped(name), escaped(text));
    }
}

/// Writes a section of preformatted lines.
fn write_preformatted(out: &mut String, title: &str, lines: &[&str]) {
    let indent =
        lines.iter().filter(|line| !line.is_empty()).map(|line| line.len() - line.trim_start().len()).min();
    let end = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |at| at + 1);
    *out += &format!(".SH \"{}\"\n.nf\n", escaped(&title.to_uppercase()));
    for line in lines.iter().take(end) {
        let line = line.get(indent.unwrap_or(0)..).unwrap_or_default();
        // An empty line would be a request of roff.
        *out += &if line.is_empty() { ".sp\n".to_owned() } else { format!("{}\n", escaped(line)) };
    }
    *out += ".fi\n";
}

/// Escapes a text for roff: backslashes, hyphens and quotes, and lines that would be requests.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        if !out.is_empty() {
            out.push('\n');
        }
        if line.starts_with(['.', '\'']) {
            out += "\\&";
        }
        for character in line.chars() {
            match character {
                '\\' => out += "\\e",
                '-' => out += "\\-",
                '\'' => out += "\\*(Aq",
                '"' => out += "\\(dq",
                '`' => out += "\\(ga",
                '^' => out += "\\(ha",
                '~' => out += "\\(ti",
                other => out.push(other),
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_a_request_of_roff() {
        assert_eq!(escaped(".TH 'a-b'\n'c\\d"), "\\&.TH \\*(Aqa\\-b\\*(Aq\n\\&\\*(Aqc\\ed");
    }

    #[test]
    fn titles_part_the_text_below_help() {
        let text = "Examples:\n  a\n\n  b:\n\nExit codes:\n  0  fine";
        let sections = sections_of(text);
        assert_eq!(
            sections,
            [("Examples", vec!["  a", "", "  b:", ""]), (EXIT_CODES_TITLE, vec!["  0  fine"])]
        );
        let mut out = String::new();
        sections.iter().take(1).for_each(|(title, lines)| write_preformatted(&mut out, title, lines));
        exit_status(&mut out, &sections);
        assert_eq!(
            out,
            ".SH \"EXAMPLES\"\n.nf\na\n.sp\nb:\n.fi\n.SH \"EXIT STATUS\"\n.TP\n\\fB0\\fR\nfine\n"
        );
    }
}
