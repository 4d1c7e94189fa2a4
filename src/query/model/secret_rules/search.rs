//! Search for credentials in one text: keywords first, then expressions around them.

use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::keywords::KeywordSet;
use super::mask;
use super::rules::{SecretRules, TextRule};
use super::view::TextView;
use hprof_values::BasicType;

/// Maximum number of units that are searched at a time. Windows overlap by what a rule needs around a keyword.
const MAX_WINDOW: usize = 1 << 16;
/// Maximum number of findings of a rule in an array. Text around further keywords is not searched.
const MAX_OF_RULE: u32 = 1 << 13;
/// Maximum number of findings of all rules in an array.
const MAX_OF_ARRAY: usize = 1 << 16;
/// Maximum number of units of a name.
const MAX_NAME: usize = 128;

/// A secret in an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextFinding {
    /// Number of the rule among those about texts.
    pub rule: u16,
    /// View in which the bytes of the array were read.
    pub view: TextView,
    /// Object index of the array.
    pub search_array: u32,
    /// First unit of the secret in the array.
    pub start: u32,
    /// Number of units of the secret.
    pub(super) length: u32,
    /// Hash of the secret.
    pub hash: u64,
}

impl TextFinding {
    /// Returns the range of the secret in the array, in units.
    pub fn range(&self) -> (usize, usize) {
        let start = self.start as usize;
        (start, start.saturating_add(self.length as usize))
    }
}

/// Rule or purpose that a keyword belongs to.
#[derive(Debug)]
enum User {
    /// Number of a rule; with the keyword, if its case matters.
    Rule(u16, Option<Box<[u8]>>),
    /// Names.
    Names,
}

/// A text that is searched for in arrays.
#[derive(Debug)]
struct Keyword {
    is_wide: bool,
    /// Number of bytes.
    bytes: usize,
    users: Vec<User>,
}

/// Search with compiled keywords, shared by all threads.
#[derive(Debug)]
pub struct TextSearch<'r> {
    pub(super) rules: &'r SecretRules,
    set: KeywordSet,
    keywords: Vec<Keyword>,
    seed: u64,
}

/// Working memory of a thread that searches texts.
#[derive(Debug, Default)]
pub struct Scratch {
    /// For each rule and view the window around the last keywords; empty if there is none.
    windows: Vec<(usize, usize)>,
    /// Rules and views with a window.
    open: Vec<usize>,
    buffer: Vec<u8>,
    found: Vec<TextFinding>,
    /// Number of findings in this array by rule and view.
    counts: Vec<u32>,
    /// `true` if nothing more is searched.
    pub is_full: bool,
    /// Number of windows that were not searched.
    pub omitted: u64,
}

impl<'r> TextSearch<'r> {
    /// Creates a search by these rules; `seed` is the seed of the hashes of findings.
    pub fn new(rules: &'r SecretRules, seed: u64) -> Self {
        let mut users: FxHashMap<Vec<u8>, Vec<User>> = FxHashMap::default();
        for (number, rule) in (0u16..).zip(&rules.texts) {
            for keyword in &rule.keywords {
                let exact = (!rule.ignores_case()).then(|| keyword.as_bytes().into());
                let of = users.entry(keyword.to_ascii_lowercase().into_bytes()).or_default();
                of.push(User::Rule(number, exact));
            }
        }
        for keyword in rules.names.iter().flat_map(|names| &names.keywords) {
            users.entry(keyword.to_ascii_lowercase().into_bytes()).or_default().push(User::Names);
        }
        let mut users: Vec<_> = users.into_iter().collect();
        users.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let (mut patterns, mut keywords) = (Vec::new(), Vec::new());
        for (keyword, users) in users {
            let again = users.iter().map(|user| match user {
                User::Rule(number, exact) => User::Rule(*number, exact.clone()),
                User::Names => User::Names,
            });
            // Bytes that the keyword has in UTF-16 of either byte order.
            let wide: Vec<u8> = keyword.iter().flat_map(|byte| [0, *byte]).skip(1).collect();
            keywords.push(Keyword { is_wide: true, bytes: wide.len(), users: again.collect() });
            patterns.push(wide);
            keywords.push(Keyword { is_wide: false, bytes: keyword.len(), users });
            patterns.push(keyword);
        }
        Self { rules, set: KeywordSet::new(patterns), keywords, seed }
    }

