//! An independent writer of HPROF binary dumps, for tests.
//!
//! It shares no code with the library under test and depends on the standard library only: were
//! writer and reader to share a table or a function, they could share a bug, and no test would see it.
//! It writes what it is told to write, including what no JVM should write; it never reads a dump.
//!
//! Three ways in, from the lowest:
//!
//! - [`DumpWriter`] and [`HeapWriter`]: one call for each record and sub-record, every field given by
//!   the caller, `raw` for anything malformed. They remember where each record went.
//! - [`HeapModel`]: classes, objects and roots by intent. It assigns addresses as HotSpot would, writes
//!   itself in many shapes ([`Options`]) and says what a correct reader must find ([`Expected`]).
//! - [`ArbDump`]: a plain description in which every value is legal, for property tests to generate
//!   and shrink. The strategies themselves live with the property tests.
//!
//! [`damage`] spoils finished bytes in ways seen in real files. Compression is left to the tests.

mod arb;
mod basic;
mod class;
pub mod damage;
mod emit;
pub mod examples;
mod expected;
mod heap;
mod jdk;
mod layout;
mod model;
mod names;
mod sink;
mod writer;

pub use arb::{ArbClass, ArbDump, ArbObject, ArbObjectKind, ArbRoot, ArbTrace, ArbValue, Pick};
pub use basic::{Elements, IdSize, Root, Type, Value, Version};
pub use class::{ClassDef, ClassId, ObjectId};
pub use emit::{Between, EndRecord, InstanceSize, Options, Order, Place};
pub use expected::{Expected, ExpectedObject, ObjectKind, Totals};
pub use heap::{ClassDump, HeapWriter, SubAt};
pub use jdk::Jdk;
pub use layout::Layout;
pub use model::{HeapModel, StackFrame};
pub use names::{NameStyle, modified_utf8};
pub use sink::Sink;
pub use writer::{
    AllocSite, AllocSites, DumpWriter, HeapTag, Placed, RecordMark, StartThread, StatedLength, SubMark,
    Written, agent_cutoff,
};
