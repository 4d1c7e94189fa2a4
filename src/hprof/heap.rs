//! The sub-records of a HEAP DUMP or HEAP DUMP SEGMENT record.
//!
//! [`walk`] is the only decoder: it calls a [`HeapVisitor`] for each sub-record, monomorphized, so that a
//! visitor pays only for the data it uses. All code that reads sub-records uses it.
//!
//! Sources: specification, HEAP DUMP; Android's tags 0x89-0x90, 0xC3, 0xFE from `art/runtime/hprof/hprof.cc`.

use super::class_dump::{self, ClassDump};
use super::heap_tag::{CLASS, HEAP_INFO, INSTANCE, OBJECT_ARRAY, PRIMITIVE_ARRAY, PRIMITIVE_ARRAY_NODATA};
use super::{
    BasicType, FormatError, FormatErrorKind, IdSize, ObjectId, RootKind, TraceSerial, be_u32, be_u64,
};

/// An instance.
#[derive(Debug, Clone, Copy)]
pub struct Instance<'a> {
    /// Offset of the sub-record's tag in the file.
    pub offset: usize,
    /// End of the sub-record (exclusive).
    pub end: usize,
    /// Object ID.
    pub id: ObjectId,
    /// Serial number of the allocation trace.
    pub trace: TraceSerial,
    /// ID of the class object.
    pub class: ObjectId,
    /// Values of the fields: the class's own first, then its superclass's, and so on.
    pub fields: &'a [u8],
}

/// An array of references.
#[derive(Debug, Clone, Copy)]
pub struct ObjectArray<'a> {
    /// Offset of the sub-record's tag in the file.
    pub offset: usize,
    /// End of the sub-record (exclusive).
    pub end: usize,
    /// Object ID.
    pub id: ObjectId,
    /// Serial number of the allocation trace.
    pub trace: TraceSerial,
    /// ID of the array's class object.
    pub class: ObjectId,
    /// Number of elements.
    pub length: u32,
    /// Elements: consecutive identifiers.
    pub elements: &'a [u8],
}

/// An array of primitives.
#[derive(Debug, Clone, Copy)]
pub struct PrimitiveArray<'a> {
    /// Offset of the sub-record's tag in the file.
    pub offset: usize,
    /// End of the sub-record (exclusive).
    pub end: usize,
    /// Object ID.
    pub id: ObjectId,
    /// Serial number of the allocation trace.
    pub trace: TraceSerial,
    /// Element type.
    pub element: BasicType,
    /// Number of elements.
    pub length: u32,
    /// Elements, big-endian; `None` in Android's arrays without data.
    pub elements: Option<&'a [u8]>,
}

/// A GC root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootRecord {
    /// Kind of the root.
    pub kind: RootKind,
    /// Object ID, which can be null.
    pub id: ObjectId,
    /// Serial number of the thread, for kinds that have one.
    pub thread: Option<u32>,
    /// Frame number in the thread's trace (`java frame`, `JNI local`), or serial number of the trace
    /// (`thread object`); `u32::MAX` means none.
    pub frame: Option<u32>,
}

/// Callbacks of [`walk`]. Methods that a visitor does not need have empty defaults.
pub trait HeapVisitor<'a> {
    /// Visits an INSTANCE DUMP.
    fn instance(&mut self, record: Instance<'a>) {
        let _ = record;
    }
    /// Visits an OBJECT ARRAY DUMP.
    fn object_array(&mut self, record: ObjectArray<'a>) {
        let _ = record;
    }
    /// Visits a PRIMITIVE ARRAY DUMP, or Android's variant without data.
    fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
        let _ = record;
    }
    /// Visits a CLASS DUMP.
    fn class(&mut self, record: ClassDump<'a>) {
        let _ = record;
    }
    /// Visits any of the root sub-records.
    fn root(&mut self, offset: usize, root: RootRecord) {
        let _ = (offset, root);
    }
    /// Visits Android's HEAP DUMP INFO: the following objects belong to this heap (`app`, `zygote`,
    /// `image`).
    fn heap_info(&mut self, offset: usize, heap: u32, name: u64) {
        let _ = (offset, heap, name);
    }
    /// Called before each sub-record; returning `false` ends the walk.
    #[inline(always)]
    fn go_on(&mut self) -> bool {
        true
    }
}

