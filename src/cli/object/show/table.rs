//! An object in a table: the lines above and below the table of its fields or elements.

use hprof_query::frameworks::FrameworkDescription;
use hprof_query::show::{
    Contents, Data, Dominator, ObjectKind, Referrer, RootShown, ShownClass, ShownObject,
};
use hprof_report::answer::{Answer, NoRows, Section};
use hprof_report::number::group_digits;
use hprof_report::table::TableBuilder;
use hprof_values::TraceSerial;

use crate::cli::shared::frameworks::facts_text;

use super::columns::{
    Object, PartLine, declared_columns, describe, entry_columns, loader_text, part_columns, referrer_columns,
};

/// Maximum number of characters shown of a value. JSON contains all of them.
pub(super) const SHOWN_CHARS: usize = 1000;
/// Maximum number of stack frames shown.
pub(super) const SHOWN_FRAMES: usize = 20;
/// Maximum number of characters of a value on the line of its name. A terminal would shorten longer ones.
const LINE_CHARS: usize = 60;
/// Number of bytes per line of hexadecimal output.
const LINE: usize = 16;

/// Data that a table shows in addition to the object.
pub(super) struct TableDetails<'a> {
    /// First requested element of an array or collection.
    pub(super) start: u64,
    /// Default end of the elements shown; `None` if a range was given.
    pub(super) default_end: Option<u64>,
    /// Bytes of the array, with `--as hex`.
    pub(super) hex: Option<Data<'a>>,
    /// Number of referrers that are not shown.
    pub(super) more_referrers: usize,
}

/// Returns the table of an object.
pub(super) fn answer<'a>(object: Object<'a>, extent: &TableDetails<'_>) -> Answer<'a, PartLine> {
    let shown = &object.shown;
    let mut above = head(shown, object.known.as_ref());
    if let Some(class) = &shown.of_class {
        above.push(line(""));
        above.extend(of_class(class));
    }
    let (class, is_instance) = (shown.class.clone(), shown.kind == ObjectKind::Instance);
    let mut rows = with_superclasses((object.parts)(), class.filter(|_| is_instance)).peekable();
    if rows.peek().is_some() {
        above.push(line(""));
    }
    let mut under = Vec::new();
    if let Some(encoded) = &object.data {
        under.push(line(""));
        match &extent.hex {
            Some(data) => under.extend(hexdump(data)),
            None => under.push(Section::Text(encoded.text.clone())),
        }
    }
    if let Some(contents) = &shown.contents {
        under.extend(of_contents(contents, extent.start));
    }
    if let (Some(length), Some(end)) = (shown.length, extent.default_end)
        && length > end
    {
        let (first, length) = (group_digits(end), group_digits(length));
        under.push(Section::Line(format!(
            "the first {first} of {length} elements; --range A..B shows others"
        )));
    }
    if let Some(stack) = &shown.stack {
        let what =
            if stack.classes_only { "allocated at (the dump contains no methods):" } else { "created at:" };
        under.extend([line(""), line(what)]);
        under.extend(stack.frames.iter().map(|frame| Section::Line(format!("  {frame}"))));
        if stack.more > 0 {
            let more = group_digits(stack.more);
            under.push(Section::Line(format!("  {more} more; --format json shows all")));
        }
    }
    if let Some(referrers) = object.referrers {
        under.extend(of_referrers(referrers(), extent.more_referrers));
    }
    let is_array = matches!(shown.kind, ObjectKind::ObjectArray | ObjectKind::PrimitiveArray);
    let columns = part_columns(if is_array { "index" } else { "field" });
    let answer = Answer::new(columns, rows).if_empty(NoRows::Nothing);
    under
        .into_iter()
        .fold(above.into_iter().fold(answer, Answer::with_section_above), Answer::with_section_below)
}

fn line(text: &str) -> Section {
    Section::Line(text.to_owned())
}

/// Groups the parts of an instance of `class` by class, its own fields first, with the superclass name above each
/// other group.
fn with_superclasses(
    parts: impl Iterator<Item = PartLine>,
    class: Option<String>,
) -> impl Iterator<Item = PartLine> {
    let mut of: Option<String> = None;
    parts.flat_map(move |line| {
        let mut title = None;
        if let (PartLine::Part(part), Some(class)) = (&line, &class)
            && part.class != of
        {
            of.clone_from(&part.class);
            title = of.clone().filter(|of| of != class).map(PartLine::Superclass);
        }
        title.into_iter().chain([line])
    })
}

