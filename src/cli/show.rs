//! `show`: one object, its fields or elements, and what refers to it.

use std::io::Write;
use std::ops::Range;

use serde::Serialize;
use serde_json::json;

use crate::hprof::BasicType;
use crate::hprof::input::TextFile;
use crate::index::{Heap, ObjectGraph, Quiet};
use crate::query::collections;
use crate::query::near;
use crate::query::path_view::View;
use crate::query::profile::text::show as text_show;
use crate::query::select;
use crate::query::show::{Contents, Kind, Part, Referrer, RootShown, Shower, Shown, Value};
use crate::report::stream::Streamed;
use crate::report::table::{Align, Builder, Style, grouped};
use crate::report::{Format, csv, escape, json::object_id};

use super::args::{self, Output};
use super::object::{self, AsText};
use super::recorded::{Recorded, RecordedInput, Source};
use super::{Outcome, messages, output};

pub(super) const EXAMPLES: &str = "Examples:
  hprof-cli show heap.hprof 0x7c00012a8
  hprof-cli show heap.hprof 0x7c00012a8 --range 100..200
  hprof-cli show java.hprof.txt 50001f93 --incoming
  hprof-cli show heap.hprof 0x7c00012a8 --format json | jq '.rows[0].fields[] | {name, value}'";

/// Elements of an array, and objects that refer to the object, in a table when nothing is said.
const USUAL: u64 = 20;

/// Elements of a collection that are shown to programs when nothing is said: unlike those of an array they are collected.
const MOST_CONTENTS: u64 = 10_000;

/// One object: its class, its sizes, its fields or elements
///
/// Of a binary dump, all fields with their values, those of superclasses too; of a class object its static fields. A text
/// report holds references only, and of those the ones that are not null.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    input: RecordedInput,

    /// The object's id, hexadecimal: `0x7c00012a8`; `0x` may be left out
    #[arg(value_name = "OBJECT", value_parser = object_id_of, help_heading = "Filter")]
    object: u64,

    /// Which elements of an array, from 0: `100..200`, `100..`, `..200` [default: the first 20 in a table, all in JSON and
    /// CSV]
    #[arg(long, value_name = "A..B", value_parser = range, help_heading = "Filter")]
    range: Option<Range<u64>>,

    /// Also the objects that refer to it
    #[arg(long, help_heading = "Output")]
    incoming: bool,

    /// Of the objects that refer to it only the first N; 0 for all [default: 20 in a table, all in JSON]
    #[arg(long, value_name = "N", requires = "incoming", help_heading = "Output")]
    top: Option<usize>,

    #[command(flatten)]
    output: Output,
}

/// Reads an object id, with or without `0x`: texts write it without.
fn object_id_of(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    select::object_id(&format!("0x{digits}"))
        .map_err(|_| format!("`{text}` is no object id; ids look like 0x7c00012a8"))
}

/// Reads `A..B`.
fn range(text: &str) -> Result<Range<u64>, String> {
    let wrong = || format!("`{text}` is no range; ranges look like 100..200");
    let (start, end) = text.split_once("..").ok_or_else(wrong)?;
    let number =
        |text: &str, none| if text.is_empty() { Ok(none) } else { text.parse().map_err(|_| wrong()) };
    let range = number(start, 0)?..number(end, u64::MAX)?;
    if range.start > range.end { Err(wrong()) } else { Ok(range) }
}

impl Args {
    fn elements(&self) -> Range<u64> {
        let usual = if self.output.format() == Format::Table { 0..USUAL } else { 0..u64::MAX };
        self.range.clone().unwrap_or(usual)
    }

