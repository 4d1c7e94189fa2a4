//! Pass over the arrays: their contents, and the part of them that their holders use.

use std::io;
use std::ops::Range;

use rustc_hash::FxHashSet;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::WasteSearch;
use super::collection_look::CollectionLook;
use super::equal::{ContentItem, SHARED, Shares};
use super::findings::{Findings, Saving, Sinks};
use super::instances::{ArrayHolder, LooseCollection, UNKNOWN};
use super::kind::Hooks;
use super::kinds::KINDS;
use super::plan::Plan;
use super::visited::{VisitedArray, VisitedTable};
use crate::frameworks::{Frameworks, PooledField};
use hprof_base::parallel;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::array_contents::MissingContents;
use hprof_index::model::summary::ClassNumber;
use hprof_index::model::tables::ClassKind;
use hprof_index::objects::strings::StringPart;
use hprof_index::storage::scratch::Array;
use hprof_model::objects::class_set::ClassSet;
use hprof_model::objects::collections::usage::{Count, Usage};
use hprof_model::objects::reader::{ObjectArray, ObjectVisitor, PrimitiveArray};
use hprof_model::strings::contents::{self, Hashes, StringEncoding};
use hprof_values::{BasicType, ObjectId, be_ids};

/// Results of the pass.
pub(super) struct ArrayFindings {
    /// Strings, divided into shares by hash.
    pub(super) texts: Shares,
    /// Other primitive arrays, divided into shares by hash.
    pub(super) contents: Shares,
    /// Arrays of length 0, ascending.
    pub(super) zero_length: Vec<Array<Saving>>,
    /// Collections with few elements.
    pub(super) few: Vec<Array<LooseCollection>>,
    /// Lists with one element that consist only of an array, by their arrays.
    pub(super) plain: Vec<Array<Saving>>,
}

/// Reads the arrays. `held` contains the uses of arrays that instances state, by chunk, ascending within each chunk.
pub(super) fn read(
    look: &CollectionLook<'_, '_>,
    hooks: &Hooks,
    held: &[Array<ArrayHolder>],
    all: &mut [Findings],
) -> io::Result<ArrayFindings> {
    let search = look.search;
    let (texts, contents) = (Shares::new(&search.room), Shares::new(&search.room));
    let is_array: Vec<bool> =
        search.dump.summary.classes().iter().map(|class| class.kind() != ClassKind::Instance).collect();
    let (of_jvm, pooled) = (arrays_of_jvm(search), pooled_arrays(search));
    let chunk = |chunk: Range<u32>| {
        let mut here: Vec<ArrayHolder> = Vec::new();
        for held in held {
            let start = held.partition_point(|held| held.array < chunk.start);
            let end = held.partition_point(|held| held.array < chunk.end);
            here.extend_from_slice(held.get(start..end).unwrap_or_default());
        }
        here.sort_unstable_by_key(|held| (held.array, held.holder));
        let mut pass = ArrayPass {
            search,
            look,
            hooks,
            of_jvm: &of_jvm,
            pooled: &pooled,
            missing: search.dump.summary.missing_contents(),
            object: ObjectIndex(0),
            held: &here,
            texts: Vec::new(),
            contents: Vec::new(),
            sinks: Sinks::new(KINDS.len()),
            zero_length: Vec::new(),
            few: Vec::new(),
            plain: Vec::new(),
        };
        search.walk(chunk, &is_array, &mut pass);
        texts.put(&mut pass.texts)?;
        contents.put(&mut pass.contents)?;
        let room = &search.room;
        let lists = [room.copy(&pass.zero_length)?, room.copy(&pass.plain)?];
        Ok((pass.sinks.into_room(room)?, room.copy(&pass.few)?, lists))
    };
    let (mut few, mut plain, mut zero_length) = (Vec::new(), Vec::new(), Vec::new());
    for (sinks, few_of_chunk, [empty, single]) in parallel::try_map(&search.chunks(), chunk)? {
        sinks.add_to(all);
        few.push(few_of_chunk);
        zero_length.push(empty);
        plain.push(single);
    }
    Ok(ArrayFindings { texts, contents, zero_length, few, plain })
}

