//! Indexes that were changed, are something else, or cannot be written: every command gives the answer that the dump
//! gives, or says what to do, and never takes what is not right. What `tests/reading/hostile_index.rs` asks of the
//! library, this asks of the commands.
//!
//! More changed bytes: `HPROF_CLI_FLIPS=2000 cargo test --test commands crashes_index`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::kit::portion;
use crate::kit::process::{GRAPH, Place, RETAINED, finish, number, sample, stderr};
use hprof_writer::{Options, examples};

const STAGES: [&str; 5] = ["summary", "objects", "references", "referrers", "dominators"];
/// A question that an index helps, but that needs none.
const PLAIN: &[&str] = &["histo", "--format", "json"];
const BOTH: [&[&str]; 3] = [GRAPH, RETAINED, PLAIN];

fn zoo() -> Vec<u8> {
    examples::zoo().write(&Options::hotspot()).bytes()
}

/// A small dump with its index.
struct Indexed {
    place: Place,
    right: [String; 3],
    files: Vec<(&'static str, Vec<u8>)>,
}

impl Indexed {
    fn new() -> Self {
        let place = Place::new("heap.hprof", &zoo());
        let right = BOTH.map(|question| place.answer(question));
        let files = STAGES.map(|stage| (stage, fs::read(place.index().join(stage)).unwrap()));
        Self { place, right, files: files.into() }
    }

    /// Puts the index back as it was. Other stages are written by `index` only.
    fn restore(&self) {
        self.place.create_index();
        for stage in ["places", "containers"] {
            let _ = fs::remove_file(self.place.index().join(stage));
        }
        for (stage, bytes) in &self.files {
            let path = self.place.index().join(stage);
            if fs::symlink_metadata(&path).is_ok_and(|there| !there.is_file()) {
                // The command left files that it did not need unchanged.
                let _ = fs::remove_dir(&path).or_else(|_| fs::remove_file(&path));
            }
            if fs::read(&path).ok().as_ref() != Some(bytes) {
                fs::write(path, bytes).unwrap();
            }
        }
    }

