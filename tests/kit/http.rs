//! Requests over plain HTTP, one connection each.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Longer than any answer takes on any machine.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    /// Returns the first value of a header, whose name is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// Sends a request to a server on this machine, and reads the entire response.
pub fn request(
    port: u16,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> io::Result<Response> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut head = format!("{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("Content-Length: {}\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), body].concat())?;
    read(&mut BufReader::new(stream))
}

fn read(stream: &mut impl BufRead) -> io::Result<Response> {
    let first = line(stream)?;
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| io::Error::other(format!("no response: {first:?}")))?;
    let mut headers = Vec::new();
    loop {
        let header = line(stream)?;
        match header.split_once(':') {
            Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.trim().to_owned())),
            None => break,
        }
    }
    let mut response = Response { status, headers, body: Vec::new() };
    if response.header("transfer-encoding") == Some("chunked") {
        loop {
            let size = u64::from_str_radix(&line(stream)?, 16).map_err(io::Error::other)?;
            exactly(stream, size, &mut response.body)?;
            line(stream)?;
            if size == 0 {
                return Ok(response);
            }
        }
    }
    match response.header("content-length").and_then(|length| length.parse().ok()) {
        Some(length) => exactly(stream, length, &mut response.body)?,
        None => {
            stream.read_to_end(&mut response.body)?;
        }
    }
    Ok(response)
}

fn line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

fn exactly(stream: &mut impl BufRead, size: u64, into: &mut Vec<u8>) -> io::Result<()> {
    let read = stream.take(size).read_to_end(into)?;
    if read as u64 == size { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// A client that a server of pages has admitted.
pub struct Client {
    port: u16,
    cookie: String,
}

impl Client {
    /// Exchanges the token of an address that the server has printed for a cookie.
    pub fn enter(port: u16, url: &str) -> Self {
        let target = url.strip_prefix(&format!("http://127.0.0.1:{port}")).unwrap();
        let entered = request(port, "GET", target, &[], &[]).unwrap();
        assert_eq!((entered.status, entered.header("location")), (303, Some("/")));
        let cookie = entered.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        Self { port, cookie }
    }

    /// Returns its cookie, as in a Cookie header.
    pub fn cookie(&self) -> &str {
        &self.cookie
    }

    /// Returns the server's current response at an address.
    pub fn get(&self, target: &str) -> Response {
        let headers = [("Cookie", self.cookie.as_str()), ("Accept", "text/html,*/*")];
        request(self.port, "GET", target, &headers, &[]).unwrap_or_else(|error| panic!("{target}: {error}"))
    }

    /// Returns the response at an address once the server has finished it.
    pub fn ready(&self, target: &str) -> Response {
        let start = Instant::now();
        loop {
            let response = self.get(target);
            if !matches!(response.status, 202 | 503) {
                return response;
            }
            assert!(response.header("refresh").or(response.header("retry-after")).is_some(), "{target}");
            assert!(start.elapsed() < PATIENCE, "{target} is not ready");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}
