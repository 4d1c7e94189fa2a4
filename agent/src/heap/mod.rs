//! The heap: what is alive, and dumps of it.

pub mod before;
pub mod dump;
pub mod fields;
pub mod jvm;
pub mod live;
pub mod records;
pub mod roots;
pub mod write;
