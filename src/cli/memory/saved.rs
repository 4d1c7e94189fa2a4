//! Files about the memory of a process: those of `--save`, and copies of smaps and of the JVM's account.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use anyhow::Context;
use hprof_memory::Sources;
use hprof_memory::mappings::Mappings;
use hprof_memory::native_memory::NativeMemory;
use serde::{Deserialize, Serialize};

use crate::cli::shared::output::file::{OutFile, OverwritePolicy};

/// Version of the format.
const VERSION: u32 = 1;

/// First key of a file of `--save`.
const MARK: &[u8] = b"{\"hprof_cli_memory\":";

/// Maximum length of a file: a process may have 262,144 mappings, each with 800 bytes of smaps.
const MAX_BYTES: u64 = 256 << 20;

/// Number of bytes from which a file is recognized.
const HEAD: usize = 256;

/// What was read about a process.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct SavedMemory {
    /// Version of the format.
    #[serde(rename = "hprof_cli_memory")]
    version: u32,
    /// Process ID.
    pub(super) pid: Option<u32>,
    /// Main class or JAR file.
    pub(super) main_class: Option<String>,
    pub(super) sources: Sources,
}

impl SavedMemory {
    /// Creates the facts about a process.
    #[cfg(target_os = "linux")]
    pub(super) fn new(pid: u32, main_class: Option<String>, sources: Sources) -> Self {
        Self { version: VERSION, pid: Some(pid), main_class, sources }
    }

    /// Writes the file.
    #[cfg(target_os = "linux")]
    pub(super) fn write(&self, path: &Path, inputs: &[&Path], is_forced: bool) -> anyhow::Result<()> {
        // As private as a dump: it has the names of files.
        let mut file = OutFile::create_private(path, inputs, OverwritePolicy::new(is_forced))?;
        let text = serde_json::to_vec(self)?;
        file.write_all(&text)
            .and_then(|()| file.write_all(b"\n"))
            .with_context(|| format!("cannot write {}", path.display()))?;
        file.commit()
    }
}

/// Reads a file of `--save` or a copy of smaps; `None` if it is neither.
///
/// # Errors
/// If it cannot be read, or is damaged.
pub(super) fn read(path: &Path) -> anyhow::Result<Option<SavedMemory>> {
    let mut file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let mut head = Vec::new();
    let failed = || format!("cannot read {}", path.display());
    (&mut file).take(HEAD as u64).read_to_end(&mut head).with_context(failed)?;
    let is_saved = head.starts_with(MARK);
    if !is_saved && !is_smaps(&head) {
        return Ok(None);
    }
    let mut bytes = head;
    file.take(MAX_BYTES).read_to_end(&mut bytes).with_context(failed)?;
    anyhow::ensure!(
        (bytes.len() as u64) < MAX_BYTES,
        "{} is longer than {} MiB: it is not an account of a process",
        path.display(),
        MAX_BYTES >> 20
    );
    if is_saved {
        let saved: SavedMemory = serde_json::from_slice(&bytes).with_context(|| {
            format!("{} is damaged, or of another version of this program", path.display())
        })?;
        anyhow::ensure!(
            saved.version == VERSION,
            "{} is of version {}; this program reads version {VERSION}",
            path.display(),
            saved.version
        );
        let mut saved = saved;
        let check = saved.sources.check();
        check.map_err(|why| anyhow::anyhow!("{} is not an account of a process: {why}", path.display()))?;
        return Ok(Some(saved));
    }
    let mappings = Mappings::parse(&bytes);
    let is_sum = mappings.all.iter().any(|mapping| mapping.path.as_deref() == Some("[rollup]"));
    anyhow::ensure!(
        !is_sum,
        "{} is a copy of /proc/PID/smaps_rollup, which has only sums; smaps has the mappings",
        path.display()
    );
    anyhow::ensure!(
        mappings.proportional_bytes() > 0,
        "{} has no resident memory: a copy of /proc/PID/smaps has lines `Pss:`, /proc/PID/maps has not",
        path.display()
    );
    Ok(Some(SavedMemory {
        sources: Sources { mappings: Some(mappings), ..Sources::default() },
        ..SavedMemory::default()
    }))
}

/// Reads a file about a process that is given beside a dump.
///
/// # Errors
/// If it is neither a file of `--save` nor a copy of smaps, or cannot be read.
pub(super) fn read_beside(path: &Path) -> anyhow::Result<SavedMemory> {
    read(path)?.with_context(|| {
        format!("{} is neither a file of --save nor a copy of /proc/PID/smaps", path.display())
    })
}

/// Returns whether a file begins like smaps: `5627c9cb0000-5627c9cb1000 r--p`.
fn is_smaps(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let is_range = words.next().is_some_and(|range| {
        let mut ends = range.split(|byte| *byte == b'-');
        let is_hex = |word: Option<&[u8]>| {
            word.is_some_and(|word| !word.is_empty() && word.iter().all(u8::is_ascii_hexdigit))
        };
        is_hex(ends.next()) && is_hex(ends.next()) && ends.next().is_none()
    });
    is_range && words.next().is_some_and(|access| access.len() == 4)
}

/// Reads the output of `VM.native_memory`.
pub(super) fn native_memory(path: &Path) -> anyhow::Result<NativeMemory> {
    let mut text = Vec::new();
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    file.take(MAX_BYTES).read_to_end(&mut text).with_context(|| format!("cannot read {}", path.display()))?;
    NativeMemory::parse(&String::from_utf8_lossy(&text)).with_context(|| {
        format!(
            "{} is not the output of `jcmd PID VM.native_memory`, or tracking was not enabled",
            path.display()
        )
    })
}
