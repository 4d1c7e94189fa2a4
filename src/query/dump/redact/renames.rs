//! Other names for classes: `c1.C17` for `com.acme.Order`, wherever the dump has the name.
//!
//! Packages and classes are numbered in the order in which the records of the dump name them, so that whoever has the
//! dump gets the same names again. Nested classes are numbered too, and stay nested (`c1.C17$C18`); what generators of
//! classes write into names stays (`c1.C17$$Lambda/0x0000000800c03000`), as the analyses read it.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use xxhash_rust::xxh3::xxh3_128;

use hprof_index::storage::id_map::IdMap;
use hprof_parser::mutf8;

use super::plan::SymbolUse;
use crate::classes::pattern::ClassPattern;
use crate::compare::stable_names::is_mark;

/// Maximum length of a name in a class file.
const MAX_NAME: usize = 65_535;
/// Maximum length of a name of a field or method in which names of classes are replaced; longer ones do not stay.
const MAX_MEMBER: usize = 4096;
/// Maximum number of classes around a class that are told apart.
const MAX_AROUND: usize = 64;
/// Extensions of source files.
const EXTENSIONS: [&str; 6] = ["java", "kt", "scala", "groovy", "clj", "kts"];
/// Element types of arrays in Java source.
const PRIMITIVES: [&str; 8] = ["boolean", "byte", "char", "short", "int", "long", "float", "double"];

/// Classes that get other names, and what becomes of the symbols that name them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassRenames {
    /// New names by old ones, in Java source form, without brackets of arrays and without addresses of hidden classes.
    names: HashMap<String, String>,
    /// The same with `$` instead of dots, as compilers put them into names of members.
    mangled: HashMap<String, String>,
    /// First parts of the names with packages.
    first_parts: HashSet<String>,
    /// Maximum number of parts of `mangled`.
    mangled_parts: usize,
    /// New source files by old ones.
    sources: HashMap<String, String>,
    /// New texts of symbols.
    symbols: IdMap<u64, Box<[u8]>>,
    /// Old names by new ones, with the addresses of hidden classes.
    old_names: BTreeMap<String, String>,
    /// Patterns that match no class.
    unmatched: Vec<String>,
}

/// What the names of a dump are found by.
pub(super) struct NameRecords<'a> {
    pub(super) strings: &'a IdMap<u64, Box<[u8]>>,
    /// Names of classes and texts of frames, in the order of the records that use them.
    pub(super) order: &'a [(u64, SymbolUse)],
    /// Source files of frames, and the symbols that name the frames' classes.
    pub(super) sources: &'a [(u64, u64)],
}

impl ClassRenames {
    /// Names the classes that one of the patterns matches. Removes from `uses` the names that contain one of theirs and
    /// are not renamed: they do not stay.
    pub(super) fn new(
        patterns: &[ClassPattern],
        records: &NameRecords<'_>,
        uses: &mut IdMap<u64, SymbolUse>,
    ) -> Self {
        if patterns.is_empty() {
            return Self::default();
        }
        let mut namer = Namer { patterns, is_used: vec![false; patterns.len()], ..Namer::default() };
        let text = |symbol: &u64| {
            let bytes = records.strings.get(symbol).filter(|bytes| bytes.len() <= MAX_NAME);
            bytes.map(|bytes| mutf8::decode(bytes))
        };
        for (symbol, used) in records.order {
            if *used == SymbolUse::Class
                && let Some(text) = text(symbol)
            {
                namer.keep_apart(&text);
            }
        }
        for (symbol, used) in records.order {
            let Some(text) = text(symbol) else { continue };
            let new = match used {
                SymbolUse::Class => namer.class(&text),
                _ if text.starts_with('(') => namer.signature(&text),
                _ => None,
            };
            if let Some(new) = new {
                namer.renames.symbols.insert(*symbol, new.into_bytes().into());
            }
        }
        for (source, class) in records.sources {
            if let (Some(source), Some(class)) = (text(source), text(class)) {
                namer.source(&source, &class);
            }
        }
        let mut renames = namer.finish();
        uses.retain(|symbol, used| {
            let bytes = records.strings.get(symbol).map(|bytes| &**bytes).unwrap_or_default();
            if renames.symbols.contains_key(symbol) || *used == SymbolUse::Class && bytes.len() <= MAX_NAME {
                return true;
            }
            if bytes.len() > MAX_NAME || *used != SymbolUse::Frame && bytes.len() > MAX_MEMBER {
                return false;
            }
            let text = mutf8::decode(bytes);
            let new = if *used == SymbolUse::Thread { None } else { renames.member(&text) };
            if let Some(new) = new {
                renames.symbols.insert(*symbol, new.into_bytes().into());
                return true;
            }
            !renames.mentions(&text)
        });
        renames
    }

