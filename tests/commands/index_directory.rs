//! Index directories, and files in them, that others could have made or could change: nothing of them is believed,
//! overwritten or removed, and a lock that is held for ever holds nobody up.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant, SystemTime};

use crate::kit::process::{GRAPH, Place, finish, stderr};
use hprof_writer::{Elements, HeapModel, Options, Root, Type, examples};

/// A question that an index helps, but that needs none.
const HISTO: &[&str] = &["histo", "--format", "csv"];

/// Creates a dump with an instance of `t.Left` or of `t.Right` in its middle, where no sample is taken for its
/// identity.
fn dump(is_left: bool) -> Vec<u8> {
    let mut model = HeapModel::default();
    let object = model.class("java.lang.Object", None, &[]);
    let [left, right] =
        ["t.Left", "t.Right"].map(|name| model.class(name, Some(object), &[("x", Type::Int)]));
    let before = model.prim_array(Elements::of_bytes(&[1; 300_000]));
    let instance = model.instance(if is_left { left } else { right }, &[7i32.into()]);
    let after = model.prim_array(Elements::of_bytes(&[2; 170_000]));
    model.root_boot_classes();
    for object in [before, instance, after] {
        model.root(object, Root::JniGlobal { reference: 1 });
    }
    model.write(&Options::hotspot()).bytes()
}

/// A dump, and beside it the index of another one that pretends to be its own: with right checksums and the right identity.
fn forged() -> (Place, [String; 2]) {
    let place = Place::new("heap.hprof", &dump(false));
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let write = |is_left| {
        fs::write(&place.dump, dump(is_left)).unwrap();
        File::options().write(true).open(&place.dump).unwrap().set_modified(time).unwrap();
    };
    let answers = [true, false].map(|is_left| {
        place.forget_index();
        write(is_left);
        place.answer(HISTO)
    });
    assert!(answers[0] != answers[1]);
    place.forget_index();
    write(true);
    place.answer(&["index"]);
    write(false);
    (place, answers)
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Returns all files below a directory with their contents.
fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for path in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.push((path.clone(), fs::read(path).unwrap()));
        }
    }
    found.sort();
    found
}

/// The one line on stderr of a command that was fine.
fn note(output: &Output) -> String {
    let said = stderr(output);
    assert_eq!((output.status.code(), said.lines().count()), (Some(0), 1), "{said}");
    said
}

/// A directory is not used: all commands answer from the cache directory, and change and remove nothing in it.
fn check_refused(place: &Place, right: &str, why: &str) {
    let before = contents(&place.index());
    let expected = format!("hprof-cli: note: {} is not used: {why}", place.index().display());
    let output = place.run(HISTO);
    assert!(output.stdout == right.as_bytes(), "{}", String::from_utf8_lossy(&output.stdout));
    let said = note(&output);
    assert!(said.starts_with(&expected) && said.contains("; the index is in "), "{said}");
    assert!(said.contains(place.path("cache").to_str().unwrap()), "{said}");
    // Answered from the cache: the same is said, once.
    let output = place.run(HISTO);
    assert_eq!((output.stdout == right.as_bytes(), note(&output)), (true, said));
    place.run(&["index"]);
    let verified = place.run(&["index", "--verify"]);
    assert!(note(&verified).starts_with(&expected), "{}", stderr(&verified));
    let files = String::from_utf8(verified.stdout).unwrap();
    assert!(!files.contains(place.index().to_str().unwrap()), "{files}");
    let estimate = place.run(&["index", "--estimate", "--format", "csv"]);
    assert!(!String::from_utf8(estimate.stdout).unwrap().contains(place.index().to_str().unwrap()));
    // The cache's is removed, then there is none.
    let removed = place.run(&["index", "--remove"]);
    assert!(note(&removed).starts_with(&expected), "{}", stderr(&removed));
    assert_eq!(place.run(&["index", "--remove"]).status.code(), Some(1));
    assert_eq!(fs::read_dir(place.path("cache/hprof-cli")).unwrap().count(), 0);
    assert!(contents(&place.index()) == before, "{why}");
}

