//! An independent writer of HPROF binary dumps, for tests.
//!
//! It shares no code with the library under test and depends only on the standard library: if writer and
//! reader shared a table or a function, they could share a bug, which no test would detect. It writes
//! whatever it is told to, including data that no JVM would write; it never reads a dump.
//!
//! Three interfaces, from the lowest level:
//!
//! - [`DumpWriter`] and [`HeapWriter`]: one call for each record and sub-record, with all fields given by
//!   the caller, `raw` for malformed data. They store the offset of each record.
//! - [`HeapModel`]: classes, objects and roots. It assigns addresses as HotSpot would, can be written in
//!   many forms ([`Options`]) and computes the expected results of a correct reader ([`Expected`]).
//! - [`ArbDump`]: a plain description in which every value is legal, for property tests to generate and
//!   shrink. The strategies are defined with the property tests.
//!
//! [`flight`] writes recordings of Flight Recorder. [`hostile_keys`] makes keys that collide in unseeded hash tables. [`damage`]
//! damages finished bytes as in real files. Compression is left to the tests.

mod arb;
mod basic;
mod class;
pub mod damage;
mod emit;
pub mod examples;
mod expected;
pub mod flight;
pub mod flight_leak;
pub mod flight_native;
mod heap;
pub mod hostile_keys;
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