    /// Returns old names by new ones.
    pub fn old_names(&self) -> &BTreeMap<String, String> {
        &self.old_names
    }

    /// Returns the patterns that match no class.
    pub fn unmatched(&self) -> &[String] {
        &self.unmatched
    }

    /// Returns the new text of a symbol.
    pub(super) fn symbol(&self, symbol: u64) -> Option<&[u8]> {
        self.symbols.get(&symbol).map(|text| &**text)
    }

    /// Returns `true` if a text contains the name of a renamed class with its package.
    pub(super) fn mentions(&self, text: &str) -> bool {
        if self.names.is_empty() {
            return false;
        }
        let text = text.replace('/', ".");
        text.split(|letter: char| !is_of_name(letter)).any(|word| {
            let first = word.split('.').next().unwrap_or_default();
            first.len() < word.len() && self.first_parts.contains(first) && self.start(word).is_some()
        })
    }

    /// Returns the longest start of a name that is the name of a renamed class, and its new name.
    fn start(&self, name: &str) -> Option<(usize, &str)> {
        let ends = name
            .match_indices(['.', '$', '+', '[', '/'])
            .map(|(at, _)| at)
            .take(MAX_AROUND)
            .chain([name.len()]);
        let found = ends.filter_map(|end| Some((end, self.names.get(name.get(..end)?)?.as_str())));
        found.last()
    }

    /// Returns what the analyses show with the new names: classes, methods and source files in quotes.
    pub(super) fn shown(&self, text: String) -> String {
        if self.names.is_empty() {
            return text;
        }
        let mut quoted = false;
        let words = text.split('"').map(|part| {
            let word = if quoted { self.word(part) } else { Cow::Borrowed(part) };
            // A quote that is escaped is part of the text.
            quoted ^= !part.ends_with('\\');
            word
        });
        words.collect::<Vec<_>>().join("\"")
    }

    fn word<'w>(&self, word: &'w str) -> Cow<'w, str> {
        let parts = NameParts::of(word);
        if let Some(new) = self.names.get(parts.path) {
            return Cow::Owned(parts.with(new));
        }
        if let Some(new) = self.member(word) {
            return Cow::Owned(new);
        }
        match self.start(word) {
            Some((end, new)) => Cow::Owned(format!("{new}{}", word.get(end..).unwrap_or_default())),
            None => Cow::Borrowed(word),
        }
    }

    /// Returns what the name of a field or method, or a source file, becomes.
    fn member(&self, text: &str) -> Option<String> {
        if let Some(new) = self.sources.get(text).or_else(|| self.names.get(text)) {
            return Some(new.clone());
        }
        if !text.contains('$') || self.mangled.is_empty() || text.len() > MAX_MEMBER {
            return None;
        }
        let parts: Vec<&str> = text.split('$').collect();
        let mut new: Vec<Cow<'_, str>> = Vec::new();
        let (mut at, mut is_changed) = (0, false);
        while let Some(part) = parts.get(at) {
            let most = if self.first_parts.contains(*part) { self.mangled_parts } else { 0 };
            let found = (2..=most).rev().find_map(|count| {
                let name = parts.get(at..at + count)?.join("$");
                Some((count, self.mangled.get(&name)?))
            });
            match found {
                Some((count, name)) => {
                    new.push(Cow::Borrowed(name));
                    at += count;
                    is_changed = true;
                }
                None => {
                    new.push(Cow::Borrowed(part));
                    at += 1;
                }
            }
        }
        is_changed.then(|| new.join("$"))
    }
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '.' | '$' | '_' | '+')
}

