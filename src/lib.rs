//! x
pub mod hprof;
pub mod index;
