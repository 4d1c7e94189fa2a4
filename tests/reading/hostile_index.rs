//! Indexes that are not right: cut, changed, of another dump, half written. None is ever believed: the answer is the one
//! that the dump itself gives.

use hprof_cli::{ObjectIndex, TreePosition};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::kit::dump::{Dump, bytes, digest, digest_graph};
use crate::kit::portion;
use hprof_index::Options as OpenOptions;
use hprof_index::open::heap::{Heap, StageState};
use hprof_index::storage::store::Stage;
use hprof_index::{Error, ObjectGraph, Quiet};
use hprof_writer::{DumpWriter, Elements, HeapModel, ObjectId, Options, Root, Type, Version, examples};
use proptest::prelude::*;

/// The stages of the index of a dump that is not compressed.
const STAGES: [Stage; 5] =
    [Stage::Summary, Stage::Objects, Stage::References, Stage::Referrers, Stage::Dominators];

/// All that a dump says, from its index or not, and whether nothing of that is void.
pub(crate) fn read(dump: &Dump) -> (Heap, (String, String), bool) {
    let (heap, graph) = dump.open_graph();
    let all = digest_graph(&graph, bytes(&heap), heap.summary().id_size());
    let all = (digest(heap.summary()), all);
    (heap, all, !graph.is_damaged())
}

/// All that a dump says.
pub(crate) fn answers(dump: &Dump) -> (String, String) {
    let (_, answers, right) = read(dump);
    assert!(right);
    answers
}

/// The stages whose files are not right.
fn bad_stages(dump: &Dump) -> Vec<(Stage, StageState)> {
    let reports = Heap::verify_index(&dump.path, &dump.options(), true).unwrap();
    let bad = reports.iter().filter(|report| report.state != StageState::Good);
    bad.map(|report| (report.stage, report.state)).collect()
}

/// A small dump with its index built, what it says, and the bytes of the stage's file.
struct Indexed {
    dump: Dump,
    answers: (String, String),
    stage: Stage,
    file: Vec<u8>,
}

/// Result of reading a changed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// It was taken: what was changed is nothing that is read.
    Taken,
    /// It was built again when the dump was opened.
    Rebuilt,
    /// It was taken, and found damaged when the block was read: all answers are void.
    Void,
}

impl Indexed {
    fn new(stage: Stage) -> Self {
        Self::of(Dump::written(&examples::zoo().write(&Options::hotspot())), stage)
    }

    fn of(dump: Dump, stage: Stage) -> Self {
        let answers = answers(&dump);
        let file = fs::read(dump.index().join(stage.name())).unwrap();
        Self { dump, answers, stage, file }
    }

    fn path(&self) -> PathBuf {
        self.dump.index().join(self.stage.name())
    }

    /// Puts other bytes in the place of the stage's file, and asks the dump again.
    fn check(&self, bytes: &[u8], what: &dyn Fn() -> String) -> Outcome {
        fs::write(self.path(), bytes).unwrap();
        let (heap, answers, right) = read(&self.dump);
        if !right {
            assert_eq!(bad_stages(&self.dump), [(self.stage, StageState::Damaged)], "{}", what());
            Heap::remove_index(&self.dump.path, &self.dump.options()).unwrap();
            self.check_again(what);
            return Outcome::Void;
        }
        assert!(answers == self.answers, "{}", what());
        let notes = heap.notes().join("\n");
        if notes.is_empty() {
            assert!(!heap.is_fresh(), "{}", what());
            return Outcome::Taken;
        }
        let words = notes.contains("rebuilding it") && notes.contains(self.dump.index().to_str().unwrap());
        assert!(words, "{}: {notes}", what());
        self.check_again(what);
        Outcome::Rebuilt
    }

    /// All is as it was at first.
    fn check_again(&self, what: &dyn Fn() -> String) {
        assert!(answers(&self.dump) == self.answers, "{}", what());
        assert!(fs::read(self.path()).unwrap() == self.file, "{}: not as it was at first", what());
    }

