//! Files around dumps: compressed in the ways that occur, cut, and what is given for a dump and is none.

use std::fs;
use std::io::Write;
use std::path::Path;

use crate::kit::dump::{Dump, bytes, count, digest, digest_graph, problems};
use crate::kit::portion;
use flate2::{Compression as Level, GzBuilder};
use hprof_index::Error;
use hprof_index::model::summary::Summary;
use hprof_index::open::heap::{Heap, StageState};
use hprof_input::file::Compression;
use hprof_parser::Header;
use hprof_parser::record::{BodyReader, Record};
use hprof_writer::{
    AllocSites, DumpWriter, Elements, HeapModel, IdSize, Options, Version, agent_cutoff, damage, examples,
};

fn zoo() -> Vec<u8> {
    examples::zoo().write(&Options::hotspot()).bytes()
}

/// Some hundred kilobytes that do not pack well.
fn large() -> Vec<u8> {
    let mut model = examples::zoo();
    let mut state = 1u64;
    for _ in 0..300 {
        let mut noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1442695040888963407);
            (state >> 33) as u8
        };
        model.prim_array(Elements::of_bytes(&(0..1000).map(|_| noise()).collect::<Vec<u8>>()));
    }
    model.write(&Options::hotspot()).bytes()
}

fn gzip(part: &[u8], comment: Option<&str>) -> Vec<u8> {
    let mut builder = GzBuilder::new();
    if let Some(comment) = comment {
        builder = builder.comment(comment);
    }
    let mut encoder = builder.write(Vec::new(), Level::fast());
    encoder.write_all(part).unwrap();
    encoder.finish().unwrap()
}

/// As HotSpot packs: a member for each block, the first with the block's size in its comment.
fn gzip_in_blocks(all: &[u8], block: usize) -> Vec<u8> {
    let comment = format!("HPROF BLOCKSIZE={block}");
    let parts = all.chunks(block).enumerate();
    parts.flat_map(|(n, part)| gzip(part, (n == 0).then_some(comment.as_str()))).collect()
}

fn zstd(part: &[u8]) -> Vec<u8> {
    zstd::encode_all(part, 3).unwrap()
}

/// All that is said of a dump but how it is packed.
fn answers(dump: &Dump) -> (String, String) {
    let (heap, graph) = dump.open_graph();
    let graph = digest_graph(&graph, bytes(&heap), heap.summary().id_size());
    (unpacked_digest(heap.summary()), graph)
}

fn unpacked_digest(summary: &Summary) -> String {
    let of = |compression| format!("compression: {compression}");
    digest(summary).replace(&of(1), &of(0)).replace(&of(2), &of(0))
}

#[test]
fn compressed_dumps_answer_as_unpacked_ones_whatever_their_name() {
    let all = large();
    let right = answers(&Dump::of(&all));
    let two_frames = [zstd(&all[..1000]), zstd(&all[1000..])].concat();
    for (packed, compression) in [
        (gzip(&all, None), Compression::Gzip),
        (gzip_in_blocks(&all, 7000), Compression::Gzip),
        (gzip_in_blocks(&all, 1 << 20), Compression::Gzip),
        (zstd(&all), Compression::Zstd),
        (two_frames, Compression::Zstd),
    ] {
        // The file is called dump.hprof in any case.
        let dump = Dump::of(&packed);
        assert_eq!(answers(&dump), right);
        let heap = dump.open();
        assert!(!heap.is_fresh() && heap.compression() == Some(compression));
        assert_eq!((bytes(&heap), heap.file_bytes()), (all.as_slice(), packed.len() as u64));
        assert!(!heap.summary().is_damaged());
        let reports = Heap::verify_index(&dump.path, &dump.options(), true).unwrap();
        assert!(
            reports.len() == 6 && reports.iter().all(|report| report.state == StageState::Good),
            "{reports:?}"
        );
    }
}

#[test]
fn an_unpacked_file_that_was_lost_or_cut_is_made_again() {
    let all = large();
    let dump = Dump::of(&zstd(&all));
    let right = answers(&dump);
    let unpacked = dump.index().join("unpacked.hprof");
    fs::write(&unpacked, &all[..1000]).unwrap();
    assert_eq!(answers(&dump), right);
    fs::remove_file(&unpacked).unwrap();
    assert_eq!(bytes(&dump.open()), all);
    fs::write(dump.index().join("unpacked"), b"nonsense").unwrap();
    fs::remove_file(dump.index().join("summary")).unwrap();
    assert_eq!(answers(&dump), right);
}

