//! Copies of dumps that are read from a pipe: dumps are memory-mapped, and read more than once.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::error::Error;
use super::unpack::{Copy, CopyWriter};
use crate::storage::temporary_files::TemporaryDir;
use hprof_input::progress::Progress;

/// Number of bytes per read.
const CHUNK: usize = 1 << 20;
/// Name prefix of directories of copies. Those left by killed processes are removed by the next process.
const PREFIX: &str = "hprof-cli-pipe-";

/// A copy of a dump. It is removed with its directory when this is dropped or the process is terminated by a
/// signal.
#[derive(Debug)]
pub struct SpooledCopy {
    dir: TemporaryDir,
    path: PathBuf,
}

impl SpooledCopy {
    /// Copies the output of `reader` into a private directory in `into`. `path` is the name of the pipe
    /// in messages, `name` the name of the copy.
    ///
    /// # Errors
    /// Fails if `reader` fails or the copy cannot be written: there is no space, or no directory.
    pub fn copy(
        reader: &mut dyn Read,
        path: &Path,
        name: &OsStr,
        into: &Path,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let fail = |why: String| Error::Spool { path: path.to_owned(), into: into.to_owned(), why };
        let of_system = |error: io::Error| fail(error.to_string());
        let dir = TemporaryDir::create_in(into, PREFIX, 0o700).map_err(of_system)?;
        let copy = dir.path().join(name);
        let file = dir.dir().create_new(name, 0o600).map_err(of_system)?;
        let room = Copy::new(&file, dir.path().to_owned());
        progress.begin(&format!("reading {}", path.display()), 0);
        let mut writer = CopyWriter::new(&room);
        let mut buffer = vec![0; CHUNK];
        loop {
            let part = match reader.read(&mut buffer) {
                Ok(read) => buffer.get(..read).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(fail(format!("reading failed: {error}"))),
            };
            if part.is_empty() {
                break;
            }
            if let Err(error) = writer.write_all(part) {
                return Err(fail(room.no_room().map_or(error.to_string(), |no_room| no_room.to_string())));
            }
            progress.advance(part.len() as u64);
        }
        progress.end();
        Ok(Self { dir, path: copy })
    }

    /// Returns the path of the copy.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the directory of the copy, which is removed with it.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hprof_input::progress::Quiet;

    /// Reader that fails after some bytes.
    struct Broken(u8);

    impl Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::ConnectionReset)?;
            Ok(buffer.iter_mut().take(3).map(|byte| *byte = self.0).count())
        }
    }

    #[test]
    fn a_copy_goes_with_its_directory() {
        let into = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(3 * CHUNK + 5).collect();
        let of = |reader: &mut dyn Read| {
            SpooledCopy::copy(reader, Path::new("-"), OsStr::new("stdin"), into.path(), &Quiet)
        };
        let spooled = of(&mut &*bytes).unwrap();
        assert_eq!(std::fs::read(spooled.path()).unwrap(), bytes);
        std::fs::write(spooled.dir().join("beside"), "").unwrap();
        drop(spooled);
        let error = of(&mut Broken(4)).unwrap_err();
        assert!(error.to_string().contains("reading failed"), "{error}");
        assert_eq!(std::fs::read_dir(into.path()).unwrap().count(), 0);
    }
}
