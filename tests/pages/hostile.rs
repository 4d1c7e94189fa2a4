//! Names and texts that are markup: on every page they are text.

use crate::html;
use crate::kit::evil;
use crate::server::Server;
use crate::targets;
use crate::web_driver::{self, Browser};

/// Closes whatever it may stand in, and runs a script if it is let.
const EVIL: &str = "=\"'`--></title></script><script>alert(1)</script><img src=x onerror=alert(2)>&amp;<svg onload=alert(3)>\u{202e}\u{1b}[2J\u{7}";

/// Returns whether a browser would not display it literally.
fn is_harmful(c: char) -> bool {
    let code = u32::from(c);
    code < 0x20 && !matches!(c, '\n' | '\t')
        || (0x7F..=0x9F).contains(&code)
        || (0x202A..=0x202E).contains(&code)
        || (0x2066..=0x2069).contains(&code)
}

/// Every kind of page of the dump in which everything has that name.
pub fn targets(made: &evil::Made) -> Vec<String> {
    let encoded: String = form_urlencoded::byte_serialize(EVIL.replace('/', ".").as_bytes()).collect();
    let encoded = encoded.replace('+', "%20");
    let ids = [made.instance.0, made.text.0, made.thread.0, made.class.0];
    let mut all: Vec<String> = targets::OF_DUMP.iter().map(|page| format!("/1/{page}")).collect();
    for id in ids {
        let of_object = targets::OF_OBJECT.iter().map(|page| page.replace("{}", &format!("{id:#x}")));
        all.extend(of_object.map(|page| format!("/1/{page}")));
    }
    // Parameters that appear on the page.
    for page in [
        "class/{}",
        "object/{}",
        "search?q={}",
        "oql?q={}",
        "sql?q={}",
        "instances?class={}",
        "instances?class=java.lang.Thread&where={}",
        "histo?pattern={}",
        "histo?sort={}",
        "strings?pattern={}",
        "threads?thread={}",
        "flamegraph?zoom={}",
        "diff?pattern={}",
        "diff?group-by={}",
        "refs?of={}",
        "{}",
        "histo?top={}",
        "waste?kind={}",
        "treemap?of={}",
        "leaks?threshold={}",
    ] {
        all.push(format!("/1/{}", page.replace("{}", &encoded)));
    }
    all
}

/// A server of the dump, compared with itself.
pub fn server() -> (Server, evil::Made) {
    let made = evil::made(EVIL);
    let bytes = std::fs::read(&made.dump).unwrap();
    let baseline = made.dump.to_str().unwrap().to_owned();
    (Server::start("evil.hprof", &bytes, &["--baseline", &baseline]), made)
}

#[test]
fn nothing_of_a_dump_or_an_address_is_markup() {
    let (server, made) = server();
    let client = server.client();
    let (mut shown, mut wrong) = (0, Vec::new());
    for target in targets(&made) {
        let response = client.ready(&target);
        let text = response.text();
        assert!(response.status < 500, "{target}: {} {text}", response.status);
        shown += usize::from(text.contains("alert(1)"));
        for bad in ["<script>alert", "<img", "<svg onload", "\"=\"'", "--></title"] {
            if text.contains(bad) {
                wrong.push(format!("{target}: {bad}"));
            }
        }
        if let Some(at) = text.find(is_harmful) {
            wrong.push(format!(
                "{target}: {:?}",
                text[at.saturating_sub(40)..].chars().take(80).collect::<String>()
            ));
        }
        for tag in html::tags(&text) {
            if tag.attributes().any(|name| name.starts_with("on") || name == "style") {
                wrong.push(format!("{target}: {tag:?}"));
            }
        }
        let json = target
            .split_once('?')
            .map_or(format!("{target}.json"), |(path, query)| format!("{path}.json?{query}"));
        let document = client.ready(&json);
        assert_eq!(document.header("content-type"), Some("application/json"), "{json}");
        assert!(document.status < 500, "{json}: {}", document.status);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // It appears as text.
    assert!(shown > 40, "{shown}");
}

#[test]
fn no_browser_runs_a_name() {
    let Some(found) = web_driver::find("no_browser_runs_a_name") else { return };
    let (server, made) = server();
    let (browser, client) = (Browser::start(found, true), server.client());
    browser.open(&server.url);
    for target in targets(&made) {
        client.ready(&target);
        // An alert would make this, or the next, fail.
        browser.open(&format!("{}{target}", server.origin()));
    }
    let console = browser.console();
    // The browser reports missing pages, too.
    let wrong: Vec<&String> =
        console.iter().filter(|line| !line.contains("the server responded with a status of")).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let foreign: Vec<String> =
        browser.requests().into_iter().filter(|url| !url.starts_with(&server.origin())).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
}