/// The copy of a large dump takes long to read: only queries that read records do, and they verify it.
#[test]
fn queries_that_read_no_records_leave_the_unpacked_file_alone() {
    let all = large();
    let dump = Dump::of(&zstd(&all));
    let ask = |arguments: &[&str]| {
        let output = dump.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        output.stdout
    };
    let questions: [&[&str]; 6] = [
        &["histo", "--live"],
        &["histo", "--retained"],
        &["retained", "byte[]"],
        &["dominators", "--group-by", "class"],
        &["dominators", "--all", "--format", "csv"],
        &["doctor"],
    ];
    let right = questions.map(ask);
    let strings = ask(&["strings"]);
    let unpacked = dump.index().join("unpacked.hprof");
    let mut changed = all.clone();
    changed[all.len() / 2] ^= 1;
    fs::write(&unpacked, &changed).unwrap();
    assert!(questions.map(ask) == right);
    assert!(fs::read(&unpacked).unwrap() == changed);
    assert!(ask(&["strings"]) == strings);
    assert!(fs::read(&unpacked).unwrap() == all);
}

#[test]
fn of_a_cut_compressed_file_what_can_be_unpacked_is_read() {
    let all = large();
    let arrays = |heap: &Heap| count(heap.summary(), "byte[]");
    let whole = arrays(&Dump::of(&all).open());
    for packed in [gzip(&all, None), gzip_in_blocks(&all, 7000), zstd(&all)] {
        for part in [2, 3, 7] {
            let dump = Dump::of(&damage::cut(&packed, packed.len() * (part - 1) / part));
            let heap = dump.open();
            assert!(heap.summary().is_damaged());
            assert!(
                problems(heap.summary()).contains("compressed file is truncated"),
                "{}",
                problems(heap.summary())
            );
            // zstd gives whole blocks of 128 KiB.
            let least = if part == 2 { whole / 5 } else { whole / 3 };
            assert!(arrays(&heap) >= least && arrays(&heap) < whole, "{} of {whole}", arrays(&heap));
            let again = dump.open();
            assert!(!again.is_fresh() && digest(again.summary()) == digest(heap.summary()));
        }
    }
}

