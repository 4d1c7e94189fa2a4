//! Pass over the arrays: their contents, and how much of them their holders use.

use std::io;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::equal::{ContentItem, SHARED, Shares};
use super::findings::{Findings, Frees, PartKey, Saving, Sink};
use super::instances::{Held, Loose, UNKNOWN};
use super::plan::{Plan, Plans};
use super::{BlockCursor, WasteKind, WasteSearch, WasteWalk};
use crate::objects::collections::usage::{Count, Needs, Usage};
use crate::objects::reader::Record;
use crate::parallel;
use crate::strings::contents::{self, Hashes, StringEncoding};
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::ClassNumber;
use hprof_index::model::tables::ClassKind;
use hprof_index::objects::strings::StringPart;
use hprof_index::storage::scratch::Array;
use hprof_parser::heap::{HeapVisitor, ObjectArray, PrimitiveArray};
use hprof_parser::{BasicType, ObjectId, be_ids};

/// Minimum number of entries of a map that is checked for collisions.
const MIN_ENTRIES: u64 = 8;

/// A map in which most entries collide with others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Colliding {
    pub(super) map: u32,
    /// Number of entries, and of those after the first of their bucket.
    pub(super) entries: u64,
    pub(super) collisions: u64,
}

/// Results of the pass.
pub(super) struct ArrayFindings {
    /// Strings by a part of their hash.
    pub(super) texts: Shares,
    /// Other primitive arrays by a part of their hash.
    pub(super) contents: Shares,
    pub(super) findings: Vec<Findings>,
    /// Collections of few elements.
    pub(super) few: Vec<Array<Loose>>,
    /// Lists of one element that have nothing but an array: saving, list, array.
    pub(super) plain: Vec<Array<Saving>>,
    pub(super) colliding: Vec<Colliding>,
}

/// Kinds found in arrays.
const KINDS: [WasteKind; 6] = [
    WasteKind::ConstantArrays,
    WasteKind::UnusedArrayEnds,
    WasteKind::SparseCollections,
    WasteKind::ZeroLengthArrays,
    WasteKind::EmptyArrays,
    WasteKind::SingleElementArrays,
];
const CONSTANT: usize = 0;
const ENDS: usize = 1;
const SPARSE: usize = 2;
const ZERO_LENGTH: usize = 3;
const EMPTY: usize = 4;
const SINGLE: usize = 5;

/// Reads the arrays. `held` contains what instances state about arrays, by chunk, ascending in each.
pub(super) fn read(
    search: &WasteSearch<'_>,
    plans: &Plans,
    held: &[Array<Held>],
) -> io::Result<ArrayFindings> {
    let (texts, contents) = (Shares::new(&search.room), Shares::new(&search.room));
    let is_array: Vec<bool> =
        search.summary.classes().iter().map(|class| class.kind() != ClassKind::Instance).collect();
    let of_jvm = arrays_of_jvm(search);
    let survivors = held_empty_arrays(search, &of_jvm);
    let colliding: Mutex<Vec<Colliding>> = Mutex::default();
    let chunk = |chunk: Range<u32>| {
        let mut here: Vec<Held> = Vec::new();
        for held in held {
            let start = held.partition_point(|held| held.array < chunk.start);
            let end = held.partition_point(|held| held.array < chunk.end);
            here.extend_from_slice(held.get(start..end).unwrap_or_default());
        }
        here.sort_unstable_by_key(|held| (held.array, held.holder));
        let mut pass = ArrayPass {
            search,
            plans,
            of_jvm: &of_jvm,
            survivors: &survivors,
            cursor: BlockCursor::NONE,
            held: &here,
            texts: Vec::new(),
            contents: Vec::new(),
            sinks: Default::default(),
            few: Vec::new(),
            plain: Vec::new(),
            colliding: Vec::new(),
        };
        search.walk(chunk, &is_array, &mut pass);
        texts.put(&mut pass.texts)?;
        contents.put(&mut pass.contents)?;
        colliding.lock().unwrap_or_else(PoisonError::into_inner).append(&mut pass.colliding);
        let sinks = pass.sinks.into_iter().map(|sink| sink.into_room(&search.room));
        let few = (search.room.copy(&pass.few)?, search.room.copy(&pass.plain)?);
        Ok((sinks.collect::<io::Result<Vec<_>>>()?, few))
    };
    let chunks: Vec<_> = parallel::try_map(&search.chunks(), chunk)?;
    let mut findings: Vec<Findings> = KINDS
        .iter()
        .map(|kind| {
            Findings::new(
                *kind,
                if matches!(kind, WasteKind::UnusedArrayEnds | WasteKind::SparseCollections) {
                    Frees::Part
                } else {
                    Frees::Objects
                },
            )
        })
        .collect();
    let (mut few, mut plain) = (Vec::new(), Vec::new());
    for (sinks, (few_of_chunk, plain_of_chunk)) in chunks {
        few.push(few_of_chunk);
        plain.push(plain_of_chunk);
        for (findings, (savings, parts)) in findings.iter_mut().zip(sinks) {
            findings.take(savings, &parts);
        }
    }
    if let Some(zero_length) = findings.get_mut(ZERO_LENGTH) {
        keep_last(search, zero_length, &survivors)?;
    }
    let mut colliding = colliding.into_inner().unwrap_or_else(PoisonError::into_inner);
    colliding.sort_unstable_by_key(|colliding| colliding.map);
    Ok(ArrayFindings { texts, contents, findings, few, plain, colliding })
}

