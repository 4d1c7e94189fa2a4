//! Counters that HotSpot publishes in the file `/tmp/hsperfdata_USER/PID`, from which other processes can read them at no cost
//! to the JVM.
//!
//! The format is version 2.0, as described by `perfMemory.hpp` and `jdk.internal.perf`: a prologue, then entries, each with its
//! length, name and value. The JVM changes values while they are read; each value is at most 8 bytes, or a text that rarely
//! changes. The file belongs to another process, so no number in it is trusted.

use std::collections::HashMap;
use std::sync::Arc;

use crate::processes::{MappedFiles, Process};
use crate::user_files::UserFiles;

/// Maximum length in bytes of a counter file. JVMs use 32 KiB by default.
const MAX_BYTES: u64 = 4 << 20;

/// Maximum number of counters in a file. JVMs have several hundred.
const MAX_COUNTERS: u32 = 1 << 16;

/// First bytes of a counter file.
const MAGIC: [u8; 4] = [0xca, 0xfe, 0xc0, 0xc0];

/// Counters of a JVM, by name.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct PerfData {
    values: HashMap<String, PerfValue>,
}

/// Value of a counter.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PerfValue {
    Number(i64),
    Text(String),
}

/// Reader of numbers in the file's byte order.
struct ByteReader<'b> {
    bytes: &'b [u8],
    is_big_endian: bool,
}

impl<'b> ByteReader<'b> {
    fn slice(&self, at: usize, length: usize) -> Option<&'b [u8]> {
        self.bytes.get(at..at.checked_add(length)?)
    }

    fn u32(&self, at: usize) -> Option<u32> {
        let bytes: [u8; 4] = self.slice(at, 4)?.try_into().ok()?;
        Some(if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn i64(&self, at: usize) -> Option<i64> {
        let bytes: [u8; 8] = self.slice(at, 8)?.try_into().ok()?;
        Some(if self.is_big_endian { i64::from_be_bytes(bytes) } else { i64::from_le_bytes(bytes) })
    }

    fn length(&self, at: usize) -> Option<usize> {
        usize::try_from(self.u32(at)?).ok()
    }
}

/// Returns the text before the first NUL byte.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

impl PerfData {
    /// Reads the counters of a JVM from the counter file that the JVM has mapped; a different file is rejected.
    pub(crate) fn read(files: &Arc<UserFiles>, process: &Process, mapped: &MappedFiles) -> Option<Self> {
        // For the JVM, the directory is always in `/tmp`, whatever its path is for this process.
        let mut names = mapped.perfdata.as_deref()?.rsplit('/');
        let (pid, dir) = (names.next()?, names.next()?);
        let (bytes, facts) = files.root().ok()?.bytes(&format!("tmp/{dir}/{pid}"), MAX_BYTES).ok()?;
        if facts.user != process.status().identity.user {
            return None;
        }
        Self::parse(&bytes)
    }

    /// Parses a counter file; `None` if it is not one, or the JVM is still starting. Parsing stops at an invalid entry.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        // Magic, byte order, major and minor version, accessible, used, overflow, modification time, first entry, entries.
        if bytes.get(..4)? != MAGIC {
            return None;
        }
        let [order, major, _, accessible] = bytes.get(4..8)?.try_into().ok()?;
        if major != 2 || accessible == 0 {
            return None;
        }
        let bytes = ByteReader { bytes, is_big_endian: order == 0 };
        let (mut at, count) = (bytes.length(24)?, bytes.u32(28)?.min(MAX_COUNTERS));
        let mut found = Self::default();
        for _ in 0..count {
            let Some((name, value, length)) = entry(&bytes, at) else { break };
            if let Some(value) = value {
                found.values.insert(name, value);
            }
            at = at.saturating_add(length);
        }
        Some(found)
    }

    /// Returns the value of a counter that is a number; `None` if there is no such counter.
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.values.get(name)? {
            PerfValue::Number(number) => u64::try_from(*number).ok(),
            PerfValue::Text(_) => None,
        }
    }

    /// Returns the value of a counter that is a text; `None` if there is no such counter, or the text is empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.values.get(name)? {
            PerfValue::Text(text) => Some(text.as_str()).filter(|text| !text.is_empty()),
            PerfValue::Number(_) => None,
        }
    }

    /// Returns the total time for which the JVM's threads have been suspended so far, in nanoseconds: the time in all
    /// safepoints, including the time to reach them.
    pub fn standstill_nanoseconds(&self) -> Option<u64> {
        let ticks = self.number("sun.rt.safepointTime")?;
        let ticks = ticks.checked_add(self.number("sun.rt.safepointSyncTime").unwrap_or(0))?;
        let frequency = self.number("sun.os.hrt.frequency").filter(|frequency| *frequency > 0)?;
        u64::try_from(u128::from(ticks) * 1_000_000_000 / u128::from(frequency)).ok()
    }
}

