//! `diff --group-by class`, `package`, `loader`, `superclass`.

use std::sync::Arc;

use crate::cli::compare::pair::{ChangeColumns, ComparedFiles, Old, PairMember};
use crate::cli::jvm::CountedObjects;
use crate::cli::prelude::*;
use crate::cli::shared::class_histogram::CountedHistogram;
use crate::cli::shared::messages;
use crate::cli::shared::recording::{RecordedFile, RecordedInput, RecordedProfile};
use hprof_index::Heap;
use hprof_index::layout::sizes::Sizes;
use hprof_query::change::Change;
use hprof_query::compare::classes::{
    ClassCensus, ClassChange, ClassDiffGrouping, ComparedFigures, ComparedNames, ComparedQuery,
};
use hprof_query::histogram::{HistogramOrder, Scope, With};
use hprof_query::naming::stable_names;
use hprof_query::recordings::profile::text;
use hprof_report::json::DumpHeader;
use hprof_report::number::format_signed;

use super::DiffArgs;
use super::kind::DiffKind;
use super::shown::{self, Counts};

/// A dump, text report or class histogram whose objects are counted.
enum CountedFile {
    Histogram(Box<CountedHistogram>),
    Heap(Arc<Heap>),
    Graph(Box<Session>),
    Text(Box<RecordedProfile>),
}

/// Description of the positional arguments, for hints.
const TAKES: &str = "the command takes two dumps, then patterns";

impl CountedFile {
    /// Returns the names of all classes in the file.
    fn class_names(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Self::Histogram(counted) => Box::new(counted.class_names()),
            Self::Heap(heap) => names_of(heap),
            Self::Graph(session) => names_of(&session.heap),
            Self::Text(recorded) => match &recorded.file {
                RecordedFile::Text { report, .. } => {
                    let classes = report.heap.iter().flat_map(|heap| &heap.classes);
                    Box::new(classes.map(|class| class.name.as_str()))
                }
                RecordedFile::Binary(heap) => names_of(heap),
                RecordedFile::Flight { .. } => Box::new(std::iter::empty()),
            },
        }
    }
}

/// Returns the class names of a binary dump.
fn names_of(heap: &Heap) -> Box<dyn Iterator<Item = &str> + '_> {
    let summary = heap.summary();
    Box::new(summary.classes().iter().map(|class| summary.class_name(class)))
}

impl AnswerSource for CountedFile {
    fn header(&self) -> DumpHeader<'_> {
        match self {
            Self::Histogram(counted) => counted.header(),
            Self::Heap(heap) => heap.header(),
            Self::Graph(session) => session.header(),
            Self::Text(recorded) => recorded.header(),
        }
    }

    fn is_damaged(&self) -> bool {
        match self {
            Self::Histogram(counted) => counted.is_damaged(),
            Self::Heap(heap) => heap.is_damaged(),
            Self::Graph(session) => session.is_damaged(),
            Self::Text(recorded) => recorded.is_damaged(),
        }
    }

    fn check(&self) -> anyhow::Result<()> {
        match self {
            Self::Graph(session) => session.check(),
            Self::Histogram(_) | Self::Heap(_) | Self::Text(_) => Ok(()),
        }
    }
}

/// Definition of the kind `class`.
pub(super) const CLASS: DiffKind = DiffKind {
    name: "class",
    summary: "Classes, by name and class loader",
    about: "The default. A row is a class; classes of one name and one loader name are one row.",
    unit: "rows",
    options: &["PATTERN", "--live", "--retained", "--sort", "--sort retained"],
    compare: |cx, args| run(cx, args, ClassDiffGrouping::Class),
    rows: || columns(ClassDiffGrouping::Class, "class", true, false).fields(),
    summary_fields: || Columns::new(summary_columns()).fields(),
};

/// Definition of the kind `package`.
pub(super) const PACKAGE: DiffKind = DiffKind {
    name: "package",
    summary: "Packages",
    about: "A row is a package.",
    compare: |cx, args| run(cx, args, ClassDiffGrouping::Package),
    rows: || columns(ClassDiffGrouping::Package, "package", true, false).fields(),
    ..CLASS
};

/// Definition of the kind `loader`.
pub(super) const LOADER: DiffKind = DiffKind {
    name: "loader",
    summary: "Class loaders",
    about: "A row is the class loaders of one name.",
    compare: |cx, args| run(cx, args, ClassDiffGrouping::Loader),
    rows: || columns(ClassDiffGrouping::Loader, "loader", true, false).fields(),
    ..CLASS
};

