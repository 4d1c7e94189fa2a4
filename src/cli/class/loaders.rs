//! `loaders`: the class loaders, and classes that several of them define.

use crate::cli::Outcome;
use crate::cli::shared::args::{Input, Output};
use crate::cli::shared::keys::{Key, keys};
use crate::cli::shared::limit::Top;
use crate::cli::shared::messages;
use crate::cli::shared::object;
use crate::cli::shared::session::{Session, Source};
use crate::hprof::ObjectId;
use crate::index::Quiet;
use crate::index::model::summary::Summary;
use crate::index::model::tables::ClassRow;
use crate::query::classes::loaders::{self, Duplicate, Row, SortBy};
use crate::query::objects::label::Labels;
use crate::query::objects::reader::Objects;
use crate::report::answer::{Answer, Declared, NoRows};
use crate::report::column::{Column, Columns, Fit, Kind};
use crate::report::value::{Value, id};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli loaders heap.hprof
  hprof-cli loaders heap.hprof --sort classes --top 0
  hprof-cli loaders heap.hprof --duplicates
  hprof-cli loaders heap.hprof --format json | jq '.rows[] | select(.classes == 0)'";

/// The words of `--sort`.
const SORT: &[Key<SortBy>] = &[
    ("retained", SortBy::Retained, "Those that retain most first"),
    ("classes", SortBy::Classes, "Those that define most classes first"),
    ("instances", SortBy::Instances, "Most instances of their classes first"),
    ("bytes", SortBy::Shallow, "Most bytes in instances of their classes first"),
];

/// The class loaders: what they define, and what would be freed with each
///
/// A loader that retains much and should be gone is a leak of classes: `paths-to-root` says what holds it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,

    /// Classes of the same name that several loaders define, instead of loaders
    #[arg(long, conflicts_with = "sort", help_heading = "Filter")]
    duplicates: bool,

    /// Order of the loaders
    #[arg(long, value_name = "KEY", value_parser = keys(SORT), default_value = "retained", help_heading = "Output")]
    sort: SortBy,

    #[command(flatten)]
    top: Top,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    if args.duplicates { duplicates(args) } else { loaders(args) }
}

fn loaders(args: &Args) -> anyhow::Result<Outcome> {
    let (session, rows) = Session::ask(&args.input, |heap, graph| {
        let (summary, bytes) = (heap.summary(), heap.bytes(&Quiet)?);
        let labels = Labels::new(heap, graph, bytes);
        Ok(loaders::loaders(&Objects::new(summary, graph, bytes), &labels, args.sort))
    })?;
    let lines = rows.iter().map(|row| Line { summary: session.heap.summary(), row });
    let total = rows.len() as u64;
    let answer =
        Answer::new(columns(), lines.take(args.top.rows(args.output.format()).unwrap_or(usize::MAX)))
            .beside(&loader_total(), &total)
            .matching(total, "loaders");
    session.show("loaders", &args.output, answer)?;
    Ok(session.outcome(total > 0))
}

fn duplicates(args: &Args) -> anyhow::Result<Outcome> {
    let (session, rows) = Session::ask(&args.input, |heap, graph| {
        let labels = Labels::new(heap, graph, heap.bytes(&Quiet)?);
        Ok(loaders::duplicates(heap.summary(), graph, &labels))
    })?;
    let lines = rows.iter().map(|row| Line { summary: session.heap.summary(), row });
    let total = rows.len() as u64;
    let top = args.top.rows(args.output.format()).unwrap_or(usize::MAX);
    let answer = Answer::new(duplicate_columns(), lines.take(top))
        .beside(&duplicate_total(), &total)
        .matching(total, "classes")
        .without_rows(NoRows::Nothing);
    session.show("loaders", &args.output, answer)?;
    if total == 0 && !args.input.quiet {
        messages::line("note", "no class was loaded by several loaders");
    }
    Ok(session.outcome(total > 0))
}

/// A row, and what names its classes.
struct Line<'a, R> {
    summary: &'a Summary,
    row: &'a R,
}

/// A loader's object ID; null for the boot loader.
fn loader_id(loader: ObjectId) -> Value<'static> {
    id(loader.non_null())
}

impl<'a> Line<'a, Row> {
    fn class(&self) -> Option<&'a str> {
        if self.row.id.is_null() {
            Some(object::BOOT_LOADER)
        } else {
            object::class_name(self.summary, self.row.class)
        }
    }

    fn parent(&self) -> Value<'static> {
        match self.row.parent {
            None => Value::Null,
            Some(ObjectId::NULL) => object::BOOT_LOADER.into(),
            Some(parent) => Value::Id(parent),
        }
    }

    fn in_table(&self) -> String {
        match (self.row.id.non_null(), self.class()) {
            (Some(_), None) => "not in the dump".to_owned(),
            (_, class) => object::describe_without_id(class, self.row.label.as_deref()),
        }
    }
}

