//! Destination of output: a file, a device, or a socket.
//!
//! A file has its final name only while its contents are complete. During writing its name is `NAME.PID.partial`; this file
//! remains if the JVM is killed, or if the disk is full. It is always a new file: an existing file or link with that name, for
//! example from another user, is neither written to nor followed. Errors never end the JVM. A socket that accepts no bytes for
//! [`PATIENCE`] is abandoned, but there is no time limit for a terminal, as in any program that writes to one.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Maximum time for which a socket may accept no bytes.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Interval between checks of whether the socket accepted bytes, because a write that times out reports only the total for the
/// entire time.
const LOOK: Duration = Duration::from_millis(500);

/// Writes all of `bytes`, as long as the other end accepts some bytes within [`PATIENCE`].
fn send(stream: &mut TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    let mut taken = Instant::now();
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = bytes.get(written..).unwrap_or_default();
                taken = Instant::now();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                if taken.elapsed() >= PATIENCE {
                    let message = format!("the receiver read nothing for {} seconds", PATIENCE.as_secs());
                    return Err(io::Error::new(io::ErrorKind::TimedOut, message));
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Destination of output, with its first error.
#[derive(Debug)]
pub struct Sink {
    to: To,
    /// First error. After an error, nothing is written.
    failed: Option<String>,
    /// Bytes to be written when the program's threads run again, because a socket may be slow; `None` if bytes are not
    /// buffered.
    held: Option<Vec<u8>>,
    /// Number of bytes written.
    written: u64,
}

/// Kind of destination.
#[derive(Debug)]
enum To {
    File {
        file: File,
        path: PathBuf,
        partial: PathBuf,
        open: bool,
        replaces: bool,
    },
    /// Character device, such as `/dev/null` or a terminal, which must not be replaced.
    Device {
        file: File,
        path: PathBuf,
    },
    Socket(TcpStream),
    /// Destination that was closed.
    Nothing,
}

/// Returns `NAME.PID.partial`. The process ID is needed because other JVMs may have the same options.
pub fn partial_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    name.into()
}

/// Makes new files accessible only to their owner, like HotSpot's dumps, because they contain the contents of memory.
pub fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Creates a new file that only its owner can access.
fn create(path: &Path) -> io::Result<File> {
    let new = || private(OpenOptions::new().create_new(true).write(true)).open(path);
    match new() {
        // The file was left by a JVM with the same process ID, as in each run of a container, or created by another user.
        // Removing a link does not affect its target.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            std::fs::remove_file(path)?;
            new()
        }
        other => other,
    }
}

/// Opens the character device with this name. Returns `None` if the name does not exist, or belongs to a file.
///
/// # Errors
/// If the name belongs to anything else, which a file must not replace. Links in `/dev`, such as `/dev/stdout`, belong to the
/// system, whatever their targets.
fn device(path: &Path) -> Result<Option<File>, String> {
    let cannot = |why: &dyn std::fmt::Display| format!("cannot write {}: {why}", path.display());
    let Ok(there) = std::fs::metadata(path).map(|there| there.file_type()) else { return Ok(None) };
    let is_of_system = path.is_symlink() && path.starts_with("/dev");
    if there.is_file() && !is_of_system {
        return Ok(None);
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if there.is_char_device() {
            let file = OpenOptions::new().write(true).open(path).map_err(|error| cannot(&error))?;
            // By now, a link may have another target.
            let is_device = file.metadata().is_ok_and(|there| there.file_type().is_char_device());
            return if is_device { Ok(Some(file)) } else { Err(cannot(&"it was replaced by another file")) };
        }
    }
    Err(cannot(&"it is not a regular file; choose a regular file or a new name"))
}

/// Checks that a name does not exist, or belongs to an ordinary file, which can be replaced.
///
/// # Errors
/// If the name belongs to a device or anything else.
pub fn only_a_file(path: &Path) -> Result<(), String> {
    match device(path)? {
        Some(_) => Err(format!("cannot write {}: the JVM cannot write a dump to a device", path.display())),
        None => Ok(()),
    }
}

