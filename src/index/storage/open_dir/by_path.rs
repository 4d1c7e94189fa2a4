//! Directories of other systems, which are not opened: files are accessed by path.

use std::fs;

use super::*;

fn entry(metadata: &fs::Metadata) -> Entry {
    let kind = match metadata.file_type() {
        kind if kind.is_symlink() => EntryKind::Link,
        kind if kind.is_dir() => EntryKind::Directory,
        kind if kind.is_file() => EntryKind::File,
        _ => EntryKind::Other,
    };
    // The standard library provides no identity, owner or mode of files here.
    Entry { kind, id: FileId(0, 0), owner: 0, group: 0, mode: 0, len: metadata.len() }
}

impl OpenDir {
    pub fn entry(&self) -> io::Result<Entry> {
        Ok(entry(&fs::metadata(&self.path)?))
    }

    pub fn entry_of(&self, name: &OsStr) -> io::Result<Entry> {
        Ok(entry(&fs::symlink_metadata(self.path.join(name))?))
    }

    pub(crate) fn entry_of_open(&self, file: &File) -> io::Result<Entry> {
        Ok(entry(&file.metadata()?))
    }

    pub fn id_of(_: &File) -> io::Result<FileId> {
        Ok(FileId(0, 0))
    }

    pub fn link_target(&self, name: &OsStr) -> io::Result<PathBuf> {
        fs::read_link(self.path.join(name))
    }

    pub fn read(&self, name: &OsStr) -> io::Result<File> {
        File::open(self.path.join(name))
    }

    pub fn write(&self, name: &OsStr) -> io::Result<File> {
        File::options().write(true).open(self.path.join(name))
    }

    pub fn write_or_create(&self, name: &OsStr, _: u32) -> io::Result<File> {
        File::options().create(true).truncate(false).write(true).open(self.path.join(name))
    }

    pub fn write_device(&self, name: &OsStr, _: bool) -> io::Result<File> {
        self.write(name)
    }

    pub fn create_new(&self, name: &OsStr, _: u32) -> io::Result<File> {
        File::options().read(true).write(true).create_new(true).open(self.path.join(name))
    }

    pub fn create_dir(&self, name: &OsStr, _: u32) -> io::Result<()> {
        fs::create_dir(self.path.join(name))
    }

    pub fn open_dir(&self, name: &OsStr) -> io::Result<Self> {
        match self.entry_of(name)?.kind {
            EntryKind::Directory => Ok(Self { path: self.path.join(name) }),
            _ => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        self.rename_into(from, self, to)
    }

    pub fn rename_into(&self, from: &OsStr, into: &Self, to: &OsStr) -> io::Result<()> {
        fs::rename(self.path.join(from), into.path.join(to))
    }

    pub fn rename_new(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        if self.entry_of(to).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.rename(from, to)
    }

    pub fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    pub fn remove_dir(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_dir(self.path.join(name))
    }

    pub fn names(&self) -> io::Result<Vec<OsString>> {
        fs::read_dir(&self.path)?.map(|entry| Ok(entry?.file_name())).collect()
    }

    pub fn is_of_processes(&self) -> bool {
        false
    }
}