/// Result of a walk: where it ended, and why.
#[derive(Debug)]
pub struct WalkEnd {
    /// Offset of the first byte that was not read.
    pub next: usize,
    /// Error that ended it before `end`, if any.
    pub error: Option<FormatError>,
}

/// Size of the longest sub-record prefix that contains its length: tag, two identifiers, three u4.
const HEAD: usize = 32;

/// Walks over the sub-records of `bytes` (the whole file) that start in `start..end`; none may extend
/// beyond `limit`, the end of the record that contains them. Positions are offsets in the file.
pub fn walk<'a, V: HeapVisitor<'a>>(
    bytes: &'a [u8],
    id_size: IdSize,
    start: usize,
    end: usize,
    limit: usize,
    visitor: &mut V,
) -> WalkEnd {
    match id_size {
        IdSize::Four => walk_sized::<4, V>(bytes, start, end, limit, visitor),
        IdSize::Eight => walk_sized::<8, V>(bytes, start, end, limit, visitor),
    }
}

fn walk_sized<'a, const W: usize, V: HeapVisitor<'a>>(
    bytes: &'a [u8],
    start: usize,
    end: usize,
    limit: usize,
    visitor: &mut V,
) -> WalkEnd {
    let mut at = start;
    while at < end && visitor.go_on() {
        match read_sub_record::<W, V>(bytes, at, limit, visitor) {
            Ok(next) => at = next,
            Err(error) => {
                return WalkEnd { next: at, error: Some(error) };
            }
        }
    }
    WalkEnd { next: at, error: None }
}

/// Visits the sub-record at `at` and returns the offset of the next.
///
/// # Errors
/// [`FormatErrorKind::UnknownSubRecord`], [`FormatErrorKind::RecordCut`] or [`FormatErrorKind::BasicType`].
pub fn visit_one<'a, V: HeapVisitor<'a>>(
    bytes: &'a [u8],
    id_size: IdSize,
    at: usize,
    limit: usize,
    visitor: &mut V,
) -> Result<usize, FormatError> {
    match id_size {
        IdSize::Four => read_sub_record::<4, V>(bytes, at, limit, visitor),
        IdSize::Eight => read_sub_record::<8, V>(bytes, at, limit, visitor),
    }
}

#[inline(always)]
fn id<const W: usize>(head: &[u8; HEAD], at: usize) -> u64 {
    if W == 8 { be_u64(head, at).unwrap_or(0) } else { u64::from(be_u32(head, at).unwrap_or(0)) }
}

#[inline(always)]
fn u4(head: &[u8; HEAD], at: usize) -> u32 {
    be_u32(head, at).unwrap_or(0)
}