    /// Calls `found` with the secrets in an array, without overlaps, and returns whether the array is a name that indicates a
    /// secret value.
    pub fn array(
        &self,
        element: BasicType,
        elements: &[u8],
        array: u32,
        scratch: &mut Scratch,
        found: &mut impl FnMut(TextFinding),
    ) -> bool {
        if scratch.windows.is_empty() {
            scratch.windows.resize(self.rules.texts.len() * TextView::COUNT, (0, 0));
            scratch.counts.resize(scratch.windows.len(), 0);
        }
        let mut may_be_name = None;
        self.set.for_each_match(elements, |number, start| {
            let Some(keyword) = self.keywords.get(number) else { return };
            let view = match (keyword.is_wide, element) {
                (false, BasicType::Char) => return,
                (false, _) => TextView::Narrow,
                (true, BasicType::Char) => TextView::HighFirst,
                (true, _) if start % 2 == 1 => TextView::HighFirst,
                (true, _) => TextView::LowFirst,
            };
            let bytes = elements.get(start..start + keyword.bytes).unwrap_or_default();
            let (start, end) = (start / view.width(), (start + keyword.bytes - 1) / view.width() + 1);
            for user in &keyword.users {
                match user {
                    User::Names => may_be_name = Some(view),
                    User::Rule(number, exact) => {
                        let step = if keyword.is_wide { 2 } else { 1 };
                        if exact.as_ref().is_none_or(|exact| bytes.iter().step_by(step).eq(exact.iter())) {
                            self.widen((*number, view), (start, end), elements, array, scratch);
                        }
                    }
                }
            }
        });
        let mut open = std::mem::take(&mut scratch.open);
        for number in open.drain(..) {
            self.close(number, elements, array, scratch);
            if let Some(count) = scratch.counts.get_mut(number) {
                *count = 0;
            }
        }
        scratch.open = open;
        self.without_overlaps(&mut scratch.found).for_each(found);
        scratch.found.clear();
        may_be_name.is_some_and(|view| self.is_name(view, elements, &mut scratch.buffer))
    }

    fn is_name(&self, view: TextView, elements: &[u8], buffer: &mut Vec<u8>) -> bool {
        let units = elements.len() / view.width();
        if units > MAX_NAME {
            return false;
        }
        view.narrow(elements, (0, units), buffer);
        self.rules.names.as_ref().is_some_and(|names| names.contain(buffer))
    }

    /// Adds what is around a keyword to the window of its rule, or begins another window.
    fn widen(
        &self,
        (rule, view): (u16, TextView),
        (start, end): (usize, usize),
        elements: &[u8],
        array: u32,
        scratch: &mut Scratch,
    ) {
        let Some(text_rule) = self.rules.texts.get(usize::from(rule)) else { return };
        let number = usize::from(rule) * TextView::COUNT + view as usize;
        let units = elements.len() / view.width();
        let around = (
            start.saturating_sub(text_rule.before as usize),
            end.saturating_add(text_rule.after as usize).min(units),
        );
        let Some(window) = scratch.windows.get_mut(number) else { return };
        if window.1 == 0 {
            *window = around;
            scratch.open.push(number);
        } else if around.0 <= window.1 && around.1 - window.0 <= MAX_WINDOW {
            window.1 = around.1.max(window.1);
        } else {
            let before = std::mem::replace(window, around);
            self.search(number, before, elements, array, scratch);
        }
    }

    fn close(&self, number: usize, elements: &[u8], array: u32, scratch: &mut Scratch) {
        if let Some(window) = scratch.windows.get_mut(number) {
            let window = std::mem::take(window);
            self.search(number, window, elements, array, scratch);
        }
    }

