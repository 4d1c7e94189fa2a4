//! `loaders`: class loaders, their retained sizes, and classes that several loaders define.

use super::short_path::short_path;
use crate::cli::prelude::*;
use rustc_hash::FxHashMap;

use crate::cli::shared::unreachable::{self, ReachableScope};
use crate::cli::shared::{facts, object};
use hprof_index::model::summary::Summary;
use hprof_index::model::tables::ClassRow;
use hprof_query::generated_loaders::is_permanent;
use hprof_query::loaders::loader_sets::{self, DuplicateName, LoaderRow, LoaderSet};
use hprof_query::loaders::{self, Duplicate, LoaderOrder};
use hprof_query::objects::label::Labels;
use hprof_query::paths::steps::View;
use hprof_report::answer::RowLine;
use hprof_report::escape;
use hprof_report::value::id;
use hprof_values::ObjectId;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli loaders heap.hprof
  hprof-cli loaders heap.hprof --sort classes --top 0
  hprof-cli loaders heap.hprof --duplicates
  hprof-cli loaders heap.hprof --format json | jq '.rows[] | select(.classes == 0)'";

/// Values of `--sort`.
const SORT: &[Keyword<LoaderOrder>] = &[
    ("retained", LoaderOrder::Retained, "Largest retained size first"),
    ("classes", LoaderOrder::Classes, "Most classes first"),
    ("instances", LoaderOrder::Instances, "Most instances of the loader's classes first"),
    ("bytes", LoaderOrder::Shallow, "Most bytes in instances of the loader's classes first"),
];

/// List class loaders, their classes and retained sizes
///
/// The retained size of a loader includes its classes and their instances, which reference one another: it is what is
/// freed once none of them is referenced from outside. For the boot, platform and application loaders, it is the
/// retained size of the loader object alone. Groups of loaders that define classes with the same names come first, each
/// with a path from a GC root to one of its loaders: they indicate a class loader leak. A hundred or more loaders of one
/// class that define at most four classes each, such as those of scripts, are one row. Builds the index on first use.
#[derive(Debug, clap::Args)]
pub(crate) struct LoadersArgs {
    #[command(flatten)]
    input: Input,

    /// Show only duplicates: class names that several loaders define
    #[arg(long, conflicts_with = "sort", help_heading = "Filter")]
    duplicates: bool,

    /// With --duplicates, show a row for each class and loader instead of each name
    #[arg(long, requires = "duplicates", help_heading = "Output")]
    details: bool,

    /// Sort order
    #[arg(long, value_name = "KEY", value_parser = keys(SORT), default_value = "retained", help_heading = "Output")]
    sort: LoaderOrder,

    #[command(flatten)]
    top: Top,

    #[command(flatten)]
    output: Output,
}

/// Maximum number of rows for which a path from a GC root is searched.
const MAX_WHY: usize = 20;

pub(crate) fn run(cx: &RunContext, args: &LoadersArgs) -> anyhow::Result<Outcome> {
    match (args.duplicates, args.details) {
        (false, _) => loaders(cx, args),
        (true, false) => duplicate_names(cx, args),
        (true, true) => duplicates(cx, args),
    }
}

fn loaders(cx: &RunContext, args: &LoadersArgs) -> anyhow::Result<Outcome> {
    let format = args.output.format();
    let top = args.top.rows(format).unwrap_or(usize::MAX);
    let (session, (found, why)) = Session::ask(cx, &args.input, |dump| {
        let labels = Labels::new(dump);
        let rows = loaders::loaders(&dump.objects, &labels, args.sort);
        let found = loader_sets::with_classes(dump, rows, args.sort)?;
        let first = found.groups.iter().take(top.min(MAX_WHY)).filter_map(|group| group.loaders.first());
        let why = loader_sets::root_paths(&View::new(dump), first.copied());
        Ok((found, why))
    })?;
    let summary = session.heap.summary();
    let whole = session.graph.tree.reachable_bytes();
    let lines = found.rows.iter().map(|found| LoaderLine { summary, row: found });
    let total = found.rows.len() as u64;
    let labels: FxHashMap<ObjectId, &str> =
        found.rows.iter().filter_map(|row| Some((row.row.id, row.row.label.as_deref()?))).collect();
    let groups = (1u64..).zip(&found.groups).map(|(number, group)| {
        let first = group.loaders.first().copied().unwrap_or_default();
        let label = labels.get(&first).copied();
        GroupLine { summary, number, group, first, label, why: why.get(&first).map(short_path) }
    });
    let loaders = found.rows.iter().map(|found| found.row.loaders()).sum();
    let beside = LoadersSummary { total: loaders, groups: groups.collect() };
    let mut answer = Answer::new(columns(Some(summary), whole), lines.take(top))
        .with_summary(&summary_columns(whole), &beside)
        .matching(total, "loaders");
    if format == Format::Table && !beside.groups.is_empty() {
        let columns = group_columns(whole);
        let shown = beside.groups.iter().take(top).cloned();
        answer = answer.with_section_above(Section::table_with(&columns, shown, below_group));
        let more = beside.groups.len().saturating_sub(top) as u64;
        if more > 0 {
            answer = answer.with_section_above(Section::Line(format!("{} more groups", group_digits(more))));
        }
        answer = answer.with_section_above(Section::Line(String::new()));
    }
    session.show(cx, "loaders", &args.output, answer)?;
    unreachable::note(cx, &session, &args.input, ReachableScope::Reachable);
    Ok(session.outcome(total > 0))
}

