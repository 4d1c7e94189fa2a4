//! Destination of output: a file, or a socket.
//!
//! A file has its final name only while its contents are complete. While something is being written it is
//! called `NAME.PID.partial`, which remains if the JVM dies meanwhile, or if the disk is full. It is
//! always a new file: an existing file or link of that name, created by another user for instance, is
//! neither written to nor followed. Nothing here ends the JVM. A socket that accepts nothing for
//! [`PATIENCE`] is abandoned; a terminal is waited for, as by any program that writes to it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Maximum time for which a socket may accept nothing.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Interval for checking whether it accepted something: a write that times out reports only the total for
/// the whole time.
const LOOK: Duration = Duration::from_millis(500);

/// Writes all of `bytes`, as long as the other end accepts some of it within [`PATIENCE`].
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
                    let message = format!("the other end read nothing for {} seconds", PATIENCE.as_secs());
                    return Err(io::Error::new(io::ErrorKind::TimedOut, message));
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A file or a socket.
#[derive(Debug)]
pub struct Sink {
    to: To,
    /// First error: nothing is written after it.
    failed: Option<String>,
    /// Bytes to be written when the threads of the program run again: a socket may be slow.
    held: Option<Vec<u8>>,
    /// Number of bytes written.
    written: u64,
}

#[derive(Debug)]
enum To {
    File {
        file: File,
        path: PathBuf,
        partial: PathBuf,
        open: bool,
        replaces: bool,
    },
    /// `/dev/null`, a terminal: must not be replaced.
    Device {
        file: File,
        path: PathBuf,
    },
    Socket(TcpStream),
    /// Closed.
    Nothing,
}

/// Returns `NAME.PID.partial`: other JVMs may have the same options.
pub fn partial_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    name.into()
}

/// Makes new files accessible to their owner only, like HotSpot's dumps: they contain the contents of
/// memory.
pub fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Creates a new file for its owner only.
fn create(path: &Path) -> io::Result<File> {
    let new = || private(OpenOptions::new().create_new(true).write(true)).open(path);
    match new() {
        // Left by a JVM with the same process ID, as in each run of a container, or created by another
        // user. Removing a link does not affect its target.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            std::fs::remove_file(path)?;
            new()
        }
        other => other,
    }
}

/// Opens the character device of this name. Returns `None` if the name is unused or that of a file.
///
/// # Errors
/// If the name is that of something else, which a file must not replace. A link in `/dev` belongs to the
/// system, such as `/dev/stdout`, whatever its target.
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
            // A link may have another target by now.
            let is_device = file.metadata().is_ok_and(|there| there.file_type().is_char_device());
            return if is_device { Ok(Some(file)) } else { Err(cannot(&"it was replaced by another file")) };
        }
    }
    Err(cannot(&"it is not a regular file; choose a regular file or a new name"))
}

/// Checks that a name can be that of a file that is written as a whole.
///
/// # Errors
/// If the name is that of something else.
pub fn only_a_file(path: &Path) -> Result<(), String> {
    match device(path)? {
        Some(_) => Err(format!("cannot write {}: a device cannot take a dump of the JVM", path.display())),
        None => Ok(()),
    }
}

/// Returns `true` if a path still names this file, without an intermediate link.
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

    /// Creates a new file. It exists as [`partial_of`] its name at once, so that a wrong name prevents
    /// the JVM's start. Unless it `replaces` an existing file, the process ID is appended to its name. A
    /// character device is written to.
    ///
    /// # Errors
    /// The reason, with the name.
    pub fn file(path: PathBuf, replaces: bool) -> Result<Self, String> {
        if let Some(file) = device(&path)? {
            return Ok(Self::new(To::Device { file, path }, 0));
        }
        let partial = partial_of(&path);
        let file =
            create(&partial).map_err(|error| format!("cannot write {}: {error}", partial.display()))?;
        Ok(Self::new(To::File { file, path, partial, open: true, replaces }, 0))
    }

    /// Opens a file that was written as [`partial_of`] its name, for appending.
    ///
    /// # Errors
    /// The reason, with the name.
    pub fn append(path: PathBuf) -> Result<Self, String> {
        only_a_file(&path)?;
        let partial = partial_of(&path);
        let file = OpenOptions::new().append(true).open(&partial);
        let file = file.map_err(|error| format!("cannot write {}: {error}", partial.display()))?;
        if !is_at(&file, &partial) {
            return Err(format!("cannot write {}: it is a link", partial.display()));
        }
        let written = file.metadata().map_or(1, |metadata| metadata.len());
        Ok(Self::new(To::File { file, path, partial, open: true, replaces: true }, written))
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// The reason, with the address.
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
        Err(last.map_or_else(|| format!("{host}:{port}: no address"), failed))
    }

    /// Returns the connection, to read commands from.
    pub fn stream(&self) -> Option<TcpStream> {
        match &self.to {
            To::Socket(stream) => stream.try_clone().ok(),
            To::File { .. } | To::Device { .. } | To::Nothing => None,
        }
    }

    /// Returns the path of the file.
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

    /// Returns the first error, if any.
    pub fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Starts an output that is incomplete until [`Self::end`].
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
                // Another JVM with the same options, for instance: its file is left unchanged.
                Err("it was replaced by another file".to_owned())
            };
            if let Err(error) = renamed {
                let message = format!("cannot add to {}: {error}", path.display());
                self.fail(message);
            }
        }
    }

    /// Completes the output. Returns whether the file has its final name: an empty file does not
    /// (`cpu=old,doe=n`).
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
                // From now on, this file has the name.
                *replaces = true;
                // Where process IDs repeat, another JVM may have created a file of the same name.
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
                let message = format!("cannot finish {}: {error}", self.name());
                self.fail(message);
                false
            }
        }
    }

    /// Closes the output, and notifies the other end. An empty file is removed, unless the disk is full.
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

    /// Buffers output to a socket until [`Self::release`].
    pub fn hold(&mut self) {
        if matches!(self.to, To::Socket(_)) {
            self.held = Some(Vec::new());
        }
    }

    /// Sends the buffered output.
    pub fn release(&mut self) {
        if let Some(held) = self.held.take() {
            self.write(&held);
        }
    }

    /// Writes, unless there was an error before.
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

    /// Records an error: nothing more is written, and the file does not get its final name.
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

    /// No file has the name while it is being written.
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

    /// As root, a file that replaces `/dev/null` breaks the machine.
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
        // If standard output is a file, it is still one of the system's links.
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

    /// In a directory where others can write, another user may know the name in advance.
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
        // A link to the same file, while it is open: the other name is not this file's.
        std::fs::rename(&partial, directory.join("moved")).unwrap();
        std::os::unix::fs::symlink(directory.join("moved"), &partial).unwrap();
        assert!(
            !sink.end() && sink.failure().unwrap().contains("replaced by another file") && !path.exists()
        );

        // A file that everybody can read, and a hard link.
        std::fs::remove_file(&partial).unwrap();
        std::fs::hard_link(&victim, &partial).unwrap();
        std::fs::set_permissions(&victim, std::fs::Permissions::from_mode(0o644)).unwrap();
        let mut sink = Sink::file(path.clone(), true).unwrap();
        sink.write(b"one");
        assert!(sink.end() && victim_is_whole());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

        std::os::unix::fs::symlink(&victim, &partial).unwrap();
        assert!(Sink::append(path).unwrap_err().contains("it is a link"));
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
