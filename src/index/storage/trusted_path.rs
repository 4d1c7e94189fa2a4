//! Paths of directories, resolved up to the first directory that users other than root and this process's user can change.
//!
//! Whoever can write to a directory decides what a name in it leads to: a moment after it was checked, it may be a link, or
//! another directory. So a path is walked with open directories from `/`, and the walk ends at the first directory that others
//! can change. Everything below that is under their control: it is not resolved here, or without following any link.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};
use rustix::io::Errno;

/// Maximum number of links in a path, as in Linux.
const MAX_LINKS: usize = 40;

/// Flags that open a directory only to find files in it, which needs no permission to list it.
#[cfg(any(target_os = "linux", target_os = "android"))]
const FIND: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const FIND: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A directory path, resolved up to the first directory that users other than root and this process's user can change.
#[derive(Debug)]
pub struct TrustedPrefix {
    /// The last directory that was resolved: the first one that others may change, or the end of the path. Where there is
    /// `O_PATH`, it is opened with that.
    pub dir: OwnedFd,
    /// Real path of `dir`.
    pub path: PathBuf,
    /// Components that were not resolved: those below a directory that others may change. Empty if `dir` is the end.
    pub rest: PathBuf,
    /// Owner of the first directory that others may change, if there is one: `dir`.
    pub owner: Option<u32>,
}

/// Resolves the path of a directory up to the first directory that others may change. Links above that are followed.
///
/// Others may change a directory that belongs neither to root nor to this process's effective user, or that a group or
/// everybody may write to, including a sticky one, such as `/tmp`, where others can make names. But a directory of root or this
/// user within a sticky one of root is followed: nobody else can rename or remove it. The permissions of an access control list
/// are within those of the group.
///
/// # Errors
///
/// If a component before that does not exist, is not a directory, or cannot be read, and if there are more than 40 links.
pub fn resolve(dir: &Path) -> io::Result<TrustedPrefix> {
    let mut names = components(dir);
    if !dir.has_root() {
        // Those who may change a directory above the working directory decide what its path leads to.
        let mut all = components(&std::env::current_dir()?);
        all.append(&mut names);
        names = all;
    }
    let mut walk = Walk::start()?;
    let mut links = 0;
    loop {
        let stat = fstat(&walk.dir)?;
        if others_can_change(&stat) {
            if is_sticky(&stat) && walk.enter_trusted(names.front()) {
                names.pop_front();
                continue;
            }
            return Ok(walk.end(&names, Some(stat.st_uid)));
        }
        let Some(name) = names.pop_front() else { return Ok(walk.end(&names, None)) };
        if name == ".." {
            walk.leave();
            continue;
        }
        match walk.enter(&name) {
            Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
                let target = link_target(walk.dir.as_fd(), &name)?;
                links += 1;
                if links > MAX_LINKS {
                    return Err(Errno::LOOP.into());
                }
                if target.has_root() {
                    walk = Walk::start()?;
                }
                let mut all = components(&target);
                all.append(&mut names);
                names = all;
            }
            entered => entered?,
        }
    }
}

/// Opens a directory in which files will be created, renamed and removed.
///
/// If this process's user is root, links below a directory that others may change are not followed: they would lead root to a
/// directory of their choice. A link that root made, in a directory of root that others cannot change, is also followed there.
/// Other users may write only where the system lets them, and links are followed.
///
/// # Errors
///
/// If the directory does not exist, and for root, if a component is a link that is not followed.
pub fn open_for_writing(dir: &Path) -> io::Result<OwnedFd> {
    if !rustix::process::geteuid().is_root() {
        return Ok(openat(CWD, dir, FIND, Mode::empty())?);
    }
    let mut path = dir.to_owned();
    for _ in 0..=MAX_LINKS {
        let resolved = resolve(&path)?;
        match open_below(resolved.dir, &resolved.rest)? {
            BelowOthers::Opened(dir) => return Ok(dir),
            BelowOthers::Link(target) => path = resolved.path.join(target),
        }
    }
    Err(Errno::LOOP.into())
}

/// Result of following a path below a directory that others may change.
enum BelowOthers {
    Opened(OwnedFd),
    /// A link that may be followed: the path from the same directory with its target.
    Link(PathBuf),
}

