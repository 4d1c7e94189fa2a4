//! `classes`: the classes of a dump and their hierarchy.

use crate::cli::prelude::*;
use crate::cli::shared::limit::DEFAULT_TOP_OBJECTS;
use crate::cli::shared::messages;
use crate::cli::shared::object;
use hprof_index::Heap;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_query::histogram::hierarchy::{self, ClassOrder, HierarchyQuery, HierarchyRow};
use hprof_query::naming::pattern::ClassPattern;
use hprof_query::objects::class_set::ClassSet;
use hprof_query::objects::selection::{Selection, SelectionKind};
use hprof_report::tree::{self, Branch};
use hprof_report::value::id;
use hprof_values::ObjectId;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli classes heap.hprof
  hprof-cli classes heap.hprof 'com.acme.**' --sort class
  hprof-cli classes heap.hprof --tree --depth 3
  hprof-cli classes heap.hprof java.util.AbstractMap --tree
  hprof-cli classes heap.hprof --format json | jq '.rows[] | select(.subclasses > 10) | .class'";

/// Values of `--sort`.
const SORT: &[Keyword<ClassOrder>] = &[
    ("instances", ClassOrder::Instances, "Most instances first"),
    ("total", ClassOrder::Total, "Most instances first, including those of subclasses"),
    ("bytes", ClassOrder::Shallow, "Most bytes first"),
    ("subclasses", ClassOrder::Subclasses, "Most direct subclasses first"),
    ("class", ClassOrder::Name, "By class name"),
];

/// Default depth of the tree in a table.
const DEFAULT_DEPTH: u32 = 2;

/// List the classes, or show the class hierarchy
///
/// Lists all loaded classes with their superclass and loader, including classes without instances.
/// Sizes are shallow sizes, as in `histo`.
#[derive(Debug, clap::Args)]
pub(crate) struct ClassesArgs {
    #[command(flatten)]
    input: Input,

    /// Only classes that match PATTERN, for example `byte[]`, `com.acme.**`; an object ID selects the object's class,
    /// or the class that a class object represents. With --tree, these are the roots of the tree
    #[arg(value_name = "PATTERN", help_heading = "Filter")]
    patterns: Vec<Selection>,

    /// Show the class hierarchy below java.lang.Object, subclasses with the most instances first
    #[arg(long, conflicts_with = "sort", help_heading = "Output")]
    tree: bool,

    /// Maximum depth of the tree; 0 for all [default: 2 in a table, all in JSON and CSV]
    #[arg(long, value_name = "N", requires = "tree", help_heading = "Output")]
    depth: Option<u32>,

    /// Sort order
    #[arg(long, value_name = "KEY", value_parser = keys(SORT), default_value = "instances", help_heading = "Output")]
    sort: ClassOrder,

    // With --tree, this limits the subclasses of each class.
    #[command(flatten)]
    top: Top<DEFAULT_TOP_OBJECTS>,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(cx: &RunContext, args: &ClassesArgs) -> anyhow::Result<Outcome> {
    let asked = args.input.resolve_selections(cx, &args.patterns)?;
    let patterns = asked.iter().filter_map(|selection| match &selection.what {
        SelectionKind::Classes(pattern) => Some(pattern.clone()),
        SelectionKind::Object(_) => None,
    });
    let patterns: Vec<ClassPattern> = patterns.collect();
    // Class names are known without the object graph.
    if patterns.len() == asked.len() {
        let heap = args.input.open(cx)?;
        return show(cx, args, &heap, &heap, patterns, None);
    }
    let ids: Vec<Selection> =
        asked.into_iter().filter(|selection| matches!(selection.what, SelectionKind::Object(_))).collect();
    let (session, classes) =
        Session::ask_graph(cx, &args.input, |dump| Ok(ClassSet::new(dump, &ids, false)))?;
    let outcome = show(cx, args, &session, &session.heap, patterns, Some(classes.classes().collect()))?;
    let unmatched = classes.unmatched.iter().filter_map(|at| ids.get(*at));
    for selection in unmatched.filter(|_| !args.input.quiet) {
        if let SelectionKind::Object(id) = selection.what {
            messages::about_no_object(cx, session.heap.path(), &session.graph, id);
        }
    }
    Ok(outcome)
}

/// Shows the classes that match the patterns, including those `named` by ID.
fn show(
    cx: &RunContext,
    args: &ClassesArgs,
    source: &impl AnswerSource,
    heap: &Heap,
    patterns: Vec<ClassPattern>,
    named: Option<Vec<ClassNumber>>,
) -> anyhow::Result<Outcome> {
    let format = args.output.format();
    let question = HierarchyQuery {
        patterns,
        named,
        sort_by: args.sort,
        top: args.top.rows(format),
        levels: match (args.depth, format) {
            (Some(0), _) | (None, Format::Json | Format::Csv) => None,
            (None, Format::Table) => Some(DEFAULT_DEPTH),
            (levels, _) => levels,
        },
    };
    let summary = heap.summary();
    let found =
        if args.tree { hierarchy::tree(summary, &question) } else { hierarchy::list(summary, &question) };
    let depths: Vec<u32> = found.rows.iter().map(|row| row.depth).collect();
    let lines = (found.rows.iter()).zip(tree::branches(&depths)).zip(tree::children(&depths));
    let lines = lines.map(|((row, branch), below)| ClassLine { summary, row, branch, below });
    let answer = Answer::new(columns(args.tree), lines)
        .with_summary(&summary_columns(), &found.total)
        .if_empty(NoRows::Nothing);
    let shown = found.rows.len() as u64;
    let answer = answer.matching(found.total, "classes");
    let answer = if args.tree { answer.all_by("--depth 0 --top 0") } else { answer };
    source.show(cx, "classes", &args.output, answer)?;
    if !args.input.quiet {
        note(cx, heap, &question, found.total);
    }
    Ok(source.outcome(shown > 0))
}

/// Prints a note for each pattern without a match.
fn note(cx: &RunContext, heap: &Heap, question: &HierarchyQuery, found: u64) {
    let summary = heap.summary();
    let names = || summary.classes().iter().map(|class| summary.class_name(class));
    let unmatched = messages::about_patterns(
        cx,
        &question.patterns,
        "classes takes one dump, then class patterns",
        names,
    );
    if found == 0 && unmatched == 0 && question.named.is_none() {
        cx.emit("note", &format!("no class of {} matches", heap.path().display()));
    }
}

/// A class and its position in the tree.
struct ClassLine<'a> {
    summary: &'a Summary,
    row: &'a HierarchyRow,
    /// Lines of the tree drawn before the name.
    branch: Branch,
    /// Number of subclasses that are shown below the class.
    below: u64,
}