/// Returns the arrays in which the JVM stores references of classes, which the program did not create.
fn arrays_of_jvm(search: &WasteSearch<'_>) -> FxHashSet<u32> {
    let summary = search.dump.summary;
    let statics = summary.classes().iter().flat_map(|class| summary.statics(class));
    // `<resolved_references>`, `<init_lock>` and others; in JDK 8 without angle brackets.
    let is_of_jvm = |name: &str| name.starts_with('<') || name == "init_lock";
    let of_jvm = statics.filter(|(name, kind, _)| is_of_jvm(name) && *kind == BasicType::Object);
    of_jvm
        .filter_map(|(_, _, id)| search.dump.graph.objects.addresses.index_of(ObjectId(id)))
        .map(|array| array.0)
        .collect()
}

/// Returns the arrays that frameworks hand out in slices, so that their unused parts are not waste.
fn pooled_arrays(search: &WasteSearch<'_>) -> FxHashSet<u32> {
    let mut arrays = FxHashSet::default();
    for PooledField { class, field } in Frameworks::builtin().pooled_fields() {
        let pools = ClassSet::of_name_and_below(search.dump.summary, class).all_objects(search.dump.graph);
        let fields = pools.into_iter().filter_map(|pool| search.dump.objects.field(pool, field));
        let ids = fields.filter(|value| value.kind == BasicType::Object).map(|value| ObjectId(value.bits));
        arrays.extend(ids.filter_map(|id| Some(search.dump.graph.objects.addresses.index_of(id)?.0)));
    }
    arrays
}

/// Visitor of arrays, which finds waste in them.
struct ArrayPass<'v, 'a> {
    search: &'v WasteSearch<'a>,
    look: &'v CollectionLook<'v, 'a>,
    hooks: &'v Hooks,
    of_jvm: &'v FxHashSet<u32>,
    pooled: &'v FxHashSet<u32>,
    /// Contents that the dump lacks.
    missing: MissingContents,
    /// The visited object.
    object: ObjectIndex,
    /// Uses of this array and later ones that instances state.
    held: &'v [ArrayHolder],
    texts: Vec<ContentItem>,
    contents: Vec<ContentItem>,
    sinks: Sinks,
    zero_length: Vec<Saving>,
    few: Vec<LooseCollection>,
    plain: Vec<Saving>,
}

