//! Bodies of the fuzz targets: any bytes in, no panic out.
//!
//! Each takes bytes for one kind of input, reads them in every way there is, and checks what must hold of any input:
//! the same answer with one thread and with two, offsets inside the file, sums that are sums. `fuzz_targets` runs them
//! guided by coverage, `tests/reading/fuzz_corpus.rs` over `tests/corpus` and over changed samples in each run of the
//! tests. A body panics if a check fails; a temporary directory that cannot be written to is a panic too.

mod answers;
mod index;
mod oql;
mod reader;
mod text;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rayon::ThreadPool;
use tempfile::TempDir;

pub use index::index;
pub use oql::oql;
pub use reader::reader;
pub use text::text;

/// The dump that queries are asked of, and whose index is replaced.
pub const DUMP: &[u8] = include_bytes!("zoo.hprof");

/// A directory with an input, and another for its index.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new(bytes: &[u8]) -> Self {
        // Where there is one in memory: some thousand inputs a second are written and forgotten.
        let memory = Path::new("/dev/shm");
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
            index_dir: Some(self.dir.path().join(name)),
            heap_dump: None,
            memory_bytes: None,
            hide_values: false,
        }
    }

    /// The directory of the index that `options(name)` leads to.
    fn index(&self, name: &str) -> PathBuf {
        let entries = fs::read_dir(self.dir.path().join(name)).expect("an index was written");
        entries.flatten().next().expect("an index was written").path()
    }
}

/// Runs with so many threads, one or two.
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
