//! Renaming of classes: `c1.C17` for `com.acme.Order`, wherever the name is in the dump.
//!
//! Packages and classes are numbered in the order in which the records of the dump name them, so the same dump always yields
//! the same names. Nested classes are numbered and stay nested (`c1.C17$C18`). Parts of names written by class generators are
//! kept (`c1.C17$$Lambda/0x0000000800c03000`), since the analyses read them.

mod embedded;

use std::collections::{BTreeMap, HashMap, HashSet};

use xxhash_rust::xxh3::xxh3_128;

use hprof_index::storage::id_map::IdMap;
use hprof_parser::mutf8;

use self::embedded::EmbeddedNames;
use hprof_base::naming::pattern::ClassPattern;
use hprof_base::naming::stable_names::is_mark;

/// Use of a symbol as a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SymbolUse {
    Class,
    Field,
    Frame,
    /// Name of a thread or thread group in a START THREAD record.
    Thread,
}

/// Maximum length of a name in a class file.
const MAX_NAME: usize = 65_535;
/// Maximum length of a name of a field or method in which names of classes are replaced; longer names are not kept.
const MAX_MEMBER: usize = 1024;
/// Maximum number of enclosing classes that are distinguished.
const MAX_AROUND: usize = 64;
/// Extensions of source files.
const EXTENSIONS: [&str; 6] = ["java", "kt", "scala", "groovy", "clj", "kts"];
/// Element types of arrays in Java source.
const PRIMITIVES: [&str; 8] = ["boolean", "byte", "char", "short", "int", "long", "float", "double"];

/// Renamed classes, and the replacements of the symbols that name them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassRenames {
    /// New names by old ones, in Java source form, without brackets of arrays and without addresses of hidden classes.
    names: HashMap<String, String>,
    /// Names with packages, for finding them within other names and texts.
    embedded: EmbeddedNames,
    /// New source files by old ones.
    sources: HashMap<String, String>,
    /// New texts of symbols.
    symbols: IdMap<u64, Box<[u8]>>,
    /// Old names by new ones, with the addresses of hidden classes.
    old_names: BTreeMap<String, String>,
    /// Patterns that matched no class.
    unmatched: Vec<String>,
}

/// Records by which the names of a dump are found.
pub(super) struct NameRecords<'a> {
    pub(super) strings: &'a IdMap<u64, Box<[u8]>>,
    /// Names of classes and texts of frames, in the order of the records that use them.
    pub(super) order: &'a [(u64, SymbolUse)],
    /// Source files of frames, and the symbols that name the frames' classes.
    pub(super) sources: &'a [(u64, u64)],
}

impl ClassRenames {
    /// Renames the classes that one of the patterns matches. Removes from `uses` the names that contain a renamed class but are
    /// not renamed: these names are not kept.
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
        let names =
            || records.order.iter().filter_map(|(symbol, used)| Some((*symbol, *used, text(symbol)?)));
        names().for_each(|(_, used, text)| namer.keep_apart(used, &text));
        // New names are assigned first: other names may contain them.
        names().for_each(|(_, used, text)| drop(namer.symbol(used, &text)));
        namer.embed();
        for (symbol, used, text) in names() {
            if let Some(new) = namer.symbol(used, &text) {
                namer.renames.symbols.insert(symbol, new.into_bytes().into());
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
            let new = match used {
                SymbolUse::Thread => None,
                SymbolUse::Frame => renames.source(&text).or_else(|| renames.member(&text)),
                SymbolUse::Class | SymbolUse::Field => renames.member(&text),
            };
            if let Some(new) = new {
                renames.symbols.insert(*symbol, new.into_bytes().into());
                return true;
            }
            !renames.mentions(&text)
        });
        renames
    }

    /// Returns the old names by new names.
    pub fn old_names(&self) -> &BTreeMap<String, String> {
        &self.old_names
    }

    /// Returns the patterns that matched no class.
    pub fn unmatched_patterns(&self) -> &[String] {
        &self.unmatched
    }

    /// Returns the new text of a symbol.
    pub(super) fn symbol(&self, symbol: u64) -> Option<&[u8]> {
        self.symbols.get(&symbol).map(|text| &**text)
    }

    /// Returns `true` if a text contains the name of a renamed class with its package.
    pub(super) fn mentions(&self, text: &str) -> bool {
        self.embedded.is_in(text)
    }

    /// Returns the new name of a class, or of an array of it, in Java source form.
    pub(super) fn class(&self, name: &str) -> Option<String> {
        let parts = NameParts::new(name);
        if let Some(new) = self.names.get(parts.path) {
            return Some(parts.with(new));
        }
        // Before an apparent address, the analyses show a slash.
        let parts = parts.with_address();
        self.names.get(&parts.path.replace('/', ".")).map(|new| parts.with(new))
    }

    /// Returns the new name of a source file.
    pub(super) fn source(&self, text: &str) -> Option<String> {
        self.sources.get(text).cloned()
    }

    /// Returns the new name of a field or method.
    pub(super) fn member(&self, text: &str) -> Option<String> {
        self.names.get(text).cloned().or_else(|| self.embedded.with_new_names(text))
    }
}

