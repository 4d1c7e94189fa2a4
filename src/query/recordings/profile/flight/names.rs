//! Names of classes, methods and threads of a chunk. Each constant is read once.

use std::sync::Arc;

use hprof_jfr::values::{Constant, StringValue};
use hprof_jfr::{Chunk, Record, Value};
use hprof_values::names::java_class_name;

use super::constants::ConstantMap;

/// Maximum length of a name in bytes, as in class files (JVMS 4.4.7). Longer names are truncated.
pub(super) const MAX_NAME: usize = 0xffff;

/// Maximum length of the name of a state or category in bytes. Longer names are truncated.
const MAX_WORD: usize = 64;

/// Names of a method's class and of the method.
pub(super) type MethodName = (Option<Arc<str>>, Option<Arc<str>>);

/// Serial number and names of a thread.
#[derive(Debug, Clone, Default)]
pub(super) struct RecordedThread {
    /// Serial number: the Java thread ID, or else the operating system's ID with the bit `NATIVE_THREAD`.
    pub(super) serial: u32,
    /// Name in Java, or else in the operating system; empty if there is none.
    pub(super) name: Arc<str>,
    /// Thread group.
    pub(super) group: GroupName,
}

/// Names of a thread group and its parent.
#[derive(Debug, Clone, Default)]
pub(super) struct GroupName {
    pub(super) name: Arc<str>,
    pub(super) parent: Option<Arc<str>>,
}

/// Value of the frame type for native methods.
const NATIVE: &str = "Native";
/// Bit that marks the operating system's ID of a thread that is not a Java thread.
const NATIVE_THREAD: u32 = 1 << 31;

/// Cache of names by their constants.
#[derive(Debug)]
pub(super) struct ConstantNames {
    classes: ConstantMap<Option<Arc<str>>>,
    methods: ConstantMap<MethodName>,
    /// Names in Java source form and as recorded, by their symbols, which any number of classes and methods may share.
    class_names: ConstantMap<Option<Arc<str>>>,
    method_names: ConstantMap<Option<Arc<str>>>,
    native_types: ConstantMap<bool>,
    threads: ConstantMap<Arc<RecordedThread>>,
    groups: ConstantMap<GroupName>,
    group_names: ConstantMap<Option<Arc<str>>>,
    /// Names of states and categories.
    words: ConstantMap<Option<Arc<str>>>,
    budget: NameBudget,
}

/// Remaining bytes for names. A hostile chunk can have one long text as the name of each of its classes.
#[derive(Debug)]
struct NameBudget {
    left: usize,
    left_out: u64,
}

