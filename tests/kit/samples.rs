//! Indexes of the samples, built once for all test binaries: unpacking a sample and building its graph takes longer than most
//! queries about it.
//!
//! They are in the target directory, separate for each build of the program, as the program may have changed how it builds
//! them. Tests that change, remove or damage an index have to use a separate one.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::UNIX_EPOCH;

use hprof_index::{Heap, Options, Quiet};

/// Directory of the indexes of this build. Those of other builds are removed.
static INDEXES: LazyLock<PathBuf> = LazyLock::new(|| {
    let program = fs::metadata(env!("CARGO_BIN_EXE_hprof-cli")).unwrap();
    let linked = program.modified().unwrap().duration_since(UNIX_EPOCH).unwrap();
    let build = format!("{:x}-{:x}", linked.as_nanos(), program.len());
    let builds = Path::new(env!("CARGO_TARGET_TMPDIR")).join("indexes");
    create_private(&builds.join(&build));
    for other in fs::read_dir(&builds).unwrap().map(|entry| entry.unwrap()) {
        if other.file_name() != *build {
            // Another process may remove it at the same time.
            let _ = fs::remove_dir_all(other.path());
        }
    }
    builds.join(build)
});

/// Creates a directory in which nobody else may write, whatever the umask: others are not trusted with indexes.
fn create_private(dir: &Path) {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(dir).unwrap();
}

/// Returns the directory of the samples' indexes, in which that of this sample is complete.
///
/// The first caller builds it. Processes that build at once wait for each other, as any do.
pub fn indexes(sample: &Path) -> &'static Path {
    static COMPLETE: LazyLock<Mutex<HashMap<PathBuf, Arc<OnceLock<()>>>>> = LazyLock::new(Mutex::default);
    let sample = fs::canonicalize(sample).unwrap();
    let complete = Arc::clone(COMPLETE.lock().unwrap().entry(sample.clone()).or_default());
    complete.get_or_init(|| {
        let options = Options { index_dir: Some(INDEXES.clone()), ..Options::default() };
        // A report as text has no graph.
        let _ = Heap::open_graph(&sample, &options, &Quiet);
    });
    &INDEXES
}
