//! Enumerations of the format: versions, identifier sizes, types, values and kinds of root.
//!
//! Numbers here are copied from the format's documentation, not from the library under test.

use super::sink::Sink;

/// The format version named in the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// `JAVA PROFILE 1.0`
    V1_0,
    /// `JAVA PROFILE 1.0.1`: one HEAP DUMP record.
    V1_0_1,
    /// `JAVA PROFILE 1.0.2`: HEAP DUMP SEGMENT records.
    V1_0_2,
    /// `JAVA PROFILE 1.0.3`: Android.
    V1_0_3,
}

impl Version {
    /// Every version.
    pub const ALL: [Self; 4] = [Self::V1_0, Self::V1_0_1, Self::V1_0_2, Self::V1_0_3];

    /// Returns the text at the start of the file, without its terminating zero.
    pub fn header(self) -> &'static str {
        match self {
            Self::V1_0 => "JAVA PROFILE 1.0",
            Self::V1_0_1 => "JAVA PROFILE 1.0.1",
            Self::V1_0_2 => "JAVA PROFILE 1.0.2",
            Self::V1_0_3 => "JAVA PROFILE 1.0.3",
        }
    }
}

/// Size of an identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IdSize {
    /// 32-bit JVMs, Android, and the HPROF agent everywhere.
    Four,
    /// 64-bit HotSpot.
    Eight,
}

impl IdSize {
    /// Both sizes.
    pub const ALL: [Self; 2] = [Self::Four, Self::Eight];

    /// Returns the number of bytes.
    pub fn bytes(self) -> u32 {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// A basic type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Type {
    /// A reference to any object.
    Object,
    /// `boolean`, 1 byte.
    Boolean,
    /// `char`, 2 bytes.
    Char,
    /// `float`, 4 bytes.
    Float,
    /// `double`, 8 bytes.
    Double,
    /// `byte`, 1 byte.
    Byte,
    /// `short`, 2 bytes.
    Short,
    /// `int`, 4 bytes.
    Int,
    /// `long`, 8 bytes.
    Long,
}

impl Type {
    /// Every type.
    pub const ALL: [Self; 9] = [
        Self::Object,
        Self::Boolean,
        Self::Char,
        Self::Float,
        Self::Double,
        Self::Byte,
        Self::Short,
        Self::Int,
        Self::Long,
    ];

    /// Every type except references.
    pub const PRIMITIVES: [Self; 8] = [
        Self::Boolean,
        Self::Char,
        Self::Float,
        Self::Double,
        Self::Byte,
        Self::Short,
        Self::Int,
        Self::Long,
    ];

    /// Returns the code of the type in a dump.
    pub fn code(self) -> u8 {
        match self {
            Self::Object => 2,
            Self::Boolean => 4,
            Self::Char => 5,
            Self::Float => 6,
            Self::Double => 7,
            Self::Byte => 8,
            Self::Short => 9,
            Self::Int => 10,
            Self::Long => 11,
        }
    }

    /// Returns the size of a value in a dump whose identifiers take `id_size`, in bytes.
    pub fn bytes(self, id_size: IdSize) -> u32 {
        match self {
            Self::Object => id_size.bytes(),
            Self::Boolean | Self::Byte => 1,
            Self::Char | Self::Short => 2,
            Self::Float | Self::Int => 4,
            Self::Double | Self::Long => 8,
        }
    }

    /// Returns the name in Java source.
    pub fn java_name(self) -> &'static str {
        match self {
            Self::Object => "java.lang.Object",
            Self::Boolean => "boolean",
            Self::Char => "char",
            Self::Float => "float",
            Self::Double => "double",
            Self::Byte => "byte",
            Self::Short => "short",
            Self::Int => "int",
            Self::Long => "long",
        }
    }

    /// Returns the null, false or zero of the type.
    pub fn zero(self) -> Value {
        self.value_of(0)
    }

    /// Returns the value of this type with the lowest of the given bits.
    pub fn value_of(self, bits: u64) -> Value {
        let [b0, b1, b2, b3, ..] = bits.to_le_bytes();
        let low4 = [b0, b1, b2, b3];
        match self {
            Self::Object => Value::Object(bits),
            Self::Boolean => Value::Boolean(bits & 1 == 1),
            Self::Char => Value::Char(u16::from_le_bytes([b0, b1])),
            Self::Float => Value::Float(f32::from_le_bytes(low4)),
            Self::Double => Value::Double(f64::from_bits(bits)),
            Self::Byte => Value::Byte(i8::from_le_bytes([b0])),
            Self::Short => Value::Short(i16::from_le_bytes([b0, b1])),
            Self::Int => Value::Int(i32::from_le_bytes(low4)),
            Self::Long => Value::Long(i64::from_le_bytes(bits.to_le_bytes())),
        }
    }
}

