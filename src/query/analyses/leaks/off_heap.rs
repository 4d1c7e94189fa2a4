//! Off-heap memory that objects represent: direct and mapped ByteBuffers.
//!
//! Each piece of memory counts once: slices and duplicates refer in `att` to the buffer of which they are views. A single dump
//! shows how much memory there is and who holds it, but not whether it grows.

use hprof_index::Dump;
use std::cmp::Reverse;

use hprof_base::share::is_share;
use rustc_hash::{FxHashMap, FxHashSet};

use super::judgement::heap_limit;
use hprof_base::sorting::SortRows;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::storage::human_bytes::HumanBytes;
use hprof_model::objects::class_set::ClassSet;
use hprof_model::objects::reader::ObjectReader;
use hprof_model::objects::reference_names::Edges;
use hprof_model::objects::strength::Exclusions;
use hprof_values::{BasicType, ObjectId, names};

/// Maximum number of referrers of a buffer examined.
const MAX_REFERRERS: usize = 16;
/// Maximum number of objects examined to find an owner, nearest first.
const MAX_CLIMB: usize = 64;
/// Maximum number of owners reported.
const TOLD_OWNERS: usize = 5;
/// Maximum number of buffers whose owners are searched, largest first.
const MAX_OWNED: usize = 1000;

/// Minimum percentage of the limit of direct buffers for the buffers to be a suspect.
const NEAR_LIMIT_PERCENT: u64 = 90;
/// Minimum size of off-heap memory for a suspect, as a fraction of the heap, 1/N.
const PART_OF_HEAP: u64 = 3;
/// Minimum size of off-heap memory for a suspect, in bytes.
const MUCH: u64 = 32 << 20;
/// Minimum size of direct buffers for a suspect, as a fraction of their limit, 1/N.
const PART_OF_LIMIT: u64 = 10;
/// Maximum number of errors whose messages are read.
const MAX_ERRORS: usize = 64;
/// Maximum number of characters of an error's message that are read.
const MAX_MESSAGE: usize = 256;

/// Number and size of buffers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Buffers {
    /// Number of buffers.
    pub buffers: u64,
    /// Sum of their capacities in bytes.
    pub bytes: u64,
}

/// A field that leads to buffers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferOwner {
    /// Nearest field of an application class that leads to the buffers; `None` if none is near.
    pub field: Option<String>,
    /// Number and size of the buffers to which it leads.
    pub buffers: Buffers,
}

/// Off-heap memory of a dump, and the limits of the JVM for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OffHeap {
    /// Direct ByteBuffers, excluding views of other buffers and files that the JDK maps for its own use.
    pub direct: Buffers,
    /// Mapped files.
    pub mapped: Buffers,
    /// Largest owners of the thousand largest buffers.
    pub owners: Vec<BufferOwner>,
    /// Bytes that the JVM counts as reserved for direct buffers (`java.nio.Bits`), if the dump contains them.
    pub reserved_bytes: Option<u64>,
    /// Limit of reserved bytes, if the dump contains it.
    pub limit_bytes: Option<u64>,
    /// Largest reachable direct buffer.
    largest: Option<ObjectIndex>,
}

/// Direct and mapped buffers of a dump, and who holds them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BufferHolders {
    /// Direct ByteBuffers, as in [`OffHeap`].
    pub direct: Buffers,
    /// Mapped files.
    pub mapped: Buffers,
    /// Bytes that the JVM counts as reserved for direct buffers, if the dump contains them.
    pub reserved_bytes: Option<u64>,
    /// Limit of reserved bytes, if the dump contains it.
    pub limit_bytes: Option<u64>,
    /// Largest owners of the thousand largest direct buffers.
    pub direct_owners: Vec<BufferOwner>,
    /// Largest owners of the thousand largest mapped files.
    pub mapped_owners: Vec<BufferOwner>,
}

/// Off-heap memory that a suspect is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffHeapUse {
    /// Direct buffers.
    pub buffers: Buffers,
    /// Field that leads to most of the buffers.
    pub field: Option<String>,
    /// Limit of direct buffers in bytes, if the dump contains it.
    pub limit_bytes: Option<u64>,
}

