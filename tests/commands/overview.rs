//! `hprof-cli DUMP`: the planted leaks are on one screen, and the commands that it names lead to them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::kit::process;

/// A sample in a directory of its own, under a name as people have it.
struct Screen {
    dir: tempfile::TempDir,
    name: String,
}

impl Screen {
    fn new(sample: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let name = format!("{}.hprof", Path::new(sample).file_name().unwrap().to_str().unwrap());
        fs::write(dir.path().join(&name), process::sample(sample)).unwrap();
        Self { dir, name }
    }

    /// A command line, as a shell reads it.
    fn shell(&self, line: &str) -> Output {
        let program = Path::new(env!("CARGO_BIN_EXE_hprof-cli"));
        let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(self.dir.path()).env("PATH", path);
        command.env_remove("HPROF_CLI_INDEX_DIR").env("XDG_CACHE_HOME", self.dir.path().join("cache"));
        command.stdin(Stdio::null()).output().unwrap()
    }

    fn answer(&self, line: &str) -> String {
        let output = self.shell(line);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{line}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn overview(&self) -> String {
        let text = self.answer(&format!("hprof-cli {}", self.name));
        assert!(text.lines().count() <= 24, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.is_ascii(), "{text}");
        text
    }

    fn row(&self) -> serde_json::Value {
        let text = self.answer(&format!("hprof-cli {} --format json", self.name));
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["command"], "overview");
        assert_eq!(document["rows"].as_array().unwrap().len(), 1);
        document["rows"][0].clone()
    }
}

/// The commands that a screen names.
fn commands(screen: &str) -> Vec<&str> {
    let lines = screen.lines().skip_while(|line| *line != "Next").skip(1);
    let commands: Vec<&str> =
        lines.map(|line| line.trim().split("  ").next().unwrap()).filter(|line| !line.is_empty()).collect();
    assert_eq!(commands.len(), 3, "{screen}");
    assert!(commands.iter().all(|command| command.starts_with("hprof-cli ")), "{screen}");
    commands
}

/// What must be on the screen, and what in the answers of the first two commands.
#[track_caller]
fn is_found(sample: &str, on_screen: &[&str], in_answers: &[&str]) -> Screen {
    let screen = Screen::new(sample);
    let text = screen.overview();
    for planted in on_screen {
        assert!(text.contains(planted), "{planted} in\n{text}");
    }
    let answers: Vec<String> = commands(&text).iter().map(|command| screen.answer(command)).collect();
    let first = answers[..2].concat();
    for planted in in_answers {
        assert!(first.contains(planted), "{planted} in\n{first}");
    }
    screen
}

#[test]
fn a_static_cache() {
    let screen = is_found(
        "leaks/s1",
        &[
            "shop.S1StaticCache on OpenJDK 17.0.15",
            "ConcurrentHashMap shop.ProductService.CACHE: 9,000 x Product",
        ],
        &["static CACHE", "class shop.ProductService", "shop.Product 0x"],
    );
    let row = screen.row();
    assert_eq!(row["out_of_memory"], serde_json::Value::Null);
    let largest = &row["largest"][0];
    assert_eq!(largest["held_class"], "shop.Product");
    assert_eq!(largest["held_objects"], 9000);
    assert_eq!(largest["holder_class"], "shop.ProductService");
    assert_eq!(largest["static"], true);
    assert_eq!(largest["field"], "CACHE");
}

#[test]
fn loaders_that_are_kept() {
    is_found(
        "leaks/s3",
        &[
            "40 class loaders define container.Plugin",
            "ArrayList container.EventBus.listeners: 40 x container.Plugin",
            "43 class loaders",
        ],
        &["static listeners", "class container.EventBus", "container.WebappLoader"],
    );
}

#[test]
fn a_queue_without_a_bound() {
    is_found(
        "leaks/s4",
        &["LinkedBlockingQueue queue of ingest.Pipeline: 60,000 x Event"],
        &["ingest.Pipeline", "queue", "size=60,000", "ingest.Event 0x"],
    );
}

