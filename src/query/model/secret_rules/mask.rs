//! Masking of secrets, and tests whether a text is a secret.

/// Number of characters below which nothing is shown.
const SHORT: usize = 12;
/// Number of characters below which the end is not shown.
const MIDDLE: usize = 20;
/// Maximum number of characters shown of the beginning.
const HEAD: usize = 4;
/// Maximum number of characters shown of the end.
const TAIL: usize = 2;
const LITTLE: usize = 2;
/// Placeholder for the hidden part.
pub const HIDDEN: &str = "…";

/// Returns the mask of a secret, which shows at most its first four and its last two characters.
pub fn mask(secret: &str) -> String {
    let count = secret.chars().count();
    let (head, tail) = match count {
        ..SHORT => (0, 0),
        SHORT..MIDDLE => (LITTLE, 0),
        _ => (HEAD, TAIL),
    };
    let beginning = secret.chars().take(head);
    beginning.chain(HIDDEN.chars()).chain(secret.chars().skip(count - tail)).collect()
}

/// Returns the Shannon entropy in bits per byte.
#[allow(clippy::cast_precision_loss)]
pub(super) fn entropy(text: &[u8]) -> f64 {
    let mut counts = [0u32; 256];
    for byte in text {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count += 1;
        }
    }
    let total = text.len() as f64;
    counts.iter().filter(|count| **count > 0).fold(0.0, |sum, count| {
        let share = f64::from(*count) / total;
        sum - share * share.log2()
    })
}

/// Returns whether a text has a digit and a letter.
pub fn is_mixed(text: &[u8]) -> bool {
    text.iter().any(u8::is_ascii_digit) && text.iter().any(u8::is_ascii_alphabetic)
}

/// Words that are placeholders for a value.
const PLACEHOLDERS: [&str; 17] = [
    "null",
    "true",
    "false",
    "none",
    "undefined",
    "unknown",
    "default",
    "empty",
    "required",
    "optional",
    "redacted",
    "[protected]",
    "todo",
    "fixme",
    "tbd",
    "n/a",
    "password_here",
];
/// Texts with which placeholders for a value begin: `${...}`.
const BEGINNINGS: [&[u8]; 7] = [b"${", b"#{", b"{{", b"%{", b"<", b"@{", b"***"];
/// Words in example secrets.
const EXAMPLES: [&[u8]; 7] =
    [b"example", b"xxxxx", b"your_", b"your-", b"placeholder", b"changeme", b"abcdefghijklmnop"];

/// Returns whether a text is a placeholder for a value, or nothing but one repeated character.
pub fn is_placeholder(text: &[u8]) -> bool {
    let Some(first) = text.first() else { return true };
    // A parameter of a format, or an encrypted value: `{0}`, `ENC(...)`, `ENC[...]`.
    let is_within = |start: &[u8], end: u8| text.starts_with(start) && text.ends_with(&[end]);
    text.iter().all(|byte| byte == first)
        || is_within(b"{", b'}')
        || is_within(b"ENC(", b')')
        || is_within(b"ENC[", b']')
        || BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
        || PLACEHOLDERS.iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()))
}

/// Beginnings of the hashes of an empty text: MD5, SHA-1, SHA-256.
const EMPTY_HASHES: [&[u8]; 3] = [b"d41d8cd98f00b204", b"da39a3ee5e6b4b0d", b"e3b0c44298fc1c14"];

/// Returns whether a text is an example from documentation, or the hash of an empty text.
pub fn is_example(text: &[u8]) -> bool {
    let lower = text.to_ascii_lowercase();
    EMPTY_HASHES.iter().any(|hash| lower.starts_with(hash))
        || EXAMPLES.iter().any(|word| lower.windows(word.len()).any(|part| part == *word))
}

/// Parts of words for a password in texts that people read.
const LABELS: [&[u8]; 11] = [
    b"passw",
    b"passphrase",
    b"kennwort",
    b"passe",
    b"contrase",
    b"senha",
    b"wachtwo",
    b"parola",
    b"secret",
    b"token",
    b"credential",
];
/// Words of sentences, and of descriptions of parameters.
const PROSE: [&[u8]; 48] = [
    b"a",
    b"an",
    b"the",
    b"is",
    b"are",
    b"was",
    b"be",
    b"not",
    b"no",
    b"or",
    b"and",
    b"of",
    b"to",
    b"for",
    b"in",
    b"on",
    b"at",
    b"by",
    b"with",
    b"from",
    b"must",
    b"should",
    b"can",
    b"will",
    b"has",
    b"your",
    b"this",
    b"that",
    b"if",
    b"string",
    b"text",
    b"char",
    b"value",
    b"expired",
    b"invalid",
    b"incorrect",
    b"wrong",
    b"failed",
    b"mandatory",
    b"hidden",
    b"object",
    b"type",
    b"die",
    b"der",
    b"das",
    b"ist",
    b"nicht",
    b"mindestens",
];
/// Maximum number of words of a password of several words.
const MAX_WORDS: usize = 8;
/// Maximum number of bytes of a password of several words.
const MAX_PHRASE: usize = 80;

