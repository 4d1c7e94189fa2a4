//! Writes results as files for CI servers: JUnit XML and SARIF.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::rows::RuleRow;
use super::{CheckRun, CheckedDump};
use crate::cli::shared::output::file::OutFile;
use hprof_query::check::{Severity, Status};
use hprof_report::ci::junit;
use hprof_report::ci::sarif::{self, Level};
use hprof_report::value::Value;

/// The report files to be written.
pub(super) struct Reports {
    junit: Option<OutFile>,
    sarif: Option<OutFile>,
}

impl Reports {
    /// Creates the files. Fails if one of them is a file in `read`.
    pub(super) fn create(junit: Option<&Path>, sarif: Option<&Path>, read: &[&Path]) -> anyhow::Result<Self> {
        let create = |path: Option<&Path>| path.map(|path| OutFile::create(path, read)).transpose();
        let reports = Self { junit: create(junit)?, sarif: create(sarif)? };
        if let (Some(junit), Some(sarif)) = (&reports.junit, &reports.sarif) {
            let is_device = junit.path().exists() && !junit.path().is_file();
            anyhow::ensure!(
                is_device || place(junit.path()) != place(sarif.path()),
                "--junit and --sarif name the same file, {}; use two names",
                junit.path().display()
            );
        }
        Ok(reports)
    }

    /// Writes the files.
    pub(super) fn write(self, run: &CheckRun) -> anyhow::Result<()> {
        let junit = self.junit.map_or(Ok(()), |file| written(file, |out| junit::write(out, &suites(run))));
        let (sarif_run, failures) = results(run);
        let write = |out: &mut dyn Write| sarif::write(out, &sarif_run, &mut failures.iter().cloned());
        let sarif = self.sarif.map_or(Ok(()), |file| written(file, write));
        // Converted to text: a closed stdout is not an error, but a closed report file is.
        junit.and(sarif).map_err(|error| anyhow::anyhow!("{error:#}"))
    }
}

/// Returns the resolved path of a file that may not exist yet.
fn place(path: &Path) -> PathBuf {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (dir.canonicalize(), path.file_name()) {
        (Ok(dir), Some(name)) => dir.join(name),
        _ => path.to_owned(),
    }
}

fn written(
    mut file: OutFile,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> anyhow::Result<()> {
    let shown = file.path().display().to_string();
    let fail = || format!("cannot write {shown}");
    let mut out = BufWriter::new(&mut file);
    write(&mut out).with_context(fail)?;
    out.flush().with_context(fail)?;
    drop(out);
    file.commit()
}

/// Returns a suite for each dump, and for a damaged baseline.
fn suites(run: &CheckRun) -> Vec<junit::Suite<'_>> {
    run.checked_dumps().filter(|looked| !looked.rows.is_empty()).map(suite).collect()
}

fn suite(CheckedDump { dump, rows, .. }: &CheckedDump) -> junit::Suite<'_> {
    // A rule that passed because nothing matches would otherwise go unnoticed.
    let told = rows.iter().filter(|row| row.needs_message() && row.status == Status::Passed);
    junit::Suite {
        name: &dump.path,
        time: dump.created.as_deref(),
        cases: rows.iter().map(case).collect(),
        notes: told.map(|row| &*row.message).collect(),
    }
}

fn case(row: &RuleRow) -> junit::Case<'_> {
    let (kind, message) = (row.kind, &*row.message);
    let result = match (row.status, row.severity) {
        (Status::Passed, _) => junit::Outcome::Passed,
        (Status::Wrong, _) => junit::Outcome::Error { kind, message },
        (Status::Failed, Severity::Error) => junit::Outcome::Failed { kind, message },
        // JUnit has no warnings, and a failure would end the build.
        (Status::Failed, severity) => {
            junit::Outcome::Skipped { message: format!("{}: {message}", severity.name()) }
        }
    };
    junit::Case { name: &row.rule, result }
}

fn level(severity: Severity) -> Level {
    match severity {
        Severity::Error => Level::Error,
        Severity::Warning => Level::Warning,
        Severity::Note => Level::Note,
    }
}

/// Returns the run, and its failures; each refers to the line of its rule, or else to the beginning of the rules file.
fn results(run: &CheckRun) -> (sarif::SarifRun<'_>, Vec<sarif::Failure<'_>>) {
    let mut rules: Vec<sarif::Rule<'_>> = (run.rules.rules.iter())
        .map(|rule| sarif::Rule {
            id: &rule.name,
            about: (rule.measure.kind.subject)(&rule.measure),
            level: level(rule.severity),
        })
        .collect();
    let mut failures = Vec::new();
    for row in run.rows().filter(|row| row.status != Status::Passed) {
        let rule = row.number.unwrap_or_else(|| {
            let known = rules.iter().position(|rule| rule.id == row.rule);
            known.unwrap_or_else(|| {
                rules.push(sarif::Rule { id: &row.rule, about: row.subject_text(), level: Level::Error });
                rules.len() - 1
            })
        });
        let level = if row.status == Status::Wrong { Level::Error } else { level(row.severity) };
        let mut properties = vec![("dump", Value::from(&*row.dump))];
        if let (Some(bound), Some(unit)) = (row.bound, row.unit) {
            properties.push(("value", row.value.clone()));
            properties.push((bound, row.limit.clone()));
            properties.push(("unit", unit.into()));
        }
        let message = format!("{}: {}", row.dump, row.message);
        failures.push(sarif::Failure { rule, level, message, line: row.line.unwrap_or(1), properties });
    }
    let unread = run.checked_dumps().filter(|looked| !looked.is_read);
    let errors = unread.flat_map(|looked| looked.rows.iter().map(|row| &*row.message)).collect();
    (sarif::SarifRun { version: env!("CARGO_PKG_VERSION"), file: &run.rules.path, rules, errors }, failures)
}
