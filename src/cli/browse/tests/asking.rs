//! Requests that keys cause, and the handling of the results.

use hprof_report::column::CellTarget;
use hprof_report::screen::ScreenLine;
use hprof_values::ObjectId;

use super::{browser, keys, million, screen, settle, text};
use crate::cli::browse::core::{Browser, Effect, Key, ScreenAnswer};

#[test]
fn an_unknown_command_is_not_one_for_a_shell() {
    for (typed, expected) in
        [(":hsto Enter", "unknown command hsto"), (":redact Enter", "redact can be run only in a shell")]
    {
        let mut browser = browser((80, 24));
        keys(typed).into_iter().for_each(|key| browser.key(key));
        let shown = text(&screen(&browser, (80, 24)));
        assert!(shown.contains(expected), "{shown}");
    }
}

#[test]
fn the_command_for_a_shell_has_the_options_of_the_browser() {
    let mut browser = browser((80, 24));
    browser.key(Key::Char('h'));
    browser.key(Key::Char('Y'));
    let copied = browser.effects().into_iter().find_map(|effect| match effect {
        Effect::Copy(text) => Some(text),
        _ => None,
    });
    assert_eq!(copied.as_deref(), Some("hprof-cli histo s1.hprof --heap-dump=2"));
}

#[test]
fn a_question_is_not_begun_again_for_another_width() {
    let mut browser = browser((80, 24));
    let [Effect::Ask(question)] = &browser.effects()[..] else { panic!("no question") };
    browser.resize((60, 24));
    browser.resize((50, 24));
    assert_eq!(browser.effects(), []);
    browser.answer(question.number, ScreenAnswer { width: question.width, ..ScreenAnswer::default() });
    let [Effect::Ask(question)] = &browser.effects()[..] else { panic!("no question") };
    assert_eq!(question.width, 49);
    browser.answer(question.number, ScreenAnswer { width: question.width, ..ScreenAnswer::default() });
    assert_eq!(browser.effects(), []);
}

#[test]
fn an_error_that_is_the_only_answer_is_the_result() {
    let mut browser = browser((80, 24));
    settle(&mut browser, |_| ScreenAnswer::for_failure("not a dump", None, 79));
    assert_eq!(browser.failure().as_deref(), Some("error: not a dump"));
    browser.key(Key::Char('h'));
    settle(&mut browser, |question| ScreenAnswer { width: question.width, ..ScreenAnswer::default() });
    assert_eq!(browser.failure(), None);
}

#[test]
fn a_cancelled_question_is_not_shown() {
    let mut browser = browser((80, 24));
    let [Effect::Ask(question)] = &browser.effects()[..] else { panic!("no question") };
    browser.progress(question.number, "finding dominators 40%");
    assert!(text(&screen(&browser, (80, 24))).contains("finding dominators 40% … Esc cancels"));
    browser.key(Key::Esc);
    assert_eq!(browser.effects(), [Effect::Cancel]);
    let answer = ScreenAnswer { lines: vec![ScreenLine::of_text("late")], ..ScreenAnswer::default() };
    browser.answer(question.number, answer);
    assert!(!browser.is_asking() && !text(&screen(&browser, (80, 24))).contains("late"));
}

#[test]
fn a_view_that_was_left_gets_its_answer() {
    let mut browser = browser((80, 24));
    let [Effect::Ask(question)] = &browser.effects()[..] else { panic!("no question") };
    browser.key(Key::Char('?'));
    let answer = ScreenAnswer {
        lines: vec![ScreenLine::of_text("late")],
        width: question.width,
        ..ScreenAnswer::default()
    };
    browser.answer(question.number, answer);
    assert!(!text(&screen(&browser, (80, 24))).contains("late"));
    browser.key(Key::Backspace);
    assert!(text(&screen(&browser, (80, 24))).contains("late") && browser.effects().is_empty());
}

