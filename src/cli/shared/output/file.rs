//! Answers written to a file: it appears complete or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

use hprof_index::storage::temporary_files::Temporary;

/// A file that is being written. If dropped without [`OutFile::commit`], it is removed.
pub(crate) struct OutFile {
    path: PathBuf,
    to: To,
    existing: Existing,
}

/// Treatment of an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existing {
    Replace,
    Keep,
}

enum To {
    /// Temporary file beside the file that it will replace.
    Temporary(Temporary),
    /// File without a name: nothing is left of it even if this process is killed.
    #[cfg(target_os = "linux")]
    Nameless(File),
    /// A device or pipe, which cannot be renamed.
    Directly(File),
}

impl To {
    fn out(&mut self) -> &mut dyn Write {
        match self {
            Self::Temporary(file) => file,
            #[cfg(target_os = "linux")]
            Self::Nameless(file) => file,
            Self::Directly(file) => file,
        }
    }
}

impl OutFile {
    /// Starts writing the file `path`. An existing file is kept until [`OutFile::commit`]; input files, `inputs`, are
    /// never replaced. The new file is readable only for users who may read the inputs.
    pub(crate) fn create(path: &Path, inputs: &[&Path]) -> anyhow::Result<Self> {
        let fail = || format!("cannot write {}", path.display());
        // A symbolic link is kept; its target is replaced.
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        anyhow::ensure!(
            !is_one_of(&real, inputs),
            "cannot write {}: it is {}; use another name",
            path.display(),
            if inputs.len() > 1 { "an input file" } else { "the input file" }
        );
        let there = fs::metadata(&real).ok();
        if there.as_ref().is_some_and(|there| there.is_dir()) {
            anyhow::bail!("cannot write {}: it is a directory; name a file in it", path.display());
        }
        if there.as_ref().is_some_and(|there| !there.is_file()) {
            let file = File::options().write(true).open(&real).with_context(fail)?;
            return Ok(Self { path: real, to: To::Directly(file), existing: Existing::Replace });
        }
        let dir = directory_of(&real);
        #[cfg(unix)]
        let mode = {
            let there = there.map_or(0o666, |there| mode_of_copy(&there, group_in(dir)));
            there & mode_of_files(inputs, dir)
        };
        #[cfg(not(unix))]
        let mode = 0o666;
        let file = temporary(path, dir, mode)?;
        Ok(Self { path: real, to: To::Temporary(file), existing: Existing::Replace })
    }

    /// Starts writing the file `path`, which only its owner may read: it contains a heap. Symbolic links are not
    /// followed, input files are never replaced, and other existing files only if requested.
    pub(crate) fn create_private(path: &Path, inputs: &[&Path], existing: Existing) -> anyhow::Result<Self> {
        let refused = |why: &str| anyhow::anyhow!("cannot write {}: {why}", path.display());
        match fs::symlink_metadata(path) {
            Ok(there) if there.is_symlink() => {
                return Err(refused("it is a symbolic link; use another name"));
            }
            Ok(there) if there.is_dir() => return Err(refused("it is a directory; name a file in it")),
            Ok(there) if !there.is_file() => return Err(refused("it is not a regular file")),
            Ok(_) if is_one_of(path, inputs) => {
                return Err(refused("it is an input file; use another name"));
            }
            Ok(_) if existing == Existing::Keep => {
                return Err(refused("it exists; use another name, or --force to replace it"));
            }
            _ => {}
        }
        let dir = directory_of(path);
        #[cfg(target_os = "linux")]
        if let Some(file) = nameless::create(dir) {
            return Ok(Self { path: path.to_owned(), to: To::Nameless(file), existing });
        }
        let file = temporary(path, dir, 0o600)?;
        Ok(Self { path: path.to_owned(), to: To::Temporary(file), existing })
    }

    /// Gives the name `path` to a complete private file of the same file system.
    ///
    /// # Errors
    ///
    /// Those of the system: some file systems have no links.
    #[cfg(target_os = "linux")]
    pub(crate) fn link_private(path: &Path, file: &File, existing: Existing) -> io::Result<()> {
        nameless::publish(file, path, existing)
    }

