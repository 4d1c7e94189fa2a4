//! Two dumps: the old and the new one, their keys in JSON, and the outcome of a run.

use std::path::PathBuf;

use crate::cli::jvm::{CountedObjects, ProcessArgs, process_id};
use crate::cli::prelude::*;
use crate::cli::shared::class_histogram::{self, CountedHistogram};
use crate::cli::shared::recording::RecordedInput;
use hprof_index::Error;
use hprof_input::file::TextFile;
use hprof_query::change::Change;
use hprof_query::dictionary::{ColumnKey, ComparedValue};
use hprof_report::json::DumpHeader;
use hprof_report::number::format_signed;

/// The old and the new dump, read with the same options.
#[derive(Debug, clap::Args)]
#[command(mut_arg("dump", |dump| dump
    .index(1)
    .value_name("OLD")
    .help(
        "Older dump: HPROF binary, text report of the HPROF agent (java.hprof.txt), or class histogram of jmap or jcmd; \
         or the process ID of a running JVM"
    )))]
pub(crate) struct PairInput {
    #[command(flatten)]
    old: RecordedInput,

    /// Newer dump, to compare with OLD
    #[arg(index = 2, value_name = "NEW", value_hint = clap::ValueHint::FilePath, help_heading = "Input")]
    new: PathBuf,

    #[command(flatten)]
    process: ProcessArgs,
}

/// A file argument: a process ID, or the name of a file.
pub(crate) enum PairMember {
    Process(RecordedInput, u32),
    Counted(Box<CountedHistogram>),
    Other(RecordedInput),
}

impl PairMember {
    /// Returns the process or file if it has only counts of classes.
    pub(crate) fn counts_of(&self) -> Option<String> {
        match self {
            Self::Process(_, pid) => Some(pid.to_string()),
            Self::Counted(counted) => Some(counted.path().to_owned()),
            Self::Other(_) => None,
        }
    }

    /// Returns an error if one of the arguments has only counts of classes, which `option` does not compare.
    pub(crate) fn check_objects(members: &[Self], option: &str) -> anyhow::Result<()> {
        match members.iter().find_map(Self::counts_of) {
            Some(path) => Err(class_histogram::needs_objects(option, &path)),
            None => Ok(()),
        }
    }
}

impl PairInput {
    /// Returns what the arguments are, the old one first. Class histograms in files are read.
    pub(crate) fn members(&self, cx: &RunContext) -> anyhow::Result<[PairMember; 2]> {
        let member = |file: RecordedInput| -> anyhow::Result<PairMember> {
            if let Some(pid) = process_id(cx, &file.input)? {
                return Ok(PairMember::Process(file, pid));
            }
            let counted = class_histogram::read(cx, &file.input, file.run())?;
            Ok(counted.map_or(PairMember::Other(file), |counted| PairMember::Counted(Box::new(counted))))
        };
        let [old, new] = self.recorded_inputs();
        let members = [member(old)?, member(new)?];
        if !members.iter().any(|member| matches!(member, PairMember::Process(..))) {
            self.process.check_unused()?;
        }
        Ok(members)
    }

    /// Takes the class histogram of a process.
    pub(crate) fn count(
        &self,
        cx: &RunContext,
        file: &RecordedInput,
        pid: u32,
        objects: CountedObjects,
    ) -> anyhow::Result<CountedHistogram> {
        anyhow::ensure!(file.run().is_none(), "{pid} is a process, which contains no runs; omit --run");
        self.process.count(cx, &file.input, pid, objects)
    }

    /// Returns the old file, then the new one: binary dumps or text reports.
    pub(crate) fn recorded_inputs(&self) -> [RecordedInput; 2] {
        [self.old.clone(), self.old.with_dump(&self.new)]
    }

    /// Returns the old dump, then the new one; fails if one of them is a text report, which lacks the data.
    pub(crate) fn binary(&self, cx: &RunContext) -> anyhow::Result<[Input; 2]> {
        for file in self.recorded_inputs() {
            if TextFile::open(file.input.path()).map_err(Error::from)?.is_some() {
                anyhow::bail!(
                    "{} is a text report, but this --group-by needs binary dumps; only --group-by class, package and \
                     loader compare the HEAP DUMP of text reports",
                    file.input.path().display()
                );
            }
            // Reports an invalid --run.
            file.open_text(cx)?;
        }
        Ok(self.inputs())
    }

