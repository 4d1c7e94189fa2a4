//! Random keys and sizes, and hostile names.

use hprof_report::column::CellTarget;
use hprof_report::screen::ScreenLine;
use hprof_report::window::WindowPosition;
use hprof_values::ObjectId;

use super::{browser, screen, settle};
use crate::cli::browse::core::{Effect, Key, ScreenAnswer, ScreenRequest};

/// Generator of pseudorandom numbers, the same in each run.
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

/// Returns a result with hostile texts and links of all kinds.
fn any_answer(question: &ScreenRequest, numbers: &mut Numbers) -> ScreenAnswer {
    let count = numbers.below(60);
    let mut lines: Vec<ScreenLine> = vec![ScreenLine { is_heading: true, ..ScreenLine::of_text("titles") }];
    for row in 0..count {
        let name = HOSTILE.get(numbers.below(HOSTILE.len())).copied().unwrap_or_default();
        let id = ObjectId(numbers.below(40) as u64);
        let target = match numbers.below(6) {
            5 => CellTarget::Command(
                ["leaks", "redact", name][..=numbers.below(3)]
                    .iter()
                    .map(|word| (*word).to_owned())
                    .collect(),
            ),
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
        WindowPosition { start, rows: count, has_more, total: is_known.then_some(start + count) }
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
            if numbers.below(3) == 0 {
                browser.early(question.number, any_answer(&question, &mut numbers));
                if numbers.below(2) == 0 {
                    browser.key(Key::Char(letters[numbers.below(letters.len())]));
                }
            }
            match numbers.below(6) {
                // A result that arrives too late, or never.
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
