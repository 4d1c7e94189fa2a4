//! `refs`: the references or referrers of an object.

use hprof_index::Dump;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::Summary;
use hprof_query::dominators::class_counts::Counts;
use hprof_query::histogram::HistogramGroupBy;
use hprof_query::naming::suggestions;
use hprof_query::objects::selection::{Selection, SelectionKind};
use hprof_query::paths::steps::{ObjectStep, View};
use hprof_query::refs::{
    ClassCounts, Direction, ReferenceGroupRow, ReferenceLister, ReferenceRow, reachable,
};
use hprof_report::number::format_count;

use crate::cli::prelude::*;
use crate::cli::shared::limit::DEFAULT_TOP_OBJECTS;
use crate::cli::shared::object_columns::{self, NamedObject};
use crate::cli::shared::session::KEPT;
use crate::cli::shared::{object, paths};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli refs heap.hprof 0x7c00012a8
  hprof-cli refs heap.hprof 0x7c00012a8 --incoming
  hprof-cli refs heap.hprof 0x7c00012a8 --incoming --group-by class
  hprof-cli refs heap.hprof com.acme.Registry
  hprof-cli refs heap.hprof 0x7c00012a8 --reachable
  hprof-cli refs heap.hprof 0x7c00012a8 --format json | jq -r '.rows[] | [.reference, .object] | @tsv'";

/// Number of class names listed if several classes match.
const NAMED: usize = 5;

/// Values of `--group-by`.
const GROUP_BY: &[Keyword<HistogramGroupBy>] = &[("class", HistogramGroupBy::Class, "")];

/// List the references or referrers of an object
///
/// Shows each reference with the field or element that contains it. The references of a class object
/// include static fields, superclass and loader; those of a thread include the locals on its stack.
/// References of instances to their class object are counted and not listed; use `instances` to list
/// them. --reachable counts everything that can be reached from the object, by class; what only it keeps
/// alive is its retained set (`retained`). Builds the index on first use.
#[derive(Debug, clap::Args)]
pub(crate) struct RefsArgs {
    #[command(flatten)]
    input: Input,

    /// Object ID, for example `0x7c00012a8`; or a class, for its class object
    #[arg(value_name = "OBJECT|CLASS", help_heading = "Filter")]
    object: Selection,

    /// Show the referrers of the object
    #[arg(long, help_heading = "Filter")]
    incoming: bool,

    /// Show the references of the object (the default)
    #[arg(long, conflicts_with = "incoming", help_heading = "Filter")]
    outgoing: bool,

    /// Count all objects reachable from the object, itself included, by class
    #[arg(long, conflicts_with_all = ["incoming", "outgoing", "group_by"], help_heading = "Filter")]
    reachable: bool,

    /// Group rows by KEY
    #[arg(long, value_name = "KEY", value_parser = keys(GROUP_BY), help_heading = "Output")]
    group_by: Option<HistogramGroupBy>,

    #[command(flatten)]
    top: Top<DEFAULT_TOP_OBJECTS>,

    #[command(flatten)]
    output: Output,
}

impl RefsArgs {
    fn direction(&self) -> Direction {
        if self.incoming { Direction::Incoming } else { Direction::Outgoing }
    }

    fn max_rows(&self) -> usize {
        self.top.rows(self.output.format()).unwrap_or(usize::MAX)
    }
}

/// Object selected by the argument.
enum RefsTarget {
    Object(ObjectIndex),
    /// No object; the text describes similar ones.
    None(String),
}

/// Result of the query: rows, and facts about the object.
struct RefsResult {
    target: RefsTarget,
    /// Number of rows, including those omitted by `--top`.
    total: u64,
    /// The first rows.
    rows: Vec<ReferenceRow>,
    groups: Vec<ReferenceGroupRow>,
    /// Objects reachable from the object, by class, if requested.
    reachable: Option<Vec<ClassCounts>>,
    /// Description of the GC root, if the object is a root.
    root: Option<String>,
    /// Number of instances, if the object is a class object: they reference it as their class.
    instances: Option<u64>,
}