/// A name of a class as a dump has it.
struct NameParts<'t> {
    /// Brackets and `L` of an array.
    before: &'t str,
    /// Package and class.
    path: &'t str,
    /// Address of a hidden class, with what separates it.
    address: &'t str,
    /// End of the name of an array.
    after: &'t str,
}

impl<'t> NameParts<'t> {
    fn of(text: &'t str) -> Self {
        let dimensions = text.bytes().take_while(|byte| *byte == b'[').count();
        let rest = text.get(dimensions..).unwrap_or_default();
        let (start, element) = if dimensions == 0 {
            let brackets = rest.find("[]").unwrap_or(rest.len());
            let element = rest.get(..brackets).unwrap_or_default();
            let element = if brackets < rest.len() { element.trim_end_matches(' ') } else { element };
            (0, if PRIMITIVES.contains(&element) { "" } else { element })
        } else {
            let class = rest.strip_prefix('L').and_then(|rest| rest.strip_suffix(';'));
            // Of a primitive type otherwise.
            (dimensions + 1, class.unwrap_or_default())
        };
        let end = start + element.len();
        let address = element.rfind(['/', '+', '.']).filter(|at| {
            let rest = element.get(at + 1..).unwrap_or_default();
            let digits = rest.strip_prefix("0x");
            let is_address = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            digits.is_some_and(is_address)
                || !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
        });
        let (path, address) = element.split_at(address.unwrap_or(element.len()));
        let before = text.get(..start).unwrap_or_default();
        Self { before, path, address, after: text.get(end..).unwrap_or_default() }
    }

    /// Returns the name with another path.
    fn with(&self, path: &str) -> String {
        [self.before, path, self.address, self.after].concat()
    }
}

/// Gives names.
#[derive(Default)]
struct Namer<'p> {
    patterns: &'p [ClassPattern],
    /// `true` for patterns that match a class.
    is_used: Vec<bool>,
    /// Whether the class of this name is renamed.
    judged: HashMap<String, bool>,
    /// First parts of names that stay: no new name starts with one.
    taken: HashSet<String>,
    packages: HashMap<String, String>,
    /// Names of classes by hashes of their paths.
    classes: HashMap<u128, String>,
    numbers: [u64; 2],
    renames: ClassRenames,
}

