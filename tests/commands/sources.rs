//! Claims of the documents about the sources.

use std::fs;
use std::path::{Path, PathBuf};

/// The Rust files below a directory.
pub(crate) fn rust_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns whether a text contains knowledge of the command line: its options, its name, limits of a shell.
fn is_advice(text: &str) -> bool {
    let is_option = |at: usize| text[at + 2..].starts_with(|letter: char| letter.is_ascii_lowercase());
    text.match_indices("--").any(|(at, _)| is_option(at)) || text.contains("hprof-cli ")
}

/// Texts of lower layers that name options or commands, and why.
const NO_ADVICE: &[(&str, &str)] = &[
    ("capture/jvms.rs", "options of `java`, as they are on its command line"),
    ("query/base/dictionary/", "what a name means depends on options"),
    ("query/analyses/check/measure/place.rs", "`diff --group-by place` is where names of places are shown"),
    ("query/tables/small/places.rs", "`diff --group-by place` is where the column's labels are explained"),
    (
        "query/analyses/waste/kinds/",
        "the definition of a kind contains its explanation, which `waste --explain` shows",
    ),
    ("report/tables/parquet.rs", "the name of the program that wrote a file"),
];

#[test]
fn layers_below_the_command_line_give_no_advice() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut wrong, mut excepted) = (Vec::new(), Vec::new());
    for layer in ["capture", "hprof", "input", "index", "memory", "query", "report"] {
        let mut files = Vec::new();
        rust_files(&root.join(layer), &mut files);
        for file in files {
            let path =
                file.strip_prefix(&root).unwrap().to_str().unwrap().replace(std::path::MAIN_SEPARATOR, "/");
            let source = fs::read_to_string(&file).unwrap();
            let code = source.split("\n#[cfg(test)]\n").next().unwrap();
            let texts = code.lines().filter(|line| !line.trim_start().starts_with("//") && is_advice(line));
            let exception = NO_ADVICE.iter().find(|(name, _)| path.starts_with(name));
            for text in texts {
                match exception {
                    Some((name, _)) => excepted.push(*name),
                    None => wrong.push(format!("{path}: {}", text.trim())),
                }
            }
        }
    }
    wrong.extend(
        NO_ADVICE
            .iter()
            .filter(|(name, _)| !excepted.contains(name))
            .map(|one| format!("not needed: {one:?}")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_documents_name_the_files_with_unsafe_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut files, mut with_unsafe) = (Vec::new(), Vec::new());
    rust_files(&root.join("src"), &mut files);
    for file in files {
        if fs::read_to_string(&file).unwrap().contains("allow(unsafe_code)") {
            let path = file.strip_prefix(root.join("src")).unwrap();
            with_unsafe.push(path.to_str().unwrap().replace(std::path::MAIN_SEPARATOR, "/"));
        }
    }
    with_unsafe.sort();
    for (document, title, folder) in [
        ("CONTRIBUTING.md", "`unsafe_code` is denied except in six files", "src/"),
        ("docs/ARCHITECTURE.md", "In six files", ""),
    ] {
        let text = fs::read_to_string(root.join(document)).unwrap();
        let (_, list) = text.split_once(title).unwrap_or_else(|| panic!("{document} has no list"));
        let list = list.split("\n\n").next().unwrap();
        let names = list.split('`').skip(1).step_by(2).filter(|word| word.ends_with(".rs"));
        let names = names.filter(|word| !word.starts_with("tests/"));
        let mut named: Vec<&str> = names.map(|word| word.strip_prefix(folder).unwrap_or(word)).collect();
        named.sort_unstable();
        assert_eq!(named, with_unsafe, "{document}");
    }
}

/// The files with a name in a folder and below it, without their endings; folders, too.
fn names_below(dir: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            names_below(&path, found);
        }
        found.push(name);
    }
}

#[test]
fn links_between_documents_and_sources_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut documents, mut wrong, mut links) = (Vec::new(), Vec::new(), 0);
    for folder in ["", "docs", "docs/decisions"] {
        let entries = fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        documents.extend(entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    for document in documents {
        let text = fs::read_to_string(&document).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = target.split('#').next().unwrap();
            if path.is_empty() || path.contains("://") || path.contains(char::is_whitespace) {
                continue;
            }
            links += 1;
            if !document.parent().unwrap().join(path).exists() {
                wrong.push(format!("{}: {path}", document.display()));
            }
        }
    }
    assert!(wrong.is_empty() && links > 100, "{links} links, wrong: {}", wrong.join("\n"));
}

#[test]
fn the_architecture_names_files_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("docs/ARCHITECTURE.md")).unwrap();
    let (_, table) = text.split_once("## Where is what?").unwrap();
    // Folders at the top, and commands.
    let mut elsewhere = vec!["format".to_owned(), "unsafe".to_owned()];
    names_below(&root.join("src/cli"), &mut elsewhere);
    let (mut wrong, mut named) = (Vec::new(), 0);
    for row in table.lines().skip(4).take_while(|line| line.starts_with("| `")) {
        let mut words = row.split('`').skip(1).step_by(2);
        let folder = words.next().unwrap();
        let mut names = Vec::new();
        for folder in [folder, "format"] {
            names_below(&root.join(folder), &mut names);
        }
        let is_name =
            |word: &&str| word.chars().all(|letter| letter.is_ascii_lowercase() || "_/".contains(letter));
        for word in words.filter(is_name) {
            named += 1;
            let name = word.trim_end_matches('/').rsplit('/').next().unwrap();
            if !names.iter().chain(&elsewhere).any(|known| known == name) {
                wrong.push(format!("{folder}: {word}"));
            }
        }
    }
    // Modules of the query layer, by the names that it gives them.
    let mut modules = Vec::new();
    names_below(&root.join("src/query"), &mut modules);
    for path in text.split(|letter: char| !(letter.is_ascii_alphanumeric() || "_:".contains(letter))) {
        let Some(path) = path.trim_end_matches(':').strip_prefix("query::") else { continue };
        named += 1;
        let module = path.split("::").next().unwrap();
        if module.starts_with(|first: char| first.is_ascii_lowercase())
            && !modules.iter().any(|known| known == module)
        {
            wrong.push(format!("query::{path}"));
        }
    }
    assert!(wrong.is_empty() && named > 150, "{named} names, wrong: {}", wrong.join("\n"));
}

/// An example in the documentation of another crate than hprof-cli would not be run: `doctest = false` in its manifest.
#[test]
fn examples_are_in_the_crate_whose_examples_are_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for dir in ["src", "agent", "format", "helper"] {
        rust_files(&root.join(dir), &mut files);
    }
    let is_run = |file: &PathBuf| {
        ["src/lib.rs", "src/main.rs", "src/cli"].iter().any(|own| file.starts_with(root.join(own)))
    };
    let mut wrong = Vec::new();
    for file in files.iter().filter(|file| !is_run(file)) {
        let mut is_inside = false;
        for line in fs::read_to_string(file).unwrap().lines().map(str::trim_start) {
            let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
            if let Some(language) = text.and_then(|text| text.trim_start().strip_prefix("```")) {
                if !is_inside && language != "text" {
                    wrong.push(format!("{}: {line}", file.display()));
                }
                is_inside = !is_inside;
            }
        }
    }
    assert!(wrong.is_empty(), "not run, as these crates have `doctest = false`: {wrong:#?}");
}