fn columns<'a>() -> Columns<'a, Line<'a, Row>> {
    Columns::new([
        Column::id("object", "the loader", |line: &Line<'a, Row>| loader_id(line.row.id))
            .or_null("it is the boot loader")
            .header("id")
            .place(6),
        Column::text("class", "its class, or `<boot loader>`", |line: &Line<'a, Row>| line.class().into())
            .or_null("it is not in the dump")
            .header("loader")
            .place(7)
            .fit(Fit::Shorten { priority: 0 })
            .cell(Line::in_table),
        Column::text("label", "a few words that tell it from others", |line: &Line<'a, Row>| {
            line.row.label.as_deref().into()
        })
        .or_null("there are none"),
        Column::new(
            "parent",
            Kind::Any,
            "the ID of its parent, or `<boot loader>`",
            |line: &Line<'a, Row>| line.parent(),
        )
        .or_null("not known")
        .header("parent")
        .place(5)
        .fit(Fit::Secondary { priority: 0 }),
        Column::integer("classes", "classes that it defines", |line: &Line<'a, Row>| line.row.classes.into())
            .header("classes")
            .place(2),
        Column::integer("instances", "objects of these", |line: &Line<'a, Row>| line.row.instances.into())
            .header("instances")
            .place(3),
        Column::integer("shallow_bytes", "what those take", |line: &Line<'a, Row>| {
            line.row.shallow_bytes.into()
        })
        .header("shallow")
        .place(4)
        .fit(Fit::Secondary { priority: 1 }),
        Column::integer("retained_bytes", "what the loader object retains", |line: &Line<'a, Row>| {
            line.row.retained_bytes.into()
        })
        .or_null("it is unreachable, or no object")
        .header("retained")
        .place(1),
    ])
}

fn loader_total() -> Columns<'static, u64> {
    total("total.loaders", "loaders, also those that `--top` leaves out")
}

/// How many there are.
fn total(key: &'static str, meaning: &'static str) -> Columns<'static, u64> {
    Columns::new([Column::integer(key, meaning, |total: &u64| (*total).into())])
}

impl<'a> Line<'a, Duplicate> {
    fn class(&self) -> Option<&'a ClassRow> {
        self.summary.class(self.row.class)
    }

    fn loader_in_table(&self) -> String {
        let label = self.row.loader_label.as_ref().map(|label| format!(" \"{label}\"")).unwrap_or_default();
        format!("{}{label}", object::loader_text(self.summary, self.row.loader))
    }
}

fn duplicate_columns<'a>() -> Columns<'a, Line<'a, Duplicate>> {
    Columns::new([
        Column::text("class", "the class's name", |line: &Line<'a, Duplicate>| {
            object::class_name(line.summary, Some(line.row.class)).into()
        })
        .header("class")
        .place(5)
        .fit(Fit::Shorten { priority: 1 }),
        Column::id("class_object", "the class object", |line: &Line<'a, Duplicate>| {
            id(line.class().map(|class| ObjectId::from(class.id)))
        })
        .header("class object")
        .place(3)
        .fit(Fit::Secondary { priority: 1 }),
        Column::text("loader", "the class loader, as in `histo`", |line: &Line<'a, Duplicate>| {
            object::loader_text(line.summary, line.row.loader).into()
        })
        .header("loader")
        .place(4)
        .fit(Fit::Shorten { priority: 0 })
        .cell(Line::loader_in_table),
        Column::id("loader_object", "the class loader's ID", |line: &Line<'a, Duplicate>| {
            loader_id(line.row.loader)
        })
        .or_null("it is the boot loader"),
        Column::text(
            "loader_label",
            "a few words that tell the loader from others",
            |line: &Line<'a, Duplicate>| line.row.loader_label.as_deref().into(),
        )
        .or_null("there are none"),
        Column::integer(
            "loaders",
            "loaders that define a class of this name",
            |line: &Line<'a, Duplicate>| line.row.loaders.into(),
        ),
        Column::integer("instances", "objects of this one", |line: &Line<'a, Duplicate>| {
            line.row.instances.into()
        })
        .header("instances")
        .place(1),
        Column::integer("shallow_bytes", "what those take", |line: &Line<'a, Duplicate>| {
            line.row.shallow_bytes.into()
        })
        .header("shallow")
        .place(2)
        .fit(Fit::Secondary { priority: 0 }),
        Column::integer("retained_bytes", "what the class object retains", |line: &Line<'a, Duplicate>| {
            line.row.retained_bytes.into()
        })
        .or_null("it is unreachable"),
    ])
}

fn duplicate_total() -> Columns<'static, u64> {
    total("total.rows", "rows, also those that `--top` leaves out")
}

pub(crate) fn declared() -> Vec<Declared> {
    let declared =
        |variant, about, rows, beside| Declared { command: "loaders", variant, about, rows, beside };
    vec![
        declared("", "A row is a class loader.", columns().fields(), loader_total().fields()),
        declared(
            "`--duplicates`",
            "A row is a class of a name that several loaders define.",
            duplicate_columns().fields(),
            duplicate_total().fields(),
        ),
    ]
}
