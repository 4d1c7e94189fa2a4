//! Destinations of heap dumps: a private file with a temporary name until it is complete, a device, or stdout.

use std::env;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, bail, ensure};
use hprof_capture::jvms::JvmRow;
use hprof_capture::machine::Machine;
use hprof_capture::plan::OutputDir;
use hprof_capture::user_files::{ForeignDir, UserFile, UserOutputDir};
use hprof_capture::{Compression, Error, Identity};
use hprof_index::storage::trusted_path;
use rustix::fs::{Access, AtFlags, CWD};

use crate::cli::dump::redact::mapping::ClassMapping;
use crate::cli::shared::output::file::{OutFile, OverwritePolicy, directory_of};

/// Destination of a dump.
pub(super) enum Destination {
    Stdout,
    /// A file that does not exist, or may be replaced.
    File(FileDestination),
    /// A device or FIFO.
    Device(PathBuf),
}

/// A file to which a dump goes.
pub(super) struct FileDestination {
    path: PathBuf,
    is_forced: bool,
    place: DestinationPlace,
}

/// Directory of an output file, by the user who accesses it.
enum DestinationPlace {
    /// A directory in which files are created as the user of this process, with its canonical path.
    Own(OwnedFd, PathBuf),
    /// A directory that others may change: root creates files in it only as another user.
    Foreign(UserOutputDir),
}

impl Destination {
    /// Returns the path of the file or device; `None` for stdout.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Stdout => None,
            Self::File(FileDestination { path, .. }) | Self::Device(path) => Some(path),
        }
    }

    /// Returns the directory of a file.
    pub(super) fn dir(&self) -> Option<OutputDir<'_>> {
        match self {
            Self::File(file) => Some(match &file.place {
                DestinationPlace::Own(fd, path) => OutputDir::Own { fd: fd.as_fd(), path },
                DestinationPlace::Foreign(place) => OutputDir::Foreign(place),
            }),
            Self::Stdout | Self::Device(_) => None,
        }
    }

    /// Returns the user ID with which root accesses the directory, if it is another one.
    pub(super) fn foreign_user(&self) -> Option<u32> {
        match self {
            Self::File(FileDestination { place: DestinationPlace::Foreign(place), .. }) => Some(place.user()),
            _ => None,
        }
    }
}

/// Options that determine the destination of a dump.
pub(super) struct DestinationRequest<'a> {
    /// Value of `--output`.
    pub(super) output: Option<&'a Path>,
    pub(super) compression: Option<Compression>,
    pub(super) is_forced: bool,
    /// `Ok` if a dump can be written to stdout, or else the reason why not.
    pub(super) stdout: Result<(), &'static str>,
}

impl Destination {
    /// Returns the destination of a JVM's dump. Fails if it cannot be written, or exists and may not be replaced.
    pub(super) fn new(
        request: &DestinationRequest<'_>,
        row: &JvmRow,
        machine: &mut dyn Machine,
    ) -> anyhow::Result<Self> {
        let name;
        let path = match request.output {
            None => {
                name = default_name(row, request.compression);
                Path::new(&name)
            }
            Some(path) if path.as_os_str() == "-" => match request.stdout {
                Ok(()) => return Ok(Self::Stdout),
                Err(why) => bail!(why),
            },
            Some(path) => path,
        };
        let dir = directory_of(path);
        let written = || format!("cannot write {}", path.display());
        if rustix::process::geteuid().is_root() {
            let prefix = trusted_path::resolve(dir).with_context(written)?;
            if let Some(owner) = prefix.owner {
                let real: PathBuf = prefix.path.join(prefix.rest).components().collect();
                let dir = ForeignDir { path: &real, owner };
                let place = machine.output_place(row.pid, dir, caller())?;
                return foreign(path, place, request.is_forced);
            }
        }
        own(path, dir, request.is_forced)
    }
}

/// Returns the user on whose behalf root works: the caller of `sudo`.
fn caller() -> Option<Identity> {
    let number = |name: &str| env::var(name).ok()?.parse().ok();
    Some(Identity { user: number("SUDO_UID")?, group: number("SUDO_GID")? })
}

/// Returns a destination in a directory that others may change.
fn foreign(path: &Path, place: UserOutputDir, is_forced: bool) -> anyhow::Result<Destination> {
    check_name(path, &place, is_forced)?;
    let place = DestinationPlace::Foreign(place);
    Ok(Destination::File(FileDestination { path: path.to_owned(), is_forced, place }))
}

