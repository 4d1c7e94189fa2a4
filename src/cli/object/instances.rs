//! `instances`: the objects of some classes.

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::{Heap, ObjectGraph, Quiet};
use hprof_query::dictionary::names;
use hprof_query::objects::best;
use hprof_query::objects::class_set::ClassSet;
use hprof_query::objects::condition::order::{FieldOrder, NoSortField, SortField, SortValue};
use hprof_query::objects::condition::{Condition, Filter};
use hprof_query::objects::heaps;
use hprof_query::objects::instances::{self, Question, Row, SortBy};
use hprof_query::objects::label::Labels;
use hprof_query::objects::meaning;
use hprof_query::objects::reader::ObjectReader;
use hprof_query::objects::selection::{Selection, What};
use hprof_report::answer::{Answer, Declared, NoRows};
use hprof_report::column::{Align, Column, Columns, Fit};
use hprof_report::number::{grouped, percent};
use hprof_report::value::Value;

use crate::cli::Outcome;
use crate::cli::shared::args::{Input, Output};
use crate::cli::shared::context::RunContext;
use crate::cli::shared::limit::{DEFAULT_TOP_OBJECTS, Top};
use crate::cli::shared::object_columns::{self, Named};
use crate::cli::shared::session::{Rows, Session, Source};
use crate::cli::shared::unreachable::{self, Covers};
use crate::cli::shared::{messages, object};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli instances heap.hprof java.util.HashMap --sort size
  hprof-cli instances heap.hprof 'com.acme.**' --sort shallow --top 50
  hprof-cli instances heap.hprof java.util.AbstractMap --subclasses --where 'size > 10000'
  hprof-cli instances heap.hprof java.lang.Thread --where 'holder.daemon = true'
  hprof-cli instances heap.hprof 'byte[]' --where 'length >= 1048576' --format csv";

/// Characters of a text that rows are sorted by, in a table.
const TABLE_TEXT: usize = 40;

/// What `--sort` means.
#[derive(Debug, Clone)]
enum Order {
    Key(SortBy),
    Field(SortField),
}

/// Reads the value of `--sort`.
fn order(text: &str) -> Result<Order, NoSortField> {
    match text {
        "retained" => Ok(Order::Key(SortBy::Retained)),
        "shallow" => Ok(Order::Key(SortBy::Shallow)),
        "address" => Ok(Order::Key(SortBy::Address)),
        field => field.strip_prefix('.').unwrap_or(field).parse().map(Order::Field),
    }
}

/// List the instances of a class
///
/// Lists instances with their sizes and labels, largest retained size first, including unreachable
/// objects unless --live is given. --where filters by field values: numbers, booleans, chars, strings
/// and null; other objects compare by their label, such as an enum name or a boxed number. Builds the
/// index on first use. For queries over several fields or classes, use `oql`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,

    /// Class, for example `java.util.HashMap$Node`, `byte[]`, `com.acme.**`; or the object ID of a class object or an
    /// instance
    #[arg(value_name = "CLASS", required = true, help_heading = "Filter")]
    classes: Vec<Selection>,

    /// Include instances of subclasses
    #[arg(long, help_heading = "Filter")]
    subclasses: bool,

    /// Only instances whose field meets CONDITION, for example 'size > 100'; repeatable, all must hold
    ///
    /// Operators: = != < <= > >= and ~ (contains). Examples: 'name ~ worker', 'next != null', 'holder.daemon = true',
    /// 'length = 0' (arrays).
    #[arg(long = "where", value_name = "CONDITION", help_heading = "Filter")]
    conditions: Vec<Condition>,

    /// Only reachable objects
    #[arg(long, help_heading = "Filter")]
    live: bool,

    /// Only objects in this heap of an Android dump: `app`, `zygote`, `image` (listed by `info`)
    #[arg(long, value_name = "NAME", help_heading = "Filter")]
    heap: Option<String>,

    /// Sort order: `retained`, `shallow`, `address`, or a field as in --where, for example `size`
    ///
    /// Sizes and numbers sort largest first, then strings and labels alphabetically, then null. Put a dot before a field
    /// with the name of a key: `.shallow`.
    #[arg(long, value_name = "KEY", value_parser = order, default_value = "retained", help_heading = "Output")]
    sort: Order,

    #[command(flatten)]
    top: Top<DEFAULT_TOP_OBJECTS>,

    #[command(flatten)]
    output: Output,
}

