//! Benchmarks of the reader inside one process: `cargo bench`, or `HPROF_CLI_BENCH_DUMP=heap.hprof cargo bench` on a dump
//! of your own.
//!
//! Whole-process ratios against a bare walk over the file are measured by `benches/ratio.sh`.

#![allow(missing_docs, clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use divan::counter::BytesCount;
use hprof_index::layout::sizes::Sizes;
use hprof_index::{Heap, Options, Quiet};
use hprof_parser::heap::{self, HeapVisitor};
use hprof_parser::{Header, record};
use hprof_query::histogram::{HistogramQuery, histogram};

fn main() {
    divan::main();
}

/// The dump that is measured: `$HPROF_CLI_BENCH_DUMP`, or a sample.
fn dump() -> PathBuf {
    let sample = || Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/jdk/jdk17.hprof.zst");
    std::env::var_os("HPROF_CLI_BENCH_DUMP").map_or_else(sample, PathBuf::from)
}

fn options(dir: &Path) -> Options {
    Options { index_dir: Some(dir.to_owned()), ..Options::default() }
}

/// The bytes of the dump, unpacked.
fn bytes() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    Heap::open(&dump(), &options(dir.path()), &Quiet).unwrap().bytes(&Quiet).unwrap().to_vec()
}

/// Every sub-record decoded, on one thread, with a visitor that does nothing.
#[divan::bench]
fn decode(bencher: divan::Bencher<'_, '_>) {
    struct Nothing;
    impl HeapVisitor<'_> for Nothing {}
    let bytes = bytes();
    let header = Header::parse(&bytes).unwrap();
    bencher.counter(BytesCount::of_slice(&bytes)).bench(|| {
        let mut at = header.len;
        let mut walked = 0;
        while let Some(found) = record::Record::at(&bytes, at) {
            at = usize::try_from(found.end()).unwrap();
            if matches!(found.tag, record::tag::HEAP_DUMP | record::tag::HEAP_DUMP_SEGMENT) {
                let end = at.min(bytes.len());
                let start = found.body_offset();
                walked += heap::walk(&bytes, header.id_size, start, end, end, &mut Nothing).next - start;
            }
        }
        walked
    });
}

/// A cold `histo`: the dump read, the summary written, sizes fitted, rows sorted.
#[divan::bench]
fn cold(bencher: divan::Bencher<'_, '_>) {
    let unpacked = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(unpacked.path(), bytes()).unwrap();
    let len = unpacked.path().metadata().unwrap().len();
    bencher
        .counter(BytesCount::new(len))
        .with_inputs(|| tempfile::tempdir().unwrap())
        .bench_values(|dir| answer(unpacked.path(), dir.path()));
}

/// A warm `histo`: everything from the index.
#[divan::bench]
fn warm(bencher: divan::Bencher<'_, '_>) {
    let dir = tempfile::tempdir().unwrap();
    answer(&dump(), dir.path());
    bencher.bench(|| answer(&dump(), dir.path()));
}

fn answer(dump: &Path, dir: &Path) -> u64 {
    let heap = Heap::open(dump, &options(dir), &Quiet).unwrap();
    let sizes = Sizes::new(heap.summary(), None);
    histogram(heap.summary(), &sizes, &HistogramQuery::default()).total.shallow_bytes
}
