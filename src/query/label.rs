//! Labels: a few words that tell an object from others of its class.
//!
//! A thread has its name, a string its text, a class object the class, a file its path. A label is cheap: it looks at
//! the object's record and follows at most a few references, and it is short, whatever the dump holds.

use rustc_hash::FxHashMap;

use crate::hprof::heap::{Instance, PrimitiveArray};
use crate::hprof::{BasicType, IdSize, be_u16, be_value};
use crate::index::summary::{ClassNumber, Summary};
use crate::index::{Heap, ObjectGraph};

use super::objects::{Record, record_at};

/// Characters of a label; what is longer ends with an ellipsis.
pub const MAX_CHARS: usize = 120;
/// Superclasses that are looked at. The JVM allows more, no program has as many.
const MAX_CHAIN: usize = 255;
/// Fields that are looked at to find one.
const MAX_FIELDS: usize = 4096;
/// Objects that are looked at, one behind the other.
const MAX_STEPS: u32 = 4;

/// How objects of a class, and of its subclasses, are labelled.
#[derive(Debug, Clone, Copy)]
enum How {
    /// By the label of the object in this field.
    Field(&'static str),
    /// By the number or truth value in this field.
    Number(&'static str),
    /// java.lang.String and its builders: characters in `value`.
    Text,
    /// A class object, or the mirror of a primitive type.
    Class,
    /// A member: the class in the first field, the name in the second.
    Member(&'static str, &'static str),
    /// java.net.URL.
    Url,
    /// java.lang.StackTraceElement.
    Frame,
    /// java.util.UUID.
    Uuid,
}

/// The classes whose objects have labels.
const KNOWN: &[(&str, How)] = &[
    ("java.lang.String", How::Text),
    ("java.lang.AbstractStringBuilder", How::Text),
    ("java.lang.Class", How::Class),
    ("java.lang.Thread", How::Field("name")),
    ("java.lang.ThreadGroup", How::Field("name")),
    ("java.lang.Enum", How::Field("name")),
    ("java.lang.ClassLoader", How::Field("name")),
    ("java.lang.Module", How::Field("name")),
    ("java.lang.NamedPackage", How::Field("name")),
    ("java.lang.Throwable", How::Field("detailMessage")),
    ("java.lang.StackTraceElement", How::Frame),
    ("java.lang.reflect.Field", How::Member("clazz", "name")),
    ("java.lang.reflect.Method", How::Member("clazz", "name")),
    ("java.lang.reflect.Constructor", How::Field("clazz")),
    ("java.lang.invoke.MemberName", How::Member("clazz", "name")),
    ("java.lang.Boolean", How::Number("value")),
    ("java.lang.Byte", How::Number("value")),
    ("java.lang.Character", How::Number("value")),
    ("java.lang.Double", How::Number("value")),
    ("java.lang.Float", How::Number("value")),
    ("java.lang.Integer", How::Number("value")),
    ("java.lang.Long", How::Number("value")),
    ("java.lang.Short", How::Number("value")),
    ("java.util.concurrent.atomic.AtomicBoolean", How::Number("value")),
    ("java.util.concurrent.atomic.AtomicInteger", How::Number("value")),
    ("java.util.concurrent.atomic.AtomicLong", How::Number("value")),
    ("java.io.File", How::Field("path")),
    ("java.io.FileInputStream", How::Field("path")),
    ("java.io.FileOutputStream", How::Field("path")),
    ("java.io.RandomAccessFile", How::Field("path")),
    ("sun.nio.fs.UnixPath", How::Field("stringValue")),
    ("java.net.URI", How::Field("string")),
    ("java.net.URL", How::Url),
    ("java.nio.charset.Charset", How::Field("name")),
    ("java.security.CodeSource", How::Field("location")),
    ("java.security.ProtectionDomain", How::Field("codesource")),
    ("java.security.Provider", How::Field("name")),
    ("java.util.TimeZone", How::Field("ID")),
    ("java.util.UUID", How::Uuid),
    ("java.util.jar.Attributes$Name", How::Field("name")),
    ("java.util.logging.Logger", How::Field("name")),
    ("java.util.regex.Pattern", How::Field("pattern")),
    ("java.util.zip.ZipEntry", How::Field("name")),
    ("java.util.zip.ZipFile", How::Field("name")),
    ("javax.management.ObjectName", How::Field("_canonicalName")),
];

/// Labels of the objects of a heap.
#[derive(Debug)]
pub struct Labels<'a> {
    summary: &'a Summary,
    graph: &'a ObjectGraph,
    bytes: &'a [u8],
    /// By class number.
    known: Vec<Option<How>>,
    /// Class objects and their classes, ascending.
    class_objects: Vec<(u32, ClassNumber)>,
}

/// The fields of an instance, from those of a class on upwards.
#[derive(Clone, Copy)]
struct Fields<'a> {
    class: ClassNumber,
    bytes: &'a [u8],
}

