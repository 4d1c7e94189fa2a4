//! Stacks of a chunk: each constant is read once.

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

/// A stack.
#[derive(Debug, Clone, Default)]
pub(super) struct Stack {
    /// Serial number of the thread, if stacks are separated by thread; else 0.
    pub(super) thread: u32,
    /// Indices of frames, innermost first.
    pub(super) frames: Vec<u32>,
    /// `true` if outer frames are missing.
    pub(super) is_truncated: bool,
}

/// Stacks by the keys of their constants.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    by_key: FxHashMap<(i64, u32), StackIndex>,
    stacks: Vec<Stack>,
    frames: Vec<Frame>,
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
        let index = trace.record().map_or(NO_STACK, |record| {
            let frames = record.array("frames");
            let frames: Vec<u32> = frames
                .into_iter()
                .flat_map(|frames| frames.records())
                .map(|frame| self.frame(&frame, names))
                .collect();
            self.stacks.push(Stack { thread, frames, is_truncated: record.is("truncated") });
            u32::try_from(self.stacks.len() - 1).unwrap_or(NO_STACK)
        });
        self.by_key.insert((trace.key, thread), index);
        (index, index != NO_STACK)
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
        let number = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
        self.frames.push(Frame { class, method, source: None, line });
        self.by_frame.insert(key, number);
        number
    }

    /// Returns the frames, and the stacks in the order in which they were added.
    pub(super) fn finish(self) -> (Vec<Frame>, Vec<Stack>) {
        (self.frames, self.stacks)
    }
}

impl Names {
    /// Returns the name of a class in Java source form.
    pub(super) fn class(&mut self, class: Constant<'_>) -> Option<Arc<str>> {
        let name = || symbol(&class.record()?, "name").filter(|name| !name.is_empty());
        let name = || name().map(|name| java_class_name(&name).into());
        self.classes.entry(class.key).or_insert_with(name).clone()
    }

    fn method(&mut self, method: Constant<'_>) -> MethodName {
        if let Some(known) = self.methods.get(&method.key) {
            return known.clone();
        }
        let found = method.record().map_or((None, None), |record| {
            let class = record.constant("type").and_then(|class| self.class(class));
            (class, symbol(&record, "name").filter(|name| !name.is_empty()).map(Into::into))
        });
        self.methods.insert(method.key, found.clone());
        found
    }

    fn is_native(&mut self, kind: Constant<'_>) -> bool {
        let is_native = || kind.record()?.text("description").map(|text| text == "Native");
        *self.native_types.entry(kind.key).or_insert_with(|| is_native().unwrap_or(false))
    }
}

/// Returns the text of a symbol, which is a constant with a string.
fn symbol(record: &Record<'_>, name: &str) -> Option<String> {
    match record.record(name) {
        Some(symbol) => symbol.text("string").map(std::borrow::Cow::into_owned),
        None => record.text(name).map(std::borrow::Cow::into_owned),
    }
}
