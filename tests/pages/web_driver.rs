//! A browser, driven over the WebDriver protocol: chromedriver and a headless Chromium.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::kit::http;

/// Maximum time to wait.
const PATIENCE: Duration = Duration::from_secs(60);
/// The key of an element's reference.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// Set where a missing browser is a failure.
const NEED: &str = "HPROF_CLI_NEED_BROWSER";

/// A program of this machine, by the names that it has.
fn installed(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    names.iter().flat_map(|name| dirs.iter().map(move |dir| dir.join(name))).find(|path| path.is_file())
}

/// chromedriver and Chromium. If they are not installed, says that `test` was not run.
pub fn find(test: &str) -> Option<(PathBuf, PathBuf)> {
    let driver = installed(&["chromedriver"]);
    let found =
        driver.zip(installed(&["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]));
    if found.is_none() {
        let why = "chromedriver and Chromium are needed: apt-get install chromium chromium-driver";
        assert!(std::env::var_os(NEED).is_none(), "{test}: {why}");
        // Not by a macro: what passes would not be shown.
        std::io::stderr().write_all(format!("NOT RUN: {test}: {why}\n").as_bytes()).unwrap();
    }
    found
}

/// A browser with one window. What it does wrong panics.
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
    /// The browser's profile.
    _dir: tempfile::TempDir,
}

/// An element of the page.
#[derive(Debug, Clone)]
pub struct Element(Json);

/// Strategy for finding elements.
#[derive(Debug, Clone, Copy)]
pub enum By<'a> {
    Css(&'a str),
    /// A link or button of the page itself, by all of its text.
    Named(&'a str),
}

impl By<'_> {
    fn strategy(self) -> Json {
        match self {
            Self::Css(selector) => json!({ "using": "css selector", "value": selector }),
            Self::Named(text) => {
                let path = format!("//main//*[self::a or self::button][normalize-space(.)='{text}']");
                json!({ "using": "xpath", "value": path })
            }
        }
    }
}

impl Browser {
    /// Starts one, with or without JavaScript on pages.
    pub fn start((driver, chromium): (PathBuf, PathBuf), has_script: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new(driver);
        command.arg("--port=0").env("TMPDIR", dir.path()).env("HOME", dir.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut driver = command.spawn().unwrap();
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines().map_while(Result::ok);
        let port = lines
            .find_map(|line| line.rsplit_once("successfully on port ")?.1.trim_end_matches('.').parse().ok());
        // Else it would wait for someone to read what it says.
        std::thread::spawn(move || lines.for_each(drop));
        let mut browser =
            Self { driver, port: port.expect("chromedriver's port"), session: String::new(), _dir: dir };
        let javascript = if has_script { 1 } else { 2 };
        let capabilities = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
            "goog:chromeOptions": {
                "binary": chromium,
                "args": [
                    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                    "--disable-background-networking", "--disable-component-update", "--window-size=1400,1000",
                    format!("--user-data-dir={}", browser._dir.path().join("profile").display()),
                ],
                "prefs": { "profile.managed_default_content_settings.javascript": javascript },
            },
        } } });
        let session = browser.call("POST", "/session", &capabilities);
        session["sessionId"].as_str().unwrap().clone_into(&mut browser.session);
        // A new window shows a page of the browser's own.
        browser.open("about:blank");
        drop((browser.console(), browser.requests()));
        browser
    }

    fn try_call(&self, method: &str, path: &str, body: &Json) -> Result<Json, Json> {
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let headers = [("Content-Type", "application/json; charset=utf-8")];
        let response = http::request(self.port, method, path, &headers, body.as_bytes())
            .unwrap_or_else(|error| panic!("chromedriver: {path}: {error}"));
        let mut document = response.json();
        let value = document["value"].take();
        if response.status == 200 { Ok(value) } else { Err(value) }
    }

    fn call(&self, method: &str, path: &str, body: &Json) -> Json {
        self.try_call(method, path, body)
            .unwrap_or_else(|error| panic!("{path} {body}: {}: {}", error["error"], error["message"]))
    }

    fn get(&self, path: &str) -> Json {
        self.call("GET", &format!("/session/{}/{path}", self.session), &Json::Null)
    }

    fn post(&self, path: &str, body: &Json) -> Json {
        self.call("POST", &format!("/session/{}/{path}", self.session), body)
    }

    pub fn open(&self, url: &str) {
        self.post("url", &json!({ "url": url }));
    }

    /// Makes the window as large, in pixels.
    pub fn resize(&self, width: u32, height: u32) {
        self.post("window/rect", &json!({ "width": width, "height": height }));
    }

    pub fn back(&self) {
        self.post("back", &json!({}));
    }

    /// The address of the page: behind the host.
    pub fn path(&self) -> String {
        let url = self.get("url").as_str().unwrap().to_owned();
        url.splitn(4, '/').nth(3).map(|path| format!("/{path}")).unwrap_or(url)
    }

    pub fn all(&self, by: By<'_>) -> Vec<Element> {
        let found = self.post("elements", &by.strategy());
        found.as_array().unwrap().iter().map(|element| Element(element[ELEMENT].clone())).collect()
    }

    /// The first element, which there will be.
    pub fn one(&self, by: By<'_>) -> Element {
        self.wait(&format!("{by:?}"), || self.all(by).into_iter().next())
    }

    fn of(&self, element: &Element, what: &str) -> Json {
        self.get(&format!("element/{}/{what}", element.0.as_str().unwrap()))
    }

    fn to(&self, element: &Element, what: &str, body: &Json) {
        self.post(&format!("element/{}/{what}", element.0.as_str().unwrap()), body);
    }

    /// The text of an element, as far as it is shown.
    pub fn text_of(&self, element: &Element) -> String {
        self.of(element, "text").as_str().unwrap().to_owned()
    }

    /// The text of the first such element.
    pub fn text(&self, css: &str) -> String {
        self.text_of(&self.one(By::Css(css)))
    }

    pub fn texts(&self, css: &str) -> Vec<String> {
        self.all(By::Css(css)).iter().map(|element| self.text_of(element)).collect()
    }

    pub fn attribute(&self, element: &Element, name: &str) -> Option<String> {
        self.of(element, &format!("attribute/{name}")).as_str().map(str::to_owned)
    }

    pub fn is_shown(&self, element: &Element) -> bool {
        self.of(element, "displayed") == true
    }

    pub fn click_on(&self, element: &Element) {
        self.to(element, "click", &json!({}));
    }

    /// Clicks on the first such element.
    pub fn click(&self, by: By<'_>) {
        self.click_on(&self.one(by));
    }

    /// Clicks on the middle of what the first such element shows.
    pub fn click_in_the_middle(&self, css: &str) {
        let origin = json!({ ELEMENT: self.one(By::Css(css)).0 });
        self.post(
            "actions",
            &json!({ "actions": [{
                "type": "pointer", "id": "mouse", "parameters": { "pointerType": "mouse" },
                "actions": [
                    { "type": "pointerMove", "duration": 0, "origin": origin, "x": 0, "y": 0 },
                    { "type": "pointerDown", "button": 0 },
                    { "type": "pointerUp", "button": 0 },
                ],
            }] }),
        );
    }

    /// Presses keys where the focus is.
    pub fn press(&self, keys: &str) {
        let press = |key: char| {
            [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })]
        };
        let actions: Vec<Json> = keys.chars().flat_map(press).collect();
        self.post("actions", &json!({ "actions": [{ "type": "key", "id": "keys", "actions": actions }] }));
    }

    /// Presses a key while another is held.
    pub fn press_with(&self, held: &str, key: &str) {
        let action = |kind: &str, key: &str| json!({ "type": kind, "value": key });
        let actions =
            [action("keyDown", held), action("keyDown", key), action("keyUp", key), action("keyUp", held)];
        self.post("actions", &json!({ "actions": [{ "type": "key", "id": "keys", "actions": actions }] }));
    }

    /// Writes into the first such element, and nothing else remains in it.
    pub fn write(&self, css: &str, text: &str) {
        let element = self.one(By::Css(css));
        self.to(&element, "clear", &json!({}));
        self.to(&element, "value", &json!({ "text": text }));
    }

    /// Runs a script, whatever pages may run.
    pub fn run(&self, script: &str) -> Json {
        self.post("execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Waits until something is found.
    pub fn wait<T>(&self, what: &str, found: impl Fn() -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            if let Some(found) = found() {
                return found;
            }
            assert!(start.elapsed() < PATIENCE, "{what} does not come at {}", self.path());
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Waits for an address.
    pub fn wait_for_path(&self, is_right: impl Fn(&str) -> bool) {
        self.wait("the address", || is_right(&self.path()).then_some(()));
    }

    fn log(&self, of: &str) -> Vec<Json> {
        self.post("se/log", &json!({ "type": of })).as_array().unwrap().clone()
    }

    /// Returns what scripts and the browser wrote to the console since the last call.
    pub fn console(&self) -> Vec<String> {
        let line = |entry: &Json| format!("{} {}: {}", entry["level"], entry["source"], entry["message"]);
        self.log("browser").iter().map(line).collect()
    }

    /// Returns the addresses requested since the last call.
    pub fn requests(&self) -> Vec<String> {
        let mut urls = Vec::new();
        for entry in self.log("performance") {
            let event: Json = serde_json::from_str(entry["message"].as_str().unwrap()).unwrap();
            let (method, params) = (&event["message"]["method"], &event["message"]["params"]);
            let url = match method.as_str() {
                Some("Network.requestWillBeSent") => &params["request"]["url"],
                Some("Network.webSocketCreated" | "Network.webTransportCreated") => &params["url"],
                _ => continue,
            };
            urls.push(url.as_str().unwrap().to_owned());
        }
        urls
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The session first: it ends Chromium. What fails here must not hide what failed before.
        if !self.session.is_empty() {
            let _ = http::request(self.port, "DELETE", &format!("/session/{}", self.session), &[], &[]);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