/// Returns the file name of `path`. Fails if a file of that name exists and may not be replaced.
fn check_name<'p>(path: &'p Path, place: &UserOutputDir, is_forced: bool) -> anyhow::Result<&'p str> {
    let name = name_of(path)?;
    let there = place.file_bytes(name).with_context(|| format!("cannot write {}", path.display()))?;
    if there.is_some() && !is_forced {
        return Err(Error::Exists { path: path.to_owned() }.into());
    }
    Ok(name)
}

fn name_of(path: &Path) -> anyhow::Result<&str> {
    let name = path.file_name().and_then(|name| name.to_str());
    name.with_context(|| format!("cannot write {}: not a file name in UTF-8", path.display()))
}

/// Returns a destination in a directory of this user.
fn own(path: &Path, dir: &Path, is_forced: bool) -> anyhow::Result<Destination> {
    let written = || format!("cannot write {}", path.display());
    // `/dev/stdout` is a link, to a link of the kernel.
    let is_link =
        fs::symlink_metadata(path).is_ok_and(|there| there.is_symlink()) && !path.starts_with("/dev");
    match fs::metadata(path) {
        _ if is_link => bail!("cannot write {}: it is a symbolic link; use another name", path.display()),
        Ok(there) if there.is_dir() => {
            bail!("cannot write {}: it is a directory; name a file in it", path.display())
        }
        Ok(there) if !there.is_file() => {
            let own = rustix::process::geteuid().as_raw();
            ensure!(
                there.file_type().is_char_device() || [0, own].contains(&there.uid()),
                "cannot write {}: it is a FIFO or device owned by user {}",
                path.display(),
                there.uid()
            );
            return Ok(Destination::Device(path.to_owned()));
        }
        Ok(_) if !is_forced => return Err(Error::Exists { path: path.to_owned() }.into()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            ensure!(
                dir.is_dir(),
                "cannot write {}: the directory {} does not exist",
                path.display(),
                dir.display()
            );
            let needed = Access::WRITE_OK | Access::EXEC_OK;
            rustix::fs::accessat(CWD, dir, needed, AtFlags::EACCESS).with_context(written)?;
        }
        Err(error) => return Err(error).with_context(written),
    }
    let fd = trusted_path::open_for_writing(dir).with_context(written)?;
    let place = DestinationPlace::Own(fd, fs::canonicalize(dir).with_context(written)?);
    Ok(Destination::File(FileDestination { path: path.to_owned(), is_forced, place }))
}

/// Returns the default name of a dump: `Main-4711-20261126T014600Z.hprof`.
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

/// Calls `write` with a writer for the destination, which errors name.
pub(super) fn written<T>(
    destination: &Destination,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<T, Error>,
) -> anyhow::Result<T> {
    match destination {
        Destination::File(file) => {
            let mut out = file.create("")?;
            let written = write(&mut out).map_err(|error| error_at(&file.path, error))?;
            out.commit()?;
            Ok(written)
        }
        Destination::Device(path) => {
            let device = File::options().write(true).open(path);
            let mut device = device.with_context(|| format!("cannot write {}", path.display()))?;
            Ok(write(&mut device).map_err(|error| error_at(path, error))?)
        }
        Destination::Stdout => {
            Ok(write(&mut io::stdout()).map_err(|error| error_at(Path::new("stdout"), error))?)
        }
    }
}

/// Names the destination in an error about it.
fn error_at(path: &Path, error: Error) -> Error {
    match error {
        Error::Output { source } => {
            Error::File { what: "cannot write".into(), path: path.to_owned(), source }
        }
        error => error,
    }
}

/// A file that only its owner may read, with a temporary name until it is complete.
pub(super) enum PrivateFile {
    Own(OutFile),
    Foreign(UserFile, PathBuf),
}

impl FileDestination {
    /// Returns the file name and whether another file may be replaced, if the file is renamed as another user.
    pub(super) fn foreign_name(&self) -> Option<(&str, bool)> {
        match &self.place {
            DestinationPlace::Own(..) => None,
            DestinationPlace::Foreign(_) => Some((name_of(&self.path).ok()?, self.is_forced)),
        }
    }

