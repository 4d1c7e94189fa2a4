//! Output files: a file gets its name when it is complete, or not at all.
//!
//! The directory of the file is opened once, and all operations use that open directory: whoever may rename it, or replace it
//! with a link, cannot make this process write, rename or remove files in another directory.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;

#[cfg(unix)]
use hprof_index::storage::open_dir::FileId;
#[cfg(target_os = "linux")]
use hprof_index::storage::open_dir::path_of;
use hprof_index::storage::open_dir::{Entry, EntryKind, OpenDir, parent_of};
use hprof_index::storage::temporary_files::{Temporary, remove_abandoned_files};

/// A file that is being written. If dropped without [`OutFile::commit`], it is removed.
pub(crate) struct OutFile {
    place: FileTarget,
    to: To,
    existing: OverwritePolicy,
}

/// Handling of an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OverwritePolicy {
    Replace,
    Keep,
}

impl OverwritePolicy {
    /// Returns the handling according to `--force`.
    pub(crate) fn new(is_forced: bool) -> Self {
        if is_forced { Self::Replace } else { Self::Keep }
    }
}

enum To {
    /// Temporary file in the directory of the file that it will replace.
    Temporary(Temporary),
    /// File without a name: nothing is left of it even if this process is killed.
    #[cfg(target_os = "linux")]
    Nameless(File),
    /// A device or pipe, which cannot be renamed.
    Directly(File),
}

impl To {
    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Temporary(file) => file,
            #[cfg(target_os = "linux")]
            Self::Nameless(file) => file,
            Self::Directly(file) => file,
        }
    }
}

/// Maximum number of links that are followed to a file, as in Linux.
const MAX_LINKS: usize = 40;

/// Maximum number of attempts to lock a temporary file.
const ATTEMPTS: u32 = 10;

/// A file name in an open directory.
struct FileTarget {
    dir: Arc<OpenDir>,
    name: OsString,
    /// Path of the file, for messages.
    path: PathBuf,
}

impl FileTarget {
    /// Opens the directory of `path`. `asked` is the path that the user knows.
    fn new(path: PathBuf, asked: &Path) -> anyhow::Result<Self> {
        let Some(name) = path.file_name().map(OsStr::to_owned) else {
            anyhow::bail!("cannot write {}: it is a directory; name a file in it", asked.display());
        };
        let dir = directory_of(&path);
        // The system's message would not name the directory.
        let dir = OpenDir::open(dir).map_err(|error| {
            anyhow::anyhow!("cannot write {}: {}", asked.display(), explain_failure(&error, dir))
        })?;
        Ok(Self { dir: Arc::new(dir), name, path })
    }

    /// Returns the existing directory entry of this name, if any.
    fn existing(&self) -> anyhow::Result<Option<Entry>> {
        match self.dir.entry_of(&self.name) {
            Ok(entry) => Ok(Some(entry)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot write {}", self.path.display())),
        }
    }
}

impl OutFile {
    /// Starts writing the file `path`. An existing file is kept until [`OutFile::commit`]; input files, `inputs`, are
    /// never replaced. The new file is readable only by users who can read the inputs.
    pub(crate) fn create(path: &Path, inputs: &[&Path]) -> anyhow::Result<Self> {
        let fail = || format!("cannot write {}", path.display());
        let mut place = FileTarget::new(path.to_owned(), path)?;
        let mut there = place.existing()?;
        // A symbolic link is kept; its target is replaced.
        let mut links = 0;
        while let Some(link) = there.filter(|there| there.kind == EntryKind::Link) {
            links += 1;
            anyhow::ensure!(
                links <= MAX_LINKS,
                "cannot write {}: too many levels of symbolic links",
                path.display()
            );
            refuse_link_of_another(&link, &place.path, path)?;
            let target = place.dir.link_target(&place.name).with_context(fail)?;
            // A pipe or socket of this process, which has no path: `/dev/stdout`.
            if place.dir.is_of_processes() && target.is_relative() {
                let to = To::Directly(place.dir.write_device(&place.name, true).with_context(fail)?);
                return Ok(Self { place, to, existing: OverwritePolicy::Replace });
            }
            place = FileTarget::new(directory_of(&place.path).join(target), path)?;
            there = place.existing()?;
        }
        anyhow::ensure!(
            !there.is_some_and(|there| is_one_of(&place.path, &there, inputs)),
            "cannot write {}: it is {}; use another name",
            path.display(),
            if inputs.len() > 1 { "an input file" } else { "the input file" }
        );
        match there.map(|there| there.kind) {
            Some(EntryKind::Directory) => {
                anyhow::bail!("cannot write {}: it is a directory; name a file in it", path.display());
            }
            Some(EntryKind::Other | EntryKind::Link) => {
                let to = To::Directly(place.dir.write_device(&place.name, false).with_context(fail)?);
                return Ok(Self { place, to, existing: OverwritePolicy::Replace });
            }
            Some(EntryKind::File) | None => {}
        }
        let mode = there.map_or(0o666, |there| mode_of_copy(&there, group_in(&place.dir)));
        let file = temporary(path, &place.dir, mode & mode_of_files(inputs, &place.dir))?;
        Ok(Self { place, to: To::Temporary(file), existing: OverwritePolicy::Replace })
    }

