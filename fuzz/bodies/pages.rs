//! Any bytes as a dump that is shown in a browser, and any text as requests for pages.

// The checks of pages.
#[path = "../../tests/pages/html.rs"]
#[allow(dead_code, clippy::unwrap_used)]
mod html;
// The requested pages.
#[path = "../../tests/pages/targets.rs"]
mod targets;

use super::{DUMP, Place};
use hprof_cli::fuzzing::{DumpPages, PageReply, is_harmful};

/// Number of objects whose pages are requested.
const OBJECTS: usize = 3;
/// Maximum number of requests of one input, and of their bytes.
const MAX_REQUESTS: usize = 8;
const MAX_BYTES: usize = 4096;

/// Shows bytes as a dump; those that begin with a slash are requests for pages of a small dump, one a line.
pub fn pages(bytes: &[u8]) {
    if bytes.first() == Some(&b'/') {
        return requests(bytes);
    }
    let place = Place::new(bytes);
    let pages = DumpPages::new(&place.file(), Some(place.file()), &place.index_dir("pages"));
    let mut objects = Vec::new();
    let mut shown = 0;
    for target in targets::OF_DUMP {
        let page = format!("/1/{target}");
        let (html, _) = both(&pages, &page);
        shown += usize::from(html.status == 200);
        if objects.len() < OBJECTS {
            links(&html, &mut objects);
        }
    }
    // An input that cannot be opened is reported on each page.
    objects.truncate(if shown == 0 { 0 } else { OBJECTS });
    for object in &objects {
        for target in targets::OF_OBJECT {
            both(&pages, &format!("/1/{}", target.replace("{}", object)));
        }
    }
}

/// Objects that a page links to.
fn links(html: &PageReply, objects: &mut Vec<String>) {
    let text = String::from_utf8_lossy(&html.body);
    for (_, rest) in text.match_indices("/1/object/").map(|(at, found)| text.split_at(at + found.len())) {
        let id: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
        if !objects.contains(&id) && objects.len() < OBJECTS {
            objects.push(id);
        }
    }
}

fn requests(bytes: &[u8]) {
    thread_local! {
        // The files exist as long as the pages.
        static OPENED: (DumpPages, Place) = {
            let place = Place::new(DUMP);
            (DumpPages::new(&place.file(), Some(place.file()), &place.index_dir("pages")), place)
        };
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for target in text.lines().filter(|line| line.len() <= MAX_BYTES).take(MAX_REQUESTS) {
        // A query may take as long as it likes: a server gives it up. Queries have targets of their own.
        let path = target.split('?').next().unwrap_or_default();
        let path = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
        if path.contains("ql") {
            continue;
        }
        OPENED.with(|(pages, _)| both(pages, target));
    }
}

/// A page and its JSON.
fn both(pages: &DumpPages, target: &str) -> (PageReply, PageReply) {
    let replies = [false, true].map(|wants_json| pages.reply(target, wants_json));
    for reply in &replies {
        check(reply, target);
    }
    let [html, json] = replies;
    assert!(json.status == 303 || json.content_type == "application/json", "{target}: {}", json.content_type);
    (html, json)
}

/// Checks the invariants of a reply.
fn check(reply: &PageReply, target: &str) {
    let PageReply { status, content_type, body, location } = reply;
    assert!(matches!(status, 200 | 303 | 400 | 404 | 414), "{target}: {status}");
    assert_eq!(*status == 303, location.is_some(), "{target}: {location:?}");
    if let Some(location) = location {
        let is_own = location.starts_with("/1/") && location.bytes().all(|byte| byte.is_ascii_graphic());
        assert!(is_own, "{target}: leads to {location:?}");
        return;
    }
    let Ok(text) = std::str::from_utf8(body) else { panic!("{target}: not UTF-8") };
    assert!(!is_harmful(text), "{target}: a character that is not escaped");
    if *content_type == "application/json" {
        let read: Result<serde_json::Value, _> = serde_json::from_str(text);
        assert!(read.is_ok(), "{target}: {read:?}");
        return;
    }
    assert_eq!(*content_type, "text/html; charset=utf-8", "{target}");
    for tag in html::tags(text) {
        let is_markup = |name: &str| name.starts_with("on") || name == "style";
        assert!(!tag.attributes().any(is_markup), "{target}: {tag:?}");
        assert!(tag.name != "script" || tag.attribute("src").is_some(), "{target}: {tag:?}");
        for name in ["href", "src", "action"] {
            let leads_away = |to: &str| !to.starts_with(['/', '#', '?']) || to.starts_with("//");
            assert!(!tag.attribute(name).is_some_and(leads_away), "{target}: {tag:?}");
        }
    }
}
