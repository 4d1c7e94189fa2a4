//! Lists of threads by serial number, in MONITOR DUMP.

use super::scan::{Scan, trim_start};

/// Serial numbers of threads, `thread 3, thread 4`; 0 means `<unknown thread>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Serials<'a> {
    rest: &'a [u8],
}

impl<'a> Serials<'a> {
    /// Parses a list; `None` unless all of it is valid.
    pub(super) fn new(text: &'a [u8]) -> Option<Self> {
        let mut scan = Scan::new(text);
        scan.spaces();
        while !scan.is_done() {
            thread(&mut scan)?;
            separator(&mut scan);
        }
        Some(Self { rest: trim_start(text) })
    }
}

impl Iterator for Serials<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let mut scan = Scan::new(self.rest);
        let serial = thread(&mut scan)?;
        separator(&mut scan);
        self.rest = scan.remaining();
        Some(serial)
    }
}

fn separator(scan: &mut Scan<'_>) {
    scan.maybe(b",");
    scan.spaces();
}

/// Parses `thread 3`, or `<unknown thread>`, which is 0.
pub(super) fn thread(scan: &mut Scan<'_>) -> Option<u32> {
    if scan.maybe(b"<unknown thread>") {
        return Some(0);
    }
    scan.literal(b"thread ")?;
    scan.serial()
}