/// Parts of a class name as stored in a dump, such as `[Lcom/acme/Order;`.
#[derive(Debug, Clone, Copy)]
struct NameParts<'t> {
    /// Complete name.
    text: &'t str,
    /// Brackets and `L` of an array class.
    before: &'t str,
    /// Package and class.
    path: &'t str,
    /// Address of a hidden class, with its separator.
    address: &'t str,
    /// Semicolon of an array class.
    after: &'t str,
}

impl<'t> NameParts<'t> {
    fn new(text: &'t str) -> Self {
        let dimensions = text.bytes().take_while(|byte| *byte == b'[').count();
        let rest = text.get(dimensions..).unwrap_or_default();
        let (start, element) = if dimensions == 0 {
            let brackets = rest.find("[]").unwrap_or(rest.len());
            let element = rest.get(..brackets).unwrap_or_default();
            let element = if brackets < rest.len() { element.trim_end_matches(' ') } else { element };
            (0, if PRIMITIVES.contains(&element) { "" } else { element })
        } else {
            let class = rest.strip_prefix('L').and_then(|rest| rest.strip_suffix(';'));
            // Otherwise an array of a primitive type.
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
        Self { text, before, path, address, after: text.get(end..).unwrap_or_default() }
    }

    /// Returns the parts with the apparent address counted as part of the class name: `com/acme/77`.
    fn with_address(self) -> Self {
        let (start, end) = (self.before.len(), self.text.len() - self.after.len());
        Self { path: self.text.get(start..end).unwrap_or_default(), address: "", ..self }
    }

    /// Returns the complete name with another path.
    fn with(&self, path: &str) -> String {
        [self.before, path, self.address, self.after].concat()
    }
}

/// Assigner of new names.
#[derive(Default)]
struct Namer<'p> {
    patterns: &'p [ClassPattern],
    /// `true` for patterns that match a class.
    is_used: Vec<bool>,
    /// By class name: `true` if a pattern matches it.
    judged: HashMap<String, bool>,
    /// First parts of kept names: no new name starts with one.
    taken: HashSet<String>,
    packages: HashMap<String, String>,
    /// Names of classes by hashes of their paths.
    classes: HashMap<u128, String>,
    numbers: [u64; 2],
    /// Kept names, and new names of classes that only contain a renamed one.
    given: HashSet<String>,
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

