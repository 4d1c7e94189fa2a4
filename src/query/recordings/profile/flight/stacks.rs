//! Stacks of a chunk: each constant is read once.

use std::borrow::Cow;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use hprof_jfr::values::Constant;
use hprof_jfr::{Record, Value};
use hprof_parser::names::java_class_name;

use crate::recordings::profile::Frame;
use crate::threads::frames::NATIVE;

/// Index of a stack; [`NO_STACK`] for none.
pub(super) type StackIndex = u32;
/// Event without a stack trace.
pub(super) const NO_STACK: StackIndex = u32::MAX;

/// Maximum length of a name in bytes, as in class files (JVMS 4.4.7).
const MAX_NAME: usize = 0xffff;

/// A stack.
#[derive(Debug, Clone, Default)]
pub(super) struct Stack {
    /// Serial number of the thread, if stacks are separated by thread; else 0.
    pub(super) thread: u32,
    /// Index of the list of its frames, which all threads share.
    pub(super) list: u32,
    /// `true` if outer frames are missing.
    pub(super) is_truncated: bool,
}

/// Frames and stacks of a chunk.
#[derive(Debug, Default)]
pub(super) struct StackTable {
    /// Distinct frames.
    pub(super) frames: Vec<Frame>,
    /// Lists of indices of frames, innermost first.
    pub(super) lists: Vec<Vec<u32>>,
    /// Stacks, in the order in which they first occur.
    pub(super) stacks: Vec<Stack>,
}

/// Stacks by the keys of their constants.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    by_key: FxHashMap<(i64, u32), StackIndex>,
    /// By key: index of the list of frames, and whether outer frames are missing. `None` if the chunk lacks the constant.
    lists: FxHashMap<i64, Option<(u32, bool)>>,
    table: StackTable,
    by_frame: FxHashMap<(i64, i64, i64), u32>,
    /// Indices of the fields of a frame; of a chunk there is one such type.
    fields: Option<FrameFields>,
}

/// Class and method.
type MethodName = (Option<Arc<str>>, Option<Arc<str>>);

/// Names of classes and methods by the keys of their constants.
#[derive(Debug, Default)]
pub(super) struct Names {
    classes: FxHashMap<i64, Option<Arc<str>>>,
    methods: FxHashMap<i64, MethodName>,
    /// By the keys of symbols, which any number of classes and methods may share: names in Java source form, and as they are.
    class_names: FxHashMap<i64, Option<Arc<str>>>,
    method_names: FxHashMap<i64, Option<Arc<str>>>,
    native_types: FxHashMap<i64, bool>,
}

#[derive(Debug, Clone, Copy)]
struct FrameFields {
    method: usize,
    line: usize,
    kind: usize,
}

impl Stacks {
    /// Returns the index of a stack of a thread, and whether it is new.
    pub(super) fn index(
        &mut self,
        trace: Constant<'_>,
        thread: u32,
        names: &mut Names,
    ) -> (StackIndex, bool) {
        if let Some(index) = self.by_key.get(&(trace.key, thread)) {
            return (*index, false);
        }
        let list = match self.lists.get(&trace.key) {
            Some(list) => *list,
            None => {
                let list = self.list(trace, names);
                self.lists.insert(trace.key, list);
                list
            }
        };
        let index = list.map_or(NO_STACK, |(list, is_truncated)| {
            self.table.stacks.push(Stack { thread, list, is_truncated });
            u32::try_from(self.table.stacks.len() - 1).unwrap_or(NO_STACK)
        });
        self.by_key.insert((trace.key, thread), index);
        (index, index != NO_STACK)
    }

    /// Returns the innermost frame of a stack, and its index.
    pub(super) fn innermost(&self, stack: StackIndex) -> Option<(u32, &Frame)> {
        let list = self.table.stacks.get(stack as usize)?.list;
        let frame = *self.table.lists.get(list as usize)?.first()?;
        Some((frame, self.table.frames.get(frame as usize)?))
    }

