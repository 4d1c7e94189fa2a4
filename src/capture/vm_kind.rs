//! Kinds of virtual machines.

use serde::{Deserialize, Serialize};

/// Kind of virtual machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum VmKind {
    /// HotSpot, the JVM of OpenJDK.
    #[default]
    HotSpot,
    /// Eclipse OpenJ9.
    OpenJ9,
    /// Program compiled by GraalVM, which contains its own virtual machine.
    NativeImage,
}
