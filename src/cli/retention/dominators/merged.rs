//! `dominators --group-by class-tree`: the tree merged by class.

use roaring::RoaringBitmap;

use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::{Heap, ObjectGraph, Quiet};
use hprof_parser::ObjectId;
use hprof_query::dictionary::names;
use hprof_query::dominators::holder;
use hprof_query::dominators::merged::{self, Merged, Node, NodeClass, Others, Question, Tops};
use hprof_query::objects::label::Labels;
use hprof_query::objects::reference_names::Edges;
use hprof_report::Format;
use hprof_report::answer::{Answer, Declared, Section};
use hprof_report::column::{Align, Column, Columns, Fit};
use hprof_report::number::{counted, grouped};
use hprof_report::tree;
use hprof_report::value::{Value, id};

use super::arguments::{Args, From};
use super::listing::HELD_BY_SEVERAL;
use super::reachable::{self, Whole};
use crate::cli::Outcome;
use crate::cli::shared::context::RunContext;
use crate::cli::shared::object;
use crate::cli::shared::session::{Rows, Session, Source};
use crate::cli::shared::unreachable::{self, Covers};

pub(super) fn run(cx: &RunContext, args: &Args) -> anyhow::Result<Outcome> {
    let format = args.output.format();
    let (session, found) = Session::ask(cx, &args.input, |heap, graph| {
        let Some(from) = args.from(heap.summary(), graph) else { return Ok(None) };
        let (tops, one) = match from {
            From::Roots => (None, 0),
            From::Object(position) => (Some(vec![position]), 1),
            From::Tops(tops) => (Some(tops), 0),
        };
        let question = Question {
            tops: tops.as_deref().map_or(Tops::Roots, Tops::Objects),
            // As in a tree that is not merged: levels below an object, but the tops of a class are one.
            levels: args.depth().saturating_add(one),
            top: args.top.rows(format),
            min_retained_bytes: args.min_retained,
        };
        let Merged { nodes, others } = merged::merged(heap.summary(), graph, &question);
        let drawn = if format == Format::Table { drawn(&nodes, others) } else { listed(&nodes) };
        let make = Make::new(heap, graph)?;
        let rows = Rows::new(drawn, |drawn| make.line(drawn));
        let left_out = others.nodes > 0 || nodes.iter().any(|node| node.others.nodes > 0);
        Ok(Some((nodes.len(), left_out, rows)))
    })?;
    let Session { heap, graph } = &session;
    let whole = Whole::new(cx, graph, &args.output);
    let Some((nodes, left_out, rows)) = found else {
        return args.without_start(cx, &session, columns(Whole::default()));
    };
    let make = Make::new(heap, graph)?;
    let answer = Answer::new(columns(whole), rows.into_all(|drawn| make.line(drawn)))
        .beside(&reachable::beside(), &graph.tree)
        .total([
            ("retained", grouped(whole.bytes)),
            ("%", whole.percent(whole.bytes)),
            ("object", "all reachable objects".to_owned()),
        ]);
    let answer = if left_out {
        answer.under(Section::Options("--top 0 shows all; --depth N shows more levels".to_owned()))
    } else {
        answer
    };
    session.show(cx, "dominators", &args.output, answer)?;
    if nodes == 0 {
        args.note_too_small(cx);
    }
    unreachable::note(cx, &session, &args.input, Covers::Reachable);
    Ok(session.outcome(nodes > 0))
}

/// What a row is of.
#[derive(Debug, Clone)]
enum Of {
    Node(Node),
    /// What is left out below the row above it: in tables only.
    Others(Others),
}

/// A row, and what a table draws before it.
#[derive(Debug, Clone)]
struct Drawn {
    of: Of,
    branch: String,
}

/// All nodes, for programs.
fn listed(nodes: &[Node]) -> Vec<Drawn> {
    nodes.iter().map(|node| Drawn { of: Of::Node(*node), branch: String::new() }).collect()
}

/// All nodes, with a line for what is left out behind the last one of each level that is shown.
fn drawn(nodes: &[Node], others: Others) -> Vec<Drawn> {
    let mut rows: Vec<(Of, u32)> = Vec::new();
    // Nodes that the pass is in, whose others come behind all that is below them.
    let mut open: Vec<(u32, Others)> = Vec::new();
    let close = |rows: &mut Vec<(Of, u32)>, open: &mut Vec<(u32, Others)>, depth: u32| {
        while let Some((above, others)) = open.pop_if(|(above, _)| *above >= depth) {
            if others.nodes > 0 {
                rows.push((Of::Others(others), above + 1));
            }
        }
    };
    for node in nodes {
        close(&mut rows, &mut open, node.depth);
        rows.push((Of::Node(*node), node.depth));
        open.push((node.depth, node.others));
    }
    close(&mut rows, &mut open, 0);
    if others.nodes > 0 {
        rows.push((Of::Others(others), 0));
    }
    let depths: Vec<u32> = rows.iter().map(|(_, depth)| *depth).collect();
    rows.into_iter().zip(tree::branches(&depths)).map(|((of, _), branch)| Drawn { of, branch }).collect()
}

/// Makes rows.
struct Make<'a> {
    summary: &'a Summary,
    edges: Edges<'a>,
    labels: Labels<'a>,
    roots: RoaringBitmap,
}

impl<'a> Make<'a> {
    fn new(heap: &'a Heap, graph: &'a ObjectGraph) -> anyhow::Result<Self> {
        let bytes = heap.bytes(&Quiet)?;
        Ok(Self {
            summary: heap.summary(),
            edges: Edges::new(heap.summary(), graph, bytes),
            labels: Labels::new(heap, graph, bytes),
            roots: graph.roots.objects().iter().map(|object| object.0).collect(),
        })
    }

