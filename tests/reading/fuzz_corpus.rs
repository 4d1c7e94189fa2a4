//! The bodies of the fuzz targets over the corpus, and over some thousands of changed samples: in every run of the
//! tests, without coverage instrumentation.
//!
//! `HPROF_CLI_SOAK_SEED` and `HPROF_CLI_SOAK_CASES` (changed samples of each kind) extend it. A failing case is named
//! by its seed; its bytes are kept.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::fuzz_bodies as fuzz;
use crate::kit::dump::Dump;
use crate::kit::mutate::walk::Map;
use crate::kit::mutate::{Base, Numbers, mutate, setting};
use crate::kit::portion;
use crate::kit::texts::sample;
use hprof_writer::{IdSize, Layout, Options, Order, Place, Version, examples};

/// A body, and the name of its corpus.
type Body = (&'static str, fn(&[u8]));

const READER: Body = ("reader", fuzz::reader);
const TEXT: Body = ("text", fuzz::text);
const FLIGHT: Body = ("flight", fuzz::flight);
const INDEX: Body = ("index", fuzz::index);
const OQL: Body = ("oql", fuzz::oql);
const PAGES: Body = ("pages", fuzz::pages);
const SQL: Body = ("sql", fuzz::sql);
const AGENT: Body = ("agent", fuzz::agent);
const LISTEN: Body = ("listen", fuzz::listen);

/// A body may take so long for an input of some kilobytes, on a busy machine.
const MOST_TIME: Duration = Duration::from_secs(20);
/// Bytes of a sample that are taken: changes have to find something.
const MOST_BYTES: usize = 60_000;

fn corpus(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(name);
    let mut files: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|file| (file.clone(), fs::read(&file).unwrap())).collect()
}

/// Runs a body; keeps the input and says what it was if the body panics or takes too long.
fn survives((name, body): Body, bytes: &[u8], what: &dyn Fn() -> String) {
    let start = Instant::now();
    let ended = catch_unwind(AssertUnwindSafe(|| body(bytes)));
    if ended.is_ok() && start.elapsed() < MOST_TIME {
        return;
    }
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{name}-{}", std::process::id()));
    fs::write(&file, bytes).unwrap();
    panic!("{name}: {} failed after {:?}: kept as {}", what(), start.elapsed(), file.display());
}

fn replay(body: Body) {
    let inputs = corpus(body.0);
    assert!(inputs.len() >= 5, "{}: the corpus is gone", body.0);
    for (file, bytes) in inputs {
        survives(body, &bytes, &|| file.display().to_string());
    }
}

/// Changes inputs of a body in `usual` ways.
fn change(body: Body, bases: &[Vec<u8>], usual: u64) {
    let seed = setting("HPROF_CLI_SOAK_SEED", 20_261_121);
    let maps: Vec<Option<Map>> = bases.iter().map(|bytes| Map::of(bytes)).collect();
    let base = |number: usize| Base { bytes: &bases[number], map: maps[number].as_ref() };
    for case in 0..setting("HPROF_CLI_SOAK_CASES", portion::cases(usual)) {
        let mut numbers = Numbers::new(seed ^ case.wrapping_mul(0xA24B_AED4_963E_E407));
        let (one, other) = (case as usize % bases.len(), numbers.below(bases.len()));
        let mut changed = mutate(&base(one), &base(other), &mut numbers);
        // Combined inputs can be combined again: they must not grow without limit.
        changed.truncate(2 * MOST_BYTES);
        survives(body, &changed, &|| format!("seed {seed}, case {case}, base {one}"));
    }
}

/// The end of a dump's tables and the start of its heap: behind strings by the thousand.
fn around_the_heap(name: &str, most: usize) -> Vec<u8> {
    let whole = sample(name);
    let map = Map::of(&whole).unwrap();
    let heap = map.records.iter().find(|spot| matches!(spot.tag, 0x0C | 0x1C)).unwrap().at;
    let start = map.records.iter().find(|spot| heap - spot.at < most / 2).unwrap().at;
    [&whole[..map.header], &whole[start..whole.len().min(heap + most / 2)]].concat()
}

/// Small dumps with all that there is.
fn small_dumps() -> Vec<(&'static str, Vec<u8>)> {
    let shuffled = Options {
        order: Order::Shuffled(3),
        segment_bytes: Some(200),
        strings: Place::Last,
        ..Options::hotspot()
    };
    let mut wide = examples::zoo();
    wide.prim_array(hprof_writer::Elements::of_bytes(b"some bytes"));
    vec![
        ("every-kind-4", examples::every_kind(Version::V1_0_1, IdSize::Four).bytes()),
        ("every-kind-8", examples::every_kind(Version::V1_0_3, IdSize::Eight).bytes()),
        ("zoo-hotspot", examples::zoo().write(&Options::hotspot()).bytes()),
        ("zoo-agent", examples::zoo().write(&Options::agent()).bytes()),
        ("zoo-android", examples::zoo().write(&Options::android()).bytes()),
        ("zoo-shuffled", wide.write(&shuffled).bytes()),
        ("nothing", hprof_writer::HeapModel::new(Layout::COMPRESSED).write(&Options::hotspot()).bytes()),
    ]
}

