//! The files of recordings: numbered, temporarily named until complete; no file replaces another.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::room::Room;

/// Format of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordingForm {
    Binary,
    Text,
}

impl RecordingForm {
    /// Returns the value of the column `format`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Binary => "hprof",
            Self::Text => "text",
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Self::Binary => ".hprof",
            Self::Text => ".hprof.txt",
        }
    }

    const ALL: [Self; 2] = [Self::Binary, Self::Text];
}

/// Extent of a recording: complete or partial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    Part,
}

impl Extent {
    fn mark(self) -> &'static str {
        match self {
            Self::Whole => "",
            Self::Part => ".cut",
        }
    }
}

/// Part of the file name during writing.
const PARTIAL: &str = ".partial";

/// Creates the files in a directory.
pub(super) struct Files {
    dir: PathBuf,
    name: String,
    next: Mutex<u64>,
    room: Room,
}

/// A file that is being written. If dropped, it stays: received data is kept.
#[derive(Debug)]
pub(super) struct Partial {
    pub(super) file: File,
    /// Current path of the file.
    pub(super) path: PathBuf,
    stem: PathBuf,
    form: RecordingForm,
}

fn with(stem: &Path, end: &str) -> PathBuf {
    let mut path = stem.as_os_str().to_owned();
    path.push(end);
    path.into()
}

fn final_name(stem: &Path, extent: Extent, form: RecordingForm) -> PathBuf {
    with(stem, &format!("{}{}", extent.mark(), form.suffix()))
}

impl Files {
    /// Creates files named `NAME-1.hprof`, `NAME-2.hprof.txt` and so on in `dir`.
    pub(super) fn new(dir: &Path, name: &str, room: Room) -> Self {
        Self { dir: dir.to_owned(), name: name.to_owned(), next: Mutex::new(1), room }
    }

    /// Returns the disk space budget that all files share.
    pub(super) fn room(&self) -> &Room {
        &self.room
    }

    /// Creates the next file, with a number that no final name of a recording uses. Fails if the disk has too little
    /// free space.
    pub(super) fn create(&self, form: RecordingForm) -> io::Result<Partial> {
        self.room
            .look()
            .map_err(|shortage| io::Error::new(io::ErrorKind::StorageFull, shortage.to_string()))?;
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let stem = self.dir.join(format!("{}-{}", self.name, *next));
            if is_free(&stem) && !is_written(&stem) {
                let path = with(&stem, &format!("{}{PARTIAL}", form.suffix()));
                let mut options = OpenOptions::new();
                options.write(true).create_new(true);
                // With the permissions of the JVM's dumps: they contain the program's memory.
                #[cfg(unix)]
                std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
                match options.open(&path) {
                    // Another process may have used the name meanwhile.
                    Ok(_) if !is_free(&stem) => fs::remove_file(&path)?,
                    Ok(file) => {
                        *next += 1;
                        return Ok(Partial { file, path, stem, form });
                    }
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(error) => return Err(error),
                }
            }
            *next += 1;
        }
    }
}

/// Returns whether no complete or truncated recording has this number.
fn is_free(stem: &Path) -> bool {
    let names = RecordingForm::ALL
        .map(|form| [Extent::Whole, Extent::Part].map(|extent| final_name(stem, extent, form)));
    // A dangling link counts as existing.
    names.iter().flatten().all(|name| fs::symlink_metadata(name).is_err())
}

/// Returns whether a recording with this number is being written, or was left by a killed process.
fn is_written(stem: &Path) -> bool {
    let names = RecordingForm::ALL.map(|form| with(stem, &format!("{}{PARTIAL}", form.suffix())));
    names.iter().any(|name| fs::symlink_metadata(name).is_ok())
}

impl Partial {
    /// Renames the file to its final name and returns it.
    pub(super) fn publish(self, extent: Extent) -> io::Result<PathBuf> {
        let name = final_name(&self.stem, extent, self.form);
        fs::rename(&self.path, &name)?;
        Ok(name)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn no_number_is_given_twice() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a-1.hprof", "a-2.cut.hprof.txt", "a-4.hprof.partial", "b-3.hprof"] {
            fs::write(dir.path().join(name), "old").unwrap();
        }
        let names = |files: &Files, form, extent| {
            let path = files.create(form).unwrap().publish(extent).unwrap();
            path.file_name().unwrap().to_str().unwrap().to_owned()
        };
        let files = Files::new(dir.path(), "a", Room::new(dir.path(), |_| None));
        assert_eq!(names(&files, RecordingForm::Binary, Extent::Whole), "a-3.hprof");
        assert_eq!(names(&files, RecordingForm::Binary, Extent::Part), "a-5.cut.hprof");
        assert_eq!(names(&files, RecordingForm::Text, Extent::Part), "a-6.cut.hprof.txt");
        let again = Files::new(dir.path(), "a", Room::new(dir.path(), |_| None));
        assert_eq!(names(&again, RecordingForm::Text, Extent::Whole), "a-7.hprof.txt");
        assert_eq!(fs::read(dir.path().join("a-1.hprof")).unwrap(), b"old");
    }
}