    /// Returns the parts and the path of a name, if the class is renamed.
    fn judge<'t>(&mut self, name: &'t str) -> Option<(NameParts<'t>, String)> {
        let parts = NameParts::new(name);
        let both = [parts, parts.with_address()].map(|parts| (parts, parts.path.replace('/', ".")));
        both.into_iter().find(|(_, path)| self.is_matched(path))
    }

    /// Reserves the kept names in a symbol, so that no new name equals one.
    fn keep_apart(&mut self, used: SymbolUse, text: &str) {
        let mut keep = |name: &str| {
            if self.judge(name).is_none() {
                let path = NameParts::new(name).path.replace('/', ".");
                let first = path.split(['.', '$']).next().unwrap_or_default();
                self.taken.insert(first.to_owned());
                self.given.insert(path);
            }
            None
        };
        match used {
            SymbolUse::Class => drop(keep(text)),
            _ => drop(signature(text, &mut keep)),
        }
    }

    /// Returns the new text of a symbol that is the name of a class, or a signature.
    fn symbol(&mut self, used: SymbolUse, text: &str) -> Option<String> {
        match used {
            SymbolUse::Class => self.class(text),
            _ => signature(text, &mut |class| self.class(class)),
        }
    }

    /// Returns the new name of a class, if it is renamed.
    fn class(&mut self, name: &str) -> Option<String> {
        let (parts, path) = self.judge(name).or_else(|| {
            let parts = NameParts::new(name);
            Some((parts, parts.path.replace('/', ".")))
        })?;
        let new = match self.renames.names.get(&path) {
            Some(new) => new.clone(),
            None => {
                let new = if self.is_matched(&path) { self.name(&path) } else { self.embedded_name(&path)? };
                self.renames.names.insert(path.clone(), new.clone());
                new
            }
        };
        let old_names = &mut self.renames.old_names;
        old_names.insert(format!("{new}{}", parts.address), path + parts.address);
        Some(parts.with(&if parts.path.contains('/') { new.replace('.', "/") } else { new }))
    }

    /// Returns the new name of a class that no pattern matches but whose name contains the name of a renamed one.
    fn embedded_name(&mut self, path: &str) -> Option<String> {
        let mut new = self.renames.embedded.with_new_names(path)?;
        while !self.given.insert(new.clone()) {
            new.push('_');
        }
        Some(new)
    }

    /// Registers the new names for replacement within other names.
    fn embed(&mut self) {
        // Sorted, for reproducible results.
        let mut names: Vec<_> = self.renames.names.iter().filter(|(old, _)| old.contains('.')).collect();
        names.sort_unstable();
        names.into_iter().for_each(|(old, new)| self.renames.embedded.add(old, new));
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
            let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
            // A generator's hash, unless it looks like an assigned name.
            let is_hash = || {
                word.bytes().all(|byte| byte.is_ascii_hexdigit())
                    && !word.strip_prefix('C').is_some_and(is_number)
            };
            if word.is_empty() || is_generated && is_hash() {
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

    /// Renames a source file after the renamed class whose name it has, or else after the class of a frame.
    fn source(&mut self, source: &str, class: &str) {
        let Some((_, path)) = self.judge(class) else { return };
        let (stem, extension) = source.rsplit_once('.').unwrap_or((source, ""));
        let (package, simple) =
            path.rsplit_once('.').map_or(("", &*path), |(package, class)| (package, class));
        let outer = simple.split('$').next().unwrap_or_default();
        let number = |class: &str| {
            let path = if package.is_empty() { class.to_owned() } else { format!("{package}.{class}") };
            self.classes.get(&xxh3_128(path.as_bytes()))
        };
        let (exact, of_frame) = (number(stem), number(outer));
        // `<generated>` is not a file.
        let of_frame = of_frame.filter(|_| !extension.is_empty());
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
        self.renames
    }
}

/// Returns the signature of a method with the new names that `new` returns for classes; `None` if there are none.
fn signature(text: &str, new: &mut dyn FnMut(&str) -> Option<String>) -> Option<String> {
    if !text.starts_with('(') {
        return None;
    }
    let (mut renamed, mut rest, mut is_changed) = (String::new(), text, false);
    while let Some((before, from)) = rest.split_once('L') {
        let Some((class, after)) = from.split_once(';') else { break };
        let name = new(class);
        is_changed |= name.is_some();
        renamed.extend([before, "L", name.as_deref().unwrap_or(class), ";"]);
        rest = after;
    }
    is_changed.then(|| renamed + rest)
}