#[test]
fn esc_cancels_then_shows_all_lines_then_goes_back() {
    let mut browser = browser((80, 24));
    settle(&mut browser, million);
    browser.key(Key::Char('h'));
    let status =
        |browser: &Browser| text(&screen(browser, (80, 24))).lines().rev().nth(1).unwrap_or("").to_owned();
    browser.key(Key::Esc);
    assert_eq!(browser.effects().last(), Some(&Effect::Cancel));
    // A cancelled view is requested again when the user returns to it.
    browser.key(Key::Esc);
    browser.key(Key::Char('f'));
    assert!(matches!(&browser.effects()[..], [Effect::Ask(question)] if question.words == ["histo"]));
    browser.key(Key::Esc);
    browser.key(Key::Char('h'));
    settle(&mut browser, million);
    for key in keys("/ 9 9 Enter") {
        browser.key(key);
        settle(&mut browser, million);
    }
    assert!(status(&browser).ends_with("Esc: all lines"), "{}", status(&browser));
    browser.key(Key::Esc);
    settle(&mut browser, million);
    assert!(status(&browser).ends_with("Esc: back"), "{}", status(&browser));
    browser.key(Key::Esc);
    assert!(text(&screen(&browser, (80, 24))).contains("Overview") && browser.effects().is_empty());
    browser.key(Key::Esc);
    assert!(text(&screen(&browser, (80, 24))).contains("this is the first view"));
}

#[test]
fn a_page_scrolls_and_home_is_the_first_row() {
    let mut browser = browser((80, 24));
    // A text, titles, and rows.
    let line = |at: usize| ScreenLine {
        is_heading: at == 1,
        row: at.checked_sub(2),
        ..ScreenLine::of_text(&format!("line {at}"))
    };
    settle(&mut browser, |question| ScreenAnswer {
        lines: (0..100).map(line).collect(),
        width: question.width,
        ..ScreenAnswer::default()
    });
    let first =
        |browser: &Browser| text(&screen(browser, (80, 24))).lines().nth(2).unwrap_or("").trim().to_owned();
    // A screen has 21 lines, of which one is on both pages. The titles stay on the first.
    for expected in ["line 21", "line 41", "line 61", "line 80", "line 80"] {
        browser.key(Key::PageDown);
        assert_eq!(first(&browser), expected);
    }
    browser.key(Key::PageUp);
    assert_eq!((first(&browser).as_str(), browser.chosen_text().as_str()), ("line 60", "line 79"));
    browser.key(Key::Home);
    assert_eq!((first(&browser).as_str(), browser.chosen_text().as_str()), ("line 1", "line 2"));
}

#[test]
fn enter_says_where_it_leads() {
    for (links, status, words, message) in [
        (vec![CellTarget::Object(ObjectId(0x10))], "1/1  Enter: 0x10", "show 0x10 --incoming", ""),
        (
            vec![
                CellTarget::Command(["threads", "--thread", "a b"].map(str::to_owned).to_vec()),
                CellTarget::Object(ObjectId(0x10)),
            ],
            "1/1  Enter: threads --thread a b  Tab: 1 of 2",
            "threads --top=401 --thread a b",
            "",
        ),
        (
            vec![CellTarget::Command(vec!["redact".to_owned()])],
            "1/1",
            "",
            "redact can be run only in a shell",
        ),
        (
            vec![CellTarget::Class("a*".to_owned(), Some(ObjectId(0x10)))],
            "1/1  Enter: 0x10",
            "show 0x10 --incoming",
            "",
        ),
        (
            vec![CellTarget::Class("--x".to_owned(), None)],
            "1/1",
            "",
            "cannot open this class: its name is ambiguous in a command",
        ),
        (
            vec![CellTarget::Class("A".to_owned(), None)],
            "1/1  Enter: instances of A",
            "instances --top=401 A",
            "",
        ),
        (vec![], "1/1", "", "nothing to open in this view"),
    ] {
        let mut browser = browser((80, 24));
        let line = ScreenLine { links: links.into(), ..ScreenLine::of_text("x") };
        settle(&mut browser, |question| ScreenAnswer {
            lines: vec![line.clone()],
            width: question.width,
            ..ScreenAnswer::default()
        });
        let last = |browser: &Browser| {
            text(&screen(browser, (80, 24))).lines().rev().nth(1).unwrap_or("").trim().to_owned()
        };
        assert_eq!(last(&browser), status);
        browser.key(Key::Enter);
        let asked = browser.effects().into_iter().find_map(|effect| match effect {
            Effect::Ask(question) => Some(question.command().0.join(" ")),
            _ => None,
        });
        assert_eq!(asked.unwrap_or_default(), words);
        assert_eq!(last(&browser) == message, !message.is_empty(), "{}", last(&browser));
    }
    // The object is already shown.
    let mut browser = browser((80, 24));
    for key in keys(": s h o w Space 0 x 1 0 Space - - i n c o m i n g Enter") {
        browser.key(key);
    }
    settle(&mut browser, |question| ScreenAnswer {
        lines: vec![ScreenLine::of_text("an object 0x10")],
        width: question.width,
        ..ScreenAnswer::default()
    });
    assert!(text(&screen(&browser, (80, 24))).contains("Enter: objects it dominates"));
    browser.key(Key::Enter);
    let [Effect::Ask(question)] = &browser.effects()[..] else { panic!("no question") };
    assert_eq!(question.words, ["dominators", "--of=0x10"]);
}

