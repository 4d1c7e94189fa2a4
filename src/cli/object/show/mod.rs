//! `show`: an object, its fields or elements, and its referrers.

mod columns;
mod table;
mod target;

use std::ops::Range;

use clap::ValueEnum;

use hprof_index::Dump;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_input::file::TextFile;
use hprof_query::frameworks::{FrameworkDescription, KnownFrameworks};
use hprof_query::naming::suggestions;
use hprof_query::objects::collections::CollectionKind;
use hprof_query::paths::steps::View;
use hprof_query::recordings::profile::text::show as text_show;
use hprof_query::show::{self, ClassCandidate, ClassFound, Data, Referrer, Shower, ShownObject, ShownPart};
use hprof_report::number::format_count;
use hprof_values::{ObjectId, TraceSerial};

use crate::cli::prelude::*;
use crate::cli::shared::frameworks::FrameworksArgs;
use crate::cli::shared::limit::{DEFAULT_TOP_OBJECTS, limit};
use crate::cli::shared::object;
use crate::cli::shared::recording::{RecordedFile, RecordedInput, RecordedProfile};
use crate::cli::shared::session::KEPT;
use columns::{ArrayText, Object, PartLine};
use table::TableDetails;
use target::{ShowSubject, ShowTarget, range, target};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli show heap.hprof 0x7c00012a8 --incoming
  hprof-cli show heap.hprof '0x7c00012a8[100..200]'
  hprof-cli show heap.hprof 0x7c00012a8 --as hex
  hprof-cli show heap.hprof com.acme.Cache
  hprof-cli show heap.hprof 0x7c00012a8 --format json | jq '.rows[0].fields[] | {name, value}'";

/// Default number of array elements in a table.
const DEFAULT_ELEMENTS: u64 = 20;
/// Default number of elements of a collection in JSON and CSV: unlike array elements, they are collected before any is shown.
const MAX_CONTENTS: u64 = 10_000;

/// Maximum number of characters of a value in JSON and CSV.
const MAX_CHARS: usize = 1 << 20;
/// Maximum number of stack frames in JSON and CSV.
const MAX_FRAMES: usize = 10_000;
/// Maximum number of bytes of an array shown as one text.
const MAX_BYTES: u64 = 16 << 20;
/// Default number of bytes and characters of an array in a table.
const DEFAULT_BYTES: u64 = 320;
const DEFAULT_TEXT: u64 = 2000;

/// Show an object or a class
///
/// Shows the class, the sizes and the fields or elements of an object, including inherited fields, and
/// decodes well-known classes: strings, numbers, dates, paths, collections. For a class, shows its
/// static fields, superclass, loader and instance counts. A text report contains only references that
/// are not null. Use `refs` to list references and referrers by field.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    input: RecordedInput,

    /// Object ID, for example `0x7c00012a8`, or with a range of array elements, `0x7c00012a8[100..200]`; or a class,
    /// for example `java.util.HashMap`, `HashMap`
    #[arg(value_name = "OBJECT|CLASS", value_parser = target, help_heading = "Filter")]
    object: ShowTarget,

    /// Array elements to show, counting from 0: `100..200`, `100..`, `5` [default: first 20 in a table, all in JSON and
    /// CSV]
    #[arg(long, value_name = "A..B", value_parser = range, help_heading = "Filter")]
    range: Option<Range<u64>>,

    /// How to show the elements of a primitive array
    #[arg(long = "as", value_name = "FORM", default_value = "numbers", help_heading = "Output")]
    form: As,

    /// Show the referrers of the object as well
    #[arg(long, help_heading = "Output")]
    incoming: bool,

    /// Show only the first N rows of referrers; 0 for all [default: 20 in a table, all in JSON]
    #[arg(long, value_name = "N", requires = "incoming", help_heading = "Output")]
    top: Option<usize>,

    #[command(flatten)]
    frameworks: FrameworksArgs,

    #[command(flatten)]
    output: Output,
}