impl<'a> Labels<'a> {
    /// Labels of the objects of `graph`; `bytes` are the dump's ([`Heap::bytes`]).
    pub fn new(heap: &'a Heap, graph: &'a ObjectGraph, bytes: &'a [u8]) -> Self {
        let summary = heap.summary();
        let by_name: FxHashMap<&str, How> = KNOWN.iter().copied().collect();
        let name = |class| summary.class_name(class);
        let known = summary.classes().iter().map(|class| by_name.get(name(class)).copied()).collect();
        let classes = summary.numbered_classes();
        let mut class_objects: Vec<(u32, ClassNumber)> =
            classes.filter_map(|(number, _)| Some((graph.class_object(number)?, number))).collect();
        class_objects.sort_unstable();
        Self { summary, graph, bytes, known, class_objects }
    }

    /// The label of an object, if it has one. Not escaped.
    pub fn label(&self, object: u32) -> Option<String> {
        let mut text = Text::default();
        self.append(&mut text, object, MAX_STEPS)?;
        Some(text.0)
    }

    /// The class that an object is the class object of.
    pub fn class_of_class_object(&self, object: u32) -> Option<ClassNumber> {
        let at = self.class_objects.binary_search_by_key(&object, |(object, _)| *object).ok()?;
        self.class_objects.get(at).map(|(_, class)| *class)
    }

    fn id_size(&self) -> IdSize {
        self.summary.id_size()
    }