/// Returns a table of names and texts without a header.
fn pairs(rows: impl IntoIterator<Item = (&'static str, String)>) -> Section {
    Section::Table(TableBuilder::pairs(rows))
}

/// Returns the sections that all kinds of objects have.
fn head(shown: &ShownObject, known: Option<&FrameworkDescription>) -> Vec<Section> {
    let size = |bytes: Option<u64>| bytes.map(|bytes| format!("{} bytes", group_digits(bytes)));
    let class = shown.class.as_deref().unwrap_or("<unknown class>");
    let class = match shown.class_object {
        Some(id) => format!("{class}, class object {id:#x}"),
        None => class.to_owned(),
    };
    let value = shown.value.as_ref();
    let is_long = |text: &str| text.contains('\n') || text.chars().nth(LINE_CHARS).is_some();
    let long = value.filter(|value| value.is_cut || is_long(&value.text));
    let dominator = shown.dominator.as_ref().map(|dominator| match dominator {
        Dominator::Roots => "root".to_owned(),
        Dominator::Object(to) => describe(to),
    });
    let rows = [
        ("object", Some(format!("{:#x}", shown.object))),
        ("kind", Some(shown.kind.name().to_owned())),
        ("class", Some(class)),
        ("loader", shown.loader.as_ref().map(loader_text)),
        // Omitted if there is a value: the label is its start.
        ("label", shown.label.clone().filter(|_| value.is_none())),
        ("value", value.filter(|_| long.is_none()).map(|value| value.text.clone())),
        ("framework", known.map(|known| known.framework.to_string())),
        ("called", known.and_then(|known| known.called.clone())),
        ("facts", known.map(|known| facts_text(&known.facts)).filter(|text| !text.is_empty())),
        ("says", known.and_then(|known| known.text.clone())),
        ("shallow", size(shown.shallow_bytes)),
        ("retained", size(shown.retained_bytes)),
        ("dominator", dominator),
        ("trace", Some(shown.trace.to_string()).filter(|_| shown.trace != TraceSerial::NONE)),
        ("length", shown.length.map(group_digits)),
    ];
    let rows = rows.into_iter().filter_map(|(name, text)| Some((name, text?)));
    let mut sections = vec![pairs(rows.chain(shown.roots.iter().map(|root| ("root", root_text(root)))))];
    if let Some(value) = long {
        sections.extend([line(""), line("value"), Section::Text(value.text.clone())]);
        if value.is_cut {
            let shown = group_digits(value.text.chars().count() as u64);
            sections.push(Section::Line(format!(
                "the first {shown} characters of the value; --format json shows more"
            )));
        }
    }
    sections
}

/// Returns the sections about the class that a class object represents.
fn of_class(class: &ShownClass) -> Vec<Section> {
    let rows = [
        ("of class", Some(class.name.clone())),
        ("superclass", class.superclass.as_ref().map(describe)),
        ("instances", Some(group_digits(class.instances))),
        ("bytes each", class.instance_bytes.map(group_digits)),
        ("total bytes", Some(group_digits(class.shallow_bytes))),
    ];
    let mut sections = vec![pairs(rows.into_iter().filter_map(|(name, text)| Some((name, text?))))];
    if !class.fields.is_empty() {
        sections.extend([line(""), Section::table(&declared_columns(), class.fields.iter().cloned())]);
    }
    sections
}

/// Formats bytes as hexdump does, 16 per line.
fn hexdump(data: &Data<'_>) -> Option<Section> {
    let line = |(number, bytes): (usize, &[u8])| {
        let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let (left, right) = digits.split_at_checked(LINE / 2).unwrap_or((&digits, &[]));
        let digits = format!("{}  {}", left.join(" "), right.join(" "));
        let printable = |byte: &u8| if matches!(byte, b' '..=b'~') { char::from(*byte) } else { '.' };
        let ascii: String = bytes.iter().map(printable).collect();
        let offset = data.offset + (number * LINE) as u64;
        format!("{offset:08x}  {digits:<width$}  |{ascii}|", width = LINE * 3)
    };
    let lines: Vec<String> = data.bytes.chunks(LINE).enumerate().map(line).collect();
    (!lines.is_empty()).then(|| Section::Text(lines.join("\n")))
}

/// Returns the sections with the elements of a collection from index `start` on.
fn of_contents(contents: &Contents, start: u64) -> Vec<Section> {
    let (kind, shown) = (contents.kind.name(), contents.entries.len() as u64);
    let mut sections = vec![line("")];
    if shown > 0 {
        sections.push(Section::table(&entry_columns(contents.kind), contents.entries.iter().cloned()));
    }
    let more = contents.size.filter(|size| *size > shown);
    let text = match more.map(group_digits) {
        Some(size) if contents.has_more || (start > 0 && shown > 0) => {
            format!("{} of {size} elements of the {kind}; --range A..B shows others", group_digits(shown))
        }
        None if contents.has_more => {
            format!("the first {} elements of the {kind}; --range A..B shows others", group_digits(shown))
        }
        _ if shown == 0 && start > 0 => format!("the {kind} has no elements from {start} on"),
        Some(size) => format!("only {shown} of the {size} elements of the {kind} could be read"),
        None if shown == 0 => format!("an empty {kind}"),
        None => return sections,
    };
    sections.push(Section::Line(text));
    sections
}

/// Returns the section of referrers.
fn of_referrers(referrers: impl Iterator<Item = Referrer>, more: usize) -> Vec<Section> {
    let mut referrers = referrers.peekable();
    let table = match referrers.peek() {
        None => line("no object refers to it"),
        Some(_) => Section::table(&referrer_columns(), referrers),
    };
    let mut sections = vec![line(""), table];
    if more > 0 {
        let more = group_digits(more as u64);
        sections.push(Section::Line(format!("{more} more referrers (--top 0 shows all)")));
    }
    sections
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