#[test]
fn a_directory_that_others_could_have_written_is_not_used() {
    let (place, [forged, right]) = forged();
    // A forged index is trusted where only the user can have put it.
    assert_eq!(place.answer(HISTO), forged);
    for open in [0o770, 0o707, 0o1777] {
        mode(&place.index(), open);
        check_refused(&place, &right, "others can write to it (`chmod go-w` prevents this)");
    }
    mode(&place.index(), 0o755);
    assert_eq!(place.answer(HISTO), forged);
}

#[test]
#[allow(clippy::print_stderr)] // What was not run is said.
fn a_directory_of_another_user_is_not_used() {
    let (place, [forged, right]) = forged();
    if chown(place.index(), Some(12_345), None).is_err() {
        eprintln!("NOT RUN: only root gives files away");
        return;
    }
    check_refused(&place, &right, "it belongs to another user (UID 12345)");
    chown(place.index(), Some(0), None).unwrap();
    assert_eq!(place.answer(HISTO), forged);
    // Files of others, in a directory that is the user's own, are built again.
    let summary = place.index().join("summary");
    chown(&summary, Some(12_345), None).unwrap();
    let output = place.run(HISTO);
    assert!(output.stdout == right.as_bytes());
    let said = note(&output);
    assert!(said.contains("summary: it belongs to another user") && said.contains("rebuilding it"), "{said}");
    assert_eq!(place.answer(HISTO), right);
}

#[test]
fn a_link_in_the_place_of_the_directory_is_not_followed() {
    let (place, [_, right]) = forged();
    let victim = place.path("victim");
    fs::rename(place.index(), &victim).unwrap();
    fs::write(victim.join("unpacked.hprof"), "mine").unwrap();
    fs::write(victim.join(".new-mine"), "mine").unwrap();
    symlink(&victim, place.index()).unwrap();
    check_refused(&place, &right, "it is a symbolic link");
    assert!(fs::symlink_metadata(place.index()).unwrap().is_symlink());
    // Nor is anything created where a link is dangling.
    fs::remove_file(place.index()).unwrap();
    symlink(place.path("nothing"), place.index()).unwrap();
    assert!(note(&place.run(HISTO)).contains("it is a symbolic link"));
    assert!(!place.path("nothing").exists());
}

#[test]
fn links_in_the_place_of_files_are_not_followed() {
    let (place, [_, right]) = forged();
    let victim = place.path("victim");
    // A good file of the right dump: it is not read through a link either.
    fs::rename(place.index().join("summary"), &victim).unwrap();
    let before = fs::read(&victim).unwrap();
    symlink(&victim, place.index().join("summary")).unwrap();
    let lock = place.index().join("lock");
    let _ = fs::remove_file(&lock);
    let planted = place.path("planted");
    symlink(&planted, &lock).unwrap();
    let output = place.run(HISTO);
    let said = note(&output);
    assert!(said.contains("summary: it is a symbolic link") && said.contains("rebuilding it"), "{said}");
    assert!(output.stdout == right.as_bytes());
    place.answer(&["index"]);
    assert!(place.is_verified() && !planted.exists());
    assert!(fs::read(&victim).unwrap() == before);
    // Its own name is free again.
    assert!(fs::symlink_metadata(place.index().join("summary")).unwrap().is_file());
    assert_eq!(place.run(&["index", "--remove"]).status.code(), Some(0));
    assert!(victim.exists() && !place.index().exists());
}

/// Also where the cache has a good one, from a time before the link.
#[test]
fn a_link_is_told_where_another_index_answers() {
    let (place, [_, right]) = forged();
    mode(&place.index(), 0o777);
    place.run(HISTO);
    mode(&place.index(), 0o755);
    let summary = place.index().join("summary");
    fs::rename(&summary, place.path("victim")).unwrap();
    symlink(place.path("victim"), &summary).unwrap();
    let output = place.run(HISTO);
    let said = note(&output);
    let expected = format!("hprof-cli: note: {} is not used: it is a symbolic link", summary.display());
    assert!(said.starts_with(&expected) && said.contains("; the index is in "), "{said}");
    assert!(output.stdout == right.as_bytes());
}

