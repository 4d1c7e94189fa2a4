//! Sizes of objects: measurements of a scan, the layout that explains them, and the sizes that it gives to
//! every class.

pub mod fit;
pub mod measured;
pub mod measurements;
pub mod object_layout;
pub mod sizes;