    fn line(&self, drawn: &Drawn) -> Line {
        let Of::Node(node) = &drawn.of else { return Line { drawn: drawn.clone(), ..Line::default() } };
        let graph = self.edges.graph;
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
        Line {
            class: class.map(str::to_owned),
            label: single.and_then(|object| self.labels.label(object)),
            object: single.and_then(|object| graph.objects.addresses.id_of(object)),
            field: single.filter(|_| !is_class_object).and_then(|object| holder::field(&self.edges, object)),
            link,
            is_held_by_several: single
                .is_some_and(|object| graph.tree.depth(node.first) == 0 && !self.roots.contains(object.0)),
            drawn: drawn.clone(),
        }
    }
}

/// A row, with what it is called.
struct Line {
    drawn: Drawn,
    class: Option<String>,
    label: Option<String>,
    object: Option<ObjectId>,
    field: Option<String>,
    link: Option<String>,
    is_held_by_several: bool,
}

impl Default for Line {
    fn default() -> Self {
        let drawn = Drawn { of: Of::Others(Others::default()), branch: String::new() };
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

impl Line {
    fn node(&self) -> Option<&Node> {
        match &self.drawn.of {
            Of::Node(node) => Some(node),
            Of::Others(_) => None,
        }
    }

    /// A figure of a node.
    fn figure(&self, figure: fn(&Node) -> u64) -> Value<'static> {
        self.node().map(figure).into()
    }

    fn retained_bytes(&self) -> u64 {
        match &self.drawn.of {
            Of::Node(node) => node.retained_bytes,
            Of::Others(others) => others.retained_bytes,
        }
    }

    fn in_table(&self) -> String {
        let branch = &self.drawn.branch;
        let node = match &self.drawn.of {
            Of::Node(node) => node,
            Of::Others(others) => {
                let rows = if others.nodes == 1 {
                    "1 other".to_owned()
                } else {
                    format!("{} others", grouped(others.nodes))
                };
                return format!("{branch}{rows}: {}", counted(others.objects, "object"));
            }
        };
        let name = object::describe_without_id(self.class.as_deref(), self.label.as_deref());
        let count = if node.objects > 1 { format!("{} x ", grouped(node.objects)) } else { String::new() };
        let field = self.field.as_ref().map(|field| format!(" ({field})")).unwrap_or_default();
        let several = if self.is_held_by_several { HELD_BY_SEVERAL } else { "" };
        let by = self.link.as_ref().map(|link| format!(", field {link}")).unwrap_or_default();
        let chain = if node.chain > 1 {
            format!(" (up to {} in a row{by})", grouped(node.chain.into()))
        } else {
            String::new()
        };
        format!("{branch}{count}{name}{field}{several}{chain}")
    }
}

fn columns(whole: Whole) -> Columns<'static, Line> {
    let [percent, bar] = whole.columns(|line: &Line| line.retained_bytes());
    Columns::new([
        Column::of(names::CLASS, |line: &Line| line.class.as_deref().into()).or_null("the dump does not say"),
        Column::of(names::LABEL, |line: &Line| line.label.as_deref().into())
            .or_null("there is none, or there are several objects"),
        Column::of(names::OBJECT, |line: &Line| id(line.object)).or_null("there are several objects"),
        Column::of(names::FIELD, |line: &Line| line.field.as_deref().into())
            .or_null("several objects hold it, or only such of the JDK, or there are several objects"),
        Column::of(names::OBJECTS, |line: &Line| line.figure(|node| node.objects))
            .header("objects")
            .place(3)
            .cell(|line| line.node().map(|node| grouped(node.objects)).unwrap_or_default()),
        Column::of(names::CHAIN, |line: &Line| line.figure(|node| node.chain.into())),
        Column::of(names::CHAIN_FIELD, |line: &Line| line.link.as_deref().into())
            .or_null("there is no chain, or they hold one another through others"),
        Column::of(names::SHALLOW_BYTES, |line: &Line| line.figure(|node| node.shallow_bytes)),
        Column::of(names::RETAINED_BYTES, |line: &Line| line.retained_bytes().into())
            .header("retained")
            .place(0),
        percent,
        bar,
        Column::of(names::RETAINED_OBJECTS, |line: &Line| line.figure(|node| node.retained_objects)),
        Column::of(names::DEPTH, |line: &Line| line.figure(|node| node.depth.into())),
        Column::of(names::PARENT_ROW, |line: &Line| {
            line.node().and_then(|node| node.parent).map(|parent| parent as u64).into()
        })
        .or_null("it is at the top"),
        Column::of(names::OTHER_ROWS, |line: &Line| line.figure(|node| node.others.nodes)),
        Column::of(names::OTHER_BYTES, |line: &Line| line.figure(|node| node.others.retained_bytes)),
        Column::table("object", Align::Left, Line::in_table).fit(Fit::Shorten { priority: 0 }),
    ])
}

pub(super) fn declared() -> Declared {
    Declared {
        command: "dominators",
        variant: "`--group-by class-tree`",
        about: "A row is all objects of one class below the same classes in the dominator tree; class objects are rows of their \
                own. Objects of a class that objects of the same class dominate immediately are in the same row, so a linked \
                list is one row. Rows are in preorder, siblings by `retained_bytes`, largest first; `depth` and `parent` tell \
                the tree. None of the objects at the top of a row dominates another, so all figures of a level add up.",
        rows: columns(Whole::default()).fields(),
        beside: reachable::beside().fields(),
    }
}