/// The stages of an index of the dump that the body has.
fn stages() -> Vec<(String, Vec<u8>)> {
    let dump = Dump::of(fuzz::DUMP);
    dump.open_graph();
    let mut files: Vec<PathBuf> =
        fs::read_dir(dump.index()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let named = files.into_iter().map(|file| (file.file_name().unwrap().to_str().unwrap().to_owned(), file));
    named.filter(|(name, _)| name != "lock").map(|(name, file)| (name, fs::read(file).unwrap())).collect()
}

#[test]
fn the_dump_of_the_bodies_is_what_the_writer_writes() {
    let written = examples::zoo().write(&Options::hotspot()).bytes();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/bodies/zoo.hprof");
    if std::env::var_os("HPROF_CLI_CORPUS").is_some_and(|value| value == "overwrite") {
        fs::write(&file, &written).unwrap();
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
        for (name, bytes) in small_dumps() {
            fs::write(dir.join("reader").join(name), bytes).unwrap();
        }
        for (name, bytes) in stages() {
            fs::write(dir.join("index").join(name), bytes).unwrap();
        }
    }
    assert!(fs::read(&file).unwrap() == written, "write it anew: HPROF_CLI_CORPUS=overwrite");
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn dumps_of_the_corpus() {
    replay(READER);
    for (name, bytes) in small_dumps() {
        survives(READER, &bytes, &|| name.to_owned());
    }
}

#[test]
fn texts_of_the_corpus() {
    replay(TEXT);
}

#[test]
fn flight_recordings_of_the_corpus() {
    replay(FLIGHT);
}

#[test]
fn indexes_of_the_corpus() {
    replay(INDEX);
    for (name, bytes) in stages() {
        survives(INDEX, &bytes, &|| name.clone());
    }
}

#[test]
fn queries_of_the_corpus() {
    replay(OQL);
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn pages_of_the_corpus() {
    replay(PAGES);
    for (name, bytes) in small_dumps() {
        survives(PAGES, &bytes, &|| name.to_owned());
    }
}

#[test]
fn sql_of_the_corpus() {
    replay(SQL);
}

#[test]
fn what_reaches_an_agent_of_the_corpus() {
    replay(AGENT);
}

#[test]
fn recordings_of_the_corpus() {
    replay(LISTEN);
    for of in [READER, TEXT] {
        for (file, bytes) in corpus(of.0) {
            survives(LISTEN, &bytes, &|| file.display().to_string());
        }
    }
}

#[test]
fn changed_dumps() {
    let mut bases: Vec<Vec<u8>> = small_dumps().into_iter().map(|(_, bytes)| bytes).collect();
    let mut recording = sample("agent/busy-cpu-samples.hprof.zst");
    recording.truncate(MOST_BYTES);
    bases.push(recording);
    for name in
        ["public/visualvm-small_heap.hprof.zst", "agent/all.hprof.zst", "public/netbeans-heap_dump.hprof.zst"]
    {
        bases.push(around_the_heap(name, 20_000));
    }
    change(READER, &bases, 250);
}

#[test]
fn changed_texts() {
    let bases: Vec<Vec<u8>> = corpus("text").into_iter().map(|(_, bytes)| bytes).collect();
    change(TEXT, &bases, 1500);
}

#[test]
fn changed_flight_recordings() {
    let bases: Vec<Vec<u8>> = corpus("flight").into_iter().map(|(_, bytes)| bytes).collect();
    change(FLIGHT, &bases, 3000);
}

#[test]
fn changed_indexes() {
    let bases: Vec<Vec<u8>> = stages().into_iter().map(|(_, bytes)| bytes).collect();
    change(INDEX, &bases, 250);
}

#[test]
fn changed_queries() {
    let bases: Vec<Vec<u8>> = corpus("oql").into_iter().map(|(_, bytes)| bytes).collect();
    change(OQL, &bases, 1500);
}

#[test]
fn changed_pages() {
    let mut bases: Vec<Vec<u8>> = corpus("pages").into_iter().map(|(_, bytes)| bytes).collect();
    bases.extend(small_dumps().into_iter().map(|(_, bytes)| bytes));
    change(PAGES, &bases, 120);
}

#[test]
fn changed_sql() {
    let bases: Vec<Vec<u8>> = corpus("sql").into_iter().map(|(_, bytes)| bytes).collect();
    change(SQL, &bases, 700);
}

#[test]
fn changed_messages_to_agents() {
    let bases: Vec<Vec<u8>> = corpus("agent").into_iter().map(|(_, bytes)| bytes).collect();
    change(AGENT, &bases, 7000);
}

#[test]
fn changed_recordings() {
    let mut bases: Vec<Vec<u8>> = corpus("listen").into_iter().map(|(_, bytes)| bytes).collect();
    bases.extend(corpus("text").into_iter().map(|(_, bytes)| bytes));
    bases.extend(small_dumps().into_iter().map(|(_, bytes)| bytes));
    change(LISTEN, &bases, 700);
}
