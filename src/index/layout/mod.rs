//! Sizes of objects: what a scan measured, which layout explains it, and what that layout says of every class.

pub mod fit;
pub mod measured;
pub mod measurements;
pub mod object_layout;
pub mod sizes;
