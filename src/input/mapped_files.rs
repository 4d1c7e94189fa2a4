//! Registry of mapped files, so that a bus error can be reported as its cause: a file that was truncated.
//!
//! Reading a map beyond the new end of its file is not an error that a program could check: the kernel sends SIGBUS.
//! The handler of that signal, which is elsewhere, has the address that was read; this module finds its map. It may be
//! called at any moment, so lookups neither wait for a lock nor allocate.
//!
//! Nothing is recorded until [`watch`] declares that there is such a handler.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

/// Kind of a mapped file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// A file that others can write to; the path is its own.
    File,
    /// A scratch file without a name; its path is the directory's.
    Scratch,
}

/// Function that returns the message for a map whose file was truncated.
pub(crate) type Describe = fn(&Path, Content) -> String;

/// Records maps from now on, each with the text of `describe`.
pub fn watch(describe: Describe) {
    MAPS.watch(describe);
}

/// Maximum length of the text of a map in bytes.
pub const TEXT: usize = 512;
/// Maximum number of recorded maps: several times what a command uses.
const SLOTS: usize = 1024;

/// A recorded map.
#[derive(Debug)]
struct MapSlot {
    taken: AtomicBool,
    /// Address of the first byte; 0 while the other fields are invalid.
    start: AtomicUsize,
    end: AtomicUsize,
    len: AtomicUsize,
    text: [AtomicU8; TEXT],
}

/// Registry of maps.
struct Maps {
    describe: OnceLock<Describe>,
    slots: &'static [MapSlot; SLOTS],
}

/// Registry of the process.
static MAPS: Maps = Maps::new(&SLOTS_OF_PROCESS);
// Separate: all zeros take no space in the executable.
static SLOTS_OF_PROCESS: [MapSlot; SLOTS] = [const { MapSlot::new() }; SLOTS];

/// Registration of a map, which ends when this is dropped: it has to be dropped before the map.
#[derive(Debug)]
pub struct KnownMap(Option<&'static MapSlot>);

/// Registers a map, if [`watch`] was called.
pub fn register(bytes: &[u8], path: &Path, content: Content) -> KnownMap {
    MAPS.register(bytes, path, content)
}

impl Drop for KnownMap {
    fn drop(&mut self) {
        if let Some(slot) = self.0 {
            slot.start.store(0, Ordering::Relaxed);
            slot.taken.store(false, Ordering::Release);
        }
    }
}

/// Writes the text of the map that contains this address into `text`. Returns its length, or `None` if no map is
/// registered there.
///
/// Neither locks nor allocates: may be called in a signal handler. The map must be in use, such as one that a thread is
/// reading: then it does not change meanwhile.
pub fn copy_map_text(address: usize, text: &mut [u8; TEXT]) -> Option<usize> {
    MAPS.copy_map_text(address, text)
}

impl MapSlot {
    const fn new() -> Self {
        Self {
            taken: AtomicBool::new(false),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            len: AtomicUsize::new(0),
            text: [const { AtomicU8::new(0) }; TEXT],
        }
    }
}

impl Maps {
    const fn new(slots: &'static [MapSlot; SLOTS]) -> Self {
        Self { describe: OnceLock::new(), slots }
    }

    fn watch(&self, describe: Describe) {
        // The first caller wins.
        let _ = self.describe.set(describe);
    }

    fn register(&'static self, bytes: &[u8], path: &Path, content: Content) -> KnownMap {
        let Some(describe) = self.describe.get().filter(|_| !bytes.is_empty()) else {
            return KnownMap(None);
        };
        let free = |slot: &&MapSlot| {
            slot.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        // Without a slot the map stays unregistered, and its signal unexplained.
        let Some(slot) = self.slots.iter().find(free) else {
            return KnownMap(None);
        };
        let text = describe(path, content);
        let len = (0..=text.len().min(TEXT)).rev().find(|len| text.is_char_boundary(*len)).unwrap_or(0);
        for (to, byte) in slot.text.iter().zip(text.bytes().take(len)) {
            to.store(byte, Ordering::Relaxed);
        }
        slot.len.store(len, Ordering::Relaxed);
        let start = bytes.as_ptr().addr();
        slot.end.store(start + bytes.len(), Ordering::Relaxed);
        slot.start.store(start, Ordering::Release);
        KnownMap(Some(slot))
    }

    fn copy_map_text(&self, address: usize, text: &mut [u8; TEXT]) -> Option<usize> {
        let holds = |slot: &&MapSlot| {
            let start = slot.start.load(Ordering::Acquire);
            let end = slot.end.load(Ordering::Relaxed);
            // Another thread may have given the slot to another map meanwhile.
            start != 0 && (start..end).contains(&address) && slot.start.load(Ordering::Acquire) == start
        };
        let slot = self.slots.iter().find(holds)?;
        for (to, byte) in text.iter_mut().zip(&slot.text) {
            *to = byte.load(Ordering::Relaxed);
        }
        Some(slot.len.load(Ordering::Relaxed).min(TEXT))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Separate from those of the process: other tests map files meanwhile.
    static OWN: Maps = Maps::new(&OWN_SLOTS);
    static OWN_SLOTS: [MapSlot; SLOTS] = [const { MapSlot::new() }; SLOTS];

    fn text_at(address: usize) -> Option<String> {
        let mut text = [0; TEXT];
        let len = OWN.copy_map_text(address, &mut text)?;
        Some(String::from_utf8(text[..len].to_vec()).unwrap())
    }

    #[test]
    fn maps_are_known_while_they_are_there() {
        let bytes = vec![7u8; 5000];
        let (first, last) = (bytes.as_ptr().addr(), bytes.as_ptr().addr() + 4999);
        assert!(OWN.register(&bytes, "before".as_ref(), Content::File).0.is_none(), "nobody watches yet");
        OWN.watch(|path, content| format!("{} {content:?}", path.display()));
        let map = OWN.register(&bytes, "a file".as_ref(), Content::File);
        for address in [first, first + 2000, last] {
            assert_eq!(text_at(address).as_deref(), Some("a file File"));
        }
        assert_eq!((text_at(first - 1), text_at(last + 1), text_at(0)), (None, None, None));
        drop(map);
        assert_eq!(text_at(first), None);

        // A long text is truncated between characters; once all slots are taken, maps stay unregistered.
        let long = "ü".repeat(TEXT);
        let maps: Vec<KnownMap> =
            bytes.chunks(4).map(|part| OWN.register(part, long.as_ref(), Content::Scratch)).collect();
        assert_eq!(maps.iter().filter(|map| map.0.is_some()).count(), SLOTS);
        assert_eq!(text_at(first + 6).unwrap(), "ü".repeat(TEXT / 2));
        assert_eq!(text_at(last), None);
        drop(maps);
        assert!(OWN.slots.iter().all(|slot| !slot.taken.load(Ordering::Relaxed)));
    }
}
