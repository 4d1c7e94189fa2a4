//! LIKE, in time that is bounded by the product of both lengths: SQLite's own backtracks, and a pattern of many `%`
//! takes as long as it likes on a long text.

/// Whether a text is like a pattern, as SQLite's LIKE has it: `%` is any characters, `_` is one, letters of ASCII match in
/// either case. `escape` takes a pattern's character as it is. Goes back only to the last `%`, which is enough.
pub(super) fn matches(pattern: &str, text: &str, escape: Option<char>) -> bool {
    let mut pattern = Pattern { rest: pattern, escape };
    let mut rest = text;
    // The pattern behind the last `%`, and the text that it was last tried at.
    let mut again: Option<(Pattern<'_>, &str)> = None;
    loop {
        let mut after = pattern;
        let is_match = match (after.next(), rest.chars().next()) {
            (Some(Part::Any), _) => {
                again = Some((after, rest));
                pattern = after;
                continue;
            }
            (None, None) => return true,
            (Some(Part::One), Some(_)) => true,
            (Some(Part::Is(wanted)), Some(found)) => wanted.eq_ignore_ascii_case(&found),
            (None, Some(_)) | (Some(_), None) => false,
        };
        if is_match {
            (pattern, rest) = (after, behind_first(rest));
            continue;
        }
        let Some((behind, tried)) = again else { return false };
        if tried.is_empty() {
            return false;
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

#[derive(Clone, Copy)]
struct Pattern<'p> {
    rest: &'p str,
    escape: Option<char>,
}

enum Part {
    Any,
    One,
    Is(char),
}

impl Pattern<'_> {
    fn next(&mut self) -> Option<Part> {
        let mut chars = self.rest.chars();
        let part = match chars.next()? {
            escape if Some(escape) == self.escape => match chars.next() {
                Some(next) => Part::Is(next),
                // As in SQLite: nothing matches what is not there.
                None => Part::Is(escape),
            },
            '%' => Part::Any,
            '_' => Part::One,
            other => Part::Is(other),
        };
        self.rest = chars.as_str();
        Some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(matches(pattern, text, None), expected, "{pattern} on {text}");
        }
        assert!(matches("10!%", "10%", Some('!')) && !matches("10!%", "100", Some('!')));
    }

    #[test]
    fn many_signs_take_no_time() {
        let pattern = "%a".repeat(400) + "b";
        assert!(!matches(&pattern, &"a".repeat(10_000), None));
    }
}
