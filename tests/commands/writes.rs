//! Everything that changes files: docs/robustness.md has a table of all calls, who may own what they change, and why that is
//! safe.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::sources::rust_files;

/// The kinds of calls as in the table, and the words by which each is found: those of the system, the standard library and
/// crates, and our own for the same.
const CALLS: &[(&str, &[&str])] = &[
    (
        "remove",
        &[
            "remove_file(",
            "remove_dir(",
            "remove_dir_all(",
            "remove_made(",
            "remove_made_dir(",
            "remove_made_tree(",
            "unlink(",
            "unlinkat(",
            "rmdir(",
        ],
    ),
    (
        "rename",
        &[
            "rename(",
            "rename_new(",
            "rename_into(",
            "renameat(",
            "renameat2(",
            "renameat_with(",
            "persist(",
            "persist_noclobber(",
        ],
    ),
    (
        "mkdir",
        &[
            "create_dir(",
            "create_dir_all(",
            "create_or_open_dir(",
            "create_random_dir(",
            "OpenDir::create_all(",
            "Self::create_all(",
            "PrivateDir::create(",
            "DirBuilder::new(",
            "mkdir(",
            "mkdirat(",
            "TemporaryDir::create",
        ],
    ),
    ("chown", &["chown(", "fchown(", "lchown(", "chownat(", "fchownat("]),
    ("chmod", &["set_permissions(", "chmod(", "fchmod(", "chmodat(", "fchmodat("]),
    (
        "open",
        &[
            "OpenOptions::new(",
            "File::options(",
            "File::create(",
            "File::create_new(",
            "create_new(",
            "create_random(",
            "create_linkable(",
            "create_unnamed(",
            "unnamed_in(",
            "write_or_create(",
            "write_device(",
            "dir.write(",
            "fs::write(",
            "fs::copy(",
            "O_CREAT",
            "O_WRONLY",
            "O_RDWR",
            "OFlags::CREATE",
            "OFlags::WRONLY",
            "OFlags::RDWR",
            "OFlags::TMPFILE",
            "tempfile::",
            "OutFile::create(",
            "OutFile::create_private(",
            "Temporary::create(",
            "Temporary::link(",
            "save_history(",
        ],
    ),
    ("link", &["linkat(", "hard_link(", "symlink(", "symlinkat(", "dir.link("]),
    ("fifo", &["mkfifo(", "mkfifoat(", "mknod(", "mknodat("]),
    ("truncate", &["set_len(", "ftruncate(", "truncate(true"]),
];

/// Where the program's sources are.
const SOURCES: &[&str] = &["src", "agent/src", "helper", "format/src"];

/// Returns the source without tests.
fn without_tests(source: &str) -> &str {
    let is_tests = |rest: &str| {
        let mut lines = rest.lines().skip_while(|line| line.is_empty() || line.starts_with("#["));
        lines.next().is_some_and(|line| line.starts_with("mod ") && line.ends_with('{'))
    };
    let end = source.match_indices("\n#[cfg(test)]\n").find(|(at, _)| is_tests(&source[*at..]));
    end.map_or(source, |(at, _)| &source[..at])
}

/// Returns whether a file is a module of tests.
fn is_of_tests(path: &Path, root: &Path) -> bool {
    let name = path.file_stem().unwrap().to_str().unwrap();
    let inner = path.strip_prefix(root).unwrap();
    if name == "tests" || inner.components().any(|folder| folder.as_os_str() == "tests") {
        return true;
    }
    let (folder, declaration) = (path.parent().unwrap(), format!("#[cfg(test)]\nmod {name};"));
    let own = folder.with_extension("rs");
    [folder.join("mod.rs"), folder.join("lib.rs"), own]
        .iter()
        .any(|parent| fs::read_to_string(parent).is_ok_and(|source| source.contains(&declaration)))
}

/// Returns whether a line contains a word, not only as the end of a longer one.
fn has_word(line: &str, word: &str) -> bool {
    let is_start = |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(at, _)| is_start(at))
}

/// Returns the kinds of calls in a source.
fn calls(source: &str) -> BTreeSet<&'static str> {
    let is_code =
        |line: &&str| !line.trim_start().starts_with("//") && !line.trim_start().starts_with("use ");
    let kinds = |line: &str| -> Vec<&str> {
        let has = |words: &[&str]| words.iter().any(|word| has_word(line, word));
        CALLS.iter().filter(|(_, words)| has(words)).map(|(kind, _)| *kind).collect()
    };
    without_tests(source).lines().filter(is_code).flat_map(kinds).collect()
}

#[test]
fn calls_are_found_outside_tests() {
    let source = "use std::fs::rename(\n// fs::write(\n    fs::rename(a, b)?;\nprename(\n\n#[cfg(test)]\nfn f() { mkdirat( }\n\
                  #[cfg(test)]\n#[allow(x)]\nmod tests {\n    fs::write(a, b)";
    assert_eq!(calls(source), BTreeSet::from(["mkdir", "rename"]));
}

#[test]
fn the_documents_list_everything_that_changes_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<PathBuf> = Vec::new();
    SOURCES.iter().for_each(|folder| rust_files(&root.join(folder), &mut files));
    let mut found = BTreeMap::new();
    for file in files.iter().filter(|file| !is_of_tests(file, root)) {
        let calls = calls(&fs::read_to_string(file).unwrap());
        if !calls.is_empty() {
            let path = file.strip_prefix(root).unwrap().to_str().unwrap();
            found.insert(path.replace(std::path::MAIN_SEPARATOR, "/"), calls);
        }
    }
    let text = fs::read_to_string(root.join("docs/robustness.md")).unwrap();
    let (_, section) = text.split_once("\n## Files that are written\n").expect("the section");
    let section = section.split("\n## ").next().unwrap();
    let mut listed: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let mut incomplete = Vec::new();
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [file, calls, what, owner, why] = cells[..] else { panic!("a row of five: {row}") };
        if [what, owner, why].iter().any(|cell| cell.is_empty()) {
            incomplete.push(row);
        }
        listed.entry(file.trim_matches('`').to_owned()).or_default().extend(calls.split(", "));
    }
    assert!(incomplete.is_empty(), "{incomplete:#?}");
    let differ = |(file, calls): &(&String, &BTreeSet<&str>)| listed.get(*file) != Some(*calls);
    let missing: Vec<_> = found.iter().filter(differ).map(|one| (one, listed.get(one.0))).collect();
    assert!(missing.is_empty(), "docs/robustness.md should list (now lists): {missing:#?}");
    let gone: Vec<_> = listed.keys().filter(|file| !found.contains_key(*file)).collect();
    assert!(gone.is_empty(), "docs/robustness.md lists files that write nothing: {gone:?}");
}