    /// The table of sections: id, where the section is, and where its hashes end.
    fn sections(&self) -> Vec<(u32, Range<usize>, usize)> {
        let number =
            |at: usize| usize::try_from(u64::from_le_bytes(*self.file[at..].first_chunk().unwrap())).unwrap();
        let count = u32::from_le_bytes(*self.file[52..].first_chunk().unwrap()) as usize;
        let rows = (0..count).map(|row| HEADER + row * ROW);
        rows.map(|at| {
            let (start, len) = (number(at + 8), number(at + 16));
            (number(at) as u32, start..start + len, start + len + len.div_ceil(1 << 16) * 8)
        })
        .collect()
    }

    /// For each byte of the file whether anybody reads it. Between sections there are bytes that nobody does.
    fn bytes_read(&self) -> Vec<bool> {
        let sections = self.sections();
        let mut read = vec![false; self.file.len()];
        read[..HEADER + sections.len() * ROW].fill(true);
        sections.iter().for_each(|(_, bytes, end)| read[bytes.start..*end].fill(true));
        read
    }
}

/// Lengths of a file's header, and of a row of its table of sections.
const HEADER: usize = 72;
const ROW: usize = 32;

#[test]
fn bytes_of_an_index_are_verified() {
    for stage in STAGES {
        let indexed = Indexed::new(stage);
        let read = indexed.bytes_read();
        assert!(read.iter().filter(|read| !**read).count() < 64 * indexed.sections().len());
        // All of header and table, and a seventh of the rest: each section by the same code.
        let positions = (0..indexed.file.len()).filter(|at| *at < 1000 || at % 7 == 0);
        for at in positions.step_by(portion::step()) {
            let mut changed = indexed.file.clone();
            changed[at] ^= 1 << (at % 8);
            fs::write(indexed.path(), &changed).unwrap();
            let bad: Vec<Stage> = bad_stages(&indexed.dump).into_iter().map(|(stage, _)| stage).collect();
            let wanted = if read[at] { vec![stage] } else { Vec::new() };
            assert_eq!(bad, wanted, "{stage:?}, byte {at}");
        }
    }
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn bytes_of_header_and_table_are_checked_when_a_file_is_opened() {
    for stage in STAGES {
        let indexed = Indexed::new(stage);
        for at in (0..HEADER + ROW * indexed.sections().len()).step_by(portion::step()) {
            let mut changed = indexed.file.clone();
            changed[at] ^= 1 << (at % 8);
            let outcome = indexed.check(&changed, &|| format!("{stage:?}, byte {at}"));
            assert_eq!(outcome, Outcome::Rebuilt, "{stage:?}, byte {at}");
        }
    }
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn bytes_of_sections_are_checked_when_they_are_read() {
    for stage in STAGES {
        let indexed = Indexed::new(stage);
        let (len, read) = (indexed.file.len(), indexed.bytes_read());
        let head = HEADER + ROW * indexed.sections().len();
        let mut outcomes = [0; 3];
        for at in (head..len).filter(|at| at % 29 == 0 || at + 50 > len) {
            let mut changed = indexed.file.clone();
            changed[at] = !changed[at];
            let outcome = indexed.check(&changed, &|| format!("{stage:?}, byte {at}"));
            assert!(read[at] || outcome == Outcome::Taken, "{stage:?}, byte {at}: {outcome:?}");
            outcomes[outcome as usize] += usize::from(read[at]);
        }
        // The digest asks for nearly everything. The least depths of a tree so small are never needed.
        let [taken, rebuilt, void] = outcomes;
        assert!(taken <= 2 && rebuilt > 0, "{stage:?}: {outcomes:?}");
        assert!((void > 0) == (stage != Stage::Summary), "{stage:?}: {outcomes:?}");
    }
}

#[test]
fn a_file_cut_anywhere_is_built_again() {
    for stage in STAGES {
        let indexed = Indexed::new(stage);
        let len = indexed.file.len();
        let cuts = (0..len).filter(|cut| *cut < 130 || cut % 97 == 0 || cut + 20 > len);
        for cut in cuts.step_by(portion::step()) {
            let outcome = indexed.check(&indexed.file[..cut], &|| format!("{stage:?} cut to {cut}"));
            assert_eq!(outcome, Outcome::Rebuilt, "{stage:?} cut to {cut}");
        }
        let longer = [&indexed.file[..], &[0]].concat();
        assert_eq!(indexed.check(&longer, &|| "one byte more".to_owned()), Outcome::Rebuilt);
        assert_eq!(indexed.check(&indexed.file, &|| "as it was".to_owned()), Outcome::Taken);
    }
}

proptest! {
    #![proptest_config(crate::kit::strategies::property(60))]

    #[test]
    fn any_bytes_are_no_index(
        stage in prop::sample::select(STAGES.to_vec()),
        start in 0..2usize,
        changed in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        random in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let indexed = Indexed::new(stage);
        let mut file = indexed.file.clone();
        for (at, value) in &changed {
            *at.get_mut(&mut file) = *value;
        }
        indexed.check(&file, &|| format!("{changed:?}"));
        indexed.check(&[&indexed.file[..start * 40], &random].concat(), &|| format!("{random:x?}"));
    }
}

#[test]
fn another_stage_is_no_stage() {
    for stage in STAGES {
        let indexed = Indexed::new(stage);
        for other in STAGES.into_iter().filter(|other| *other != stage) {
            let file = fs::read(indexed.dump.index().join(other.name())).unwrap();
            let outcome = indexed.check(&file, &|| format!("{other:?} as {stage:?}"));
            assert_eq!(outcome, Outcome::Rebuilt, "{other:?} as {stage:?}");
        }
    }
}

/// Lists, each node of which refers to a small array: sections of several blocks.
fn lists() -> Dump {
    let mut model = examples::zoo();
    let object = model.classes()[0].id;
    let node = model.class("t.Node", Some(object), &[("next", Type::Object), ("array", Type::Object)]);
    for list in 0..40 {
        let mut next = ObjectId::NULL;
        for length in 0..1500 {
            let array = model.prim_array(Elements::of_bytes(&vec![1; length % 50 + list]));
            next = model.instance_with(node, &[("next", next.into()), ("array", array.into())]);
        }
        if list % 4 != 0 {
            model.root(next, Root::JniGlobal { reference: 1 });
        }
    }
    Dump::written(&model.write(&Options::hotspot()))
}

/// Answers are right until data in a damaged block is read; then the mark is set.
#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn a_damaged_block_gives_no_data_and_the_rest_does() {
    let right = {
        let dump = lists();
        let (_, graph) = dump.open_graph();
        let ask: Vec<_> = (0..graph.objects.len()).map(|object| ask(&graph, object)).collect();
        ask
    };
    let all = right.len();
    for (stage, id) in
        [(Stage::Objects, 5), (Stage::References, 1), (Stage::Referrers, 1), (Stage::Dominators, 3)]
    {
        let indexed = Indexed::of(lists(), stage);
        let sections = indexed.sections();
        let (_, section, _) = sections.iter().find(|(found, ..)| *found == id).unwrap();
        assert!(section.len() > 1 << 16, "{stage:?}: a section of {} bytes has one block", section.len());
        let mut changed = indexed.file.clone();
        // In the second block.
        changed[section.start + (1 << 16) + 7] ^= 0x10;
        fs::write(indexed.path(), &changed).unwrap();

        let (heap, graph) = indexed.dump.open_graph();
        assert!(!heap.is_fresh() && !graph.is_damaged(), "{stage:?}: nothing was asked yet");
        let mut wrong = 0;
        let mut was_damaged = false;
        for (object, right) in (0u32..).zip(&right) {
            let answer = ask(&graph, object);
            if answer != *right {
                assert!(graph.is_damaged(), "{stage:?}: a wrong answer, and no mark: {object}");
                wrong += 1;
            }
            was_damaged |= graph.is_damaged();
        }
        assert!(was_damaged && (1..all).contains(&wrong), "{stage:?}: {wrong} of {all} wrong");
        // Data in another block is available.
        let (_, graph) = indexed.dump.open_graph();
        if stage != Stage::Dominators {
            assert_eq!(ask(&graph, 0), right[0], "{stage:?}");
            assert!(!graph.is_damaged(), "{stage:?}");
        }
        drop((heap, graph));
        assert_eq!(bad_stages(&indexed.dump), [(stage, StageState::Damaged)]);
    }
}

/// Class, references, referrers, position and retained bytes of an object.
type Answer = (Option<u32>, Vec<ObjectIndex>, Vec<ObjectIndex>, Option<(TreePosition, u64)>);

/// Returns the graph's answer about an object.
fn ask(graph: &ObjectGraph, object: u32) -> Answer {
    let tree = &graph.tree;
    let retained =
        tree.reachable_position(ObjectIndex(object)).map(|at| (tree.end(at), tree.retained_bytes(at)));
    let class = graph.objects.class(ObjectIndex(object)).map(|class| class.0);
    (
        class,
        graph.references(ObjectIndex(object)).collect(),
        graph.referrers(ObjectIndex(object)).collect(),
        retained,
    )
}

/// A rebuilt stage must not depend on a damaged file: the damage would persist.
#[test]
fn nothing_is_built_upon_damage() {
    for (stage, lost) in [
        (Stage::Objects, Stage::Dominators),
        (Stage::References, Stage::Dominators),
        (Stage::References, Stage::Referrers),
        (Stage::Referrers, Stage::Dominators),
    ] {
        let indexed = Indexed::new(stage);
        for (id, section, _) in indexed.sections().into_iter().filter(|(_, section, _)| !section.is_empty()) {
            let mut changed = indexed.file.clone();
            changed[section.start + section.len() / 2] ^= 1;
            fs::write(indexed.path(), &changed).unwrap();
            fs::remove_file(indexed.dump.index().join(lost.name())).unwrap();
            let what = format!("{lost:?} built upon section {id} of {stage:?}");
            // Opening builds what is lost. Nobody looks at the mark.
            drop(indexed.dump.open_graph());
            let bad: Vec<Stage> = bad_stages(&indexed.dump).into_iter().map(|(stage, _)| stage).collect();
            assert!(bad.is_empty() || bad == [stage], "{what}: {bad:?}");
            // The damage goes; what was built stays.
            fs::write(indexed.path(), &indexed.file).unwrap();
            assert!(answers(&indexed.dump) == indexed.answers, "{what}");
        }
    }
}

#[test]
fn what_is_missing_is_built_again_and_is_the_same() {
    let dump = Dump::written(&examples::zoo().write(&Options::hotspot()));
    let right = answers(&dump);
    let files = STAGES.map(|stage| fs::read(dump.index().join(stage.name())).unwrap());
    for missing in 1..1u32 << STAGES.len() {
        let is_missing = |at: usize| missing >> at & 1 != 0;
        for (at, stage) in STAGES.iter().enumerate().filter(|(at, _)| is_missing(*at)) {
            fs::remove_file(dump.index().join(STAGES[at].name())).unwrap();
            assert!(bad_stages(&dump).contains(&(*stage, StageState::Missing)));
        }
        let (heap, answers, good) = read(&dump);
        assert!(good && answers == right, "{missing:#b}");
        // Referrers and dominators are built from the others.
        assert_eq!(heap.is_fresh(), missing & 0b111 != 0, "{missing:#b}");
        assert_eq!(heap.notes(), Vec::<String>::new(), "{missing:#b}");
        let again = STAGES.map(|stage| fs::read(dump.index().join(stage.name())).unwrap());
        assert!(again == files, "{missing:#b}: other files");
    }
}

/// A stage that exists is not rebuilt.
#[test]
fn what_is_there_stays() {
    let dump = Dump::written(&examples::zoo().write(&Options::hotspot()));
    answers(&dump);
    let times = |dump: &Dump| {
        STAGES.map(|stage| fs::metadata(dump.index().join(stage.name())).unwrap().modified().unwrap())
    };
    let before = times(&dump);
    std::thread::sleep(Duration::from_millis(20));
    answers(&dump);
    assert_eq!(times(&dump), before);
    for (lost, stage) in STAGES.iter().enumerate().skip(3) {
        fs::remove_file(dump.index().join(stage.name())).unwrap();
        answers(&dump);
        let now = times(&dump);
        let changed: Vec<usize> = (0..STAGES.len()).filter(|at| now[*at] != before[*at]).collect();
        assert!(changed.contains(&lost) && changed.iter().all(|at| *at >= 3 && *at <= lost), "{changed:?}");
    }
}

/// A compressed dump has one stage more, and the unpacked bytes themselves.
#[test]
fn bytes_of_the_unpacked_stage_are_checked() {
    let all = examples::zoo().write(&Options::hotspot()).bytes();
    let dump = Dump::of(&zstd::encode_all(&all[..], 3).unwrap());
    let indexed = Indexed::of(dump, Stage::Unpacked);
    let read = indexed.bytes_read();
    for at in (0..indexed.file.len()).step_by(portion::step()) {
        let mut changed = indexed.file.clone();
        changed[at] ^= 1 << (at % 8);
        fs::write(indexed.path(), &changed).unwrap();
        assert_eq!(bad_stages(&indexed.dump).is_empty(), !read[at], "byte {at}");
        assert!(answers(&indexed.dump) == indexed.answers, "byte {at}");
        assert!(!read[at] || fs::read(indexed.path()).unwrap() == indexed.file, "byte {at}");
    }
    let data = indexed.dump.index().join("unpacked.hprof");
    assert!(fs::read(&data).unwrap() == all);
    for at in (0..all.len()).step_by(37 * portion::step()) {
        fs::write(indexed.path(), &indexed.file).unwrap();
        let mut changed = all.clone();
        changed[at] ^= 1 << (at % 8);
        fs::write(&data, &changed).unwrap();
        assert_eq!(bad_stages(&indexed.dump), [(Stage::Unpacked, StageState::Damaged)], "byte {at}");
        assert!(answers(&indexed.dump) == indexed.answers, "byte {at}");
        assert!(fs::read(&data).unwrap() == all, "byte {at}");
    }
}

#[test]
fn the_index_of_another_dump_is_not_used() {
    let dump = Dump::written(&examples::zoo().write(&Options::hotspot()));
    let other = Dump::written(&examples::zoo().write(&Options::agent()));
    let right = answers(&dump);
    answers(&other);
    for stage in STAGES.map(Stage::name) {
        fs::copy(other.index().join(stage), dump.index().join(stage)).unwrap();
    }
    let reports = Heap::verify_index(&dump.path, &dump.options(), true).unwrap();
    assert!(
        reports.len() == 5 && reports.iter().all(|report| report.state == StageState::Stale),
        "{reports:?}"
    );
    let heap = dump.open();
    assert!(
        heap.is_fresh() && heap.notes().join("").contains("belongs to another dump"),
        "{:?}",
        heap.notes()
    );
    assert_eq!(answers(&dump), right);
}

/// Two heap dumps in one file.
fn two_in_one() -> DumpWriter {
    let mut out = DumpWriter::new(Version::V1_0_2, hprof_writer::IdSize::Eight);
    let mut small = HeapModel::default();
    small.class("one.Only", None, &[]);
    small.write_into(&mut out, &Options::hotspot());
    let second = Options { first_string: 0x9000_0000, first_class_serial: 100, ..Options::hotspot() };
    examples::zoo().write_into(&mut out, &second);
    out
}

#[test]
fn the_index_of_another_heap_dump_of_the_file_is_not_used() {
    let mut dump = Dump::of(&two_in_one().into_bytes());
    let last = answers(&dump);
    dump.heap_dump = Some(1);
    let first = answers(&dump);
    assert_ne!(first, last);
    dump.heap_dump = Some(2);
    assert_eq!(answers(&dump).1, last.1);
    for stage in STAGES.map(Stage::name) {
        fs::copy(dump.index().join(stage), dump.index().join(format!("{stage}.1"))).unwrap();
    }
    dump.heap_dump = Some(1);
    assert_eq!(answers(&dump), first);
}

#[test]
fn a_dump_that_changed_is_read_again() {
    let zoo = examples::zoo();
    let dump = Dump::written(&zoo.write(&Options::hotspot()));
    dump.open_graph();
    assert!(!dump.open().is_fresh());

    // Touched.
    let file = File::options().write(true).open(&dump.path).unwrap();
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    file.set_modified(old).unwrap();
    let heap = dump.open();
    assert!(heap.is_fresh() && heap.notes().join("").contains("the dump has changed"), "{:?}", heap.notes());
    assert!(dump.open_graph().0.is_fresh(), "the objects are of the time before");
    assert!(!dump.open_graph().0.is_fresh());

    // Other bytes of the same length at the same time.
    let mut changed = fs::read(&dump.path).unwrap();
    let at = changed.windows(3).position(|part| part == b"key").unwrap();
    changed[at] = b'K';
    fs::write(&dump.path, &changed).unwrap();
    File::options().write(true).open(&dump.path).unwrap().set_modified(old).unwrap();
    assert!(dump.open_graph().0.is_fresh());

    // Another dump in its place: the answer is that dump's.
    dump.replace(&HeapModel::default().write(&Options::hotspot()).bytes());
    assert_eq!(dump.open().summary().classes().len(), 0);
    dump.replace(b"no dump at all");
    assert!(matches!(dump.try_open(), Err(Error::Format { .. })));
}

#[test]
fn what_a_process_left_that_died_is_swept_away() {
    let dump = Dump::written(&examples::zoo().write(&Options::hotspot()));
    let right = answers(&dump);
    for name in [".new-dead1", ".new-dead2"] {
        fs::write(dump.index().join(name), b"half a file").unwrap();
    }
    fs::write(dump.index().join("mine.txt"), b"not the program's").unwrap();
    fs::remove_file(dump.index().join("summary")).unwrap();
    assert_eq!(answers(&dump), right);
    let left: BTreeSet<String> = fs::read_dir(dump.index())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    let names = ["dominators", "lock", "mine.txt", "objects", "references", "referrers", "summary"];
    assert_eq!(left.into_iter().collect::<Vec<_>>(), names);

    let dir = dump.index();
    let removed = Heap::remove_index(&dump.path, &dump.options()).unwrap();
    assert!(removed.len() == 1 && removed[0].1 > 0, "{removed:?}");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "only what is not the program's stays");
}