/// A buffer that is not a view of another.
struct NativeBuffer {
    object: ObjectIndex,
    bytes: u64,
    is_mapped: bool,
}

/// Counts direct buffers.
pub(crate) fn direct(objects: &ObjectReader<'_>) -> Buffers {
    let mut found = Buffers::default();
    let direct = buffers(objects).into_iter().filter(|buffer| !buffer.is_mapped);
    direct.for_each(|buffer| found.add(buffer.bytes));
    found
}

/// Finds direct and mapped buffers, and the owners of the largest.
pub(crate) fn off_heap(dump: &Dump<'_>) -> OffHeap {
    let objects = &dump.objects;
    let mut found = OffHeap::default();
    let mut buffers = buffers(objects);
    if buffers.is_empty() {
        return found;
    }
    for buffer in &buffers {
        let kind = if buffer.is_mapped { &mut found.mapped } else { &mut found.direct };
        kind.add(buffer.bytes);
    }
    buffers.sort_rows_by_key(|buffer| (Reverse(buffer.bytes), buffer.object));
    let is_live = |buffer: &&NativeBuffer| {
        !buffer.is_mapped && objects.graph.tree.reachable_position(buffer.object).is_some()
    };
    found.largest = buffers.iter().find(is_live).map(|buffer| buffer.object);
    buffers.truncate(MAX_OWNED);
    found.owners = owners(&Edges::new(dump), &buffers);
    (found.reserved_bytes, found.limit_bytes) = counters(objects);
    found
}

/// Finds direct and mapped buffers, and the owners of the largest of each.
pub fn holders(dump: &Dump<'_>) -> BufferHolders {
    let mut found = BufferHolders::default();
    let mut buffers = buffers(&dump.objects);
    buffers.sort_rows_by_key(|buffer| (Reverse(buffer.bytes), buffer.object));
    let (mut mapped, mut direct): (Vec<NativeBuffer>, Vec<NativeBuffer>) =
        buffers.into_iter().partition(|buffer| buffer.is_mapped);
    direct.iter().for_each(|buffer| found.direct.add(buffer.bytes));
    mapped.iter().for_each(|buffer| found.mapped.add(buffer.bytes));
    direct.truncate(MAX_OWNED);
    mapped.truncate(MAX_OWNED);
    let edges = Edges::new(dump);
    (found.direct_owners, found.mapped_owners) = (owners(&edges, &direct), owners(&edges, &mapped));
    if !(direct.is_empty() && mapped.is_empty()) {
        (found.reserved_bytes, found.limit_bytes) = counters(&dump.objects);
    }
    found
}

/// Returns the suspect for off-heap memory, if it is near its limit, an allocation failed, or it is large compared with the
/// heap; with the largest buffer and the evidence.
pub(super) fn suspect(
    objects: &ObjectReader<'_>,
    found: &OffHeap,
) -> Option<(OffHeapUse, ObjectIndex, Vec<String>)> {
    let largest = found.largest?;
    // Mapped files belong to the page cache.
    let all = found.direct;
    let reserved = found.reserved_bytes.unwrap_or(found.direct.bytes);
    let limit = found.limit_bytes.or_else(|| heap_limit(objects.summary));
    let is_near = limit.is_some_and(|limit| is_share(reserved, limit, NEAR_LIMIT_PERCENT));
    let heap_bytes = objects.graph.tree.reachable_bytes();
    // Pools have some buffers per processor, regardless of the limit.
    let is_little = limit.is_some_and(|limit| all.bytes < limit / PART_OF_LIMIT);
    let is_large = all.bytes >= MUCH && all.bytes > heap_bytes / PART_OF_HEAP && !is_little;
    let mut evidence = Vec::new();
    if has_failed(objects) {
        evidence.push("an allocation of a direct buffer failed".to_owned());
    }
    if let Some(limit) = limit.filter(|_| is_near) {
        evidence.push(format!(
            "{} of at most {} of direct memory are reserved",
            HumanBytes(reserved),
            HumanBytes(limit)
        ));
    }
    if is_large {
        evidence.push(format!("its size is more than a third of the heap of {}", HumanBytes(heap_bytes)));
    }
    let field = found.owners.first().and_then(|owner| owner.field.clone());
    let used = OffHeapUse { buffers: all, field, limit_bytes: found.limit_bytes };
    (!evidence.is_empty()).then_some((used, largest, evidence))
}