#[inline(always)]
fn read_sub_record<'a, const W: usize, V: HeapVisitor<'a>>(
    bytes: &'a [u8],
    at: usize,
    limit: usize,
    visitor: &mut V,
) -> Result<usize, FormatError> {
    let rest = bytes.get(at..limit.min(bytes.len())).unwrap_or_default();
    let mut padded = [0; HEAD];
    // All fixed parts are read from HEAD bytes, zero-padded near the end; whether they exist is checked
    // with the record's length before anything is visited.
    let head: &[u8; HEAD] = match rest.first_chunk() {
        Some(head) => head,
        None => {
            for (to, from) in padded.iter_mut().zip(rest) {
                *to = *from;
            }
            &padded
        }
    };
    let tag = head[0];
    let left = rest.len() as u64;
    let cut = |needed: u64| {
        FormatError::new(FormatErrorKind::RecordCut { tag, needed: Some(needed), left }, at as u64)
    };
    // The `data` bytes after a fixed part of `fixed` bytes, or the error that the record is truncated.
    let body = |fixed: usize, data: u64| {
        let needed = fixed as u64 + data;
        let end = usize::try_from(needed).ok().filter(|_| needed <= left).ok_or_else(|| cut(needed))?;
        rest.get(fixed..end).map(|body| (body, at + end)).ok_or_else(|| cut(needed))
    };
    match tag {
        INSTANCE => {
            let (fields, next) = body(9 + 2 * W, u64::from(u4(head, 5 + 2 * W)))?;
            visitor.instance(Instance {
                offset: at,
                end: next,
                id: ObjectId(id::<W>(head, 1)),
                trace: TraceSerial(u4(head, 1 + W)),
                class: ObjectId(id::<W>(head, 5 + W)),
                fields,
            });
            Ok(next)
        }
        PRIMITIVE_ARRAY | PRIMITIVE_ARRAY_NODATA => {
            let length = u4(head, 5 + W);
            let code = head.get(9 + W).copied().unwrap_or(0);
            let element = BasicType::from_code(code).filter(|element| *element != BasicType::Object);
            let Some(element) = element else {
                if left < (10 + W) as u64 {
                    return Err(cut((10 + W) as u64));
                }
                return Err(FormatError::new(FormatErrorKind::BasicType { tag, found: code }, at as u64));
            };
            let stored = tag == PRIMITIVE_ARRAY;
            let data = if stored { u64::from(length) * element.dump_bytes(IdSize::Eight) as u64 } else { 0 };
            let (elements, next) = body(10 + W, data)?;
            visitor.primitive_array(PrimitiveArray {
                offset: at,
                end: next,
                id: ObjectId(id::<W>(head, 1)),
                trace: TraceSerial(u4(head, 1 + W)),
                element,
                length,
                elements: stored.then_some(elements),
            });
            Ok(next)
        }
        OBJECT_ARRAY => {
            let length = u4(head, 5 + W);
            let (elements, next) = body(9 + 2 * W, u64::from(length) * W as u64)?;
            visitor.object_array(ObjectArray {
                offset: at,
                end: next,
                id: ObjectId(id::<W>(head, 1)),
                trace: TraceSerial(u4(head, 1 + W)),
                class: ObjectId(id::<W>(head, 9 + W)),
                length,
                elements,
            });
            Ok(next)
        }
        CLASS => {
            let id_size = if W == 8 { IdSize::Eight } else { IdSize::Four };
            let record = class_dump::parse(rest, at, id_size)?;
            let next = at + record.len;
            visitor.class(record);
            Ok(next)
        }
        _ => cold_step::<W, V>(head, at, left, visitor),
    }
}

/// Visits a rare sub-record: a root, or Android's heap info.
#[cold]
fn cold_step<'a, const W: usize, V: HeapVisitor<'a>>(
    head: &[u8; HEAD],
    at: usize,
    left: u64,
    visitor: &mut V,
) -> Result<usize, FormatError> {
    use RootKind::*;
    let tag = head[0];
    if left == 0 {
        return Err(FormatError::new(FormatErrorKind::RecordCut { tag, needed: None, left }, at as u64));
    }
    let kind = RootKind::from_tag(tag);
    let after_id = match (tag, kind) {
        (HEAP_INFO, _) => 4,
        (_, Some(JniGlobal)) => W,
        (_, Some(JniLocal | JavaFrame | ThreadObject | JniMonitor)) => 8,
        (_, Some(NativeStack | ThreadBlock)) => 4,
        (_, Some(_)) => 0,
        (_, None) => {
            return Err(FormatError::new(FormatErrorKind::UnknownSubRecord(tag), at as u64));
        }
    };
    let needed = 1 + W + after_id;
    if left < needed as u64 {
        let needed = Some(needed as u64);
        return Err(FormatError::new(FormatErrorKind::RecordCut { tag, needed, left }, at as u64));
    }
    match kind {
        None => visitor.heap_info(at, u4(head, 1), id::<W>(head, 5)),
        Some(kind) => {
            let has_serials = kind != JniGlobal;
            visitor.root(
                at,
                RootRecord {
                    kind,
                    id: ObjectId(id::<W>(head, 1)),
                    thread: (has_serials && after_id >= 4).then(|| u4(head, 1 + W)),
                    frame: (has_serials && after_id >= 8).then(|| u4(head, 5 + W)),
                },
            );
        }
    }
    Ok(at + needed)
}