fn duplicate_names(cx: &RunContext, args: &LoadersArgs) -> anyhow::Result<Outcome> {
    let top = args.top.rows(args.output.format()).unwrap_or(usize::MAX);
    let (session, (rows, why)) = Session::ask(cx, &args.input, |dump| {
        let labels = Labels::new(dump);
        let duplicates = loaders::duplicates(dump, &labels);
        let rows = loader_sets::duplicate_names(dump, &duplicates)?;
        let first = rows.iter().take(top.min(MAX_WHY)).map(|row| row.first.loader);
        let first = first.filter(|loader| !is_permanent(dump.summary, *loader));
        let why = loader_sets::root_paths(&View::new(dump), first);
        Ok((rows, why))
    })?;
    let summary = session.heap.summary();
    let lines = rows.iter().map(|row| NameLine {
        line: LoaderLine { summary, row: &row.first },
        row,
        why: why.get(&row.first.loader).map(short_path),
    });
    let total = rows.len() as u64;
    let whole = session.graph.tree.reachable_bytes();
    let answer = Answer::new(name_columns(whole), lines.take(top))
        .with_summary(&duplicate_total(), &total)
        .matching(total, "classes")
        .with_lines_below(below_name)
        .if_empty(NoRows::Nothing);
    session.show(cx, "loaders", &args.output, answer)?;
    note_no_duplicates(cx, args, total);
    unreachable::note(cx, &session, &args.input, ReachableScope::Reachable);
    Ok(session.outcome(total > 0))
}

fn duplicates(cx: &RunContext, args: &LoadersArgs) -> anyhow::Result<Outcome> {
    let (session, rows) = Session::ask(cx, &args.input, |dump| {
        let labels = Labels::new(dump);
        Ok(loaders::duplicates(dump, &labels))
    })?;
    let lines = rows.iter().map(|row| LoaderLine { summary: session.heap.summary(), row });
    let total = rows.len() as u64;
    let top = args.top.rows(args.output.format()).unwrap_or(usize::MAX);
    let answer = Answer::new(duplicate_columns(), lines.take(top))
        .with_summary(&duplicate_total(), &total)
        .matching(total, "classes")
        .if_empty(NoRows::Nothing);
    session.show(cx, "loaders", &args.output, answer)?;
    note_no_duplicates(cx, args, total);
    unreachable::note(cx, &session, &args.input, ReachableScope::Reachable);
    Ok(session.outcome(total > 0))
}

fn note_no_duplicates(cx: &RunContext, args: &LoadersArgs, total: u64) {
    if total == 0 && !args.input.quiet {
        cx.emit("note", "no class was loaded by several loaders");
    }
}

/// A row of the result, and the source of its class names.
struct LoaderLine<'a, R> {
    summary: &'a Summary,
    row: &'a R,
}

/// Returns the object ID of a loader; null for the boot loader.
fn loader_id(loader: ObjectId) -> Value<'static> {
    id(loader.non_null())
}