#[test]
fn bytes_that_changed_inside_of_gzip_are_noticed() {
    let all = large();
    for packed in [gzip(&all, None), gzip_in_blocks(&all, 7000)] {
        let mut spoiled = packed.clone();
        let middle = spoiled.len() / 2;
        spoiled[middle] ^= 1;
        let heap = Dump::of(&spoiled).open();
        assert!(problems(heap.summary()).contains("truncated or damaged"), "{}", problems(heap.summary()));
    }
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn packed_bytes_can_be_any() {
    for packed in [gzip_in_blocks(&zoo(), 500), zstd(&zoo())] {
        let dump = Dump::of(&[]);
        let (mut opened, mut positions) = (0, 0);
        for at in (0..packed.len()).step_by(portion::step()) {
            positions += 1;
            dump.replace(&damage::with_byte(&packed, at, !packed[at]));
            opened += usize::from(dump.try_open().is_ok());
            dump.replace(&damage::cut(&packed, at));
            opened += usize::from(dump.try_open().is_ok());
        }
        assert!(opened > positions / 4, "{opened} of {positions}");
    }
}

/// A tar header: a name, and the magic at its place.
fn tar() -> Vec<u8> {
    let mut tar = vec![0; 1024];
    tar[..10].copy_from_slice(b"heap.hprof");
    tar[257..262].copy_from_slice(b"ustar");
    tar
}

#[test]
fn what_is_no_dump_is_named() {
    for (file, named, advised) in [
        (b"<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title>".to_vec(), "HTML", "download"),
        (b"\n\n<html>".to_vec(), "HTML", "download"),
        (b"\0\x12portable heap dump\0\0\0\x06".to_vec(), "PHD", "MAT"),
        (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x04\0".to_vec(), "ELF", "jhsdb"),
        (b"FLR\0\0\x02\0\x01".to_vec(), "JFR", "flamegraph"),
        (tar(), "tar", "unpack"),
        (b"PK\x03\x04\x14\0".to_vec(), "zip", "unpack"),
        (b"{\"error\": \"not found\"}".to_vec(), "JSON", "jcmd"),
        (vec![0; 4096], "all zero", "disk"),
        (b"hello".to_vec(), "text", "java.hprof.txt"),
    ] {
        let error = Dump::of(&file).try_open().unwrap_err();
        let (said, advice) = (error.to_string(), hprof_cli::advice(&error).unwrap_or_default());
        assert!(matches!(error, Error::Format { .. }), "{said}");
        assert!(said.contains(named) && said.contains("dump.hprof"), "{said}");
        assert!(advice.contains(advised), "{said}: {advice}");
        // The same in gzip and Zstandard.
        for packed in [gzip(&file, None), zstd(&file)] {
            let error = Dump::of(&packed).try_open().unwrap_err();
            assert!(matches!(error, Error::NotInside { .. }) && error.to_string().contains(named), "{error}");
            assert_eq!(hprof_cli::advice(&error), Some(advice), "{error}");
        }
    }
}

#[test]
fn a_text_report_cut_in_its_header_is_opened_with_a_problem() {
    let text = b"JAVA PROFILE 1.0.1, created Thu Jan  1 00:00:00 1970\n\nHeader for -agentlib:hprof";
    let dump = Dump::of(text);
    let heap = dump.try_open().map_err(|error| error.to_string()).unwrap();
    assert!(heap.is_text());
    let problems = problems(heap.summary());
    assert!(problems.contains("1 line of the text could not be parsed"), "{problems}");
}

#[test]
fn nothing_in_a_compressed_file_is_an_error() {
    for packed in [gzip(&[], None), zstd(&[]), vec![0x1F, 0x8B], vec![0x28, 0xB5, 0x2F, 0xFD]] {
        let opened = Dump::of(&packed).try_open().map(|heap| problems(heap.summary()));
        assert!(matches!(opened, Err(Error::NotInside { .. })), "{opened:?}");
    }
    let twice = gzip(&gzip(&zoo(), None), None);
    let error = Dump::of(&twice).try_open().unwrap_err();
    assert!(error.to_string().contains("the content of the gzip file is not a heap dump"), "{error}");
}

#[test]
fn what_is_no_file_is_named() {
    let dump = Dump::of(&zoo());
    let dir = dump.path.parent().unwrap();
    for (path, words) in [
        (dir.to_owned(), "is a directory"),
        (dir.join("nowhere.hprof"), "nowhere.hprof"),
        (Path::new("/dev/null").to_owned(), "not a regular file"),
    ] {
        let error = Heap::open(&path, &dump.options(), &hprof_index::Quiet).unwrap_err();
        assert!(matches!(error, Error::Open(_)) && error.to_string().contains(words), "{error}");
        assert!(hprof_cli::advice(&error).is_some(), "{error}");
    }
}

#[test]
fn the_cutoff_of_alloc_sites_is_believed_if_it_is_one() {
    for (bits, cutoff) in [
        (0.0001f32.to_bits(), Some(0.0001)),
        (0, Some(0.0)),
        (1.0f32.to_bits(), Some(1.0)),
        (agent_cutoff(0.0001), None),
        (f32::NAN.to_bits(), None),
        (1.5f32.to_bits(), None),
    ] {
        let mut out = DumpWriter::new(Version::V1_0_1, IdSize::Four);
        let at = out.alloc_sites(&AllocSites { cutoff_bits: bits, ..AllocSites::default() });
        let all = out.into_bytes();
        let record = Record::at(&all, at as usize).unwrap();
        let reader = BodyReader::new(&all, Header::parse(&all).unwrap().id_size);
        assert_eq!(reader.alloc_sites(&record).unwrap().cutoff, cutoff, "{bits:#x}");
    }
}

#[test]
fn an_empty_heap_is_a_dump() {
    let dump = Dump::of(&HeapModel::default().write(&Options::hotspot()).bytes());
    let (heap, graph) = dump.open_graph();
    assert!(graph.objects.is_empty() && graph.tree.reachable() == 0);
    assert!(heap.summary().classes().is_empty() && !heap.summary().is_damaged());
}