    /// Starts writing the file `path`, which only its owner may read: it contains a heap. Symbolic links are not
    /// followed, input files are never replaced, and other existing files only if requested.
    pub(crate) fn create_private(
        path: &Path,
        inputs: &[&Path],
        existing: OverwritePolicy,
    ) -> anyhow::Result<Self> {
        let refused = |why: &str| anyhow::anyhow!("cannot write {}: {why}", path.display());
        let place = FileTarget::new(path.to_owned(), path)?;
        if let Some(there) = place.existing()? {
            match there.kind {
                EntryKind::Link => return Err(refused("it is a symbolic link; use another name")),
                EntryKind::Directory => return Err(refused("it is a directory; name a file in it")),
                EntryKind::Other => return Err(refused("it is not a regular file")),
                EntryKind::File if is_one_of(path, &there, inputs) => {
                    return Err(refused("it is an input file; use another name"));
                }
                EntryKind::File if existing == OverwritePolicy::Keep => {
                    return Err(refused("it already exists; use another name, or --force to replace it"));
                }
                EntryKind::File => {}
            }
        }
        #[cfg(target_os = "linux")]
        if let Some(file) = place.dir.create_linkable() {
            return Ok(Self { place, to: To::Nameless(file), existing });
        }
        let file = temporary(path, &place.dir, 0o600)?;
        Ok(Self { place, to: To::Temporary(file), existing })
    }

    /// Links a complete private file to the name `path` in the same file system.
    ///
    /// # Errors
    ///
    /// Errors of the system: some file systems do not support links.
    #[cfg(target_os = "linux")]
    pub(crate) fn link_private(path: &Path, file: &File, existing: OverwritePolicy) -> io::Result<()> {
        let place = FileTarget::new(path.to_owned(), path).map_err(io::Error::other)?;
        publish_nameless(file, &place.dir, &place.name, existing)
    }

    /// Returns the final path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.place.path
    }

    /// Returns a path at which the written data can be read before the file has its final name.
    pub(crate) fn unnamed_path(&self) -> PathBuf {
        match &self.to {
            #[cfg(target_os = "linux")]
            To::Temporary(file) => path_of(file.as_file()),
            #[cfg(not(target_os = "linux"))]
            To::Temporary(file) => file.path(),
            #[cfg(target_os = "linux")]
            To::Nameless(file) => path_of(file),
            To::Directly(_) => self.place.path.clone(),
        }
    }

    /// Renames the file to its final name.
    pub(crate) fn commit(mut self) -> anyhow::Result<()> {
        let FileTarget { dir, name, path } = &self.place;
        let fail = || format!("cannot write {}", path.display());
        self.to.writer().flush().with_context(fail)?;
        let named = match (self.to, self.existing) {
            (To::Directly(_), _) => Ok(()),
            (To::Temporary(file), OverwritePolicy::Replace) => file.publish(name),
            (To::Temporary(file), OverwritePolicy::Keep) => file.publish_new(name),
            #[cfg(target_os = "linux")]
            (To::Nameless(file), existing) => publish_nameless(&file, dir, name, existing),
        };
        #[cfg(not(target_os = "linux"))]
        let _ = dir;
        named.with_context(fail)
    }
}

/// A file to remove when another one is complete. It is removed only from the directory where it was found, and if it is the
/// same file.
pub(crate) struct OldFile {
    place: FileTarget,
    there: Entry,
}

impl OldFile {
    /// Finds the file at `path`, if there is one.
    pub(crate) fn find(path: &Path) -> Option<Self> {
        let place = FileTarget::new(path.to_owned(), path).ok()?;
        let there = place.existing().ok().flatten()?;
        Some(Self { place, there })
    }

    /// Removes the file.
    pub(crate) fn remove(self) -> anyhow::Result<()> {
        let removed = self.place.dir.remove_made(&self.place.name, self.there.id);
        removed.with_context(|| format!("cannot remove {}", self.place.path.display()))
    }
}

/// Gives a nameless file its name.
#[cfg(target_os = "linux")]
fn publish_nameless(
    file: &File,
    dir: &Arc<OpenDir>,
    name: &OsStr,
    existing: OverwritePolicy,
) -> io::Result<()> {
    match dir.link(file, name) {
        // An existing file is replaced atomically.
        Err(error)
            if error.kind() == io::ErrorKind::AlreadyExists && existing == OverwritePolicy::Replace =>
        {
            // Other processes remove files that are not locked.
            let _ = file.try_lock();
            Temporary::link(dir, PREFIX, SUFFIX, file)?.publish(name)
        }
        linked => linked,
    }
}