    /// Searches a window by its rule.
    fn search(
        &self,
        number: usize,
        window: (usize, usize),
        elements: &[u8],
        array: u32,
        scratch: &mut Scratch,
    ) {
        let view = TextView::from_number(number % TextView::COUNT);
        let count = scratch.counts.get(number).copied().unwrap_or(MAX_OF_RULE);
        if scratch.is_full || count >= MAX_OF_RULE || scratch.found.len() >= MAX_OF_ARRAY {
            scratch.omitted += 1;
            return;
        }
        let before = scratch.found.len();
        let Some(rule) = self.rules.texts.get(number / TextView::COUNT) else { return };
        let Some(regex) = rule.regex() else { return };
        let text = match view {
            TextView::Narrow => elements.get(window.0..window.1).unwrap_or_default(),
            _ => {
                view.narrow(elements, window, &mut scratch.buffer);
                &scratch.buffer
            }
        };
        // Nearly all windows have no match, and that is faster to find out without groups.
        if !regex.is_match(text) {
            return;
        }
        for groups in regex.captures_iter(text) {
            let Some(whole) = groups.get(0) else { continue };
            // The text before the window may belong to it.
            if whole.start() == 0 && window.0 > 0 {
                continue;
            }
            let secret = groups.name("secret").unwrap_or(whole);
            if is_secret(rule, secret.as_bytes()) {
                scratch.found.push(TextFinding {
                    rule: u16::try_from(number / TextView::COUNT).unwrap_or(u16::MAX),
                    view,
                    search_array: array,
                    start: u32::try_from(window.0 + secret.start()).unwrap_or(u32::MAX),
                    length: u32::try_from(secret.len()).unwrap_or(u32::MAX),
                    hash: xxh3_64_with_seed(secret.as_bytes(), self.seed),
                });
            }
        }
        if let Some(count) = scratch.counts.get_mut(number) {
            *count += u32::try_from(scratch.found.len() - before).unwrap_or(u32::MAX);
        }
    }

    /// Returns findings without those that overlap one of an earlier rule, or of a rule that is not generic.
    fn without_overlaps(&self, found: &mut [TextFinding]) -> impl Iterator<Item = TextFinding> {
        let is_generic = |finding: &TextFinding| {
            self.rules.texts.get(usize::from(finding.rule)).is_some_and(|rule| rule.is_generic)
        };
        let bytes = |finding: &TextFinding| {
            let (start, end) = finding.range();
            (start * finding.view.width(), end * finding.view.width())
        };
        let mut kept: Vec<TextFinding> = Vec::new();
        if found.len() > 1 {
            found.sort_unstable_by_key(|finding| (is_generic(finding), finding.rule, bytes(finding)));
        }
        // By start in bytes: the end, and the finding.
        let mut taken: std::collections::BTreeMap<usize, usize> = std::collections::BTreeMap::new();
        for finding in found.iter() {
            let (start, end) = bytes(finding);
            let before = taken.range(..end).next_back();
            if before.is_none_or(|(_, taken_end)| *taken_end <= start) {
                taken.insert(start, end);
                kept.push(*finding);
            }
        }
        kept.into_iter()
    }
}

