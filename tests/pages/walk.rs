//! Walks through the pages of a dump in a browser: with scripts, and by links and forms only.

use crate::server::Server;
use crate::web_driver::{self, Browser, By};

/// The map that leaks: `CACHE` of `shop.ProductService`.
const SUSPECT: &str = "0xfc2f1518";

/// Keys, as WebDriver has them.
const ESCAPE: &str = "\u{e00c}";
const LEFT: &str = "\u{e012}";
const RIGHT: &str = "\u{e014}";
const UP: &str = "\u{e013}";
const DOWN: &str = "\u{e015}";
const CONTROL: &str = "\u{e009}";
const ENTER: &str = "\u{e007}";

struct Walk {
    browser: Browser,
    server: Server,
    has_script: bool,
}

impl Walk {
    /// Starts at the address that the server printed; `None` if there is no browser.
    fn start(test: &str, has_script: bool) -> Option<Self> {
        let found = web_driver::find(test)?;
        let server = Server::of("leaks/s1.hprof");
        let walk = Self { browser: Browser::start(found, has_script), server, has_script };
        walk.browser.open(&walk.server.url);
        walk.wait_for("/1/overview");
        // While the dump is indexed the page comes again by itself.
        walk.browser.one(By::Css("section.verdict"));
        Some(walk)
    }

    fn wait_for(&self, path: &str) {
        self.browser.wait_for_path(|at| at == path);
    }

    /// Goes to a page of the navigation.
    fn go_to(&self, path: &str) {
        let link = format!("header nav a[href='/1/{path}']");
        self.browser.click(By::Css(&link));
        self.wait_for(&format!("/1/{path}"));
        self.browser.one(By::Css(&format!("{link}[aria-current=page]")));
    }

    fn rows(&self) -> usize {
        self.browser.all(By::Css("main tbody tr")).len()
    }

    /// From the overview to the suspect, and to its path from a root.
    fn to_the_suspect(&self) {
        let browser = &self.browser;
        let verdict = browser.text("h1");
        assert!(verdict.contains("shop.ProductService.CACHE holds 9,000 x shop.Product"), "{verdict}");
        browser.click(By::Css(&format!("section.verdict ol.chain a[href='/1/object/{SUSPECT}']")));
        self.wait_for(&format!("/1/object/{SUSPECT}"));
        assert_eq!(browser.text("h1"), format!("ConcurrentHashMap {SUSPECT}"));
        assert!(browser.text("main > p.dim").starts_with("java.util.concurrent.ConcurrentHashMap"));
        let path = browser.text("ol.path");
        assert!(path.contains("CACHE") && path.contains("shop.ProductService"), "{path}");

        browser.click(By::Named("More paths"));
        self.wait_for(&format!("/1/paths?of={SUSPECT}&paths=10"));
        let paths = browser.text("main");
        assert!(paths.contains("CACHE") && paths.contains("shop.ProductService"), "{paths}");
        browser.back();
        self.wait_for(&format!("/1/object/{SUSPECT}"));
    }

    /// Opens a node of the dominator tree, where it stands if there are scripts.
    fn down_the_tree(&self) {
        let browser = &self.browser;
        self.go_to("dominators");
        let rows = self.rows();
        if !self.has_script {
            browser.click(By::Css("a.twist"));
            browser.wait_for_path(|at| at.starts_with("/1/dominators?of=0x"));
            assert!(browser.text("h1").starts_with("Dominated by 0x"));
            assert!(
                browser.all(By::Css("tr[data-depth='1']")).len() > 1
                    && browser.all(By::Css("ol.chain")).len() == 1
            );
            browser.back();
            self.wait_for("/1/dominators");
            return;
        }
        let is_open = || browser.attribute(&browser.one(By::Css("a.twist")), "aria-expanded");
        assert_eq!(
            (is_open().as_deref(), browser.all(By::Css("tr[data-depth='1']")).len()),
            (Some("false"), 0)
        );
        browser.click(By::Css("a.twist"));
        browser.wait("what it dominates", || (self.rows() > rows).then_some(()));
        assert_eq!((browser.path().as_str(), is_open().as_deref()), ("/1/dominators", Some("true")));
        let below = browser.all(By::Css("tbody tr:first-child + tr[data-depth='1']"));
        assert_eq!(below.len(), 1, "what it dominates is below it");
        // A level deeper.
        browser.click(By::Css("tr[data-depth='1'] a.twist"));
        browser.one(By::Css("tr[data-depth='1'] + tr[data-depth='2']"));
        browser.click(By::Css("a.twist"));
        assert_eq!((self.rows(), is_open().as_deref()), (rows, Some("false")), "all below it is gone");

        // The same by keys: the focus is on the first node.
        browser.press(RIGHT);
        browser.wait("what it dominates", || (self.rows() > rows).then_some(()));
        browser.press(DOWN);
        let depth = browser.run("return document.activeElement.closest('tr').dataset.depth");
        assert_eq!(depth, "1", "the focus is on the row below");
        browser.press(UP);
        browser.press(LEFT);
        browser.wait("the closed tree", || (self.rows() == rows).then_some(()));
        assert_eq!(browser.path(), "/1/dominators");
    }

