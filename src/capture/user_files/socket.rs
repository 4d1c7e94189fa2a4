//! Messages with attached file descriptors over a socket pair.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Maximum length of a message in bytes. The buffers of a socket are larger.
const MAX_MESSAGE: usize = 128 << 10;

/// Maximum number of file descriptors attached to a message.
const MAX_DESCRIPTORS: usize = 2;

/// Creates the two ends of a socket pair, which preserves the boundaries of messages.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends a message with attached descriptors.
pub(super) fn send(
    socket: &OwnedFd,
    message: &impl Serialize,
    attached: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    if bytes.len() > MAX_MESSAGE {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !attached.is_empty() && !control.push(SendAncillaryMessage::ScmRights(attached)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    loop {
        match sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL) {
            Err(rustix::io::Errno::INTR) => {}
            sent => return Ok(sent.map(drop)?),
        }
    }
}

/// Receives a message with its descriptors. `None` if the other end is closed.
///
/// # Errors
///
/// Errors of the system; `TimedOut` if no message arrives within `limit`.
pub(super) fn receive<M: DeserializeOwned>(
    socket: &OwnedFd,
    limit: Option<Duration>,
) -> io::Result<Option<(M, Vec<OwnedFd>)>> {
    wait(socket, limit)?;
    let mut bytes = vec![0; MAX_MESSAGE];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        match recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            received => break received?,
        }
    };
    let mut attached = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            attached.extend(descriptors);
        }
    }
    if received.bytes == 0 {
        return Ok(None);
    }
    let is_cut = received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
    let bytes = bytes.get(..received.bytes).filter(|_| !is_cut).unwrap_or_default();
    Ok(Some((serde_json::from_slice(bytes)?, attached)))
}

/// Waits until a message can be received.
fn wait(socket: &OwnedFd, limit: Option<Duration>) -> io::Result<()> {
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    loop {
        let mut fds = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)];
        match poll(&mut fds, limit.as_ref()) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
