//! What the documents claim of the sources.

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
        ("CONTRIBUTING.md", "`unsafe_code` is denied except in five files", "src/"),
        ("docs/ARCHITECTURE.md", "In five files", ""),
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