/// Reads an entry at an offset; returns its name, its value and its length. The value is `None` for types that are not used.
fn entry(bytes: &ByteReader<'_>, at: usize) -> Option<(String, Option<PerfValue>, usize)> {
    // Length, offset of the name, length of the vector, type, flags, unit, variability, offset of the value.
    let length = bytes.length(at)?;
    let entry = ByteReader { bytes: bytes.slice(at, length)?, is_big_endian: bytes.is_big_endian };
    let (name, elements, value) = (entry.length(4)?, entry.length(8)?, entry.length(16)?);
    let kind = *entry.bytes.get(12)?;
    let name = text(entry.bytes.get(name..)?);
    let value = match (kind, elements) {
        (b'J', 0) => entry.i64(value).map(PerfValue::Number),
        (b'B', 1..) => entry.slice(value, elements).map(|bytes| PerfValue::Text(text(bytes))),
        _ => None,
    };
    Some((name, value, length))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    enum CounterValue<'t> {
        Number(i64),
        Text(&'t str),
    }

    fn file(is_big_endian: bool, counters: &[(&str, CounterValue<'_>)]) -> Vec<u8> {
        let number = |number: u32| if is_big_endian { number.to_be_bytes() } else { number.to_le_bytes() };
        let long = |number: i64| if is_big_endian { number.to_be_bytes() } else { number.to_le_bytes() };
        let mut file = MAGIC.to_vec();
        file.extend([u8::from(!is_big_endian), 2, 0, 1]);
        file.extend([0; 16]);
        file.extend(number(32));
        file.extend(number(u32::try_from(counters.len()).unwrap()));
        for (name, value) in counters {
            let padded = name.len().div_ceil(8) * 8 + 8;
            let (kind, elements, bytes) = match value {
                CounterValue::Number(value) => (b'J', 0, long(*value).to_vec()),
                CounterValue::Text(text) => (b'B', text.len() + 1, [text.as_bytes(), &[0]].concat()),
            };
            let length = (20 + padded + bytes.len()).div_ceil(8) * 8;
            let start = file.len();
            for word in [length, 20, elements] {
                file.extend(number(u32::try_from(word).unwrap()));
            }
            file.extend([kind, 0, 1, 1]);
            file.extend(number(u32::try_from(20 + padded).unwrap()));
            file.extend(name.as_bytes());
            file.resize(start + 20 + padded, 0);
            file.extend(bytes);
            file.resize(start + length, 0);
        }
        file
    }

    fn example(is_big_endian: bool) -> Vec<u8> {
        file(
            is_big_endian,
            &[
                ("sun.rt.javaCommand", CounterValue::Text("app.Main --port 80")),
                ("sun.rt.safepointTime", CounterValue::Number(3_000)),
                ("sun.rt.safepointSyncTime", CounterValue::Number(500)),
                ("sun.os.hrt.frequency", CounterValue::Number(1_000_000)),
                ("java.rt.vmFlags", CounterValue::Text("")),
                ("negative", CounterValue::Number(-1)),
            ],
        )
    }

    #[test]
    fn counters_are_read_in_both_byte_orders() {
        for is_big_endian in [false, true] {
            let found = PerfData::parse(&example(is_big_endian)).unwrap();
            assert_eq!(found.text("sun.rt.javaCommand"), Some("app.Main --port 80"));
            assert_eq!(found.standstill_nanoseconds(), Some(3_500_000));
            assert_eq!((found.text("java.rt.vmFlags"), found.number("negative")), (None, None));
            assert_eq!((found.number("sun.rt.javaCommand"), found.text("missing")), (None, None));
        }
    }

    #[test]
    fn any_bytes_are_read_without_harm() {
        let good = example(false);
        for end in 0..good.len() {
            let _ = PerfData::parse(&good[..end]);
        }
        for at in 0..good.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut bytes = good.clone();
                bytes[at] = byte;
                let _ = PerfData::parse(&bytes);
            }
        }
        // Entries of length 0 would lead to an endless loop.
        let mut endless = good;
        endless[28..32].copy_from_slice(&[0xff; 4]);
        endless[32..36].copy_from_slice(&[0; 4]);
        assert_eq!(PerfData::parse(&endless), Some(PerfData::default()));
        for wrong in [&b""[..], b"\xca\xfe\xc0\xc0", b"\xca\xfe\xba\xbe\x01\x02\x00\x01"] {
            assert_eq!(PerfData::parse(wrong), None);
        }
    }
}