/// Returns the arrays in which the JVM keeps what classes refer to: no program created them.
fn arrays_of_jvm(search: &WasteSearch<'_>) -> FxHashSet<u32> {
    let summary = search.summary;
    let statics = summary.classes().iter().flat_map(|class| summary.statics(class));
    // `<resolved_references>`, `<init_lock>` and others; in JDK 8 without angle brackets.
    let is_of_jvm = |name: &str| name.starts_with('<') || name == "init_lock";
    let of_jvm = statics.filter(|(name, kind, _)| is_of_jvm(name) && *kind == BasicType::Object);
    of_jvm
        .filter_map(|(_, _, id)| search.graph.objects.addresses.index_of(ObjectId(id)))
        .map(|array| array.0)
        .collect()
}

/// Returns one array of length 0 of each class that could replace the others: one that a static field holds, the first
/// by object ID. By class, ascending.
fn held_empty_arrays(search: &WasteSearch<'_>, of_jvm: &FxHashSet<u32>) -> Vec<(ClassNumber, u32)> {
    let summary = search.summary;
    let mut found: Vec<(ClassNumber, u32)> = Vec::new();
    for class in summary.classes() {
        for (_, kind, id) in summary.statics(class) {
            if kind != BasicType::Object {
                continue;
            }
            let array = search.graph.objects.addresses.index_of(ObjectId(id));
            let array = array.filter(|array| search.reachable.contains(*array) && !of_jvm.contains(&array.0));
            let Some(array) = array else { continue };
            let class = search.class(array).filter(|class| {
                summary.class(*class).is_some_and(|class| class.kind() != ClassKind::Instance)
            });
            let is_empty = || match search.objects.record(array) {
                Some(Record::ObjectArray(array)) => array.length == 0,
                Some(Record::PrimitiveArray(array)) => array.length == 0,
                _ => false,
            };
            if let Some(class) = class.filter(|_| is_empty()) {
                found.push((class, array.0));
            }
        }
    }
    found.sort_unstable();
    found.dedup_by_key(|(class, _)| *class);
    found
}

/// Removes one array of each class of which no static field holds one: the last by object ID. The JDK's own objects,
/// which a program could use, are at the end of the heap.
fn keep_last(
    search: &WasteSearch<'_>,
    findings: &mut Findings,
    survivors: &[(ClassNumber, u32)],
) -> io::Result<()> {
    let mut last: FxHashMap<ClassNumber, u32> = FxHashMap::default();
    for saving in findings.all() {
        if let Some(class) = search.class(ObjectIndex(saving.object))
            && survivors.binary_search_by_key(&class, |(class, _)| *class).is_err()
        {
            let last = last.entry(class).or_default();
            *last = saving.object.max(*last);
        }
    }
    let stays = |saving: &Saving| {
        let class = search.class(ObjectIndex(saving.object));
        class.and_then(|class| last.get(&class)) == Some(&saving.object)
    };
    let rest: Vec<Saving> = findings.all().filter(|saving| !stays(saving)).copied().collect();
    let rest = search.room.copy(&rest)?;
    *findings = Findings::by_class(findings.kind, Frees::Objects, rest, |object| search.class(object));
    Ok(())
}

/// Visitor of arrays.
struct ArrayPass<'v, 'a> {
    search: &'v WasteSearch<'a>,
    plans: &'v Plans,
    of_jvm: &'v FxHashSet<u32>,
    survivors: &'v [(ClassNumber, u32)],
    cursor: BlockCursor,
    /// Statements of instances about this array and later ones.
    held: &'v [Held],
    texts: Vec<ContentItem>,
    contents: Vec<ContentItem>,
    sinks: [Sink; KINDS.len()],
    few: Vec<Loose>,
    plain: Vec<Saving>,
    colliding: Vec<Colliding>,
}