/// Definition of the kind `superclass`.
pub(super) const SUPERCLASS: DiffKind = DiffKind {
    name: "superclass",
    summary: "Classes with all their subclasses",
    about: "A row is a class with all its subclasses; classes without subclasses have no row, and rows overlap.",
    compare: |cx, args| run(cx, args, ClassDiffGrouping::Superclass),
    rows: || columns(ClassDiffGrouping::Superclass, "superclass", true, false).fields(),
    ..CLASS
};

fn run(cx: &RunContext, args: &DiffArgs, group_by: ClassDiffGrouping) -> anyhow::Result<Outcome> {
    let retained = args.retained || args.sort == Some(HistogramOrder::Retained);
    let sort_by =
        args.sort.unwrap_or(if retained { HistogramOrder::Retained } else { HistogramOrder::Bytes });
    let members = args.input.members(cx)?;
    if retained {
        PairMember::check_objects(&members, "--retained")?;
    }
    let has_counts = members.iter().any(|member| member.counts_of().is_some());
    let names = if has_counts { ComparedNames::Histograms } else { ComparedNames::Dumps };
    let question = ComparedQuery { group_by, patterns: args.patterns.clone(), names };
    let scope = if args.live { Scope::Reachable } else { Scope::All };
    let with = if retained { With::Retained } else { With::Counts };
    let count = |member: PairMember| match member {
        PairMember::Other(input) => census(cx, &input, &question, scope, with),
        PairMember::Counted(counted) => {
            counted.ensure_unneeded(&[("--live", args.live)])?;
            Ok(counted_census(counted, &question))
        }
        PairMember::Process(input, pid) => {
            let counted = args.input.count(cx, &input, pid, CountedObjects::new(args.live))?;
            Ok(counted_census(Box::new(counted), &question))
        }
    };
    let [old, new] = members;
    let ((old, before), (new, after)) = (count(old)?, count(new)?);
    let rows = ClassCensus::compare(&before, &after, sort_by);
    let counts = Counts::from_statuses(rows.iter().map(|row| row.status));
    let changed = counts.changed;
    let summary =
        ClassesDiffSummary { old: Old::from_source(&old), before: before.total, after: after.total, changed };
    let change = |of: fn(&ComparedFigures) -> u64| format_signed(summary.change(of).delta());
    let source = ComparedFiles { old, new };
    let title = args.group_by.name;
    let outcome = shown::show(cx, args, &source, counts, &[], |format| {
        let shown = shown::rows(args, format, &rows, |row| row.status);
        Answer::new(columns(group_by, title, retained, cx.hides_values), shown)
            .with_summary(&Columns::new(summary_columns()), &summary)
            .total([
                ("bytes +/-", change(|figures| figures.shallow_bytes)),
                ("instances +/-", change(|figures| figures.instances)),
                (title, "total".to_owned()),
            ])
    })?;
    if rows.is_empty() && !args.input.quiet() {
        let names = || source.old.class_names().chain(source.new.class_names());
        messages::about_patterns(cx, &args.patterns, TAKES, names);
    }
    Ok(outcome)
}

/// Counts the objects of a class histogram.
fn counted_census(counted: Box<CountedHistogram>, question: &ComparedQuery) -> (CountedFile, ClassCensus) {
    let census = ClassCensus::of_text(&counted.histogram.heap, question);
    (CountedFile::Histogram(counted), census)
}

/// Counts the objects of a file by class.
fn census(
    cx: &RunContext,
    input: &RecordedInput,
    question: &ComparedQuery,
    scope: Scope,
    with: With,
) -> anyhow::Result<(CountedFile, ClassCensus)> {
    let needs_graph = (scope, with) != (Scope::All, With::Counts);
    if let Some((file, mut recorded)) = input.open_text(cx)? {
        let path = file.path().display();
        anyhow::ensure!(
            !needs_graph,
            "--live and retained sizes need binary dumps, and {path} is a text report; omit --live, --retained and --sort retained"
        );
        let mut census = ClassCensus::default();
        if let RecordedFile::Text { report, .. } = &mut recorded.file {
            text::resolve_loaders(&file, report)?;
            let heap = report.heap.as_ref().ok_or_else(|| {
                anyhow::anyhow!(
                    "{path} contains no HEAP DUMP; `--group-by sites` compares recorded allocations"
                )
            })?;
            census = ClassCensus::of_text(heap, question);
        }
        return Ok((CountedFile::Text(Box::new(recorded)), census));
    }
    if needs_graph {
        let (session, census) = Session::ask_graph(cx, &input.input, |dump| {
            Ok(ClassCensus::of_graph(dump, question, scope, with))
        })?;
        return Ok((CountedFile::Graph(Box::new(session)), census));
    }
    let heap = input.input.open(cx)?;
    let census = ClassCensus::new(heap.summary(), &Sizes::new(heap.summary(), None), question);
    Ok((CountedFile::Heap(heap), census))
}