    /// Returns the final path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a path by which what was written can be read before it has its name.
    pub(crate) fn unnamed_path(&self) -> PathBuf {
        match &self.to {
            To::Temporary(file) => file.path().to_owned(),
            #[cfg(target_os = "linux")]
            To::Nameless(file) => nameless::path_of(file),
            To::Directly(_) => self.path.clone(),
        }
    }

    /// Renames the file to its final name.
    pub(crate) fn commit(mut self) -> anyhow::Result<()> {
        let fail = || format!("cannot write {}", self.path.display());
        self.to.out().flush().with_context(fail)?;
        let named = match (self.to, self.existing) {
            (To::Directly(_), _) => Ok(()),
            (To::Temporary(file), Existing::Replace) => file.publish(&self.path),
            (To::Temporary(file), Existing::Keep) => file.publish_new(&self.path),
            #[cfg(target_os = "linux")]
            (To::Nameless(file), existing) => nameless::publish(&file, &self.path, existing),
        };
        named.with_context(fail)
    }
}

/// Files that get their name when they are complete.
#[cfg(target_os = "linux")]
mod nameless {
    use std::os::fd::AsRawFd;

    use rustix::fs::{AtFlags, CWD, Mode, OFlags};
    use rustix::io::Errno;

    use super::{Existing, File, PREFIX, Path, PathBuf, SUFFIX, Temporary, directory_of, io};

    /// Creates one that only its owner may read, unless the file system requires a name.
    pub(super) fn create(dir: &Path) -> Option<File> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        Some(File::from(rustix::fs::open(dir, flags, Mode::RUSR | Mode::WUSR).ok()?))
    }

    /// Returns a path to it for this process.
    pub(super) fn path_of(file: &File) -> PathBuf {
        format!("/proc/self/fd/{}", file.as_raw_fd()).into()
    }

    /// Gives it its name.
    pub(super) fn publish(file: &File, path: &Path, existing: Existing) -> io::Result<()> {
        let own = path_of(file);
        let link = |path: &Path| rustix::fs::linkat(CWD, &own, CWD, path, AtFlags::SYMLINK_FOLLOW);
        match link(path) {
            // A file that is replaced is so at once.
            Err(Errno::EXIST) if existing == Existing::Replace => {
                // Others remove what is not locked.
                let _ = file.lock();
                let mut builder = tempfile::Builder::new();
                builder.prefix(PREFIX).suffix(SUFFIX);
                let linked = Temporary::of(&builder, directory_of(path), |short| {
                    link(short)?;
                    file.try_clone()
                });
                linked?.publish(path)
            }
            linked => Ok(linked?),
        }
    }
}

/// Returns `true` if `path` is one of these files.
fn is_one_of(path: &Path, inputs: &[&Path]) -> bool {
    let Ok(real) = fs::canonicalize(path) else { return false };
    inputs.iter().any(|input| fs::canonicalize(input).is_ok_and(|input| input == real))
}

/// Returns the directory that contains `path`.
pub(crate) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates the temporary file that becomes `path`, in its directory.
fn temporary(path: &Path, dir: &Path, mode: u32) -> anyhow::Result<Temporary> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    #[cfg(not(unix))]
    let _ = mode;
    // The system's message names a temporary file, which the user does not know.
    create(&builder, dir)
        .map_err(|error| anyhow::anyhow!("cannot write {}: {}", path.display(), why(&error, dir)))
}

/// Returns the maximum permissions of a file in the directory `dir` that is made from these inputs: JVMs write dumps
/// that only their own user may read, and a file made from one contains its secrets. Missing inputs allow everything.
pub(crate) fn mode_of_files(inputs: &[&Path], dir: &Path) -> u32 {
    #[cfg(unix)]
    {
        let there = inputs.iter().filter_map(|input| fs::metadata(input).ok()).filter(fs::Metadata::is_file);
        let group = group_in(dir);
        there.fold(0o666, |mode, input| {
            let input = mode_of_copy(&input, group);
            let of = |read: u32, all: u32| if input & read == 0 { 0 } else { all };
            mode & (0o600 | of(0o040, 0o060) | of(0o004, 0o006))
        })
    }
    #[cfg(not(unix))]
    {
        let _ = (inputs, dir);
        0o666
    }
}