impl<'v> ArrayPass<'v, '_> {
    /// Returns the statements of instances about the array being visited.
    fn of_array(&mut self) -> &'v [Held] {
        let object = self.cursor.object().0;
        let before = self.held.iter().take_while(|held| held.array < object).count();
        let rest = self.held.get(before..).unwrap_or_default();
        let (here, rest) = rest.split_at(rest.iter().take_while(|held| held.array == object).count());
        self.held = rest;
        here
    }

    fn sink(&mut self, kind: usize, saving: Saving, part: Option<PartKey>, filled: (u64, u64)) {
        if let Some(sink) = self.sinks.get_mut(kind) {
            sink.push(saving, part, filled);
        }
    }

    /// Returns the class of the array being visited.
    fn part(&self) -> Option<PartKey> {
        Some(PartKey::Class(self.cursor.class()))
    }

    fn zero_length(&mut self, element: BasicType) {
        if self.of_jvm.contains(&self.cursor.object().0) {
            return;
        }
        let class = self.cursor.class();
        let held = self.survivors.binary_search_by_key(&class, |(class, _)| *class);
        let held = held.ok().and_then(|at| self.survivors.get(at));
        if held.is_some_and(|(_, array)| *array == self.cursor.object().0) {
            return;
        }
        let bytes = self.search.sizes.layout().array_size(element, 0);
        self.sink(ZERO_LENGTH, Saving::of(self.cursor.object(), bytes), self.part(), (0, 0));
    }

    /// Adds the Strings of a character array; returns whether there are any.
    fn strings(&mut self, record: &PrimitiveArray<'_>, held: &[Held]) -> bool {
        let mut is_of_string = false;
        let bytes = self.search.sizes.layout().array_size(record.element, record.length.into());
        let (mut hashes, mut shared) = (Hashes::new(record.length), 0);
        for held in held {
            if !matches!(self.plans.of(self.search.class(ObjectIndex(held.holder))), Plan::String(_)) {
                continue;
            }
            is_of_string = true;
            let Some((form, characters)) = StringEncoding::of(StringPart::of_words(held.says), record) else {
                continue;
            };
            let hash = hashes.get(form, &characters, || Some(contents::hash(&characters, self.search.seed)));
            let Some(hash) = hash.flatten() else { continue };
            let place = (record.offset as u64) << 2 | form as u64;
            let shared = std::mem::replace(&mut shared, SHARED);
            let (object, array) = (held.holder, self.cursor.object().0);
            self.texts.push(ContentItem { hash, place, bytes: bytes | shared, object, array });
        }
        is_of_string
    }

    /// Measures the used part of a buffer.
    fn unused_end(&mut self, record: &PrimitiveArray<'_>, elements: &[u8], held: &[Held], is_constant: bool) {
        let layout = *self.search.sizes.layout();
        let length = u64::from(record.length);
        let mut by_class: Option<(u32, ClassNumber)> = None;
        for held in held {
            if let Plan::Buffer(buffer) = self.plans.of(self.search.class(ObjectIndex(held.holder))) {
                let used = by_class.map_or(0, |(used, _)| used).max(held.says[0]);
                by_class = Some((used, by_class.map_or(buffer.class, |(_, class)| class)));
            }
        }
        let (used, part) = match by_class {
            Some((used, class)) => (u64::from(used).min(length), Some(PartKey::Buffer(class))),
            None if is_constant => return,
            None => {
                let width = match record.element {
                    BasicType::Byte => 1,
                    BasicType::Char => 2,
                    _ => return,
                };
                let used = (elements.len() - zeros_at_end(elements)).div_ceil(width) as u64;
                if (length - used.min(length)) * 2 < length {
                    return;
                }
                (used, Some(PartKey::Zeros(self.cursor.class())))
            }
        };
        let size = |length| layout.array_size(record.element, length);
        let bytes = size(length).saturating_sub(size(used));
        if bytes > 0 {
            self.sink(ENDS, Saving::of(self.cursor.object(), bytes), part, (used, length));
        }
    }

    /// Examines the table of a collection; returns whether the array is one.
    fn tables(&mut self, record: &ObjectArray<'_>, held: &[Held]) -> bool {
        let mut is_table = false;
        let mut is_first = true;
        let plans = self.plans;
        for held in held {
            let class = self.search.class(ObjectIndex(held.holder));
            if let Plan::Collection(usage) = plans.of(class) {
                is_table = true;
                // A table that several collections share shrinks once.
                if usage.is_counted {
                    self.table(record, held, usage, class.filter(|_| is_first));
                    is_first = false;
                }
            }
        }
        is_table
    }

    fn table(&mut self, record: &ObjectArray<'_>, held: &Held, usage: &Usage, class: Option<ClassNumber>) {
        let length = u64::from(record.length);
        let [first, second] = held.says;
        let elements = match usage.count {
            Count::Between(..) => {
                let (head, tail) = (u64::from(first), u64::from(second));
                if head <= tail { Some(tail - head) } else { (length + tail).checked_sub(head) }
            }
            Count::Length => Some(length),
            _ => (first != UNKNOWN).then_some(u64::from(first)),
        };
        let Some(elements) = elements else { return };
        // The sizes of other collections are already known from their own fields.
        let is_told_here = match usage.count {
            Count::Length => elements <= 1,
            Count::Between(..) => elements == 1,
            _ => false,
        };
        if elements == 1 && usage.is_plain {
            let bytes = self.search.sizes.layout().array_size(BasicType::Object, length);
            self.plain.push(Saving { bytes, object: held.holder, other: self.cursor.object().0 });
        } else if is_told_here {
            self.few.push(Loose { object: held.holder, elements: u32::from(elements == 1) });
        }
        let Some(class) = class.filter(|_| elements > 0) else { return };
        if usage.needs != Needs::All {
            let load = usage.load.map(|_| f32::from_bits(second));
            let needed = usage.needs.slots(elements, load);
            if needed <= length / 2 {
                let size = |length| self.search.sizes.layout().array_size(BasicType::Object, length);
                let bytes = size(length).saturating_sub(size(needed));
                if bytes > 0 {
                    let saving = Saving { bytes, object: held.holder, other: self.cursor.object().0 };
                    self.sink(SPARSE, saving, Some(PartKey::Class(class)), (elements, length));
                }
            }
        }
        if usage.is_hash && elements >= MIN_ENTRIES {
            let ids = be_ids(record.elements, self.search.summary.id_size());
            let used = ids.filter(|id| !id.is_null()).count() as u64;
            let collisions = elements.saturating_sub(used);
            if collisions * 2 > elements {
                self.colliding.push(Colliding { map: held.holder, entries: elements, collisions });
            }
        }
    }
}