    fn record(&self, object: u32) -> Option<Record<'a>> {
        record_at(self.bytes, self.id_size(), self.graph.objects.offset(self.bytes, self.id_size(), object)?)
    }

    /// How an object of a class is labelled, and the class that says so; and where its fields start in an instance.
    fn how(&self, class: ClassNumber) -> Option<(How, ClassNumber, usize)> {
        let (mut class, mut start, mut left) = (class, 0, MAX_FIELDS);
        for _ in 0..MAX_CHAIN {
            if let Some(how) = self.known.get(class.0 as usize).copied().flatten() {
                return Some((how, class, start));
            }
            let row = self.summary.class(class)?;
            left = left.checked_sub(usize::from(row.fields.get()))?;
            start += self.summary.fields(row).map(|(_, kind)| kind.dump_bytes(self.id_size())).sum::<usize>();
            class = self.summary.super_class(row)?;
        }
        None
    }

    fn field(&self, fields: Fields<'a>, name: &str) -> Option<(BasicType, u64)> {
        let (mut class, mut at, mut left) = (fields.class, 0, MAX_FIELDS);
        for _ in 0..MAX_CHAIN {
            let row = self.summary.class(class)?;
            left = left.checked_sub(usize::from(row.fields.get()))?;
            for (field, kind) in self.summary.fields(row) {
                if field == name {
                    return Some((kind, be_value(fields.bytes, at, kind, self.id_size())?));
                }
                at += kind.dump_bytes(self.id_size());
            }
            class = self.summary.super_class(row)?;
        }
        None
    }

    fn number(&self, fields: Fields<'a>, name: &str) -> Option<u64> {
        self.field(fields, name).map(|(_, value)| value)
    }

    /// The object in a field; `None` also for null.
    fn object(&self, fields: Fields<'a>, name: &str) -> Option<u32> {
        match self.field(fields, name)? {
            (BasicType::Object, id) if id != 0 => self.graph.objects.addresses.index_of(id),
            _ => None,
        }
    }

    fn append(&self, text: &mut Text, object: u32, steps: u32) -> Option<()> {
        let steps = steps.checked_sub(1)?;
        if let Some(class) = self.class_of_class_object(object) {
            text.push(self.summary.class_name(self.summary.class(class)?));
            return Some(());
        }
        let class = self.graph.objects.class(object)?;
        let (how, class, bytes) = match self.record(object)? {
            // Buffers are filled up with zeros.
            Record::PrimitiveArray(PrimitiveArray {
                element: BasicType::Char,
                elements: Some(elements),
                ..
            }) => {
                return text.grow(|text| text.push_utf16(utf16(elements).take_while(|unit| *unit != 0)));
            }
            Record::Instance(Instance { fields, .. }) => {
                let (how, class, start) = self.how(class)?;
                (how, class, fields.get(start..)?)
            }
            _ => return None,
        };
        let fields = Fields { class, bytes };
        match how {
            How::Field(name) => {
                let object = self.object(fields, name)?;
                // An empty name tells nothing; an empty String does.
                text.grow(|text| self.append(text, object, steps).unwrap_or_default())
            }
            How::Number(name) => {
                let (kind, value) = self.field(fields, name)?;
                text.push(&number(kind, value));
                Some(())
            }
            How::Text => self.append_string(text, fields),
            // A mirror without a class dump stands for a primitive type; its name is known if it was asked for.
            How::Class => self.append(text, self.object(fields, "name")?, steps),
            How::Member(class, name) => {
                let owner = self.object(fields, class).and_then(|owner| self.class_of_class_object(owner));
                if let Some(owner) = owner.and_then(|owner| self.summary.class(owner)) {
                    text.push(self.summary.class_name(owner));
                    text.push(".");
                }
                self.append(text, self.object(fields, name)?, steps)
            }
            How::Url => {
                self.append(text, self.object(fields, "protocol")?, steps)?;
                self.append_url(text, fields, steps)
            }
            How::Frame => {
                self.append(text, self.object(fields, "declaringClass")?, steps)?;
                text.push(".");
                self.append(text, self.object(fields, "methodName")?, steps)?;
                if let Some(file) = self.object(fields, "fileName") {
                    text.push("(");
                    self.append(text, file, steps)?;
                    match self.field(fields, "lineNumber").and_then(|(_, line)| u32::try_from(line).ok()) {
                        Some(line) if line < 0x8000_0000 => text.push(&format!(":{line})")),
                        _ => text.push(")"),
                    }
                }
                Some(())
            }
            How::Uuid => {
                let high = self.number(fields, "mostSigBits")?;
                let low = self.number(fields, "leastSigBits")?;
                let parts =
                    (high >> 32, (high >> 16) & 0xffff, high & 0xffff, low >> 48, low & 0xffff_ffff_ffff);
                let (a, b, c, d, e) = parts;
                text.push(&format!("{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}"));
                Some(())
            }
        }
    }

    /// What follows the protocol of a URL.
    fn append_url(&self, text: &mut Text, fields: Fields<'a>, steps: u32) -> Option<()> {
        text.push(":");
        let mut host = Text::default();
        if let Some(object) = self.object(fields, "host") {
            self.append(&mut host, object, steps)?;
        }
        // `file:` and `jrt:` have an empty host.
        if !host.0.is_empty() {
            text.push("//");
            text.push(&host.0);
        }
        match self.number(fields, "port").and_then(|port| u16::try_from(port).ok()) {
            Some(port) if port > 0 => text.push(&format!(":{port}")),
            _ => {}
        }
        self.append(text, self.object(fields, "file")?, steps)
    }

    /// The characters of a String or of a builder: bytes since JDK 9, chars before, part of an array in JDK 6.
    fn append_string(&self, text: &mut Text, fields: Fields<'a>) -> Option<()> {
        let Record::PrimitiveArray(PrimitiveArray { element, elements, .. }) =
            self.record(self.object(fields, "value")?)?
        else {
            return None;
        };
        let elements = elements?;
        let utf16_bytes = self.number(fields, "coder").is_some_and(|coder| coder == 1);
        let number = |name| usize::try_from(self.number(fields, name)?).ok();
        let count = number("count");
        match element {
            BasicType::Char => {
                let (start, count) = match (number("offset"), count) {
                    (Some(offset), Some(count)) => (offset, count),
                    // A builder has room behind its text. A String of Android has other bits in `count`.
                    (None, Some(count)) if count <= elements.len() / 2 => (0, count),
                    _ => (0, elements.len() / 2),
                };
                text.push_utf16(utf16(elements.get(start.checked_mul(2)?..)?).take(count));
            }
            // The bytes of a UTF-16 string are in the JVM's own order: little-endian nearly everywhere.
            BasicType::Byte if utf16_bytes => {
                let units = elements.chunks_exact(2).filter_map(|unit| unit.first_chunk());
                text.push_utf16(
                    units.map(|unit| u16::from_le_bytes(*unit)).take(count.unwrap_or(usize::MAX)),
                );
            }
            BasicType::Byte => {
                let count = count.filter(|count| *count <= elements.len()).unwrap_or(elements.len());
                text.extend(elements.iter().take(count).map(|byte| char::from(*byte)));
            }
            _ => return None,
        }
        Some(())
    }
}