impl ConstantNames {
    /// Creates a table of names that together take at most `max_bytes`. Names beyond the limit are missing.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            classes: ConstantMap::default(),
            methods: ConstantMap::default(),
            class_names: ConstantMap::default(),
            method_names: ConstantMap::default(),
            native_types: ConstantMap::default(),
            threads: ConstantMap::default(),
            groups: ConstantMap::default(),
            group_names: ConstantMap::default(),
            words: ConstantMap::default(),
            budget: NameBudget { left: max_bytes, left_out: 0 },
        }
    }

    /// Creates a table with enough bytes for all names of a chunk, each of which the chunk contains once, at most a little
    /// shorter.
    pub(super) fn of_chunk(chunk: &Chunk<'_>) -> Self {
        Self::new(chunk.byte_count().saturating_mul(4))
    }

    /// Lowers the limit of all names to `max_bytes`.
    pub(super) fn at_most(mut self, max_bytes: usize) -> Self {
        self.budget.left = self.budget.left.min(max_bytes);
        self
    }

    /// Returns the name of a class in Java source form.
    pub(super) fn class(&mut self, class: Constant<'_>) -> Option<Arc<str>> {
        if let Some(known) = self.classes.get(&class) {
            return known.clone();
        }
        let source = |name: &str| java_class_name(name).into();
        let name =
            class.record().and_then(|class| symbol(&class, &mut self.class_names, &mut self.budget, source));
        self.classes.insert(&class, name.clone());
        name
    }

    /// Returns the name of the state of a sampled thread, such as `STATE_RUNNABLE`.
    pub(super) fn state(&mut self, state: Constant<'_>) -> Option<Arc<str>> {
        self.word(state, "name")
    }

    /// Returns the name of a constant such as a state or a category, which is in this field. A type of constants has one such
    /// field.
    pub(super) fn word(&mut self, constant: Constant<'_>, field: &str) -> Option<Arc<str>> {
        if let Some(known) = self.words.get(&constant) {
            return known.clone();
        }
        let name = constant.record().and_then(|constant| self.text(&constant, field));
        let name = name.map(|name| match name.get(..MAX_WORD) {
            Some(start) => start.into(),
            None => name,
        });
        self.words.insert(&constant, name.clone());
        name
    }

    /// Returns the names of a method and its class.
    pub(super) fn method(&mut self, method: Constant<'_>) -> MethodName {
        if let Some(known) = self.methods.get(&method) {
            return known.clone();
        }
        let found = method.record().map_or((None, None), |record| {
            let class = record.constant("type").and_then(|class| self.class(class));
            (class, symbol(&record, &mut self.method_names, &mut self.budget, |name| name.into()))
        });
        self.methods.insert(&method, found.clone());
        found
    }

    /// Returns the thread in a field of an event.
    pub(super) fn thread_in(&mut self, fields: &Record<'_>, name: &str) -> Option<Arc<RecordedThread>> {
        match fields.get(name)? {
            Value::Constant(thread) => self.thread(thread),
            Value::Record(thread) => Some(Arc::new(self.read_thread(&thread))),
            _ => None,
        }
    }

    /// Returns a thread; `None` if the chunk does not contain it.
    pub(super) fn thread(&mut self, thread: Constant<'_>) -> Option<Arc<RecordedThread>> {
        if let Some(known) = self.threads.get(&thread) {
            return Some(Arc::clone(known));
        }
        let found = Arc::new(self.read_thread(&thread.record()?));
        self.threads.insert(&thread, Arc::clone(&found));
        Some(found)
    }

    fn read_thread(&mut self, thread: &Record<'_>) -> RecordedThread {
        let id = |name| thread.integer(name).and_then(|id| u32::try_from(id).ok()).filter(|id| *id > 0);
        let serial = id("javaThreadId").unwrap_or_else(|| id("osThreadId").unwrap_or(0) | NATIVE_THREAD);
        let name = ["javaName", "osName"].into_iter().find_map(|name| self.text(thread, name));
        let group = thread.constant("group").map(|group| self.group(group)).unwrap_or_default();
        RecordedThread { serial, name: name.unwrap_or_default(), group }
    }

    fn group(&mut self, group: Constant<'_>) -> GroupName {
        if let Some(known) = self.groups.get(&group) {
            return known.clone();
        }
        let parent = group.record().and_then(|group| group.constant("parent"));
        let parent = parent.and_then(|parent| self.group_name(parent));
        let found = GroupName { name: self.group_name(group).unwrap_or_default(), parent };
        self.groups.insert(&group, found.clone());
        found
    }

    /// Returns the name of a thread group. Any number of groups may have the same parent.
    fn group_name(&mut self, group: Constant<'_>) -> Option<Arc<str>> {
        if let Some(known) = self.group_names.get(&group) {
            return known.clone();
        }
        let name = group.record().and_then(|group| self.text(&group, "name"));
        self.group_names.insert(&group, name.clone());
        name
    }

    fn text(&mut self, record: &Record<'_>, name: &str) -> Option<Arc<str>> {
        self.budget.take(record.string(name), |text| text.into())
    }

    /// Returns the number of names that were not read because they would exceed the limit.
    pub(super) fn left_out(&self) -> u64 {
        self.budget.left_out
    }

    /// Returns whether a frame type marks frames of native methods.
    pub(super) fn is_native(&mut self, kind: Constant<'_>) -> bool {
        if let Some(known) = self.native_types.get(&kind) {
            return *known;
        }
        let description = kind.record().and_then(|kind| kind.text("description", NATIVE.len() + 1));
        let is_native = description.is_some_and(|text| text == NATIVE);
        self.native_types.insert(&kind, is_native);
        is_native
    }
}

