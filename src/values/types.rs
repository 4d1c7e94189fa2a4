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
    #[inline]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// Declares an enumeration whose variants have a code in the file and a name, each stated once.
macro_rules! coded {
    (
        $(#[$meta:meta])*
        $type:ident, $code:ident, $from_code:ident, $name:ident;
        $($(#[$doc:meta])* $variant:ident = $value:literal, $text:literal;)*
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $type {
            $($(#[$doc])* $variant = $value,)*
        }

        impl $type {
            /// All variants, in ascending order of their codes.
            pub const ALL: [Self; [$($value),*].len()] = [$(Self::$variant),*];

            /// Returns the variant with this code.
            #[inline]
            pub const fn $from_code(code: u8) -> Option<Self> {
                Some(match code {
                    $($value => Self::$variant,)*
                    _ => return None,
                })
            }

            /// Returns the code in the file.
            #[inline]
            pub const fn $code(self) -> u8 {
                self as u8
            }

            /// Returns the name.
            pub const fn $name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }
    };
}

coded! {
    /// Type of a field or of an array's elements ("Basic Type" of the specification).
    BasicType, code, from_code, java_name;
    /// A reference.
    Object = 2, "Object";
    /// `boolean`, 1 byte.
    Boolean = 4, "boolean";
    /// `char`, 2 bytes.
    Char = 5, "char";
    /// `float`, 4 bytes.
    Float = 6, "float";
    /// `double`, 8 bytes.
    Double = 7, "double";
    /// `byte`, 1 byte.
    Byte = 8, "byte";
    /// `short`, 2 bytes.
    Short = 9, "short";
    /// `int`, 4 bytes.
    Int = 10, "int";
    /// `long`, 8 bytes.
    Long = 11, "long";
}

impl BasicType {
    /// All primitive types, in ascending order of their codes.
    pub const PRIMITIVES: [Self; 8] = {
        let [_, primitives @ ..] = Self::ALL;
        primitives
    };

    /// Returns the size of a value in a dump in bytes, with identifiers of `id_size`.
    #[inline]
    pub const fn dump_bytes(self, id_size: IdSize) -> usize {
        match self {
            Self::Object => id_size.bytes(),
            Self::Boolean | Self::Byte => 1,
            Self::Char | Self::Short => 2,
            Self::Float | Self::Int => 4,
            Self::Double | Self::Long => 8,
        }
    }
}

coded! {
    /// Kind of a GC root: the root sub-records of the specification and Android's.
    RootKind, tag, from_tag, name;
    /// 0x01: a global JNI reference.
    JniGlobal = 0x01, "JNI global";
    /// 0x02: a local JNI reference of a thread.
    JniLocal = 0x02, "JNI local";
    /// 0x03: a local variable of a Java frame.
    JavaFrame = 0x03, "java frame";
    /// 0x04: on a thread's native stack.
    NativeStack = 0x04, "native stack";
    /// 0x05: a class that is never unloaded.
    StickyClass = 0x05, "sticky class";
    /// 0x06: referenced from a thread block.
    ThreadBlock = 0x06, "thread block";
    /// 0x07: a monitor in use.
    MonitorUsed = 0x07, "monitor used";
    /// 0x08: a live thread.
    ThreadObject = 0x08, "thread object";
    /// 0x89: Android, an interned string.
    InternedString = 0x89, "interned string";
    /// 0x8A: Android, being finalized.
    Finalizing = 0x8a, "finalizing";
    /// 0x8B: Android, held by the debugger.
    Debugger = 0x8b, "debugger";
    /// 0x8C: Android, reference cleanup.
    ReferenceCleanup = 0x8c, "reference cleanup";
    /// 0x8D: Android, internal to the VM.
    VmInternal = 0x8d, "VM internal";
    /// 0x8E: Android, a monitor held through JNI.
    JniMonitor = 0x8e, "JNI monitor";
    /// 0x90: Android, unreachable.
    Unreachable = 0x90, "unreachable";
    /// 0xFF: of unknown kind.
    Unknown = 0xff, "unknown";
}
