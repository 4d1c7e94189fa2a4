//! Long questions: they show progress, are cancelled by a user or after their time limit, and the server continues.

#![cfg(unix)]

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};

use crate::kit::http;
use crate::kit::process::sample;
use crate::server::Server;
use crate::web_driver::{self, Browser, By};

/// A question that waits for ever: somebody else seems to build the index of the baseline.
const SLOW: &str = "/1/diff";

struct Slow {
    server: Server,
    /// Ends the thread that builds, when it is dropped.
    _building: mpsc::Sender<()>,
    _dir: tempfile::TempDir,
}

fn slow(more: &[&str]) -> Slow {
    let dir = tempfile::tempdir().unwrap();
    let baseline = dir.path().join("old.hprof");
    fs::write(&baseline, sample("leaks/s5")).unwrap();
    let index = dir.path().join("old.hprof.index");
    fs::create_dir(&index).unwrap();
    fs::set_permissions(&index, fs::Permissions::from_mode(0o700)).unwrap();
    let lock = File::create(index.join("lock")).unwrap();
    lock.lock().unwrap();
    // The builder touches the lock; a dead one is not trusted for long.
    let (building, ends) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        while ends.recv_timeout(Duration::from_secs(1)) == Err(mpsc::RecvTimeoutError::Timeout) {
            lock.set_modified(SystemTime::now()).unwrap();
        }
    });
    let options = [&["--baseline", baseline.to_str().unwrap()], more].concat();
    let server = Server::start("s1.hprof", &sample("leaks/s1"), &options);
    Slow { server, _building: building, _dir: dir }
}

#[test]
fn a_question_is_cancelled_by_its_own_page_only() {
    let slow = slow(&[]);
    let (server, client) = (&slow.server, slow.server.client());
    client.ready("/1/info");
    let waiting = client.get(SLOW);
    assert_eq!((waiting.status, waiting.header("refresh")), (202, Some("1")), "{}", waiting.text());
    let text = waiting.text();
    let action = text.split("action=\"/cancel").nth(1).unwrap().split('"').next().unwrap();
    let target = format!("/cancel{action}");
    let cancel = |origin: &str| {
        let headers = [("Cookie", client.cookie()), ("Origin", origin)];
        http::request(server.port, "POST", &target, &headers, b"").unwrap().status
    };
    assert_eq!(cancel("http://evil.example"), 403);
    // Others are answered meanwhile.
    assert_eq!(client.ready("/1/dominators").status, 200);
    assert_eq!(client.get(SLOW).status, 202);
    assert_eq!(cancel(&server.origin()), 303);
    let start = Instant::now();
    let mut given_up = client.get(SLOW);
    while given_up.status == 202 && start.elapsed() < Duration::from_secs(20) {
        given_up = client.get(SLOW);
    }
    assert_eq!(given_up.status, 503, "{}", given_up.text());
    assert!(given_up.text().starts_with("<!DOCTYPE html>") && given_up.text().contains("cancelled"));
    assert_eq!(cancel(&server.origin()), 404);
}