#[test]
fn a_map_that_dies_in_put() {
    let screen = is_found(
        "leaks/s5",
        &[
            "OutOfMemoryError",
            "Thread \"order-import-3\" ran out of memory in",
            "  orders.OrderIndex.register(S5OutOfMemory.java:24)",
            "HashMap byNumber of orders.OrderIndex: 55,417 x orders.Order",
        ],
        &["java.lang.OutOfMemoryError.<init>", "orders.ImportJob", "orders.OrderIndex", "index"],
    );
    let row = screen.row();
    assert_eq!(row["out_of_memory"]["name"], "order-import-3");
    assert_eq!(row["out_of_memory"]["frames"][0], "java.util.HashMap.newNode(HashMap.java:1901)");
}

#[test]
fn a_static_map_that_dies() {
    is_found(
        "leaks/s5-static",
        &[
            "OutOfMemoryError",
            "Thread \"receipt-import\"",
            "StaticIndex.BY_NUMBER",
            "32,328 x StaticIndex$Receipt",
        ],
        &["java.lang.OutOfMemoryError.<init>", "BY_NUMBER", "class orders.StaticIndex"],
    );
}

#[test]
fn a_heap_without_a_leak() {
    let screen = is_found("jdk/jdk17", &["HeapZoo on OpenJDK 17.0.15", "class HeapZoo, mostly"], &[]);
    let flags = fs::read_to_string("samples/jdk/jdk17.flags.txt").unwrap();
    let limit = flags.split("-XX:MaxHeapSize=").nth(1).unwrap().split_whitespace().next().unwrap();
    let row = screen.row();
    assert_eq!(row["heap_limit_bytes"].to_string(), limit);
    // What other commands say.
    let info: serde_json::Value =
        serde_json::from_str(&screen.answer("hprof-cli info jdk17.hprof --format json")).unwrap();
    assert_eq!(row["reachable"], info["rows"][0]["reachable"]);
    let total = |of: &str| row["reachable"][of].as_u64().unwrap() + row["unreachable"][of].as_u64().unwrap();
    assert_eq!(total("objects"), info["rows"][0]["objects"]["total"]);
    assert_eq!(total("shallow_bytes"), info["rows"][0]["shallow_bytes"]);
    assert_eq!(row["out_of_memory"], serde_json::Value::Null);
    // HeapZoo's one direct buffer; the JDK's file of classes, which is mapped, is none.
    assert_eq!(row["direct_memory"]["capacity_bytes"], 4096);
    let csv = screen.answer("hprof-cli overview jdk17.hprof --format csv");
    assert!(csv.lines().count() == 2 && !csv.contains('{'), "{csv}");
}

#[test]
fn a_mistyped_command_is_pointed_to_the_one_that_is_there() {
    let screen = Screen::new("leaks/s1");
    for (line, hint) in [
        ("hprof-cli hist s1.hprof", "did you mean histo?"),
        ("hprof-cli -histo s1.hprof", "try `hprof-cli histo DUMP`"),
        ("hprof-cli dominator_tree s1.hprof", "try `hprof-cli dominators DUMP`"),
    ] {
        let output = screen.shell(line);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(said.contains("there is no command") && said.contains(hint), "{line}: {said}");
    }
}

#[test]
fn long_paths_are_not_cut() {
    let screen = Screen::new("leaks/s5");
    let long = format!("{}/{}", "a-directory-with-a-long-name".repeat(2), "and another 'one'");
    fs::create_dir_all(screen.dir.path().join(&long)).unwrap();
    let path = format!("{long}/{}", screen.name);
    fs::rename(screen.dir.path().join(&screen.name), screen.dir.path().join(&path)).unwrap();
    let text = screen.answer(&format!("hprof-cli \"{path}\""));
    let next = text.split("Next\n").nth(1).unwrap();
    assert!(next.contains("\\\n"), "{text}");
    // All three, as they stand there.
    assert_eq!(next.matches("hprof-cli").count(), 3, "{text}");
    let commands = next.replace("\\\n", "");
    for command in commands.lines().filter(|line| !line.trim().is_empty()) {
        screen.answer(command.trim());
    }
}
