//! Bodies of the fuzz targets: any bytes in, no panic out.
//!
//! Each takes bytes for one kind of input, reads them in every way there is, and checks what must hold of any input:
//! the same answer with one thread and with two, offsets inside the file, sums that are sums. `fuzz_targets` runs them
//! guided by coverage, `tests/reading/fuzz_corpus.rs` over `tests/corpus` and over changed samples in each run of the
//! tests. A body panics if a check fails; a temporary directory that cannot be written to is a panic too.

mod agent;
mod answers;
mod flight;
mod index;
mod listen;
mod oql;
mod pages;
mod reader;
mod sql;
mod text;

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use rayon::ThreadPool;
use tempfile::TempDir;

pub use agent::agent;
pub use flight::flight;
pub use index::index;
pub use listen::listen;
pub use oql::oql;
pub use pages::pages;
pub use reader::reader;
pub use sql::sql;
pub use text::text;

/// The dump that queries are asked of, and whose index is replaced.
pub const DUMP: &[u8] = include_bytes!("zoo.hprof");

/// A directory with an input, and another for its index.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new(bytes: &[u8]) -> Self {
        // In memory, if there is such a directory: some thousand inputs a second are written and removed.
        // `fuzz/run.sh` names one and removes it, as a process killed by a signal leaves its files.
        let named = std::env::var_os("HPROF_CLI_FUZZ_DIR").map(PathBuf::from);
        let memory = named.unwrap_or_else(|| PathBuf::from("/dev/shm"));
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let place = Self { dir: dir.expect("a temporary directory can be made") };
        fs::write(place.file(), bytes).expect("the temporary directory takes a file");
        place
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("input.hprof")
    }

    fn options(&self, name: &str) -> hprof_index::Options {
        hprof_index::Options {
            index_dir: Some(self.index_dir(name)),
            heap_dump: None,
            memory_bytes: None,
            hide_values: false,
        }
    }

    /// A directory for indexes.
    fn index_dir(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns the directory of the index for `options(name)`.
    fn index(&self, name: &str) -> PathBuf {
        let entries = fs::read_dir(self.index_dir(name)).expect("an index was written");
        entries.flatten().next().expect("an index was written").path()
    }
}

/// Runs with one or two threads.
fn with_threads<R: Send>(two: bool, run: impl FnOnce() -> R + Send) -> R {
    static POOLS: [OnceLock<ThreadPool>; 2] = [const { OnceLock::new() }; 2];
    let [one, both] = &POOLS;
    let (pool, threads) = if two { (both, 2) } else { (one, 1) };
    let pool = pool.get_or_init(|| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.expect("threads can be started")
    });
    pool.install(run)
}
