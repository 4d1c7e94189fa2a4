//! Enumerations of the format: identifier sizes, basic types, root kinds.

/// Size of identifiers in a dump, stated in its header and independent of the machine that wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdSize {
    /// 4 bytes: 32-bit JVMs, the HPROF agent, Android.
    Four,
    /// 8 bytes: 64-bit HotSpot.
    Eight,
}

impl IdSize {
    /// Returns the size in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// Type of a field or of an array's elements ("Basic Type" of the specification).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum BasicType {
    /// A reference.
    Object = 2,
    /// `boolean`, 1 byte.
    Boolean = 4,
    /// `char`, 2 bytes.
    Char = 5,
    /// `float`, 4 bytes.
    Float = 6,
    /// `double`, 8 bytes.
    Double = 7,
    /// `byte`, 1 byte.
    Byte = 8,
    /// `short`, 2 bytes.
    Short = 9,
    /// `int`, 4 bytes.
    Int = 10,
    /// `long`, 8 bytes.
    Long = 11,
}

impl BasicType {
    /// All primitive types, in ascending order of their codes.
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

    /// Returns the type with this code.
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            2 => Self::Object,
            4 => Self::Boolean,
            5 => Self::Char,
            6 => Self::Float,
            7 => Self::Double,
            8 => Self::Byte,
            9 => Self::Short,
            10 => Self::Int,
            11 => Self::Long,
            _ => return None,
        })
    }

    /// Returns the type's code in the file.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the size of a value in a dump in bytes, with identifiers of `id_size`.
    pub const fn dump_bytes(self, id_size: IdSize) -> usize {
        match self {
            Self::Object => id_size.bytes(),
            Self::Boolean | Self::Byte => 1,
            Self::Char | Self::Short => 2,
            Self::Float | Self::Int => 4,
            Self::Double | Self::Long => 8,
        }
    }

    /// Returns the name in Java source; `Object` for references.
    pub const fn java_name(self) -> &'static str {
        match self {
            Self::Object => "Object",
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
}

/// Kind of a GC root: the root sub-records of the specification and Android's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum RootKind {
    /// 0x01: a global JNI reference.
    JniGlobal = 0x01,
    /// 0x02: a local JNI reference of a thread.
    JniLocal = 0x02,
    /// 0x03: a local variable of a Java frame.
    JavaFrame = 0x03,
    /// 0x04: on a thread's native stack.
    NativeStack = 0x04,
    /// 0x05: a class that is never unloaded.
    StickyClass = 0x05,
    /// 0x06: referenced from a thread block.
    ThreadBlock = 0x06,
    /// 0x07: a monitor in use.
    MonitorUsed = 0x07,
    /// 0x08: a live thread.
    ThreadObject = 0x08,
    /// 0x89: Android, an interned string.
    InternedString = 0x89,
    /// 0x8A: Android, being finalized.
    Finalizing = 0x8a,
    /// 0x8B: Android, held by the debugger.
    Debugger = 0x8b,
    /// 0x8C: Android, reference cleanup.
    ReferenceCleanup = 0x8c,
    /// 0x8D: Android, internal to the VM.
    VmInternal = 0x8d,
    /// 0x8E: Android, a monitor held through JNI.
    JniMonitor = 0x8e,
    /// 0x90: Android, unreachable.
    Unreachable = 0x90,
    /// 0xFF: of unknown kind.
    Unknown = 0xff,
}

impl RootKind {
    /// All kinds, in the order of their tags.
    pub const ALL: [Self; 16] = [
        Self::JniGlobal,
        Self::JniLocal,
        Self::JavaFrame,
        Self::NativeStack,
        Self::StickyClass,
        Self::ThreadBlock,
        Self::MonitorUsed,
        Self::ThreadObject,
        Self::InternedString,
        Self::Finalizing,
        Self::Debugger,
        Self::ReferenceCleanup,
        Self::VmInternal,
        Self::JniMonitor,
        Self::Unreachable,
        Self::Unknown,
    ];

    /// Returns the kind with this sub-record tag.
    pub fn from_tag(tag: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.tag() == tag)
    }

    /// Returns the sub-record's tag.
    pub const fn tag(self) -> u8 {
        self as u8
    }

    /// Returns the name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::JniGlobal => "JNI global",
            Self::JniLocal => "JNI local",
            Self::JavaFrame => "java frame",
            Self::NativeStack => "native stack",
            Self::StickyClass => "sticky class",
            Self::ThreadBlock => "thread block",
            Self::MonitorUsed => "monitor used",
            Self::ThreadObject => "thread object",
            Self::InternedString => "interned string",
            Self::Finalizing => "finalizing",
            Self::Debugger => "debugger",
            Self::ReferenceCleanup => "reference cleanup",
            Self::VmInternal => "VM internal",
            Self::JniMonitor => "JNI monitor",
            Self::Unreachable => "unreachable",
            Self::Unknown => "unknown",
        }
    }
}
