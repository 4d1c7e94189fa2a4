//! Sizes of objects: the layout that explains the measurements of a scan, and the sizes that it gives to
//! every class.

pub mod fit;
mod flattened;
pub mod measured;
pub mod object_layout;
pub mod sizes;