/// Returns the number of zero bytes at the end.
fn zeros_at_end(bytes: &[u8]) -> usize {
    const ZEROS: [u8; 256] = [0; 256];
    let mut rest = bytes;
    while let Some((before, _)) = rest.split_last_chunk::<256>().filter(|(_, last)| **last == ZEROS) {
        rest = before;
    }
    let used = rest.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    bytes.len() - used
}

impl<'a> WasteWalk<'a> for ArrayPass<'_, 'a> {
    fn cursor(&mut self) -> &mut BlockCursor {
        &mut self.cursor
    }
}

impl<'a> HeapVisitor<'a> for ArrayPass<'_, 'a> {
    #[inline(always)]
    fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
        if !self.cursor.is_wanted() {
            return;
        }
        let held = self.of_array();
        let is_of_string = self.strings(&record, held);
        if record.length == 0 {
            return self.zero_length(record.element);
        }
        let Some(elements) = record.elements.filter(|_| !is_of_string) else { return };
        let bytes = self.search.sizes.layout().array_size(record.element, record.length.into());
        let width = record.element.dump_bytes(self.search.summary.id_size());
        let is_constant = record.length >= 2
            && elements.get(width..).is_some_and(|rest| elements.get(..rest.len()) == Some(rest));
        if is_constant {
            self.sink(CONSTANT, Saving::of(self.cursor.object(), bytes), self.part(), (0, 0));
        }
        self.unused_end(&record, elements, held, is_constant);
        let code = record.element as u64;
        self.contents.push(ContentItem {
            hash: xxh3_64_with_seed(elements, self.search.seed ^ code),
            place: (record.offset as u64) << 2,
            bytes,
            object: self.cursor.object().0,
            array: self.cursor.object().0,
        });
    }

    #[inline(always)]
    fn object_array(&mut self, record: ObjectArray<'a>) {
        if !self.cursor.is_wanted() {
            return;
        }
        let held = self.of_array();
        if record.length == 0 {
            self.zero_length(BasicType::Object);
        }
        let is_table = self.tables(&record, held);
        if is_table || record.length == 0 || self.of_jvm.contains(&self.cursor.object().0) {
            return;
        }
        let ids = be_ids(record.elements, self.search.summary.id_size());
        let used = ids.filter(|id| !id.is_null()).take(2).count();
        let kind = match used {
            0 => EMPTY,
            1 => SINGLE,
            _ => return,
        };
        let bytes = self.search.sizes.layout().array_size(BasicType::Object, record.length.into());
        self.sink(
            kind,
            Saving::of(self.cursor.object(), bytes),
            self.part(),
            (used as u64, record.length.into()),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_counted_from_the_end() {
        let mut bytes = vec![0; 1000];
        assert_eq!((zeros_at_end(&bytes), zeros_at_end(&[]), zeros_at_end(&[1])), (1000, 0, 0));
        for at in [0, 1, 743, 744, 745, 998, 999] {
            bytes.fill(0);
            if let Some(byte) = bytes.get_mut(at) {
                *byte = 1;
            }
            assert_eq!(zeros_at_end(&bytes), 999 - at, "{at}");
        }
    }
}
