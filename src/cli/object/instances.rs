//! `instances`: the instances of given classes.

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::{Dump, ObjectGraph};
use hprof_query::objects::best;
use hprof_query::objects::class_set::ClassSet;
use hprof_query::objects::condition::order::{FieldOrder, NoSortField, SortField, SortValue};
use hprof_query::objects::condition::{Condition, Filter};
use hprof_query::objects::heaps;
use hprof_query::objects::instances::{self, InstanceOrder, InstanceQuery, InstanceRow};
use hprof_query::objects::label::Labels;
use hprof_query::objects::meaning;
use hprof_query::objects::selection::{Selection, SelectionKind};

use crate::cli::prelude::*;
use crate::cli::shared::limit::DEFAULT_TOP_OBJECTS;
use crate::cli::shared::object_columns::{self, NamedObject};
use crate::cli::shared::session::LazyRows;
use crate::cli::shared::unreachable::{self, ReachableScope};
use crate::cli::shared::{messages, object};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli instances heap.hprof java.util.HashMap --sort size
  hprof-cli instances heap.hprof 'com.acme.**' --sort shallow --top 50
  hprof-cli instances heap.hprof java.util.AbstractMap --subclasses --where 'size > 10000'
  hprof-cli instances heap.hprof java.lang.Thread --where 'holder.daemon = true'
  hprof-cli instances heap.hprof 'byte[]' --where 'length >= 1048576' --format csv";

/// Maximum number of characters of a sort text in a table.
const TABLE_TEXT: usize = 40;

/// Value of `--sort`: an order, or the name of a field.
#[derive(Debug, Clone)]
enum SortWord {
    Key(InstanceOrder),
    Field(SortField),
}

/// Parses the value of `--sort`.
fn order(text: &str) -> Result<SortWord, NoSortField> {
    match text {
        "retained" => Ok(SortWord::Key(InstanceOrder::Retained)),
        "shallow" => Ok(SortWord::Key(InstanceOrder::Shallow)),
        "address" => Ok(SortWord::Key(InstanceOrder::Address)),
        field => field.strip_prefix('.').unwrap_or(field).parse().map(SortWord::Field),
    }
}

/// List the instances of a class
///
/// Lists instances with their sizes and labels, largest retained size first, including unreachable
/// objects unless --live is given. --where filters by field values: numbers, booleans, chars, strings
/// and null; other objects compare by their label, such as an enum name or a boxed number. Builds the
/// index on first use. For queries over several fields or classes, use `oql`.
#[derive(Debug, clap::Args)]
pub(crate) struct InstancesArgs {
    #[command(flatten)]
    input: Input,

    /// Class, for example `java.util.HashMap$Node`, `byte[]`, `com.acme.**`; or the object ID of a class object or an
    /// instance
    #[arg(value_name = "CLASS", required = true, help_heading = "Filter")]
    classes: Vec<Selection>,

    /// Include instances of subclasses
    #[arg(long, help_heading = "Filter")]
    subclasses: bool,

    /// Only instances that meet CONDITION, for example 'size > 100'; if repeated, all must hold
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
    /// Sizes and numbers sort largest first, then strings and labels alphabetically, then null. If a field is named
    /// like a key, put a dot before it: `.shallow`.
    #[arg(long, value_name = "KEY", value_parser = order, default_value = "retained", help_heading = "Output")]
    sort: SortWord,

    #[command(flatten)]
    top: Top<DEFAULT_TOP_OBJECTS>,

    #[command(flatten)]
    output: Output,
}

/// Creates a row from an object and the value by which it is sorted.
fn sortable_row(
    graph: &ObjectGraph,
    labels: &Labels<'_>,
    order: Option<&FieldOrder<'_>>,
    object: ObjectIndex,
) -> (InstanceRow, Option<SortValue>) {
    (instances::row(graph, labels, object), order.and_then(|order| order.value(object)))
}

/// Result of the query: rows, and counts.
struct InstancesResult {
    rows: LazyRows<ObjectIndex, (InstanceRow, Option<SortValue>)>,
    /// Number of matching objects, regardless of `--top`.
    total: u64,
    /// Indices of the selections that match no class.
    unmatched: Vec<usize>,
}

pub(crate) fn run(cx: &RunContext, args: &InstancesArgs) -> anyhow::Result<Outcome> {
    let asked = args.input.resolve_selections(cx, &args.classes)?;
    let (session, found) = Session::ask(cx, &args.input, |dump| ask(args, &asked, dump))?;
    let InstancesResult { rows, total, unmatched } = found;
    let Session { heap, graph } = &session;
    let dump = session.dump()?;
    let labels = Labels::new(&dump);
    let order = match &args.sort {
        SortWord::Field(field) => Some(FieldOrder::new(&dump.objects, &labels, field, &ClassSet::default())?),
        SortWord::Key(_) => None,
    };
    let sorted_by = order.as_ref().map(FieldOrder::name);
    let lines = rows.into_all(
        |object| sortable_row(graph, &labels, order.as_ref(), *object),
        |_, (row, value)| {
            Some(InstanceLine { class: object::class_name(heap.summary(), row.class), row, value })
        },
    );
    let answer = Answer::new(columns(graph.tree.reachable_bytes(), sorted_by), lines)
        .with_summary(&summary_columns(), &total)
        .matching(total, "objects")
        .if_empty(NoRows::Nothing);
    session.show(cx, "instances", &args.output, answer)?;
    if !args.input.quiet {
        notes(cx, args, &asked, &session, &unmatched, total);
    }
    if args.live {
        unreachable::note(cx, &session, &args.input, ReachableScope::Reachable);
    }
    Ok(session.outcome(total > 0))
}

