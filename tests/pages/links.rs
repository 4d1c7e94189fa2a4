//! Every link of the pages, followed by a client that is no browser.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use crate::html::{self, Tag};
use crate::kit::http::{Client, Response};
use crate::server::Server;

/// Pages that are looked at.
const MAX_PAGES: usize = 400;
/// Of them, those of one kind; of what pages are for programs, one.
const MAX_OF_KIND: usize = 4;

/// Observations about a server.
struct Crawl {
    client: Client,
    pages: usize,
    /// Pages of each kind: a path, and the names of parameters.
    kinds: BTreeMap<String, usize>,
    /// The addresses that are known.
    known: HashSet<String>,
    left: VecDeque<String>,
    /// All errors, not just the first.
    wrong: Vec<String>,
}

/// Returns the kind of a page: its path without the subject, and the names of parameters that have values.
fn kind(target: &str) -> String {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let page = path.split('/').nth(2).unwrap_or_default();
    let names: BTreeSet<String> = form_urlencoded::parse(query.as_bytes())
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, _)| name.into_owned())
        .collect();
    format!("{page} {}", names.into_iter().collect::<Vec<_>>().join(" ")).trim_end().to_owned()
}

impl Crawl {
    fn new(server: &Server) -> Self {
        let mut crawl = Self {
            client: server.client(),
            pages: 0,
            kinds: BTreeMap::new(),
            known: HashSet::new(),
            left: VecDeque::new(),
            wrong: Vec::new(),
        };
        crawl.add("/".to_owned());
        crawl
    }

    /// Adds an address that is not known, unless enough of its kind are.
    fn add(&mut self, target: String) {
        let target = target.split('#').next().unwrap().to_owned();
        let path = target.split('?').next().unwrap();
        let most = if path.ends_with(".json") || path.ends_with(".csv") { 1 } else { MAX_OF_KIND };
        let of_kind = self.kinds.entry(kind(&target)).or_default();
        if *of_kind < most && self.known.insert(target.clone()) {
            *of_kind += 1;
            self.left.push_back(target);
        }
    }

    /// Follows what there is to follow.
    fn run(&mut self) {
        while let Some(target) = self.left.pop_front() {
            assert!(self.pages < MAX_PAGES, "more than {MAX_PAGES} pages of {:#?}", self.kinds);
            self.pages += 1;
            self.look_at(&target);
        }
    }

    fn look_at(&mut self, target: &str) {
        let response = self.client.ready(target);
        if response.status == 303 {
            self.add(response.header("location").unwrap().to_owned());
            return;
        }
        let mut wrong = Vec::new();
        let path = target.split('?').next().unwrap();
        if response.status != 200 {
            wrong.push(format!("{}: {}", response.status, response.text()));
        } else if path.ends_with(".json") {
            wrong.extend(wrong_json(&response));
        } else if path.ends_with(".csv") {
            wrong.extend(wrong_csv(&response));
        } else if !target.starts_with("/assets/") {
            wrong.extend(self.look_at_page(target, &response));
        }
        self.wrong.extend(wrong.into_iter().map(|wrong| format!("{target}: {wrong}")));
    }

    fn look_at_page(&mut self, target: &str, response: &Response) -> Vec<String> {
        let (path, query) = target.split_at(target.find('?').unwrap_or(target.len()));
        let tags = html::tags(&response.text());
        let mut wrong = wrong_page(response, &tags);
        if wrong.is_empty() && !needs_more(target) {
            let failed = tags.iter().position(|tag| tag.attribute("class") == Some("failed"));
            wrong.extend(failed.map(|at| tags[at..].iter().take(4).map(|tag| tag.text.as_str()).collect()));
        }
        if !path.starts_with("/1/strings") {
            wrong.extend(of_a_terminal(&tags));
        }
        for href in tags.iter().filter_map(|tag| tag.attribute("href").or(tag.attribute("src"))) {
            let is_here = href.starts_with('/') && !href.starts_with("//");
            match href.strip_prefix('?') {
                Some(_) => self.add(format!("{path}{href}")),
                None if is_here => self.add(href.to_owned()),
                None if href.starts_with('#') => {}
                None => wrong.push(format!("leads to {href}")),
            }
        }
        for form in html::forms(&tags) {
            self.add(form);
        }
        if path.split('/').nth(2).is_some_and(|page| !page.is_empty()) {
            let json = format!("{path}.json{query}");
            wrong.extend(wrong_json(&self.client.ready(&json)).map(|wrong| format!("as JSON: {wrong}")));
        }
        wrong
    }

    /// The pages that were looked at, without their parameters.
    fn paths(&self) -> BTreeSet<&str> {
        self.kinds.keys().map(|kind| kind.split(' ').next().unwrap()).collect()
    }
}

/// Returns whether a page can only ask for its subject: it is about an object or a class, and none is given.
fn needs_more(target: &str) -> bool {
    matches!(kind(target).split(' ').next(), Some("instances" | "refs" | "paths" | "retained"))
        && !kind(target).contains("class")
        && !kind(target).contains("of")
}