/// Returns the group of files that this process creates in a directory, if it can be determined.
#[cfg(unix)]
fn group_in(dir: &Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    const SETGID: u32 = 0o2000;
    // Systems other than Linux always give a file the group of its directory.
    let is_inherited = |dir: &fs::Metadata| dir.mode() & SETGID != 0 || !cfg!(target_os = "linux");
    match fs::metadata(dir) {
        Ok(dir) if is_inherited(&dir) => Some(dir.gid()),
        Ok(_) => Some(rustix::process::getegid().as_raw()),
        Err(_) => None,
    }
}

/// Returns the mode of a file for a copy with another group: the members of that group are "others" to the original,
/// so its group bits do not apply to them.
#[cfg(unix)]
fn mode_of_copy(file: &fs::Metadata, group: Option<u32>) -> u32 {
    use std::os::unix::fs::MetadataExt;
    let mode = file.mode();
    if group == Some(file.gid()) { mode } else { (mode & !0o070) | (mode & 0o007) << 3 }
}

/// Explains why no file can be created in `dir`, with advice.
fn why(error: &io::Error, dir: &Path) -> String {
    let place = dir.display();
    match error.kind() {
        io::ErrorKind::NotFound => format!("there is no directory {place}; create it, or name another file"),
        io::ErrorKind::NotADirectory => format!("{place} is not a directory; name another file"),
        io::ErrorKind::PermissionDenied => {
            format!("no permission to create files in the directory {place}; name a file elsewhere")
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            format!("the directory {place} is on a read-only file system; name a file elsewhere")
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            format!("no space left in the directory {place}; free some, or name a file elsewhere")
        }
        _ => format!("cannot create a file in the directory {place}: {error}"),
    }
}

/// Prefix of temporary files.
const PREFIX: &str = ".hprof-cli-";
const SUFFIX: &str = ".part";

/// Creates a temporary file in `dir`, and removes those of killed processes.
///
/// Each is locked by the process that writes it while that process lives.
fn create(builder: &tempfile::Builder<'_, '_>, dir: &Path) -> io::Result<Temporary> {
    let mut file = Temporary::create(builder, dir)?;
    // Another process may remove it as a leftover before it is locked. Without lock support (some network mounts)
    // nobody can, and nothing is removed.
    while file.as_file().lock().is_ok() && !file.path().exists() {
        file = Temporary::create(builder, dir)?;
    }
    sweep(dir);
    Ok(file)
}