/// Form of the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum As {
    /// Element by element
    Numbers,
    /// Bytes in hexadecimal, big-endian
    Hex,
    /// Text: bytes as UTF-8 or else ISO 8859-1, chars as UTF-16
    Text,
}

impl ShowArgs {
    /// Returns the range that was given with the target or with `--range`, if any.
    fn given_range(&self) -> Option<Range<u64>> {
        self.range.clone().or_else(|| self.object.range.clone())
    }

    fn has_range(&self) -> bool {
        self.given_range().is_some()
    }

    fn elements(&self, format: Format) -> Range<u64> {
        let default = match (format, self.form) {
            (Format::Table, As::Numbers) => 0..DEFAULT_ELEMENTS,
            (Format::Table, As::Hex) => 0..DEFAULT_BYTES,
            (Format::Table, As::Text) => 0..DEFAULT_TEXT,
            _ => 0..u64::MAX,
        };
        self.given_range().unwrap_or(default)
    }

    fn most_referrers(&self, format: Format) -> usize {
        // CSV does not contain referrers.
        if !self.incoming || format == Format::Csv {
            return 0;
        }
        limit(self.top, format, DEFAULT_TOP_OBJECTS).unwrap_or(usize::MAX)
    }
}

pub(crate) fn run(cx: &RunContext, args: &ShowArgs) -> anyhow::Result<Outcome> {
    anyhow::ensure!(
        args.range.is_none() || args.object.range.is_none(),
        "--range and a range after the object ID mean the same; omit one"
    );
    if let Some((file, recorded)) = args.input.open_text(cx)? {
        return of_text(cx, args, &file, &recorded);
    }
    let rules = args.frameworks.rules(cx)?;
    let (session, found) = Session::ask(cx, &args.input.input, |dump| {
        let object = match find(args, dump) {
            Ok(object) => object,
            Err(missing) => return Ok(Err(missing)),
        };
        let known = KnownFrameworks::new(dump, &rules).describe(object);
        let shower = shower(dump);
        // A table has fewer elements and referrers than JSON.
        let look = |format: &Format| look(args, *format, dump, &shower, object);
        let looked: Vec<_> = cx.formats(args.output.format()).iter().map(look).collect();
        Ok(Ok((object, looked, known)))
    })?;
    match found {
        Ok((object, looked, known)) => of_binary(cx, args, &session, object, looked, known.as_ref()),
        Err(missing) => nothing(cx, args, &session, &missing),
    }
}

/// Reason why there is nothing to show.
enum Missing {
    /// The object does not exist; with the nearest IDs.
    Object(ObjectId, Vec<ObjectId>),
    /// The class does not exist; with similar names.
    Class(Vec<String>),
    /// Several classes have the name: the first of them, and their number.
    Ambiguous(Vec<ClassCandidate>, u64),
    /// The class has no class object in the dump.
    NotDumped(String),
}

fn find(args: &ShowArgs, dump: &Dump<'_>) -> Result<ObjectIndex, Missing> {
    let target = &args.object.resolve(dump.summary);
    let pattern = match &target.what {
        ShowSubject::Object(id) => {
            let found = dump.graph.objects.addresses.index_of(*id);
            return found.ok_or_else(|| Missing::Object(*id, suggestions::object_ids(dump.graph, *id)));
        }
        ShowSubject::Class(pattern) => pattern,
    };
    match show::find_class(dump, &target.text, pattern) {
        ClassFound::One(object) => Ok(object),
        ClassFound::Several(classes, total) => Err(Missing::Ambiguous(classes, total)),
        ClassFound::NotDumped(name) => Err(Missing::NotDumped(name)),
        ClassFound::None => {
            let names = suggestions::class_names(dump.summary, &target.text);
            Err(Missing::Class(names.into_iter().map(str::to_owned).collect()))
        }
    }
}

fn encode_array(args: &ShowArgs, data: &Data<'_>) -> anyhow::Result<ArrayText> {
    if args.form == As::Hex {
        return Ok(ArrayText { text: data.hexadecimal(), form: "hex" });
    }
    let Some((text, form)) = data.text() else {
        anyhow::bail!(
            "the elements of {} are of type {}, but --as text requires byte or char; --as hex shows all types",
            args.object.text,
            data.kind.java_name()
        );
    };
    Ok(ArrayText { text, form: form.name() })
}

