//! Latency of pages: random objects, classes and trees of a dump, requested by one client and by eight.
//!
//! `HPROF_CLI_BENCH_DUMP=heap.hprof cargo bench --bench pages`, with `HPROF_CLI_BENCH_REQUESTS=1000` requests of each
//! kind; `HPROF_CLI_BENCH_GROWTH` is the number of requests for measuring the growth of memory. Prints median and
//! 99th percentile in milliseconds, and the resident memory of the server with its workers. The server caches
//! answers, so no page is requested twice.

#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    clippy::expect_used
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

struct Server {
    child: Child,
    host: String,
    cookie: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program: this one, or another build.
fn program() -> std::ffi::OsString {
    std::env::var_os("HPROF_CLI_BENCH_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_hprof-cli").into())
}

/// A connection that stays open.
struct Client {
    stream: BufReader<TcpStream>,
    host: String,
    cookie: String,
}

impl Client {
    fn new(server: &Server) -> Self {
        let stream = TcpStream::connect(&server.host).expect("the server listens");
        stream.set_nodelay(true).expect("a socket");
        Self { stream: BufReader::new(stream), host: server.host.clone(), cookie: server.cookie.clone() }
    }

    /// Status, headers and body of a page.
    fn get(&mut self, path: &str) -> (u16, String, Vec<u8>) {
        let (host, cookie) = (&self.host, &self.cookie);
        let head =
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\nAccept: text/html\r\n\r\n");
        self.stream.get_mut().write_all(head.as_bytes()).expect("a request");
        let (mut headers, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).expect("a response");
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
            if line == "\r\n" {
                break;
            }
            headers.push_str(&line);
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).expect("a body");
        let status = headers.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, headers, body)
    }
}

fn start(dump: &PathBuf) -> Server {
    let mut child = Command::new(program())
        .args(["serve", "--port", "0"])
        .arg(dump)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut line).expect("a line");
    let (host, token) = line.trim().trim_start_matches("http://").split_once('/').expect("an address");
    let mut server = Server { child, host: host.to_owned(), cookie: String::new() };
    let (_, headers, _) = Client::new(&server).get(&format!("/{token}"));
    let cookie = headers.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie");
    server.cookie = cookie.split(';').next().unwrap_or_default().to_owned();
    let mut client = Client::new(&server);
    while client.get("/1/dominators").0 == 202 {
        std::thread::sleep(Duration::from_millis(200));
    }
    server
}

/// IDs of objects and names of classes, from answers of the program.
fn ids(dump: &PathBuf, arguments: &[&str], key: &str) -> Vec<String> {
    let output = Command::new(program())
        .args(arguments)
        .arg("--format=json")
        .arg("-q")
        .arg(dump)
        .output()
        .expect("the program");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a document");
    let rows = document["rows"].as_array().cloned().unwrap_or_default();
    rows.iter().filter_map(|row| row[key].as_str().map(str::to_owned)).collect()
}

/// Random numbers (xorshift, Marsaglia 2003), the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[usize::try_from(self.next() % all.len() as u64).expect("a place")]
    }
}

/// Objects that references lead to from the given ones: random, and not only the largest.
fn objects(server: &Server, from: &[String], wanted: usize) -> Vec<String> {
    let (mut client, mut random, mut all) = (Client::new(server), Random(42), from.to_vec());
    let mut known: std::collections::HashSet<String> = all.iter().cloned().collect();
    while all.len() < wanted {
        let id = random.of(&all).clone();
        let (status, _, body) = client.get(&format!("/1/object/{id}"));
        if status != 200 {
            continue;
        }
        let text = String::from_utf8_lossy(&body).into_owned();
        for part in text.split("/1/object/").skip(1) {
            let id: String = part.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
            if known.insert(id.clone()) {
                all.push(id);
            }
        }
    }
    all
}

