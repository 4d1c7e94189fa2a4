//! An object as people read it.

use std::io::Write;

use crate::query::objects::collections;
use crate::query::objects::meaning;
use crate::query::objects::show::{
    ClassShown, Contents, Data, Dominator, Kind, Part, Referrer, RootShown, Shown, Value,
};
use crate::report::table::{Align, Builder, Style, grouped};
use crate::report::{escape, json::object_id};

use super::json::loader_text;
use super::{Answer, Args, As, character, output};
use crate::cli::shared::object;

/// Characters of a value that are shown. JSON has all of it.
pub(super) const SHOWN_CHARS: usize = 1000;
/// Frames of a stack that are shown.
pub(super) const SHOWN_FRAMES: usize = 20;
/// Characters of a value that stand in one line with its name. A terminal would shorten longer ones.
const LINE_CHARS: usize = 60;
/// Bytes in a line of hexadecimal.
const LINE: usize = 16;

impl<P: Iterator<Item = Part>, R: Iterator<Item = Referrer>> Answer<'_, P, R> {
    pub(super) fn table(self, out: &mut dyn Write, args: &Args, fields: &[Part]) -> anyhow::Result<()> {
        let style = output::style(&args.output);
        let shown = &self.shown;
        head(out, shown, style)?;
        if let Some(class) = &shown.of_class {
            writeln!(out)?;
            table_of_class(out, class, style)?;
        }
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
        let elements = args.elements();
        if let (Some(data), Some(encoded)) = (&self.data, &self.encoded) {
            writeln!(out)?;
            match args.form {
                As::Text => lines(out, &encoded.text)?,
                _ => hexdump(out, data)?,
            }
        }
        if let Some(contents) = &shown.contents {
            table_of_contents(out, contents, args.elements().start, style)?;
        }
        if let Some(length) = shown.length
            && !args.has_range()
            && length > elements.end
        {
            let (first, length) = (grouped(elements.end), grouped(length));
            writeln!(out, "the first {first} of {length} elements; --range A..B shows others")?;
        }
        if let Some(stack) = &shown.stack {
            writeln!(out)?;
            let what = if stack.classes_only { "made in (the dump has no methods):" } else { "made in:" };
            writeln!(out, "{what}")?;
            for frame in &stack.frames {
                writeln!(out, "  {}", escape::text(frame))?;
            }
            if stack.more > 0 {
                writeln!(out, "  {} more; --format json shows all", grouped(stack.more))?;
            }
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

/// What there is to say of any object.
fn head(out: &mut dyn Write, shown: &Shown, style: Style) -> anyhow::Result<()> {
    let mut head = Builder::new(&[("", Align::Left), ("", Align::Left)]);
    let size = |bytes: Option<u64>| bytes.map(|bytes| format!("{} bytes", grouped(bytes)));
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
        Dominator::Object(to) => object::describe(to.class.as_deref(), to.object, to.label.as_deref()),
    });
    let rows = [
        ("object", Some(object_id(shown.object))),
        ("kind", Some(shown.kind.name().to_owned())),
        ("class", Some(class)),
        ("loader", shown.loader.as_ref().map(loader_text)),
        // The label is the start of the value.
        ("label", shown.label.clone().filter(|_| value.is_none())),
        ("value", value.filter(|_| long.is_none()).map(|value| value.text.clone())),
        ("shallow", size(shown.shallow_bytes)),
        ("retained", size(shown.retained_bytes)),
        ("dominator", dominator),
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
    if let Some(value) = long {
        writeln!(out, "\nvalue")?;
        lines(out, &value.text)?;
        if value.is_cut {
            let shown = grouped(value.text.chars().count() as u64);
            writeln!(out, "the first {shown} characters of the value; --format json shows more")?;
        }
    }
    Ok(())
}

/// The class of a class object.
fn table_of_class(out: &mut dyn Write, class: &ClassShown, style: Style) -> anyhow::Result<()> {
    let mut head = Builder::new(&[("", Align::Left), ("", Align::Left)]);
    head.row(["of class", &class.name]);
    if let Some(to) = &class.superclass {
        head.row(["superclass", &object::describe(to.class.as_deref(), to.object, to.label.as_deref())]);
    }
    head.row(["instances", &grouped(class.instances)]);
    if let Some(bytes) = class.instance_bytes {
        head.row(["bytes each", &grouped(bytes)]);
    }
    head.row(["bytes of all", &grouped(class.shallow_bytes)]);
    head.write(out, style)?;
    if !class.fields.is_empty() {
        let mut table = Builder::new(&[("declared field", Align::Left), ("type", Align::Left)]);
        for field in &class.fields {
            table.row([field.name.as_str(), field.kind.java_name()]);
        }
        writeln!(out)?;
        table.write(out, style)?;
    }
    Ok(())
}

/// Sixteen bytes a line, as hexdump shows them.
fn hexdump(out: &mut dyn Write, data: &Data<'_>) -> anyhow::Result<()> {
    for (line, bytes) in data.bytes.chunks(LINE).enumerate() {
        let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let (left, right) = digits.split_at_checked(LINE / 2).unwrap_or((&digits, &[]));
        let digits = format!("{}  {}", left.join(" "), right.join(" "));
        let printable = |byte: &u8| if matches!(byte, b' '..=b'~') { char::from(*byte) } else { '.' };
        let ascii: String = bytes.iter().map(printable).collect();
        writeln!(
            out,
            "{:08x}  {digits:<width$}  |{ascii}|",
            data.offset + (line * LINE) as u64,
            width = LINE * 3
        )?;
    }
    Ok(())
}

/// Text, line by line.
fn lines(out: &mut dyn Write, text: &str) -> anyhow::Result<()> {
    for line in text.split('\n') {
        writeln!(out, "{}", escape::text(line))?;
    }
    Ok(())
}

/// What a collection holds.
fn table_of_contents(
    out: &mut dyn Write,
    contents: &Contents,
    start: u64,
    style: Style,
) -> anyhow::Result<()> {
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
    let (kind, shown) = (contents.kind.name(), contents.entries.len() as u64);
    if shown > 0 {
        table.write(out, style)?;
    }
    let more = contents.size.filter(|size| *size > shown);
    match more.map(grouped) {
        Some(size) if contents.has_more || (start > 0 && shown > 0) => {
            let shown = grouped(shown);
            writeln!(out, "{shown} of {size} elements of the {kind}; --range A..B shows others")?;
        }
        None if contents.has_more => {
            writeln!(out, "the first {} elements of the {kind}; --range A..B shows others", grouped(shown))?;
        }
        _ if shown == 0 && start > 0 => writeln!(out, "the {kind} has no elements from {start} on")?,
        Some(size) => writeln!(out, "the {kind} says that it has {size} elements; {shown} could be read")?,
        None if shown == 0 => writeln!(out, "an empty {kind}")?,
        None => {}
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
        Value::Float(value) => meaning::float(*value),
        Value::Double(value) => meaning::double(*value),
        Value::Reference(None) => "null".to_owned(),
        Value::Reference(Some(to)) => object::describe(to.class.as_deref(), to.object, to.label.as_deref()),
    }
}
