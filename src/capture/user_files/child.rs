//! Main function of a child process that accesses files of a user: it becomes the user, carries out requests, and finally
//! removes what it created.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::Mode;
use rustix::process::{
    DumpableBehavior, Gid, Uid, chroot, fchdir, getegid, geteuid, set_dumpable_behavior, umask,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, LinkNameSpaceType, move_into_link_name_space, set_capabilities,
    set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use super::executor::RequestExecutor;
use super::request::{ChildUser, FileReply, FileRequest};
use super::socket;
use crate::directory::Directory;

/// First argument that makes a program run as such a child. Its stdin is the socket.
pub const WORD: &str = "__in-place";

/// Runs the child. Returns when the other end of stdin is closed, after everything that was created has been removed.
///
/// # Errors
///
/// If stdin is not the socket of such a child.
pub fn run() -> io::Result<()> {
    // The child must end after its parent, not before.
    ignore_signals();
    let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let Some((user, attached)) = socket::receive::<ChildUser>(&socket, None)? else { return Ok(()) };
    let mut executor = match become_user(&user, attached) {
        Ok(root) => RequestExecutor::new(root, true),
        Err(error) => {
            let failed = FileReply::Failed(error.raw_os_error(), error.to_string());
            return socket::send(&socket, &failed, &[]);
        }
    };
    socket::send(&socket, &FileReply::Done, &[])?;
    while let Ok(Some((request, attached))) = socket::receive::<FileRequest>(&socket, None) {
        let is_end = matches!(request, FileRequest::End);
        let (reply, fd) = executor.answer(request, attached.into_iter().next());
        let fd = fd.as_ref().map(std::os::fd::AsFd::as_fd);
        let sent = match socket::send(&socket, &reply, fd.as_slice()) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                let failed =
                    FileReply::Failed(None, "there are too many names, or a name is too long".to_owned());
                socket::send(&socket, &failed, &[])
            }
            sent => sent,
        };
        if sent.is_err() || is_end {
            break;
        }
    }
    Ok(())
}

/// Enters the mount namespace and permanently gives up all rights except those of the user. Returns the root directory.
///
/// The process must have only one thread, because the system calls change the rights of a single thread.
fn become_user(user: &ChildUser, attached: Vec<OwnedFd>) -> io::Result<Directory> {
    let mut attached = attached.into_iter();
    let mut root = attached.next().ok_or(io::ErrorKind::InvalidInput)?;
    if let Some(namespace) = attached.next().filter(|_| user.has_namespace)
        && enter(&namespace, &root).is_ok()
    {
        root = rustix::fs::open("/", Directory::FLAGS, Mode::empty())?;
    }
    // Without CAP_SYS_ADMIN, paths begin at the descriptor instead; the rights are those of the user in either case.
    let own = geteuid().as_raw();
    if own == 0 {
        let groups: Vec<Gid> = user.groups.iter().map(|group| Gid::from_raw(*group)).collect();
        let is_own = user.user == own && user.group == getegid().as_raw();
        match set_thread_groups(&groups) {
            // CAP_SETGID is missing, or a user namespace denies the change: the rights are the process's own in either case.
            Err(_) if is_own => {}
            set => set?,
        }
        let group = Some(Gid::from_raw(user.group));
        set_thread_res_gid(group, group, group)?;
        let user = Some(Uid::from_raw(user.user));
        // This comes last, because a process that is no longer root cannot change its groups.
        set_thread_res_uid(user, user, user)?;
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    set_no_new_privs(true)?;
    // Prevents other processes of the user from inspecting this one.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    umask(Mode::RWXG | Mode::RWXO);
    if geteuid().as_raw() != user.user {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(Directory::from(root))
}

/// Enters a mount namespace, and changes the root directory to one in it.
fn enter(namespace: &OwnedFd, root: &OwnedFd) -> io::Result<()> {
    move_into_link_name_space(std::os::fd::AsFd::as_fd(namespace), Some(LinkNameSpaceType::Mount))?;
    fchdir(root)?;
    chroot(Path::new("."))?;
    Ok(())
}

/// Ignores the signals that would end this process on the terminal.
#[allow(unsafe_code)]
fn ignore_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: No code runs when the signal arrives.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}
