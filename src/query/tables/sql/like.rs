//! LIKE in time bounded by the product of both lengths: SQLite's own backtracks, so that a pattern of many `%` can
//! take very long on a long text.

/// Characters compared between two checks of the clock: less than a millisecond.
const STEPS: u32 = 1 << 16;

/// Returns whether a text matches a pattern as in SQLite's LIKE: `%` matches any characters, `_` one, ASCII letters
/// match in either case. `escape` makes the next character of the pattern literal. Backtracks only to the last `%`,
/// which suffices. `None` if `is_over`, called regularly, ended the comparison: both lengths may be at their limits.
pub(super) fn matches(
    pattern: &str,
    text: &str,
    escape: Option<char>,
    is_over: impl Fn() -> bool,
) -> Option<bool> {
    let mut pattern = Pattern { rest: pattern, escape };
    let mut rest = text;
    // Pattern after the last `%`, and the text at which it was last tried.
    let mut again: Option<(Pattern<'_>, &str)> = None;
    let mut steps = 0u32;
    loop {
        steps = steps.wrapping_add(1);
        if steps.is_multiple_of(STEPS) && is_over() {
            return None;
        }
        let mut after = pattern;
        let is_match = match (after.next(), rest.chars().next()) {
            (Some(PatternPart::Any), _) => {
                again = Some((after, rest));
                pattern = after;
                continue;
            }
            (None, None) => return Some(true),
            (Some(PatternPart::One), Some(_)) => true,
            (Some(PatternPart::Is(wanted)), Some(found)) => wanted.eq_ignore_ascii_case(&found),
            (Some(PatternPart::Never), _) | (None, Some(_)) | (Some(_), None) => false,
        };
        if is_match {
            (pattern, rest) = (after, behind_first(rest));
            continue;
        }
        let Some((behind, tried)) = again else { return Some(false) };
        if tried.is_empty() {
            return Some(false);
        }
        let tried = behind_first(tried);
        again = Some((behind, tried));
        (pattern, rest) = (behind, tried);
    }
}

fn behind_first(text: &str) -> &str {
    let mut chars = text.chars();
    chars.next();
    chars.as_str()
}

/// A parsed pattern of LIKE.
#[derive(Clone, Copy)]
struct Pattern<'p> {
    rest: &'p str,
    escape: Option<char>,
}

/// Element of a LIKE pattern.
enum PatternPart {
    Any,
    One,
    Is(char),
    Never,
}

impl Pattern<'_> {
    fn next(&mut self) -> Option<PatternPart> {
        let mut chars = self.rest.chars();
        let part = match chars.next()? {
            escape if Some(escape) == self.escape => match chars.next() {
                Some(next) => PatternPart::Is(next),
                // As in SQLite: a pattern that ends with the escape character matches nothing.
                None => PatternPart::Never,
            },
            '%' => PatternPart::Any,
            '_' => PatternPart::One,
            other => PatternPart::Is(other),
        };
        self.rest = chars.as_str();
        Some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_like(pattern: &str, text: &str, escape: Option<char>) -> bool {
        matches(pattern, text, escape, || false) == Some(true)
    }

    #[test]
    fn as_in_sqlite() {
        let cases = [
            ("", "", true),
            ("", "a", false),
            ("%", "", true),
            ("a%", "ABC", true),
            ("%c", "abc", true),
            ("%b%", "abc", true),
            ("_b_", "aBc", true),
            ("_", "", false),
            ("a%c%e", "abcde", true),
            ("a%c%d", "abcde", false),
            ("%ab", "aab", true),
            ("Ä", "ä", false),
            ("_", "ä", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(is_like(pattern, text, None), expected, "{pattern} on {text}");
        }
        assert!(is_like("10!%", "10%", Some('!')) && !is_like("10!%", "100", Some('!')));
        for (pattern, text) in [("a!", "a!"), ("a!", "a"), ("!", ""), ("%!", "!"), ("%!", "")] {
            assert!(!is_like(pattern, text, Some('!')), "{pattern} on {text}");
        }
    }

    #[test]
    fn many_signs_take_no_time() {
        let pattern = "%a".repeat(400) + "b";
        let text = "a".repeat(100_000);
        assert!(!is_like(&pattern, &text, None));
        assert_eq!(matches(&pattern, &text, None, || true), None);
    }
}