/// An object as read before anything is shown: at most [`KEPT`] of its elements and referrers.
struct ObjectPreview {
    /// The object without its fields and elements.
    shown: ShownObject,
    /// Fields, followed by elements.
    parts: Vec<ShownPart>,
    /// Range of elements that are not computed yet.
    rest: Range<u64>,
    referrers: Vec<Referrer>,
    more_referrers: usize,
}

fn shower<'a>(dump: &Dump<'a>) -> Shower<'a> {
    Shower::new(dump, View::new(dump))
}

fn look(
    args: &ShowArgs,
    format: Format,
    dump: &Dump<'_>,
    shower: &Shower<'_>,
    index: ObjectIndex,
) -> ObjectPreview {
    let mut shown = shower.show(index);
    // HotSpot assigns trace 1, which is empty, to all objects.
    let has_traces = dump.summary.facts().max_trace.get() > 1;
    if format == Format::Table && !has_traces {
        shown.trace = TraceSerial::default();
    }
    let (characters, frames) = match format {
        Format::Table => (table::SHOWN_CHARS, table::SHOWN_FRAMES),
        Format::Json | Format::Csv => (MAX_CHARS, MAX_FRAMES),
    };
    (shown.value, shown.stack) = shower.meaning(index, characters, frames);
    let Range { start, end } = args.elements(format);
    let most = if args.has_range() { u64::MAX } else { MAX_CONTENTS };
    shown.contents = shower.contents(index, start, end.min(start.saturating_add(most)));
    let end = if args.form == As::Numbers { end } else { start };
    let made = end.min(start.saturating_add(KEPT as u64));
    let mut parts = std::mem::take(&mut shown.fields);
    parts.extend(shower.elements(index, start, made));
    let most = args.most_referrers(format);
    let more_referrers = dump.graph.referrers(index).count().saturating_sub(most);
    let referrers = shower.referrers(index, 0).take(most.min(KEPT)).collect();
    ObjectPreview { shown, parts, rest: made..end, referrers, more_referrers }
}

fn of_binary(
    cx: &RunContext,
    args: &ShowArgs,
    session: &Session,
    index: ObjectIndex,
    looked: Vec<ObjectPreview>,
    known: Option<&FrameworkDescription>,
) -> anyhow::Result<Outcome> {
    let shower = shower(&session.dump()?);
    let length = looked.first().and_then(|looked| looked.shown.length);
    let mut looked = looked.into_iter();
    let (mut is_cut, mut has_more) = (false, false);
    cx.for_each_format(args.output.format(), |cx, format| {
        let Some(looked) = looked.next() else { return Ok(()) };
        let ObjectPreview { shown, parts, rest, referrers, more_referrers } = looked;
        let data = data(args, format, &shower, index)?;
        is_cut |= data.as_ref().is_some_and(|(_, is_cut)| *is_cut);
        // A table says so itself.
        has_more |= format != Format::Table && shown.contents.as_ref().is_some_and(|held| held.has_more);
        let data = data.map(|(data, _)| data);
        let encoded = data.as_ref().map(|data| encode_array(args, data)).transpose()?;
        let elements = || shower.elements(index, rest.start, rest.end);
        let parts = || boxed(parts.iter().cloned().chain(elements()).map(PartLine::Part));
        let left = args.most_referrers(format).saturating_sub(KEPT);
        let more = || shower.referrers(index, KEPT).take(left);
        let more = || (referrers.len() == KEPT).then(more).into_iter().flatten();
        let referrers = || boxed(referrers.iter().cloned().chain(more()));
        let object = Object {
            shown,
            parts: &parts,
            referrers: args.incoming.then_some(&referrers),
            data: encoded,
            known: known.cloned(),
        };
        let hex = data.filter(|_| args.form == As::Hex);
        write(cx, args, format, session, object, hex, more_referrers)
    })?;
    if is_cut {
        let shown = group_digits(MAX_BYTES);
        args.input.note(cx, &format!("only the first {shown} bytes are shown; --range A..B shows others"));
    }
    if has_more && !args.has_range() {
        let shown = group_digits(MAX_CONTENTS);
        args.input.note(cx, &format!("only the first {shown} elements are shown; --range A..B shows others"));
    }
    Ok(outcome(cx, args, session, length))
}