/// Returns whether a match of an expression meets the other conditions of its rule.
fn is_secret(rule: &TextRule, secret: &[u8]) -> bool {
    !mask::is_placeholder(secret)
        && (!rule.is_mixed || mask::is_mixed(secret))
        // Applies to several words under any rule: no other secret has blanks.
        && (!(rule.is_password || secret.contains(&b' ')) || mask::is_password(secret) || rule.is_key)
        && (!rule.is_pair || mask::is_base64_pair(secret))
        && (!rule.is_generic || !mask::is_name(secret))
        && !mask::is_example(secret)
        && (rule.entropy <= 0.0 || mask::entropy(secret) >= rule.entropy)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Returns rule and secret of each finding.
    fn find_secrets(element: BasicType, elements: &[u8]) -> Vec<(String, String)> {
        let rules = SecretRules::builtin();
        let search = TextSearch::new(&rules, 7);
        let mut all = Vec::new();
        search.array(element, elements, 0, &mut Scratch::default(), &mut |finding| {
            let rule = &rules.texts[usize::from(finding.rule)].about.id;
            all.push((rule.clone(), finding.view.text(elements, finding.range())));
        });
        all.sort();
        all
    }

    fn ids(text: &str) -> Vec<String> {
        find_secrets(BasicType::Byte, text.as_bytes()).into_iter().map(|(id, _)| id).collect()
    }

    fn wide(text: &str, order: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(order).collect()
    }

    #[test]
    fn a_secret_is_found_in_every_encoding() {
        let key = ["AKIA", "Z7QX2VNT3LDWKE4P"].concat();
        let text = format!("für id={key} and more");
        let expected = vec![("aws-access-key-id".to_owned(), key.clone())];
        assert_eq!(find_secrets(BasicType::Byte, text.as_bytes()), expected);
        let (low, high) = (wide(&text, u16::to_le_bytes), wide(&text, u16::to_be_bytes));
        assert_eq!(find_secrets(BasicType::Byte, &low), expected);
        assert_eq!(find_secrets(BasicType::Byte, &high), expected);
        assert_eq!(find_secrets(BasicType::Char, &high), expected);
        // In a buffer, after one byte of something else.
        assert_eq!(find_secrets(BasicType::Byte, &[b"\x01", &*low].concat()), expected);
        assert_eq!(
            find_secrets(BasicType::Byte, &[&b"\xff\xfe\0\x7f"[..], key.as_bytes(), b"\x80\0"].concat()),
            expected
        );
    }

    #[test]
    fn what_two_rules_find_counts_for_the_first() {
        let token = ["ghp_", "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3gH6"].concat();
        assert_eq!(ids(&format!("token = \"{token}\"")), ["github-token"]);
        assert_eq!(ids(&format!("Authorization: Bearer {token}")), ["github-token"]);
        assert_eq!(ids("api_key=q8Xv2LmZ91pRt4Wb"), ["key-value"]);
    }

    /// Passwords need no digit where nothing but a password can be, and may have several words.
    #[test]
    fn passwords_of_any_form_are_found() {
        let values = |text: &str| -> Vec<String> {
            find_secrets(BasicType::Byte, text.as_bytes()).into_iter().map(|(_, value)| value).collect()
        };
        let words = "zwei blaue Hunde";
        for (before, after) in [
            ("DB_PASSWORD=", ""),
            ("{\"user\":\"a\",\"password\":\"", "\"}"),
            ("password: ", "\nuser: a\n"),
            ("x password='", "' y"),
            ("<password>", "</password>"),
            ("jdbc:mysql://h/d?user=a&password=", ""),
            ("{\"msg\":\"{\\\"password\\\":\\\"", "\\\"}\"}"),
            ("<property name=\"hibernate.connection.password\">", "</property>"),
            ("<entry key=\"db.password\">", "</entry>"),
        ] {
            for value in ["sesame", "Hollunder", "48151623", "Passw0rd!", words] {
                assert_eq!(values(&format!("{before}{value}{after}")), [value], "{before}{value}{after}");
            }
        }
        assert_eq!(values(&format!("mongodb://u:{words}@h:27017/d")), [words]);
        for (before, after) in [
            ("export DB_PASS=", ""),
            ("[db]\nuser = a\npass = ", "\n"),
            ("ALTER USER shop IDENTIFIED BY '", "'"),
            ("CREATE USER shop WITH PASSWORD '", "'"),
            ("mysqldump -u root -p", " shop"),
            ("sshpass -p '", "' ssh root@host"),
            ("machine nexus login ci password ", "\n"),
        ] {
            assert_eq!(values(&format!("{before}Hollunder{after}")), ["Hollunder"], "{before}");
        }
        assert_eq!(ids("Authorization: token a1b2c3d4e5f6g7h8i9"), ["authorization-bearer"]);
        assert_eq!(ids("AUTH PLAIN AGpvZQBob2xsdW5kZXI="), ["smtp-auth"]);
    }

    #[test]
    fn private_keys_without_a_header_are_found() {
        let mut state = 5u32;
        let random: Vec<u8> = (0..1200)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        let start = b"0\x82\x04\xbd\x02\x01\x000\r\x06\t*\x86H\x86\xf7\r\x01\x01\x01\x05\0\x04\x82";
        let der = [&start[..], &random].concat();
        let rules = SecretRules::builtin();
        let search = TextSearch::new(&rules, 7);
        let mut ranges = Vec::new();
        search.array(BasicType::Byte, &der, 0, &mut Scratch::default(), &mut |finding| {
            ranges.push((rules.texts[usize::from(finding.rule)].about.id.clone(), finding.range()));
        });
        assert_eq!(ranges, [("private-key-der".to_owned(), (0, der.len()))]);
        let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let text: String = random.iter().map(|byte| char::from(letters[usize::from(byte & 63)])).collect();
        for start in ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "MIIEpAIBAAKC"] {
            assert_eq!(ids(&format!("{start}{text}==")), ["private-key-base64"]);
        }
    }

    #[test]
    fn tokens_are_found_by_their_beginnings() {
        let (hex, all) = (
            "0f1e2d3c4b5a69788796a5b4c3d2e1f0".repeat(2),
            "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3gH6iK9lM2oP5rS8uV1xY4",
        );
        let part = |text: &str, length: usize| text.chars().take(length).collect::<String>();
        for (id, token) in [
            ("hex-key", ["key-", &part(&hex, 32)].concat()),
            ("hex-key", ["sk-", &part(&hex, 32)].concat()),
            ("discord-bot-token", ["MTA", &part(all, 23), ".", &part(all, 6), ".", &part(all, 38)].concat()),
            ("gcp-refresh-token", ["1//0", all].concat()),
            ("gcp-hmac-key", ["GOOG1E", &part(&all.to_uppercase(), 54), "7"].concat()),
            ("platform-token", ["sbp_", &part(&hex, 40)].concat()),
            ("platform-token", ["nfp_", &part(all, 36)].concat()),
            (
                "platform-token",
                ["SWMTKN-1-", &part(&all.to_lowercase(), 50), "-", &part(&all.to_lowercase(), 25)].concat(),
            ),
            ("platform-token", ["CCIPAT_", &part(all, 22), "_", &part(&hex, 40)].concat()),
            ("platform-token", ["tvly-", &part(all, 32)].concat()),
            ("platform-token", ["pcsk_", &part(all, 6), "_", all].concat()),
            ("platform-token", ["CFPAT-", &part(all, 43)].concat()),
            ("platform-token", ["tskey-auth-", &part(all, 16), "-", &part(all, 32)].concat()),
            ("slack-token", ["xoxe.xoxp-1-", &part(all, 20), "_", all].concat()),
        ] {
            assert_eq!(
                find_secrets(BasicType::Byte, format!("x {token} y").as_bytes()),
                [(id.to_owned(), token)]
            );
        }
    }

    #[test]
    fn what_is_no_secret_is_not_found() {
        for text in [
            "password=${db.password}",
            "password: required",
            "token=com.acme.Token@1b2c3d",
            "token=org.acme.lexer.Token",
            "http://www.w3.org/2001/XMLSchema",
            "http://user@host/path:8080",
            "basic authentication",
            "AKIAIOSFODNN7EXAMPLE",
            "secret: aaaaaaaaaaaaaaaa1aaaa",
            "PRIVATE KEY",
            "eyJ",
            "password=",
            "the token is at 12345678",
            "Password: must be at least 8 characters",
            "login.password=Passwort\nlogin.user=Name",
            "{\"password\":\"Your new code\"}",
            "Invalid password: incorrect user",
            "password:string, user:string",
            "return{password:e.password,token:n.token}",
            "curl -u USER:PASSWORD https://host/",
            "jdbc:x://h/?user={0}&password={1}",
            "password: ENC[AES256_GCM,data:abc=]",
            "password=ENC(aB3dE6gH9j)",
            "see http://host:8080 or mail joe@acme.com",
            "CREATE USER ? IDENTIFIED BY ?",
            "<entry key=\"label.password\">Your password</entry>",
            "cache-key-0f1e2d3c4b5a69788796a5b4c3d2e1f0",
        ] {
            assert_eq!(ids(text), <[&str; 0]>::default(), "{text}");
        }
    }

    #[test]
    fn long_texts_are_searched_in_windows() {
        // A keyword everywhere, so that windows join, and secrets at their ends.
        let key = ["AKIA", "Z7QX2VNT3LDWKE4P"].concat();
        for at in [0, MAX_WINDOW - 30, MAX_WINDOW - 10, MAX_WINDOW, 3 * MAX_WINDOW] {
            let mut text = "AKIA ".repeat(at / 5);
            text.push_str(&" ".repeat(at % 5));
            text.push_str(&format!("{key} "));
            text.push_str(&"AKIA ".repeat(1000));
            assert_eq!(find_secrets(BasicType::Byte, text.as_bytes()).len(), 1, "{at}");
            assert_eq!(find_secrets(BasicType::Char, &wide(&text, u16::to_be_bytes)).len(), 1, "{at}");
        }
    }
}