    /// Reads the frames of a stack: the index of their list, and whether outer frames are missing.
    fn list(&mut self, trace: Constant<'_>, names: &mut Names) -> Option<(u32, bool)> {
        let record = trace.record()?;
        let frames = record.array("frames").into_iter().flat_map(|frames| frames.records());
        let frames: Vec<u32> = frames.map(|frame| self.frame(&frame, names)).collect();
        self.table.lists.push(frames);
        Some((u32::try_from(self.table.lists.len() - 1).ok()?, record.is("truncated")))
    }

    fn frame(&mut self, frame: &Record<'_>, names: &mut Names) -> u32 {
        let fields = *self.fields.get_or_insert_with(|| {
            let field = |name| frame.class().and_then(|class| class.field(name)).unwrap_or(usize::MAX);
            FrameFields { method: field("method"), line: field("lineNumber"), kind: field("type") }
        });
        let constant = |index| match frame.value(index) {
            Ok(Some(Value::Constant(constant))) => Some(constant),
            _ => None,
        };
        let (method, kind) = (constant(fields.method), constant(fields.kind));
        let line = match frame.value(fields.line) {
            Ok(Some(Value::Integer(line))) => line,
            _ => 0,
        };
        let key_of = |constant: Option<Constant<'_>>| constant.map_or(0, |constant| constant.key);
        let key = (key_of(method), line, key_of(kind));
        if let Some(known) = self.by_frame.get(&key) {
            return *known;
        }
        let (class, method) = method.map(|method| names.method(method)).unwrap_or_default();
        let line = match i32::try_from(line) {
            Ok(line) if line > 0 => line,
            _ if kind.is_some_and(|kind| names.is_native(kind)) => NATIVE,
            _ => 0,
        };
        let number = u32::try_from(self.table.frames.len()).unwrap_or(u32::MAX);
        self.table.frames.push(Frame { class, method, source: None, line });
        self.by_frame.insert(key, number);
        number
    }

    /// Returns the frames and stacks.
    pub(super) fn finish(self) -> StackTable {
        self.table
    }
}

impl Names {
    /// Returns the name of a class in Java source form.
    pub(super) fn class(&mut self, class: Constant<'_>) -> Option<Arc<str>> {
        if let Some(known) = self.classes.get(&class.key) {
            return known.clone();
        }
        let source = |name: &str| java_class_name(name).into();
        let name = class.record().and_then(|class| symbol(&class, &mut self.class_names, source));
        self.classes.insert(class.key, name.clone());
        name
    }

    fn method(&mut self, method: Constant<'_>) -> MethodName {
        if let Some(known) = self.methods.get(&method.key) {
            return known.clone();
        }
        let found = method.record().map_or((None, None), |record| {
            let class = record.constant("type").and_then(|class| self.class(class));
            (class, symbol(&record, &mut self.method_names, |name| name.into()))
        });
        self.methods.insert(method.key, found.clone());
        found
    }

    fn is_native(&mut self, kind: Constant<'_>) -> bool {
        let is_native = || kind.record()?.text("description").map(|text| text == "Native");
        *self.native_types.entry(kind.key).or_insert_with(|| is_native().unwrap_or(false))
    }
}

/// Returns the name of a class or method, which is a symbol, a constant with a string.
fn symbol(
    record: &Record<'_>,
    known: &mut FxHashMap<i64, Option<Arc<str>>>,
    make: impl Fn(&str) -> Arc<str>,
) -> Option<Arc<str>> {
    let make = |text: Cow<'_, str>| {
        let end = (0..=text.len().min(MAX_NAME)).rev().find(|end| text.is_char_boundary(*end));
        let name = text.get(..end?).filter(|name| !name.is_empty());
        name.map(&make)
    };
    let Some(symbol) = record.constant("name") else {
        return record.text("name").and_then(make);
    };
    let text = || symbol.record().and_then(|symbol| symbol.text("string")).or_else(|| symbol.text());
    known.entry(symbol.key).or_insert_with(|| text().and_then(make)).clone()
}
