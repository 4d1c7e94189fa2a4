//! The class whose methods rewritten classes call.

use super::pool::{Additions, TRACKER_DESCRIPTOR};
use super::reader::{put_u2, put_u4};

/// Names of the class and of the two methods `void NAME(int)` that rewritten classes call.
///
/// Classes of all modules call it, so its package has to be exported to all of them. The unnamed module of the boot
/// loader is not enough for a class of a named module, unless the JVM adds the read edge (it does so for modules whose
/// classes an agent changed, once the module system is initialized).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tracker<'a> {
    pub(super) class: &'a str,
    pub(super) enter: &'a str,
    pub(super) exit: &'a str,
}

impl<'a> Tracker<'a> {
    /// A tracker with the internal name `class` (`java/lang/Name`), whose methods are called at each entry and each
    /// exit.
    ///
    /// # Panics
    ///
    /// If a name is empty, is longer than 1,024 bytes, or is not ASCII: in a constant, an error of the compiler.
    pub const fn new(class: &'a str, enter: &'a str, exit: &'a str) -> Tracker<'a> {
        assert!(is_name(class) && is_name(enter) && is_name(exit), "a short ASCII name");
        Tracker { class, enter, exit }
    }
}

/// Whether a name is the same in UTF-8 and in modified UTF-8, and fits into a Utf8 constant.
const fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 1024 && name.is_ascii()
}

/// A class file with `public static native void` methods of the names in `tracker`, and nothing else: to be defined in
/// the boot loader, its methods to be registered with JNI's `RegisterNatives`.
pub fn tracker_class(tracker: &Tracker<'_>) -> Vec<u8> {
    const PUBLIC: u16 = 0x0001;
    const STATIC: u16 = 0x0008;
    const FINAL: u16 = 0x0010;
    const SUPER: u16 = 0x0020;
    const NATIVE: u16 = 0x0100;
    const SYNTHETIC: u16 = 0x1000;
    /// Of Java 8: no module, no frames to write, known to every JVM that the agent runs on.
    const MAJOR_VERSION: u16 = 52;

    let mut constants = Additions::after(1);
    // An empty pool has space for these; 0 is not the index of any constant.
    let this = constants.class(tracker.class).unwrap_or_default();
    let object = constants.class("java/lang/Object").unwrap_or_default();
    let descriptor = constants.utf8(TRACKER_DESCRIPTOR).unwrap_or_default();
    let names = [tracker.enter, tracker.exit].map(|name| constants.utf8(name).unwrap_or_default());

    let mut out = Vec::new();
    put_u4(&mut out, super::MAGIC);
    put_u2(&mut out, 0);
    put_u2(&mut out, MAJOR_VERSION);
    put_u2(&mut out, constants.count());
    out.extend_from_slice(constants.bytes());
    for part in [PUBLIC | FINAL | SUPER | SYNTHETIC, this, object, 0, 0, 2] {
        put_u2(&mut out, part);
    }
    for name in names {
        for part in [PUBLIC | STATIC | NATIVE, name, descriptor, 0] {
            put_u2(&mut out, part);
        }
    }
    put_u2(&mut out, 0);
    out
}
