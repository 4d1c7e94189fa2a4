//! Identifiers, types and values of a heap dump: what records contain, for code that sees no records.
//!
//! * [`ObjectId`] and [`TraceSerial`] identify objects and stack traces.
//! * [`BasicType`], [`IdSize`] and [`RootKind`] are the format's enumerations.
//! * [`be_value`] and its siblings read values from the bytes of fields and elements.
//! * [`names`] converts class names into Java source form.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod bytes;
mod ids;
mod types;

pub use hprof_format::names;

pub use bytes::{be_id, be_ids, be_u16, be_u32, be_u64, be_value};
pub use ids::{ObjectId, TraceSerial};
pub use types::{BasicType, IdSize, RootKind};