#[test]
fn a_question_that_takes_too_long_is_given_up() {
    let slow = slow(&["--question-time", "3s"]);
    let client = slow.server.client();
    client.ready("/1/info");
    let start = Instant::now();
    let document = client.get(&format!("{SLOW}.json"));
    assert_eq!(document.status, 503);
    assert!(start.elapsed() >= Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!(client.ready("/1/histo?sort=instances").status, 200);
}

#[test]
fn long_questions_leave_a_turn_for_short_ones() {
    // More than may be long at once; none ever ends.
    let slow = slow(&["--questions", "4"]);
    let client = slow.server.client();
    client.ready("/1/info");
    let asked: Vec<_> = (1..=8)
        .map(|top| {
            let (port, cookie) = (slow.server.port, client.cookie().to_owned());
            std::thread::spawn(move || {
                let headers = [("Cookie", cookie.as_str()), ("Accept", "text/html")];
                http::request(port, "GET", &format!("{SLOW}?top={top}"), &headers, b"").unwrap().status
            })
        })
        .collect();
    assert!(asked.into_iter().all(|asked| asked.join().unwrap() == 202));
    // JSON is sent when it is complete.
    for sort in ["class", "instances"] {
        assert_eq!(client.get(&format!("/1/histo.json?sort={sort}")).status, 200);
    }
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let parent = format!("PPid:\t{}", slow.server.pid());
    let workers = processes.filter(|process| {
        let status = fs::read_to_string(process.path().join("status")).unwrap_or_default();
        status.lines().any(|line| line == parent)
    });
    // Four of the long ones wait, without a process.
    let workers = workers.count();
    assert!(cfg!(not(target_os = "linux")) || (4..=8).contains(&workers), "{workers} processes");
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn too_many_questions_are_refused_and_forgotten_ones_make_room() {
    let slow = slow(&[]);
    let client = slow.server.client();
    client.ready("/1/info");
    let others: Vec<_> = (0..70)
        .map(|at| {
            let (port, cookie) = (slow.server.port, client.cookie().to_owned());
            std::thread::spawn(move || {
                let target = format!("{SLOW}?top={}", at + 1);
                http::request(port, "GET", &target, &[("Cookie", &cookie), ("Accept", "text/html")], b"")
                    .unwrap()
                    .status
            })
        })
        .collect();
    let statuses: Vec<u16> = others.into_iter().map(|other| other.join().unwrap()).collect();
    assert!(statuses.contains(&202) && statuses.contains(&503), "{statuses:?}");
    // Nobody asks after them any more.
    let start = Instant::now();
    while client.get("/1/histo?sort=class").status != 200 {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn a_dump_that_is_replaced_is_not_mixed_with_the_new_one() {
    let server = Server::start("s1.hprof", &sample("leaks/s1"), &[]);
    let client = server.client();
    assert!(client.ready("/1/overview").text().contains("9,000 x shop.Product"));
    fs::write(server.dump(), sample("leaks/s5")).unwrap();
    for target in ["/1/overview", "/1/histo", "/1/histo.json"] {
        let response = client.get(target);
        assert_eq!(response.status, 500, "{target}");
        assert!(response.text().contains("replaced"), "{target}: {}", response.text());
    }
}

#[test]
fn a_recording_that_is_replaced_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("recording.jfr");
    fs::copy("samples/flight/jdk17-leak.jfr.zst", &recording).unwrap();
    let server =
        Server::start("s1.hprof", &sample("leaks/s1"), &["--recording", recording.to_str().unwrap()]);
    let client = server.client();
    assert_eq!(client.ready("/1/overview").status, 200);
    fs::copy("samples/flight/jdk17.jfr.zst", &recording).unwrap();
    let response = client.get("/1/overview");
    assert_eq!(response.status, 500);
    assert!(response.text().contains("the recording was replaced"), "{}", response.text());
}

#[test]
fn the_memory_of_the_process_is_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let process = dir.path().join("process.smaps");
    fs::copy("samples/process/hello-jdk25-z.smaps", &process).unwrap();
    let server = Server::start("s1.hprof", &sample("leaks/s1"), &["--process", process.to_str().unwrap()]);
    let client = server.client();
    let page = client.ready("/1/memory");
    assert_eq!(page.status, 200);
    // The process of the file, and the command that shows the same.
    assert!(
        page.text().contains("class archive (CDS)") && page.text().contains("--process"),
        "{}",
        page.text()
    );
    fs::copy("samples/process/mix-jdk17-g1.smaps", &process).unwrap();
    let response = client.get("/1/memory");
    assert_eq!(response.status, 500);
    assert!(response.text().contains("the file about the process was replaced"), "{}", response.text());
}

#[test]
fn a_browser_can_cancel() {
    let Some(found) = web_driver::find("a_browser_can_cancel") else { return };
    let slow = slow(&[]);
    let browser = Browser::start(found, false);
    slow.server.client().ready("/1/overview");
    browser.open(&slow.server.url);
    browser.wait_for_path(|path| path == "/1/overview");
    browser.open(&format!("{}{SLOW}", slow.server.origin()));
    assert_eq!(browser.text("h1"), "Working on it");
    // The page comes again by itself, so a button may be gone when it is clicked.
    let button = browser.one(By::Css("form[action^='/cancel'] button"));
    browser.click_on(&button);
    browser.wait_for_path(|path| path == "/1/overview");
    assert_eq!(slow.server.client().get(SLOW).status, 503);
}