impl Namer<'_> {
    fn is_matched(&mut self, path: &str) -> bool {
        if let Some(judged) = self.judged.get(path) {
            return *judged;
        }
        let mut is_matched = false;
        for (pattern, is_used) in self.patterns.iter().zip(&mut self.is_used) {
            if !path.is_empty() && pattern.matches_with_nested(path) {
                (is_matched, *is_used) = (true, true);
            }
        }
        self.judged.insert(path.to_owned(), is_matched);
        is_matched
    }

    fn keep_apart(&mut self, name: &str) {
        let path = NameParts::of(name).path.replace('/', ".");
        if !self.is_matched(&path) {
            let first = path.split(['.', '$']).next().unwrap_or_default();
            self.taken.insert(first.to_owned());
        }
    }

    /// Returns the new name of a class, if it gets one.
    fn class(&mut self, name: &str) -> Option<String> {
        let parts = NameParts::of(name);
        let path = parts.path.replace('/', ".");
        if !self.is_matched(&path) {
            return None;
        }
        let new = match self.renames.names.get(&path) {
            Some(new) => new.clone(),
            None => {
                let new = self.name(&path);
                self.renames.names.insert(path.clone(), new.clone());
                new
            }
        };
        let old_names = &mut self.renames.old_names;
        old_names.insert(format!("{new}{}", parts.address), path + parts.address);
        Some(parts.with(&if parts.path.contains('/') { new.replace('.', "/") } else { new }))
    }

    fn number(numbers: &mut u64, letter: char, taken: &HashSet<String>) -> String {
        loop {
            *numbers += 1;
            let name = format!("{letter}{numbers}");
            if !taken.contains(&name) {
                return name;
            }
        }
    }

    fn name(&mut self, path: &str) -> String {
        let [packages, classes] = &mut self.numbers;
        let (package, class) = path.rsplit_once('.').unwrap_or(("", path));
        let mut new = String::new();
        if !package.is_empty() {
            let number = || Self::number(packages, 'c', &self.taken);
            new.push_str(self.packages.entry(package.to_owned()).or_insert_with(number));
            new.push('.');
        }
        let mut end = path.len() - class.len();
        let mut is_generated = false;
        for (at, part) in class.splitn(MAX_AROUND, '$').enumerate() {
            if at > 0 {
                new.push('$');
                end += 1;
            }
            end += part.len();
            // `1Local` is a class in a method.
            let word =
                if at > 0 { part.trim_start_matches(|digit: char| digit.is_ascii_digit()) } else { part };
            if word.is_empty() || is_generated && word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                new.push_str(part);
            } else if at > 0 && is_mark(part) {
                new.push_str(part);
                is_generated = true;
            } else {
                new.push_str(part.get(..part.len() - word.len()).unwrap_or_default());
                let key = xxh3_128(path.as_bytes().get(..end).unwrap_or_default());
                let number = || Self::number(classes, 'C', &self.taken);
                new.push_str(self.classes.entry(key).or_insert_with(number));
                // Javassist marks its classes by `_$$_`.
                new.push_str(if word.ends_with('_') { "_" } else { "" });
            }
        }
        new
    }

    /// Returns the signature of a method with the new names.
    fn signature(&mut self, text: &str) -> Option<String> {
        let (mut new, mut rest, mut is_changed) = (String::new(), text, false);
        while let Some((before, from)) = rest.split_once('L') {
            let Some((class, after)) = from.split_once(';') else { break };
            let name = self.class(class);
            is_changed |= name.is_some();
            new.extend([before, "L", name.as_deref().unwrap_or(class), ";"]);
            rest = after;
        }
        is_changed.then(|| new + rest)
    }

    /// Names a source file by the class that it is named after, or by that of a frame.
    fn source(&mut self, source: &str, class: &str) {
        let path = NameParts::of(class).path.replace('/', ".");
        if source.is_empty() || !self.is_matched(&path) {
            return;
        }
        let (stem, extension) = source.rsplit_once('.').unwrap_or((source, ""));
        let (package, simple) =
            path.rsplit_once('.').map_or(("", &*path), |(package, class)| (package, class));
        let outer = simple.split('$').next().unwrap_or_default();
        let number = |class: &str| {
            let path = if package.is_empty() { class.to_owned() } else { format!("{package}.{class}") };
            self.classes.get(&xxh3_128(path.as_bytes()))
        };
        let (exact, of_frame) = (number(stem), number(outer));
        let Some(name) = exact.or(of_frame) else { return };
        let extension = EXTENSIONS.iter().find(|known| **known == extension);
        let new = extension.map_or_else(|| name.clone(), |extension| format!("{name}.{extension}"));
        let known = self.renames.sources.entry(source.to_owned());
        if exact.is_some() {
            known.insert_entry(new);
        } else {
            known.or_insert(new);
        }
    }

    fn finish(mut self) -> ClassRenames {
        let unused = self.patterns.iter().zip(&self.is_used).filter(|(_, is_used)| !**is_used);
        self.renames.unmatched = unused.map(|(pattern, _)| pattern.text().to_owned()).collect();
        let ClassRenames { names, mangled, first_parts, mangled_parts, .. } = &mut self.renames;
        for (old, new) in names.iter() {
            if let Some((first, _)) = old.split_once('.') {
                first_parts.insert(first.to_owned());
                let old = old.replace('.', "$");
                *mangled_parts = old.split('$').count().clamp(*mangled_parts, MAX_AROUND);
                mangled.insert(old, new.replace('.', "$"));
            }
        }
        self.renames
    }
}
