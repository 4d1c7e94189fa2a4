//! Questions about a dump as a whole: what it is, and what is wrong with it.

pub mod doctor;
pub mod info;
pub mod overview;
pub mod unreachable;