    fn most_referrers(&self) -> usize {
        if !self.incoming {
            return 0;
        }
        let usual = usize::try_from(USUAL).unwrap_or(usize::MAX);
        args::top(self.top, self.output.format(), usual).unwrap_or(usize::MAX)
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    if let Some((file, recorded)) = args.input.open_text()? {
        return of_text(args, &file, &recorded);
    }
    let input = &args.input.input;
    let (heap, graph, found) =
        input.with_graph(|_, graph| Ok(graph.objects.addresses.index_of(args.object)))?;
    let from = From::Binary(&heap);
    let Some(object) = found else { return nothing(args, &from, &near::object_ids(&graph, args.object)) };
    of_binary(args, &heap, &graph, object)?;
    Ok(if heap.summary().is_damaged() { Outcome::Damaged } else { Outcome::Fine })
}

fn of_binary(args: &Args, heap: &Heap, graph: &ObjectGraph, object: u32) -> anyhow::Result<()> {
    let bytes = heap.bytes(&Quiet)?;
    let shower = Shower::new(heap.summary(), graph, bytes, View::new(heap, graph, bytes));
    let mut shown = shower.show(object);
    let elements = args.elements();
    let most = if args.range.is_some() { u64::MAX } else { MOST_CONTENTS };
    shown.contents =
        shower.contents(object, elements.start, elements.end.min(elements.start.saturating_add(most)));
    let answer = Answer {
        elements: shower.elements(object, elements.start, elements.end),
        more_referrers: (graph.referrers(object).count()).saturating_sub(args.most_referrers()),
        referrers: shower.referrers(object).take(args.most_referrers()),
        shown,
    };
    answer.write(args, &From::Binary(heap))?;
    // What was shown was made while it was read.
    anyhow::ensure!(!graph.is_damaged(), "the index is damaged, and this answer may be wrong: run it again");
    Ok(())
}

fn of_text(args: &Args, file: &TextFile, recorded: &Recorded) -> anyhow::Result<Outcome> {
    let Source::Text { report, .. } = &recorded.source else { return Ok(Outcome::No) };
    let question =
        text_show::Question { object: args.object, elements: args.elements(), incoming: args.incoming };
    let found = text_show::show(file, report.run, &question)?;
    let from = From::Text(recorded);
    let Some(shown) = found.shown else {
        if report.heap.is_none() {
            args.input.note(&format!("{} holds no HEAP DUMP", file.path().display()));
        }
        return nothing(args, &from, &found.near);
    };
    let answer = Answer {
        shown,
        elements: found.elements.into_iter(),
        more_referrers: found.referrers.len().saturating_sub(args.most_referrers()),
        referrers: found.referrers.into_iter().take(args.most_referrers()),
    };
    answer.write(args, &from)?;
    Ok(recorded.outcome(true))
}

/// What an answer is from.
enum From<'a> {
    Binary(&'a Heap),
    Text(&'a Recorded),
}

impl From<'_> {
    fn json<R: Serialize, E: Serialize>(&self, out: &mut dyn Write, rows: R, more: E) -> anyhow::Result<()> {
        match self {
            Self::Binary(heap) => output::json(out, "show", heap, rows, more),
            Self::Text(recorded) => recorded.json(out, "show", rows, more),
        }
    }
}

/// Says that there is no such object.
fn nothing(args: &Args, from: &From<'_>, near: &[u64]) -> anyhow::Result<Outcome> {
    let ids: Vec<String> = near.iter().map(|id| object_id(*id)).collect();
    let mut text = format!("there is no object {:#x} in {}", args.object, args.input.input.path().display());
    if !ids.is_empty() {
        text.push_str(&format!("; objects next to it are {}", ids.join(", ")));
    }
    messages::line("error", &text);
    let mut out = output::stdout();
    match args.output.format() {
        Format::Table => {}
        Format::Json => from.json(&mut out, [(); 0], json!({ "near": ids }))?,
        Format::Csv => csv::write_flat(&mut out, PartOut::<String>::COLUMNS, std::iter::empty::<()>())?,
    }
    output::finish(out)?;
    Ok(Outcome::No)
}

/// An object with its elements and with what refers to it.
struct Answer<P, R> {
    shown: Shown,
    elements: P,
    referrers: R,
    /// Objects that refer to it and are not among `referrers`.
    more_referrers: usize,
}

impl<P: Iterator<Item = Part>, R: Iterator<Item = Referrer>> Answer<P, R> {
    fn write(mut self, args: &Args, from: &From<'_>) -> anyhow::Result<()> {
        let mut out = output::stdout();
        let fields = std::mem::take(&mut self.shown.fields);
        match args.output.format() {
            Format::Table => self.table(&mut out, args, &fields)?,
            Format::Json => {
                let parts = fields.into_iter().chain(self.elements).map(|part| PartOut::json(&part));
                let incoming = args.incoming.then(|| Streamed::new(self.referrers.map(ReferrerOut::new)));
                let row = ObjectOut::new(&self.shown, Streamed::new(parts), incoming);
                from.json(&mut out, [row], json!({}))?;
            }
            Format::Csv => {
                let parts = fields.into_iter().chain(self.elements).map(|part| PartOut::csv(&part));
                csv::write_flat(&mut out, PartOut::<String>::COLUMNS, parts)?;
            }
        }
        output::finish(out)
    }