fn ask(args: &InstancesArgs, asked: &[Selection], dump: &Dump<'_>) -> anyhow::Result<InstancesResult> {
    let classes = ClassSet::new(dump, asked, args.subclasses);
    let labels = Labels::new(dump);
    let objects = dump.objects;
    let of_heap = args.heap.as_ref().map(|name| heaps::objects_of(name, dump)).transpose()?;
    let filter = if (args.conditions.is_empty() && of_heap.is_none()) || classes.is_empty() {
        None
    } else {
        let filter = Filter::new(&objects, &labels, &args.conditions, &classes)?;
        Some(match &of_heap {
            Some(of_heap) => filter.restrict_to(of_heap),
            None => filter,
        })
    };
    let order = match &args.sort {
        SortWord::Field(field) => Some(FieldOrder::new(&objects, &labels, field, &classes)?),
        SortWord::Key(_) => None,
    };
    let found = if classes.is_empty() {
        best::BestObjects::default()
    } else {
        let question = InstanceQuery {
            classes: &classes,
            filter: filter.as_ref(),
            live: args.live,
            sort_by: match args.sort {
                SortWord::Key(key) => key,
                SortWord::Field(_) => InstanceOrder::default(),
            },
            top: args.top.rows(args.output.format()),
        };
        match &order {
            None => instances::find(dump.graph, &question),
            Some(order) => instances::find_by_field(dump.graph, &question, order),
        }
    };
    let rows =
        LazyRows::new(found.objects, |object| sortable_row(dump.graph, &labels, order.as_ref(), *object));
    Ok(InstancesResult { rows, total: found.total, unmatched: classes.unmatched })
}

/// Prints notes about what the rows cannot show, such as selections without a match.
fn notes(
    cx: &RunContext,
    args: &InstancesArgs,
    asked: &[Selection],
    session: &Session,
    unmatched: &[usize],
    total: u64,
) {
    let Session { heap, graph } = session;
    for selection in unmatched.iter().filter_map(|at| asked.get(*at)) {
        match selection.what {
            SelectionKind::Object(id) => messages::about_no_object(cx, heap.path(), graph, id),
            SelectionKind::Classes(_) => messages::about_no_class(cx, heap.summary(), selection),
        }
    }
    if total == 0 && unmatched.len() < args.classes.len() {
        let none = match (args.conditions.is_empty() && args.heap.is_none(), args.live) {
            (true, true) => "no reachable object of the class",
            (true, false) => "no object of the class",
            (false, _) => "no object of the class matches",
        };
        let hint = if args.subclasses { "" } else { "; --subclasses includes its subclasses" };
        cx.emit("note", &format!("{none}{hint}"));
    }
}

/// A row, and the name of its class.
struct InstanceLine<'a> {
    row: InstanceRow,
    class: Option<&'a str>,
    value: Option<SortValue>,
}

impl InstanceLine<'_> {
    fn sort_value(&self) -> Value<'_> {
        match &self.value {
            None => Value::Null,
            Some(SortValue::Whole(number)) => (*number).into(),
            Some(SortValue::Fraction(number)) => object::double(*number),
            Some(SortValue::Text(text)) => text.into(),
        }
    }

    /// Returns the sort value for a table, where texts are shortened.
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

fn named_object<'r>(line: &'r InstanceLine<'_>) -> NamedObject<'r> {
    NamedObject { id: line.row.id, class: line.class, label: line.row.label.as_deref() }
}

fn columns<'a>(whole: u64, sorted_by: Option<&str>) -> Columns<'a, InstanceLine<'a>> {
    let [object, class, label] = object_columns::identity_columns(named_object);
    let shallow = object_columns::shallow_bytes(|line: &InstanceLine<'a>| line.row.shallow_bytes);
    let retained = object_columns::retained_bytes(|line: &InstanceLine<'a>| line.row.retained_bytes);
    let mut columns = vec![object, class, label, shallow, retained.or_null(nulls::UNREACHABLE)];
    let mut shown = vec![
        TableColumn::new(names::RETAINED_BYTES, "retained").cell(|line: &InstanceLine<'a>| {
            line.row.retained_bytes.map_or_else(|| "unreachable".to_owned(), group_digits)
        }),
        TableColumn::table_only("%", Align::Right, move |line: &InstanceLine<'a>| {
            line.row.retained_bytes.map(|bytes| percent(bytes, whole)).unwrap_or_default()
        }),
        TableColumn::new(names::SHALLOW_BYTES, "shallow").fit(Fit::Secondary { priority: 0 }),
    ];
    if let Some(field) = sorted_by {
        let value = Column::new(names::SORT_VALUE, |line: &InstanceLine<'a>| line.sort_value());
        columns.push(
            value.or_null(
                "the field is null or contains an object without a label, or there is no such field",
            ),
        );
        let shown_value = TableColumn::new(names::SORT_VALUE, field.to_owned());
        shown.push(shown_value.cell(|line: &InstanceLine<'a>| line.sort_cell()));
    }
    shown.extend([
        TableColumn::new(names::OBJECT, "id"),
        object_columns::description(|line: &InstanceLine<'a>| named_object(line).describe_without_id()),
    ]);
    Columns::new(columns).table(shown)
}

fn summary_columns() -> Columns<'static, u64> {
    Columns::new([Column::new(names::TOTAL.dot(names::OBJECTS), |total: &u64| (*total).into())])
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    vec![ResultSchema {
        command: "instances",
        variant: "",
        about: "A row is an object of the classes.",
        rows: columns(0, Some("")).fields(),
        summary: summary_columns().fields(),
    }]
}