pub(crate) fn run(cx: &RunContext, args: &RefsArgs) -> anyhow::Result<Outcome> {
    let asked = args.input.resolve_selections(cx, std::slice::from_ref(&args.object))?;
    let (session, mut found) = Session::ask(cx, &args.input, |dump| ask(args, &asked, dump))?;
    let object = match &found.target {
        RefsTarget::Object(object) => *object,
        RefsTarget::None(text) => {
            cx.emit("error", text);
            if args.group_by.is_some() {
                nothing(cx, args, &session, groups())?;
            } else if args.reachable {
                nothing(cx, args, &session, reachable_classes())?;
            } else {
                nothing(cx, args, &session, rows())?;
            }
            return Ok(session.outcome(false));
        }
    };
    let view = View::new(&session.dump()?);
    let first = std::mem::take(&mut found.rows);
    let about = RefsSummary { of: view.step(object, None), direction: args.direction(), found: &found };
    if let Some(classes) = &found.reachable {
        let summary = session.heap.summary();
        let shown = classes.iter().take(args.max_rows());
        let shown =
            shown.map(|row| ReachableLine { row, class: object::class_name(summary, Some(row.class)) });
        let answer = Answer::new(reachable_classes(), shown).matching(found.total, "classes");
        show(cx, args, &session, answer, &about)?;
    } else if args.group_by.is_some() {
        let summary = session.heap.summary();
        let shown = found.groups.iter().take(args.max_rows());
        let shown = shown.map(|row| RefsGroupLine { row, class: object::class_name(summary, row.class) });
        show(cx, args, &session, Answer::new(groups(), shown).matching(found.total, "classes"), &about)?;
    } else {
        let refs = ReferenceLister::new(&view);
        // Evaluation continues where the first rows ended.
        let made = first.len();
        let rest = (made == KEPT).then(|| refs.rows(object, args.direction()).skip(made));
        let shown = first.into_iter().chain(rest.into_iter().flatten()).take(args.max_rows());
        show(cx, args, &session, Answer::new(rows(), shown).matching(found.total, "references"), &about)?;
    }
    Ok(session.outcome(found.total > 0))
}

fn ask(args: &RefsArgs, asked: &[Selection], dump: &Dump<'_>) -> anyhow::Result<RefsResult> {
    let mut found = RefsResult {
        target: target(asked.first().unwrap_or(&args.object), dump),
        total: 0,
        rows: Vec::new(),
        groups: Vec::new(),
        reachable: None,
        root: None,
        instances: None,
    };
    let RefsTarget::Object(object) = found.target else { return Ok(found) };
    let view = View::new(dump);
    let refs = ReferenceLister::new(&view);
    let direction = args.direction();
    if args.reachable {
        let rows = reachable(dump.graph, dump.summary.classes().len(), object);
        found.total = rows.len() as u64;
        found.reachable = Some(rows);
    } else if args.group_by.is_some() {
        found.groups = refs.groups(object, direction);
        found.total = found.groups.len() as u64;
    } else {
        found.total = refs.count(object, direction);
        found.rows = refs.rows(object, direction).take(args.max_rows().min(KEPT)).collect();
    }
    if args.incoming {
        found.instances = refs.instance_count(object);
        let is_root = view.edges.roots.contains(object);
        found.root = is_root.then(|| paths::describe_root(&view.root(object)));
    }
    Ok(found)
}

/// Finds the object that the argument selects.
fn target(object: &Selection, dump: &Dump<'_>) -> RefsTarget {
    let (summary, text) = (dump.summary, &object.text);
    match &object.what {
        SelectionKind::Object(id) => match dump.graph.objects.addresses.index_of(*id) {
            Some(object) => RefsTarget::Object(object),
            None => RefsTarget::None(object::not_found(
                *id,
                dump.heap.path(),
                &suggestions::object_ids(dump.graph, *id),
            )),
        },
        SelectionKind::Classes(pattern) => {
            let matching =
                summary.numbered_classes().filter(|(_, class)| pattern.matches(summary.class_name(class)));
            let mut found: Vec<(ObjectIndex, &str)> = matching
                .filter_map(|(number, class)| {
                    Some((dump.graph.class_object(number)?, summary.class_name(class)))
                })
                .collect();
            // `HashMap` is java.util.HashMap, even if a nested class has that name.
            if found.iter().any(|(_, name)| pattern.matches_as_written(name)) {
                found.retain(|(_, name)| pattern.matches_as_written(name));
            }
            match found.as_slice() {
                [(object, _)] => RefsTarget::Object(*object),
                [] => RefsTarget::None(no_class(summary, text)),
                several => {
                    let named = several.iter().take(NAMED).map(|(object, name)| {
                        format!(
                            "{name} {:#x}",
                            dump.graph.objects.addresses.id_of(*object).unwrap_or_default()
                        )
                    });
                    let named: Vec<String> = named.collect();
                    let more = if several.len() > NAMED { ", …" } else { "" };
                    RefsTarget::None(format!(
                        "{} classes match {text}: name one, or the ID of its class object: {}{more}",
                        group_digits(several.len() as u64),
                        named.join(", ")
                    ))
                }
            }
        }
    }
}

