//! `dominators --group-by class-tree`: the tree merged by class.

use roaring::RoaringBitmap;

use hprof_index::Dump;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_query::dominators::holder_field;
use hprof_query::dominators::merged_by_class::{
    self, MergedDominators, MergedNode, MergedQuery, NodeClass, OmittedNodes, Tops,
};
use hprof_query::objects::label::Labels;
use hprof_query::objects::reference_names::Edges;
use hprof_report::number::format_count;
use hprof_report::tree::{self, Branch};
use hprof_report::value::id;
use hprof_values::ObjectId;

use super::arguments::{DominatorsArgs, StartingPoints};
use super::listing::HELD_BY_SEVERAL;
use super::reachable::{self, ReachableTotal};
use crate::cli::prelude::*;
use crate::cli::shared::object;
use crate::cli::shared::session::LazyRows;
use crate::cli::shared::unreachable::{self, ReachableScope};

pub(super) fn run(cx: &RunContext, args: &DominatorsArgs) -> anyhow::Result<Outcome> {
    let format = args.output.format();
    let (session, found) = Session::ask(cx, &args.input, |dump| {
        let Some(from) = args.from(dump) else { return Ok(None) };
        let (tops, one) = match from {
            StartingPoints::Roots => (None, 0),
            StartingPoints::Object(position) => (Some(vec![position]), 1),
            StartingPoints::Tops(tops) => (Some(tops), 0),
        };
        let question = MergedQuery {
            tops: tops.as_deref().map_or(Tops::Roots, Tops::Objects),
            // As in a tree that is not merged: levels below an object, but the topmost instances of a class count as
            // one.
            levels: args.depth().saturating_add(one),
            top: args.top.rows(format),
            min_retained_bytes: args.min_retained,
        };
        let MergedDominators { nodes, others } = merged_by_class::merge_by_class(dump, &question);
        let make = MergedTreeMaker::new(dump);
        let rows = |format: &Format| {
            let drawn =
                if *format == Format::Table { table_rows(&nodes, others) } else { plain_rows(&nodes) };
            LazyRows::new(drawn, |drawn| make.line(drawn))
        };
        let rows: Vec<_> = cx.formats(format).iter().map(rows).collect();
        let left_out = others.nodes > 0 || nodes.iter().any(|node| node.others.nodes > 0);
        Ok(Some((nodes.len(), left_out, rows)))
    })?;
    let Session { heap: _, graph } = &session;
    let whole = ReachableTotal::new(cx, graph, &args.output);
    let Some((nodes, left_out, rows)) = found else {
        return args.without_start(cx, &session, columns(ReachableTotal::default()));
    };
    let make = MergedTreeMaker::new(&session.dump()?);
    let mut rows = rows.into_iter();
    cx.for_each_format(format, |cx, format| {
        let Some(rows) = rows.next() else { return Ok(()) };
        let rows = rows.into_all(|drawn| make.line(drawn), |_, line| Some(line));
        let mut answer = Answer::new(columns(whole), rows)
            .with_summary(&reachable::summary_columns(), &graph.tree)
            .total([
                ("retained", group_digits(whole.bytes)),
                ("%", whole.percent(whole.bytes)),
                ("object", "all reachable objects".to_owned()),
            ]);
        if left_out {
            answer = answer.with_section_below(Section::Options(
                "--top 0 shows all; --depth N shows more levels".to_owned(),
            ));
        }
        session.show_in(cx, "dominators", &args.output, format, answer)?;
        Ok(())
    })?;
    if nodes == 0 {
        args.note_too_small(cx);
    }
    unreachable::note(cx, &session, &args.input, ReachableScope::Reachable);
    Ok(session.outcome(nodes > 0))
}

/// Content of a row of the tree.
#[derive(Debug, Clone)]
enum MergedTreeItem {
    Node(MergedNode),
    /// The nodes omitted below the row above; only in tables.
    Others(OmittedNodes),
}

/// A row of the tree, and the branch lines of a table.
#[derive(Debug, Clone)]
struct MergedTreeRow {
    of: MergedTreeItem,
    branch: Branch,
}

/// Returns a row for each node, for programs.
fn plain_rows(nodes: &[MergedNode]) -> Vec<MergedTreeRow> {
    nodes
        .iter()
        .map(|node| MergedTreeRow { of: MergedTreeItem::Node(*node), branch: Branch::default() })
        .collect()
}

