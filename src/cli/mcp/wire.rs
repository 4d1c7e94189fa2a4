//! Escaped JSON for messages.

use hprof_report::escape;
use serde::Serialize;

/// Returns a value as JSON. Characters that control a terminal or the direction of text are escaped as well, which does not
/// change what a parser reads.
pub(super) fn json_text(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_default();
    if !text.contains(escape::is_harmful) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if escape::is_harmful(c) { escape::push_escaped(&mut escaped, c) } else { escaped.push(c) }
    }
    escaped
}