#[test]
fn the_unpacked_copy_is_held_to_the_same_rules() {
    let place = Place::new("heap.hprof.zst", &zstd::encode_all(&dump(true)[..], 3).unwrap());
    let right = place.answers();
    let (copy, victim) = (place.index().join("unpacked.hprof"), place.path("victim"));
    let spoils: [&dyn Fn(); 2] = [
        &|| {
            fs::rename(&copy, &victim).unwrap();
            symlink(&victim, &copy).unwrap();
        },
        &|| mode(&copy, 0o666),
    ];
    for spoil in spoils {
        spoil();
        fs::remove_file(place.index().join("objects")).unwrap();
        assert_eq!(place.run(&["index", "--verify"]).status.code(), Some(1));
        assert!(place.answers() == right);
        assert!(place.is_verified());
        let made = fs::symlink_metadata(&copy).unwrap();
        assert!(made.is_file() && made.permissions().mode() & 0o777 == 0o600);
    }
    assert!(fs::read(&victim).unwrap() == dump(true));
}

#[test]
fn the_cache_directory_is_held_to_the_same_rules() {
    let place = Place::new("heap.hprof", &dump(true));
    let right = place.answer(GRAPH);
    fs::remove_dir_all(place.index()).unwrap();
    fs::write(place.index(), "").unwrap();
    place.answer(GRAPH);
    let cached = fs::read_dir(place.path("cache/hprof-cli")).unwrap().next().unwrap().unwrap().path();
    mode(&cached, 0o777);
    let before = contents(&cached);
    let output = place.run(GRAPH);
    let said = note(&output);
    let why = format!("{} is not used: others can write to it", cached.display());
    assert!(said.contains("note: the index is not saved: ") && said.contains(&why), "{said}");
    assert!(output.stdout == right.as_bytes());
    assert!(contents(&cached) == before && place.leftovers().is_empty());
}