impl ClassLine<'_> {
    fn name(&self) -> Option<&str> {
        object::class_name(self.summary, Some(self.row.class))
    }

    /// Returns the name of the superclass, if any.
    fn superclass(&self) -> Option<&str> {
        let above = self.summary.class_table().superclass(self.row.class)?;
        object::class_name(self.summary, Some(above))
    }

    /// Returns the class loader; `None` if the class is not in the dump.
    fn loader(&self) -> Option<String> {
        let class = self.summary.class(self.row.class).filter(|class| class.is_dumped())?;
        Some(object::loader_text(self.summary, class.loader.into()))
    }

    fn class_object(&self) -> Option<ObjectId> {
        self.summary.class(self.row.class)?.class_object()
    }

    fn in_list(&self) -> String {
        let name = self.name().unwrap_or_default();
        self.superclass().map_or_else(|| name.to_owned(), |above| format!("{name} extends {above}"))
    }

    fn in_tree(&self) -> String {
        let (name, subclasses) = (self.name().unwrap_or_default(), self.row.subclasses);
        if self.below >= subclasses {
            return name.to_owned();
        }
        let what = if subclasses == 1 { "subclass" } else { "subclasses" };
        let of = if self.below == 0 { String::new() } else { format!("{} of ", self.below) };
        format!("{name} ({of}{} {what})", group_digits(subclasses))
    }
}

fn columns<'a>(is_tree: bool) -> Columns<'a, ClassLine<'a>> {
    let mut columns = vec![
        Column::new(names::CLASS, |line: &ClassLine<'a>| line.name().into()),
        Column::new(names::LOADER, |line: &ClassLine<'a>| line.loader().into())
            .or_null(nulls::NO_CLASS_OBJECT),
        Column::new(names::SUPERCLASS, |line: &ClassLine<'a>| line.superclass().into())
            .or_null("it has no superclass"),
        Column::new(names::CLASS_OBJECT, |line: &ClassLine<'a>| id(line.class_object()))
            .or_null(nulls::NO_CLASS_OBJECT),
        Column::new(names::INSTANCES, |line: &ClassLine<'a>| line.row.instances.into()),
        Column::new(names::SHALLOW_BYTES, |line: &ClassLine<'a>| line.row.shallow_bytes.into()),
        Column::new(names::SUBCLASSES, |line: &ClassLine<'a>| line.row.subclasses.into()),
        Column::new(names::TOTAL_INSTANCES, |line: &ClassLine<'a>| line.row.total_instances.into()),
        Column::new(names::TOTAL_SHALLOW_BYTES, |line: &ClassLine<'a>| line.row.total_shallow_bytes.into()),
    ];
    if is_tree {
        columns.push(Column::new(names::DEPTH, |line: &ClassLine<'a>| line.row.depth.into()));
    }
    Columns::new(columns).table(if is_tree { tree_in_table() } else { list_in_table() })
}

fn tree_in_table<'a>() -> Vec<TableColumn<'a, ClassLine<'a>>> {
    vec![
        TableColumn::new(names::TOTAL_INSTANCES, "with subclasses").fit(Fit::Secondary { priority: 0 }),
        TableColumn::new(names::TOTAL_SHALLOW_BYTES, "shallow"),
        TableColumn::new(names::INSTANCES, "instances"),
        TableColumn::new(names::CLASS, "class")
            .tree(|line: &ClassLine<'a>| &line.branch)
            .fit(Fit::Shorten { priority: 0 })
            .cell(ClassLine::in_tree),
    ]
}

fn list_in_table<'a>() -> Vec<TableColumn<'a, ClassLine<'a>>> {
    vec![
        TableColumn::new(names::INSTANCES, "instances"),
        TableColumn::new(names::SHALLOW_BYTES, "shallow"),
        TableColumn::new(names::SUBCLASSES, "subclasses").fit(Fit::Secondary { priority: 1 }),
        TableColumn::new(names::TOTAL_INSTANCES, "with subclasses").fit(Fit::Secondary { priority: 0 }),
        TableColumn::new(names::CLASS_OBJECT, "class object").fit(Fit::Secondary { priority: 2 }),
        TableColumn::new(names::CLASS, "class").fit(Fit::Shorten { priority: 0 }).cell(ClassLine::in_list),
    ]
}

fn summary_columns() -> Columns<'static, u64> {
    Columns::new([Column::new(names::TOTAL.dot(names::CLASSES), |total: &u64| Value::Integer(*total))])
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    vec![ResultSchema {
        command: "classes",
        variant: "",
        about: "A row is a class; with `--tree` rows are in preorder.",
        rows: columns(true).fields(),
        summary: summary_columns().fields(),
    }]
}