    fn table(self, out: &mut dyn Write, args: &Args, fields: &[Part]) -> anyhow::Result<()> {
        let style = output::style(&args.output);
        let shown = &self.shown;
        let mut head = Builder::new(&[("", Align::Left), ("", Align::Left)]);
        let size = |bytes: Option<u64>| bytes.map(|bytes| format!("{} bytes", grouped(bytes)));
        let class = shown.class.as_deref().unwrap_or("<unknown class>");
        let class = match shown.class_object {
            Some(id) => format!("{class}, class object {id:#x}"),
            None => class.to_owned(),
        };
        let rows = [
            ("object", Some(object_id(shown.object))),
            ("kind", Some(shown.kind.name().to_owned())),
            ("class", Some(class)),
            ("label", shown.label.clone()),
            ("shallow", size(shown.shallow_bytes)),
            ("retained", size(shown.retained_bytes)),
            ("trace", Some(shown.trace.to_string()).filter(|_| shown.trace != 0)),
            ("length", shown.length.map(grouped)),
        ];
        for (name, text) in rows {
            if let Some(text) = text {
                head.row([name, &text]);
            }
        }
        for root in &shown.roots {
            head.row(["root", &root_text(root)]);
        }
        head.write(out, style)?;
        let is_array = matches!(shown.kind, Kind::ObjectArray | Kind::PrimitiveArray);
        let mut table = Builder::new(&[
            (if is_array { "index" } else { "field" }, Align::Left),
            ("type", Align::Left),
            ("value", Align::Left),
        ]);
        let mut rows = 0u64;
        let mut class: Option<&str> = None;
        for part in fields {
            // Fields are in groups, the class's own first.
            if part.class.as_deref() != class && shown.kind == Kind::Instance {
                class = part.class.as_deref();
                if let Some(class) = class.filter(|class| shown.class.as_deref() != Some(class)) {
                    table.row([&format!("of {class}:"), "", ""]);
                }
            }
            table.row([part.name.clone(), part.kind.java_name().to_owned(), value_text(&part.value)]);
            rows += 1;
        }
        for part in self.elements {
            table.row([part.name, part.kind.java_name().to_owned(), value_text(&part.value)]);
            rows += 1;
        }
        if rows > 0 {
            writeln!(out)?;
            table.write(out, style)?;
        }
        if let Some(contents) = &shown.contents {
            table_of_contents(out, contents, style)?;
        }
        if let Some(length) = shown.length
            && args.range.is_none()
            && length > USUAL
        {
            writeln!(out, "the first {USUAL} of {} elements; --range A..B shows others", grouped(length))?;
        }
        if args.incoming {
            let mut table =
                Builder::new(&[("referrer", Align::Left), ("by", Align::Left), ("class", Align::Left)]);
            let mut rows = 0;
            for referrer in self.referrers {
                let (class, label) = (referrer.class.as_deref(), referrer.label.as_deref());
                let reference = referrer.reference.unwrap_or_default();
                table.row([object_id(referrer.object), reference, object::describe_without_id(class, label)]);
                rows += 1;
            }
            writeln!(out)?;
            if rows == 0 {
                writeln!(out, "no object refers to it")?;
            } else {
                table.write(out, style)?;
            }
            if self.more_referrers > 0 {
                let more = grouped(self.more_referrers as u64);
                writeln!(out, "{more} more objects refer to it; --top 0 shows all")?;
            }
        }
        Ok(())
    }
}

/// What a collection holds.
fn table_of_contents(out: &mut dyn Write, contents: &Contents, style: Style) -> anyhow::Result<()> {
    let is_map = contents.kind == collections::Kind::Map;
    let mut columns = vec![("", Align::Right)];
    if is_map {
        columns.push(("key", Align::Left));
    }
    columns.push((if is_map { "value" } else { "element" }, Align::Left));
    let mut table = Builder::new(&columns);
    for entry in &contents.entries {
        let mut cells = vec![entry.index.to_string()];
        if is_map {
            cells.push(entry.key.as_ref().map(value_text).unwrap_or_default());
        }
        cells.push(value_text(&entry.value));
        table.row(cells);
    }
    writeln!(out)?;
    if contents.entries.is_empty() {
        writeln!(out, "an empty {}", contents.kind.name())?;
        return Ok(());
    }
    table.write(out, style)?;
    let shown = contents.entries.len() as u64;
    if let Some(size) = contents.size.filter(|size| *size > shown) {
        let (shown, size) = (grouped(shown), grouped(size));
        writeln!(
            out,
            "{shown} of {size} elements of the {}; --range A..B shows others",
            contents.kind.name()
        )?;
    }
    Ok(())
}

fn root_text(root: &RootShown) -> String {
    let mut text = root.kind.name().to_owned();
    if let Some(thread) = &root.thread {
        text.push_str(&format!(", thread {thread}"));
    }
    if let Some(frame) = &root.frame {
        text.push_str(&format!(", frame {frame}"));
    }
    text
}

/// A value as people read it.
fn value_text(value: &Value) -> String {
    match value {
        Value::Boolean(value) => value.to_string(),
        Value::Integer(value) => value.to_string(),
        Value::Char(unit) => character(*unit),
        Value::Float(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::Reference(None) => "null".to_owned(),
        Value::Reference(Some(to)) => object::describe(to.class.as_deref(), to.object, to.label.as_deref()),
    }
}

/// A UTF-16 unit; half of a character becomes an escape.
fn character(unit: u16) -> String {
    char::from_u32(u32::from(unit)).map_or_else(|| format!("\\u{unit:04x}"), String::from)
}

/// A value as programs read it: of a reference its class, and its label in quotes.
fn value_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Boolean(value) => (*value).into(),
        Value::Integer(value) => (*value).into(),
        Value::Char(unit) => character(*unit).into(),
        // What JSON has no number for is a text.
        Value::Float(value) if value.is_finite() => json!(value),
        Value::Double(value) if value.is_finite() => json!(value),
        Value::Float(value) => value.to_string().into(),
        Value::Double(value) => value.to_string().into(),
        Value::Reference(None) => serde_json::Value::Null,
        Value::Reference(Some(to)) => {
            object::describe_without_id(to.class.as_deref(), to.label.as_deref()).into()
        }
    }
}

