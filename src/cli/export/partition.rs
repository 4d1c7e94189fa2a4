//! The directories that a dump is written to: each has a temporary name until all tables of the dump are complete.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hprof_index::storage::open_dir::OpenDir;
use hprof_index::storage::temporary_files::TemporaryDir;
use hprof_report::tables::{Files, TableFormat};

use super::directory_names;
use crate::cli::shared::output::file::mode_of_files;

/// The partitions of a dump, one per table. If dropped before [`Partitions::publish`], they are removed.
pub(super) struct Partitions {
    to: Arc<OpenDir>,
    /// Name of the dump's directory within each table: `dump=NAME`.
    name: String,
    format: TableFormat,
    /// Table directories, and the maximum permissions of the files in each.
    tables: Vec<(String, u32)>,
    /// Directories created so far, by table.
    made: Vec<TemporaryDir>,
    /// Index of each table whose directory did not exist, and the directory.
    new_tables: Vec<(usize, Arc<OpenDir>)>,
    is_published: bool,
}

impl Partitions {
    /// Creates partitions for the dump in the file `input`, named `name`, in the directory `to`. The files are
    /// readable only by users who can read the dump.
    pub(super) fn new<'a>(
        to: &Arc<OpenDir>,
        name: &str,
        tables: impl Iterator<Item = &'a str>,
        format: TableFormat,
        input: &Path,
    ) -> Self {
        let table = |name| {
            let name = directory_names::directory(name);
            // A missing directory gets the group that new files in `to` get.
            let dir = to.open_dir(name.as_ref()).ok();
            let mode = mode_of_files(&[input], dir.as_ref().unwrap_or(to));
            (name, mode)
        };
        Self {
            to: to.clone(),
            name: format!("dump={}", directory_names::directory(name)),
            format,
            tables: tables.map(table).collect(),
            made: Vec::new(),
            new_tables: Vec::new(),
            is_published: false,
        }
    }

    fn table_name(&self, table: usize) -> &OsStr {
        self.tables.get(table).map_or("", |(name, _)| name).as_ref()
    }

    fn table(&self, table: usize) -> PathBuf {
        self.to.path().join(self.table_name(table))
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
            dir.publish(self.name.as_ref()).map_err(|error| {
                let path = self.table(table).join(&self.name);
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
            let (of_table, is_new) = self.to.create_or_open_dir(self.table_name(table), 0o777)?;
            let of_table = Arc::new(of_table);
            if is_new {
                self.new_tables.push((table, of_table.clone()));
            }
            // Users who may read the files may list the directory.
            let mode = self.mode(table);
            let mode = mode | (mode & 0o444) >> 2;
            let prefix = format!(".{}.tmp-", self.name);
            self.made.push(TemporaryDir::create_at(&of_table, &prefix, mode)?);
        }
        let dir = self.made.get(table).ok_or(io::ErrorKind::NotFound)?;
        dir.dir().create_new(self.file_name(part).as_ref(), self.mode(table))
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
        // Those that are still empty.
        for (table, dir) in &self.new_tables {
            let _ = self.to.remove_made_dir(self.table_name(*table), dir);
        }
    }
}
