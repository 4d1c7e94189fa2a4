//! Kinds of references from one object to another: field, element, static field, local variable.

use std::fmt;

use hprof_values::RootKind;

/// Kind of a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceKind<'a> {
    /// A field.
    Field {
        /// Name of the field.
        name: &'a str,
        /// Name of the class that declares it.
        class: &'a str,
    },
    /// A slot of an array, by index.
    Slot(u32),
    /// A static field of a class, by name.
    Static(&'a str),
    /// From an object to its class object.
    Class,
    /// From a class object to its superclass.
    Super,
    /// From a class object to its loader.
    Loader,
    /// From a thread to an object on its stack.
    Local {
        /// Kind of the root.
        kind: RootKind,
        /// Index of the frame in the thread's stack trace, if it is known.
        frame: Option<u32>,
    },
}

impl fmt::Display for ReferenceKind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field { name, .. } | Self::Static(name) => f.write_str(name),
            Self::Slot(index) => write!(f, "[{index}]"),
            Self::Class => f.write_str("<class>"),
            Self::Super => f.write_str("<super>"),
            Self::Loader => f.write_str("<loader>"),
            Self::Local { kind, .. } => write!(f, "<{}>", kind.name()),
        }
    }
}
