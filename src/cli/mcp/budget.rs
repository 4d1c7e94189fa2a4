//! Shortening results to a number of bytes, by whole rows and elements.

use serde_json::{Map, Value, json};

use super::wire::json_text;

/// Maximum length in characters of a text when texts are shortened as the last resort.
const SHORT_TEXT: usize = 200;

/// Shortens a JSON result to at most `bytes` bytes: removes elements from the ends of its longest lists, and describes in the
/// key `omitted` how many elements of which lists. Texts are shortened only if that is not enough. Returns whether anything
/// was removed or shortened.
pub(super) fn cut(answer: &mut Map<String, Value>, bytes: usize) -> bool {
    let mut omitted = Vec::<(String, usize)>::new();
    let mut is_cut = false;
    // One element of each list is better than none; without any, a row still has its numbers.
    for (stage, least) in [CutScope::All, CutScope::WithinRows, CutScope::All].into_iter().zip([1, 0, 0]) {
        cut_lists(answer, bytes, (stage, least), &mut omitted);
        let is_too_long = map_length(answer).saturating_add(note_length(&omitted)) > bytes;
        is_cut |= is_too_long && shorten(answer);
    }
    note(answer, &omitted) | is_cut
}

/// Lists that may be shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CutScope {
    All,
    /// All lists except the rows themselves.
    WithinRows,
}

/// Shortens lists to no fewer than `least` elements until the result fits or no list can be shortened further.
fn cut_lists(
    answer: &mut Map<String, Value>,
    bytes: usize,
    (stage, least): (CutScope, usize),
    omitted: &mut Vec<(String, usize)>,
) {
    loop {
        let size = map_length(answer).saturating_add(note_length(omitted));
        if size <= bytes {
            return;
        }
        let Some((path, list)) = longest(answer, stage, least) else { return };
        let keep = kept_count(list, size.saturating_sub(bytes), least);
        let gone = list.len().saturating_sub(keep);
        list.truncate(keep);
        match omitted.iter_mut().find(|(known, _)| *known == path) {
            Some((_, count)) => *count = count.saturating_add(gone),
            None => omitted.push((path, gone)),
        }
    }
}

/// Returns the length of a value as JSON.
pub(super) fn length(value: &Value) -> usize {
    json_text(value).len()
}

/// Returns the length of a text as JSON.
pub(super) fn escaped_length(text: &str) -> usize {
    json_text(&text).len()
}

fn map_length(value: &Map<String, Value>) -> usize {
    json_text(value).len()
}

/// Maximum number of shortened lists that the note names; it states the number of further lists.
const NAMED: usize = 8;

/// Estimates the length of the note in bytes.
fn note_length(omitted: &[(String, usize)]) -> usize {
    let others = if omitted.len() > NAMED { 80 } else { 0 };
    omitted.iter().take(NAMED).map(|(path, _)| path.len().saturating_add(40)).sum::<usize>() + others
}

fn note(answer: &mut Map<String, Value>, omitted: &[(String, usize)]) -> bool {
    if omitted.is_empty() {
        return false;
    }
    let (named, others) = omitted.split_at(omitted.len().min(NAMED));
    let mut list: Vec<Value> =
        named.iter().map(|(path, count)| json!({"list": path, "omitted": count})).collect();
    if !others.is_empty() {
        let count = others.iter().fold(0, |sum: usize, (_, count)| sum.saturating_add(*count));
        list.push(json!({"list": format!("{} others", others.len()), "omitted": count}));
    }
    answer.insert("omitted".to_owned(), list.into());
    true
}

/// Returns the number of elements to keep if about `excess` bytes must go: at least `least`, but fewer than all.
fn kept_count(list: &[Value], excess: usize, least: usize) -> usize {
    let mut gone = 0usize;
    let mut count = list.len();
    for element in list.iter().rev() {
        if gone > excess || count <= least {
            break;
        }
        gone = gone.saturating_add(element.to_string().len()).saturating_add(1);
        count = count.saturating_sub(1);
    }
    count.max(least).min(list.len().saturating_sub(1))
}

