//! Class file of the tracker.

use super::pool::{Additions, TRACKER_DESCRIPTOR};
use super::reader::{put_u2, put_u4};
use super::tracker::Tracker;

/// Returns a class file that contains only `public static native void` methods with the names in
/// `tracker`: to be defined in the boot loader, with its methods registered by JNI's `RegisterNatives`.
pub fn tracker_class(tracker: &Tracker<'_>) -> Vec<u8> {
    const PUBLIC: u16 = 0x0001;
    const STATIC: u16 = 0x0008;
    const FINAL: u16 = 0x0010;
    const SUPER: u16 = 0x0020;
    const NATIVE: u16 = 0x0100;
    const SYNTHETIC: u16 = 0x1000;
    /// Version of Java 8, which needs no module and no frames, and is supported by every JVM on which the agent runs.
    const MAJOR_VERSION: u16 = 52;

    let mut constants = Additions::after(1);
    // An empty pool has space for these constants; index 0 is not valid for any constant.
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
