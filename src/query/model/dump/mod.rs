//! Queries on a dump as a whole: general facts and problems.

pub mod doctor;
pub mod info;
pub mod unreachable;
pub mod writer;