    fn inputs(&self) -> [Input; 2] {
        [self.old.input.clone(), self.old.input.with_dump(&self.new)]
    }

    /// Returns whether `--quiet` was given.
    pub(crate) fn quiet(&self) -> bool {
        self.old.input.quiet
    }
}

/// The two compared files: JSON describes the new one in `dump`, the old one in `old`.
pub(crate) struct ComparedFiles<O, N> {
    pub(crate) old: O,
    pub(crate) new: N,
}

impl<O: AnswerSource, N: AnswerSource> AnswerSource for ComparedFiles<O, N> {
    fn header(&self) -> DumpHeader<'_> {
        self.new.header()
    }

    fn is_damaged(&self) -> bool {
        self.old.is_damaged() || self.new.is_damaged()
    }

    fn check(&self) -> anyhow::Result<()> {
        self.old.check()?;
        self.new.check()
    }
}

/// Description of the older dump in JSON.
#[derive(Debug, Clone)]
pub(crate) struct Old {
    path: String,
    created: Option<String>,
    damaged: Option<bool>,
}

impl Old {
    /// Creates the description of a file.
    pub(crate) fn from_source(source: &impl AnswerSource) -> Self {
        let dump = source.header();
        Self {
            path: dump.path.clone().into_owned(),
            created: dump.created.as_deref().map(str::to_owned),
            damaged: dump.is_damaged,
        }
    }

    /// Returns the keys in addition to the rows: path and time of the older dump, and whether it is damaged.
    pub(crate) fn columns<'c, T: 'c>(old: fn(&T) -> &Self) -> [Column<'c, T>; 3] {
        [
            Column::new(names::OLD.dot(names::PATH), move |all: &T| Value::from(&*old(all).path)),
            Column::new(names::OLD.dot(names::CREATED), move |all: &T| old(all).created.as_deref().into())
                .or_null(nulls::UNSTATED),
            Column::new(names::OLD.dot(names::IS_DAMAGED), move |all: &T| old(all).damaged.into())
                .or_null("the dump was not read"),
        ]
    }
}

/// Columns of a number in both dumps: `KEY_old`, `KEY_new`, `KEY_delta`.
pub(crate) struct ChangeColumns<R> {
    /// Key without its suffix.
    key: ColumnKey,
    /// Condition under which the columns are `null`, if any.
    null: Option<&'static str>,
    of: fn(&R) -> Option<Change>,
}

impl<R> ChangeColumns<R> {
    /// Creates columns of a number that is never `null`.
    pub(crate) fn new(key: impl Into<ColumnKey>, of: fn(&R) -> Option<Change>) -> Self {
        Self { key: key.into(), null: None, of }
    }

    /// Makes the columns `null` under the condition `when`.
    pub(crate) fn or_null(self, when: &'static str) -> Self {
        Self { null: Some(when), ..self }
    }

    /// Returns the columns for JSON and CSV.
    pub(crate) fn columns<'c>(&self) -> [Column<'c, R>; 3]
    where
        R: 'c,
    {
        let of = self.of;
        let or_null = |column: Column<'c, R>| match self.null {
            Some(when) => column.or_null(when),
            None => column,
        };
        let figure = |side, of_change: fn(Change) -> u64| {
            or_null(Column::new(self.key.clone().for_side(side), move |row: &R| {
                of(row).map(of_change).into()
            }))
        };
        let delta = Column::new(self.key.clone().for_side(ComparedValue::Delta), move |row: &R| {
            of(row).map(Change::delta).into()
        });
        [
            figure(ComparedValue::Old, |change| change.old),
            figure(ComparedValue::New, |change| change.new),
            or_null(delta),
        ]
    }

    /// Returns the columns for a table: the difference, which has a sign, and the new number.
    pub(crate) fn in_table<'c>(&self, [grown, now]: [&'static str; 2]) -> [TableColumn<'c, R>; 2]
    where
        R: 'c,
    {
        let of = self.of;
        [
            TableColumn::new(self.key.clone().for_side(ComparedValue::Delta), grown)
                .cell(move |row| of(row).map(|change| format_signed(change.delta())).unwrap_or_default()),
            TableColumn::new(self.key.clone().for_side(ComparedValue::New), now),
        ]
    }
}