/// Source of the JSON keys in addition to the rows.
struct ClassesDiffSummary {
    old: Old,
    before: ComparedFigures,
    after: ComparedFigures,
    changed: u64,
}

impl ClassesDiffSummary {
    fn change(&self, of: fn(&ComparedFigures) -> u64) -> Change {
        Change { old: of(&self.before), new: of(&self.after) }
    }
}

fn columns<'a>(
    group_by: ClassDiffGrouping,
    title: &'static str,
    retained: bool,
    hides_values: bool,
) -> Columns<'a, &'a ClassChange> {
    let told =
        move |loader: &'a str| if hides_values { stable_names::unnamed_loader(loader) } else { loader };
    let loader = || {
        Column::new(names::LOADER, move |row: &&'a ClassChange| row.key.loader.as_deref().map(told).into())
            .or_null(nulls::NO_CLASS_OBJECT)
    };
    let name = |key| Column::new(key, |row: &&ClassChange| Value::from(&*row.key.name));
    let (mut columns, key) = match group_by {
        ClassDiffGrouping::Class | ClassDiffGrouping::Superclass => {
            (vec![name(names::CLASS), loader()], names::CLASS)
        }
        ClassDiffGrouping::Package => (vec![name(names::PACKAGE)], names::PACKAGE),
        ClassDiffGrouping::Loader => (vec![loader()], names::LOADER),
    };
    columns.push(shown::status(|row: &&ClassChange| row.status));
    let instances = ChangeColumns::new(names::INSTANCES, |row: &&ClassChange| Some(row.instances));
    let bytes = ChangeColumns::new(names::SHALLOW_BYTES, |row: &&ClassChange| Some(row.shallow_bytes));
    let of_retained = ChangeColumns::new(names::RETAINED_BYTES, |row: &&ClassChange| row.retained_bytes)
        .or_null("without `--retained`");
    columns.extend([&instances, &bytes, &of_retained].into_iter().flat_map(ChangeColumns::columns));
    let mut shown = Vec::from(bytes.in_table(["bytes +/-", "bytes"]));
    shown.extend(instances.in_table(["instances +/-", "instances"]));
    if retained {
        shown.extend(of_retained.in_table(["retained +/-", "retained"]));
    }
    if group_by != ClassDiffGrouping::Class {
        columns.extend(ChangeColumns::new(names::CLASSES, |row: &&ClassChange| Some(row.classes)).columns());
    }
    if group_by == ClassDiffGrouping::Loader {
        let loaders = ChangeColumns::new(names::LOADERS, |row: &&ClassChange| Some(row.loaders));
        columns.extend(loaders.columns());
        shown.extend(loaders.in_table(["loaders +/-", "loaders"]));
    }
    shown.extend([
        shown::status_in_table(|row: &&ClassChange| row.status),
        TableColumn::new(key, title).fit(Fit::Shorten { priority: 0 }),
    ]);
    Columns::new(columns).table(shown)
}

fn summary_columns<'c>() -> Vec<Column<'c, ClassesDiffSummary>> {
    let mut columns = Vec::from(Old::columns(|summary: &ClassesDiffSummary| &summary.old));
    columns.push(Column::new(names::TOTAL.dot(names::ROWS), |summary: &ClassesDiffSummary| {
        summary.changed.into()
    }));
    columns.extend(
        ChangeColumns::new(names::TOTAL.dot(names::INSTANCES), |summary: &ClassesDiffSummary| {
            Some(summary.change(|figures| figures.instances))
        })
        .columns(),
    );
    columns.extend(
        ChangeColumns::new(names::TOTAL.dot(names::SHALLOW_BYTES), |summary: &ClassesDiffSummary| {
            Some(summary.change(|figures| figures.shallow_bytes))
        })
        .columns(),
    );
    columns
}