/// Returns `true` if `path` is the name of this open file, without following links.
fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let (Ok(file), Ok(there)) = (file.metadata(), std::fs::symlink_metadata(path)) else { return false };
        (file.dev(), file.ino()) == (there.dev(), there.ino())
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        path.exists()
    }
}

impl Sink {
    fn new(to: To, written: u64) -> Self {
        Self { to, failed: None, held: None, written }
    }

    /// Creates a new file. It exists under the name [`partial_of`] at once, so that an invalid name prevents the JVM from
    /// starting. Unless it `replaces` an existing file, the process ID is appended to its name. If `path` is a character
    /// device, the device is written to.
    ///
    /// # Errors
    /// Returns the reason with the name.
    pub fn file(path: PathBuf, replaces: bool) -> Result<Self, String> {
        if let Some(file) = device(&path)? {
            return Ok(Self::new(To::Device { file, path }, 0));
        }
        let partial = partial_of(&path);
        let file =
            create(&partial).map_err(|error| format!("cannot write {}: {error}", partial.display()))?;
        Ok(Self::new(To::File { file, path, partial, open: true, replaces }, 0))
    }

    /// Opens a file that was written under the name [`partial_of`], for appending.
    ///
    /// # Errors
    /// Returns the reason with the name.
    pub fn append(path: PathBuf) -> Result<Self, String> {
        only_a_file(&path)?;
        let partial = partial_of(&path);
        let file = OpenOptions::new().append(true).open(&partial);
        let file = file.map_err(|error| format!("cannot write {}: {error}", partial.display()))?;
        if !is_at(&file, &partial) {
            return Err(format!("cannot write {}: it is a symbolic link", partial.display()));
        }
        let written = file.metadata().map_or(1, |metadata| metadata.len());
        Ok(Self::new(To::File { file, path, partial, open: true, replaces: true }, written))
    }