impl<'a> LoaderLine<'a, LoaderRow> {
    fn class(&self) -> Option<&'a str> {
        let row = &self.row.row;
        if row.id.is_null() { None } else { object::class_name(self.summary, row.class) }
    }

    fn in_table(&self) -> String {
        match (self.row.row.id.non_null(), self.class()) {
            (Some(_), None) => "not in the dump".to_owned(),
            (None, None) => object::BOOT_LOADER.to_owned(),
            (_, class) => {
                let described = object::describe_without_id(class, self.row.row.label.as_deref());
                match self.row.row.loaders() {
                    1 => described,
                    loaders => format!("{} x {described}", group_digits(loaders)),
                }
            }
        }
    }
}

/// Returns the columns of the table of loaders. Which columns there are does not depend on `summary`.
fn columns<'a>(summary: Option<&'a Summary>, whole: u64) -> Columns<'a, LoaderLine<'a, LoaderRow>> {
    type Line<'a> = LoaderLine<'a, LoaderRow>;
    Columns::new(facts::columns(LoaderRow::facts(), summary, |line: &Line<'a>| line.row)).table([
        TableColumn::new(names::RETAINED_BYTES, "retained"),
        TableColumn::table_only("%", Align::Right, move |line: &Line<'a>| {
            line.row.retained_bytes().map(|bytes| percent(bytes, whole)).unwrap_or_default()
        }),
        TableColumn::new(names::CLASSES, "classes"),
        TableColumn::new(names::INSTANCES, "instances"),
        TableColumn::new(names::SHALLOW_BYTES, "shallow").fit(Fit::Secondary { priority: 1 }),
        TableColumn::new(names::OBJECT, "id").cell(|line: &Line<'a>| match line.row.row.id.non_null() {
            Some(id) if line.row.row.others.is_empty() => format!("{id:#x}"),
            _ => String::new(),
        }),
        TableColumn::new(names::PARENT, "parent").fit(Fit::Secondary { priority: 0 }).cell(
            |line: &Line<'a>| match line.row.row.parent {
                None => String::new(),
                Some(ObjectId::NULL) => object::BOOT_LOADER.to_owned(),
                Some(parent) => format!("{parent:#x}"),
            },
        ),
        TableColumn::new(names::CLASS, "loader").fit(Fit::Shorten { priority: 0 }).cell(LoaderLine::in_table),
    ])
}

/// A group of class loaders, as a row of the result.
#[derive(Clone)]
struct GroupLine<'a> {
    summary: &'a Summary,
    number: u64,
    group: &'a LoaderSet,
    first: ObjectId,
    label: Option<&'a str>,
    why: Option<String>,
}

impl GroupLine<'_> {
    fn names(&self) -> impl Iterator<Item = &str> {
        let classes = self.group.classes.iter();
        classes.filter_map(|class| object::class_name(self.summary, Some(*class)))
    }

    /// Returns the first class names as text.
    fn classes_in_table(&self) -> String {
        let first: Vec<&str> = self.names().take(2).collect();
        let more = self.group.classes.len().saturating_sub(first.len());
        let more =
            if more > 0 { format!(" and {} more classes", group_digits(more as u64)) } else { String::new() };
        format!("{}{more}", first.join(", "))
    }
}

/// Maximum number of class names listed for a group.
const MAX_NAMES: usize = 100;