/// Returns the name of a class or method from a field with a symbol, which is a constant with a string.
fn symbol(
    record: &Record<'_>,
    known: &mut ConstantMap<Option<Arc<str>>>,
    budget: &mut NameBudget,
    make: impl Fn(&str) -> Arc<str>,
) -> Option<Arc<str>> {
    let symbol = record.constant("name");
    if let Some(name) = symbol.and_then(|symbol| known.get(&symbol)) {
        return name.clone();
    }
    let text = match symbol {
        None => record.string("name"),
        Some(symbol) => {
            let text = symbol.record().and_then(|symbol| symbol.string("string"));
            text.or_else(|| Some(symbol.string()))
        }
    };
    let name = budget.take(text, make);
    if let Some(symbol) = symbol {
        known.insert(&symbol, name.clone());
    }
    name
}

impl NameBudget {
    /// Returns the name in a text, if it is not empty and fits into the remaining bytes. Once a name does not fit, the texts of
    /// the other names are not even decoded, as each may be long. A damaged text takes as many bytes as were examined.
    fn take(&mut self, text: Option<StringValue<'_>>, make: impl Fn(&str) -> Arc<str>) -> Option<Arc<str>> {
        let text = text.filter(|text| text.stated_len() > 0)?;
        if self.left == 0 {
            self.left_out += 1;
            return None;
        }
        let decoded = text.decode(MAX_NAME);
        let bytes = decoded.as_ref().map_or(text.stated_len().min(MAX_NAME), |text| text.len());
        let Some(left) = self.left.checked_sub(bytes) else {
            (self.left, self.left_out) = (0, self.left_out + 1);
            return None;
        };
        self.left = left;
        Some(make(&decoded?))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hprof_jfr::Recording;
    use hprof_writer::flight::{FlightWriter, TEXT, every_kind};

    /// A name that fits exactly is read, an empty name is never left out, and a damaged name takes as many bytes as were
    /// examined.
    #[test]
    fn names_are_charged_by_what_is_looked_at() {
        let mut made = FlightWriter::new(true);
        made.event(20, |body| {
            ["abcd", "", "x"].into_iter().for_each(|text| body.text(text));
            body.raw(&[3, 4, b'a', 0xff, b'b', b'c']);
        });
        made.metadata(&[(20, "jdk.Sample", &["name", "empty", "other", "damaged"].map(|name| (name, TEXT)))]);
        let bytes = made.finish();
        let chunk = Chunk::read(&bytes, &Recording::new(&bytes).unwrap().chunks()[0]).unwrap();
        let fields = chunk.events().next().unwrap().fields;
        for (max_bytes, order, found) in [
            (4, ["name", "empty", "other"], [(true, 0), (false, 0), (false, 1)]),
            (3, ["name", "empty", "other"], [(false, 1), (false, 1), (false, 2)]),
            (7, ["damaged", "name", "empty"], [(false, 0), (false, 1), (false, 1)]),
            (8, ["damaged", "name", "other"], [(false, 0), (true, 0), (false, 1)]),
        ] {
            let mut budget = NameBudget { left: max_bytes, left_out: 0 };
            let taken = order.map(|name| {
                let is_taken = budget.take(fields.string(name), |text| text.into()).is_some();
                (is_taken, budget.left_out)
            });
            assert_eq!(taken, found, "{max_bytes} bytes for {order:?}");
        }
    }

    #[test]
    fn constants_are_read_once_and_names_are_charged() {
        let bytes = every_kind(true).finish();
        let chunk = Chunk::read(&bytes, &Recording::new(&bytes).unwrap().chunks()[0]).unwrap();
        let started: Vec<_> = chunk
            .events()
            .filter(|event| event.fields.class().unwrap().name.starts_with("jdk.Thread"))
            .collect();
        // Names of the thread, its group and the group's parent, or the operating system's name of the thread instead of the
        // first.
        let all = ["worker", "main", "system"].concat().len();
        for (max_bytes, left_out) in [(all, 0), (all - 1, 1), ("worker".len(), 2), (1, 4)] {
            let mut names = ConstantNames::new(max_bytes);
            let threads: Vec<_> =
                started.iter().filter_map(|event| names.thread_in(&event.fields, "thread")).collect();
            assert_eq!((threads.len(), threads[0].serial), (2, 9));
            assert!(Arc::ptr_eq(&threads[0], &threads[1]));
            assert_eq!(names.left_out(), left_out);
            let RecordedThread { name, group, .. } = &*threads[0];
            let found = [Some(name), Some(&group.name), group.parent.as_ref()].into_iter().flatten();
            assert!(found.map(|name| name.len()).sum::<usize>() <= max_bytes);
        }
    }
}