    /// Connects to a socket.
    ///
    /// # Errors
    /// Returns the reason with the address.
    pub fn socket(host: &str, port: u16) -> Result<Self, String> {
        let failed = |error: io::Error| format!("cannot connect to {host}:{port}: {error}");
        let mut last = None;
        for address in (host, port).to_socket_addrs().map_err(failed)? {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => {
                    stream.set_write_timeout(Some(LOOK)).map_err(failed)?;
                    return Ok(Self::new(To::Socket(stream), 0));
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.map_or_else(|| format!("cannot connect to {host}:{port}: the host has no address"), failed))
    }

    /// Returns the connection, from which commands can be read; `None` if the destination is not a socket.
    pub fn stream(&self) -> Option<TcpStream> {
        match &self.to {
            To::Socket(stream) => stream.try_clone().ok(),
            To::File { .. } | To::Device { .. } | To::Nothing => None,
        }
    }

    /// Returns the path of the file or device; `None` for a socket, or once the destination is closed.
    pub fn path(&self) -> Option<&Path> {
        match &self.to {
            To::File { path, .. } | To::Device { path, .. } => Some(path),
            To::Socket(_) | To::Nothing => None,
        }
    }

    /// Returns the name of the destination, for messages.
    pub fn name(&self) -> String {
        match &self.to {
            To::File { path, .. } | To::Device { path, .. } => path.display().to_string(),
            To::Socket(stream) => {
                stream.peer_addr().map_or_else(|_| "the socket".to_owned(), |address| address.to_string())
            }
            To::Nothing => "a closed file".to_owned(),
        }
    }

    /// Returns the first error, if there was one.
    pub fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Starts a dump, which is incomplete until [`Self::end`].
    pub fn begin(&mut self) {
        if self.failed.is_some() {
            return;
        }
        if let To::File { file, path, partial, open, .. } = &mut self.to
            && !*open
        {
            *open = true;
            let renamed = if is_at(file, path) {
                std::fs::rename(&path, partial).map_err(|error| error.to_string())
            } else {
                // For example, another JVM with the same options replaced it: that JVM's file is left unchanged.
                Err("it was replaced by another file".to_owned())
            };
            if let Err(error) = renamed {
                let message = format!("cannot append to {}: {error}", path.display());
                self.fail(message);
            }
        }
    }

    /// Completes the dump. Returns `true` if the file has its final name. An empty file does not get it (`cpu=old,doe=n`).
    pub fn end(&mut self) -> bool {
        if self.failed.is_some() || self.written == 0 {
            return false;
        }
        let ended = match &mut self.to {
            To::File { file, path, partial, open, replaces } => {
                *open = false;
                if !*replaces && path.exists() {
                    let mut name = path.as_os_str().to_owned();
                    name.push(format!(".{}", std::process::id()));
                    *path = name.into();
                }
                // From now on, this file has the final name, which the next dump replaces.
                *replaces = true;
                // If process IDs are reused, another JVM may have created a file with the same name.
                if is_at(file, partial) {
                    file.flush().and_then(|()| std::fs::rename(partial, path))
                } else {
                    Err(io::Error::other(format!("{} was replaced by another file", partial.display())))
                }
            }
            To::Device { file, .. } => file.flush(),
            To::Socket(stream) => stream.flush(),
            To::Nothing => Ok(()),
        };
        match ended {
            Ok(()) => true,
            Err(error) => {
                let message = format!("cannot complete {}: {error}", self.name());
                self.fail(message);
                false
            }
        }
    }

    /// Closes the destination; a socket's other end is notified. An empty file is removed, unless the disk is full.
    pub fn close(&mut self) {
        match &self.to {
            To::Socket(stream) => {
                let _ = stream.shutdown(std::net::Shutdown::Write);
            }
            To::File { file, partial, .. } if self.written == 0 && self.failed.is_none() => {
                if is_at(file, partial) {
                    let _ = std::fs::remove_file(partial);
                }
            }
            To::File { .. } | To::Device { .. } | To::Nothing => {}
        }
        self.to = To::Nothing;
        self.failed.get_or_insert_with(String::new);
    }

    /// If the destination is a socket, buffers output until [`Self::release`].
    pub fn hold(&mut self) {
        if matches!(self.to, To::Socket(_)) {
            self.held = Some(Vec::new());
        }
    }

    /// Sends the buffered output, and stops buffering.
    pub fn release(&mut self) {
        if let Some(held) = self.held.take() {
            self.write(&held);
        }
    }

    /// Writes bytes, unless an error occurred before.
    pub fn write(&mut self, bytes: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        if let Some(held) = &mut self.held {
            held.extend_from_slice(bytes);
            return;
        }
        let written = match &mut self.to {
            To::File { file, .. } | To::Device { file, .. } => file.write_all(bytes),
            To::Socket(stream) => send(stream, bytes),
            To::Nothing => Ok(()),
        };
        match written {
            Ok(()) => self.written += bytes.len() as u64,
            Err(error) => {
                let kept = match &self.to {
                    To::File { partial, .. } => {
                        format!("; the partial output remains in {}", partial.display())
                    }
                    To::Device { .. } | To::Socket(_) | To::Nothing => String::new(),
                };
                let message = format!("cannot write to {}: {error}{kept}", self.name());
                self.fail(message);
            }
        }
    }

    /// Records an error, after which nothing is written, and the file does not get its final name.
    pub fn fail(&mut self, message: String) {
        crate::messages::complain(&message);
        if let To::Socket(stream) = &self.to {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
        self.failed = Some(message);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("hprof-agent-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    /// A file does not have its final name while it is being written.
    #[test]
    fn a_file_has_its_name_while_it_is_whole() {
        let directory = directory("name");
        let path = directory.join("a.hprof");
        let mut sink = Sink::file(path.clone(), true).unwrap();
        assert!(!path.exists() && partial_of(&path).exists());
        sink.write(b"one");
        assert!(sink.end() && path.exists() && !partial_of(&path).exists());
        sink.begin();
        sink.write(b"two");
        assert!(!path.exists());
        assert!(sink.end());
        assert_eq!(std::fs::read(&path).unwrap(), b"onetwo");
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_file_in_which_nothing_is_goes_away() {
        let directory = directory("nothing");
        let path = directory.join("a.txt");
        let mut sink = Sink::file(path.clone(), true).unwrap();
        sink.begin();
        assert!(!sink.end() && !path.exists() && partial_of(&path).exists());
        sink.close();
        assert!(!path.exists() && !partial_of(&path).exists());
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_leaves_no_file_that_looks_whole() {
        let directory = directory("full");
        let path = directory.join("full");
        let partial = partial_of(&path);
        let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut sink =
            Sink::new(To::File { file, path: path.clone(), partial, open: true, replaces: true }, 0);
        sink.write(&[0; 100]);
        assert!(sink.failure().unwrap().contains("No space left"), "{:?}", sink.failure());
        assert!(!sink.end() && !path.exists());
        std::fs::remove_dir_all(directory).unwrap();
    }

    /// If a file replaced `/dev/null`, as root can do, the system would not work any more.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_no_file_stays_what_it_is() {
        use std::os::unix::fs::FileTypeExt;
        let is_device = |path: &str| std::fs::metadata(path).unwrap().file_type().is_char_device();
        let mut sink = Sink::file("/dev/null".into(), true).unwrap();
        sink.write(b"one");
        assert!(sink.end());
        sink.begin();
        sink.write(b"two");
        assert!(sink.end() && is_device("/dev/null") && !partial_of("/dev/null".as_ref()).exists());
        let mut sink = Sink::file("/dev/full".into(), true).unwrap();
        sink.write(b"one");
        assert!(sink.failure().unwrap().contains("No space left"), "{:?}", sink.failure());
        assert!(!sink.end() && is_device("/dev/full"));

        let directory = directory("kinds");
        let socket = directory.join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert!(Sink::append("/dev/null".into()).unwrap_err().contains("a device"));
        // If standard output is a file, `/dev/stdout` is still a link of the system.
        assert!(is_device("/dev/null") && std::fs::symlink_metadata("/dev/stdout").unwrap().is_symlink());
        match Sink::file("/dev/stdout".into(), true) {
            Ok(sink) => assert!(matches!(sink.to, To::Device { .. })),
            Err(error) => assert!(error.contains("it is not a regular file"), "{error}"),
        }
        assert!(!partial_of("/dev/stdout".as_ref()).exists());
        for path in [&socket, &directory] {
            let error = Sink::file(path.clone(), true).unwrap_err();
            assert!(error.contains("it is not a regular file"), "{error}");
            assert!(path.exists() && !partial_of(path).exists());
        }
        std::fs::remove_dir_all(directory).unwrap();
    }

    /// In a directory in which others can write, another user may know the name in advance.
    #[cfg(unix)]
    #[test]
    fn what_was_put_in_the_way_is_not_written_to() {
        use std::os::unix::fs::PermissionsExt;
        let directory = directory("way");
        let (path, victim) = (directory.join("a.hprof"), directory.join("victim"));
        let partial = partial_of(&path);
        std::fs::write(&victim, "mine").unwrap();
        let victim_is_whole = || std::fs::read(&victim).unwrap() == b"mine";

        std::os::unix::fs::symlink(&victim, &partial).unwrap();
        let mut sink = Sink::file(path.clone(), true).unwrap();
        sink.write(b"one");
        assert!(victim_is_whole() && !partial.is_symlink());
        // If a link with the name refers to the open file, the name does not belong to the file.
        std::fs::rename(&partial, directory.join("moved")).unwrap();
        std::os::unix::fs::symlink(directory.join("moved"), &partial).unwrap();
        assert!(
            !sink.end() && sink.failure().unwrap().contains("replaced by another file") && !path.exists()
        );

        // A file that everybody can read, and a hard link to it.
        std::fs::remove_file(&partial).unwrap();
        std::fs::hard_link(&victim, &partial).unwrap();
        std::fs::set_permissions(&victim, std::fs::Permissions::from_mode(0o644)).unwrap();
        let mut sink = Sink::file(path.clone(), true).unwrap();
        sink.write(b"one");
        assert!(sink.end() && victim_is_whole());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

        std::os::unix::fs::symlink(&victim, &partial).unwrap();
        assert!(Sink::append(path).unwrap_err().contains("it is a symbolic link"));
        assert!(victim_is_whole());
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_socket_that_is_closed_is_given_up() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sink = Sink::socket("127.0.0.1", listener.local_addr().unwrap().port()).unwrap();
        drop(listener.accept().unwrap());
        drop(listener);
        for _ in 0..100 {
            sink.write(&[0; 65536]);
        }
        assert!(sink.failure().is_some());
    }
}