fn group_columns<'a>(whole: u64) -> Columns<'a, GroupLine<'a>> {
    let columns = Columns::new([
        Column::new(names::LOADER_GROUP, |line: &GroupLine<'a>| line.number.into()),
        Column::new(names::LOADERS, |line: &GroupLine<'a>| (line.group.loaders.len() as u64).into()),
        Column::new(names::CLASSES, |line: &GroupLine<'a>| (line.group.classes.len() as u64).into()),
        Column::new(names::CLASS_NAMES, |line: &GroupLine<'a>| {
            let names = line.names().take(MAX_NAMES).map(|name| name.to_owned().into());
            Value::List(names.collect())
        }),
        Column::new(names::INSTANCES, |line: &GroupLine<'a>| line.group.instances.into()),
        Column::new(names::SHALLOW_BYTES, |line: &GroupLine<'a>| line.group.shallow_bytes.into()),
        Column::new(names::RETAINED_BYTES, |line: &GroupLine<'a>| line.group.retained.bytes.into()),
        Column::new(names::RETAINED_OBJECTS, |line: &GroupLine<'a>| line.group.retained.objects.into()),
        Column::new(names::FIRST_OBJECT, |line: &GroupLine<'a>| id(Some(line.first))),
        Column::new(names::FIRST_LABEL, |line: &GroupLine<'a>| line.label.into()).or_null(nulls::NONE_LISTED),
        Column::new(names::FIRST_PATH, |line: &GroupLine<'a>| line.why.as_deref().into())
            .or_null("there is none, or twenty groups retain more"),
    ]);
    columns.table([
        TableColumn::new(names::RETAINED_BYTES, "retained"),
        TableColumn::table_only("%", Align::Right, move |line: &GroupLine<'a>| {
            percent(line.group.retained.bytes, whole)
        }),
        TableColumn::new(names::LOADERS, "loaders"),
        TableColumn::new(names::INSTANCES, "instances"),
        TableColumn::new(names::CLASS_NAMES, "with the same classes")
            .fit(Fit::Shorten { priority: 0 })
            .cell(GroupLine::classes_in_table),
    ])
}

/// Returns the lines below a group: why its first loader is reachable.
fn below_group(line: &GroupLine<'_>) -> Vec<RowLine> {
    let Some(why) = &line.why else { return Vec::new() };
    let label = line.label.map(|label| format!(" {}", escape::quoted(label))).unwrap_or_default();
    held_by(&format!("the first by address, {:#x}{label}, is held by:", line.first), why)
}

fn held_by(what: &str, why: &str) -> Vec<RowLine> {
    let line = |indent, text: &str| RowLine { indent, text: text.to_owned() };
    vec![line(4, what), line(6, why)]
}

/// Keys of the JSON document in addition to its rows.
struct LoadersSummary<'a> {
    total: u64,
    groups: Vec<GroupLine<'a>>,
}

fn summary_columns<'a>(whole: u64) -> Columns<'a, LoadersSummary<'a>> {
    let groups = group_columns(whole);
    Columns::new([
        Column::new(names::TOTAL.dot(names::LOADERS), |summary: &LoadersSummary<'a>| summary.total.into()),
        Column::with_fields(names::GROUPS, groups.fields(), move |beside: &LoadersSummary<'a>| {
            Value::List(beside.groups.iter().map(|group| groups.record(group)).collect())
        }),
    ])
}

/// A class name that several loaders define, as a row of the result.
struct NameLine<'a> {
    /// The class whose loader has the lowest object ID.
    line: LoaderLine<'a, Duplicate>,
    row: &'a DuplicateName,
    why: Option<String>,
}

fn name_columns<'a>(whole: u64) -> Columns<'a, NameLine<'a>> {
    let columns = Columns::new([
        Column::new(names::CLASS, |line: &NameLine<'a>| {
            object::class_name(line.line.summary, Some(line.line.row.class)).into()
        }),
        Column::new(names::CLASS_OBJECT, |line: &NameLine<'a>| {
            id(line.line.class().map(|class| ObjectId::from(class.id)))
        }),
        Column::new(names::LOADER, |line: &NameLine<'a>| {
            object::loader_text(line.line.summary, line.line.row.loader).into()
        }),
        Column::new(names::LOADER_OBJECT, |line: &NameLine<'a>| loader_id(line.line.row.loader))
            .or_null(nulls::BOOT_LOADER),
        Column::new(names::LOADER_LABEL, |line: &NameLine<'a>| line.line.row.loader_label.as_deref().into())
            .or_null(nulls::NONE_LISTED),
        Column::new(names::LOADERS, |line: &NameLine<'a>| line.row.loaders.into()),
        Column::new(names::INSTANCES, |line: &NameLine<'a>| line.row.instances.into()),
        Column::new(names::SHALLOW_BYTES, |line: &NameLine<'a>| line.row.shallow_bytes.into()),
        Column::new(names::RETAINED_BYTES, |line: &NameLine<'a>| {
            line.row.retained.map(|retained| retained.bytes).into()
        })
        .or_null("none of these is reachable"),
        Column::new(names::LOADER_PATH, |line: &NameLine<'a>| line.why.as_deref().into())
            .or_null("it lives as long as the JVM, there is no path, or twenty rows precede it"),
    ]);
    columns.table([
        TableColumn::new(names::RETAINED_BYTES, "retained"),
        TableColumn::table_only("%", Align::Right, move |line: &NameLine<'a>| {
            line.row.retained.map(|retained| percent(retained.bytes, whole)).unwrap_or_default()
        }),
        TableColumn::new(names::LOADERS, "loaders"),
        TableColumn::new(names::INSTANCES, "instances"),
        TableColumn::new(names::SHALLOW_BYTES, "shallow"),
        TableColumn::new(names::CLASS, "class").fit(Fit::Shorten { priority: 0 }),
    ])
}

fn below_name(line: &NameLine<'_>) -> Vec<RowLine> {
    let Some(why) = &line.why else { return Vec::new() };
    held_by(&format!("the first by address, of {}, is held by:", line.line.loader_in_table()), why)
}

impl<'a> LoaderLine<'a, Duplicate> {
    fn class(&self) -> Option<&'a ClassRow> {
        self.summary.class(self.row.class)
    }

    fn loader_in_table(&self) -> String {
        let label = self
            .row
            .loader_label
            .as_ref()
            .map(|label| format!(" {}", escape::quoted(label)))
            .unwrap_or_default();
        format!("{}{label}", object::loader_text(self.summary, self.row.loader))
    }
}

fn duplicate_columns<'a>() -> Columns<'a, LoaderLine<'a, Duplicate>> {
    let columns = Columns::new([
        Column::new(names::CLASS, |line: &LoaderLine<'a, Duplicate>| {
            object::class_name(line.summary, Some(line.row.class)).into()
        }),
        Column::new(names::CLASS_OBJECT, |line: &LoaderLine<'a, Duplicate>| {
            id(line.class().map(|class| ObjectId::from(class.id)))
        }),
        Column::new(names::LOADER, |line: &LoaderLine<'a, Duplicate>| {
            object::loader_text(line.summary, line.row.loader).into()
        }),
        Column::new(names::LOADER_OBJECT, |line: &LoaderLine<'a, Duplicate>| loader_id(line.row.loader))
            .or_null(nulls::BOOT_LOADER),
        Column::new(names::LOADER_LABEL, |line: &LoaderLine<'a, Duplicate>| {
            line.row.loader_label.as_deref().into()
        })
        .or_null(nulls::NONE_LISTED),
        Column::new(names::LOADERS, |line: &LoaderLine<'a, Duplicate>| line.row.loaders.into()),
        Column::new(names::INSTANCES, |line: &LoaderLine<'a, Duplicate>| line.row.instances.into()),
        Column::new(names::SHALLOW_BYTES, |line: &LoaderLine<'a, Duplicate>| line.row.shallow_bytes.into()),
        Column::new(names::RETAINED_BYTES, |line: &LoaderLine<'a, Duplicate>| line.row.retained_bytes.into())
            .or_null(nulls::UNREACHABLE),
    ]);
    columns.table([
        TableColumn::new(names::INSTANCES, "instances"),
        TableColumn::new(names::SHALLOW_BYTES, "shallow").fit(Fit::Secondary { priority: 0 }),
        TableColumn::new(names::CLASS_OBJECT, "class object").fit(Fit::Secondary { priority: 1 }),
        TableColumn::new(names::LOADER, "loader")
            .fit(Fit::Shorten { priority: 0 })
            .cell(LoaderLine::loader_in_table),
        TableColumn::new(names::CLASS, "class").fit(Fit::Shorten { priority: 1 }),
    ])
}

fn duplicate_total() -> Columns<'static, u64> {
    Columns::new([Column::new(names::TOTAL.dot(names::ROWS), |total: &u64| (*total).into())])
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    let schema =
        |variant, about, rows, summary| ResultSchema { command: "loaders", variant, about, rows, summary };
    vec![
        schema(
            "",
            "A row is a class loader, or all loaders of generated classes of one class of loaders (`object` is the \
             first): those of accessors that the JDK generates for reflective calls (`DelegatingClassLoader`), and \
             others, such as those of scripts, if there are a hundred or more with at most four classes each. Its \
             retained size is what is freed with this loader alone: memory that several loaders retain together \
             counts for their group.",
            columns(None, 0).fields(),
            summary_columns(0).fields(),
        ),
        schema(
            "`--duplicates`",
            "A row is a class name that several loaders define, those that retain most first.",
            name_columns(0).fields(),
            duplicate_total().fields(),
        ),
        schema(
            "`--duplicates --details`",
            "A row is a class of a name that several loaders define.",
            duplicate_columns().fields(),
            duplicate_total().fields(),
        ),
    ]
}