/// Returns the error in a document, if any.
fn wrong_json(response: &Response) -> Option<String> {
    if response.header("content-type") != Some("application/json") {
        return Some(format!("it is {:?}", response.header("content-type")));
    }
    let document: serde_json::Value = match serde_json::from_slice(&response.body) {
        Ok(document) => document,
        Err(error) => return Some(error.to_string()),
    };
    let key = if response.status == 200 { "schema_version" } else { "error" };
    document.get(key).is_none().then(|| format!("no {key} in {document}"))
}

/// Returns the error in a table for a spreadsheet, if any.
fn wrong_csv(response: &Response) -> Option<String> {
    let name = response.header("content-disposition").unwrap_or_default();
    if response.header("content-type") != Some("text/csv; charset=utf-8; header=present")
        || !name.starts_with("attachment; filename=\"")
    {
        return Some(format!("it is {:?}, {name:?}", response.header("content-type")));
    }
    let mut reader = csv::Reader::from_reader(&*response.body);
    let wrong = reader.records().find_map(Result::err).map(|error| error.to_string());
    wrong.or_else(|| reader.headers().unwrap().is_empty().then(|| "it has no columns".to_owned()))
}

/// Returns texts of a page that make sense only in a terminal: options outside of commands and their help, and bars
/// of characters.
fn of_a_terminal(tags: &[Tag]) -> Vec<String> {
    let (mut is_help, mut wrong) = (false, Vec::new());
    for tag in tags {
        match tag.name.as_str() {
            "details" => is_help = tag.attribute("class") == Some("help"),
            "/details" => is_help = false,
            "code" | "title" => continue,
            _ => {}
        }
        let is_option = |at: usize| {
            tag.text[at + 2..].starts_with(|c: char| c.is_ascii_lowercase())
                && !tag.text[..at].ends_with(|c: char| !c.is_whitespace() && c != '(')
        };
        let has_option = tag.text.match_indices("--").any(|(at, _)| is_option(at));
        if (has_option && !is_help) || tag.text.contains(['█', '▌', '▏']) {
            wrong.push(format!("it says {:?}", tag.text.trim()));
        }
    }
    wrong
}

/// Returns errors that any page can have.
fn wrong_page(response: &Response, tags: &[Tag]) -> Vec<String> {
    let mut wrong = Vec::new();
    if response.header("content-type") != Some("text/html; charset=utf-8") {
        wrong.push(format!("it is {:?}", response.header("content-type")));
    }
    let policy = response.header("content-security-policy").unwrap_or_default();
    if !policy.starts_with("default-src 'none'") || policy.contains("unsafe") {
        wrong.push(format!("its policy is {policy:?}"));
    }
    let mut ids = HashSet::new();
    for tag in tags {
        let is_bare = tag.name == "script" && tag.attribute("src").is_none();
        let is_active = |name: &str| name == "style" || name.starts_with("on");
        if is_bare || matches!(&*tag.name, "style" | "iframe" | "base") || tag.attributes().any(is_active) {
            wrong.push(format!("it has {tag:?}"));
        }
        if tag.attribute("id").is_some_and(|id| !ids.insert(id)) {
            wrong.push(format!("another element has the ID of {tag:?}"));
        }
    }
    for place in tags.iter().filter_map(|tag| tag.attribute("href")?.strip_prefix('#')) {
        if !ids.contains(place) {
            wrong.push(format!("nothing has the ID {place}"));
        }
    }
    for name in ["h1", "main"] {
        let count = tags.iter().filter(|tag| tag.name == name).count();
        if count != 1 {
            wrong.push(format!("it has {count} {name}"));
        }
    }
    wrong
}

/// All pages of a server, of which there have to be some.
fn crawl(server: &Server, expected: &[&str]) {
    let mut crawl = Crawl::new(server);
    crawl.run();
    assert!(
        crawl.wrong.is_empty(),
        "{} of {} pages:\n{}",
        crawl.wrong.len(),
        crawl.pages,
        crawl.wrong.join("\n")
    );
    let paths = crawl.paths();
    let missing: Vec<_> = expected.iter().filter(|path| !paths.contains(**path)).collect();
    assert!(missing.is_empty(), "no link leads to {missing:?}");
    assert!(!server.stderr().contains("panicked"), "{}", server.stderr());
}

/// The pages of a heap.
const OF_HEAP: &[&str] = &[
    "overview",
    "leaks",
    "histo",
    "dominators",
    "treemap",
    "threads",
    "waste",
    "oql",
    "sql",
    "icicle",
    "classes",
    "roots",
    "loaders",
    "strings",
    "finalizers",
    "info",
    "doctor",
    "object",
    "class",
    "instances",
    "refs",
    "paths",
    "retained",
];
/// The pages of a recording.
const OF_RECORDING: &[&str] = &["recording", "sites", "traces", "cpu", "cputime", "monitors", "flamegraph"];

#[test]
fn all_links_of_a_heap_dump_lead_to_pages() {
    crawl(&Server::of("leaks/s1.hprof"), OF_HEAP);
}

#[test]
fn all_links_of_a_text_recording_lead_to_pages() {
    crawl(&Server::of("agent/busy-cpu-samples.txt"), OF_RECORDING);
}

#[test]
fn all_links_of_a_recording_with_a_heap_lead_to_pages() {
    crawl(&Server::of("agent/all.hprof"), &[OF_HEAP, OF_RECORDING].concat());
}
