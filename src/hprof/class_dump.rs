//! CLASS DUMP, the only sub-record of varying structure.

use super::heap_tag::CLASS;
use super::{
    BasicType, FormatError, FormatErrorKind, IdSize, ObjectId, TraceSerial, be_id, be_u16, be_u32, be_value,
};

/// A class as dumped. Constant pool, statics and fields are checked to be complete, and decoded on
/// demand.
#[derive(Debug, Clone, Copy)]
pub struct ClassDump<'a> {
    /// Offset of the sub-record's tag in the file.
    pub offset: usize,
    /// Size of the sub-record, including the tag, in bytes.
    pub len: usize,
    /// ID of the class object.
    pub id: ObjectId,
    /// Serial number of the allocation trace.
    pub trace: TraceSerial,
    /// ID of the superclass's class object; 0 for none.
    pub super_class: ObjectId,
    /// Object ID of the loader; 0 for the boot loader.
    pub loader: ObjectId,
    /// Object ID of the signers; 0 for none.
    pub signers: ObjectId,
    /// Object ID of the protection domain; 0 for none.
    pub protection_domain: ObjectId,
    /// Instance size as stated: size of the fields in HotSpot dumps, real size in dumps of the agent, JDK
    /// 6 and Android.
    pub instance_size: u32,
    id_size: IdSize,
    constants: &'a [u8],
    statics: &'a [u8],
    fields: &'a [u8],
}

/// A static field with its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaticField {
    /// String ID of the name.
    pub name: u64,
    /// Type.
    pub kind: BasicType,
    /// Bits of the value; an object ID for references.
    pub value: u64,
}

/// An instance field as declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldDeclaration {
    /// String ID of the name.
    pub name: u64,
    /// Type.
    pub kind: BasicType,
}

/// A constant-pool entry (agent dumps have them).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constant {
    /// Index in the constant pool.
    pub index: u16,
    /// Type.
    pub kind: BasicType,
    /// Bits of the value; an object ID for references.
    pub value: u64,
}

/// Returns the size of a list that starts with a u2 count. `before_type` is the size of the part of each
/// entry before its type.
fn list_len(
    bytes: &[u8],
    at: usize,
    before_type: usize,
    with_value: bool,
    id_size: IdSize,
    cut: impl Fn() -> FormatError,
    offset: u64,
) -> Result<usize, FormatError> {
    let count = be_u16(bytes, at).ok_or_else(&cut)?;
    let mut len = 2;
    for _ in 0..count {
        let code = *bytes.get(at + len + before_type).ok_or_else(&cut)?;
        let kind = BasicType::from_code(code).ok_or_else(|| {
            FormatError::new(FormatErrorKind::BasicType { tag: CLASS, found: code }, offset)
        })?;
        len += before_type + 1 + if with_value { kind.dump_bytes(id_size) } else { 0 };
    }
    Ok(len)
}

/// Parses the CLASS DUMP at the start of `rest`, which begins at `offset` in the file.
pub(super) fn parse(rest: &[u8], offset: usize, id_size: IdSize) -> Result<ClassDump<'_>, FormatError> {
    let w = id_size.bytes();
    let cut = || {
        let left = rest.len() as u64;
        FormatError::new(FormatErrorKind::RecordCut { tag: CLASS, needed: None, left }, offset as u64)
    };
    let id_at = |at| be_id(rest, at, id_size).map(ObjectId).ok_or_else(cut);
    let u4_at = |at| be_u32(rest, at).ok_or_else(cut);
    let constants_at = 9 + 7 * w;
    let list = |at, before_type, with_value| {
        let len = list_len(rest, at, before_type, with_value, id_size, cut, offset as u64)?;
        Ok((rest.get(at + 2..at + len).ok_or_else(cut)?, at + len))
    };
    let (constants, statics_at) = list(constants_at, 2, true)?;
    let (statics, fields_at) = list(statics_at, w, true)?;
    let (fields, end) = list(fields_at, w, false)?;
    Ok(ClassDump {
        offset,
        len: end,
        id: id_at(1)?,
        trace: TraceSerial(u4_at(1 + w)?),
        super_class: id_at(5 + w)?,
        loader: id_at(5 + 2 * w)?,
        signers: id_at(5 + 3 * w)?,
        protection_domain: id_at(5 + 4 * w)?,
        instance_size: u4_at(5 + 7 * w)?,
        id_size,
        constants,
        statics,
        fields,
    })
}

impl<'a> ClassDump<'a> {
    /// Returns the constant-pool entries.
    pub fn constants(&self) -> impl Iterator<Item = Constant> + use<'a> {
        let (mut rest, id_size) = (self.constants, self.id_size);
        std::iter::from_fn(move || {
            let index = be_u16(rest, 0)?;
            let kind = BasicType::from_code(*rest.get(2)?)?;
            let value = be_value(rest, 3, kind, id_size)?;
            rest = rest.get(3 + kind.dump_bytes(id_size)..)?;
            Some(Constant { index, kind, value })
        })
    }

    /// Returns the static fields, including pseudo fields of the JVM (`<resolved_references>`).
    pub fn statics(&self) -> impl Iterator<Item = StaticField> + use<'a> {
        let (mut rest, id_size) = (self.statics, self.id_size);
        let w = id_size.bytes();
        std::iter::from_fn(move || {
            let name = be_id(rest, 0, id_size)?;
            let kind = BasicType::from_code(*rest.get(w)?)?;
            let value = be_value(rest, w + 1, kind, id_size)?;
            rest = rest.get(w + 1 + kind.dump_bytes(id_size)..)?;
            Some(StaticField { name, kind, value })
        })
    }

    /// Returns the instance fields that the class itself declares.
    pub fn fields(&self) -> impl Iterator<Item = FieldDeclaration> + use<'a> {
        let (mut rest, id_size) = (self.fields, self.id_size);
        let w = id_size.bytes();
        std::iter::from_fn(move || {
            let name = be_id(rest, 0, id_size)?;
            let kind = BasicType::from_code(*rest.get(w)?)?;
            rest = rest.get(w + 1..)?;
            Some(FieldDeclaration { name, kind })
        })
    }
}