/// Returns whether a text whose name indicates a password may be one: it is not a label or a word of a description, and several
/// words are not a sentence.
pub fn is_password(text: &[u8]) -> bool {
    if text.iter().any(|byte| byte.is_ascii_control()) {
        return false;
    }
    let lower = text.to_ascii_lowercase();
    let words: Vec<&[u8]> = lower.split(|byte| *byte == b' ').collect();
    let is_prose = |word: &&[u8]| {
        let word = word.strip_suffix(b",").unwrap_or(word);
        PROSE.contains(&word)
    };
    let is_label = LABELS.iter().any(|label| lower.windows(label.len()).any(|part| part == *label));
    let has_digit = text.iter().any(u8::is_ascii_digit);
    if words.len() == 1 {
        return has_digit || !(is_label || words.iter().any(is_prose));
    }
    let ends_sentence = text.last().is_some_and(|last| b".:?!,;".contains(last)) && !has_digit;
    words.len() <= MAX_WORDS
        && text.len() <= MAX_PHRASE
        && !words.iter().any(|word| word.is_empty() || is_prose(word))
        && !is_label
        && !ends_sentence
}

/// Returns whether a text is a Java name or a path rather than a value: `com.acme.Token`, `Token@1b2c3d`.
pub fn is_name(text: &[u8]) -> bool {
    let is_word = |part: &[u8]| {
        part.first().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'_')
            && part.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_$".contains(byte))
    };
    let object = text.iter().rposition(|byte| *byte == b'@');
    let is_object = object.is_some_and(|at| {
        let (class, hash) = (text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default());
        (1..=8).contains(&hash.len()) && hash.iter().all(u8::is_ascii_hexdigit) && !class.is_empty()
    });
    let is_dotted = text.contains(&b'.') && text.split(|byte| *byte == b'.').all(is_word);
    let is_path =
        text.first() == Some(&b'/') || text.starts_with(b"file:") || text.starts_with(b"classpath:");
    is_object || is_dotted || is_path
}

/// Returns whether a text is Base64 of a printable text with a colon.
pub(super) fn is_base64_pair(text: &[u8]) -> bool {
    let value = |byte: u8| -> Option<u32> {
        Some(u32::from(match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        }))
    };
    let (mut bits, mut count, mut decoded) = (0u32, 0, Vec::with_capacity(text.len()));
    for byte in text.iter().take_while(|byte| **byte != b'=') {
        let Some(value) = value(*byte) else { return false };
        bits = (bits << 6) | value;
        count += 6;
        if count >= 8 {
            count -= 8;
            decoded.push((bits >> count) & 0xff);
            bits &= (1 << count) - 1;
        }
    }
    decoded.contains(&u32::from(b':')) && decoded.iter().all(|byte| *byte >= 0x20 && *byte != 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_shows_little() {
        let shown = ["", "abc", "elevenchars", "twelve-chars", "nineteen-characters", "twenty-characters-ab"]
            .map(mask);
        assert_eq!(shown, ["…", "…", "…", "tw…", "ni…", "twen…ab"]);
        assert_eq!(mask(&"é".repeat(30)), "éééé…éé");
    }

    #[test]
    fn texts_that_are_no_secrets() {
        for text in
            ["", "****", "\0\0\0", "${db.password}", "NULL", "<hidden>", "{1}", "ENC(aB3d+f=)", "TODO"]
        {
            assert!(is_placeholder(text.as_bytes()), "{text}");
        }
        for text in ["com.acme.Token", "Token@1b2c3d", "java.util.HashMap$Node@1", "/etc/secret", "file:x"] {
            assert!(is_name(text.as_bytes()), "{text}");
        }
        for text in ["s3cr3t.value-1", "user@example", "abc", "1.2.3"] {
            assert!(!is_name(text.as_bytes()) && !is_placeholder(text.as_bytes()), "{text}");
        }
        for text in ["zwei blaue Hunde", "correct horse battery staple", "postgres", "secret1", "Passw0rd!"] {
            assert!(is_password(text.as_bytes()), "{text}");
        }
        for text in [
            "PASSWORD",
            "must be at least 8",
            "Mot de passe",
            "Das Passwort",
            "two  blanks",
            "a\nb",
            "string",
        ] {
            assert!(!is_password(text.as_bytes()), "{text}");
        }
        assert!(is_example(b"d41d8cd98f00b204e9800998ecf8427e"));
        assert!(
            is_base64_pair(b"dXNlcjpwYXNz")
                && !is_base64_pair(b"authentication")
                && !is_base64_pair(b"dXNlcg==")
        );
    }

    #[test]
    fn entropy_is_in_bits() {
        assert!((entropy(b"abcd") - 2.0).abs() < 1e-9 && entropy(b"aaaa").abs() < 1e-9);
    }
}
