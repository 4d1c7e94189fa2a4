//! The heap: counts of live objects, and heap dumps.

pub mod before;
pub mod dump;
pub mod fields;
pub mod jvm;
pub mod live;
pub mod records;
pub mod roots;
pub mod write;