/// Removes temporary files that no process has locked, as far as possible.
fn sweep(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        if is_ours
            && entry.file_type().is_ok_and(|kind| kind.is_file())
            && let Ok(file) = File::options().write(true).open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

impl Write for OutFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.out().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.to.out().flush()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const INPUT: &str = "no such dump";

    #[test]
    fn what_is_read_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("heap.hprof");
        fs::write(&path, "dump").unwrap();
        let roundabout = dir.path().join("./heap.hprof");
        assert!(OutFile::create(&path, &[&roundabout]).is_err());
        assert!(OutFile::create(&roundabout, &[&path]).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"dump");
        assert!(OutFile::create(&dir.path().join("heap.txt"), &[&path]).is_ok());
    }

    #[test]
    fn the_file_appears_with_commit_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.txt");
        fs::write(&path, "old").unwrap();
        let mut file = OutFile::create(&path, &[INPUT.as_ref()]).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        let mut file = OutFile::create(&path, &[INPUT.as_ref()]).unwrap();
        file.write_all(b"whole").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        file.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_another_writes_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let there = |name: &str| dir.path().join(name).exists();
        let of_another = OutFile::create(&dir.path().join("other.txt"), &[INPUT.as_ref()]).unwrap();
        let mut names = vec![".hprof-cli-Abc123.part", ".hprof-cli-mine", "hprof-cli-Abc123.part"];
        for name in &names {
            fs::write(dir.path().join(name), "half").unwrap();
        }
        OutFile::create(&dir.path().join("out.txt"), &[INPUT.as_ref()]).unwrap().commit().unwrap();
        assert!(!there(names.remove(0)) && there("out.txt"));
        assert!(names.iter().all(|name| there(name)));
        of_another.commit().unwrap();
        assert!(there("other.txt"));
    }

    #[test]
    fn a_directory_and_a_missing_directory_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        assert!(OutFile::create(dir.path(), &[INPUT.as_ref()]).is_err());
        assert!(OutFile::create(&dir.path().join("no/out.txt"), &[INPUT.as_ref()]).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link_and_permissions_stay() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let mut file = OutFile::create(&link, &[INPUT.as_ref()]).unwrap();
        file.write_all(b"new").unwrap();
        file.commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[cfg(unix)]
    #[test]
    fn what_is_made_of_a_private_file_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let (dump, other) = (dir.path().join("a.hprof"), dir.path().join("b.hprof"));
        fs::write(&dump, "a").unwrap();
        fs::write(&other, "b").unwrap();
        fs::set_permissions(&other, fs::Permissions::from_mode(0o644)).unwrap();
        for (mode, expected) in [(0o600, 0o600), (0o640, 0o640), (0o644, 0o644), (0o400, 0o600)] {
            fs::set_permissions(&dump, fs::Permissions::from_mode(mode)).unwrap();
            let out = dir.path().join("out.html");
            OutFile::create(&out, &[&other, &dump]).unwrap().commit().unwrap();
            assert_eq!(fs::metadata(&out).unwrap().permissions().mode() & 0o777, expected, "{mode:o}");
            // Also applies to an existing file.
            fs::set_permissions(&out, fs::Permissions::from_mode(0o644)).unwrap();
            OutFile::create(&out, &[&dump]).unwrap().commit().unwrap();
            assert_eq!(fs::metadata(&out).unwrap().permissions().mode() & 0o777, expected, "{mode:o}");
            fs::remove_file(&out).unwrap();
        }
        assert_eq!(mode_of_files(&[INPUT.as_ref()], dir.path()), 0o666);
    }

    #[cfg(unix)]
    #[test]
    fn another_group_gets_what_others_may() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
        let dir = tempfile::tempdir().unwrap();
        let (dump, out) = (dir.path().join("a.hprof"), dir.path().join("out.html"));
        fs::write(&dump, "a").unwrap();
        let (own, other) = (fs::metadata(&dump).unwrap().gid(), 4);
        if own == other || chown(&dump, None, Some(other)).is_err() {
            #[allow(clippy::print_stderr)]
            {
                eprintln!("NOT RUN: no permission to give a file to another group");
            }
            return;
        }
        let made = |mode| {
            fs::set_permissions(&dump, fs::Permissions::from_mode(mode)).unwrap();
            OutFile::create(&out, &[&dump]).unwrap().commit().unwrap();
            let made = fs::metadata(&out).unwrap();
            fs::remove_file(&out).unwrap();
            (made.gid(), made.mode() & 0o777)
        };
        assert_eq!(made(0o640), (own, 0o600));
        assert_eq!(made(0o660), (own, 0o600));
        // The members of its group are others.
        assert_eq!(made(0o644), (own, 0o644));
        // The replaced file's group does not matter.
        fs::write(&out, "old").unwrap();
        fs::set_permissions(&out, fs::Permissions::from_mode(0o640)).unwrap();
        chown(&out, None, Some(other)).unwrap();
        assert_eq!(made(0o644), (own, 0o600));
        // A directory that passes its group on to new files.
        chown(dir.path(), None, Some(other)).unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o2755)).unwrap();
        assert_eq!(made(0o640), (other, 0o640));
        chown(&dump, None, Some(own)).unwrap();
        assert_eq!(made(0o640), (other, 0o600));
    }
}