/// Returns whether the heap has an error about direct buffers, which the JVM throws when their limit is reached.
fn has_failed(objects: &ObjectReader<'_>) -> bool {
    let errors = ClassSet::of_name_and_below(objects.summary, "java.lang.OutOfMemoryError");
    let message = |error: ObjectIndex| {
        let text = objects.string(objects.reference(error, "detailMessage")?)?;
        Some(text.text(MAX_MESSAGE))
    };
    let all = errors.all_objects(objects.graph).into_iter().take(MAX_ERRORS);
    all.filter_map(message).any(|text| text.to_lowercase().contains("direct buffer memory"))
}

impl Buffers {
    fn add(&mut self, bytes: u64) {
        self.buffers += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn add_all(&mut self, others: Self) {
        self.buffers += others.buffers;
        self.bytes = self.bytes.saturating_add(others.bytes);
    }
}

fn buffers(objects: &ObjectReader<'_>) -> Vec<NativeBuffer> {
    let classes = ClassSet::of_name_and_below(objects.summary, "java.nio.MappedByteBuffer");
    let has_objects = |class| objects.summary.class(class).is_some_and(|row| row.objects.get() > 0);
    if !classes.classes().any(has_objects) {
        return Vec::new();
    }
    let all = classes.all_objects(objects.graph).into_iter();
    all.filter_map(|object| buffer(objects, object)).collect()
}

fn buffer(objects: &ObjectReader<'_>, object: ObjectIndex) -> Option<NativeBuffer> {
    let fields = objects.fields(object)?;
    let is_null = |name: &str| fields.value(name).is_none_or(|value| value.bits == 0);
    let bytes = u64::try_from(fields.integer("capacity")?).ok().filter(|bytes| *bytes > 0)?;
    // The JDK maps its own class files in native code: views of that are not memory of the program.
    let is_image = |from: ObjectIndex| class_name(objects, from).starts_with("jdk.internal.jimage.");
    let referrers = |object| objects.graph.referrers(object).take(MAX_REFERRERS);
    let is_of_image = |from| is_image(from) || referrers(from).any(is_image);
    let is_own = is_null("att") && is_null("viewedBuffer") && !referrers(object).any(is_of_image);
    is_own.then(|| NativeBuffer { object, bytes, is_mapped: !is_null("fd") })
}

fn class_name<'a>(objects: &ObjectReader<'a>, object: ObjectIndex) -> &'a str {
    let class = objects.graph.objects.class(object).and_then(|class| objects.summary.class(class));
    class.map_or("", |class| objects.summary.class_name(class))
}

fn owners(edges: &Edges<'_>, buffers: &[NativeBuffer]) -> Vec<BufferOwner> {
    // A class may have as many fields as there are buffers: its record is read once for all of them.
    let mut of_owner: FxHashMap<Option<ObjectIndex>, Vec<(ObjectIndex, u64)>> = FxHashMap::default();
    for buffer in buffers {
        let (owner, held) = owner(edges, buffer.object).unzip();
        of_owner.entry(owner).or_default().push((held.unwrap_or_default(), buffer.bytes));
    }
    let mut of_field: FxHashMap<Option<String>, Buffers> = FxHashMap::default();
    for (owner, held) in of_owner {
        let Some(owner) = owner else {
            held.iter().for_each(|(_, bytes)| of_field.entry(None).or_default().add(*bytes));
            continue;
        };
        let name = name(edges, owner).unwrap_or_default();
        for (field, buffers) in fields(edges, owner, &held) {
            let field = field.map_or_else(|| name.to_owned(), |field| format!("{name}.{field}"));
            of_field.entry(Some(field)).or_default().add_all(buffers);
        }
    }
    let mut owners: Vec<BufferOwner> =
        of_field.into_iter().map(|(field, buffers)| BufferOwner { field, buffers }).collect();
    owners.sort_rows_by(|a, b| {
        Reverse(a.buffers.bytes).cmp(&Reverse(b.buffers.bytes)).then(a.field.cmp(&b.field))
    });
    owners.truncate(TOLD_OWNERS);
    owners
}

