//! Queries on a dump as a whole: general facts, problems, and dumps made of it.

pub mod doctor;
pub mod info;
pub mod overview;
pub mod recover;
pub mod unreachable;
