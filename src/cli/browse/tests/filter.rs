//! The filter: the lines that it shows, and the position of the cursor.

use hprof_report::column::CellTarget;
use hprof_report::screen::ScreenLine;
use hprof_report::window::RowWindow;
use hprof_values::ObjectId;

use super::{answerer, browser, keys, million, question, screen, settle};
use crate::cli::browse::core::{Browser, Effect, Key, ScreenAnswer, ScreenRequest};

#[test]
fn a_filter_shows_open_nodes_below_their_parents_and_keeps_the_selection() {
    let indexes = tempfile::tempdir().expect("a directory");
    let answerer = answerer(indexes.path());
    let mut browser = browser((80, 24));
    let press = |browser: &mut Browser, text: &str| {
        for key in keys(text) {
            browser.key(key);
            settle(browser, |question| answerer.answer(question));
        }
        super::text(&screen(browser, (80, 24)))
    };
    settle(&mut browser, |question| answerer.answer(question));
    press(&mut browser, "d Right Down Right");
    let shown = press(&mut browser, "/ Object[ Enter");
    let lines: Vec<&str> = shown.lines().collect();
    // The loader and its list are the parents of the array; the next one is another tree.
    for (line, expected) in [
        (2, "0xffe56098  …loader.ClassLoaders$AppClassLoader \"app\""),
        (3, "0xffe58918  └─ java.util.ArrayList size=5"),
        (4, "0xfc2f1a28     └─ java.lang.Object[]"),
        (5, "0xffe72730  java.lang.Object[]"),
    ] {
        assert!(lines[line].contains(expected), "{line}: {shown}");
    }
    assert!(!shown.contains("ConcurrentHashMap") && shown.contains("Enter: 0xffe58918"), "{shown}");
    // A hidden line becomes the chosen one again when it is shown.
    let shown = press(&mut browser, "Esc / Object[]x");
    assert!(!shown.contains("0xffe58918"), "{shown}");
    assert!(press(&mut browser, "Esc").contains("Enter: 0xffe58918"));
    // A line that was chosen among the shown ones stays chosen.
    let shown = press(&mut browser, "/ Object[ Enter Down Down");
    assert!(shown.contains("Enter: 0xffe72730"), "{shown}");
    let shown = press(&mut browser, "Esc");
    assert!(shown.contains("Enter: 0xffe72730") && shown.contains("ConcurrentHashMap"), "{shown}");
}

#[test]
fn a_filter_shows_only_rows_with_its_text_in_a_table_that_is_no_tree() {
    let indexes = tempfile::tempdir().expect("a directory");
    let answerer = answerer(indexes.path());
    let query = "SELECT o.object, CASE WHEN o.object % 16 = 0 THEN '   y' ELSE 'plain' END AS t FROM objects o LIMIT 3000";
    let window = RowWindow { count: 400, text: "y".to_owned(), ..RowWindow::ALL };
    let answer = answerer.answer(&question(&["sql", query], Some(window)));
    let rows: Vec<&ScreenLine> = answer.lines.iter().filter(|line| line.row.is_some()).collect();
    assert!(rows.len() > 100, "{:?}", answer.lines);
    for line in rows {
        assert!(line.text.ends_with("   y") && line.depth == 0, "{line:?}");
    }
}

/// Returns a result with these texts, whose lines all link to the same object.
fn about_one_object(question: &ScreenRequest, texts: &[&str]) -> ScreenAnswer {
    let line = |(row, text): (usize, &&str)| ScreenLine {
        row: Some(row),
        links: vec![CellTarget::Object(ObjectId(1)), CellTarget::Object(ObjectId(row as u64 / 2 + 2))].into(),
        ..ScreenLine::of_text(text)
    };
    let lines = texts.iter().enumerate().map(line).collect();
    ScreenAnswer { lines, width: question.width, ..ScreenAnswer::default() }
}

#[test]
fn a_filter_keeps_the_cursor_on_its_line_among_those_of_one_object() {
    let texts = ["one x", "two x", "three", "four x"];
    for (down, filtered) in [(1, "two x"), (3, "four x")] {
        let mut browser = browser((80, 24));
        settle(&mut browser, |question| about_one_object(question, &texts));
        let press = |browser: &mut Browser, text: &str| {
            for key in keys(text) {
                browser.key(key);
                settle(browser, |question| about_one_object(question, &texts));
            }
            browser.chosen_text()
        };
        for _ in 0..down {
            press(&mut browser, "Down");
        }
        assert_eq!(press(&mut browser, "/ x"), filtered);
        assert_eq!(press(&mut browser, "Esc"), filtered);
    }
}

#[test]
fn a_key_while_a_filter_is_asked_for_keeps_its_place() {
    let mut browser = browser((80, 24));
    browser.key(Key::Char('h'));
    settle(&mut browser, million);
    for key in keys("/ 7") {
        browser.key(key);
    }
    let effects = browser.effects();
    let [.., Effect::Ask(question)] = &effects[..] else { panic!("no question") };
    // Rows 7 and 17 are shown until the result arrives.
    for key in keys("Enter Down Down") {
        browser.key(key);
    }
    let chosen = browser.chosen_text();
    assert_eq!(chosen, "row 27");
    browser.answer(question.number, million(question));
    assert_eq!(browser.chosen_text(), chosen);
}