/// A typed value: of a field, a static, a constant-pool entry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A reference; 0 is null.
    Object(u64),
    /// A `boolean`.
    Boolean(bool),
    /// A `char`: one UTF-16 unit.
    Char(u16),
    /// A `float`.
    Float(f32),
    /// A `double`.
    Double(f64),
    /// A `byte`.
    Byte(i8),
    /// A `short`.
    Short(i16),
    /// An `int`.
    Int(i32),
    /// A `long`.
    Long(i64),
}

impl Value {
    /// The null reference.
    pub const NULL: Self = Self::Object(0);

    /// Returns the type of the value.
    pub fn ty(self) -> Type {
        match self {
            Self::Object(_) => Type::Object,
            Self::Boolean(_) => Type::Boolean,
            Self::Char(_) => Type::Char,
            Self::Float(_) => Type::Float,
            Self::Double(_) => Type::Double,
            Self::Byte(_) => Type::Byte,
            Self::Short(_) => Type::Short,
            Self::Int(_) => Type::Int,
            Self::Long(_) => Type::Long,
        }
    }

    /// Appends the value as in a dump.
    pub fn put(self, sink: &mut Sink) {
        match self {
            Self::Object(id) => sink.id(id),
            Self::Boolean(v) => sink.u1(u8::from(v)),
            Self::Char(v) => sink.u2(v),
            Self::Float(v) => sink.u4(v.to_bits()),
            Self::Double(v) => sink.u8(v.to_bits()),
            Self::Byte(v) => sink.raw(&v.to_be_bytes()),
            Self::Short(v) => sink.raw(&v.to_be_bytes()),
            Self::Int(v) => sink.raw(&v.to_be_bytes()),
            Self::Long(v) => sink.raw(&v.to_be_bytes()),
        };
    }
}

macro_rules! value_from {
    ($($from:ty => $variant:ident),*) => { $(
        impl From<$from> for Value {
            fn from(value: $from) -> Self { Self::$variant(value) }
        }
    )* };
}
value_from!(bool => Boolean, u16 => Char, f32 => Float, f64 => Double, i8 => Byte, i16 => Short, i32 => Int, i64 => Long);

/// The elements of a primitive array.
#[derive(Debug, Clone, PartialEq)]
pub enum Elements {
    /// `boolean[]`
    Boolean(Vec<bool>),
    /// `char[]`
    Char(Vec<u16>),
    /// `float[]`
    Float(Vec<f32>),
    /// `double[]`
    Double(Vec<f64>),
    /// `byte[]`
    Byte(Vec<i8>),
    /// `short[]`
    Short(Vec<i16>),
    /// `int[]`
    Int(Vec<i32>),
    /// `long[]`
    Long(Vec<i64>),
    /// A number of zeros, written as a hole: for arrays larger than memory.
    Zeros(Type, u32),
    /// A number of elements whose values are not in the dump (Android's sub-record 0xC3).
    NoData(Type, u32),
}

impl Elements {
    /// Returns a `byte[]` with the given bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self::Byte(bytes.iter().map(|b| i8::from_le_bytes([*b])).collect())
    }

    /// Returns a `char[]` with the UTF-16 units of a text.
    pub fn of_chars(text: &str) -> Self {
        Self::Char(text.encode_utf16().collect())
    }

    /// Returns an array of `ty` whose elements have the lowest of the given bits.
    ///
    /// # Panics
    /// If `ty` is not primitive.
    pub fn of_bits(ty: Type, bits: &[u64]) -> Self {
        macro_rules! collect {
            ($variant:ident) => {
                Self::$variant(
                    bits.iter()
                        .map(|b| match ty.value_of(*b) {
                            Value::$variant(v) => v,
                            other => unreachable!("{other:?} is not of type {ty:?}"),
                        })
                        .collect(),
                )
            };
        }
        match ty {
            Type::Object => panic!("a primitive array cannot hold references"),
            Type::Boolean => collect!(Boolean),
            Type::Char => collect!(Char),
            Type::Float => collect!(Float),
            Type::Double => collect!(Double),
            Type::Byte => collect!(Byte),
            Type::Short => collect!(Short),
            Type::Int => collect!(Int),
            Type::Long => collect!(Long),
        }
    }

    /// Returns the element type.
    pub fn ty(&self) -> Type {
        match self {
            Self::Boolean(_) => Type::Boolean,
            Self::Char(_) => Type::Char,
            Self::Float(_) => Type::Float,
            Self::Double(_) => Type::Double,
            Self::Byte(_) => Type::Byte,
            Self::Short(_) => Type::Short,
            Self::Int(_) => Type::Int,
            Self::Long(_) => Type::Long,
            Self::Zeros(ty, _) | Self::NoData(ty, _) => *ty,
        }
    }

    /// Returns the number of elements.
    pub fn count(&self) -> u32 {
        let len = match self {
            Self::Boolean(v) => v.len(),
            Self::Char(v) => v.len(),
            Self::Float(v) => v.len(),
            Self::Double(v) => v.len(),
            Self::Byte(v) => v.len(),
            Self::Short(v) => v.len(),
            Self::Int(v) => v.len(),
            Self::Long(v) => v.len(),
            Self::Zeros(_, count) | Self::NoData(_, count) => return *count,
        };
        u32::try_from(len).expect("more elements than a Java array can have")
    }

    /// Appends the elements as in a dump.
    pub fn put(&self, sink: &mut Sink) {
        fn each<T: Copy + Into<Value>>(elements: &[T], sink: &mut Sink) {
            for element in elements {
                (*element).into().put(sink);
            }
        }
        match self {
            Self::Boolean(v) => each(v, sink),
            Self::Char(v) => each(v, sink),
            Self::Float(v) => each(v, sink),
            Self::Double(v) => each(v, sink),
            Self::Byte(v) => each(v, sink),
            Self::Short(v) => each(v, sink),
            Self::Int(v) => each(v, sink),
            Self::Long(v) => each(v, sink),
            Self::Zeros(ty, count) => {
                sink.hole(u64::from(*count) * u64::from(ty.bytes(sink.id_size())));
            }
            Self::NoData(..) => {}
        }
    }
}