#[derive(Serialize)]
struct ObjectOut<'a, P, R> {
    object: String,
    class: Option<&'a str>,
    label: Option<&'a str>,
    kind: &'static str,
    shallow_bytes: Option<u64>,
    retained_bytes: Option<u64>,
    trace: u32,
    length: Option<u64>,
    class_object: Option<String>,
    roots: Vec<RootOut<'a>>,
    fields: P,
    contents: Option<ContentsOut>,
    incoming: Option<R>,
}

#[derive(Serialize)]
struct ContentsOut {
    kind: &'static str,
    size: Option<u64>,
    entries: Vec<EntryOut>,
}

#[derive(Serialize)]
struct EntryOut {
    index: u64,
    key: Option<serde_json::Value>,
    key_object: Option<String>,
    value: serde_json::Value,
    object: Option<String>,
}

impl ContentsOut {
    fn new(contents: &Contents) -> Self {
        let entries = contents.entries.iter().map(|entry| EntryOut {
            index: entry.index,
            key: entry.key.as_ref().map(value_json),
            key_object: entry.key.as_ref().and_then(referred_id),
            value: value_json(&entry.value),
            object: referred_id(&entry.value),
        });
        Self { kind: contents.kind.name(), size: contents.size, entries: entries.collect() }
    }
}