/// Groups buffers by the field through which an object leads to them. `held` contains the objects that it references itself,
/// one per buffer, and the size of the buffer.
fn fields(
    edges: &Edges<'_>,
    owner: ObjectIndex,
    held: &[(ObjectIndex, u64)],
) -> FxHashMap<Option<String>, Buffers> {
    let mut targets: Vec<ObjectIndex> = held.iter().map(|(target, _)| *target).collect();
    targets.sort_unstable();
    targets.dedup();
    let holdings = edges.holdings(owner, &targets);
    let mut of_field: FxHashMap<Option<String>, Buffers> = FxHashMap::default();
    for (target, bytes) in held {
        let holding = targets.binary_search(target).ok().and_then(|at| holdings.get(at));
        let field = holding.and_then(|holding| holding.meanings.first()).map(ToString::to_string);
        of_field.entry(field).or_default().add(*bytes);
    }
    of_field
}

/// Returns the class name of an object; for a class object, the name of the represented class.
fn name<'a>(edges: &Edges<'a>, object: ObjectIndex) -> Option<&'a str> {
    let class = edges.class_of_class_object(object).or_else(|| edges.dump.graph.objects.class(object))?;
    Some(edges.dump.summary.class_name(edges.dump.summary.class(class)?))
}

/// Returns the nearest object of an application class that leads to a buffer, and the next object on that path. The buffer's
/// dominator is not used, since cleaners reference buffers as well.
fn owner(edges: &Edges<'_>, buffer: ObjectIndex) -> Option<(ObjectIndex, ObjectIndex)> {
    let mut seen: FxHashSet<ObjectIndex> = [buffer].into_iter().collect();
    let mut queue = vec![buffer];
    let mut at = 0;
    while let Some(held) = queue.get(at).copied().filter(|_| at < MAX_CLIMB) {
        at += 1;
        for holder in edges.dump.graph.referrers(held).take(MAX_REFERRERS) {
            if edges.dump.graph.tree.reachable_position(holder).is_none()
                || seen.contains(&holder)
                || !edges.is_followed(holder, held, Exclusions::all_but_strong())
            {
                continue;
            }
            if name(edges, holder).is_some_and(|name| !names::is_of_jdk(name) && !name.ends_with("[]")) {
                return Some((holder, held));
            }
            seen.insert(holder);
            queue.push(holder);
        }
    }
    None
}

/// Returns the number of bytes that `java.nio.Bits` counts as reserved, and its limit.
fn counters(objects: &ObjectReader<'_>) -> (Option<u64>, Option<u64>) {
    let summary = objects.summary;
    let class = summary.classes().iter().find(|class| summary.is_named(class, "java.nio.Bits"));
    let value = |wanted: [&str; 2], kind: BasicType| {
        let mut statics = class.into_iter().flat_map(|class| summary.statics(class));
        let found = statics.find(|(name, of, _)| wanted.contains(name) && *of == kind);
        found.map(|(.., value)| value)
    };
    let reserved = value(["RESERVED_MEMORY", "reservedMemory"], BasicType::Object);
    let reserved = reserved.and_then(|id| objects.graph.objects.addresses.index_of(ObjectId(id)));
    let reserved = reserved.and_then(|counter| objects.field(counter, "value")?.integer());
    // JDK 6 and 7 use plain long fields.
    let plain = || value(["reservedMemory", "reservedMemory"], BasicType::Long).map(u64::cast_signed);
    let limit = value(["MAX_MEMORY", "maxMemory"], BasicType::Long).map(u64::cast_signed);
    let bytes = |number: i64| u64::try_from(number).ok();
    (reserved.or_else(plain).and_then(bytes), limit.and_then(bytes).filter(|limit| *limit > 0))
}