    /// Creates the file; with a suffix, the file of that name next to the dump.
    pub(super) fn create(&self, suffix: &str) -> anyhow::Result<PrivateFile> {
        let mut path = self.path.clone().into_os_string();
        path.push(suffix);
        let path = PathBuf::from(path);
        match &self.place {
            DestinationPlace::Own(..) => {
                let existing = OverwritePolicy::new(self.is_forced);
                Ok(PrivateFile::Own(OutFile::create_private(&path, &[], existing)?))
            }
            DestinationPlace::Foreign(place) => {
                let name = check_name(&path, place, self.is_forced)?;
                let file = place.create(name, self.is_forced);
                let file = file.with_context(|| format!("cannot write {}", path.display()))?;
                Ok(PrivateFile::Foreign(file, path))
            }
        }
    }

    /// Finds the file with the class names of the dump that will be replaced.
    pub(super) fn old_names(&self) -> anyhow::Result<ClassMapping> {
        let existing = OverwritePolicy::new(self.is_forced);
        match &self.place {
            DestinationPlace::Own(..) => ClassMapping::find_old(&self.path, existing),
            DestinationPlace::Foreign(_) => Ok(ClassMapping::None),
        }
    }

    /// Moves a file that a JVM wrote in the same directory to this name, as a link or a copy.
    pub(super) fn link(&self, mut file: File) -> Result<(), Error> {
        let fail = |source| Error::File { what: "cannot write".into(), path: self.path.clone(), source };
        let own = Identity::own();
        let before = file.metadata().map_err(fail)?;
        if before.uid() != own.user {
            fchown(&file, Some(own.user), Some(own.group)).map_err(fail)?;
        }
        file.set_permissions(Permissions::from_mode(0o600)).map_err(fail)?;
        // Checked last: from now on the JVM's user cannot create another link to it.
        if file.metadata().map_err(fail)?.nlink() != 1 {
            fchown(&file, Some(before.uid()), Some(before.gid())).map_err(fail)?;
            return Err(fail(io::Error::other("the JVM's user linked the dump under another name")));
        }
        let existing = OverwritePolicy::new(self.is_forced);
        let failed = |error: anyhow::Error| fail(io::Error::other(format!("{error:#}")));
        match OutFile::link_private(&self.path, &file, existing) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(Error::Exists { path: self.path.clone() });
            }
            Err(_) => {}
        }
        // Some file systems do not support links.
        let mut out = OutFile::create_private(&self.path, &[], existing).map_err(failed)?;
        let copied = io::copy(&mut Read::by_ref(&mut file).take(before.len()), &mut out).map_err(fail)?;
        if copied != before.len() {
            return Err(fail(io::ErrorKind::UnexpectedEof.into()));
        }
        out.commit().map_err(failed)
    }

    /// Returns the length of the file in bytes.
    pub(super) fn bytes(&self) -> Option<u64> {
        match &self.place {
            DestinationPlace::Own(..) => fs::metadata(&self.path).ok().map(|file| file.len()),
            DestinationPlace::Foreign(place) => place.file_bytes(name_of(&self.path).ok()?).ok()?,
        }
    }
}

impl PrivateFile {
    /// Gives the file its final name.
    pub(super) fn commit(self) -> anyhow::Result<()> {
        match self {
            Self::Own(file) => file.commit(),
            Self::Foreign(file, path) => match file.commit() {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    Err(Error::Exists { path }.into())
                }
                committed => committed.with_context(|| format!("cannot write {}", path.display())),
            },
        }
    }
}

impl Write for PrivateFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Own(file) => file.write(bytes),
            Self::Foreign(file, _) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Own(file) => file.flush(),
            Self::Foreign(file, _) => file.flush(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn put(path: &Path, is_forced: bool) -> anyhow::Result<()> {
        written(&own(path, directory_of(path), is_forced)?, |out| {
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
        assert!(format!("{error:#}").contains("already exists"), "{error:#}");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let error = put(&link, true).unwrap_err();
        assert!(format!("{error:#}").contains("it is a symbolic link"), "{error:#}");
        fs::remove_file(&link).unwrap();
        put(&path, true).unwrap();
        assert_eq!((fs::read(&path).unwrap(), fs::read(&guessed).unwrap()), (b"new".into(), b"other".into()));
        put(&dir.path().join("b.hprof"), false).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
    }

    #[test]
    fn errors_name_the_destination() {
        let error = written(&Destination::Device("/dev/full".into()), |out| {
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
