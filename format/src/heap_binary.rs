//! Sub-records of a heap dump, appended to bytes.

use crate::binary::BigEndian;

/// Tags of sub-records other than roots.
pub mod tag {
    /// CLASS DUMP.
    pub const CLASS: u8 = 0x20;
    /// INSTANCE DUMP.
    pub const INSTANCE: u8 = 0x21;
    /// OBJECT ARRAY DUMP.
    pub const OBJECT_ARRAY: u8 = 0x22;
    /// PRIMITIVE ARRAY DUMP.
    pub const PRIMITIVE_ARRAY: u8 = 0x23;
    /// Android's PRIMITIVE ARRAY NODATA DUMP.
    pub const PRIMITIVE_ARRAY_NODATA: u8 = 0xc3;
    /// Android's HEAP DUMP INFO.
    pub const HEAP_INFO: u8 = 0xfe;
}

/// A GC root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// 0xFF: of unknown kind.
    Unknown,
    /// 0x01: a global JNI reference: its ID.
    JniGlobal(u64),
    /// 0x02: a local JNI reference: thread and frame (-1: none).
    JniLocal(u32, i32),
    /// 0x03: a local variable: thread and frame (-1: none).
    JavaFrame(u32, i32),
    /// 0x04: on a thread's native stack: thread.
    NativeStack(u32),
    /// 0x05: a class that is never unloaded.
    StickyClass,
    /// 0x06: referenced from a thread block: thread.
    ThreadBlock(u32),
    /// 0x07: a monitor in use.
    MonitorUsed,
    /// 0x08: a thread: its serial number and its trace.
    Thread(u32, u32),
    /// 0x8E, of Android: a monitor held through JNI: thread and frame (-1: none).
    JniMonitor(u32, i32),
    /// A root with this tag that has only an object ID.
    Other(u8),
}

/// Appends a root of any kind.
pub fn root(out: &mut Vec<u8>, object: u64, root: Root) {
    let tag: u8 = match root {
        Root::Unknown => 0xff,
        Root::JniGlobal(_) => 0x01,
        Root::JniLocal(..) => 0x02,
        Root::JavaFrame(..) => 0x03,
        Root::NativeStack(_) => 0x04,
        Root::StickyClass => 0x05,
        Root::ThreadBlock(_) => 0x06,
        Root::MonitorUsed => 0x07,
        Root::Thread(..) => 0x08,
        Root::JniMonitor(..) => 0x8e,
        Root::Other(tag) => tag,
    };
    tag.put(out);
    object.put(out);
    match root {
        Root::Unknown | Root::StickyClass | Root::MonitorUsed | Root::Other(_) => {}
        Root::JniGlobal(reference) => reference.put(out),
        Root::NativeStack(thread) | Root::ThreadBlock(thread) => thread.put(out),
        Root::JniLocal(thread, frame) | Root::JavaFrame(thread, frame) | Root::JniMonitor(thread, frame) => {
            thread.put(out);
            frame.put(out);
        }
        Root::Thread(thread, trace) => {
            thread.put(out);
            trace.put(out);
        }
    }
}

/// CLASS DUMP up to its constants.
#[derive(Debug, Clone, Copy, Default)]
pub struct Class {
    /// Object ID of the class.
    pub object: u64,
    /// Trace serial number.
    pub trace: u32,
    /// Object ID of the superclass.
    pub super_class: u64,
    /// Object ID of the class loader.
    pub loader: u64,
    /// Object ID of the signers.
    pub signers: u64,
    /// Object ID of the protection domain.
    pub protection_domain: u64,
    /// Size of an instance in bytes.
    pub instance_size: u32,
}

/// A static field with its value, whose size is that of its type.
#[derive(Debug, Clone, Copy)]
pub struct Static<'a> {
    /// String ID of the name.
    pub name: u64,
    /// Basic type.
    pub kind: u8,
    /// Value, big-endian.
    pub value: &'a [u8],
}

/// Appends CLASS DUMP: constants are index and object ID; fields are string ID of the name and basic
/// type. Entries beyond the format's two-byte counts are omitted.
pub fn class<'a>(
    out: &mut Vec<u8>,
    class: &Class,
    constants: &[(u16, u64)],
    statics: impl ExactSizeIterator<Item = Static<'a>>,
    fields: &[(u64, u8)],
) {
    tag::CLASS.put(out);
    class.object.put(out);
    class.trace.put(out);
    for id in [class.super_class, class.loader, class.signers, class.protection_domain, 0, 0] {
        id.put(out);
    }
    class.instance_size.put(out);
    let count = |length: usize| u16::try_from(length).unwrap_or(u16::MAX);
    count(constants.len()).put(out);
    for (index, object) in constants.iter().take(usize::from(u16::MAX)) {
        index.put(out);
        2u8.put(out);
        object.put(out);
    }
    count(statics.len()).put(out);
    for field in statics.take(usize::from(u16::MAX)) {
        field.name.put(out);
        field.kind.put(out);
        out.extend_from_slice(field.value);
    }
    count(fields.len()).put(out);
    for (name, kind) in fields.iter().take(usize::from(u16::MAX)) {
        name.put(out);
        kind.put(out);
    }
}

/// Appends the head of INSTANCE DUMP; `bytes` bytes of fields follow.
pub fn instance(out: &mut Vec<u8>, object: u64, trace: u32, class: u64, bytes: u32) {
    tag::INSTANCE.put(out);
    object.put(out);
    trace.put(out);
    class.put(out);
    bytes.put(out);
}

/// Size of the head of INSTANCE DUMP in bytes.
pub const INSTANCE_HEAD: usize = 25;

/// Appends the head of OBJECT ARRAY DUMP; the IDs of the elements follow.
pub fn object_array(out: &mut Vec<u8>, object: u64, trace: u32, length: u32, class: u64) {
    tag::OBJECT_ARRAY.put(out);
    object.put(out);
    trace.put(out);
    length.put(out);
    class.put(out);
}

/// Size of the head of OBJECT ARRAY DUMP in bytes.
pub const OBJECT_ARRAY_HEAD: usize = 25;

/// Appends the head of PRIMITIVE ARRAY DUMP; the elements follow, big-endian.
pub fn primitive_array(out: &mut Vec<u8>, object: u64, trace: u32, length: u32, element: u8) {
    tag::PRIMITIVE_ARRAY.put(out);
    object.put(out);
    trace.put(out);
    length.put(out);
    element.put(out);
}

/// Size of the head of PRIMITIVE ARRAY DUMP in bytes.
pub const PRIMITIVE_ARRAY_HEAD: usize = 18;