/// Returns the list with the largest size among those with more than `least` elements, and the path to it.
fn longest(
    answer: &mut Map<String, Value>,
    stage: CutScope,
    least: usize,
) -> Option<(String, &mut Vec<Value>)> {
    let mut search = Search { path: Vec::new(), best: None, stage, least };
    for (key, value) in answer.iter() {
        search.path.push(Step::Key(key));
        search.visit(value);
        search.path.pop();
    }
    let (_, steps) = search.best?;
    let words = steps.iter().map(|step| match step {
        Step::Key(key) => (*key).to_owned(),
        Step::Index(index) => index.to_string(),
    });
    let words: Vec<String> = words.collect();
    let (first, others) = words.split_first()?;
    let mut value = answer.get_mut(first)?;
    for word in others {
        value = match value {
            Value::Array(list) => list.get_mut(word.parse::<usize>().ok()?)?,
            other => other.get_mut(word)?,
        };
    }
    value.as_array_mut().map(|list| (words.join("."), list))
}

/// A step of a path in a JSON document.
#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

/// Search for the list with the largest size.
struct Search<'a> {
    path: Vec<Step<'a>>,
    /// Size in bytes of the largest list so far, and the path to it.
    best: Option<(usize, Vec<Step<'a>>)>,
    stage: CutScope,
    least: usize,
}

impl<'a> Search<'a> {
    /// Visits a value. Returns its approximate length; an exact one is not needed.
    fn visit(&mut self, value: &'a Value) -> usize {
        match value {
            Value::Array(list) => {
                let mut size = 2usize;
                for (index, element) in list.iter().enumerate() {
                    self.path.push(Step::Index(index));
                    size = size.saturating_add(self.visit(element)).saturating_add(1);
                    self.path.pop();
                }
                let may_be_cut = self.stage == CutScope::All || self.path.len() > 1;
                // An outer list of the same length wins: its elements are removed whole.
                let is_longest = self.best.as_ref().is_none_or(|(most, _)| size >= *most);
                if list.len() > self.least && may_be_cut && is_longest {
                    self.best = Some((size, self.path.clone()));
                }
                size
            }
            Value::Object(map) => {
                let mut size = 2usize;
                for (key, element) in map {
                    self.path.push(Step::Key(key));
                    let length = self.visit(element);
                    size = size.saturating_add(key.len()).saturating_add(length).saturating_add(4);
                    self.path.pop();
                }
                size
            }
            Value::String(text) => text.len().saturating_add(2),
            Value::Number(number) => number.to_string().len(),
            Value::Bool(_) | Value::Null => 4,
        }
    }
}

/// Shortens long texts. Returns whether any was shortened.
fn shorten(answer: &mut Map<String, Value>) -> bool {
    let mut is_cut = false;
    answer.values_mut().for_each(|value| is_cut |= shorten_value(value));
    is_cut
}

fn shorten_value(value: &mut Value) -> bool {
    match value {
        Value::String(text) if text.chars().count() > SHORT_TEXT => {
            let more = text.chars().count().saturating_sub(SHORT_TEXT);
            let start: String = text.chars().take(SHORT_TEXT).collect();
            *text = format!("{start}… ({more} more characters)");
            true
        }
        Value::Array(list) => list.iter_mut().fold(false, |is_cut, value| shorten_value(value) | is_cut),
        Value::Object(map) => map.values_mut().fold(false, |is_cut, value| shorten_value(value) | is_cut),
        _ => false,
    }
}

/// Truncates a text so that it has at most `bytes` bytes as JSON.
pub(super) fn fit_text(text: &str, bytes: usize) -> String {
    let mut most = bytes;
    loop {
        let cut = cut_text(text, most);
        if escaped_length(&cut) <= bytes || most < 64 {
            return cut;
        }
        most = most / 4 * 3;
    }
}

/// Returns part `number` (from 1) of a text, and whether more parts follow: whole lines with at most `bytes` bytes as JSON.
pub(super) fn part(text: &str, number: usize, bytes: usize) -> Option<(&str, bool)> {
    let mut rest = text;
    for at in 1.. {
        let mut length = 0usize;
        let mut end = 0usize;
        for line in rest.split_inclusive('\n') {
            length = length.saturating_add(escaped_length(line));
            if length > bytes && end > 0 {
                break;
            }
            end = end.saturating_add(line.len());
        }
        let (part, after) = rest.split_at_checked(end)?;
        if at == number || part.is_empty() {
            return (at == number && !part.is_empty()).then_some((part, !after.is_empty()));
        }
        rest = after;
    }
    None
}