/// What is known of an object, and the value that it is sorted by.
fn made(
    graph: &ObjectGraph,
    labels: &Labels<'_>,
    order: Option<&FieldOrder<'_>>,
    object: ObjectIndex,
) -> (Row, Option<SortValue>) {
    (instances::row(graph, labels, object), order.and_then(|order| order.value(object)))
}

/// Result of the query.
struct Found {
    rows: Rows<ObjectIndex, (Row, Option<SortValue>)>,
    /// How many there are without `--top`.
    total: u64,
    /// Selections, by number, that no class matches.
    unmatched: Vec<usize>,
}

pub(crate) fn run(cx: &RunContext, args: &Args) -> anyhow::Result<Outcome> {
    let asked = args.input.settled(cx, &args.classes)?;
    let (session, found) = Session::ask(cx, &args.input, |heap, graph| ask(args, &asked, heap, graph))?;
    let Found { rows, total, unmatched } = found;
    let Session { heap, graph } = &session;
    let bytes = heap.bytes(&Quiet)?;
    let (labels, objects) =
        (Labels::new(heap, graph, bytes), ObjectReader::new(heap.summary(), graph, bytes));
    let order = match &args.sort {
        Order::Field(field) => Some(FieldOrder::new(&objects, &labels, field, &ClassSet::default())?),
        Order::Key(_) => None,
    };
    let sorted_by = order.as_ref().map(FieldOrder::name);
    let lines = rows
        .into_all(|object| made(graph, &labels, order.as_ref(), *object))
        .map(|(row, value)| Line { class: object::class_name(heap.summary(), row.class), row, value });
    let answer = Answer::new(columns(graph.tree.reachable_bytes(), sorted_by), lines)
        .beside(&beside(), &total)
        .matching(total, "objects")
        .without_rows(NoRows::Nothing);
    session.show(cx, "instances", &args.output, answer)?;
    if !args.input.quiet {
        notes(cx, args, &asked, &session, &unmatched, total);
    }
    if args.live {
        unreachable::note(cx, &session, &args.input, Covers::Reachable);
    }
    Ok(session.outcome(total > 0))
}

fn ask(args: &Args, asked: &[Selection], heap: &Heap, graph: &ObjectGraph) -> anyhow::Result<Found> {
    let (summary, bytes) = (heap.summary(), heap.bytes(&Quiet)?);
    let classes = ClassSet::new(summary, graph, asked, args.subclasses);
    let labels = Labels::new(heap, graph, bytes);
    let objects = ObjectReader::new(summary, graph, bytes);
    let of_heap =
        args.heap.as_ref().map(|name| heaps::objects_of(name, summary, graph, bytes)).transpose()?;
    let filter = if (args.conditions.is_empty() && of_heap.is_none()) || classes.is_empty() {
        None
    } else {
        let filter = Filter::new(&objects, &labels, &args.conditions, &classes)?;
        Some(match &of_heap {
            Some(of_heap) => filter.within(of_heap),
            None => filter,
        })
    };
    let order = match &args.sort {
        Order::Field(field) => Some(FieldOrder::new(&objects, &labels, field, &classes)?),
        Order::Key(_) => None,
    };
    let found = if classes.is_empty() {
        best::Found::default()
    } else {
        let question = Question {
            classes: &classes,
            filter: filter.as_ref(),
            live: args.live,
            sort_by: match args.sort {
                Order::Key(key) => key,
                Order::Field(_) => SortBy::default(),
            },
            top: args.top.rows(args.output.format()),
        };
        match &order {
            None => instances::find(graph, &question),
            Some(order) => instances::find_by_field(graph, &question, order),
        }
    };
    let rows = Rows::new(found.objects, |object| made(graph, &labels, order.as_ref(), *object));
    Ok(Found { rows, total: found.total, unmatched: classes.unmatched })
}

