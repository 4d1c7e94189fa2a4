//! `serve` as a process, and a client that it lets in.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Child;

use crate::kit::http::Client;
use crate::kit::process::{Place, sample};

/// A server of one dump, which lies in a directory of its own.
pub struct Server {
    place: Place,
    child: Child,
    pub port: u16,
    /// The address that was printed, with the token.
    pub url: String,
    /// With `--share`, the one for somebody else.
    pub shared: Option<String>,
}

impl Server {
    /// The number of its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Of a sample, unpacked; `name` is its path below `samples`, without `.zst`.
    pub fn of(name: &str) -> Self {
        let bytes = match name.strip_suffix(".hprof") {
            Some(name) => sample(name),
            None => std::fs::read(format!("samples/{name}")).unwrap(),
        };
        Self::start(Path::new(name).file_name().unwrap().to_str().unwrap(), &bytes, &[])
    }

    /// Of a dump of these bytes.
    pub fn start(name: &str, bytes: &[u8], more: &[&str]) -> Self {
        let place = Place::new(name, bytes);
        let mut command = place.command(&[&["serve", "--port", "0"], more].concat());
        command.stderr(File::create(place.path("stderr")).unwrap());
        let mut child = command.spawn().unwrap();
        let mut url = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut url).unwrap();
        let url = url.trim_end().to_owned();
        let port = url
            .strip_prefix("http://127.0.0.1:")
            .and_then(|rest| rest.split_once("/?token=")?.0.parse().ok());
        let Some(port) = port else {
            let _ = child.kill();
            let said = std::fs::read_to_string(place.path("stderr")).unwrap();
            panic!("no address: {url:?}; {:?}: {said}", child.wait());
        };
        let shared = more.contains(&"--share").then(|| {
            let mut line = String::new();
            lines.read_line(&mut line).unwrap();
            line.trim_end().to_owned()
        });
        Self { place, child, port, url, shared }
    }

    /// Returns the prefix of all its addresses.
    pub fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The dump.
    pub fn dump(&self) -> &Path {
        &self.place.dump
    }

    /// Returns a command's answer about the dump.
    pub fn command(&self, arguments: &[&str]) -> Vec<u8> {
        let output = self.place.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        output.stdout
    }

    /// Returns its output on stderr.
    pub fn stderr(&self) -> String {
        std::fs::read_to_string(self.place.path("stderr")).unwrap()
    }

    /// A client that has exchanged the token for a cookie.
    pub fn client(&self) -> Client {
        Client::enter(self.port, &self.url)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
