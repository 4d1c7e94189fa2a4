//! Temporary files, including in directories that others change.

use std::fs;

use super::*;

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_is_dropped_is_gone_and_what_is_published_stays() {
    let dir = tempfile::tempdir().unwrap();
    let open = Arc::new(OpenDir::open(dir.path()).unwrap());
    let create = || Temporary::create(&open, ".t-", "", 0o600).unwrap();
    let (mut one, other) = (create(), create());
    let numbers = [&one, &other].map(|file| file.listed.as_ref().unwrap().0);
    let are_listed = || numbers.map(|number| lock_entries().iter().any(|(listed, _)| *listed == number));
    assert_eq!(are_listed(), [true, true]);
    assert_eq!(names(dir.path()).len(), 2);
    one.write_all(b"all").unwrap();
    drop(other);
    one.publish(OsStr::new("one")).unwrap();
    assert_eq!(names(dir.path()), ["one"]);
    assert_eq!(are_listed(), [false, false]);
    assert_eq!(fs::read(dir.path().join("one")).unwrap(), b"all");
}

#[test]
fn an_empty_directory_gives_way_and_a_full_one_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let private = PrivateDir::open(dir.path()).unwrap();
    let create = || Temporary::create(private.dir(), ".t-", "", 0o600).unwrap();
    fs::create_dir(dir.path().join("one")).unwrap();
    create().publish_in_place(OsStr::new("one")).unwrap();
    assert!(dir.path().join("one").is_file());
    fs::create_dir_all(dir.path().join("two/full")).unwrap();
    assert!(create().publish_in_place(OsStr::new("two")).is_err());
    assert_eq!(names(dir.path()), ["one", "two"]);
}

#[test]
fn directories_are_removed_if_nothing_is_in_them() {
    let all = tempfile::tempdir().unwrap();
    let (empty, used) = (all.path().join("empty"), all.path().join("used"));
    let made = [&empty, &used].map(|dir| {
        let (made, is_new) = PrivateDir::create(dir).unwrap();
        fs::write(dir.join(LOCK), "").unwrap();
        assert!(is_new);
        MadeDir::new(made.into())
    });
    fs::write(used.join("summary"), "").unwrap();
    drop(made);
    assert_eq!(
        (names(all.path()), names(&used)),
        (vec!["used".to_owned()], vec![LOCK.to_owned(), "summary".to_owned()])
    );
    let tree = TemporaryDir::create("t-").unwrap();
    let path = tree.path().to_owned();
    fs::write(path.join("file"), "").unwrap();
    drop(tree);
    assert!(!path.exists());
}

#[test]
fn a_directory_gets_its_name_in_place_of_another() {
    let all = tempfile::tempdir().unwrap();
    for text in ["one", "two"] {
        let dir = TemporaryDir::create_in(all.path(), ".t-", 0o777).unwrap();
        fs::write(dir.path().join(text), text).unwrap();
        dir.publish(OsStr::new("named")).unwrap();
        assert_eq!(
            (names(all.path()), names(&all.path().join("named"))),
            (vec!["named".into()], vec![text.into()])
        );
    }
}

#[test]
fn directories_of_killed_processes_are_removed_and_those_of_living_ones_are_not() {
    let all = tempfile::tempdir().unwrap();
    let create = || TemporaryDir::create_in(all.path(), "t-", 0o700).unwrap();
    for name in ["t-killed", "t-of-nobody", "other"] {
        fs::create_dir(all.path().join(name)).unwrap();
        fs::write(all.path().join(name).join("summary"), "").unwrap();
    }
    for name in ["t-killed", "other"] {
        fs::write(all.path().join(name).join(OWNER), "").unwrap();
    }
    let living = create();
    let second = create();
    assert!(living.path().is_dir() && second.path().is_dir());
    drop((living, second));
    assert_eq!(names(all.path()), ["other", "t-of-nobody"]);
}

/// Does for one entry what [`remove_all`] does when a signal ends the process.
fn removed_by_a_signal(listed: Option<&RegisteredEntry>) {
    let number = listed.unwrap().0;
    lock_entries().iter().filter(|(one, _)| *one == number).for_each(|(_, one)| one.remove());
}

