//! Golden files of the screens for a sample.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{browser, keys, screen, settle, text};
use crate::cli::browse::answers::Answerer;
use crate::cli::browse::core::ScreenRequest;
use crate::cli::shared::context::RunContext;

/// Screens: name and keys. Each is drawn at two sizes.
const SCREENS: &[&str] = &[
    "",
    "l",
    "l Enter",
    "l Enter p",
    "d",
    "d Right Down Right",
    "d Right Down Right / Object[ Enter",
    "d b",
    "h",
    "h > / Product Enter",
    "h Enter Enter r",
    "t",
    "t Enter",
    "s",
    "w",
    "w Enter",
    ": o Tab ? Esc",
    ":roots Enter",
    "e * Space F R O M Space shop.Product Enter",
    ":redact Enter",
    ":places Space --help Enter",
    "?",
    "l Enter p ?",
    "p",
    "Tab Tab Tab",
    "l Tab Enter p",
    "g",
];

#[test]
fn screens_of_a_sample() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let indexes = tempfile::tempdir().expect("a directory");
    let mut option = OsString::from("--index-dir=");
    option.push(indexes.path());
    // Relative, so that screens are the same in any directory.
    let dump = PathBuf::from("samples/leaks/s1.hprof.zst");
    let cx = RunContext::shell().keeping_dumps(None, false);
    let answerer = Answerer::new(cx, dump, None, vec![option, "--quiet".into()]);
    // The commands to type next name the directory of the index, which is another one each time.
    let answer = |question: &ScreenRequest| {
        let mut answer = answerer.answer(question);
        if let Some(next) = answer.lines.iter().position(|line| line.text == "Next") {
            answer.lines.truncate(next);
            answer.notes = 0;
        }
        answer
    };
    let mut all = String::new();
    for size in [(80, 24), (40, 12)] {
        for line in SCREENS {
            let mut browser = browser(size);
            settle(&mut browser, answer);
            for key in keys(line) {
                browser.key(key);
                settle(&mut browser, answer);
            }
            let shown = text(&screen(&browser, size));
            all.push_str(&format!("=== {}x{}: {line}\n{shown}", size.0, size.1));
        }
    }
    let golden = root.join("tests/browse/screens.txt");
    if std::env::var_os("HPROF_CLI_BLESS").is_some() {
        std::fs::write(&golden, &all).expect("writable");
    }
    let expected = std::fs::read_to_string(&golden).unwrap_or_default();
    let differs = expected.lines().zip(all.lines()).position(|(expected, shown)| expected != shown);
    assert_eq!(differs, None, "HPROF_CLI_BLESS=1 writes {}", golden.display());
    assert_eq!(expected.lines().count(), all.lines().count());
}