impl<'v, 'a> ArrayPass<'v, 'a> {
    /// Returns the uses of the visited array that instances state.
    fn of_array(&mut self) -> &'v [ArrayHolder] {
        let object = self.object.0;
        let before = self.held.iter().take_while(|held| held.array < object).count();
        let rest = self.held.get(before..).unwrap_or_default();
        let (here, rest) = rest.split_at(rest.iter().take_while(|held| held.array == object).count());
        self.held = rest;
        here
    }

    fn zero_length(&mut self, element: BasicType) {
        let array = self.object;
        if !self.of_jvm.contains(&array.0) {
            let bytes = self.search.sizes.layout().array_size(element, 0);
            self.zero_length.push(Saving::new(array, bytes));
        }
    }

    /// The array being visited.
    fn visited_array<'e>(&self, element: BasicType, length: u32, elements: &'e [u8]) -> VisitedArray<'e, 'a>
    where
        'v: 'e,
    {
        let length = length.into();
        VisitedArray {
            search: self.search,
            plans: self.look.plans,
            object: self.object,
            class: self.search.class(self.object).unwrap_or(ClassNumber(u32::MAX)),
            element,
            length,
            bytes: self.search.sizes.layout().array_size(element, length),
            elements,
            held: &[],
            has_contents: true,
            is_constant: false,
            references: 0,
        }
    }

    /// Adds the Strings that use a character array. Returns whether there are any.
    fn add_strings(&mut self, record: &PrimitiveArray<'_>, held: &[ArrayHolder]) -> bool {
        let mut is_of_string = false;
        let bytes = self.search.sizes.layout().array_size(record.element, record.length.into());
        let (mut hashes, mut shared) = (Hashes::new(record.length), 0);
        for held in held {
            if !matches!(
                self.look.plans.plan_of(self.search.class(ObjectIndex(held.holder))),
                Plan::String(_)
            ) {
                continue;
            }
            is_of_string = true;
            let Some((form, characters)) =
                StringEncoding::decode(StringPart::of_words(held.says), record, self.missing)
            else {
                continue;
            };
            let hash = hashes.get(form, &characters, || Some(contents::hash(&characters, self.search.seed)));
            let Some(hash) = hash.flatten() else { continue };
            let place = record.offset << 2 | form as u64;
            let shared = std::mem::replace(&mut shared, SHARED);
            let (object, array) = (held.holder, self.object.0);
            self.texts.push(ContentItem { hash, place, bytes: bytes | shared, object, array });
        }
        is_of_string
    }

    /// Examines an array as the table of collections. Returns whether it is a table.
    fn tables(&mut self, record: &ObjectArray<'_>, held: &[ArrayHolder]) -> bool {
        let mut is_table = false;
        let mut is_first = true;
        let plans = self.look.plans;
        for held in held {
            let class = self.search.class(ObjectIndex(held.holder));
            if let Plan::Collection(usage) = plans.plan_of(class) {
                is_table = true;
                // A table that several collections share is counted once.
                if usage.is_counted {
                    self.table(record, held, usage, class.filter(|_| is_first));
                    is_first = false;
                }
            }
        }
        is_table
    }

    fn table(
        &mut self,
        record: &ObjectArray<'_>,
        held: &ArrayHolder,
        usage: &Usage,
        class: Option<ClassNumber>,
    ) {
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
            self.plain.push(Saving { bytes, object: held.holder, other: self.object.0 });
        } else if is_told_here {
            self.few.push(LooseCollection { object: held.holder, elements: u32::from(elements == 1) });
        }
        let Some(class) = class.filter(|_| elements > 0) else { return };
        let table = VisitedTable {
            search: self.search,
            look: self.look,
            object: self.object,
            collection: ObjectIndex(held.holder),
            class,
            usage,
            length,
            ids: record.elements,
            elements,
            load: f32::from_bits(second),
        };
        self.sinks.visit(&self.hooks.tables, |look, sink| look(&table, sink));
    }
}

impl<'a> ObjectVisitor<'a> for ArrayPass<'_, 'a> {
    #[inline(always)]
    fn primitive_array(&mut self, object: ObjectIndex, record: PrimitiveArray<'a>) {
        self.object = object;
        let held = self.of_array();
        let is_of_string = self.add_strings(&record, held);
        if record.length == 0 {
            return self.zero_length(record.element);
        }
        let is_pooled = self.pooled.contains(&self.object.0);
        let Some(elements) = record.elements.filter(|_| !is_of_string && !is_pooled) else { return };
        let width = record.element.dump_bytes(self.search.dump.summary.id_size());
        let has_contents = !self.missing.has_lost(record.element, record.length);
        let is_constant = has_contents
            && record.length >= 2
            && elements.get(width..).is_some_and(|rest| elements.get(..rest.len()) == Some(rest));
        let array = self.visited_array(record.element, record.length, elements);
        let array = VisitedArray { held, has_contents, is_constant, ..array };
        let bytes = array.bytes;
        self.sinks.visit(&self.hooks.primitive_arrays, |look, sink| look(&array, sink));
        if !has_contents {
            return;
        }
        let code = record.element as u64;
        self.contents.push(ContentItem {
            hash: xxh3_64_with_seed(elements, self.search.seed ^ code),
            place: record.offset << 2,
            bytes,
            object: self.object.0,
            array: self.object.0,
        });
    }

    #[inline(always)]
    fn object_array(&mut self, object: ObjectIndex, record: ObjectArray<'a>) {
        self.object = object;
        let held = self.of_array();
        if record.length == 0 {
            self.zero_length(BasicType::Object);
        }
        let is_table = self.tables(&record, held);
        if is_table || record.length == 0 || self.of_jvm.contains(&self.object.0) {
            return;
        }
        let ids = be_ids(record.elements, self.search.dump.summary.id_size());
        let references = ids.filter(|id| !id.is_null()).take(2).count() as u64;
        if references < 2 {
            let array = self.visited_array(BasicType::Object, record.length, record.elements);
            let array = VisitedArray { references, ..array };
            self.sinks.visit(&self.hooks.reference_arrays, |look, sink| look(&array, sink));
        }
    }
}