#[cfg(unix)]
#[test]
fn a_signal_removes_nothing_in_a_directory_that_replaced_ours() {
    let all = tempfile::tempdir().unwrap();
    let [place, moved] = ["place", "moved"].map(|name| all.path().join(name));
    fs::create_dir(&place).unwrap();
    let open = Arc::new(OpenDir::open(&place).unwrap());
    let file = Temporary::create(&open, ".t-", "", 0o600).unwrap();
    let tree = TemporaryDir::create_in(&place, "t-", 0o700).unwrap();
    fs::create_dir(tree.path().join("index")).unwrap();
    fs::write(tree.path().join("index/summary"), "ours").unwrap();
    fs::rename(&place, &moved).unwrap();
    // The same names in another directory, and another directory of our name beside what was moved.
    fs::create_dir_all(tree.path().join("index")).unwrap();
    for path in [file.path(), tree.path().join("index/summary")] {
        fs::write(path, "theirs").unwrap();
    }
    removed_by_a_signal(file.listed.as_ref());
    removed_by_a_signal(tree.listed.as_ref());
    assert_eq!(names(&moved), [] as [&str; 0]);
    drop((file, tree));
    assert_eq!(names(&place).len(), 2);
}

#[cfg(unix)]
#[test]
fn what_was_put_in_place_of_ours_stays() {
    let all = tempfile::tempdir().unwrap();
    let open = Arc::new(OpenDir::open(all.path()).unwrap());
    let file = Temporary::create(&open, ".f-", "", 0o600).unwrap();
    let published = Temporary::create(&open, ".p-", "", 0o600).unwrap();
    let tree = TemporaryDir::create_in(all.path(), "t-", 0o700).unwrap();
    let [moved, tree_path] = [all.path().join("moved"), tree.path().to_owned()];
    fs::rename(&tree_path, &moved).unwrap();
    fs::create_dir(&tree_path).unwrap();
    fs::write(tree_path.join("victim"), "theirs").unwrap();
    for one in [&file, &published] {
        fs::rename(one.path(), all.path().join("taken")).unwrap();
        fs::write(one.path(), "theirs").unwrap();
    }
    let path = file.path();
    drop((file, tree));
    assert_eq!(fs::read(path).unwrap(), b"theirs");
    assert_eq!((names(&tree_path), names(&moved)), (vec!["victim".to_owned()], Vec::new()));
    // A file that another user put there is not renamed.
    assert!(published.publish(OsStr::new("final")).is_err() && !all.path().join("final").exists());
}

#[cfg(unix)]
#[test]
fn no_directory_is_entered_where_others_can_change_it() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let all = tempfile::tempdir().unwrap();
    let victim = all.path().join("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("file"), "theirs").unwrap();
    let tree = TemporaryDir::create_in(all.path(), "t-", 0o700).unwrap();
    let path = tree.path().to_owned();
    fs::create_dir_all(path.join("others/deep")).unwrap();
    fs::write(path.join("others/deep/file"), "theirs").unwrap();
    fs::set_permissions(path.join("others"), fs::Permissions::from_mode(0o777)).unwrap();
    symlink(&victim, path.join("link")).unwrap();
    drop(tree);
    assert_eq!(fs::read(victim.join("file")).unwrap(), b"theirs");
    assert_eq!(fs::read(path.join("others/deep/file")).unwrap(), b"theirs");
}

#[cfg(unix)]
#[test]
fn an_index_directory_that_was_replaced_is_not_touched() {
    let all = tempfile::tempdir().unwrap();
    let [path, moved] = ["index", "moved"].map(|name| all.path().join(name));
    let dir = Arc::new(PrivateDir::create(&path).unwrap().0);
    drop(dir.open_lock(LOCK).unwrap());
    let made = MadeDir::new(dir.clone());
    fs::rename(&path, &moved).unwrap();
    fs::create_dir(&path).unwrap();
    fs::write(path.join(LOCK), "theirs").unwrap();
    Temporary::create(dir.dir(), ".new-", "", 0o600).unwrap().publish(OsStr::new("summary")).unwrap();
    assert_eq!(
        (names(&path), names(&moved)),
        (vec![LOCK.to_owned()], vec![LOCK.to_owned(), "summary".into()])
    );
    dir.remove_file("summary").unwrap();
    drop(made);
    assert_eq!((names(&path), names(&moved)), (vec![LOCK.to_owned()], Vec::new()));
    // Empty, so that only its identity protects it.
    fs::remove_file(path.join(LOCK)).unwrap();
    dir.remove().unwrap();
    assert!(path.is_dir());
}
