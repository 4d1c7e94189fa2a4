//! The queries of jhat's and VisualVM's help pages: all of them are run, with what each is to answer.

use std::fs;

use rayon::prelude::*;

use super::place::{JDK17, Place};

const FILE: &str = "tests/answers/oql/help_pages.txt";
/// Most rows that are compared: some queries have one for each String.
const TOP: &str = "1000";
/// Longest beginning of the first row that is compared.
const ROW: usize = 120;

/// Returns how a query ends, as the file says it.
fn answer(place: &Place, query: &str) -> String {
    let output = place.run(JDK17, &[query, "--format", "csv", "--top", TOP]);
    let (stdout, stderr) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    let code = output.status.code().unwrap();
    if let Some((_, error)) = stderr.lines().find_map(|line| line.split_once("error: OQL, line ")) {
        return format!("! {code} {}", error.split_once(": ").unwrap().1);
    }
    let mut rows = stdout.lines().skip(1);
    let first: String = rows.next().unwrap_or_default().chars().take(ROW).collect();
    let count = stdout.lines().count() - 1;
    assert_eq!(code, i32::from(count == 0), "{query}: {stderr}");
    if count == 0 { "= 0".to_owned() } else { format!("= {count} {first}") }
}

#[test]
fn queries_of_the_help_pages() {
    let text = fs::read_to_string(FILE).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
    let cases: Vec<(&str, &str)> =
        lines.chunks(2).map(|lines| (lines[0].strip_prefix("? ").unwrap(), lines[1])).collect();
    assert_eq!(cases.len(), 83);
    let place = Place::new();
    // Builds the index, outside of the threads that would wait for each other.
    drop(place.command(JDK17));
    let wrong: Vec<String> = cases
        .par_iter()
        .filter_map(|(query, expected)| {
            let found = answer(&place, query);
            (found != *expected).then(|| format!("{query}\n  is  {found}\n  not {expected}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // At least nine in ten run; the others name what OQL has instead.
    let run = cases.iter().filter(|(_, expected)| !expected.starts_with("! 2")).count();
    assert!(run * 10 >= cases.len() * 9, "{run} of {}", cases.len());
}
