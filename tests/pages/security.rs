//! Access control and output, tested by a client that follows no rules.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::kit::http;
use crate::server::Server;

/// A small server.
fn server() -> Server {
    Server::of("leaks/s1.hprof")
}

/// Sends bytes and reads what comes back, until the server closes or is silent for a while.
fn raw(port: u16, bytes: &[u8], patience: Duration) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(patience)).unwrap();
    // It may close while it is still being written to.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

fn status(answer: &[u8]) -> Option<u16> {
    let text = String::from_utf8_lossy(answer);
    text.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()
}

/// The status of a request with these headers and no others.
fn asked(server: &Server, target: &str, headers: &str) -> Option<u16> {
    status(&raw(
        server.port,
        format!("GET {target} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n").as_bytes(),
        Duration::from_secs(60),
    ))
}

#[test]
fn only_who_has_the_cookie_gets_in_under_a_name_of_this_machine() {
    let (server, other) = (server(), server());
    let (port, cookie) = (server.port, server.client().cookie().to_owned());
    let good = format!("Host: 127.0.0.1:{port}\r\nCookie: {cookie}\r\n");
    server.client().ready("/1/info");
    assert_eq!(asked(&server, "/1/info", &good), Some(200));
    for host in [
        format!("localhost:{port}"),
        "127.0.0.1:1".to_owned(),
        "[::1]:7000".to_owned(),
        "localhost".to_owned(),
    ] {
        assert_eq!(
            asked(&server, "/1/info", &format!("Host: {host}\r\nCookie: {cookie}\r\n")),
            Some(200),
            "{host}"
        );
    }
    for host in [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "0.0.0.0",
        "[::2]",
        "127.0.0.1@evil",
        "10.0.0.1",
    ] {
        let headers = format!("Host: {host}:{port}\r\nCookie: {cookie}\r\n");
        for target in ["/1/info", "/", "/assets/style.css", "/1/info.json"] {
            let status = asked(&server, target, &headers);
            assert!(matches!(status, Some(403 | 400)), "{host} {target}: {status:?}");
        }
    }
    // Two of them, or none.
    assert!(matches!(asked(&server, "/1/info", &format!("Host: evil.example\r\n{good}")), Some(400 | 403)));
    assert!(matches!(asked(&server, "/1/info", &format!("Cookie: {cookie}\r\n")), Some(400 | 403)));
    for wrong in [
        "Origin: http://evil.example\r\n",
        "Origin: null\r\n",
        "Origin: https://127.0.0.1\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
    ] {
        assert_eq!(asked(&server, "/1/info", &format!("{good}{wrong}")), Some(403), "{wrong}");
    }
    let own = format!("{good}Origin: http://127.0.0.1:{port}\r\nSec-Fetch-Site: same-origin\r\n");
    assert_eq!(asked(&server, "/1/info", &own), Some(200));
    // No cookie, a wrong one, that of another server; the token of another server.
    let host = format!("Host: 127.0.0.1:{port}\r\n");
    assert_eq!(asked(&server, "/1/info", &host), Some(403));
    assert_eq!(asked(&server, "/assets/style.css", &host), Some(403));
    let (name, value) = cookie.split_once('=').unwrap();
    for wrong in [
        format!("{name}={}", "0".repeat(value.len())),
        format!("x={value}"),
        other.client().cookie().to_owned(),
        format!("{name}="),
    ] {
        assert_eq!(asked(&server, "/1/info", &format!("{host}Cookie: {wrong}\r\n")), Some(403), "{wrong}");
    }
    let token = |server: &Server| server.url.split_once("token=").unwrap().1.to_owned();
    let (own, others) = (token(&server), token(&other));
    assert_eq!(asked(&server, &format!("/?token={others}"), &host), Some(403));
    assert_eq!(asked(&server, "/?token=", &host), Some(403));
    assert_eq!(asked(&server, &format!("/1/info?token={own}"), &host), Some(403));
    // Valid until the server ends.
    for _ in 0..3 {
        assert_eq!(asked(&server, &format!("/?token={own}"), &host), Some(303));
    }
    // The token does not help under a foreign name.
    assert_eq!(asked(&server, &format!("/?token={own}"), "Host: evil.example\r\n"), Some(403));
}