/// Returns a row for each node, with a row for omitted nodes after the last shown node of each level.
fn table_rows(nodes: &[MergedNode], others: OmittedNodes) -> Vec<MergedTreeRow> {
    let mut rows: Vec<(MergedTreeItem, u32)> = Vec::new();
    // Nodes that the pass is inside of; their omitted siblings follow everything below them.
    let mut open: Vec<(u32, OmittedNodes)> = Vec::new();
    let close = |rows: &mut Vec<(MergedTreeItem, u32)>, open: &mut Vec<(u32, OmittedNodes)>, depth: u32| {
        while let Some((above, others)) = open.pop_if(|(above, _)| *above >= depth) {
            if others.nodes > 0 {
                rows.push((MergedTreeItem::Others(others), above + 1));
            }
        }
    };
    for node in nodes {
        close(&mut rows, &mut open, node.depth);
        rows.push((MergedTreeItem::Node(*node), node.depth));
        open.push((node.depth, node.others));
    }
    close(&mut rows, &mut open, 0);
    if others.nodes > 0 {
        rows.push((MergedTreeItem::Others(others), 0));
    }
    let depths: Vec<u32> = rows.iter().map(|(_, depth)| *depth).collect();
    rows.into_iter()
        .zip(tree::branches(&depths))
        .map(|((of, _), branch)| MergedTreeRow { of, branch })
        .collect()
}

/// Builder of rows with names.
struct MergedTreeMaker<'a> {
    summary: &'a Summary,
    edges: Edges<'a>,
    labels: Labels<'a>,
    roots: RoaringBitmap,
}

impl<'a> MergedTreeMaker<'a> {
    fn new(dump: &Dump<'a>) -> Self {
        Self {
            summary: dump.summary,
            edges: Edges::new(dump),
            labels: Labels::new(dump),
            roots: dump.graph.roots.objects().iter().map(|object| object.0).collect(),
        }
    }

    fn line(&self, drawn: &MergedTreeRow) -> MergedTreeLine {
        let MergedTreeItem::Node(node) = &drawn.of else {
            return MergedTreeLine { drawn: drawn.clone(), ..MergedTreeLine::default() };
        };
        let graph = self.edges.dump.graph;
        let name = |class: ClassNumber| object::class_name(self.summary, Some(class));
        let class = match node.class {
            NodeClass::Instances(class) => name(class),
            NodeClass::ClassObject(_) => self.summary.java_lang_class().and_then(name),
            NodeClass::Unknown => None,
        };
        let single = graph.tree.object_at(node.first).filter(|_| node.objects == 1);
        let is_class_object = matches!(node.class, NodeClass::ClassObject(_));
        let link = node.link.and_then(|(holder, held)| {
            let held = graph.tree.object_at(held)?;
            let name = self.edges.holding(graph.tree.object_at(holder)?, held).to_string();
            Some(name).filter(|name| !name.is_empty())
        });
        MergedTreeLine {
            class: class.map(str::to_owned),
            label: single.and_then(|object| self.labels.label(object)),
            object: single.and_then(|object| graph.objects.addresses.id_of(object)),
            field: single
                .filter(|_| !is_class_object)
                .and_then(|object| holder_field::field(&self.edges, object)),
            link,
            is_held_by_several: single
                .is_some_and(|object| graph.tree.depth(node.first) == 0 && !self.roots.contains(object.0)),
            drawn: drawn.clone(),
        }
    }
}

/// A row of the tree, with the names of its class, object and field.
struct MergedTreeLine {
    drawn: MergedTreeRow,
    class: Option<String>,
    label: Option<String>,
    object: Option<ObjectId>,
    field: Option<String>,
    link: Option<String>,
    is_held_by_several: bool,
}

impl Default for MergedTreeLine {
    fn default() -> Self {
        let drawn =
            MergedTreeRow { of: MergedTreeItem::Others(OmittedNodes::default()), branch: Branch::default() };
        Self {
            drawn,
            class: None,
            label: None,
            object: None,
            field: None,
            link: None,
            is_held_by_several: false,
        }
    }
}

impl MergedTreeLine {
    fn node(&self) -> Option<&MergedNode> {
        match &self.drawn.of {
            MergedTreeItem::Node(node) => Some(node),
            MergedTreeItem::Others(_) => None,
        }
    }

