//! Results of requests, without a browser.

use hprof_report::column::CellTarget;
use hprof_report::screen::ScreenLine;
use hprof_report::window::RowWindow;
use hprof_values::ObjectId;

use super::{answerer, answerer_with, browser, keys, question};
use crate::cli;
use crate::cli::browse::answers::Answerer;
use crate::cli::browse::core::{Effect, READING, ScreenAnswer, ScreenRequest};
use crate::cli::browse::wire::WireAnswer;
use crate::cli::browse::worker::answer_body;

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
    assert!(notes(&["paths-to-root", "0xffab85e8"]).starts_with("note: there are no other paths"));
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
fn an_error_has_no_links() {
    let answer = ScreenAnswer::for_failure("object IDs look like 0x7c00012a8", Some("try 0x10"), 80);
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
        let answer = answerer.answer(&ScreenRequest { width: 79, ..question(words, None) });
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
        for argument in cli::subcommand(command).iter().flat_map(clap::Command::get_arguments) {
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
fn an_answer_that_is_too_long_is_one_that_says_so() {
    let answer = |count: usize| ScreenAnswer {
        lines: vec![ScreenLine::of_text("x".repeat(100).as_str()); count],
        width: 80,
        ..ScreenAnswer::default()
    };
    let sent = |count| {
        let body = answer_body(answer(count), 4000);
        ScreenAnswer::from(serde_json::from_slice::<WireAnswer>(&body).expect("an answer"))
    };
    assert_eq!((sent(10).lines.len(), sent(10).is_failed), (10, false));
    let long = sent(100);
    assert!(long.is_failed && long.lines[0].text.contains("too long for this view"), "{long:?}");
}

#[test]
fn a_text_that_is_too_long_is_an_error_and_rows_beyond_the_limit_are_in_a_shell() {
    let indexes = tempfile::tempdir().expect("a directory");
    let answerer = answerer(indexes.path());
    let answer = answerer.answer(&question(&["dominators", "--all", "--format=json"], None));
    assert!(answer.is_failed && answer.lines[0].text.contains("too long"), "{:?}", answer.lines.first());
    let answer = answerer.answer(&question(&["dominators", "--depth=0", "--top=0"], None));
    let note = &answer.lines[answer.lines.len() - 1].text;
    assert!(note.contains("the view is truncated") && answer.lines.len() <= 20_001, "{note}");
}

#[test]
fn trees_of_open_nodes_are_asked_for_once() {
    let indexes = tempfile::tempdir().expect("a directory");
    let answerer = answerer(indexes.path());
    let window = |start| RowWindow { start, count: 400, ..RowWindow::ALL };
    let all = answerer.answer(&question(&["dominators"], Some(window(0))));
    let id = |line: &ScreenLine| match line.links.first() {
        Some(CellTarget::Object(id)) if line.row.is_some() => Some(*id),
        _ => None,
    };
    // More results than the cache can hold.
    let ids: Vec<ObjectId> = all.lines.iter().filter_map(id).take(100).collect();
    let tree =
        |id: &ObjectId| (*id, vec!["dominators".to_owned(), format!("--of={id:#x}"), "--top=50".to_owned()]);
    let mut asked = question(&["dominators"], Some(window(0)));
    asked.trees = ids.iter().map(tree).collect();
    answerer.answer(&asked);
    let before = answerer.run_count();
    assert!(before > 100, "{before}");
    assert!(!answerer.answer(&asked).is_failed);
    asked.window = Some(window(100));
    answerer.answer(&asked);
    asked.trees.pop();
    answerer.answer(&asked);
    assert_eq!(answerer.run_count(), before + 1);
}

#[test]
fn an_answer_that_is_too_large_to_be_kept_leaves_the_others() {
    let indexes = tempfile::tempdir().expect("a directory");
    let answerer = answerer(indexes.path()).keeping(1 << 20);
    let runs = |words: &[&str]| {
        let before = answerer.run_count();
        assert!(!answerer.answer(&question(words, None)).is_failed, "{words:?}");
        answerer.run_count() - before
    };
    let (small, large) = (&["dominators", "--top=5"], &["dominators", "--depth=0", "--top=0"]);
    assert_eq!((runs(small), runs(large)), (1, 1));
    assert_eq!((runs(small), runs(large)), (0, 1));
}

#[test]
fn the_biggest_objects_are_shown_until_the_overview_is_there() {
    let indexes = tempfile::tempdir().expect("a directory");
    let answerer = answerer(indexes.path());
    assert!(!answerer.has_index());
    let overview = question(&["overview"], None);
    assert!(Answerer::has_early(&overview) && !Answerer::has_early(&question(&["leaks"], None)));
    let first = answerer.answer(&overview);
    assert!(answerer.has_index());
    let early = answerer.early(&overview).expect("objects");
    let texts: Vec<&str> = early.lines.iter().map(|line| line.text.as_str()).collect();
    assert!(texts[0].contains("the overview is not ready yet") && early.notes == 0, "{texts:?}");
    assert!(texts[2].contains("0xffe56098") && texts.len() == 54, "{texts:?}");
    // The overview is another result, and the same as before.
    let is_early = |line: &ScreenLine| line.text.contains("the overview is not ready yet");
    assert!(
        !first.lines.iter().any(is_early)
            && first.lines.iter().any(|line| line.text.contains("ProductService"))
    );
    assert_eq!(answerer.answer(&overview).lines, first.lines);
    // Its places link to an object, and commands to their results.
    let links = |start: &str| {
        let line = first.lines.iter().find(|line| line.text.trim_start().starts_with(start));
        line.map(|line| line.links.to_vec())
    };
    assert_eq!(links("hprof-cli leaks"), Some(vec![CellTarget::Command(vec!["leaks".to_owned()])]));
    let place = links("3.5 MiB").expect("a place");
    assert!(
        matches!(&place[..], [CellTarget::Command(words), CellTarget::Object(_)] if *words == ["leaks"]),
        "{place:?}"
    );
}