/// The id of the object that a value refers to.
fn referred_id(value: &Value) -> Option<String> {
    match value {
        Value::Reference(Some(to)) => Some(object_id(to.object)),
        _ => None,
    }
}

impl<'a, P, R> ObjectOut<'a, P, R> {
    fn new(shown: &'a Shown, fields: P, incoming: Option<R>) -> Self {
        let roots = shown.roots.iter().map(|root| RootOut {
            kind: root.kind.name(),
            thread: root.thread.as_deref(),
            frame: root.frame.as_deref(),
        });
        Self {
            object: object_id(shown.object),
            class: shown.class.as_deref(),
            label: shown.label.as_deref(),
            kind: shown.kind.name(),
            shallow_bytes: shown.shallow_bytes,
            retained_bytes: shown.retained_bytes,
            trace: shown.trace,
            length: shown.length,
            class_object: shown.class_object.map(object_id),
            roots: roots.collect(),
            fields,
            contents: shown.contents.as_ref().map(ContentsOut::new),
            incoming,
        }
    }
}

#[derive(Serialize)]
struct RootOut<'a> {
    kind: &'static str,
    thread: Option<&'a str>,
    frame: Option<&'a str>,
}

#[derive(Serialize)]
struct PartOut<V> {
    name: String,
    class: Option<String>,
    r#type: &'static str,
    value: V,
    object: Option<String>,
}

impl<V> PartOut<V> {
    const COLUMNS: &[&str] = &["name", "class", "type", "value", "object"];

    fn new(part: &Part, value: V, text: AsText) -> Self {
        let object = referred_id(&part.value);
        Self {
            name: text(&part.name),
            class: part.class.as_deref().map(text),
            r#type: type_name(part.kind),
            value,
            object,
        }
    }
}

impl PartOut<serde_json::Value> {
    fn json(part: &Part) -> Self {
        Self::new(part, value_json(&part.value), str::to_owned)
    }
}

impl PartOut<String> {
    fn csv(part: &Part) -> Self {
        let value = match value_json(&part.value) {
            serde_json::Value::Null => String::new(),
            serde_json::Value::String(text) => escape::cell(&text).into_owned(),
            // A number with a sign is no formula.
            number => number.to_string(),
        };
        Self::new(part, value, object::cell)
    }
}

fn type_name(kind: BasicType) -> &'static str {
    kind.java_name()
}

#[derive(Serialize)]
struct ReferrerOut {
    object: String,
    class: Option<String>,
    label: Option<String>,
    reference: Option<String>,
}

impl ReferrerOut {
    fn new(referrer: Referrer) -> Self {
        let Referrer { object, class, label, reference } = referrer;
        Self { object: object_id(object), class, label, reference }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_ranges() {
        assert_eq!(object_id_of("50001f93"), Ok(0x5000_1f93));
        assert_eq!(object_id_of("0x7c00012a8"), Ok(0x7_c000_12a8));
        for wrong in ["", "0x", "xyz", "+1", "0x0x1", "11112222333344445"] {
            assert!(object_id_of(wrong).is_err(), "{wrong}");
        }
        assert_eq!(range("100..200"), Ok(100..200));
        assert_eq!((range("100.."), range("..7")), (Ok(100..u64::MAX), Ok(0..7)));
        for wrong in ["", "5", "5..x", "7..5", "-1..5"] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn half_characters() {
        assert_eq!((character(0x41), character(0xd800)), ("A".to_owned(), "\\ud800".to_owned()));
    }
}