fn measure(name: &str, server: &Server, paths: &[String], clients: usize) {
    let next = AtomicUsize::new(0);
    let times = std::sync::Mutex::new(Vec::new());
    let late = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                let (mut client, mut own) = (Client::new(server), Vec::new());
                while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let start = Instant::now();
                    let (status, _, _) = client.get(path);
                    own.push(start.elapsed());
                    late.fetch_add(usize::from(status != 200), Ordering::Relaxed);
                }
                times.lock().expect("times").extend(own);
            });
        }
    });
    let mut times = times.into_inner().expect("times");
    times.sort_unstable();
    let at = |part: usize| times[(times.len() - 1) * part / 100].as_secs_f64() * 1000.0;
    println!(
        "{name:12} {clients} clients  {} requests  p50 {:7.1} ms  p99 {:7.1} ms  max {:7.1} ms  not 200: {}",
        times.len(),
        at(50),
        at(99),
        at(100),
        late.load(Ordering::Relaxed)
    );
}

/// Proportional resident memory of a process and its children, in MiB: what is shared is shared out.
fn resident(server: &Server) -> (u64, u64) {
    let own = server.child.id();
    let children = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
    let mut all: Vec<String> = children.split_whitespace().map(str::to_owned).collect();
    for task in std::fs::read_dir(format!("/proc/{own}/task")).into_iter().flatten().flatten() {
        let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        all.extend(children.split_whitespace().map(str::to_owned));
    }
    all.push(own.to_string());
    all.sort();
    all.dedup();
    let of = |key: &str| {
        let of_process = |process: &String| {
            let text = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
            let lines = text.lines().filter(|line| line.starts_with(key));
            lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum::<u64>()
        };
        all.iter().map(of_process).sum::<u64>() / 1024
    };
    (of("Pss:"), of("Pss_Anon:"))
}

fn main() {
    let Some(dump) = std::env::var_os("HPROF_CLI_BENCH_DUMP").map(PathBuf::from) else {
        println!("HPROF_CLI_BENCH_DUMP names no dump: nothing is measured");
        return;
    };
    let number = |name: &str, default: usize| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let requests = number("HPROF_CLI_BENCH_REQUESTS", 1000);
    let server = start(&dump);
    let top = ids(&dump, &["dominators", "--top=200"], "object");
    let classes = ids(&dump, &["classes"], "class_object");
    let all = objects(&server, &top, requests * 6);
    let mut random = Random(7);
    let mut taken = std::collections::HashSet::new();
    let mut paths = |form: &str, from: &[String]| -> Vec<String> {
        let mut paths = Vec::new();
        // Small dumps have fewer.
        for _ in 0..requests * 50 {
            let path = form.replace("{}", random.of::<String>(from));
            if paths.len() < requests && taken.insert(path.clone()) {
                paths.push(path);
            }
        }
        paths
    };
    println!("resident {:?} MiB (proportional; anonymous)", resident(&server));
    for clients in [1, 8] {
        measure("object", &server, &paths("/1/object/{}", &all), clients);
        measure("class", &server, &paths(&format!("/1/class/{{}}?c={clients}"), &classes), clients);
        measure("tree", &server, &paths("/1/dominators?of={}", &all), clients);
        measure("treemap", &server, &paths(&format!("/1/treemap?of={{}}&c={clients}"), &top), clients);
    }
    println!("resident {:?} MiB (proportional; anonymous)", resident(&server));
    let growth = number("HPROF_CLI_BENCH_GROWTH", 0);
    let mut done = 0;
    while done < growth {
        let part = 10_000.min(growth - done);
        // Mostly what is quick: the question is what stays, not how long it takes.
        let paths: Vec<String> = (done..done + part)
            .map(|at| {
                let page = if at % 10 == 0 { "object/" } else { "dominators?of=" };
                let separator = if at % 10 == 0 { '?' } else { '&' };
                format!("/1/{page}{}{separator}c={at}", random.of::<String>(&all))
            })
            .collect();
        measure("growth", &server, &paths, 8);
        done += part;
        println!("after {done}: resident {:?} MiB (proportional; anonymous)", resident(&server));
    }
}
