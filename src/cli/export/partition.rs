//! The directories that a dump is written to: each has a temporary name until all tables of the dump are complete.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use hprof_index::storage::temporary_files::TemporaryDir;
use hprof_report::tables::{Files, Format};

use super::directory_names;
use crate::cli::shared::output::file::mode_of_files;

/// The partitions of a dump, one per table. If dropped without [`Partitions::publish`], they are removed.
pub(super) struct Partitions {
    to: PathBuf,
    /// `dump=NAME`
    name: String,
    format: Format,
    /// Table directories, and the maximum permissions of files in them.
    tables: Vec<(String, u32)>,
    /// Directories created so far, by table.
    made: Vec<TemporaryDir>,
    is_published: bool,
}

impl Partitions {
    /// Creates partitions for the dump in the file `input`, named `name`, in the directory `to`. The files are
    /// readable only for users who may read the dump.
    pub(super) fn new<'a>(
        to: &Path,
        name: &str,
        tables: impl Iterator<Item = &'a str>,
        format: Format,
        input: &Path,
    ) -> Self {
        let table = |name| {
            let name = directory_names::directory(name);
            // A missing directory gets the group that new files in `to` get.
            let dir = Some(to.join(&name)).filter(|dir| dir.is_dir());
            let mode = mode_of_files(&[input], dir.as_deref().unwrap_or(to));
            (name, mode)
        };
        Self {
            to: to.to_owned(),
            name: format!("dump={}", directory_names::directory(name)),
            format,
            tables: tables.map(table).collect(),
            made: Vec::new(),
            is_published: false,
        }
    }

    fn table(&self, table: usize) -> PathBuf {
        self.to.join(self.tables.get(table).map_or("", |(name, _)| name))
    }

    fn mode(&self, table: usize) -> u32 {
        self.tables.get(table).map_or(0o600, |(_, mode)| *mode)
    }

    fn file_name(&self, part: u64) -> String {
        format!("part-{part}.{}", self.format.extension())
    }

    /// Renames all directories to their final names, replacing existing ones.
    pub(super) fn publish(mut self) -> io::Result<()> {
        for (table, dir) in std::mem::take(&mut self.made).into_iter().enumerate() {
            let path = self.table(table).join(&self.name);
            dir.publish(&path).map_err(|error| {
                io::Error::new(error.kind(), format!("cannot write {}: {error}", path.display()))
            })?;
        }
        self.is_published = true;
        Ok(())
    }
}

impl Files for Partitions {
    fn create(&mut self, table: usize, part: u64) -> io::Result<File> {
        if self.made.len() <= table {
            let of_table = self.table(table);
            fs::create_dir_all(&of_table)?;
            // Users who may read the files may list the directory.
            let mode = self.mode(table);
            let mode = mode | (mode & 0o444) >> 2;
            self.made.push(TemporaryDir::create_in(&of_table, &format!(".{}.tmp-", self.name), mode)?);
        }
        let dir = self.made.get(table).ok_or(io::ErrorKind::NotFound)?;
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, self.mode(table));
        options.open(dir.path().join(self.file_name(part)))
    }

    fn name(&self, table: usize, part: u64) -> String {
        self.table(table).join(&self.name).join(self.file_name(part)).display().to_string()
    }
}

impl Drop for Partitions {
    fn drop(&mut self) {
        if self.is_published {
            return;
        }
        self.made.clear();
        // Directories of tables without rows.
        for table in 0..self.tables.len() {
            let _ = fs::remove_dir(self.table(table));
        }
    }
}