fn no_class(summary: &Summary, text: &str) -> String {
    let like = suggestions::class_names(summary, text);
    let hint =
        if like.is_empty() { String::new() } else { format!("; {}", suggestions::did_you_mean(&like)) };
    format!("no class object in the dump matches {text}; object IDs look like 0x7c00012a8{hint}")
}

/// Shows a result without rows if the object was not found.
fn nothing<R>(
    cx: &RunContext,
    args: &RefsArgs,
    session: &Session,
    columns: Columns<'_, R>,
) -> anyhow::Result<u64> {
    let answer = Answer::new(columns, None)
        .with_summary(&Columns::new([object_column()]), &None)
        .if_empty(NoRows::Nothing);
    session.show(cx, "refs", &args.output, answer)
}

/// Shows rows or groups, and facts about the object.
fn show<R>(
    cx: &RunContext,
    args: &RefsArgs,
    session: &Session,
    answer: Answer<'_, R>,
    about: &RefsSummary<'_>,
) -> anyhow::Result<u64> {
    let of = paths::named_object(&about.of).describe();
    let what = match about.reachable() {
        None if args.incoming => format!("references to {of}"),
        None => format!("references of {of}"),
        Some(counts) => format!(
            "reachable from {of}: {}, {}",
            format_count(counts.objects, "object"),
            human_bytes(counts.shallow_bytes)
        ),
    };
    let mut answer = answer
        .with_summary(&summary_columns(), &Some(about))
        .with_section_above(Section::Line(what))
        .if_empty(NoRows::Line("none".into()));
    if let Some(root) = &about.found.root {
        answer = answer.with_section_below(Section::Line(format!("it is a root: {root}")));
    }
    if let Some(instances) = about.found.instances.filter(|instances| *instances > 0) {
        let instances = group_digits(instances);
        answer = answer.with_section_below(Section::Line(format!(
            "{instances} more objects refer to it as their class"
        )));
    }
    session.show(cx, "refs", &args.output, answer)
}

/// Source of the JSON keys in addition to the rows.
struct RefsSummary<'a> {
    of: ObjectStep,
    direction: Direction,
    found: &'a RefsResult,
}

impl RefsSummary<'_> {
    /// Returns the number and size of the reachable objects, if requested.
    fn reachable(&self) -> Option<Counts> {
        let rows = self.found.reachable.as_ref()?;
        Some(rows.iter().fold(Counts::default(), |sum, row| Counts {
            objects: sum.objects + row.counts.objects,
            shallow_bytes: sum.shallow_bytes.saturating_add(row.counts.shallow_bytes),
        }))
    }
}

/// Returns the column of the object itself.
fn object_column<'a>() -> Column<'a, Option<&'a RefsSummary<'a>>> {
    let columns = Columns::new(object_columns::identity_columns(paths::named_object));
    Column::with_fields(names::OF, columns.fields(), move |about: &Option<&RefsSummary<'a>>| {
        about.map(|about| columns.record(&about.of)).unwrap_or_default()
    })
    .or_null("no object was found: then there are no keys other than `rows`")
}

fn summary_columns<'a>() -> Columns<'a, Option<&'a RefsSummary<'a>>> {
    Columns::new([
        object_column(),
        Column::new(names::DIRECTION, |about: &Option<&RefsSummary<'a>>| {
            about
                .map(|about| match about.direction {
                    Direction::Incoming => "incoming",
                    Direction::Outgoing => "outgoing",
                })
                .into()
        }),
        Column::new(names::TOTAL.dot(names::ROWS), |about: &Option<&RefsSummary<'a>>| {
            about.map(|about| about.found.total).into()
        }),
        Column::new(names::ROOT_TEXT, |about: &Option<&RefsSummary<'a>>| {
            about.and_then(|about| about.found.root.as_deref()).into()
        })
        .or_null("not a root, or without `--incoming`"),
        Column::new(names::INSTANCES_OF_CLASS, |about: &Option<&RefsSummary<'a>>| {
            about.and_then(|about| about.found.instances).into()
        })
        .or_null("not a class object, or without `--incoming`"),
        Column::new(names::REACHABLE_OBJECTS, |about: &Option<&RefsSummary<'a>>| {
            about.and_then(|about| Some(about.reachable()?.objects)).into()
        })
        .or_null("without `--reachable`"),
        Column::new(names::REACHABLE_BYTES, |about: &Option<&RefsSummary<'a>>| {
            about.and_then(|about| Some(about.reachable()?.shallow_bytes)).into()
        })
        .or_null("without `--reachable`"),
    ])
}