#[test]
fn a_million_rows_scroll_and_no_more_than_a_window_is_asked_for() {
    let mut browser = browser((80, 24));
    let shows = |browser: &Browser, text: &str| {
        let shown = super::text(&screen(browser, (80, 24)));
        assert!(shown.contains(text), "{text}: {shown}");
    };
    let press = |browser: &mut Browser, key| {
        browser.key(key);
        settle(browser, million);
    };
    press(&mut browser, Key::Char('h'));
    shows(&browser, "1/1,000,000");
    // No row is left out on the way.
    for row in 1..1_500 {
        press(&mut browser, Key::Down);
        shows(&browser, &format!("{}/1,000,000", hprof_report::number::group_digits(row + 1)));
        shows(&browser, &format!("row {row}\n"));
    }
    for _ in 0..1_400 {
        press(&mut browser, Key::Up);
    }
    shows(&browser, "100/1,000,000");
    press(&mut browser, Key::End);
    shows(&browser, "1,000,000/1,000,000");
    shows(&browser, "row 999999\n");
    for _ in 0..60 {
        press(&mut browser, Key::PageUp);
    }
    shows(&browser, "row 998799\n");
    press(&mut browser, Key::Home);
    shows(&browser, "1/1,000,000");
    // All rows are searched, not only the loaded ones.
    for key in keys("/ 9 9 8 7 9 Enter") {
        press(&mut browser, key);
    }
    shows(&browser, "row 99879\n");
    shows(&browser, "row 998799\n");
    // The chosen row stays chosen among all rows.
    press(&mut browser, Key::Down);
    press(&mut browser, Key::Down);
    press(&mut browser, Key::Esc);
    shows(&browser, "299,880/1,000,000  Enter: 0x49368");
}

/// Returns the lines that are shown until the overview is ready.
fn early() -> ScreenAnswer {
    let line = |id: u64| ScreenLine {
        row: Some(0),
        links: vec![CellTarget::Object(ObjectId(id))].into(),
        ..ScreenLine::of_text(&format!("early {id:#x}"))
    };
    ScreenAnswer { lines: (1..4).map(line).collect(), width: 79, ..ScreenAnswer::default() }
}

fn overview() -> ScreenAnswer {
    ScreenAnswer { lines: vec![ScreenLine::of_text("overview")], width: 79, ..ScreenAnswer::default() }
}

#[test]
fn early_lines_are_replaced_if_they_are_only_looked_at() {
    let mut browser = browser((80, 24));
    let [Effect::Ask(question)] = &browser.effects()[..] else { panic!("no question") };
    browser.early(question.number, early());
    let shown = text(&screen(&browser, (80, 24)));
    assert!(shown.contains("early 0x2") && shown.contains("Esc cancels"), "{shown}");
    browser.answer(question.number, overview());
    let shown = text(&screen(&browser, (80, 24)));
    assert!(shown.contains("overview") && !shown.contains("early") && !browser.is_asking(), "{shown}");
    // They arrive too late.
    browser.early(question.number, early());
    assert!(!text(&screen(&browser, (80, 24))).contains("early"));
}

