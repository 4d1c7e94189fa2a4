//! Destinations of heap dumps: a private file that appears when it is complete, a device, or stdout.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, bail, ensure};
use hprof_capture::jvms::JvmRow;
use hprof_capture::{Compression, Error};
use rustix::fs::{Access, AtFlags, CWD};

use crate::cli::shared::output::file::{Existing, OutFile, directory_of};

/// Destination of a dump.
pub(super) enum Destination {
    Stdout,
    /// A file that does not exist, or may be replaced.
    File(PathBuf),
    /// A device or FIFO.
    Device(PathBuf),
}

impl Destination {
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Stdout => None,
            Self::File(path) | Self::Device(path) => Some(path),
        }
    }
}

/// Options for the destination of a dump.
pub(super) struct DestinationRequest<'a> {
    /// `--output`.
    pub(super) output: Option<&'a Path>,
    pub(super) compression: Option<Compression>,
    pub(super) is_forced: bool,
    /// `Ok` if stdout is free for a dump, or else the reason.
    pub(super) stdout: Result<(), &'static str>,
}

impl Destination {
    /// Returns where the dump of a JVM goes, if nothing is in its way.
    pub(super) fn of(asked: &DestinationRequest<'_>, row: &JvmRow) -> anyhow::Result<Self> {
        match asked.output {
            None => free(Path::new(&default_name(row, asked.compression)), asked.is_forced),
            Some(path) if path.as_os_str() == "-" => match asked.stdout {
                Ok(()) => Ok(Self::Stdout),
                Err(why) => bail!(why),
            },
            Some(path) => free(path, asked.is_forced),
        }
    }
}

fn free(path: &Path, is_forced: bool) -> anyhow::Result<Destination> {
    let there = match fs::metadata(path) {
        Ok(there) => there,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let dir = directory_of(path);
            ensure!(dir.is_dir(), "cannot write {}: there is no directory {}", path.display(), dir.display());
            let may_write =
                rustix::fs::accessat(CWD, dir, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS);
            may_write.with_context(|| format!("cannot write {}", path.display()))?;
            return Ok(Destination::File(path.to_owned()));
        }
        Err(error) => return Err(error).with_context(|| format!("cannot write {}", path.display())),
    };
    if there.is_dir() {
        bail!("cannot write {}: it is a directory; name a file in it", path.display());
    }
    if !there.is_file() {
        return Ok(Destination::Device(path.to_owned()));
    }
    if !is_forced {
        return Err(Error::Exists { path: path.to_owned() }.into());
    }
    // A symbolic link is kept; its target is replaced.
    Ok(Destination::File(fs::canonicalize(path)?))
}

/// Returns the name of a dump that was given none: `Main-4711-20261126T014600Z.hprof`.
fn default_name(row: &JvmRow, compression: Option<Compression>) -> String {
    let class = row.main_class.as_deref().unwrap_or("java");
    let class = class.strip_suffix(".jar").unwrap_or(class);
    let class = class.rsplit(['/', '.']).next().unwrap_or(class);
    let class: String =
        class.chars().filter(|letter| letter.is_ascii_alphanumeric() || "_-$".contains(*letter)).collect();
    let class = class.trim_start_matches('-');
    let class = if class.is_empty() { "java" } else { class };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let time = jiff::Timestamp::from_second(i64::try_from(now).unwrap_or(0)).unwrap_or_default();
    let time = time.strftime("%Y%m%dT%H%M%SZ");
    format!("{class}-{}-{time}.hprof{}", row.pid, compression.map_or("", Compression::suffix))
}

/// Has a dump written to its destination, which errors name.
pub(super) fn written<T>(
    destination: &Destination,
    is_forced: bool,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<T, Error>,
) -> anyhow::Result<T> {
    match destination {
        Destination::File(path) => into_file(path, is_forced, write),
        Destination::Device(path) => {
            let device = File::options().write(true).open(path);
            let mut device = device.with_context(|| format!("cannot write {}", path.display()))?;
            Ok(write(&mut device).map_err(|error| at(path, error))?)
        }
        Destination::Stdout => Ok(write(&mut io::stdout()).map_err(|error| at(Path::new("stdout"), error))?),
    }
}

/// Names the destination in an error about it.
fn at(path: &Path, error: Error) -> Error {
    match error {
        Error::Output { source } => {
            Error::File { what: "cannot write".into(), path: path.to_owned(), source }
        }
        error => error,
    }
}

/// Writes a file that only its owner may read, and that appears when it is complete.
fn into_file<T>(
    path: &Path,
    is_forced: bool,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<T, Error>,
) -> anyhow::Result<T> {
    let existing = if is_forced { Existing::Replace } else { Existing::Keep };
    let mut file = OutFile::create_private(path, &[], existing)?;
    let written = write(&mut file).map_err(|error| at(path, error))?;
    file.commit()?;
    Ok(written)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn put(path: &Path, is_forced: bool) -> anyhow::Result<()> {
        written(&Destination::File(path.to_owned()), is_forced, |out| {
            out.write_all(b"new").map_err(|source| Error::Output { source })
        })
    }

    #[test]
    fn a_file_is_replaced_at_once_and_only_if_forced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.hprof");
        // Another user knows the process ID, and may write to the directory.
        let guessed = dir.path().join(format!(".hprof-cli-{}.part", std::process::id()));
        fs::write(&guessed, "other").unwrap();
        fs::write(&path, "old").unwrap();
        let error = put(&path, false).unwrap_err();
        assert!(format!("{error:#}").contains("it exists"), "{error:#}");
        put(&path, true).unwrap();
        assert_eq!((fs::read(&path).unwrap(), fs::read(&guessed).unwrap()), (b"new".into(), b"other".into()));
        put(&dir.path().join("b.hprof"), false).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
    }

    #[test]
    fn errors_name_the_destination() {
        let error = written(&Destination::Device("/dev/full".into()), false, |out| {
            out.write_all(b"new").map_err(|source| Error::Output { source })
        });
        assert_eq!(error.unwrap_err().to_string(), "cannot write /dev/full");
    }

    #[test]
    fn dumps_are_named_after_the_program() {
        let row = |class: &str| JvmRow {
            pid: 7,
            namespace_pid: 7,
            main_class: Some(class.to_owned()),
            ..JvmRow::default()
        };
        for (class, start) in [
            ("com.acme.Main", "Main-7-2"),
            ("/opt/my app/app.jar", "app-7-2"),
            ("mod/com.acme.Main", "Main-7-2"),
            ("-rf", "rf-7-2"),
            ("../..", "java-7-2"),
            ("\u{202e}x\n", "x-7-2"),
        ] {
            let name = default_name(&row(class), Some(Compression::Zstd));
            assert!(name.starts_with(start) && name.ends_with("Z.hprof.zst"), "{name}");
        }
    }
}