/// The units of an array of chars.
fn utf16(elements: &[u8]) -> impl Iterator<Item = u16> + '_ {
    elements.chunks_exact(2).filter_map(|unit| be_u16(unit, 0))
}

/// A value as Java prints it.
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
fn number(kind: BasicType, value: u64) -> String {
    match kind {
        BasicType::Boolean => (value != 0).to_string(),
        BasicType::Byte => (value as i8).to_string(),
        BasicType::Short => (value as i16).to_string(),
        BasicType::Int => (value as i32).to_string(),
        BasicType::Long => (value as i64).to_string(),
        BasicType::Float => format!("{:?}", f32::from_bits(value as u32)),
        BasicType::Double => format!("{:?}", f64::from_bits(value)),
        BasicType::Char => char::from_u32(value as u32).unwrap_or(char::REPLACEMENT_CHARACTER).to_string(),
        BasicType::Object => format!("{value:#x}"),
    }
}

/// A text of a limited length.
#[derive(Debug, Default)]
struct Text(String);

impl Text {
    fn push(&mut self, part: &str) {
        self.extend(part.chars());
    }

    /// Whether `add` added something.
    fn grow(&mut self, add: impl FnOnce(&mut Self)) -> Option<()> {
        let before = self.0.len();
        add(self);
        (self.0.len() > before).then_some(())
    }

    fn push_utf16(&mut self, units: impl Iterator<Item = u16>) {
        let characters = char::decode_utf16(units);
        self.extend(characters.map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)));
    }

    fn extend(&mut self, characters: impl Iterator<Item = char>) {
        let used = self.0.chars().count();
        for (at, c) in (used..).zip(characters) {
            if at >= MAX_CHARS {
                if at == MAX_CHARS && !self.is_cut() {
                    self.0.pop();
                    self.0.push('…');
                }
                return;
            }
            self.0.push(c);
        }
    }

    /// Whether something was left out already.
    fn is_cut(&self) -> bool {
        self.0.ends_with('…')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_once() {
        let mut text = Text::default();
        text.push(&"x".repeat(MAX_CHARS));
        assert_eq!(text.0, "x".repeat(MAX_CHARS));
        text.push("y");
        let cut = format!("{}…", "x".repeat(MAX_CHARS - 1));
        assert_eq!(text.0, cut);
        text.push("z");
        assert_eq!(text.0, cut);
        let mut wide = Text::default();
        wide.push_utf16(std::iter::repeat_n(0xd800, 1_000_000));
        assert_eq!(wide.0.chars().count(), MAX_CHARS);
    }

    #[test]
    fn numbers_are_as_java_prints_them() {
        assert_eq!(number(BasicType::Int, 0xffff_ffff), "-1");
        assert_eq!(number(BasicType::Byte, 0x80), "-128");
        assert_eq!(number(BasicType::Char, 0x41), "A");
        assert_eq!(number(BasicType::Boolean, 1), "true");
        assert_eq!(number(BasicType::Double, 1.5f64.to_bits()), "1.5");
        assert_eq!(number(BasicType::Float, 0), "0.0");
    }
}
