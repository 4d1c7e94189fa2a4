//! Two dumps: which is the old one, what JSON says of them, and how a run over both ends.

use std::path::PathBuf;

use crate::cli::shared::args::Input;
use crate::cli::shared::context::RunContext;
use crate::cli::shared::recording::RecordedInput;
use crate::cli::shared::session::Source;
use hprof_index::Error;
use hprof_input::file::TextFile;
use hprof_query::compare::Change;
use hprof_query::dictionary::{Key, Side, names};
use hprof_report::column::Column;
use hprof_report::json::Dump;
use hprof_report::number::signed;
use hprof_report::value::Value;

/// The old dump and the new one, read in the same way.
#[derive(Debug, clap::Args)]
#[command(mut_arg("dump", |dump| dump
    .index(1)
    .value_name("OLD")
    .help("The dump to compare with: HPROF binary, or text report of the HPROF agent (java.hprof.txt)")))]
pub(crate) struct PairInput {
    #[command(flatten)]
    old: RecordedInput,

    /// The dump in question
    #[arg(index = 2, value_name = "NEW", value_hint = clap::ValueHint::FilePath, help_heading = "Input")]
    new: PathBuf,
}

impl PairInput {
    /// The old file, then the new one: binary dumps or text reports.
    pub(crate) fn recorded(&self) -> [RecordedInput; 2] {
        [self.old.clone(), self.old.of(&self.new)]
    }

    /// The old dump, then the new one; ends with an error if one of them is a text report, which has no such things.
    pub(crate) fn binary(&self, cx: &RunContext) -> anyhow::Result<[Input; 2]> {
        for file in self.recorded() {
            if TextFile::open(file.input.path()).map_err(Error::from)?.is_some() {
                anyhow::bail!(
                    "{} is a text report, and this --group-by needs binary dumps; --group-by class, package and loader compare the HEAP \
                     DUMP of a text report",
                    file.input.path().display()
                );
            }
            // Says what is wrong with --run.
            file.open_text(cx)?;
        }
        Ok(self.inputs())
    }

    fn inputs(&self) -> [Input; 2] {
        [self.old.input.clone(), self.old.input.of(&self.new)]
    }

    /// Returns whether nothing but answers and warnings is wanted.
    pub(crate) fn quiet(&self) -> bool {
        self.old.input.quiet
    }
}

/// Two files that an answer comes from: JSON says of the new one in `dump`, of the old one in `old`.
pub(crate) struct Pair<O, N> {
    pub(crate) old: O,
    pub(crate) new: N,
}

impl<O: Source, N: Source> Source for Pair<O, N> {
    fn dump(&self) -> Dump<'_> {
        self.new.dump()
    }

    fn is_damaged(&self) -> bool {
        self.old.is_damaged() || self.new.is_damaged()
    }

    fn check(&self) -> anyhow::Result<()> {
        self.old.check()?;
        self.new.check()
    }
}

/// What JSON says of the old dump.
#[derive(Debug, Clone)]
pub(crate) struct Old {
    path: String,
    created: Option<String>,
    damaged: Option<bool>,
}

impl Old {
    /// Of a file.
    pub(crate) fn of(source: &impl Source) -> Self {
        let dump = source.dump();
        Self {
            path: dump.path.clone().into_owned(),
            created: dump.created.as_deref().map(str::to_owned),
            damaged: dump.is_damaged,
        }
    }

    /// The keys beside the rows.
    pub(crate) fn columns<'c, T: 'c>(old: fn(&T) -> &Self) -> [Column<'c, T>; 3] {
        [
            Column::of(names::OLD.dot(names::PATH), move |all: &T| Value::from(&*old(all).path)),
            Column::of(names::OLD.dot(names::CREATED), move |all: &T| old(all).created.as_deref().into())
                .or_null("the dump does not say"),
            Column::of(names::OLD.dot(names::IS_DAMAGED), move |all: &T| old(all).damaged.into())
                .or_null("the dump was not read"),
        ]
    }
}

/// A figure of both dumps: `KEY_old`, `KEY_new`, `KEY_delta`. Tables show what `title` names: the difference, with its sign.
pub(crate) struct ChangeColumns {
    /// The key, without what follows it.
    key: Key,
    /// When it is `null`, if it can be.
    null: Option<&'static str>,
    /// The title of the difference in tables, and of the new figure.
    titles: [&'static str; 2],
}

impl ChangeColumns {
    /// A figure that is never `null`.
    pub(crate) fn new(key: impl Into<Key>, titles: [&'static str; 2]) -> Self {
        Self { key: key.into(), null: None, titles }
    }

    /// The same, `null` when this is so.
    pub(crate) fn or_null(self, when: &'static str) -> Self {
        Self { null: Some(when), ..self }
    }

    /// The columns; `place` is that of the first one in tables.
    pub(crate) fn columns<'c, R: 'c>(self, place: usize, of: fn(&R) -> Option<Change>) -> [Column<'c, R>; 3] {
        let Self { key, null, titles: [grown, now] } = self;
        let or_null = |column: Column<'c, R>| match null {
            Some(when) => column.or_null(when),
            None => column,
        };
        let figure = |side, of_change: fn(Change) -> u64| {
            or_null(Column::of(key.clone().of(side), move |row: &R| of(row).map(of_change).into()))
        };
        let delta = Column::of(key.clone().of(Side::Delta), move |row: &R| of(row).map(Change::delta).into());
        [
            figure(Side::Old, |change| change.old),
            figure(Side::New, |change| change.new).header(now).place(place + 1),
            or_null(delta)
                .header(grown)
                .place(place)
                .cell(move |row| of(row).map(|change| signed(change.delta())).unwrap_or_default()),
        ]
    }
}
