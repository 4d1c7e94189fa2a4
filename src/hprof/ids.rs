//! The numbers by which records name objects and stack traces: types of their own, so that they are not mixed.

use std::fmt;

use zerocopy::little_endian::{U32, U64};

/// The identifier of an object in the dump; in HotSpot's dumps its address. 0 is null.
///
/// Written in hexadecimal (`{:#x}`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ObjectId(pub u64);

impl ObjectId {
    /// The identifier that stands for no object.
    pub const NULL: Self = Self(0);

    /// Whether it stands for no object.
    #[inline]
    pub fn is_null(self) -> bool {
        self == Self::NULL
    }

    /// Itself; `None` for null.
    #[inline]
    pub fn non_null(self) -> Option<Self> {
        (!self.is_null()).then_some(self)
    }
}

impl From<U64> for ObjectId {
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

/// The serial number of a stack trace: what STACK TRACE records define, and objects, threads and samples refer to. 0 is
/// none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TraceSerial(pub u32);

impl TraceSerial {
    /// The number that stands for no trace.
    pub const NONE: Self = Self(0);
}

impl From<U32> for TraceSerial {
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
    fn from(id: ObjectId) -> Self {
        Self::new(id.0)
    }
}

impl From<TraceSerial> for U32 {
    fn from(serial: TraceSerial) -> Self {
        Self::new(serial.0)
    }
}