/// A kind of root, with the contents of its sub-record except the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Root {
    /// 0xFF
    Unknown,
    /// 0x01
    JniGlobal {
        /// The JNI reference, which is not an object.
        reference: u64,
    },
    /// 0x02
    JniLocal {
        /// Serial number of the thread.
        thread: u32,
        /// Frame number in its stack trace, -1 for none.
        frame: i32,
    },
    /// 0x03
    JavaFrame {
        /// Serial number of the thread.
        thread: u32,
        /// Frame number in its stack trace, -1 for none.
        frame: i32,
    },
    /// 0x04
    NativeStack {
        /// Serial number of the thread.
        thread: u32,
    },
    /// 0x05
    StickyClass,
    /// 0x06
    ThreadBlock {
        /// Serial number of the thread.
        thread: u32,
    },
    /// 0x07
    MonitorUsed,
    /// 0x08
    ThreadObject {
        /// Serial number of the thread.
        thread: u32,
        /// Serial number of its stack trace.
        trace: u32,
    },
    /// 0x89, Android
    InternedString,
    /// 0x8A, Android
    Finalizing,
    /// 0x8B, Android
    Debugger,
    /// 0x8C, Android
    ReferenceCleanup,
    /// 0x8D, Android
    VmInternal,
    /// 0x8E, Android
    JniMonitor {
        /// Serial number of the thread.
        thread: u32,
        /// Depth in its stack.
        depth: u32,
    },
    /// 0x90, Android
    Unreachable,
}

impl Root {
    /// One root of every kind.
    pub const EXAMPLES: [Self; 16] = [
        Self::Unknown,
        Self::JniGlobal { reference: 0x7f01_0010 },
        Self::JniLocal { thread: 1, frame: -1 },
        Self::JavaFrame { thread: 1, frame: 0 },
        Self::NativeStack { thread: 1 },
        Self::StickyClass,
        Self::ThreadBlock { thread: 1 },
        Self::MonitorUsed,
        Self::ThreadObject { thread: 1, trace: 1 },
        Self::InternedString,
        Self::Finalizing,
        Self::Debugger,
        Self::ReferenceCleanup,
        Self::VmInternal,
        Self::JniMonitor { thread: 1, depth: 2 },
        Self::Unreachable,
    ];

    /// Returns the sub-record's tag.
    pub fn tag(self) -> u8 {
        match self {
            Self::Unknown => 0xFF,
            Self::JniGlobal { .. } => 0x01,
            Self::JniLocal { .. } => 0x02,
            Self::JavaFrame { .. } => 0x03,
            Self::NativeStack { .. } => 0x04,
            Self::StickyClass => 0x05,
            Self::ThreadBlock { .. } => 0x06,
            Self::MonitorUsed => 0x07,
            Self::ThreadObject { .. } => 0x08,
            Self::InternedString => 0x89,
            Self::Finalizing => 0x8A,
            Self::Debugger => 0x8B,
            Self::ReferenceCleanup => 0x8C,
            Self::VmInternal => 0x8D,
            Self::JniMonitor { .. } => 0x8E,
            Self::Unreachable => 0x90,
        }
    }

    /// Returns `true` if only Android writes this kind.
    pub fn is_android(self) -> bool {
        matches!(self.tag(), 0x80..=0xFE)
    }
}
