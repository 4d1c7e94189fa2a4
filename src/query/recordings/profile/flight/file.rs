//! File of a Flight Recorder recording, plain or compressed.

use std::path::{Path, PathBuf};

use hprof_index::{Error, Progress, unnamed_copy};
use hprof_input::file::{Compression, MappedFile};
use hprof_parser::sniff::{self, FileKind};

/// Flight Recorder file, mapped for reading.
#[derive(Debug)]
pub struct FlightFile {
    file_bytes: u64,
    map: MappedFile,
    unpack_error: Option<String>,
}

impl FlightFile {
    /// Opens a file; `None` if it is not a recording. `scratch` is the directory for the unpacked copy of a compressed
    /// recording, which is an unnamed file.
    ///
    /// # Errors
    /// If it cannot be opened or unpacked.
    pub fn open(
        path: &Path,
        scratch: Option<PathBuf>,
        progress: &dyn Progress,
    ) -> Result<Option<Self>, Error> {
        let Some((map, compression)) = open_recording(path)? else { return Ok(None) };
        let file_bytes = map.stamp().len;
        let (map, unpack_error) = match compression {
            None => (map, None),
            Some(compression) => {
                let into = scratch.unwrap_or_else(std::env::temp_dir);
                unnamed_copy(&map, compression, &into, progress)?
            }
        };
        Ok(Some(Self { file_bytes, map, unpack_error }))
    }

    /// Returns whether a file is a recording. Only the first bytes of the file are read.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn is_recording_file(path: &Path) -> Result<bool, Error> {
        Ok(open_recording(path)?.is_some())
    }

    /// Returns the unpacked bytes.
    pub fn bytes(&self) -> &[u8] {
        self.map.bytes()
    }

    /// Returns the length of the file on disk.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Returns the error that ended unpacking early.
    pub fn unpack_error(&self) -> Option<&str> {
        self.unpack_error.as_deref()
    }
}

/// Opens a file and detects its compression; `None` if it is not a recording.
fn open_recording(path: &Path) -> Result<Option<(MappedFile, Option<Compression>)>, Error> {
    let map = MappedFile::open(path)?;
    // Recordings in archives are not supported.
    let compression = Compression::detect(map.bytes()).filter(|compression| !compression.is_archive());
    let looks = match compression {
        None => sniff::sniff(map.bytes()),
        Some(compression) => sniff::sniff(&compression.peek(map.bytes(), 4096).0),
    };
    Ok((looks == FileKind::Jfr).then_some((map, compression)))
}