    /// All commands answer as they did, and say in one line that something is built again, or nothing. Tells how many
    /// said so. `spoil` is done before each.
    fn check(&self, spoil: &dyn Fn(), what: &str) -> usize {
        let mut said = 0;
        for (question, right) in BOTH.iter().zip(&self.right) {
            self.restore();
            spoil();
            let output = self.place.run(question);
            let lines = stderr(&output);
            assert_eq!(output.status.code(), Some(0), "{what}: {lines}");
            assert!(output.stdout == right.as_bytes(), "{what}: {question:?}");
            if !lines.is_empty() {
                let is_note = lines.starts_with("hprof-cli: note: ") && lines.contains("rebuilding it");
                assert!(is_note && lines.lines().count() == 1, "{what}: {lines}");
                said += 1;
            }
        }
        self.restore();
        said
    }
}

/// Returns the state of each stage according to `index --verify`.
fn verified(place: &Place) -> Vec<(String, String)> {
    let output = place.run(&["index", "--verify", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |row: &serde_json::Value, key: &str| row[key].as_str().unwrap().to_owned();
    let rows = json["rows"].as_array().unwrap().iter();
    let states: Vec<_> = rows.map(|row| (text(row, "stage"), text(row, "state"))).collect();
    let good = states.iter().all(|(_, state)| state == "good");
    assert_eq!(output.status.code(), Some(i32::from(!good)), "{states:?}");
    states
}

fn not_good(place: &Place) -> Vec<String> {
    let bad = verified(place).into_iter().filter(|(_, state)| state != "good");
    bad.map(|(stage, _)| stage).collect()
}

/// Places in a stage's file that stand for all: fields of the header, of the table, and of each section the first, the
/// middle and the last byte and those of its hashes. As `docs/index-format.md` has them.
fn telling_places(file: &[u8]) -> Vec<usize> {
    let number = |at: usize| u64::from_le_bytes(*file[at..].first_chunk().unwrap()) as usize;
    let sections = u32::from_le_bytes(*file[52..].first_chunk().unwrap()) as usize;
    let mut places: Vec<usize> = (0..72).step_by(4).collect();
    for row in (0..sections).map(|row| 72 + 32 * row) {
        places.extend([row, row + 4, row + 8, row + 16, row + 24]);
        let (start, len) = (number(row + 8), number(row + 16));
        if len > 0 {
            places.extend([start, start + len / 2, start + len - 1, start + len]);
        }
    }
    places
}

/// Bytes of a file that nobody reads: what fills up to the next section.
fn is_read(file: &[u8], at: usize) -> bool {
    let number = |at: usize| u64::from_le_bytes(*file[at..].first_chunk().unwrap()) as usize;
    let sections = u32::from_le_bytes(*file[52..].first_chunk().unwrap()) as usize;
    let head = 72 + 32 * sections;
    at < head
        || (72..head).step_by(32).any(|row| {
            let (start, len) = (number(row + 8), number(row + 16));
            (start..start + len + len.div_ceil(1 << 16) * 8).contains(&at)
        })
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn a_changed_byte_is_found_and_changes_no_answer() {
    let indexed = Indexed::new();
    let mut flips = Vec::new();
    for (stage, file) in &indexed.files {
        // Every third, so that it does not take minutes: the library's tests try all of them.
        flips.extend(telling_places(file).into_iter().step_by(3).map(|at| (*stage, file, at)));
    }
    let mut seed = 0x2026_1121_u64;
    for flip in 0..number("HPROF_CLI_FLIPS", 60) {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (stage, file) = &indexed.files[flip as usize % STAGES.len()];
        flips.push((stage, file, (seed >> 33) as usize % file.len()));
    }
    let (mut said, all) = (0, flips.len());
    for (stage, file, at) in flips {
        let what = format!("{stage}, byte {at}");
        let mut changed = file.clone();
        changed[at] ^= 1 << (at % 8);
        let path = indexed.place.index().join(stage);
        fs::write(&path, &changed).unwrap();
        let expected: &[&str] = if is_read(file, at) { &[stage] } else { &[] };
        assert_eq!(not_good(&indexed.place), expected, "{what}");
        said += indexed.check(&|| fs::write(&path, &changed).unwrap(), &what);
    }
    assert!(said > all, "{said} answers of {all} changes had to build again");
}

#[test]
fn an_index_of_another_version_is_built_again_and_said_once() {
    let indexed = Indexed::new();
    for version in [0u32, 1, 1000] {
        let spoil = || {
            for (stage, file) in &indexed.files {
                let mut other = file.clone();
                other[8..12].copy_from_slice(&version.to_le_bytes());
                fs::write(indexed.place.index().join(stage), other).unwrap();
            }
        };
        indexed.restore();
        spoil();
        assert!(verified(&indexed.place).iter().all(|(_, state)| state == "foreign"), "{version}");
        assert_eq!(indexed.check(&spoil, "another version"), 3, "{version}");
        // `index` makes it right.
        spoil();
        assert_eq!(indexed.place.run(&["index"]).status.code(), Some(0));
        assert!(indexed.place.is_verified());
    }
}

#[test]
fn a_file_that_is_cut_or_longer_is_built_again() {
    let indexed = Indexed::new();
    for (stage, file) in &indexed.files {
        let path = indexed.place.index().join(stage);
        let longer = [file, &b"x"[..]].concat();
        let parts = [&file[..0], &file[..1], &file[..71], &file[..file.len() / 2], &file[..file.len() - 1]];
        for bytes in parts.into_iter().chain([&longer[..]]) {
            let what = format!("{stage} of {} bytes", bytes.len());
            fs::write(&path, bytes).unwrap();
            assert_eq!(not_good(&indexed.place), [*stage], "{what}");
            let said = indexed.check(&|| fs::write(&path, bytes).unwrap(), &what);
            assert_eq!(said, if *stage == "summary" { 3 } else { 2 }, "{what}");
        }
    }
}

/// Makes something at a path.
type Make<'m> = &'m dyn Fn(&Path);

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn what_is_no_file_in_the_place_of_one_does_no_harm() {
    let indexed = Indexed::new();
    for stage in STAGES {
        let path = indexed.place.index().join(stage);
        let make: [(&str, Make<'_>); 4] = [
            ("a directory", &|path| fs::create_dir(path).unwrap()),
            ("a pipe", &|path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success())),
            ("a link to itself", &|path| symlink(path, path).unwrap()),
            ("a file that may not be read", &|path| {
                fs::write(path, b"x").unwrap();
                fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
            }),
        ];
        for (what, make) in make {
            let what = format!("{what} in the place of {stage}");
            let spoil = || {
                fs::remove_file(&path).unwrap();
                make(&path);
            };
            spoil();
            assert_eq!(not_good(&indexed.place), [stage], "{what}");
            assert_eq!(indexed.place.run(&["index"]).status.code(), Some(0), "{what}");
            assert!(indexed.place.is_verified(), "{what}");
            let said = indexed.check(&spoil, &what);
            assert_eq!(said, if stage == "summary" { 3 } else { 2 }, "{what}");
            indexed.place.answer(GRAPH);
        }
        // Other contents of a directory do not belong to the program.
        fs::remove_file(&path).unwrap();
        fs::create_dir_all(path.join("mine")).unwrap();
        let output = indexed.place.run(GRAPH);
        assert_eq!(output.status.code(), Some(2), "{stage}");
        let said = stderr(&output);
        assert!(said.contains("error: cannot write the index") && said.contains("hint: "), "{said}");
        assert_eq!(indexed.place.answer(PLAIN), indexed.right[2], "{stage}");
        assert!(path.join("mine").is_dir() && indexed.place.leftovers().is_empty());
        fs::remove_dir_all(&path).unwrap();
        indexed.restore();
    }
}

#[test]
fn a_pipe_in_the_place_of_the_lock_is_not_waited_for() {
    let indexed = Indexed::new();
    let lock = indexed.place.index().join("lock");
    fs::remove_file(&lock).unwrap();
    assert!(Command::new("mkfifo").arg(&lock).status().unwrap().success());
    fs::remove_file(indexed.place.index().join("dominators")).unwrap();
    assert_eq!(indexed.place.answer(GRAPH), indexed.right[0]);
    assert_eq!(indexed.place.run(&["index", "--remove"]).status.code(), Some(0));
    assert!(!indexed.place.index().exists());
}

#[test]
fn the_copy_of_a_compressed_dump_is_checked() {
    let place = Place::new("heap.hprof.zst", &zstd::encode_all(&zoo()[..], 3).unwrap());
    let right = place.answers();
    let copy = place.index().join("unpacked.hprof");
    let bytes = fs::read(&copy).unwrap();
    let spoils: [&dyn Fn(); 4] = [
        &|| fs::write(&copy, &bytes[..bytes.len() / 2]).unwrap(),
        &|| fs::write(&copy, [&bytes[..500], &[!bytes[500]], &bytes[501..]].concat()).unwrap(),
        &|| fs::remove_file(&copy).unwrap(),
        &|| {
            fs::remove_file(&copy).unwrap();
            assert!(Command::new("mkfifo").arg(&copy).status().unwrap().success());
        },
    ];
    for spoil in spoils {
        spoil();
        assert_eq!(not_good(&place), ["unpacked"]);
        // With nothing else left of the index, the copy has to be read.
        STAGES.iter().for_each(|stage| drop(fs::remove_file(place.index().join(stage))));
        assert!(place.answers() == right);
        assert!(place.is_verified());
    }
}

/// A path below a file: nobody can write there, whoever he is.
fn nowhere(place: &Place) -> PathBuf {
    let file = place.path("file");
    fs::write(&file, "").unwrap();
    file.join("below")
}

#[test]
fn beside_a_dump_where_nobody_can_write_the_index_lies_in_the_cache() {
    let place = Place::new("heap.hprof", &zoo());
    let right = place.answers();
    fs::remove_dir_all(place.index()).unwrap();
    fs::write(place.index(), "").unwrap();
    for _ in ["first", "again"] {
        assert!(place.answers() == right);
    }
    assert!(stderr(&place.run(GRAPH)).is_empty(), "it is found where it lies");
    let cached: Vec<_> = fs::read_dir(place.path("cache/hprof-cli")).unwrap().collect();
    assert_eq!(cached.len(), 1);
    assert!(place.is_verified());
    let removed = place.run(&["index", "--remove"]);
    assert_eq!(removed.status.code(), Some(0), "{}", stderr(&removed));
    assert_eq!(fs::read_dir(place.path("cache/hprof-cli")).unwrap().count(), 0);
}

#[test]
fn without_any_place_for_an_index_there_are_answers_and_one_note() {
    let packed = zstd::encode_all(&zoo()[..], 3).unwrap();
    for (name, bytes) in [("heap.hprof", zoo()), ("heap.hprof.zst", packed)] {
        let place = Place::new(name, &bytes);
        let right = BOTH.map(|question| place.answer(question));
        fs::remove_dir_all(place.index()).unwrap();
        fs::write(place.index(), "").unwrap();
        let nowhere = nowhere(&place);
        let run = |arguments: &[&str], tmp: &Path| -> Output {
            let mut command = place.command(arguments);
            finish(command.env("XDG_CACHE_HOME", &nowhere).env("TMPDIR", tmp).spawn().unwrap())
        };
        for (question, right) in BOTH.iter().zip(&right) {
            let output = run(question, &place.path("tmp"));
            let said = stderr(&output);
            assert_eq!((output.status.code(), said.lines().count()), (Some(0), 1), "{said}");
            assert!(
                output.stdout == right.as_bytes() && said.contains("note: the index is not saved"),
                "{said}"
            );
            assert!(place.leftovers().is_empty(), "{:?}", place.leftovers());
        }
        // `index` must produce the index itself.
        let output = run(&["index"], &place.path("tmp"));
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("hint: name a writable directory with --index-dir"));
        // Nowhere at all.
        let output = run(GRAPH, &nowhere);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("hint: name a"), "{}", stderr(&output));
        if name == "heap.hprof" {
            assert!(run(PLAIN, &nowhere).stdout == right[2].as_bytes());
        }
    }
}

/// An index that came with the dump, where only others may write, and that is damaged.
#[test]
fn a_damaged_index_that_cannot_be_removed_is_passed_over() {
    let indexed = Indexed::new();
    let (dir, path) = (indexed.place.index(), indexed.place.index().join("dominators"));
    let mut changed = fs::read(&path).unwrap();
    // In the first block of the data for retained sizes, which is checked when they are read.
    let sizes = changed[72..].chunks(32).find(|row| row[0] == 7).unwrap();
    let at = u64::from_le_bytes(*sizes[8..].first_chunk().unwrap()) as usize;
    changed[at] ^= 1;
    fs::write(&path, &changed).unwrap();
    let allow = |mode| fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
    allow(0o555);
    let enforced = fs::write(dir.join("probe"), "").is_err();
    if enforced {
        for (question, right) in BOTH.iter().zip(&indexed.right) {
            assert_eq!(indexed.place.answer(question), *right);
        }
    }
    allow(0o755);
    // Whoever may do anything (root) builds it again where it is.
    if !enforced {
        assert_eq!(indexed.check(&|| fs::write(&path, &changed).unwrap(), "sizes"), 2);
    }
}

/// Data that only rows read, not the search for them: the first data with which a damaged block could spoil an answer
/// after it was shown.
#[test]
fn a_block_found_damaged_while_rows_are_made_is_built_again() {
    let place = Place::new("heap.hprof", &zoo());
    let query = "SELECT s.@retainedHeapSize, s FROM INSTANCEOF java.lang.Object s";
    let first = place.answer(&["oql", "SELECT * FROM INSTANCEOF java.lang.Object s", "--format", "csv"]);
    let object = first.lines().nth(1).and_then(|line| line.split(',').next()).unwrap().to_owned();
    let path = place.index().join("dominators");
    let mut changed = fs::read(&path).unwrap();
    let sizes = changed[72..].chunks(32).find(|row| row[0] == 7).unwrap();
    let at = u64::from_le_bytes(*sizes[8..].first_chunk().unwrap()) as usize;
    changed[at] ^= 1;
    let selected: [&[&str]; 2] = [&["oql", query], &["show", &object, "--incoming"]];
    for arguments in selected {
        for format in ["table", "json", "csv"] {
            let question = [arguments, &["--format", format]].concat();
            let right = place.answer(&question);
            fs::write(&path, &changed).unwrap();
            let output = place.run(&question);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(0), "{question:?}: {said}");
            assert!(output.stdout == right.as_bytes(), "{question:?}");
            assert!(said.contains("rebuilding it"), "{question:?}: {said}");
        }
    }
}

/// Runs a command whose files are limited to `blocks` blocks of 512 bytes (some shells: 1024).
fn limited(place: &Place, blocks: u32, arguments: &[&str]) -> Output {
    finish(place.in_shell(&format!("ulimit -f {blocks}"), arguments).spawn().unwrap())
}

/// Checks the result of a command on a full disk: the right answer, or an error that says so; no incomplete file is
/// left.
fn is_clean(place: &Place, output: &Output, right: &str, what: &str) -> bool {
    let said = stderr(output);
    let fine = output.status.code() == Some(0);
    if fine {
        assert!(output.stdout == right.as_bytes(), "{what}");
    } else {
        assert_eq!(output.status.code(), Some(2), "{what}: {:?} {said}", output.status);
        assert!(said.contains("error: cannot ") && said.contains("File too large"), "{what}: {said}");
        assert!(said.contains("hint: ") && said.contains("--index-dir"), "{what}: {said}");
    }
    assert!(place.leftovers().is_empty(), "{what}: {:?}", place.leftovers());
    for (stage, state) in verified(place) {
        assert!(state == "good" || state == "missing", "{what}: {stage} is {state}");
    }
    fine
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn a_disk_that_is_full_at_any_write_is_an_error_and_leaves_nothing() {
    let indexed = Indexed::new();
    let place = &indexed.place;
    let largest = indexed.files.iter().map(|(_, file)| file.len()).max().unwrap();
    let limits = u32::try_from(largest / 512 + 2).unwrap();
    // With the first stages there, the later ones meet every limit too.
    for there in 0..STAGES.len() {
        let (mut errors, mut answers) = (0, 0);
        for blocks in (0..limits).step_by(portion::step()).chain([limits]) {
            let what = format!("{blocks} blocks, {there} stages there");
            let forget = || {
                indexed.restore();
                if there == 0 {
                    place.forget_index();
                } else {
                    STAGES[there..]
                        .iter()
                        .for_each(|stage| fs::remove_file(place.index().join(stage)).unwrap());
                }
            };
            forget();
            let graph = limited(place, blocks, GRAPH);
            *(if is_clean(place, &graph, &indexed.right[0], &what) { &mut answers } else { &mut errors }) +=
                1;
            assert_eq!(place.answer(RETAINED), indexed.right[1], "{what}");
            forget();
            let plain = limited(place, blocks, PLAIN);
            assert!(is_clean(place, &plain, &indexed.right[2], &what), "{what}: {}", stderr(&plain));
        }
        assert!(errors > 0 && answers > 0, "{there}: {errors} errors, {answers} answers");
    }
    // A directory that was created in vain is removed.
    place.forget_index();
    assert_eq!(limited(place, 0, GRAPH).status.code(), Some(2));
    assert!(!place.index().exists());
}

#[test]
fn a_disk_that_is_full_while_a_dump_is_unpacked_is_an_error() {
    let place = Place::new("heap.hprof.zst", &fs::read("samples/jdk/jdk17.hprof.zst").unwrap());
    let right = place.answers();
    for blocks in [0, 1, 7, 100, 5000, 10_000] {
        place.forget_index();
        let output = limited(&place, blocks, GRAPH);
        assert!(!is_clean(&place, &output, &right[0], &format!("{blocks} blocks")), "{blocks}");
    }
    assert!(place.answers() == right);
}

#[test]
fn a_disk_that_is_full_behind_an_output_file_is_an_error_and_keeps_the_old_file() {
    let place = Place::new("heap.hprof", &sample("jdk/jdk17"));
    place.answer(&["histo"]);
    let out = place.path("out.txt");
    fs::write(&out, "old").unwrap();
    for blocks in [0, 1, 100, 3000, 10_000] {
        let output = limited(&place, blocks, &["convert", "--output", out.to_str().unwrap()]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{blocks}: {:?}, {said}", output.status);
        assert!(said.contains("error: cannot write") && said.contains("File too large"), "{said}");
        assert_eq!(fs::read(&out).unwrap(), b"old");
        assert!(place.leftovers().is_empty(), "{:?}", place.leftovers());
    }
}
