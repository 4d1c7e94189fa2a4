//! Queries with what they answer, in files: `cases/*.txt`. All files there are run; a new one is found by itself.
//!
//! ```text
//! # A comment.
//! @ samples/one.hprof.zst samples/two.hprof.zst
//!
//! ? SELECT a query, in one line, that is asked of each of these dumps
//! = the rows of its answer
//! = as CSV, without the header
//!
//! ? SELECT a query that is wrong
//! ! 2 the exit code, and what stderr contains
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::place::Place;

const DIR: &str = "tests/answers/oql/cases";

/// Expected answer of a query.
enum Expected {
    Rows(Vec<String>),
    Error { code: i32, said: String },
}

struct Case {
    /// File and line.
    at: String,
    dumps: Vec<String>,
    query: String,
    expected: Option<Expected>,
}

impl Case {
    /// One more line of what is expected.
    fn expect(&mut self, sign: &str, text: &str) {
        match (sign, &mut self.expected) {
            ("=", expected @ None) => *expected = Some(Expected::Rows(vec![text.to_owned()])),
            ("=", Some(Expected::Rows(rows))) => rows.push(text.to_owned()),
            ("!", expected @ None) => {
                let (code, said) = text.split_once(' ').unwrap();
                *expected = Some(Expected::Error { code: code.parse().unwrap(), said: said.to_owned() });
            }
            _ => panic!("{}: what is expected of a query is rows, or one error", self.at),
        }
    }

    /// Returns a description of the failure, if any.
    fn run(&self, place: &Place) -> Option<String> {
        let wrong = self.dumps.iter().find_map(|dump| {
            let found = match self.expected.as_ref().unwrap() {
                Expected::Rows(expected) => {
                    let rows = place.rows(dump, &self.query);
                    (rows != *expected).then(|| format!("is {rows:?}\n  not {expected:?}"))
                }
                Expected::Error { code, said } => {
                    let output = place.run(dump, &[&self.query]);
                    let stderr = String::from_utf8(output.stderr).unwrap();
                    let is_right = output.status.code() == Some(*code) && stderr.contains(said);
                    (!is_right).then(|| format!("is {}: {stderr}  not {code}: {said}", output.status))
                }
            };
            Some(format!("{dump}\n  {}", found?))
        })?;
        Some(format!("{}: {}\n  {wrong}", self.at, self.query))
    }
}

/// The cases of a file.
fn cases(file: &Path) -> Vec<Case> {
    let (mut dumps, mut cases) = (Vec::new(), Vec::<Case>::new());
    for (number, line) in (1..).zip(fs::read_to_string(file).unwrap().lines()) {
        let at = format!("{}:{number}", file.display());
        let (sign, text) = line.split_once(' ').unwrap_or((line, ""));
        match sign {
            "" | "#" => {}
            "@" => dumps = text.split(' ').map(str::to_owned).collect(),
            "?" => cases.push(Case { at, dumps: dumps.clone(), query: text.to_owned(), expected: None }),
            _ => cases.last_mut().unwrap_or_else(|| panic!("{at}: no query before")).expect(sign, text),
        }
    }
    assert!(!cases.is_empty(), "{}: no cases", file.display());
    for case in &cases {
        assert!(!case.dumps.is_empty() && case.expected.is_some(), "{}: no dump, or no answer", case.at);
    }
    cases
}

#[test]
fn queries_answer_what_their_files_say() {
    let mut files: Vec<PathBuf> = fs::read_dir(DIR).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let cases: Vec<Case> = files.iter().flat_map(|file| cases(file)).collect();
    assert!(!cases.is_empty(), "{DIR}: no cases");
    let place = Place::new();
    // Builds the indexes, outside of the threads that would wait for each other.
    let dumps: std::collections::BTreeSet<&String> = cases.iter().flat_map(|case| &case.dumps).collect();
    dumps.into_iter().for_each(|dump| drop(place.command(dump)));
    let wrong: Vec<String> = cases.par_iter().filter_map(|case| case.run(&place)).collect();
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