#[test]
fn the_cookie_is_for_this_site_alone_and_answers_say_what_may_run() {
    let server = server();
    let target = server.url.strip_prefix(&server.origin()).unwrap();
    let entered = http::request(server.port, "GET", target, &[], &[]).unwrap();
    let cookie = entered.header("set-cookie").unwrap();
    assert!(
        cookie.contains("; HttpOnly") && cookie.contains("; SameSite=Strict") && !cookie.contains("Domain"),
        "{cookie}"
    );
    assert!(cookie.starts_with("hprof_cli_"), "{cookie}");
    // The address bar does not keep the token.
    assert_eq!(entered.header("location"), Some("/"));
    let client = server.client();
    for target in ["/1/info", "/1/info.json", "/assets/script.js", "/1/nothing", "/x"] {
        let response = client.ready(target);
        let policy = response.header("content-security-policy").unwrap();
        assert!(
            policy.contains("default-src 'none'") && !policy.contains("unsafe") && !policy.contains("http"),
            "{policy}"
        );
        for part in [
            "base-uri 'none'",
            "form-action 'self'",
            "frame-ancestors 'none'",
            "script-src 'self'",
            "style-src 'self'",
        ] {
            assert!(policy.contains(part), "{part}: {policy}");
        }
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"), "{target}");
        assert_eq!(response.header("referrer-policy"), Some("no-referrer"), "{target}");
        assert_eq!(response.header("access-control-allow-origin"), None, "{target}");
    }
    assert_eq!(client.ready("/1/info").header("cache-control"), Some("no-store"));
}