    /// Zooms into the treemap, and back.
    fn zoom_in_the_treemap(&self) {
        let browser = &self.browser;
        self.go_to("treemap");
        // A page that is loaded as a whole forgets this.
        browser.run("window.isKept = true");
        let whole = browser.attribute(&browser.one(By::Css("figure svg")), "aria-label").unwrap();
        browser.click_in_the_middle("figure svg");
        browser.wait_for_path(|at| at.starts_with("/1/treemap?of=0x"));
        browser.one(By::Css("ol.chain[aria-label=Zoom]"));
        let zoomed = || browser.attribute(&browser.one(By::Css("figure svg")), "aria-label").unwrap();
        browser.wait("the zoom", || (zoomed() != whole).then_some(()));
        assert_eq!(browser.run("return window.isKept === true"), self.has_script);
        let tip = browser.run("return document.querySelector('figure title').textContent");
        assert!(tip.as_str().unwrap().lines().count() > 1, "{tip}");
        browser.back();
        self.wait_for("/1/treemap");
        browser.wait("all of it", || (zoomed() == whole).then_some(()));
        assert!(browser.all(By::Css("ol.chain")).is_empty());
    }

    /// Asks by OQL: what is right, and what is wrong.
    fn questions(&self) {
        const QUERY: &str = "SELECT * FROM shop.Product LIMIT 3";
        let browser = &self.browser;
        self.go_to("oql");
        browser.write("#query", QUERY);
        browser.click(By::Named("Run"));
        browser.wait_for_path(|at| at.starts_with("/1/oql?q=SELECT"));
        let objects = browser.texts("main tbody td.name");
        assert_eq!(objects, ["shop.Product"; 3]);
        assert_eq!(self.rows(), 3);
        browser.write("#query", "SELECT *\nFORM shop.Product");
        if self.has_script {
            browser.run("document.querySelector('#query').focus()");
            browser.press_with(CONTROL, ENTER);
        } else {
            browser.click(By::Named("Run"));
        }
        let failed = browser.text(".failed p");
        assert!(failed.contains("line 2, column 1") && failed.contains("`FORM`"), "{failed}");
        let place = browser.text(".failed pre");
        assert!(place.contains("FORM shop.Product\n^"), "{place}");
        // Earlier queries can be repeated.
        let earlier = browser.all(By::Css("select[aria-label='Earlier queries'] option"));
        assert_eq!(earlier.len(), if self.has_script { 3 } else { 0 });
        if self.has_script {
            browser.click_on(&earlier[2]);
            browser.click(By::Named("Run"));
            browser.wait("the rows of the earlier query", || (self.rows() == 3).then_some(()));
        }
    }

    /// Searches from any page: a class, an object's ID, a text.
    fn searches(&self) {
        let browser = &self.browser;
        let search = |text: &str| {
            browser.write("#search", text);
            browser.click(By::Css("form[role=search] button"));
        };
        search("ProductService");
        self.wait_for("/1/search?q=ProductService");
        let classes = browser.texts("section:first-of-type td.name");
        assert!(classes.iter().any(|class| class.starts_with("shop.ProductService extends")), "{classes:?}");
        browser.click(By::Css("section:first-of-type tr:last-child td.name a"));
        browser.wait_for_path(|at| at.starts_with("/1/class/0x"));
        assert_eq!(browser.text("h1"), "class shop.ProductService");

        search(SUSPECT);
        self.wait_for(&format!("/1/object/{SUSPECT}"));
        search("Product number 146592");
        browser.wait_for_path(|at| at.starts_with("/1/search?q=Product+number+146592"));
        let texts = browser.texts("section:nth-of-type(2) td.name");
        assert_eq!(texts, ["\"Product number 146592\""]);
        browser.click(By::Css("section:nth-of-type(2) td a"));
        browser.wait_for_path(|at| at.starts_with("/1/object/0x"));
        assert!(browser.text("h1").starts_with("String 0x"));
    }