/// Returns the elements that `--as` shows as one text, and whether some are left out because of the size limit.
fn data<'a>(
    args: &ShowArgs,
    format: Format,
    shower: &Shower<'a>,
    index: ObjectIndex,
) -> anyhow::Result<Option<(Data<'a>, bool)>> {
    if args.form == As::Numbers {
        return Ok(None);
    }
    let Range { start, end } = args.elements(format);
    let Some(whole) = shower.data(index, start, end) else {
        anyhow::bail!(
            "{} is not a primitive array; omit --as, which shows only primitive arrays",
            args.object.text
        );
    };
    let most = whole.bytes.get(..usize::try_from(MAX_BYTES)?).unwrap_or(whole.bytes);
    let is_cut = most.len() < whole.bytes.len();
    Ok(Some((Data { bytes: most, ..whole }, is_cut)))
}

fn of_text(
    cx: &RunContext,
    args: &ShowArgs,
    file: &TextFile,
    recorded: &RecordedProfile,
) -> anyhow::Result<Outcome> {
    let RecordedFile::Text { report, .. } = &recorded.file else { return Ok(recorded.outcome(false)) };
    let path = file.path().display();
    let ShowSubject::Object(object) = args.object.what else {
        anyhow::bail!("{path} is a text report; give the ID of the class object, which is in its CLS line");
    };
    anyhow::ensure!(
        args.form == As::Numbers,
        "{path} is a text report, which contains no primitive values; omit --as"
    );
    let read = |format| {
        let elements = args.elements(format);
        text_show::show(
            file,
            report.run,
            &text_show::TextObjectQuery { object, elements, incoming: args.incoming },
        )
    };
    let found = read(args.output.format())?;
    let Some(shown) = &found.shown else {
        if report.heap.is_none() {
            args.input.note(cx, &format!("{path} contains no HEAP DUMP"));
        }
        return nothing(cx, args, recorded, &Missing::Object(object, found.nearest));
    };
    let length = shown.length;
    // A table has fewer elements than JSON. All are read before one is shown.
    let others = cx.formats(args.output.format()).iter().skip(1).map(|format| read(*format));
    let mut found = std::iter::once(Ok(found)).chain(others).collect::<Result<Vec<_>, _>>()?.into_iter();
    cx.for_each_format(args.output.format(), |cx, format| {
        let Some(found) = found.next() else { return Ok(()) };
        let mut shown = found.shown.unwrap_or_default();
        let fields = std::mem::take(&mut shown.fields);
        let most = args.most_referrers(format);
        let more_referrers = found.referrers.len().saturating_sub(most);
        let parts = || boxed(fields.iter().chain(&found.elements).cloned().map(PartLine::Part));
        let referrers = || boxed(found.referrers.iter().take(most).cloned());
        let referrers: Option<columns::LazyItems<'_, _>> = args.incoming.then_some(&referrers);
        let object = Object { shown, parts: &parts, referrers, data: None, known: None };
        write(cx, args, format, recorded, object, None, more_referrers)
    })?;
    Ok(outcome(cx, args, recorded, length))
}

fn boxed<'a, T>(items: impl Iterator<Item = T> + 'a) -> Box<dyn Iterator<Item = T> + 'a> {
    Box::new(items)
}

