//! Verdicts and sentences on dumps of programs that say what they planted.

use std::path::Path;

use serde_json::Value;

use super::{DUMPS, Leaks, more_samples, sample, samples, text};

/// Words of `X.truth.txt` that the first sentence has to say, with numbers as people write them.
const PLANTED: [(&str, &[&str]); 6] = [
    ("s1", &["shop.ProductService", "CACHE", "9,000", "shop.Product"]),
    ("s2", &["gateway.RequestParser.SCRATCH", "gateway.ParserScratch", "6 threads", "gateway-worker"]),
    ("s3", &["container.EventBus", "listeners", "40", "container.WebappLoader", "container.Plugin"]),
    ("s4", &["ingest.Pipeline", "queue", "60,000", "ingest.Event", "event-producer", "event-consumer"]),
    ("s5", &["orders.OrderIndex", "byNumber", "order-import-3"]),
    ("s7-t3", &["growth.SessionRegistry", "sessions", "10,000", "growth.Session"]),
];

/// Programs that keep much, and leak nothing: MAT's suspect, its largest parts in order, and how many of these are stores of many
/// objects, which are suspects that MAT does not have.
const HOLDERS: [(&str, &str, &[&str], usize); 3] = [
    ("s6", "waste.S6Waste", &["waste.Row[]", "java.util.ArrayList[]", "int[][]"], 0),
    ("s7-t1", "growth.S7Growth", &["growth.SessionRegistry", "growth.StableCache", "growth.BufferPool"], 3),
    ("s7-t2", "growth.S7Growth", &["growth.SessionRegistry", "growth.BufferPool", "growth.StableCache"], 2),
];

/// Returns whether a sentence contains a word, not only as the beginning of a longer one.
fn says(sentence: &str, word: &str) -> bool {
    let is_end = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric());
    sentence.match_indices(word).any(|(at, _)| is_end(&sentence[at + word.len()..]))
}

fn is_named(dir: &Path, name: &str, words: &[&str]) {
    let leaks = Leaks::of(&sample(dir, name));
    assert_eq!(leaks.code, 0, "{name}");
    let row = &leaks.rows[0];
    assert_eq!(row["verdict"], "accumulation", "{name}");
    let sentence = text(&row["sentence"]);
    for word in words {
        assert!(says(sentence, word), "{name}: {word} is not in: {sentence}");
    }
}

fn is_only_held(dir: &Path, name: &str, class: &str, parts: &[&str], stores: usize) {
    let leaks = Leaks::of(&sample(dir, name));
    let verdicts: Vec<&str> = leaks.rows.iter().map(|row| text(&row["verdict"])).collect();
    assert!(
        !verdicts.is_empty() && verdicts.iter().all(|verdict| ["holder", "platform"].contains(verdict)),
        "{name}: {verdicts:?}"
    );
    let code = i32::from(stores == 0);
    assert_eq!((leaks.code, &leaks.total["accumulations"]), (code, &Value::from(stores)), "{name}");
    let row = &leaks.rows[0];
    assert_eq!((text(&row["class"]), text(&row["what"])), (class, "class"), "{name}");
    let found: Vec<String> =
        row["parts"].as_array().unwrap().iter().map(|part| text(&part["text"]).to_owned()).collect();
    let classes = row["parts"].as_array().unwrap().iter().map(|part| text(&part["class"]));
    for ((wanted, class), found) in parts.iter().zip(classes).zip(&found) {
        assert!(class == *wanted || says(found, wanted), "{name}: {wanted}, not {class}: {found}");
    }
}

#[test]
fn the_first_sentence_names_what_was_planted() {
    let here = PLANTED.iter().filter(|(name, _)| DUMPS.contains(name));
    assert_eq!(here.map(|(name, words)| is_named(&samples(), name, words)).count(), DUMPS.len());
}

#[test]
#[ignore = "needs dumps that are not in the repository: HPROF_CLI_LEAK_DUMPS"]
fn the_first_sentence_of_more_dumps_names_what_was_planted() {
    let elsewhere = PLANTED.iter().filter(|(name, _)| !DUMPS.contains(name));
    assert_eq!(elsewhere.map(|(name, words)| is_named(&more_samples(), name, words)).count(), 2);
}

#[test]
#[ignore = "needs dumps that are not in the repository: HPROF_CLI_LEAK_DUMPS"]
fn programs_that_leak_nothing_are_only_holders() {
    for (name, class, parts, stores) in HOLDERS {
        is_only_held(&more_samples(), name, class, parts, stores);
    }
}