/// Opens a directory below one that others may change.
fn open_below(dir: OwnedFd, rest: &Path) -> io::Result<BelowOthers> {
    let names = components(rest);
    if names.is_empty() {
        return Ok(BelowOthers::Opened(dir));
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{ResolveFlags, openat2};
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match openat2(&dir, rest, FIND, Mode::empty(), resolve) {
            // Kernels before 5.6 lack this call, some containers forbid it, and it gives up if something is renamed meanwhile.
            // It does not report the owner of a link.
            Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN | Errno::LOOP) => {}
            opened => return Ok(BelowOthers::Opened(opened?)),
        }
    }
    open_by_name(dir, &names)
}

/// Opens a directory below one that others may change, one name after the other.
fn open_by_name(dir: OwnedFd, names: &VecDeque<OsString>) -> io::Result<BelowOthers> {
    let (mut dir, mut above, mut entered) = (dir, Vec::new(), PathBuf::new());
    for (at, name) in names.iter().enumerate() {
        if name == ".." {
            dir = above.pop().ok_or(Errno::XDEV)?;
            entered.pop();
            continue;
        }
        match open_directory(dir.as_fd(), name) {
            Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
                let target = trusted_link(dir.as_fd(), name)?.ok_or(error)?;
                let rest: PathBuf = names.iter().skip(at + 1).collect();
                return Ok(BelowOthers::Link(entered.join(target).join(rest)));
            }
            opened => {
                above.push(std::mem::replace(&mut dir, opened?));
                entered.push(name);
            }
        }
    }
    Ok(BelowOthers::Opened(dir))
}