/// Returns an error for a link that another user may have made for root, who may write everywhere. Other users may write only
/// where the system permits it.
fn refuse_link_of_another(link: &Entry, path: &Path, asked: &Path) -> anyhow::Result<()> {
    #[cfg(unix)]
    anyhow::ensure!(
        link.is_of_this_user() || !rustix::process::geteuid().is_root(),
        "cannot write {}: {} is a symbolic link of another user (UID {}); name the file itself",
        asked.display(),
        path.display(),
        link.owner
    );
    #[cfg(not(unix))]
    let _ = (link, path, asked);
    Ok(())
}

/// Returns whether the file `there` at `path` is one of the `inputs`.
fn is_one_of(path: &Path, there: &Entry, inputs: &[&Path]) -> bool {
    #[cfg(unix)]
    {
        let _ = path;
        inputs.iter().any(|input| FileId::of_path(input).is_ok_and(|id| id == there.id))
    }
    #[cfg(not(unix))]
    {
        let _ = there;
        let Ok(real) = fs::canonicalize(path) else { return false };
        inputs.iter().any(|input| fs::canonicalize(input).is_ok_and(|input| input == real))
    }
}

/// Returns the directory that contains `path`.
pub(crate) fn directory_of(path: &Path) -> &Path {
    parent_of(path)
}

/// Creates the temporary file that becomes `path`, in the same directory, and removes temporary files of killed processes.
///
/// Each temporary file is locked by the process that writes it, as long as the process lives.
fn temporary(path: &Path, dir: &Arc<OpenDir>, mode: u32) -> anyhow::Result<Temporary> {
    let create = || Temporary::create(dir, PREFIX, SUFFIX, mode);
    // The system's message names a temporary file, which the user does not know.
    let explained = |error: io::Error| {
        anyhow::anyhow!("cannot write {}: {}", path.display(), explain_failure(&error, directory_of(path)))
    };
    let mut file = create().map_err(explained)?;
    // Another process may remove it as a leftover before it is locked. Without lock support (some network mounts)
    // nobody can, and nothing is removed.
    for _ in 0..ATTEMPTS {
        match file.as_file().try_lock() {
            Ok(()) if file.is_there() => break,
            // Whoever may read the directory could have locked it.
            Ok(()) | Err(TryLockError::WouldBlock) => file = create().map_err(explained)?,
            Err(TryLockError::Error(_)) => break,
        }
    }
    remove_abandoned_files(dir, PREFIX, SUFFIX);
    Ok(file)
}

