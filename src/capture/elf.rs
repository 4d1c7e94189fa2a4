//! Facts about executables: section names, architecture, and whether they need a loader.

use std::os::unix::fs::FileExt;

/// Maximum length in bytes of the table of section names. In native images it takes several hundred bytes.
const MAX_NAMES: u64 = 1 << 16;

/// Returns whether a 64-bit little-endian ELF file has a section with this name; `None` if it is not such a file.
pub(crate) fn has_section(file: &impl FileExt, name: &str) -> Option<bool> {
    let mut header = [0; 64];
    file.read_exact_at(&mut header, 0).ok()?;
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (table, size) = (number(&header, 40, 8)?, number(&header, 58, 2)?);
    let (count, names) = (number(&header, 60, 2)?, number(&header, 62, 2)?);
    if size != 64 || names >= count {
        return Some(false);
    }
    let mut section = [0; 64];
    file.read_exact_at(&mut section, table.checked_add(names.checked_mul(size)?)?).ok()?;
    let (at, length) = (number(&section, 24, 8)?, number(&section, 32, 8)?.min(MAX_NAMES));
    let mut names = vec![0; usize::try_from(length).ok()?];
    file.read_exact_at(&mut names, at).ok()?;
    // A name may be stored as the end of another one, but this section's name is stored as a separate string.
    Some(names.split(|byte| *byte == 0).any(|one| one == name.as_bytes()))
}

/// Architecture and linkage of an ELF program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Program {
    /// Architecture, in the form that `uname -m` prints.
    pub(crate) machine: &'static str,
    /// `true` if the program does not need a dynamic loader.
    pub(crate) is_static: bool,
}

/// Returns the facts about a 64-bit little-endian ELF file; `None` for any other file.
pub(crate) fn program(file: &[u8]) -> Option<Program> {
    /// Type of the program header that names the dynamic loader.
    const INTERP: u64 = 3;
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let machine = match number(file, 18, 2)? {
        62 => "x86_64",
        183 => "aarch64",
        _ => "an unknown architecture",
    };
    let (table, count) = (usize::try_from(number(file, 32, 8)?).ok()?, number(file, 56, 2)?);
    let size = usize::try_from(number(file, 54, 2)?).ok()?;
    let (mut entry, mut is_static) = (table, true);
    for _ in 0..count {
        is_static &= number(file, entry, 4)? != INTERP;
        entry = entry.checked_add(size)?;
    }
    Some(Program { machine, is_static })
}

fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn programs_have_an_architecture_and_may_need_a_loader() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        let is_static = cfg!(target_feature = "crt-static");
        assert_eq!(program(&own), Some(Program { machine: std::env::consts::ARCH, is_static }));
        assert_eq!((program(b"#!/bin/sh"), program(&own[..80])), (None, None));
    }

    #[test]
    fn sections_have_names() {
        let own = std::fs::File::open("/proc/self/exe").unwrap();
        assert_eq!(has_section(&own, ".text"), Some(true));
        assert_eq!(has_section(&own, ".svm_heap"), Some(false));
        let script = tempfile::tempfile().unwrap();
        script.write_all_at(b"#!/bin/sh\n", 0).unwrap();
        assert_eq!(has_section(&script, ".text"), None);
        // Offsets point outside the file.
        let hostile = tempfile::tempfile().unwrap();
        let mut bytes = [0xff; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[58..64].copy_from_slice(&[64, 0, 9, 0, 1, 0]);
        hostile.write_all_at(&bytes, 0).unwrap();
        assert_eq!(has_section(&hostile, ".text"), None);
    }
}