    /// Returns a number of the node; `null` for a row about omitted nodes.
    fn figure(&self, figure: fn(&MergedNode) -> u64) -> Value<'static> {
        self.node().map(figure).into()
    }

    fn retained_bytes(&self) -> u64 {
        match &self.drawn.of {
            MergedTreeItem::Node(node) => node.retained_bytes,
            MergedTreeItem::Others(others) => others.retained_bytes,
        }
    }

    fn in_table(&self) -> String {
        let node = match &self.drawn.of {
            MergedTreeItem::Node(node) => node,
            MergedTreeItem::Others(others) => {
                let rows = if others.nodes == 1 {
                    "1 other".to_owned()
                } else {
                    format!("{} others", group_digits(others.nodes))
                };
                return format!("{rows}: {}", format_count(others.objects, "object"));
            }
        };
        let name = object::describe_without_id(self.class.as_deref(), self.label.as_deref());
        let count =
            if node.objects > 1 { format!("{} x ", group_digits(node.objects)) } else { String::new() };
        let field = self.field.as_ref().map(|field| format!(" ({field})")).unwrap_or_default();
        let several = if self.is_held_by_several { HELD_BY_SEVERAL } else { "" };
        let by = self.link.as_ref().map(|link| format!(", field {link}")).unwrap_or_default();
        let chain = if node.chain > 1 {
            format!(" (chains of up to {}{by})", group_digits(node.chain.into()))
        } else {
            String::new()
        };
        format!("{count}{name}{field}{several}{chain}")
    }
}

fn columns(whole: ReachableTotal) -> Columns<'static, MergedTreeLine> {
    let [percent, bar] = whole.columns(|line: &MergedTreeLine| line.retained_bytes());
    let columns = Columns::new([
        Column::new(names::CLASS, |line: &MergedTreeLine| line.class.as_deref().into())
            .or_null(nulls::CLASS_MISSING),
        Column::new(names::LABEL, |line: &MergedTreeLine| line.label.as_deref().into())
            .or_null("there is none, or there are several objects"),
        Column::new(names::OBJECT, |line: &MergedTreeLine| id(line.object)).or_null(nulls::SEVERAL_OBJECTS),
        Column::new(names::FIELD, |line: &MergedTreeLine| line.field.as_deref().into()).or_null(
            "several objects refer to it, or only objects of the JDK do, or the row has several objects",
        ),
        Column::new(names::OBJECTS, |line: &MergedTreeLine| line.figure(|node| node.objects)),
        Column::new(names::CHAIN, |line: &MergedTreeLine| line.figure(|node| node.chain.into())),
        Column::new(names::CHAIN_FIELD, |line: &MergedTreeLine| line.link.as_deref().into())
            .or_null("there is no chain, or they hold one another through others"),
        Column::new(names::SHALLOW_BYTES, |line: &MergedTreeLine| line.figure(|node| node.shallow_bytes)),
        Column::new(names::RETAINED_BYTES, |line: &MergedTreeLine| line.retained_bytes().into()),
        Column::new(names::RETAINED_OBJECTS, |line: &MergedTreeLine| {
            line.figure(|node| node.retained_objects)
        }),
        Column::new(names::DEPTH, |line: &MergedTreeLine| line.figure(|node| node.depth.into())),
        Column::new(names::PARENT_ROW, |line: &MergedTreeLine| {
            line.node().and_then(|node| node.parent).map(|parent| parent as u64).into()
        })
        .or_null(nulls::TOP_PLACE),
        Column::new(names::OTHER_ROWS, |line: &MergedTreeLine| line.figure(|node| node.others.nodes)),
        Column::new(names::OTHER_BYTES, |line: &MergedTreeLine| {
            line.figure(|node| node.others.retained_bytes)
        }),
    ]);
    columns.table([
        TableColumn::new(names::RETAINED_BYTES, "retained"),
        percent,
        bar,
        TableColumn::new(names::OBJECTS, "objects").cell(|line: &MergedTreeLine| {
            line.node().map(|node| group_digits(node.objects)).unwrap_or_default()
        }),
        TableColumn::table_only("object", Align::Left, MergedTreeLine::in_table)
            .tree(|line: &MergedTreeLine| &line.drawn.branch)
            .fit(Fit::Shorten { priority: 0 }),
    ])
}

pub(super) fn row_schema() -> ResultSchema {
    ResultSchema {
        command: "dominators",
        variant: "`--group-by class-tree`",
        about: "A row is all objects of one class below the same classes in the dominator tree; class objects are rows of their \
                own. Objects of a class that objects of the same class dominate immediately are in the same row, so a linked \
                list is one row. Rows are in preorder, siblings by `retained_bytes`, largest first; `depth` and `parent` describe the tree. None of the objects at the top of a row dominates another, so all figures of a level add up.",
        rows: columns(ReachableTotal::default()).fields(),
        summary: reachable::summary_columns().fields(),
    }
}