/// Shows an object in a format: one row in JSON; in CSV its fields or elements, or the elements of a collection; in tables both.
fn write(
    cx: &RunContext,
    args: &ShowArgs,
    format: Format,
    source: &impl AnswerSource,
    object: Object<'_>,
    hex: Option<Data<'_>>,
    more_referrers: usize,
) -> anyhow::Result<()> {
    match (format, &object.data) {
        (Format::Table, _) => {
            let Range { start, end } = args.elements(format);
            let default_end = (!args.has_range()).then_some(end);
            let extent = TableDetails { start, default_end, hex, more_referrers };
            source.show_in(cx, "show", &args.output, format, table::answer(object, &extent))?
        }
        (Format::Json, _) => {
            let answer = Answer::new(columns::object_columns(), [object]);
            source.show_in(cx, "show", &args.output, format, answer)?
        }
        (Format::Csv, Some(data)) => {
            let answer = Answer::new(columns::data_columns(), [data.clone()]);
            source.show_in(cx, "show", &args.output, format, answer)?
        }
        (Format::Csv, None) if object.shown.contents.is_some() => {
            // As in a table, the elements of a collection are what is asked for, not its fields.
            let entries = object.shown.contents.map(|contents| contents.entries).unwrap_or_default();
            let answer = Answer::new(columns::entry_columns(CollectionKind::Map), entries);
            source.show_in(cx, "show", &args.output, format, answer)?
        }
        (Format::Csv, None) => {
            let answer = Answer::new(columns::part_columns("field"), (object.parts)());
            source.show_in(cx, "show", &args.output, format, answer)?
        }
    };
    Ok(())
}

/// Returns the outcome for an object of this length; prints a note if the range begins after its end.
fn outcome(cx: &RunContext, args: &ShowArgs, source: &impl AnswerSource, length: Option<u64>) -> Outcome {
    let beyond = args.given_range().zip(length).filter(|(range, length)| range.start >= *length);
    if let Some((range, length)) = &beyond {
        let (start, length) = (group_digits(range.start), format_count(*length, "element"));
        let text = &args.object.text;
        args.input
            .note(cx, &format!("index {start} is out of range: {text} has {length}; indices start at 0"));
    }
    source.outcome(beyond.is_none())
}

/// Reports that the object does not exist or is ambiguous.
fn nothing(
    cx: &RunContext,
    args: &ShowArgs,
    source: &impl AnswerSource,
    missing: &Missing,
) -> anyhow::Result<Outcome> {
    let path = args.input.input.path().display();
    let text = &args.object.text;
    let (text, suggestions) = match missing {
        Missing::Object(id, nearest) => {
            let ids: Vec<String> = nearest.iter().map(|id| format!("{id:#x}")).collect();
            (object::not_found(*id, args.input.input.path(), nearest), ids)
        }
        Missing::Class(names) => {
            let hint = if names.is_empty() {
                String::new()
            } else {
                format!("; {}", suggestions::did_you_mean(names))
            };
            (format!("no class {text} in {path}{hint}"), names.clone())
        }
        Missing::NotDumped(name) => (
            format!("{path} contains no class object of {name}; `hprof-cli instances` lists its objects"),
            Vec::new(),
        ),
        Missing::Ambiguous(classes, total) => {
            let listed = classes.iter().map(|class| match class.loader {
                ObjectId::NULL => format!("{} {:#x}", class.name, class.id),
                loader => format!("{} {:#x} of loader {loader:#x}", class.name, class.id),
            });
            let mut listed: Vec<String> = listed.collect();
            let more = total.saturating_sub(classes.len() as u64);
            if more > 0 {
                listed.push(format!("{} more", group_digits(more)));
            }
            let text = format!(
                "{text} matches {} classes; name one by the ID of its class object: {}",
                group_digits(*total),
                listed.join(", ")
            );
            (text, classes.iter().map(|class| format!("{:#x}", class.id)).collect())
        }
    };
    cx.emit("error", &text);
    if args.output.format() == Format::Json {
        let answer = Answer::new(columns::object_columns(), [])
            .with_summary(&columns::suggestion_columns(), &suggestions);
        source.show(cx, "show", &args.output, answer)?;
    } else {
        let answer = Answer::new(columns::part_columns("field"), []).if_empty(NoRows::Nothing);
        source.show(cx, "show", &args.output, answer)?;
    }
    Ok(source.outcome(false))
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    columns::row_schema()
}
