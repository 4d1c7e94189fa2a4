//! Identifiers of objects and stack traces in records, as distinct types so that they are not mixed up.

use std::fmt;

use zerocopy::little_endian::{U32, U64};

/// Identifier of an object in the dump; its address in HotSpot dumps. 0 is null.
///
/// Formatted in hexadecimal (`{:#x}`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ObjectId(pub u64);

impl ObjectId {
    /// The null identifier.
    pub const NULL: Self = Self(0);

    /// Returns `true` for the null identifier.
    #[inline]
    pub fn is_null(self) -> bool {
        self == Self::NULL
    }

    /// Returns the identifier; `None` for null.
    #[inline]
    pub fn non_null(self) -> Option<Self> {
        (!self.is_null()).then_some(self)
    }
}

impl From<U64> for ObjectId {
    #[inline]
    fn from(id: U64) -> Self {
        Self(id.get())
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:#x}")
    }
}

impl fmt::LowerHex for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}

/// Serial number of a stack trace, defined by STACK TRACE records and referenced by objects, threads and
/// samples. 0 means none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TraceSerial(pub u32);

impl TraceSerial {
    /// The number for no trace.
    pub const NONE: Self = Self(0);
}

impl From<U32> for TraceSerial {
    #[inline]
    fn from(serial: U32) -> Self {
        Self(serial.get())
    }
}

impl fmt::Display for TraceSerial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl From<ObjectId> for U64 {
    #[inline]
    fn from(id: ObjectId) -> Self {
        Self::new(id.0)
    }
}

impl From<TraceSerial> for U32 {
    #[inline]
    fn from(serial: TraceSerial) -> Self {
        Self::new(serial.0)
    }
}