#[test]
fn directories_in_the_place_of_files_do_no_harm() {
    let dump = Dump::written(&examples::zoo().write(&Options::hotspot()));
    let right = answers(&dump).0;
    fs::remove_file(dump.index().join("summary")).unwrap();
    fs::create_dir_all(dump.index().join("summary/mine")).unwrap();
    let heap = dump.open();
    assert_eq!(digest(heap.summary()), right);
    assert!(heap.notes().join("").contains("the index is not saved"), "{:?}", heap.notes());
    assert!(matches!(dump.try_open_graph(), Err(Error::WriteIndex { .. })));
}

#[test]
fn without_a_place_for_the_index_the_summary_is_still_known() {
    let dump = Dump::written(&examples::zoo().write(&Options::hotspot()));
    let options = OpenOptions { index_dir: Some(dump.path.join("below-a-file")), ..OpenOptions::default() };
    let heap = Heap::open(&dump.path, &options, &Quiet).unwrap();
    assert_eq!(digest(heap.summary()), digest(dump.open().summary()));
    assert!(heap.notes().join("").contains("the index is not saved"), "{:?}", heap.notes());
    let refused = Heap::build_index(&dump.path, &options, &Quiet);
    assert!(matches!(refused, Err(Error::WriteIndex { .. })));
    // A graph is built for the time that it is needed.
    let (heap, graph) = Heap::open_graph(&dump.path, &options, &Quiet).unwrap();
    let all = (digest(heap.summary()), digest_graph(&graph, bytes(&heap), heap.summary().id_size()));
    assert!(all == answers(&dump) && !graph.is_damaged());
    assert!(heap.notes().join("").contains("and removed afterwards"), "{:?}", heap.notes());
}
