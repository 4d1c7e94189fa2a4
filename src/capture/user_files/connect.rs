//! Connections to sockets that belong to a single user.

use std::io::{self, ErrorKind};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::directory::Directory;
use crate::identity::Identity;

/// Connects to the socket `name` in the directory `dir`, whose path is `path`. The socket must belong to this process's user.
/// `None` if it does not exist, or nobody listens.
///
/// # Errors
///
/// If the file is not a socket or belongs to another user.
pub(super) fn try_connect(dir: &Directory, path: &Path, name: &str) -> io::Result<Option<UnixStream>> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = match rustix::fs::openat(dir.fd(), name, flags, Mode::empty()) {
        Ok(found) => found,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let there = rustix::fs::fstat(&found)?;
    let is_own = there.st_uid == Identity::own().user && there.st_mode & 0o066 == 0;
    if FileType::from_raw_mode(there.st_mode) != FileType::Socket || !is_own {
        return Err(io::Error::other("it is not a socket that only the JVM's user can access"));
    }
    // Another socket may have taken the name, so the peer is checked.
    match UnixStream::connect(path.join(name)) {
        Ok(stream) => Ok(Some(stream)),
        Err(error) if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    /// Names of sockets are predictable: sockets of other users are rejected.
    #[test]
    fn only_sockets_of_this_user_alone_are_spoken_to() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path();
        let opened = rustix::fs::open(dir, Directory::FLAGS, Mode::empty()).unwrap();
        let connected =
            |name: &str| super::try_connect(&Directory::from(opened.try_clone().unwrap()), dir, name);
        assert!(connected("socket").unwrap().is_none());
        let socket = dir.join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(connected("socket").unwrap().is_some());
        symlink(&socket, dir.join("link")).unwrap();
        assert!(connected("link").is_err());
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(connected("socket").is_err());
        // A JVM that has ended may leave its socket.
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o600)).unwrap();
        drop(listener);
        assert!(connected("socket").unwrap().is_none());
    }
}