/// Returns the target of a link if only root and this process's user could have made it where it is.
fn trusted_link(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<Option<PathBuf>> {
    let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if others_can_change(&fstat(dir)?) || is_of_another(&stat) {
        return Ok(None);
    }
    link_target(dir, name).map(Some)
}

fn link_target(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<PathBuf> {
    let target = readlinkat(dir, name, Vec::new())?;
    Ok(PathBuf::from(OsStr::from_bytes(target.as_bytes())))
}

/// Opens the directory of this name, unless it is a link.
pub(super) fn open_directory(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    match openat(dir, name, FIND | OFlags::NOFOLLOW, Mode::empty()) {
        // Systems have several codes for a link.
        Err(Errno::NOTDIR | Errno::MLINK) if is_link(dir, name) => Err(Errno::LOOP.into()),
        opened => Ok(opened?),
    }
}

fn is_link(dir: BorrowedFd<'_>, name: &OsStr) -> bool {
    let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

/// Returns the names in a path, without `/` and `.`.
fn components(path: &Path) -> VecDeque<OsString> {
    let name = |component: Component<'_>| match component {
        Component::Normal(_) | Component::ParentDir => Some(component.as_os_str().to_owned()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    };
    path.components().filter_map(name).collect()
}

/// Returns `true` if a user other than root and this process's user can change the entries of a directory.
fn others_can_change(stat: &Stat) -> bool {
    is_of_another(stat) || Mode::from_raw_mode(stat.st_mode).intersects(Mode::WGRP | Mode::WOTH)
}

/// Returns `true` for a sticky directory of root or this user: its entries can be renamed and removed only by their owners.
fn is_sticky(stat: &Stat) -> bool {
    !is_of_another(stat) && Mode::from_raw_mode(stat.st_mode).contains(Mode::SVTX)
}

/// Returns `true` if something belongs neither to root nor to this process's user.
fn is_of_another(stat: &Stat) -> bool {
    stat.st_uid != 0 && stat.st_uid != rustix::process::geteuid().as_raw()
}

/// A walk through directories that others cannot change.
struct Walk {
    dir: OwnedFd,
    /// Names of the directories from the root to this one.
    names: Vec<OsString>,
    /// The directories above this one.
    above: Vec<OwnedFd>,
}

impl Walk {
    /// Creates a walk that starts at the root directory.
    fn start() -> io::Result<Self> {
        let dir = openat(CWD, "/", FIND, Mode::empty())?;
        Ok(Self { dir, names: Vec::new(), above: Vec::new() })
    }

    /// Goes to the directory of this name, unless it is a link.
    fn enter(&mut self, name: &OsStr) -> io::Result<()> {
        let next = open_directory(self.dir.as_fd(), name)?;
        self.above.push(std::mem::replace(&mut self.dir, next));
        self.names.push(name.to_owned());
        Ok(())
    }

    /// Goes to the directory of this name if it belongs to root or this user. Returns whether it does.
    fn enter_trusted(&mut self, name: Option<&OsString>) -> bool {
        let Some(name) = name.filter(|name| *name != "..") else { return false };
        if self.enter(name).is_err() {
            return false;
        }
        let is_trusted = fstat(&self.dir).is_ok_and(|stat| !is_of_another(&stat));
        if !is_trusted {
            self.leave();
        }
        is_trusted
    }

    /// Goes to the parent directory. The root has none.
    fn leave(&mut self) {
        if let Some(above) = self.above.pop() {
            self.dir = above;
            self.names.pop();
        }
    }

    /// Ends the walk in this directory: the remaining names are not resolved.
    fn end(self, rest: &VecDeque<OsString>, owner: Option<u32>) -> TrustedPrefix {
        let path = Path::new("/").join(self.names.iter().collect::<PathBuf>());
        TrustedPrefix { dir: self.dir, path, rest: rest.iter().collect(), owner }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    use super::*;

    /// Returns a directory whose path only root and this user may change, if there is one.
    fn trusted_dir() -> Option<tempfile::TempDir> {
        let places = [std::env::current_dir().unwrap(), PathBuf::from("/root"), PathBuf::from("/var/cache")];
        let made = places.iter().filter(|place| resolve(place).is_ok_and(|place| place.owner.is_none()));
        let made =
            made.filter_map(|place| tempfile::Builder::new().prefix(".t-").tempdir_in(place).ok()).next();
        if made.is_none() {
            not_run("no directory that only this user may change");
        }
        made
    }

    fn not_run(why: &str) {
        #[allow(clippy::print_stderr)]
        {
            eprintln!("NOT RUN: {why}");
        }
    }

    fn is_same(dir: impl AsFd, path: &Path) -> bool {
        let (open, there) = (fstat(dir).unwrap(), fs::symlink_metadata(path).unwrap());
        (open.st_dev, open.st_ino) == (there.dev(), there.ino())
    }

    #[test]
    fn a_path_is_resolved_up_to_a_directory_of_others() {
        let Some(all) = trusted_dir() else { return };
        let all = fs::canonicalize(all.path()).unwrap();
        fs::create_dir_all(all.join("open/below")).unwrap();
        fs::create_dir_all(all.join("own/deep")).unwrap();
        symlink("own", all.join("relative")).unwrap();
        symlink(all.join("open/below"), all.join("absolute")).unwrap();
        symlink("/etc", all.join("open/below/link")).unwrap();
        let own = resolve(&all.join("relative/./deep/../deep")).unwrap();
        assert_eq!((own.path.clone(), own.rest, own.owner), (all.join("own/deep"), PathBuf::new(), None));
        assert!(is_same(&own.dir, &all.join("own/deep")));
        let user = rustix::process::geteuid().as_raw();
        for mode in [0o777, 0o770, 0o720] {
            fs::set_permissions(all.join("open"), fs::Permissions::from_mode(mode)).unwrap();
            for (path, rest) in [
                ("open", ""),
                ("open/below", "below"),
                ("absolute/link/x", "below/link/x"),
                ("open/missing/../..", "missing/../.."),
            ] {
                let found = resolve(&all.join(path)).unwrap();
                let expected = (all.join("open"), PathBuf::from(rest), Some(user));
                assert_eq!((found.path, found.rest, found.owner), expected, "{path} {mode:o}");
                assert!(is_same(&found.dir, &all.join("open")));
            }
        }
        // Nobody else can rename what is ours in a sticky directory.
        fs::set_permissions(all.join("open"), fs::Permissions::from_mode(0o1777)).unwrap();
        for (path, rest, owner) in [
            ("open/below", None, None),
            ("open", Some(""), Some(user)),
            ("open/missing", Some("missing"), Some(user)),
        ] {
            let found = resolve(&all.join(path)).unwrap();
            assert_eq!((found.owner, owner.map(|_| found.rest)), (owner, rest.map(PathBuf::from)), "{path}");
        }
        if chown(all.join("open/below"), Some(user + 1), None).is_ok() {
            let found = resolve(&all.join("open/below")).unwrap();
            assert_eq!((found.path, found.rest), (all.join("open"), PathBuf::from("below")));
            chown(all.join("open/below"), Some(user), None).unwrap();
        }
        fs::set_permissions(all.join("open"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(resolve(&all.join("absolute")).unwrap().owner, None);
    }

    #[test]
    fn a_directory_of_another_user_ends_the_walk() {
        let Some(all) = trusted_dir() else { return };
        let other = all.path().join("other");
        fs::create_dir(&other).unwrap();
        if chown(&other, Some(4242), None).is_err() {
            not_run("no permission to give a directory to another user");
            return;
        }
        symlink("/etc", other.join("link")).unwrap();
        let found = resolve(&other.join("link")).unwrap();
        assert_eq!((found.rest, found.owner), (PathBuf::from("link"), Some(4242)));
        assert!(is_same(&found.dir, &other));
        if rustix::process::geteuid().is_root() {
            fs::create_dir_all(other.join("in/side")).unwrap();
            assert!(is_same(open_for_writing(&other.join("in/side")).unwrap(), &other.join("in/side")));
            assert!(open_for_writing(&other.join("link")).is_err());
            assert!(open_for_writing(&other.join("link/ssl")).is_err());
            assert!(open_for_writing(&other.join("../../..")).is_err(), "it leads out");
        }
    }

    #[test]
    fn a_relative_path_counts_the_directories_above() {
        let here = resolve(Path::new(".")).unwrap();
        let full = resolve(&std::env::current_dir().unwrap()).unwrap();
        assert_eq!((here.path, here.rest, here.owner), (full.path, full.rest, full.owner));
        assert_eq!(resolve(Path::new("/../..")).unwrap().path, Path::new("/"));
    }

    #[test]
    fn links_in_a_circle_files_and_missing_directories_are_errors() {
        let Some(all) = trusted_dir() else { return };
        symlink("b", all.path().join("a")).unwrap();
        symlink("a", all.path().join("b")).unwrap();
        fs::write(all.path().join("file"), "").unwrap();
        let error = |name: &str| resolve(&all.path().join(name)).unwrap_err();
        assert_eq!(error("a").raw_os_error(), Some(Errno::LOOP.raw_os_error()));
        assert_eq!(error("file").kind(), io::ErrorKind::NotADirectory);
        assert_eq!(error("file/x").kind(), io::ErrorKind::NotADirectory);
        assert_eq!(error("missing/x").kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn names_are_opened_without_links() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        symlink("a", dir.path().join("link")).unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let open = |rest: &str, by_name: bool| {
            let top = openat(CWD, dir.path(), FIND, Mode::empty()).unwrap();
            let rest = Path::new(rest);
            let opened = if by_name { open_by_name(top, &components(rest)) } else { open_below(top, rest) };
            match opened? {
                BelowOthers::Opened(dir) => Ok(dir),
                BelowOthers::Link(target) => Err(io::Error::other(format!("followed: {}", target.display()))),
            }
        };
        for by_name in [false, true] {
            assert!(is_same(open("a/b", by_name).unwrap(), &dir.path().join("a/b")));
            assert!(is_same(open("a/../a", by_name).unwrap(), &dir.path().join("a")));
            for wrong in ["link", "link/b", "..", "a/../..", "missing"] {
                let error = open(wrong, by_name).unwrap_err().to_string();
                assert!(!error.starts_with("followed"), "{wrong}: {error}");
            }
            // A link of this user in a directory of this user.
            symlink("../a", dir.path().join("a/own")).unwrap();
            let error = open("a/own/b", by_name).unwrap_err().to_string();
            assert_eq!(error, "followed: a/../a/b");
            fs::remove_file(dir.path().join("a/own")).unwrap();
        }
        symlink("../a/b", dir.path().join("a/own")).unwrap();
        assert!(is_same(open_for_writing(&dir.path().join("a/own")).unwrap(), &dir.path().join("a/b")));
    }
}
