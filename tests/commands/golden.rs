//! Golden outputs: every command on the samples, as a user sees them in a pipe, and the examples of README.md.
//!
//! The cases are `tests/cmd/*.trycmd` and README.md. After a wanted change: `TRYCMD=overwrite cargo test --test commands
//! golden`, then read the diff line by line.

use std::path::{Path, PathBuf};

use hprof_index::{Heap, Options, Quiet};

#[test]
fn answers_are_as_recorded() {
    let dir = tempfile::tempdir().unwrap();
    // The first reading of a compressed dump prints a note, and `info` shows more once dominators exist: do all that
    // before, so that no case depends on another.
    for dump in samples() {
        let options = Options { index_dir: Some(dir.path().to_owned()), ..Options::default() };
        Heap::open_graph(&dump, &options, &Quiet).unwrap();
    }
    trycmd::TestCases::new()
        .env("HPROF_CLI_INDEX_DIR", dir.path().to_str().unwrap())
        .env("XDG_DATA_HOME", dir.path().join("data").to_str().unwrap())
        .case("tests/cmd/*.trycmd")
        .case("README.md")
        .run();
}

fn samples() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["jdk", "agent", "leaks", "public"] {
        let folder = Path::new("samples").join(folder);
        for entry in std::fs::read_dir(&folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            // Dumps that were used with the program have an index beside them.
            if name.contains(".hprof") && !name.ends_with(".index") {
                found.push(folder.join(name));
            }
        }
    }
    assert!(found.len() > 15, "{found:?}");
    found
}
