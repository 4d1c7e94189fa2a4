//! Fields of Thread objects.

use crate::objects::reader::{Characters, ObjectReader, ObjectRecord};
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::objects::fields::Fields;
use hprof_index::storage::id_map::IdMap;
use hprof_values::BasicType;

use super::state::{ThreadActivity, ThreadState};

/// Maximum number of characters of a thread's name; longer names are truncated.
pub(super) const MAX_NAME: usize = 4096;

/// Kind of thread that the instances of a class are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// Not a thread.
    NoThread,
    /// A platform thread.
    Platform,
    /// A virtual thread bound to a platform thread of its own.
    Bound,
    /// A virtual thread.
    Virtual,
}

impl Family {
    fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "java.lang.Thread" => Self::Platform,
            "java.lang.BaseVirtualThread" => Self::Bound,
            "java.lang.VirtualThread" => Self::Virtual,
            _ => return None,
        })
    }
}

/// Returns the family of each class, by class number.
fn families(summary: &Summary) -> Vec<Family> {
    let classes = summary.classes();
    let own: Vec<Option<Family>> =
        classes.iter().map(|class| Family::of_name(summary.class_name(class))).collect();
    let inherited = summary.class_table().inherit(&own);
    inherited.into_iter().map(|known| known.unwrap_or(Family::NoThread)).collect()
}

/// Reader of the fields of Thread objects.
#[derive(Debug)]
pub(super) struct ThreadFields<'a> {
    pub(super) objects: ObjectReader<'a>,
    families: Vec<Family>,
    thread: Option<ClassNumber>,
    virtual_thread: Option<ClassNumber>,
    holder: Option<ClassNumber>,
    /// java.lang.String.
    string: Option<ClassNumber>,
    /// Constants of java.lang.VirtualThread: the values of its field `state` differ between JDKs.
    states: IdMap<u64, ThreadActivity>,
    started: Option<u64>,
}

/// Bit of a virtual thread's state while a debugger suspends it, up to JDK 23.
const SUSPENDED: u64 = 1 << 8;

impl<'a> ThreadFields<'a> {
    pub(super) fn new(objects: ObjectReader<'a>) -> Self {
        let summary = objects.summary;
        let class = |name: &str| {
            let mut classes = summary.numbered_classes();
            let named = classes.find(|(_, class)| class.is_dumped() && summary.is_named(class, name));
            named.map(|(number, _)| number)
        };
        let (thread, virtual_thread) = (class("java.lang.Thread"), class("java.lang.VirtualThread"));
        let holder = class("java.lang.Thread$FieldHolder");
        let (mut states, mut started) = (IdMap::default(), None);
        let constants = virtual_thread.and_then(|class| summary.class(class));
        for (name, kind, value) in constants.into_iter().flat_map(|class| summary.statics(class)) {
            if let (BasicType::Int, Some(doing)) = (kind, ThreadActivity::of_virtual(name)) {
                states.entry(value).or_insert(doing);
                started = if name == "STARTED" { Some(value) } else { started };
            }
        }
        let string = class("java.lang.String");
        Self { families: families(summary), thread, virtual_thread, holder, string, states, started, objects }
    }

    /// Returns the family of an object's class.
    pub(super) fn family(&self, object: ObjectIndex) -> Family {
        let class = self.objects.graph.objects.class(object);
        class.and_then(|class| self.families.get(class.0 as usize)).copied().unwrap_or(Family::NoThread)
    }

    /// Returns whether a class of threads has instances.
    pub(super) fn has_threads(&self) -> bool {
        let mut classes = self.families.iter().zip(self.objects.summary.classes());
        classes.any(|(family, class)| *family != Family::NoThread && class.objects.get() > 0)
    }

    /// Returns the fields of java.lang.Thread.
    pub(super) fn thread(&self, object: ObjectIndex) -> Option<Fields<'a>> {
        match self.family(object) {
            Family::NoThread => None,
            _ => self.objects.fields_of(object, self.thread?),
        }
    }

    /// Returns the object in a field; `None` if the field is null or missing.
    pub(super) fn object(&self, fields: Fields<'a>, name: &str) -> Option<ObjectIndex> {
        self.objects.object(fields.value(name)?)
    }

    /// Returns the fields with daemon, priority, group and state: the thread's own, since JDK 19 its holder's. Virtual
    /// threads have none.
    pub(super) fn holder(&self, thread: Fields<'a>) -> Option<Fields<'a>> {
        if thread.value("holder").is_none() {
            return Some(thread);
        }
        let holder = self.object(thread, "holder")?;
        let fields = self.objects.fields(holder)?;
        (Some(fields.class()) == self.holder).then_some(fields)
    }

    /// Returns the characters of a thread's name.
    pub(super) fn name(&self, thread: Fields<'a>) -> Option<Characters<'a>> {
        let object = self.object(thread, "name")?;
        match self.objects.record(object)? {
            // Old JDKs store the characters in the thread itself.
            ObjectRecord::PrimitiveArray(array) if array.element == BasicType::Char => Some(
                Characters::Utf16Be(array.elements?).unless_removed(self.objects.summary.missing_contents()),
            ),
            ObjectRecord::Instance(_)
                if self.string.is_some() && self.objects.graph.objects.class(object) == self.string =>
            {
                self.objects.string(object)
            }
            _ => None,
        }
    }

    /// Returns the state of a thread, and how it waits.
    pub(super) fn doing(&self, object: ObjectIndex) -> ThreadActivity {
        let doing = match self.family(object) {
            Family::Virtual => self.virtual_doing(object),
            _ => self.platform_activity(object),
        };
        doing.unwrap_or_default()
    }

    fn platform_activity(&self, object: ObjectIndex) -> Option<ThreadActivity> {
        let status = self.holder(self.thread(object)?)?.value("threadStatus")?;
        (status.kind == BasicType::Int).then(|| ThreadActivity::of_bits(status.bits))
    }

    fn virtual_doing(&self, object: ObjectIndex) -> Option<ThreadActivity> {
        let fields = self.objects.fields_of(object, self.virtual_thread?)?;
        let state = fields.value("state")?.bits & !SUSPENDED;
        let doing = *self.states.get(&state)?;
        if self.started == Some(state) && self.object(fields, "container").is_none() {
            return Some(ThreadActivity { state: Some(ThreadState::New), wait: None });
        }
        // Only PINNED and RUNNING have a carrier. A running virtual thread has its carrier's state.
        let carrier = (doing.state == Some(ThreadState::Runnable)).then(|| self.carrier(object)).flatten();
        Some(carrier.and_then(|carrier| self.platform_activity(carrier)).unwrap_or(doing))
    }

    /// Returns the carrier of a virtual thread, if it is mounted.
    pub(super) fn carrier(&self, object: ObjectIndex) -> Option<ObjectIndex> {
        match self.family(object) {
            Family::Virtual => {
                self.object(self.objects.fields_of(object, self.virtual_thread?)?, "carrierThread")
            }
            _ => None,
        }
    }
}