#[test]
fn who_is_not_let_in_is_told_how_to_get_in_and_nothing_of_the_dump() {
    let server = server();
    server.client().ready("/1/overview");
    // The other Host makes two of them.
    let others = [("Sec-Fetch-Site", "cross-site"), ("Host", "box")];
    for (more, says) in [(None, "?token="), (Some(others[0]), "--share"), (Some(others[1]), "ssh -L")] {
        let headers: Vec<_> = [("Accept", "text/html,*/*")].into_iter().chain(more).collect();
        let response = http::request(server.port, "GET", "/1/overview", &headers, b"").unwrap();
        let text = response.text();
        assert_eq!((response.status, response.header("set-cookie")), (403, None), "{more:?}");
        assert!(text.starts_with("<!DOCTYPE html>") && text.contains(says), "{more:?}: {text}");
        let token = server.url.split_once("token=").unwrap().1;
        for secret in [token, "s1", "shop", "/assets/"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }
    // A program gets a line.
    let response = http::request(server.port, "GET", "/1/histo.csv", &[], b"").unwrap();
    assert_eq!((response.status, response.text().lines().count()), (403, 1), "{}", response.text());
}

#[test]
fn a_shared_address_lets_one_in_from_a_message() {
    let server = Server::start("s1.hprof", &crate::kit::process::sample("leaks/s1"), &["--share"]);
    let of = |url: &str| url.strip_prefix(&server.origin()).unwrap().to_owned();
    let (own, shared) = (of(&server.url), of(server.shared.as_ref().unwrap()));
    assert_ne!(own, shared);
    let link =
        [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")];
    let follow = |target: &str| http::request(server.port, "GET", target, &link, b"").unwrap();
    assert_eq!(follow(&own).status, 403);
    let entered = follow(&shared);
    let (refresh, cookie) = (entered.header("refresh"), entered.header("set-cookie").unwrap());
    assert_eq!((entered.status, refresh), (200, Some("0; url=/")), "{}", entered.text());
    let cookie = cookie.split(';').next().unwrap();
    let inside = http::request(server.port, "GET", "/", &[("Cookie", cookie)], b"").unwrap();
    assert_eq!(inside.status, 303);
    // Once; the one who started the server is not shut out.
    assert_eq!(follow(&shared).status, 403);
    assert_eq!(http::request(server.port, "GET", &shared, &[], b"").unwrap().status, 403);
    assert_eq!(server.client().ready("/1/info").status, 200);
}

#[test]
fn no_path_leads_to_a_file() {
    let server = server();
    let client = server.client();
    client.ready("/1/info");
    for path in [
        "/etc/passwd",
        "/../etc/passwd",
        "/1/../../etc/passwd",
        "/1/..%2f..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/assets/../Cargo.toml",
        "/assets/%2e%2e%2fstyle.css",
        "/assets//style.css",
        "//etc/passwd",
        "/1//histo",
        "/1/histo/..",
        "/1/flamegraph.csv",
        "/1/nothing.csv",
        "/1/histo.csv.csv",
        "/1/%00",
        "/1/object/%00",
        "/1/object/../../etc/passwd",
        "/1/object/0x%2e%2e",
        "/1/object/0xfffffffffffffffff",
        "/1/class/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/1/%",
        "/1/%zz",
        "/01/histo",
        "/+1/histo",
        "/2/histo",
        "/0/histo",
        "/-1/histo",
        "/18446744073709551616/histo",
        "/1/serve",
        "/1/report",
        "/1/convert",
        "/1/man",
        "/1/index",
        "/1/check",
    ] {
        let response = client.ready(path);
        let body = String::from_utf8_lossy(&response.body).into_owned();
        assert!((400..500).contains(&response.status), "{path}: {}", response.status);
        assert!(!body.contains("root:") && !body.contains("[package]"), "{path}");
    }
    // Text that looks like an option or a file is treated as a value.
    for target in [
        "/1/histo?pattern=--index-dir%3D%2Ftmp",
        "/1/histo?index-dir=%2Ftmp%2Fevil",
        "/1/oql?q=SELECT+1+FROM+java.lang.Object&file=%2Fetc%2Fpasswd",
        "/1/sql?q=SELECT+1&file=%2Fetc%2Fpasswd",
        "/1/sql?q=ATTACH+%27%2Ftmp%2Fevil%27+AS+x",
        "/1/sql?q=SELECT+1&attach=x%3D%2Fetc%2Fpasswd",
        "/1/instances?class=%2Fetc%2Fpasswd",
        "/1/flamegraph?output=%2Ftmp%2Fevil",
        "/1/strings?output=%2Ftmp%2Fevil",
    ] {
        let body = String::from_utf8_lossy(&client.ready(target).body).into_owned();
        assert!(!body.contains("root:x:"), "{target}");
    }
    assert!(!std::path::Path::new("/tmp/evil").exists());
}

#[test]
fn other_methods_change_nothing() {
    let server = server();
    let cookie = server.client().cookie().to_owned();
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
        let headers = [("Cookie", cookie.as_str())];
        let response = http::request(server.port, method, "/1/info", &headers, b"a=b").unwrap();
        assert_eq!(response.status, 405, "{method}");
    }
    // Nobody cancels from elsewhere.
    let headers = [("Cookie", cookie.as_str()), ("Origin", "http://evil.example")];
    assert_eq!(http::request(server.port, "POST", "/cancel?question=1", &headers, b"").unwrap().status, 403);
    assert_eq!(
        http::request(server.port, "GET", "/cancel?question=1", &[("Cookie", &cookie)], b"").unwrap().status,
        404
    );
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn rubbish_and_heads_without_end_are_refused() {
    let server = server();
    let port = server.port;
    for rubbish in [
        &b"GET /\r\n"[..],
        b"GET / HTTP/0.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\r\n\r\n\r\n",
        b"GET",
        b"GET / HTTP/1.1\nHost 127.0.0.1\n\n",
        b"\0\0\0\0\0\0",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"CONNECT evil.example:80 HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    ] {
        let answer = raw(port, rubbish, Duration::from_secs(2));
        assert!(
            status(&answer).is_none_or(|status| (400..500).contains(&status)),
            "{:?}",
            String::from_utf8_lossy(&answer)
        );
        assert!(!String::from_utf8_lossy(&answer).contains("shop"));
    }
    let long = "a".repeat(1 << 20);
    for head in [
        format!("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: {long}\r\n\r\n"),
        format!("GET /{long} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n{}\r\n", "X: y\r\n".repeat(20_000)),
    ] {
        let answer = raw(port, head.as_bytes(), Duration::from_secs(12));
        assert!(
            status(&answer).is_none_or(|status| matches!(status, 400 | 403 | 414 | 431)),
            "{:?}",
            status(&answer)
        );
    }
    assert_eq!(server.client().ready("/1/info").status, 200);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = server();
    let client = server.client();
    client.ready("/1/info");
    let one = |target: &str| {
        format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {}\r\n\r\n", client.cookie())
    };
    let all: String =
        (0..100).map(|at| one(if at % 2 == 0 { "/1/info.json" } else { "/assets/icon.svg" })).collect();
    let answer =
        String::from_utf8_lossy(&raw(server.port, all.as_bytes(), Duration::from_secs(3))).into_owned();
    let types: Vec<&str> = answer.lines().filter_map(|line| line.strip_prefix("content-type: ")).collect();
    assert_eq!(types.len(), 100);
    assert!(types.chunks(2).all(|pair| pair == ["application/json", "image/svg+xml"]));
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn clients_that_send_nothing_keep_nobody_out() {
    let server = server();
    let client = server.client();
    client.ready("/1/info");
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let maximum = getrlimit(Resource::Nofile).maximum;
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
    let mut slow = Vec::new();
    for at in 0..1000 {
        match TcpStream::connect(("127.0.0.1", server.port)) {
            Ok(mut stream) => {
                let _ = stream.write_all(b"G");
                slow.push(stream);
            }
            Err(error) => panic!("connection {at}: {error}"),
        }
        if at % 100 == 99 {
            let start = Instant::now();
            assert_eq!(client.get("/1/info").status, 200);
            assert!(start.elapsed() < Duration::from_secs(10), "{:?} beside {at}", start.elapsed());
        }
    }
    assert_eq!(slow.len(), 1000);
    // They are closed before long.
    let mut last = slow.pop().unwrap();
    last.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut rest = Vec::new();
    let _ = last.read_to_end(&mut rest);
    assert!(String::from_utf8_lossy(&rest).starts_with("HTTP/1.1 408") || rest.is_empty());
}

/// A client that requests much and reads nothing shares the memory with others like it.
#[cfg(target_os = "linux")]
#[test]
fn clients_that_read_nothing_share_one_answer() {
    let server = server();
    let client = server.client();
    let target = "/1/dominators?depth=50&top=1000";
    let headers = [("Cookie", client.cookie()), ("Accept", "application/json")];
    while crate::kit::http::request(server.port, "GET", target, &headers, b"").unwrap().status != 200 {
        std::thread::sleep(Duration::from_millis(100));
    }
    let resident = || -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    };
    let head = format!(
        "GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAccept: application/json\r\nCookie: {}\r\n\r\n",
        server.port,
        client.cookie()
    );
    let before = resident();
    let mut all: Vec<TcpStream> = (0..60)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
            stream.write_all(head.as_bytes()).unwrap();
            stream
        })
        .collect();
    // All have the beginning of it.
    let bytes = all.iter_mut().map(|stream| {
        let mut start = vec![0; 2000];
        stream.read_exact(&mut start).unwrap();
        let start = String::from_utf8_lossy(&start).to_lowercase();
        let (_, length) = start.split_once("content-length: ").unwrap();
        length.split_once("\r\n").unwrap().0.parse::<u64>().unwrap()
    });
    let bytes = bytes.min().unwrap();
    assert!(bytes > 1 << 20, "{bytes}");
    let more = resident().saturating_sub(before) << 10;
    assert!(more < 20 * bytes, "{more} bytes for 60 times {bytes}");
}

