//! JVM TI and JNI: the only module with `unsafe`.
//!
//! It converts function tables of raw pointers into methods that return results, events into calls of a
//! [`Handler`], and heap walks into a [`walk::Visitor`]. Each call is sound for these reasons:
//!
//! * [`Jvmti`] is only created from an environment that the JVM gave to `Agent_OnLoad` or
//!   `Agent_OnAttach`. It is never disposed, so its pointer is valid while the process lives; after
//!   `VMDeath` its functions return an error.
//! * A [`Ref`] is a local reference. It has the lifetime of the [`Jni`] that created it, which is that of
//!   a callback, a native thread or a frame ([`Jni::frame`]).
//! * Memory that the JVM allocates is copied and released at once, so nothing of it escapes.
//! * Entry points catch panics: unwinding into the JVM would be undefined.
//! * `jmethodID`s are numbers here ([`MethodId`]). Names are read while the method is on a stack, or was
//!   a moment before (samples of other threads); a method that the JVM no longer knows has no name.

#![allow(unsafe_code)]
// Names that the JVM looks for.
#![allow(non_snake_case)]

mod capability;
pub mod clock;
mod entry;
mod env;
mod events;
mod jni;
mod latest;
pub mod walk;

pub use capability::Capability;
pub use env::{Frame, JvmField, Jvmti, MethodId, Monitor, ThreadInfo, ThreadState, VirtualThreadOf};
pub use events::{Event, Events, Handler};
pub use jni::{Argument, Jni, MAX_REFERENCES, Ref, WeakRef};
pub use latest::Latest;

use std::fmt;

use jvmti_bindings::sys::jvmti::{error_name, jvmtiError};

/// Error of JVM TI.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Error(jvmtiError);

impl Error {
    fn check(code: jvmtiError) -> Result<()> {
        if code.raw() == 0 { Ok(()) } else { Err(Self(code)) }
    }

    /// Returns the error for a function that is missing in the JVM's table.
    fn missing() -> Self {
        Self(jvmtiError::from_raw(98))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", error_name(self.0), self.0.raw())
    }
}

impl std::error::Error for Error {}

/// Result of a call to the JVM.
pub type Result<T> = std::result::Result<T, Error>;
