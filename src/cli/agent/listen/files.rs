//! Files for recordings: numbered, with a temporary name until complete; existing files are never replaced.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use hprof_index::storage::open_dir::OpenDir;

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
pub(super) enum RecordingExtent {
    Whole,
    Part,
}

impl RecordingExtent {
    fn mark(self) -> &'static str {
        match self {
            Self::Whole => "",
            Self::Part => ".cut",
        }
    }
}

/// Suffix of the file name while the file is being written.
const PARTIAL: &str = ".partial";

/// Directory and base name of the recordings' files, and their disk space budget.
pub(super) struct Files {
    dir: Arc<OpenDir>,
    name: String,
    next: Mutex<u64>,
    room: Room,
}

/// A recording file that is being written. If dropped, it is not deleted: received data is kept.
#[derive(Debug)]
pub(super) struct Partial {
    pub(super) file: File,
    /// Current path of the file.
    pub(super) path: PathBuf,
    dir: Arc<OpenDir>,
    stem: String,
    form: RecordingForm,
}

fn final_name(stem: &str, extent: RecordingExtent, form: RecordingForm) -> String {
    format!("{stem}{}{}", extent.mark(), form.suffix())
}

fn partial_name(stem: &str, form: RecordingForm) -> String {
    format!("{stem}{}{PARTIAL}", form.suffix())
}

impl Files {
    /// Creates files named `NAME-1.hprof`, `NAME-2.hprof.txt` and so on in `dir`.
    pub(super) fn new(dir: OpenDir, name: &str, room: Room) -> Self {
        Self { dir: dir.into(), name: name.to_owned(), next: Mutex::new(1), room }
    }

    /// Returns the disk space budget that all files share.
    pub(super) fn room(&self) -> &Room {
        &self.room
    }

    /// Creates the next file, with a number that no finished recording uses. Fails if the disk has too little free space.
    pub(super) fn create(&self, form: RecordingForm) -> io::Result<Partial> {
        self.room
            .look()
            .map_err(|shortage| io::Error::new(io::ErrorKind::StorageFull, shortage.to_string()))?;
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let stem = format!("{}-{}", self.name, *next);
            if self.is_free(&stem) && !self.is_written(&stem) {
                let name = partial_name(&stem, form);
                // With the permissions of the JVM's dumps: they contain the program's memory.
                match self.dir.create_new(name.as_ref(), 0o600) {
                    // Another process may have used the name meanwhile.
                    Ok(file) if !self.is_free(&stem) => {
                        self.dir.remove_made(name.as_ref(), OpenDir::id_of(&file)?)?;
                    }
                    Ok(file) => {
                        *next += 1;
                        let path = self.dir.path().join(name);
                        return Ok(Partial { file, path, dir: self.dir.clone(), stem, form });
                    }
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(error) => return Err(error),
                }
            }
            *next += 1;
        }
    }

    /// Returns whether no finished recording, complete or truncated, has this number.
    fn is_free(&self, stem: &str) -> bool {
        let names = RecordingForm::ALL.map(|form| {
            [RecordingExtent::Whole, RecordingExtent::Part].map(|extent| final_name(stem, extent, form))
        });
        // A dangling link counts as existing.
        names.iter().flatten().all(|name| self.dir.entry_of(name.as_ref()).is_err())
    }

    /// Returns whether a recording with this number is being written, or was left by a killed process.
    fn is_written(&self, stem: &str) -> bool {
        let names = RecordingForm::ALL.map(|form| partial_name(stem, form));
        names.iter().any(|name| self.dir.entry_of(name.as_ref()).is_ok())
    }
}

impl Partial {
    /// Renames the file to its final name and returns its path.
    pub(super) fn publish(self, extent: RecordingExtent) -> io::Result<PathBuf> {
        let (from, to) = (partial_name(&self.stem, self.form), final_name(&self.stem, extent, self.form));
        if self.dir.entry_of(from.as_ref())?.id != OpenDir::id_of(&self.file)? {
            return Err(io::Error::other("it was replaced by another file"));
        }
        self.dir.rename_new(from.as_ref(), to.as_ref())?;
        Ok(self.dir.path().join(to))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

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
        let files = Files::new(OpenDir::open(dir.path()).unwrap(), "a", Room::new(dir.path(), |_| None));
        assert_eq!(names(&files, RecordingForm::Binary, RecordingExtent::Whole), "a-3.hprof");
        assert_eq!(names(&files, RecordingForm::Binary, RecordingExtent::Part), "a-5.cut.hprof");
        assert_eq!(names(&files, RecordingForm::Text, RecordingExtent::Part), "a-6.cut.hprof.txt");
        let again = Files::new(OpenDir::open(dir.path()).unwrap(), "a", Room::new(dir.path(), |_| None));
        assert_eq!(names(&again, RecordingForm::Text, RecordingExtent::Whole), "a-7.hprof.txt");
        assert_eq!(fs::read(dir.path().join("a-1.hprof")).unwrap(), b"old");
    }
}