fn rows<'a>() -> Columns<'a, ReferenceRow> {
    let [object, class, label] = object_columns::identity_columns(named_object);
    let shallow = object_columns::shallow_bytes(|row: &ReferenceRow| row.shallow_bytes);
    let retained = object_columns::retained_bytes(|row: &ReferenceRow| row.retained_bytes);
    let columns = Columns::new([
        object,
        class.or_null("the dump does not contain the object or its class name"),
        label,
        Column::new(names::REFERENCE, |row: &ReferenceRow| row.reference.as_deref().into())
            .or_null(nulls::UNSTATED),
        Column::new(names::IS_STATIC, |row: &ReferenceRow| row.is_static.into()),
        Column::new(names::STRENGTH, |row: &ReferenceRow| row.strength.name().into()),
        shallow.or_null("the object is not in the dump"),
        retained.or_null("it is unreachable, or not in the dump"),
    ]);
    columns.table([
        TableColumn::new(names::RETAINED_BYTES, "retained"),
        TableColumn::new(names::SHALLOW_BYTES, "shallow").fit(Fit::Secondary { priority: 0 }),
        TableColumn::new(names::REFERENCE, "field").fit(Fit::Shorten { priority: 1 }).cell(
            |row: &ReferenceRow| {
                let reference = row.reference.as_deref().unwrap_or_default();
                paths::describe_reference(Some(reference), row.is_static, row.strength)
            },
        ),
        TableColumn::new(names::OBJECT, "id"),
        object_columns::description(|row: &ReferenceRow| match row.shallow_bytes {
            None => "not in the dump".to_owned(),
            Some(_) => named_object(row).describe_without_id(),
        }),
    ])
}

fn named_object(row: &ReferenceRow) -> NamedObject<'_> {
    NamedObject { id: row.id, class: row.class.as_deref(), label: row.label.as_deref() }
}

/// A group of references with the same class, and the class name.
struct RefsGroupLine<'a> {
    row: &'a ReferenceGroupRow,
    class: Option<&'a str>,
}

fn groups<'a>() -> Columns<'a, RefsGroupLine<'a>> {
    let columns = Columns::new([
        Column::new(names::CLASS, |group: &RefsGroupLine<'a>| group.class.into())
            .or_null(nulls::CLASS_MISSING),
        Column::new(names::OBJECTS, |group: &RefsGroupLine<'a>| group.row.objects.into()),
        Column::new(names::SHALLOW_BYTES, |group: &RefsGroupLine<'a>| group.row.shallow_bytes.into()),
        Column::new(names::RETAINED_BYTES, |group: &RefsGroupLine<'a>| group.row.retained_bytes.into()),
    ]);
    columns.table([
        TableColumn::new(names::RETAINED_BYTES, "retained"),
        TableColumn::new(names::SHALLOW_BYTES, "shallow").fit(Fit::Secondary { priority: 0 }),
        TableColumn::new(names::OBJECTS, "objects"),
        TableColumn::new(names::CLASS, "class")
            .fit(Fit::Shorten { priority: 0 })
            .cell(|group: &RefsGroupLine<'a>| group.class.unwrap_or("<unknown class>").to_owned()),
    ])
}

/// Reachable objects of a class, and the class name.
struct ReachableLine<'a> {
    row: &'a ClassCounts,
    class: Option<&'a str>,
}

fn reachable_classes<'a>() -> Columns<'a, ReachableLine<'a>> {
    let columns = Columns::new([
        Column::new(names::CLASS, |line: &ReachableLine<'a>| line.class.into()).or_null(nulls::CLASS_MISSING),
        Column::new(names::OBJECTS, |line: &ReachableLine<'a>| line.row.counts.objects.into()),
        Column::new(names::SHALLOW_BYTES, |line: &ReachableLine<'a>| line.row.counts.shallow_bytes.into()),
    ]);
    columns.table([
        TableColumn::new(names::SHALLOW_BYTES, "shallow"),
        TableColumn::new(names::OBJECTS, "objects"),
        TableColumn::new(names::CLASS, "class")
            .fit(Fit::Shorten { priority: 0 })
            .cell(|line: &ReachableLine<'a>| line.class.unwrap_or("<unknown class>").to_owned()),
    ])
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    let schema = |variant, about, rows| ResultSchema {
        command: "refs",
        variant,
        about,
        rows,
        summary: summary_columns().fields(),
    };
    vec![
        schema(
            "",
            "A row is a reference and the object at its other end: outgoing references in the order of the object's \
             record, incoming ones by object ID.",
            rows().fields(),
        ),
        schema(
            "`--group-by class`",
            "A row is a class of such objects, most retained bytes first.",
            groups().fields(),
        ),
        schema(
            "`--reachable`",
            "A row is a class of the objects reachable from the object, most bytes first.",
            reachable_classes().fields(),
        ),
    ]
}
