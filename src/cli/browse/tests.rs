//! The browser without a terminal: screens of a sample, keys and sizes at random, hostile names.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use hprof_parser::ObjectId;
use hprof_report::column::CellTarget;
use hprof_report::screen::ScreenLine;
use hprof_report::window::{RowWindow, WindowPlace};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use super::answers::Answerer;
use super::core::{Browser, Effect, Key, Question, READING, ScreenAnswer};
use super::session::CommandOptions;
use crate::cli;
use crate::cli::shared::context::RunContext;

fn browser(size: (u16, u16)) -> Browser {
    Browser::new(
        PathBuf::from("s1.hprof"),
        None,
        vec!["--heap-dump=2".into()],
        Box::new(CommandOptions),
        size,
    )
}

fn screen(browser: &Browser, size: (u16, u16)) -> Buffer {
    let mut cells = Buffer::empty(Rect::new(0, 0, size.0, size.1));
    browser.draw(&mut cells, true);
    cells
}

/// Returns the lines of a screen, without spaces at their ends.
fn text(cells: &Buffer) -> String {
    let mut text = String::new();
    for y in 0..cells.area.height {
        let line: String =
            (0..cells.area.width).filter_map(|x| cells.cell((x, y))).map(|cell| cell.symbol()).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Answers all questions of a browser; returns its other effects.
fn settle(browser: &mut Browser, answer: impl Fn(&Question) -> ScreenAnswer) -> Vec<Effect> {
    let mut others = Vec::new();
    loop {
        let effects = browser.effects();
        if effects.is_empty() {
            return others;
        }
        for effect in effects {
            match effect {
                Effect::Ask(question) => browser.answer(question.number, answer(&question)),
                other => others.push(other),
            }
        }
    }
}

fn keys(text: &str) -> Vec<Key> {
    let key = |word: &str| match word {
        "Enter" => vec![Key::Enter],
        "Esc" => vec![Key::Esc],
        "Back" => vec![Key::Backspace],
        "Down" => vec![Key::Down],
        "Right" => vec![Key::Right],
        "End" => vec![Key::End],
        "Tab" => vec![Key::Tab],
        "Space" => vec![Key::Char(' ')],
        word => word.chars().map(Key::Char).collect(),
    };
    text.split(' ').flat_map(key).collect()
}

/// Screens of a sample, at two sizes, after these keys.
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
    let answer = |question: &Question| {
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
        self::text(&screen(browser, (80, 24)))
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
    // A line that is hidden gets the selection back.
    let shown = press(&mut browser, "Esc / Object[]x");
    assert!(!shown.contains("0xffe58918"), "{shown}");
    assert!(press(&mut browser, "Esc").contains("Enter: 0xffe58918"));
    // One that was chosen among those that are shown keeps it.
    let shown = press(&mut browser, "/ Object[ Enter Down Down");
    assert!(shown.contains("Enter: 0xffe72730"), "{shown}");
    let shown = press(&mut browser, "Esc");
    assert!(shown.contains("Enter: 0xffe72730") && shown.contains("ConcurrentHashMap"), "{shown}");
}

#[test]
fn what_the_first_answer_says_about_the_dump_is_not_repeated() {
    let indexes = tempfile::tempdir().expect("a directory");
    let answerer = answerer_with(indexes.path(), Vec::new());
    let notes = |words: &[&str]| {
        let answer = answerer.answer(&question(words, None));
        let notes = answer.lines.iter().skip(answer.lines.len() - answer.notes);
        notes.map(|line| line.text.clone()).collect::<Vec<_>>().join(" ")
    };
    assert!(notes(&["overview"]).contains("note: unpacked into"));
    assert_eq!(notes(&["histo"]), "");
    assert!(notes(&["paths-to-root", "0xffab85e8"]).starts_with("note: no other path"));
    assert!(notes(&["overview"]).contains("note: unpacked into"));
}

#[test]
fn a_note_that_explains_an_empty_answer_is_repeated() {
    let indexes = tempfile::tempdir().expect("a directory");
    let answerer = answerer_with(indexes.path(), Vec::new());
    for words in [&["roots", "--kind=debugger"][..], &["roots", "--kind=debugger", "--top=5"]] {
        let answer = answerer.answer(&question(words, None));
        let has_note = answer.lines.iter().any(|line| line.text.contains("no root of these kinds"));
        assert!(has_note, "{words:?}: {:?}", answer.lines);
    }
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

/// Returns an answer with these texts; all are about one object.
fn about_one_object(question: &Question, texts: &[&str]) -> ScreenAnswer {
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
    // Rows 7 and 17 are shown until the answer comes.
    for key in keys("Enter Down Down") {
        browser.key(key);
    }
    let chosen = browser.chosen_text();
    assert_eq!(chosen, "row 27");
    browser.answer(question.number, million(question));
    assert_eq!(browser.chosen_text(), chosen);
}

#[test]
fn an_unknown_command_is_not_one_for_a_shell() {
    for (typed, expected) in
        [(":hsto Enter", "no command hsto"), (":redact Enter", "redact: only in a shell")]
    {
        let mut browser = browser((80, 24));
        keys(typed).into_iter().for_each(|key| browser.key(key));
        let shown = text(&screen(&browser, (80, 24)));
        assert!(shown.contains(expected), "{shown}");
    }
}

#[test]
fn an_error_has_no_links() {
    let answer = ScreenAnswer::failed("object IDs look like 0x7c00012a8", Some("try 0x10"), 80);
    assert!(answer.is_failed && answer.lines.iter().all(|line| line.links.is_empty()), "{:?}", answer.lines);
}

#[test]
fn help_of_a_command_is_a_text() {
    let indexes = tempfile::tempdir().expect("a directory");
    let answerer = answerer(indexes.path());
    for words in [
        &["histo", "--help"][..],
        &["histo", "-h"],
        &["sql", "--help"],
        &["dominators", "--depth=3", "--help"],
    ] {
        let answer = answerer.answer(&Question { width: 79, ..question(words, None) });
        let lines: Vec<&str> = answer.lines.iter().map(|line| line.text.as_str()).collect();
        assert!(
            !answer.is_failed && lines.iter().any(|line| line.starts_with("Usage: ")),
            "{words:?}: {lines:?}"
        );
        assert!(lines.iter().all(|line| hprof_report::fit::width(line) <= 79), "{words:?}: {lines:?}");
    }
    assert!(answerer.answer(&question(&["histo", "--wrong"], None)).is_failed);
    let mut browser = browser((80, 24));
    browser.effects();
    for key in keys(":histo Space -h Enter") {
        browser.key(key);
    }
    let asked = browser.effects();
    let [Effect::Ask(question)] = &asked[..] else { panic!("no question: {asked:?}") };
    assert_eq!((question.words.join(" "), &question.window), ("histo -h".to_owned(), &None));
}

/// Returns an answerer for a sample, without a child process; its indexes are in the directory.
fn answerer(indexes: &Path) -> Answerer {
    answerer_with(indexes, vec!["--quiet".into()])
}

fn answerer_with(indexes: &Path, mut options: Vec<OsString>) -> Answerer {
    let mut option = OsString::from("--index-dir=");
    option.push(indexes);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let cx = RunContext::shell().keeping_dumps(None, false);
    options.push(option);
    Answerer::new(cx, root.join("samples/leaks/s1.hprof.zst"), None, options)
}

fn question(words: &[&str], window: Option<RowWindow>) -> Question {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    Question { number: 1, words, trees: Vec::new(), width: 200, window }
}

#[test]
fn windows_of_rows_are_all_rows() {
    let indexes = tempfile::tempdir().expect("a directory");
    let answerer = answerer(indexes.path());
    for words in [
        &["dominators"][..],
        &["sql", "SELECT object FROM objects LIMIT 1500"],
        &["oql", "SELECT * FROM java.lang.String"],
        &["histo"],
        &["instances", "java.lang.String"],
        &["classes"],
        &["strings"],
        &["roots"],
        &["threads"],
        &["loaders"],
    ] {
        let ask = |start, count, is_last| {
            let window = RowWindow { start, count, is_last, ..RowWindow::ALL };
            let answer = answerer.answer(&question(words, Some(window)));
            assert!(!answer.is_failed, "{words:?}: {:?}", answer.lines);
            answer.place.expect("rows")
        };
        let last = ask(0, 10, true);
        let (all, mut end) = (last.start + last.rows, 0);
        while end < 1200 {
            let place = ask(end, 400, false);
            assert_eq!((place.start, place.rows), (end, 400.min(all - end)), "{words:?}");
            end += place.rows;
            assert_eq!(place.has_more, end < all, "{words:?}");
            if !place.has_more {
                break;
            }
        }
        assert_eq!(end, all.min(1200), "{words:?}");
    }
}

#[test]
fn no_view_writes_a_file_or_reads_a_query_from_stdin() {
    let indexes = tempfile::tempdir().expect("a directory");
    let answerer = answerer(indexes.path());
    let error = |words: &[&str]| {
        let answer = answerer.answer(&question(words, None));
        let lines: Vec<String> = answer.lines.iter().map(|line| line.text.clone()).collect();
        assert!(answer.is_failed && !lines.iter().any(|line| line.contains("\\n")), "{words:?}: {lines:?}");
        lines.join(" ")
    };
    let out = indexes.path().join("out");
    let name = out.to_str().expect("text");
    for command in READING {
        for argument in cli::one(command).iter().flat_map(clap::Command::get_arguments) {
            if cli::is_file(argument) {
                let option = format!("--{}={name}", argument.get_long().expect("a long option"));
                let extra = if option.starts_with("--output") { "--init" } else { "--rules=rules.toml" };
                assert!(error(&[command, extra, &option]).contains("writes a file"), "{command} {option}");
            }
        }
    }
    for words in [&["check", "--init", "-o", name][..], &["check", "--rules=x", "--junit", name]] {
        assert!(error(words).contains("writes a file"), "{words:?}");
    }
    assert!(!out.exists());
    for words in [&["sql", "--top", "5"][..], &["oql", "--format", "csv", "--file", "-"]] {
        assert!(error(words).contains("query"), "{words:?}");
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
    settle(&mut browser, |_| ScreenAnswer::failed("not a dump", None, 79));
    assert_eq!(browser.failure().as_deref(), Some("error: not a dump"));
    browser.key(Key::Char('h'));
    settle(&mut browser, |question| ScreenAnswer { width: question.width, ..ScreenAnswer::default() });
    assert_eq!(browser.failure(), None);
}

/// Numbers that look random, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap_or(0) % end.max(1)
    }
}

const HOSTILE: &[&str] = &[
    "\u{1b}[2J\u{1b}]52;c;AAAA\u{7}",
    "\u{202e}evil\u{2066}",
    "日本語日本語日本語日本語日本語",
    "e\u{301}\u{301}\u{301} 👨\u{200d}👩\u{200d}👧",
    "--sort=x",
    "*",
    "'; rm -rf \"",
    "0x7c00012a8 0xffffffffffffffffff 0x",
    "",
    "x/../%3f&kind=\n\r\t",
];

/// Returns an answer with hostile texts and links of all kinds.
fn any_answer(question: &Question, numbers: &mut Numbers) -> ScreenAnswer {
    let count = numbers.below(60);
    let mut lines: Vec<ScreenLine> = vec![ScreenLine { is_heading: true, ..ScreenLine::of_text("titles") }];
    for row in 0..count {
        let name = HOSTILE.get(numbers.below(HOSTILE.len())).copied().unwrap_or_default();
        let id = ObjectId(numbers.below(40) as u64);
        let target = match numbers.below(5) {
            0 => CellTarget::Class(name.to_owned(), None),
            1 => CellTarget::Class(name.to_owned(), Some(id)),
            2 => CellTarget::Page(
                ["waste?kind=a", "threads?thread=0x1&stack=1", "object/0x1", name][numbers.below(4)]
                    .to_owned(),
            ),
            _ => CellTarget::Object(id),
        };
        let line = ScreenLine::of_text(&format!("{:#x} {name}", id.0));
        let links = [vec![target], line.links.to_vec()].concat().into();
        lines.push(ScreenLine { links, row: (numbers.below(3) > 0).then_some(row), ..line });
    }
    let notes = numbers.below(lines.len() + 1);
    let place = question.window.as_ref().map(|window| {
        let start = if window.is_last { numbers.below(5000) } else { window.start };
        let (has_more, is_known) = (!window.is_last && numbers.below(3) > 0, numbers.below(2) == 0);
        lines.iter_mut().for_each(|line| line.row = line.row.map(|row| row + start));
        WindowPlace { start, rows: count, has_more, total: is_known.then_some(start + count) }
    });
    let text = question.window.as_ref().map_or_else(String::new, |window| window.text.clone());
    ScreenAnswer { lines, notes, place, text, width: question.width, is_failed: numbers.below(9) == 0 }
}

#[test]
fn no_keys_and_sizes_panic_and_nothing_hostile_is_drawn() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut size = (80, 24);
    let mut browser = browser(size);
    let special = [
        Key::Enter,
        Key::Backspace,
        Key::Esc,
        Key::Tab,
        Key::Up,
        Key::Down,
        Key::Left,
        Key::Right,
        Key::PageUp,
        Key::PageDown,
        Key::Home,
        Key::End,
        Key::Clear,
        Key::Suspend,
        Key::Interrupt,
    ];
    let letters: Vec<char> = "oldhtswgprDbmMyYfjk>/:?+- eEq0xé日\u{1b}\u{202e}".chars().collect();
    for step in 0..100_000 {
        let key = match numbers.below(10) {
            0..=3 => special[numbers.below(special.len())],
            4 => Key::Click(u16::try_from(numbers.below(30)).unwrap_or(0)),
            _ => Key::Char(letters[numbers.below(letters.len())]),
        };
        browser.key(key);
        if numbers.below(50) == 0 {
            let small = |numbers: &mut Numbers, most| u16::try_from(numbers.below(most)).unwrap_or(0);
            size = (small(&mut numbers, 70), small(&mut numbers, 20));
            browser.resize(size);
        }
        for effect in browser.effects() {
            let Effect::Ask(question) = effect else { continue };
            assert!(
                question.words.iter().all(|word| !word.is_empty()) || question.words.len() > 1,
                "{question:?}"
            );
            match numbers.below(6) {
                // An answer that comes too late, or never.
                0 => {}
                1 => browser.answer(question.number.wrapping_sub(1), any_answer(&question, &mut numbers)),
                _ => browser.answer(question.number, any_answer(&question, &mut numbers)),
            }
            browser.progress(question.number, HOSTILE[numbers.below(HOSTILE.len())]);
        }
        if step % 3 == 0 {
            let cells = screen(&browser, size);
            let is_harmful =
                |c: char| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c) || c == '\u{2066}';
            for cell in &cells.content {
                assert!(!cell.symbol().contains(is_harmful), "{:?}", cell.symbol());
            }
        }
    }
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
fn a_class_with_a_hostile_name_is_no_option_and_no_pattern() {
    for (name, id, expected) in [
        ("com.acme.Order", None, Some("instances --top=401 com.acme.Order")),
        ("--sort=x", None, None),
        ("a*", Some(ObjectId(0x10)), Some("show 0x10 --incoming")),
        ("\u{1b}[2J", None, None),
    ] {
        let mut browser = browser((80, 24));
        let link = CellTarget::Class(name.to_owned(), id);
        let line = ScreenLine { links: vec![link].into(), row: Some(0), ..ScreenLine::of_text(name) };
        settle(&mut browser, |question| ScreenAnswer {
            lines: vec![line.clone()],
            width: question.width,
            ..ScreenAnswer::default()
        });
        browser.key(Key::Enter);
        let words = browser.effects().into_iter().find_map(|effect| match effect {
            Effect::Ask(question) => Some(question.command().0.join(" ")),
            _ => None,
        });
        assert_eq!(words.as_deref(), expected, "{name}");
    }
}

/// Returns the rows of a window among a million; those with a number that contains its text.
fn million(question: &Question) -> ScreenAnswer {
    const ALL: usize = 1_000_000;
    let Some(RowWindow { start, count, is_last, around, text, .. }) = question.window.clone() else {
        return ScreenAnswer { width: question.width, ..ScreenAnswer::default() };
    };
    assert!(count <= 400, "{question:?}");
    let all: Vec<usize> =
        (0..ALL).filter(|row| text.is_empty() || format!("row {row}").contains(&text)).collect();
    let link = |row: usize| CellTarget::Object(ObjectId(row as u64 + 1));
    let at = around.and_then(|targets| all.iter().position(|row| targets == [link(*row)]));
    let start = at.map_or(start, |at| at.saturating_sub(count / 2));
    let start = if is_last { all.len() - count } else { start };
    let rows: Vec<usize> = all.iter().skip(start).take(count).copied().collect();
    let line = |(at, row): (usize, &usize)| ScreenLine {
        row: Some(start + at),
        links: vec![link(*row)].into(),
        ..ScreenLine::of_text(&format!("row {row}"))
    };
    let has_more = start + rows.len() < all.len();
    let total = text.is_empty().then_some(ALL);
    let place = Some(WindowPlace { start, rows: rows.len(), has_more, total });
    let lines = rows.iter().enumerate().map(line).collect();
    ScreenAnswer { lines, place, text, width: question.width, ..ScreenAnswer::default() }
}

#[test]
fn a_million_rows_scroll_and_no_more_than_a_window_is_asked_for() {
    let mut browser = browser((80, 24));
    let shows = |browser: &Browser, text: &str| {
        let shown = self::text(&screen(browser, (80, 24)));
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
        shows(&browser, &format!("{}/1,000,000", hprof_report::number::grouped(row + 1)));
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
    // All rows are searched, not only those that are there.
    for key in keys("/ 9 9 8 7 9 Enter") {
        press(&mut browser, key);
    }
    shows(&browser, "row 99879\n");
    shows(&browser, "row 998799\n");
    // What is chosen there stays chosen among all rows.
    press(&mut browser, Key::Down);
    press(&mut browser, Key::Down);
    press(&mut browser, Key::Esc);
    shows(&browser, "299,880/1,000,000  Enter: 0x49368");
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