/// Returns the maximum permissions of a file in the directory `dir` that is derived from these inputs: JVMs write dumps
/// that only their own user may read, and a file derived from a dump contains its secrets. Missing inputs allow everything.
pub(crate) fn mode_of_files(inputs: &[&Path], dir: &OpenDir) -> u32 {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let there = inputs.iter().filter_map(|input| fs::metadata(input).ok()).filter(fs::Metadata::is_file);
        let group = group_in(dir);
        there.fold(0o666, |mode, input| {
            let input = mode_in_group(input.mode(), input.gid(), group);
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
fn group_in(dir: &OpenDir) -> Option<u32> {
    #[cfg(unix)]
    {
        const SETGID: u32 = 0o2000;
        // Systems other than Linux always give a file the group of its directory.
        let is_inherited = |dir: &Entry| dir.mode & SETGID != 0 || !cfg!(target_os = "linux");
        match dir.entry() {
            Ok(dir) if is_inherited(&dir) => Some(dir.group),
            Ok(_) => Some(rustix::process::getegid().as_raw()),
            Err(_) => None,
        }
    }
    #[cfg(not(unix))]
    {
        let _ = dir;
        None
    }
}

/// Returns the permissions of a file that replaces `file`.
fn mode_of_copy(file: &Entry, group: Option<u32>) -> u32 {
    if cfg!(unix) { mode_in_group(file.mode, file.group, group) } else { 0o666 }
}

/// Returns the permissions for a copy of a file that has another group: the members of that group are "others" to the
/// original, so its group bits do not apply to them.
fn mode_in_group(mode: u32, of: u32, group: Option<u32>) -> u32 {
    if group == Some(of) { mode } else { (mode & !0o070) | (mode & 0o007) << 3 }
}

/// Returns the reason why no file can be created in `dir`, with advice.
fn explain_failure(error: &io::Error, dir: &Path) -> String {
    let place = dir.display();
    #[cfg(unix)]
    if hprof_index::storage::open_dir::is_refused_link(error) {
        return format!(
            "{place} contains a symbolic link that other users can change, which root does not follow; name the \
             directory itself"
        );
    }
    match error.kind() {
        io::ErrorKind::NotFound => {
            format!("the directory {place} does not exist; create it, or name another file")
        }
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

impl Write for OutFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.writer().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.to.writer().flush()
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
        assert_eq!(mode_of_files(&[INPUT.as_ref()], &OpenDir::open(dir.path()).unwrap()), 0o666);
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
        // The members of its group are "others".
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

    /// Lets another user rename the directory of an output, and replace it with a link to one of our directories.
    #[cfg(unix)]
    #[test]
    fn a_directory_that_is_replaced_leads_nowhere_else() {
        use std::os::unix::fs::symlink;
        type Create = fn(&Path) -> anyhow::Result<OutFile>;
        let ways: [(&str, Create); 4] = [
            ("temporary", |path| OutFile::create(path, &[])),
            ("new", |path| OutFile::create_private(path, &[], OverwritePolicy::Keep)),
            ("forced", |path| OutFile::create_private(path, &[], OverwritePolicy::Replace)),
            ("dropped", |path| OutFile::create(path, &[])),
        ];
        for (way, create) in ways {
            let all = tempfile::tempdir().unwrap();
            let [theirs, moved, ours] = ["theirs", "moved", "ours"].map(|name| all.path().join(name));
            fs::create_dir(&theirs).unwrap();
            fs::create_dir(&ours).unwrap();
            fs::write(ours.join("out"), "mine").unwrap();
            if way == "forced" {
                fs::write(theirs.join("out"), "old").unwrap();
            }
            let mut file = create(&theirs.join("out")).unwrap();
            file.write_all(b"new").unwrap();
            fs::rename(&theirs, &moved).unwrap();
            symlink(&ours, &theirs).unwrap();
            // Under the same name as the temporary file, if it has one.
            for entry in fs::read_dir(&moved).unwrap() {
                let name = entry.unwrap().file_name();
                fs::write(ours.join(name), "mine").unwrap();
            }
            if way == "dropped" {
                drop(file)
            } else {
                file.commit().unwrap()
            }
            let contents = |dir: &Path| -> Vec<Vec<u8>> {
                fs::read_dir(dir).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect()
            };
            assert!(contents(&ours).iter().all(|text| text == b"mine"), "{way}");
            let expected: &[&[u8]] = if way == "dropped" { &[] } else { &[b"new"] };
            assert_eq!(contents(&moved), expected, "{way}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_leftover_stays_and_nobody_waits_for_it() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(format!("{PREFIX}{name}{SUFFIX}"));
        let victim = dir.path().join("victim");
        fs::write(&victim, "mine").unwrap();
        symlink(&victim, at("link")).unwrap();
        fs::create_dir(at("directory")).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, at("fifo"), mode).unwrap();
        fs::write(at("leftover"), "half").unwrap();
        fs::write(at("other"), "half").unwrap();
        let has_other = std::os::unix::fs::chown(at("other"), Some(4242), None).is_ok();
        OutFile::create(&dir.path().join("out"), &[]).unwrap().commit().unwrap();
        let there = |name: &str| fs::symlink_metadata(at(name)).is_ok();
        assert!(there("link") && there("directory") && there("fifo") && !there("leftover"));
        assert_eq!((there("other"), fs::read(&victim).unwrap()), (has_other, b"mine".into()));
    }

    #[cfg(unix)]
    #[test]
    fn root_follows_no_link_of_another_user() {
        use std::os::unix::fs::{chown, lchown, symlink};
        let all = tempfile::tempdir().unwrap();
        let [theirs, ours] = ["theirs", "ours"].map(|name| all.path().join(name));
        fs::create_dir(&theirs).unwrap();
        fs::create_dir(&ours).unwrap();
        if chown(&theirs, Some(4242), None).is_err() {
            #[allow(clippy::print_stderr)]
            {
                eprintln!("NOT RUN: no permission to give a directory to another user");
            }
            return;
        }
        symlink(&ours, theirs.join("dir")).unwrap();
        symlink(ours.join("file"), theirs.join("link")).unwrap();
        for link in ["dir", "link"] {
            lchown(theirs.join(link), Some(4242), None).unwrap();
        }
        for (name, why) in [("dir/file", "symbolic link"), ("link", "of another user (UID 4242)")] {
            let path = theirs.join(name);
            let error = OutFile::create(&path, &[]).map(drop).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(&path.display().to_string()), "{error}");
            assert!(OutFile::create_private(&path, &[], OverwritePolicy::Replace).is_err());
        }
        assert_eq!(fs::read_dir(&ours).unwrap().count(), 0);
        OutFile::create(&theirs.join("own"), &[]).unwrap().commit().unwrap();
        assert!(theirs.join("own").is_file());
    }
}