    /// Sorts and filters a table: where it stands if there are scripts, and by the form.
    fn tables(&self) {
        let browser = &self.browser;
        self.go_to("histo");
        let narrow = browser.all(By::Css("input[placeholder='filter these rows']"));
        assert_eq!(narrow.len(), usize::from(self.has_script));
        if self.has_script {
            let numbers = || -> Vec<u64> {
                let texts = browser.run("return [...document.querySelectorAll('main tbody tr')].map((row) => row.cells[0].innerText)");
                let number =
                    |text: &serde_json::Value| text.as_str().unwrap().replace(',', "").parse().unwrap();
                texts.as_array().unwrap().iter().map(number).collect()
            };
            let title = "main thead th:first-child";
            browser.click(By::Css(&format!("{title} button")));
            let order = || browser.attribute(&browser.one(By::Css(title)), "aria-sort");
            assert_eq!(order().as_deref(), Some("descending"));
            assert!(numbers().is_sorted_by(|a, b| a >= b), "{:?}", numbers());
            browser.click(By::Css(&format!("{title} button")));
            assert_eq!(order().as_deref(), Some("ascending"));
            assert!(numbers().is_sorted(), "{:?}", numbers());

            let all = self.rows();
            browser.write("input[placeholder='filter these rows']", "shop.");
            let shown = browser.all(By::Css("main tbody tr:not([hidden])"));
            assert!(!shown.is_empty() && shown.len() < all);
            assert!(shown.iter().all(|row| browser.text_of(row).contains("shop.")));
            assert_eq!(browser.path(), "/1/histo");
        }
        browser.click(By::Css("main select[name=sort] option[value=instances]"));
        browser.write("main input[name=pattern]", "shop.*");
        browser.click(By::Named("Show"));
        browser.wait_for_path(|at| at.contains("pattern=shop.*") && at.contains("sort=instances"));
        // Empty fields are sent only where there are no scripts.
        assert_eq!(browser.path().contains("top="), !self.has_script);
        let classes = browser.texts("main tbody td.name");
        assert!(classes.iter().all(|class| class.starts_with("shop.")), "{classes:?}");
        assert_eq!(classes.first().map(String::as_str), Some("shop.Product"));
    }

    /// The menu, and the commands below answers.
    fn menu_and_commands(&self) {
        let browser = &self.browser;
        let link = browser.one(By::Css("header details a[href='/1/icicle']"));
        assert!(!browser.is_shown(&link));
        browser.click(By::Css("header summary"));
        assert!(browser.is_shown(&link));
        if self.has_script {
            browser.press(ESCAPE);
            assert!(!browser.is_shown(&link));
            browser.click(By::Css("header summary"));
        }
        browser.click_on(&link);
        self.wait_for("/1/icicle");
        let copy = browser.one(By::Css(".cmd button.copy"));
        assert_eq!(browser.is_shown(&copy), self.has_script);
        if self.has_script {
            browser.click_on(&copy);
            // The browser decides whether it may write to the clipboard.
            browser
                .wait("the copy", || matches!(&*browser.text_of(&copy), "Copied" | "Selected").then_some(()));
        }
    }

    /// Nothing was written to the console, and nothing was asked of anyone else.
    fn end(&self) {
        let console = self.browser.console();
        assert!(console.is_empty(), "{}", console.join("\n"));
        let requests = self.browser.requests();
        let own = format!("{}/", self.server.origin());
        assert!(requests.iter().filter(|url| url.starts_with(&own)).count() > 20, "{requests:?}");
        let others: Vec<&String> =
            requests.iter().filter(|url| !url.starts_with(&own) && !url.starts_with("chrome")).collect();
        assert!(others.is_empty(), "{others:?}");
        assert!(!self.server.stderr().contains("panicked"), "{}", self.server.stderr());

        // Violations of the policy are detected here.
        self.browser.run("document.body.insertAdjacentHTML('beforeend', '<p style=\"color: red\">')");
        let refused = |line: &String| line.contains("Content Security Policy");
        self.browser
            .wait("a report of the policy", || self.browser.console().iter().any(refused).then_some(()));
    }

    fn all(&self) {
        self.to_the_suspect();
        self.down_the_tree();
        self.zoom_in_the_treemap();
        self.questions();
        self.searches();
        self.tables();
        self.menu_and_commands();
        self.end();
    }
}

#[test]
fn a_walk_in_a_browser() {
    if let Some(walk) = Walk::start("a walk in a browser", true) {
        walk.all();
    }
}

#[test]
fn a_walk_by_links_and_forms_only() {
    if let Some(walk) = Walk::start("a walk by links and forms only", false) {
        walk.all();
    }
}