/// The directory that a user names may be a link; that of a dump in it may not.
#[test]
fn a_directory_that_is_named_may_be_a_link() {
    let place = Place::new("heap.hprof", &dump(true));
    let right = place.answer(GRAPH);
    fs::create_dir(place.path("disk")).unwrap();
    symlink(place.path("disk"), place.path("link")).unwrap();
    let run = |question: &[&str]| {
        let mut command = place.command(question);
        finish(command.env("HPROF_CLI_INDEX_DIR", place.path("link")).spawn().unwrap())
    };
    for _ in ["first", "again"] {
        let output = run(GRAPH);
        assert_eq!((output.stdout == right.as_bytes(), stderr(&output)), (true, String::new()));
    }
    let made = fs::read_dir(place.path("disk")).unwrap().next().unwrap().unwrap().path();
    fs::rename(&made, place.path("elsewhere")).unwrap();
    symlink(place.path("elsewhere"), &made).unwrap();
    let before = contents(&place.path("elsewhere"));
    let output = run(GRAPH);
    let said = note(&output);
    assert!(
        said.contains("note: the index is not saved: ") && said.contains("it is a symbolic link"),
        "{said}"
    );
    assert!(output.stdout == right.as_bytes());
    let refused = run(&["index"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("it is a symbolic link\nhprof-cli: hint: "), "{}", stderr(&refused));
    assert!(contents(&place.path("elsewhere")) == before);
}

/// Others may remove and rename an index, in the directory that is given as in that of the dump: this is said, once, and how to
/// rule it out. Nobody else can put anything into it.
#[test]
#[allow(clippy::print_stderr)] // What was not run is said.
fn a_directory_that_others_can_change_is_used_and_told() {
    let place = Place::new("heap.hprof", &dump(true));
    let right = place.answer(GRAPH);
    let given = place.path("given");
    fs::create_dir(&given).unwrap();
    let beside = place.dump.parent().unwrap();
    let in_given = |question: &[&str]| {
        let mut command = place.command(question);
        finish(command.env("HPROF_CLI_INDEX_DIR", &given).spawn().unwrap())
    };
    let check = |dir: &Path, run: &dyn Fn(&[&str]) -> Output, told: Option<&str>| {
        // Built, read, and removed.
        for question in [GRAPH, GRAPH, HISTO] {
            let output = run(question);
            let said = stderr(&output);
            assert!(question != GRAPH || output.stdout == right.as_bytes());
            assert_eq!(said.lines().count(), usize::from(told.is_some()), "{said}");
            assert!(
                told.is_none_or(|told| said.starts_with("hprof-cli: note: ") && said.contains(told)),
                "{said}"
            );
            assert!(told.is_none() || said.contains("use a directory of your own for the index"), "{said}");
        }
        let made = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        let made: Vec<PathBuf> =
            made.filter(|path| path.extension().is_some_and(|end| end == "index")).collect();
        assert_eq!(made.len(), 1, "{made:?}");
        assert_eq!(fs::metadata(&made[0]).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(run(&["index", "--remove"]).status.code(), Some(0));
        assert!(!made[0].exists());
    };
    let in_beside = |question: &[&str]| place.run(question);
    type Run<'r> = &'r dyn Fn(&[&str]) -> Output;
    let places: [(&Path, Run<'_>); 2] = [(&given, &in_given), (beside, &in_beside)];
    for (dir, run) in places {
        place.forget_index();
        // A group is often the user's own, and of a sticky directory nobody removes what is another's.
        for open in [0o755, 0o775, 0o1777] {
            mode(dir, open);
            check(dir, run, None);
        }
        mode(dir, 0o777);
        check(dir, run, Some(&format!("everybody can remove and rename the index in {}", dir.display())));
        mode(dir, 0o755);
        if chown(dir, Some(12_345), None).is_err() {
            eprintln!("NOT RUN: only root gives files away");
            continue;
        }
        check(dir, run, Some(&format!("{} belongs to another user (UID 12345)", dir.display())));
        chown(dir, Some(0), None).unwrap();
    }
}

/// A path may lead elsewhere once its directories are made.
#[test]
fn a_directory_is_looked_at_when_it_is_there() {
    let place = Place::new("heap.hprof", &dump(true));
    fs::create_dir(place.path("pub")).unwrap();
    mode(&place.path("pub"), 0o777);
    let run = || {
        let mut command = place.command(GRAPH);
        finish(command.env("HPROF_CLI_INDEX_DIR", place.path("nope/../pub")).spawn().unwrap())
    };
    for _ in ["made", "there"] {
        assert!(note(&run()).contains("everybody can remove and rename the index in "));
    }
}

/// Its owner could make it lead to any directory of the user.
#[test]
#[allow(clippy::print_stderr)] // What was not run is said.
fn a_link_of_another_user_is_not_followed() {
    let place = Place::new("heap.hprof", &dump(true));
    let right = place.answer(GRAPH);
    fs::create_dir(place.path("mine")).unwrap();
    symlink(place.path("mine"), place.path("link")).unwrap();
    if std::os::unix::fs::lchown(place.path("link"), Some(12_345), None).is_err() {
        eprintln!("NOT RUN: only root gives files away");
        return;
    }
    let run = |question: &[&str]| {
        let mut command = place.command(question);
        finish(command.env("HPROF_CLI_INDEX_DIR", place.path("link")).spawn().unwrap())
    };
    let why = format!("{} is a symbolic link of another user (UID 12345)", place.path("link").display());
    for question in [GRAPH, HISTO] {
        let output = run(question);
        let said = stderr(&output);
        assert_eq!((output.status.code(), said.matches(&why).count()), (Some(0), 1), "{said}");
        assert!(said.contains("note: the index is not saved: "), "{said}");
        assert!(question != GRAPH || output.stdout == right.as_bytes());
    }
    let refused = run(&["index"]);
    let said = stderr(&refused);
    assert!(refused.status.code() == Some(2) && said.contains(&why), "{said}");
    let hint = "hint: name another directory with --index-dir, or change the owner or mode of this one";
    assert!(said.contains(hint), "{said}");
    let removed = run(&["index", "--remove"]);
    assert!(removed.status.code() == Some(1) && stderr(&removed).contains(&why), "{}", stderr(&removed));
    assert_eq!(fs::read_dir(place.path("mine")).unwrap().count(), 0);
}

/// The index directory of a place, with its lock, which this test holds.
fn held(place: &Place) -> File {
    place.forget_index();
    place.create_index();
    let lock = File::create(place.index().join("lock")).unwrap();
    lock.lock().unwrap();
    lock
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn a_lock_that_is_held_for_ever_holds_nobody_up() {
    let plain = Place::new("heap.hprof", &examples::zoo().write(&Options::hotspot()).bytes());
    let packed = Place::new("heap.hprof.zst", &zstd::encode_all(&dump(true)[..], 3).unwrap());
    let questions = [HISTO, GRAPH];
    let rights = [&plain, &packed].map(|place| questions.map(|question| place.answer(question)));
    let _locks = [held(&plain), held(&packed)];
    // All at once: each waits for some seconds.
    let start = |place: &Place, arguments| place.command(arguments).spawn().unwrap();
    let running: Vec<_> =
        [&plain, &packed].iter().map(|place| questions.map(|ask| start(place, ask))).collect();
    let [index, remove]: [&[&str]; 2] = [&["index"], &["index", "--remove"]];
    let [index, remove] = [index, remove].map(|arguments| start(&plain, arguments));
    for (running, rights) in running.into_iter().zip(&rights) {
        for (child, right) in running.into_iter().zip(rights) {
            let output = finish(child);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(0), "{said}");
            assert!(output.stdout == right.as_bytes());
            let told = said.matches("another process holds its lock and has made no progress for 10 seconds");
            assert!(told.count() == 1 && said.contains("note: the index is not saved: "), "{said}");
        }
    }
    for child in [index, remove] {
        let output = finish(child);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("holds its lock") && said.contains("hint: end that process"), "{said}");
    }
    for place in [&plain, &packed] {
        assert_eq!(contents(&place.index()), [(place.index().join("lock"), Vec::new())]);
        assert!(place.leftovers().is_empty(), "{:?}", place.leftovers());
    }
}

/// The message names the directory whose lock is held, and no index that does not exist.
#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn a_lock_that_is_held_in_the_cache_is_named_there() {
    let place = Place::new("heap.hprof", &dump(true));
    place.create_index();
    mode(&place.index(), 0o777);
    let rights = [HISTO, GRAPH].map(|question| place.answer(question));
    let cached = fs::read_dir(place.path("cache/hprof-cli")).unwrap().next().unwrap().unwrap().path();
    for (path, _) in contents(&cached) {
        fs::remove_file(path).unwrap();
    }
    let lock = File::create(cached.join("lock")).unwrap();
    lock.lock().unwrap();
    // All at once: each waits for some seconds.
    let [histo, graph, index] = [HISTO, GRAPH, &["index"]].map(|ask| place.command(ask).spawn().unwrap());
    let not_used =
        format!("hprof-cli: note: {} is not used: others can write to it", place.index().display());
    let held = format!("{}: another process holds its lock and has made no progress", cached.display());
    for (child, right) in [histo, graph].into_iter().zip(rights) {
        let output = finish(child);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(output.stdout == right.as_bytes());
        assert!(said.contains(&not_used) && !said.contains("the index is in"), "{said}");
        assert!(said.contains(&format!("note: the index is not saved: {held}")), "{said}");
    }
    let output = finish(index);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("error: cannot write the index {held}")), "{said}");
    assert!(said.contains("hint: end that process") && !said.contains("the index is in"), "{said}");
    assert_eq!(contents(&cached), [(cached.join("lock"), Vec::new())]);
}

/// One that works touches its lock, and is waited for as long as it takes.
#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn a_lock_that_is_touched_is_waited_for() {
    let place = Place::new("heap.hprof", &dump(true));
    let right = place.answer(GRAPH);
    let lock = held(&place);
    let mut child = place.command(GRAPH).spawn().unwrap();
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(13) {
        lock.set_modified(SystemTime::now()).unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(child.try_wait().unwrap().is_none(), "it waits");
    drop(lock);
    let output = finish(child);
    assert_eq!((output.stdout == right.as_bytes(), stderr(&output)), (true, String::new()));
    assert!(place.is_verified());
}
