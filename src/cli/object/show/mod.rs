//! `show`: one object, its fields or elements, and what refers to it.

mod json;
mod table;
mod target;

use std::io::Write;
use std::ops::Range;

use clap::ValueEnum;
use serde::Serialize;
use serde_json::json;

use crate::index::{Heap, ObjectGraph, Quiet};
use crate::input::file::TextFile;
use crate::query::classes::suggestions;
use crate::query::objects::show::{self, ClassFound, Data, NamedClass, Part, Referrer, Shower, Shown};
use crate::query::paths::steps::View;
use crate::query::recordings::profile::text::show as text_show;
use crate::report::stream::Streamed;
use crate::report::table::grouped;
use crate::report::{Format, csv, json::object_id};

use crate::cli::Outcome;
use crate::cli::shared::args::{self, Output};
use crate::cli::shared::object;
use crate::cli::shared::recording::{Recorded, RecordedFile, RecordedInput};
use crate::cli::shared::session::Source;
use crate::cli::shared::{messages, output};
use json::{ObjectOut, PartOut, ReferrerOut};
use target::{Target, What, range, target};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli show heap.hprof 0x7c00012a8
  hprof-cli show heap.hprof '0x7c00012a8[100..200]'
  hprof-cli show heap.hprof com.acme.Cache
  hprof-cli show heap.hprof 0x7c00012a8 --as hex
  hprof-cli show java.hprof.txt 50001f93 --incoming
  hprof-cli show heap.hprof 0x7c00012a8 --format json | jq '.rows[0].fields[] | {name, value}'";

/// Elements of an array, and objects that refer to the object, in a table when nothing is said.
const USUAL: u64 = 20;

/// Elements of a collection that are shown to programs when nothing is said: unlike those of an array they are collected.
const MOST_CONTENTS: u64 = 10_000;

/// Characters of a value that are shown to programs.
const MOST_CHARS: usize = 1 << 20;
/// Frames of a stack that are shown to programs.
const MOST_FRAMES: usize = 10_000;
/// Bytes of an array that are shown as one text.
const MOST_BYTES: u64 = 16 << 20;
/// Bytes and characters of an array in a table when nothing is said.
const USUAL_BYTES: u64 = 320;
const USUAL_TEXT: u64 = 2000;

/// One object: its class, its sizes, its fields or elements, what it means
///
/// Of a binary dump, all fields with their values, those of superclasses too; of a class object its static fields, and
/// what there is to say of the class. Objects of well-known classes show what they mean: Strings, numbers, dates, paths,
/// collections. A text report holds references only, and of those the ones that are not null.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: RecordedInput,

    /// The object's id, hexadecimal: `0x7c00012a8`; of an array also `0x7c00012a8[100..200]`, `0x7c00012a8[5]`. Or a
    /// class: `java.util.HashMap`, `HashMap`, `com.acme.*Cache`
    #[arg(value_name = "OBJECT|CLASS", value_parser = target, help_heading = "Filter")]
    object: Target,

    /// Which elements of an array, from 0: `100..200`, `100..`, `..200` [default: the first 20 in a table, all in JSON and
    /// CSV]
    #[arg(long, value_name = "A..B", value_parser = range, help_heading = "Filter")]
    range: Option<Range<u64>>,

    /// How the elements of an array of primitives are shown
    #[arg(long = "as", value_name = "FORM", default_value = "numbers", help_heading = "Output")]
    form: As,

    /// Also the objects that refer to it
    #[arg(long, help_heading = "Output")]
    incoming: bool,

    /// Of the objects that refer to it only the first N; 0 for all [default: 20 in a table, all in JSON]
    #[arg(long, value_name = "N", requires = "incoming", help_heading = "Output")]
    top: Option<usize>,

    #[command(flatten)]
    output: Output,
}

/// How elements are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum As {
    /// One by one
    Numbers,
    /// As bytes, in hexadecimal, big-endian
    Hex,
    /// As text: bytes as UTF-8 or else ISO 8859-1, chars as UTF-16
    Text,
}

impl Args {
    /// The range that was given, if one was.
    fn given_range(&self) -> Option<Range<u64>> {
        self.range.clone().or_else(|| self.object.range.clone())
    }

    fn has_range(&self) -> bool {
        self.given_range().is_some()
    }

    fn elements(&self) -> Range<u64> {
        let usual = match (self.output.format(), self.form) {
            (Format::Table, As::Numbers) => 0..USUAL,
            (Format::Table, As::Hex) => 0..USUAL_BYTES,
            (Format::Table, As::Text) => 0..USUAL_TEXT,
            _ => 0..u64::MAX,
        };
        self.given_range().unwrap_or(usual)
    }