#[test]
fn early_lines_that_are_used_stay_until_the_answer_is_wanted() {
    let mut browser = browser((80, 24));
    let [Effect::Ask(question)] = &browser.effects()[..] else { panic!("no question") };
    browser.early(question.number, early());
    browser.key(Key::Down);
    let chosen = browser.chosen_text();
    browser.answer(question.number, overview());
    let shown = text(&screen(&browser, (80, 24)));
    assert_eq!((browser.chosen_text(), browser.effects()), (chosen.clone(), Vec::new()));
    assert!(shown.contains("the overview is ready: o shows it") && shown.contains("early 0x1"), "{shown}");
    // The same after another view was opened.
    browser.key(Key::Enter);
    browser.key(Key::Backspace);
    let shown = text(&screen(&browser, (80, 24)));
    assert!(shown.contains("the overview is ready") && browser.chosen_text() == chosen, "{shown}");
    browser.effects();
    browser.key(Key::Char('o'));
    assert_eq!((browser.chosen_text().as_str(), browser.effects()), ("overview", Vec::new()));
    assert!(!text(&screen(&browser, (80, 24))).contains("early"));
}

#[test]
fn an_overview_that_was_cancelled_or_lost_is_asked_for_again() {
    let mut browser = browser((80, 24));
    let [Effect::Ask(question)] = &browser.effects()[..] else { panic!("no question") };
    browser.early(question.number, early());
    browser.key(Key::Esc);
    assert_eq!(browser.effects(), [Effect::Cancel]);
    browser.answer(question.number, overview());
    assert!(text(&screen(&browser, (80, 24))).contains("early"));
    browser.key(Key::Char('o'));
    let [Effect::Ask(question)] = &browser.effects()[..] else { panic!("no question") };
    browser.early(question.number, early());
    browser.key(Key::Enter);
    let [Effect::Ask(object)] = &browser.effects()[..] else { panic!("no question") };
    browser.answer(object.number, ScreenAnswer { width: 79, ..ScreenAnswer::default() });
    browser.key(Key::Backspace);
    // The process that received the request may be gone.
    let [Effect::Ask(question)] = &browser.effects()[..] else { panic!("no question") };
    assert_eq!(question.words, ["overview"]);
    browser.resize((60, 24));
    browser.answer(question.number, overview());
    // Once for the other width, not repeatedly.
    let [Effect::Ask(question)] = &browser.effects()[..] else { panic!("no question") };
    assert_eq!(question.width, 59);
    browser.answer(question.number, ScreenAnswer { width: 59, ..overview() });
    assert_eq!(browser.effects(), []);
}

#[test]
fn the_overview_that_is_wanted_while_early_lines_are_shown_replaces_them() {
    for pressed in [&[Key::Char('o')][..], &[Key::Clear], &[Key::Char('x')], &[Key::Down, Key::Char('o')]] {
        let mut browser = browser((80, 24));
        let [Effect::Ask(question)] = &browser.effects()[..] else { panic!("no question") };
        browser.early(question.number, early());
        pressed.iter().for_each(|key| browser.key(*key));
        assert_eq!(browser.effects(), [], "{pressed:?}");
        browser.answer(question.number, overview());
        assert_eq!(browser.chosen_text(), "overview", "{pressed:?}");
    }
}

#[test]
fn a_resize_does_not_ask_for_an_overview_that_was_cancelled() {
    let mut browser = browser((80, 24));
    let [Effect::Ask(question)] = &browser.effects()[..] else { panic!("no question") };
    browser.early(question.number, early());
    browser.key(Key::Esc);
    assert_eq!(browser.effects(), [Effect::Cancel]);
    browser.resize((60, 24));
    assert_eq!(browser.effects(), []);
}