/// Says what rows cannot.
fn notes(
    cx: &RunContext,
    args: &Args,
    asked: &[Selection],
    session: &Session,
    unmatched: &[usize],
    total: u64,
) {
    let Session { heap, graph } = session;
    for selection in unmatched.iter().filter_map(|at| asked.get(*at)) {
        match selection.what {
            What::Object(id) => messages::about_no_object(cx, heap.path(), graph, id),
            What::Classes(_) => messages::about_no_class(cx, heap.summary(), selection),
        }
    }
    if total == 0 && unmatched.len() < args.classes.len() {
        let none = match (args.conditions.is_empty() && args.heap.is_none(), args.live) {
            (true, true) => "no reachable object of the class",
            (true, false) => "no object of the class",
            (false, _) => "no object of the class matches",
        };
        let hint = if args.subclasses { "" } else { "; --subclasses includes its subclasses" };
        cx.say("note", &format!("{none}{hint}"));
    }
}

/// A row, and its class.
struct Line<'a> {
    row: Row,
    class: Option<&'a str>,
    value: Option<SortValue>,
}

impl Line<'_> {
    fn sort_value(&self) -> Value<'_> {
        match &self.value {
            None => Value::Null,
            Some(SortValue::Whole(number)) => (*number).into(),
            Some(SortValue::Fraction(number)) => object::double(*number),
            Some(SortValue::Text(text)) => text.into(),
        }
    }

    /// The same in a table, where texts are short.
    fn sort_cell(&self) -> String {
        match &self.value {
            None => String::new(),
            Some(SortValue::Whole(number)) => number.to_string(),
            Some(SortValue::Fraction(number)) => meaning::double(*number),
            Some(SortValue::Text(text)) if text.chars().count() <= TABLE_TEXT => text.clone(),
            Some(SortValue::Text(text)) => text.chars().take(TABLE_TEXT - 1).chain(['…']).collect(),
        }
    }
}

fn named<'r>(line: &'r Line<'_>) -> Named<'r> {
    Named { id: line.row.id, class: line.class, label: line.row.label.as_deref() }
}

fn columns<'a>(whole: u64, sorted_by: Option<&str>) -> Columns<'a, Line<'a>> {
    let [object, class, label] = object_columns::named(named);
    let shallow = object_columns::shallow_bytes(|line: &Line<'a>| line.row.shallow_bytes);
    let retained = object_columns::retained_bytes(|line: &Line<'a>| line.row.retained_bytes);
    let mut columns = vec![
        object.header("id").place(4),
        class,
        label,
        shallow.header("shallow").place(2).fit(Fit::Secondary { priority: 0 }),
        retained
            .or_null("it is unreachable")
            .header("retained")
            .place(0)
            .cell(|line| line.row.retained_bytes.map_or_else(|| "unreachable".to_owned(), grouped)),
        Column::table("%", Align::Right, move |line: &Line<'a>| {
            line.row.retained_bytes.map(|bytes| percent(bytes, whole)).unwrap_or_default()
        })
        .place(1),
        object_columns::described(|line: &Line<'a>| named(line).describe_without_id()),
    ];
    if let Some(field) = sorted_by {
        let value = Column::of(names::SORT_VALUE, |line: &Line<'a>| line.sort_value());
        let value = value
            .or_null("the field is null or contains an object without a label, or there is no such field");
        columns.push(value.header(field.to_owned()).cell(|line| line.sort_cell()).place(3));
    }
    Columns::new(columns)
}

fn beside() -> Columns<'static, u64> {
    Columns::new([Column::of(names::TOTAL.dot(names::OBJECTS), |total: &u64| (*total).into())])
}

pub(crate) fn declared() -> Vec<Declared> {
    vec![Declared {
        command: "instances",
        variant: "",
        about: "A row is an object of the classes.",
        rows: columns(0, Some("")).fields(),
        beside: beside().fields(),
    }]
}