/// Truncates a text to a number of bytes, at the end of a line unless the first line is too long.
fn cut_text(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    const MORE: &str = "(more lines are omitted)\n";
    let mut cut = String::new();
    for line in text.split_inclusive('\n') {
        if cut.len().saturating_add(line.len()).saturating_add(MORE.len()) > bytes {
            break;
        }
        cut.push_str(line);
    }
    if cut.is_empty() {
        let most = bytes.saturating_sub(MORE.len() + 1);
        let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        cut = format!("{}\n", text.get(..end).unwrap_or_default());
    }
    cut + MORE
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn rows_go_whole_and_are_counted() {
        let rows: Vec<Value> =
            (0..1000).map(|at| json!({"class": format!("com.acme.C{at}"), "bytes": at})).collect();
        let whole = json!({"command": "histo", "rows": rows.clone()});
        for bytes in [200, 1000, 5000, 20_000] {
            let mut answer = whole.as_object().unwrap().clone();
            assert!(cut(&mut answer, bytes));
            let text = serde_json::to_string(&answer).unwrap();
            assert!(text.len() <= bytes && text.len() > bytes / 2, "{bytes}: {}", text.len());
            let left = answer["rows"].as_array().unwrap();
            assert_eq!(left[..], rows[..left.len()]);
            assert_eq!(answer["omitted"], json!([{"list": "rows", "omitted": 1000 - left.len()}]));
        }
        let mut answer = whole.as_object().unwrap().clone();
        assert!(!cut(&mut answer, 1 << 20) && answer.get("omitted").is_none());
    }

    #[test]
    fn a_row_that_is_too_long_loses_elements_of_its_own() {
        let row = json!({"facts": vec!["fact"; 1000], "paths": [vec!["step"; 2000]]});
        let mut answer = json!({"rows": [row]}).as_object().unwrap().clone();
        assert!(cut(&mut answer, 1000));
        assert!(serde_json::to_string(&answer).unwrap().len() <= 1000);
        assert_eq!(answer["omitted"].as_array().unwrap().len(), 2, "{answer:?}");
        // Without room for one element of each list, the row is kept with its numbers.
        let lists: Map<String, Value> =
            (0..40).map(|list| (format!("list{list}"), json!([{"class": "com.acme.Order"}]))).collect();
        let mut row = lists.clone();
        row.insert("bytes".to_owned(), 7.into());
        let mut answer = json!({"rows": [row]}).as_object().unwrap().clone();
        assert!(cut(&mut answer, 1400));
        assert!(serde_json::to_string(&answer).unwrap().len() <= 1400);
        assert_eq!(answer["rows"][0]["bytes"], 7);
        let mut answer = json!({"rows": [{"text": "x".repeat(10_000)}]}).as_object().unwrap().clone();
        assert!(cut(&mut answer, 1000) && serde_json::to_string(&answer).unwrap().len() <= 1000);
    }

    #[test]
    fn parts_are_the_whole_text() {
        let text: String = (0..500).map(|line| format!("line {line} \"quoted\"\n")).collect();
        let mut whole = String::new();
        for number in 1.. {
            let (part, has_more) = super::part(&text, number, 1000).unwrap();
            assert!(escaped_length(part) <= 1000 && part.len() > 500 - usize::from(!has_more) * 499);
            whole.push_str(part);
            if !has_more {
                assert_eq!(super::part(&text, number + 1, 1000), None);
                break;
            }
        }
        assert_eq!(whole, text);
        assert_eq!((super::part(&text, 0, 1000), super::part("", 1, 1000)), (None, None));
    }

    #[test]
    fn texts_end_with_a_line() {
        assert_eq!(cut_text("a\nb\n", 4), "a\nb\n");
        assert_eq!(
            cut_text("aaaa\nbbbb\ncccc\ndddddddddddddddddddd\n", 35),
            "aaaa\nbbbb\n(more lines are omitted)\n"
        );
        assert_eq!(
            cut_text(&"\u{e4}".repeat(99), 36),
            "\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\n(more lines are omitted)\n"
        );
        // As JSON, a line break has two bytes, and a control character six.
        let fit = fit_text(&"\u{1}\n".repeat(999), 200);
        assert!(escaped_length(&fit) <= 200 && fit.len() > 40, "{fit:?}");
    }
}
