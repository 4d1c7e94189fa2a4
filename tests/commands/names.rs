//! Names of types and functions: those that a reader of Rust knows, and finds by a search.
//!
//! Of ripgrep, wasm-tools, samply, rust-analyzer and tantivy, 0 to 0.4 percent of the types are a bare participle, pronoun or
//! verb, 0 to 0.3 percent of the functions a preposition, pronoun or such, and 0.1 to 1.6 percent a bare participle.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::imports::{CRATES, bare};
use crate::sources::rust_files;

/// Words that are no name of a type. Participles are found by their ending.
const NO_TYPE: &str = "Said Made Kept Found Held Told Known Shown Given Left Beside Of Wrong Which Why What Where How Both Each \
    Seen Written Done Drawn Taken Sent Built Meant Lost Put Met Gone Jointly Frees Finds Half Apart Within Below Above Under \
    Behind Among Alike Only Whole Rest Others Those Rather Near Spent Come Ask Takes Needs Has Lies Covers Looks Heard Teller";

/// Words that are no name of a function, but for what Rust itself calls so.
const NO_FUNCTION: &str = "what why how where who which whether of at by in on about beside besides below above within behind \
    among beyond under over said made told kept found held known shown given left one other others both each all some any none \
    rest alike apart together first last more most least such so only it its this those they whole half here there again out \
    off up down near far tells says say asks keeps knows wants needs takes gives goes comes lies stands hangs";

/// Words that end like a participle; as types also `Shared` and `Unused`.
const NO_PARTICIPLE: &str = "speed feed seed need embed";
const NO_PARTICIPLE_OF_TYPE: &str = "shared unused";

/// Maximum number of functions whose names are words of [`NO_FUNCTION`]: `all`, `at`, `first`, `last` and `none`.
const MAX_WORDS: usize = 18;

/// Maximum number of functions whose names are bare participles: `sorted`, `quoted`, `rounded` and others that return what they
/// were given in another form, and `retained`.
const MAX_PARTICIPLES: usize = 22;

/// Types that a crate defines twice: once for each platform.
const TWICE: &[(&str, &str)] = &[("index", "PrivatePages"), ("cli", "ProcessArgs")];

/// Returns whether a name is one lower-case word that ends like a participle.
fn is_participle(name: &str) -> bool {
    name.ends_with("ed")
        && name.bytes().all(|byte| byte.is_ascii_lowercase())
        && !NO_PARTICIPLE.split_whitespace().any(|word| word == name)
}

/// Returns whether a type may not have this name.
fn is_odd_type(name: &str) -> bool {
    let is_one_word = name.bytes().skip(1).all(|byte| byte.is_ascii_lowercase());
    let small = name.to_ascii_lowercase();
    let is_exception = NO_PARTICIPLE_OF_TYPE.split_whitespace().any(|word| word == small);
    NO_TYPE.split_whitespace().any(|word| word == name)
        || is_one_word && is_participle(&small) && !is_exception
}

/// The name of the type that a line defines. An associated type, the only `type` that is indented, has a name that its
/// trait chose.
fn defined_type(line: &str) -> Option<&str> {
    let code = line.trim_start();
    let code = match code.strip_prefix("pub") {
        Some(public) if public.starts_with('(') => public.split_once(") ")?.1,
        Some(public) => public.strip_prefix(' ')?,
        None => code,
    };
    let (keyword, rest) = code.split_once(' ')?;
    let is_definition = match keyword {
        "struct" | "enum" | "trait" | "union" => true,
        "type" => !line.starts_with(' '),
        _ => false,
    };
    let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
    let name = rest.get(..end)?;
    (is_definition && name.starts_with(|first: char| first.is_ascii_uppercase())).then_some(name)
}

#[test]
fn a_line_that_defines_a_type_is_recognized() {
    for (line, name) in [
        ("pub(in crate::cli::retention) enum StepLine {", Some("StepLine")),
        ("pub(crate) type Keyword<T> = (&'static str, T);", Some("Keyword")),
        ("    struct HandlerState {", Some("HandlerState")),
        ("pub struct Wrapper(u64);", Some("Wrapper")),
        ("    type Item = u64;", None),
        ("/// A struct Row of", None),
        ("    struct.field = Other;", None),
    ] {
        assert_eq!(defined_type(line), name, "{line}");
    }
}

/// Returns the names of the functions that a source without comments and texts defines.
fn functions(source: &str) -> impl Iterator<Item = &str> {
    let words = source
        .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty());
    words.clone().zip(words.skip(1)).filter(|(keyword, _)| *keyword == "fn").map(|(_, name)| name)
}

#[test]
fn functions_are_recognized() {
    let source = "pub(crate) const fn of(at: fn(&u8) -> u8) {}\n    fn  sorted<T>(self) {}\n";
    assert_eq!(functions(source).filter(|name| *name != "u8").collect::<Vec<_>>(), ["of", "sorted"]);
    assert!(["Dumped", "Held", "Said"].into_iter().all(is_odd_type));
    assert!(!["Seed", "Shared", "HeldObject", "DumpedClass"].into_iter().any(is_odd_type));
    assert!(is_participle("declared") && !is_participle("seed") && !is_participle("is_declared"));
}

/// The files of a crate, without those of crates in its folder, of tests and of benchmarks.
fn files_of(folder: &Path, others: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    rust_files(folder, &mut files);
    files.retain(|file| {
        let path = file.strip_prefix(folder).unwrap();
        let mut parts = path.iter().map(|part| part.to_str().unwrap());
        let is_other = path.components().count() > 1 && others.iter().any(|other| path.starts_with(other));
        !is_other && !parts.any(|part| ["tests", "tests.rs", "benches"].contains(&part))
    });
    files
}

#[test]
fn names_are_nouns_and_verbs_that_a_search_finds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut types, mut words, mut participles, mut twice) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut count = 0;
    for (name, folder, others) in CRATES {
        let mut definitions: BTreeMap<String, usize> = BTreeMap::new();
        for file in files_of(&root.join(folder), others) {
            let source = bare(&fs::read_to_string(&file).unwrap());
            for name in source.lines().filter_map(defined_type) {
                *definitions.entry(name.to_owned()).or_default() += 1;
                if is_odd_type(name) {
                    types.push(format!("{name} in {}", file.display()));
                }
            }
            for name in functions(&source) {
                count += 1;
                if NO_FUNCTION.split_whitespace().any(|word| word == name) {
                    words.push(format!("{name} in {}", file.display()));
                } else if is_participle(name) {
                    participles.push(format!("{name} in {}", file.display()));
                }
            }
        }
        let is_known = |of: &str| TWICE.contains(&(*name, of));
        let many = definitions.into_iter().filter(|(of, count)| *count > 1 && !is_known(of));
        twice.extend(many.map(|(of, _)| format!("{of} in {name}")));
    }
    assert!(count > 5000, "{count}");
    assert!(types.is_empty(), "no names of types: {types:#?}");
    assert!(twice.is_empty(), "defined twice in a crate: {twice:#?}");
    assert!(words.len() <= MAX_WORDS, "{} functions have names that say nothing: {words:#?}", words.len());
    assert!(
        participles.len() <= MAX_PARTICIPLES,
        "{} functions have participles as names: {participles:#?}",
        participles.len()
    );
}