    fn most_referrers(&self) -> usize {
        if !self.incoming {
            return 0;
        }
        let usual = usize::try_from(USUAL).unwrap_or(usize::MAX);
        args::top(self.top, self.output.format(), usual).unwrap_or(usize::MAX)
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    anyhow::ensure!(
        args.range.is_none() || args.object.range.is_none(),
        "--range and a range behind the object's id say the same: leave one out"
    );
    if let Some((file, recorded)) = args.input.open_text()? {
        return of_text(args, &file, &recorded);
    }
    let (heap, graph, found) = args.input.input.with_graph(|heap, graph| Ok(find(args, heap, graph)))?;
    match found {
        Ok(object) => of_binary(args, &heap, &graph, object)?,
        Err(missing) => return nothing(args, &From::Binary(&heap), &missing),
    }
    Ok(if heap.summary().is_damaged() { Outcome::Damaged } else { Outcome::Fine })
}

/// Why there is nothing to show.
enum Missing {
    /// No such object; ids next to it.
    Object(u64, Vec<u64>),
    /// No such class; names like it.
    Class(Vec<String>),
    /// Several classes of that name, the first of them, and how many they are.
    Ambiguous(Vec<NamedClass>, u64),
    /// A class without a class object.
    NotDumped(String),
}

fn find(args: &Args, heap: &Heap, graph: &ObjectGraph) -> Result<u32, Missing> {
    let target = &args.object;
    let pattern = match &target.what {
        What::Object(id) => {
            let found = graph.objects.addresses.index_of(*id);
            return found.ok_or_else(|| Missing::Object(*id, suggestions::object_ids(graph, *id)));
        }
        What::Class(pattern) => pattern,
    };
    match show::find_class(heap.summary(), graph, &target.text, pattern) {
        ClassFound::One(object) => Ok(object),
        ClassFound::Several(classes, total) => Err(Missing::Ambiguous(classes, total)),
        ClassFound::NotDumped(name) => Err(Missing::NotDumped(name)),
        ClassFound::None => {
            let names = suggestions::class_names(heap.summary(), &target.text);
            Err(Missing::Class(names.into_iter().map(str::to_owned).collect()))
        }
    }
}

/// Bytes of an array as one text.
#[derive(Debug)]
struct Encoded {
    text: String,
    /// `hex`, or the encoding that they were taken for.
    form: &'static str,
}

fn encoded(args: &Args, data: &Data<'_>) -> anyhow::Result<Encoded> {
    if args.form == As::Hex {
        return Ok(Encoded { text: data.hexadecimal(), form: "hex" });
    }
    let Some((text, form)) = data.text() else {
        anyhow::bail!(
            "the elements of {} are of type {}: --as text is for byte and char, --as hex for all",
            args.object.text,
            data.kind.java_name()
        );
    };
    Ok(Encoded { text, form: form.name() })
}

fn of_binary(args: &Args, heap: &Heap, graph: &ObjectGraph, object: u32) -> anyhow::Result<()> {
    let bytes = heap.bytes(&Quiet)?;
    let shower = Shower::new(heap.summary(), graph, bytes, View::new(heap, graph, bytes));
    let mut shown = shower.show(object);
    let is_table = args.output.format() == Format::Table;
    let (characters, frames) =
        if is_table { (table::SHOWN_CHARS, table::SHOWN_FRAMES) } else { (MOST_CHARS, MOST_FRAMES) };
    (shown.value, shown.stack) = shower.meaning(object, characters, frames);
    let elements = args.elements();
    let most = if args.has_range() { u64::MAX } else { MOST_CONTENTS };
    shown.contents =
        shower.contents(object, elements.start, elements.end.min(elements.start.saturating_add(most)));
    let mut data = None;
    if args.form != As::Numbers {
        let Some(whole) = shower.data(object, elements.start, elements.end) else {
            anyhow::bail!(
                "{} has no elements of a primitive type: --as is for arrays of them, leave it out",
                args.object.text
            );
        };
        let most = whole.bytes.get(..usize::try_from(MOST_BYTES)?).unwrap_or(whole.bytes);
        if most.len() < whole.bytes.len() {
            args.input.note(&format!("the first {} bytes; --range A..B shows others", grouped(MOST_BYTES)));
        }
        data = Some(Data { bytes: most, ..whole });
    }
    let encoded = data.as_ref().map(|data| encoded(args, data)).transpose()?;
    let most = if data.is_some() { 0 } else { u64::MAX };
    let answer = Answer {
        elements: shower.elements(object, elements.start, elements.end.min(most)),
        more_referrers: (graph.referrers(object).count()).saturating_sub(args.most_referrers()),
        referrers: shower.referrers(object).take(args.most_referrers()),
        shown,
        data,
        encoded,
    };
    answer.write(args, &From::Binary(heap))?;
    // What was shown was made while it was read.
    anyhow::ensure!(!graph.is_damaged(), "the index is damaged, and this answer may be wrong: run it again");
    Ok(())
}

fn of_text(args: &Args, file: &TextFile, recorded: &Recorded) -> anyhow::Result<Outcome> {
    let RecordedFile::Text { report, .. } = &recorded.file else { return Ok(Outcome::No) };
    let path = file.path().display();
    let What::Object(object) = args.object.what else {
        anyhow::bail!("{path} is a text report: give the id of the class object, its CLS line has it");
    };
    anyhow::ensure!(
        args.form == As::Numbers,
        "{path} is a text report, which holds no primitive values: leave --as out"
    );
    let question = text_show::Question { object, elements: args.elements(), incoming: args.incoming };
    let found = text_show::show(file, report.run, &question)?;
    let from = From::Text(recorded);
    let Some(shown) = found.shown else {
        if report.heap.is_none() {
            args.input.note(&format!("{path} holds no HEAP DUMP"));
        }
        return nothing(args, &from, &Missing::Object(object, found.near));
    };
    let answer = Answer {
        shown,
        elements: found.elements.into_iter(),
        more_referrers: found.referrers.len().saturating_sub(args.most_referrers()),
        referrers: found.referrers.into_iter().take(args.most_referrers()),
        data: None,
        encoded: None,
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

/// Says that there is no such object, or not one.
fn nothing(args: &Args, from: &From<'_>, missing: &Missing) -> anyhow::Result<Outcome> {
    let path = args.input.input.path().display();
    let text = &args.object.text;
    let (text, near) = match missing {
        Missing::Object(id, near) => {
            let ids: Vec<String> = near.iter().map(|id| object_id(*id)).collect();
            let near = if ids.is_empty() {
                String::new()
            } else {
                format!("; objects next to it are {}", ids.join(", "))
            };
            (format!("there is no object {id:#x} in {path}{near}"), ids)
        }
        Missing::Class(names) => {
            let near =
                if names.is_empty() { String::new() } else { format!("; there are {}", names.join(", ")) };
            (format!("there is no class {text} in {path}{near}"), names.clone())
        }
        Missing::NotDumped(name) => (
            format!("{path} holds no class object of {name}; `hprof-cli instances` lists its objects"),
            Vec::new(),
        ),
        Missing::Ambiguous(classes, total) => {
            let listed = classes.iter().map(|class| match class.loader {
                0 => format!("{} {}", class.name, object_id(class.id)),
                loader => format!("{} {} of loader {loader:#x}", class.name, object_id(class.id)),
            });
            let mut listed: Vec<String> = listed.collect();
            let more = total.saturating_sub(classes.len() as u64);
            if more > 0 {
                listed.push(format!("{} more", grouped(more)));
            }
            let text = format!(
                "{text} is {} classes; take one by the id of its class object: {}",
                grouped(*total),
                listed.join(", ")
            );
            (text, classes.iter().map(|class| object_id(class.id)).collect())
        }
    };
    messages::line("error", &text);
    let mut out = output::stdout();
    match args.output.format() {
        Format::Table => {}
        Format::Json => from.json(&mut out, [(); 0], json!({ "near": near }))?,
        Format::Csv => csv::write_flat(&mut out, PartOut::<String>::COLUMNS, std::iter::empty::<()>())?,
    }
    output::finish(out)?;
    Ok(Outcome::No)
}

/// An object with its elements and with what refers to it.
struct Answer<'a, P, R> {
    shown: Shown,
    elements: P,
    referrers: R,
    /// Objects that refer to it and are not among `referrers`.
    more_referrers: usize,
    /// Elements as bytes, instead of `elements`.
    data: Option<Data<'a>>,
    encoded: Option<Encoded>,
}

impl<P: Iterator<Item = Part>, R: Iterator<Item = Referrer>> Answer<'_, P, R> {
    fn write(mut self, args: &Args, from: &From<'_>) -> anyhow::Result<()> {
        let mut out = output::stdout();
        let fields = std::mem::take(&mut self.shown.fields);
        match args.output.format() {
            Format::Table => self.table(&mut out, args, &fields)?,
            Format::Json => {
                let parts = fields.into_iter().chain(self.elements).map(|part| PartOut::json(&part));
                let incoming = args.incoming.then(|| Streamed::new(self.referrers.map(ReferrerOut::new)));
                let row = ObjectOut::new(&self.shown, Streamed::new(parts), incoming, self.encoded);
                from.json(&mut out, [row], json!({}))?;
            }
            Format::Csv if self.encoded.is_some() => {
                let rows = self.encoded.iter().map(|data| (data.form, object::cell(&data.text)));
                csv::write_flat(&mut out, &["data_form", "data"], rows)?;
            }
            Format::Csv => {
                let parts = fields.into_iter().chain(self.elements).map(|part| PartOut::csv(&part));
                csv::write_flat(&mut out, PartOut::<String>::COLUMNS, parts)?;
            }
        }
        output::finish(out)
    }
}

/// A UTF-16 unit; half of a character becomes an escape.
fn character(unit: u16) -> String {
    char::from_u32(u32::from(unit)).map_or_else(|| format!("\\u{unit:04x}"), String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_characters() {
        assert_eq!((character(0x41), character(0xd800)), ("A".to_owned(), "\\ud800".to_owned()));
    }
}