#[test]
fn ten_thousand_requests_on_one_connection() {
    let server = server();
    let client = server.client();
    client.ready("/1/info");
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let head =
        format!("GET /assets/icon.svg HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {}\r\n\r\n", client.cookie());
    let (mut answered, mut buffer) = (0, vec![0; 1 << 16]);
    let mut tail = String::new();
    for _ in 0..100 {
        stream.write_all(head.repeat(100).as_bytes()).unwrap();
        let mut of_part = 0;
        while of_part < 100 {
            let read = stream.read(&mut buffer).unwrap();
            assert!(read > 0, "closed after {answered}");
            tail.push_str(&String::from_utf8_lossy(&buffer[..read]));
            let found = tail.matches("HTTP/1.1 200").count();
            if let Some(at) = tail.rfind("HTTP/1.1 200") {
                tail = tail[at + "HTTP/1.1 200".len()..].to_owned();
            }
            of_part += found;
            answered += found;
        }
    }
    assert_eq!(answered, 10_000);
    assert_eq!(client.ready("/1/info").status, 200);
}

#[test]
fn a_question_that_takes_too_much_ends_and_the_server_does_not() {
    // No dump can be opened with so little.
    let bytes = crate::kit::process::sample("leaks/s1");
    let server = Server::start("s1.hprof", &bytes, &["--question-memory", "1MiB"]);
    let client = server.client();
    let mut response = client.get("/1/dominators");
    while response.status == 202 {
        std::thread::sleep(Duration::from_millis(200));
        response = client.get("/1/dominators");
    }
    assert_eq!(response.status, 503, "{}", response.text());
    assert!(response.text().contains("this query was stopped"), "{}", response.text());
    assert_eq!(client.get("/assets/style.css").status, 200);
    let document = client.get("/1/dominators.json");
    assert_eq!(document.status, 503);
    assert!(document.json()["error"].as_str().unwrap().contains("this query was stopped"));
}
