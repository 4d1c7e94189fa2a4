//! Dumps that are packed: gzip in blocks, cut and damaged, disks without room.

use std::io::{Read, Write};

use crate::kit::process::{Folder, stderr};
use crate::kit::texts::{code, sample_path};
use crate::packing::{Memory, files_of, heap, in_blocks, member, members, noise, tar, unpack, zip, zoo};
use flate2::{Compression as Level, GzBuilder};
use hprof_input::packed::{self, Compression, Size};

#[test]
fn blocks_of_hotspot_become_the_plain_dump_with_any_number_of_threads() {
    let packed = std::fs::read(sample_path("jdk/jdk17-gz.hprof.gz")).unwrap();
    let mut plain = Vec::new();
    flate2::read::MultiGzDecoder::new(packed.as_slice()).read_to_end(&mut plain).unwrap();
    assert_eq!(plain.len(), 3_441_471, "the sample's README says so");
    for threads in [1, 2, 3, 8] {
        assert!(unpack(&packed, threads) == (plain.clone(), None), "{threads} threads");
    }
}

#[test]
fn members_of_any_size_are_unpacked_whatever_their_bytes_look_like() {
    // Members in members, not compressed: their data is full of headers.
    let inner: Vec<u8> = (0..40).flat_map(|seed| member(&noise(3000, seed), Level::none(), None)).collect();
    let large = [noise(5 << 20, 1), vec![0; 9 << 20]].concat();
    let (empty, small): (&[u8], &[u8]) = (&[], b"JAVA");
    let parts: Vec<&[u8]> = [small, empty, &inner, &large, &inner]
        .into_iter()
        .chain((0..500).map(|number| &inner[number * 7..number * 9]))
        .collect();
    let plain = parts.concat();
    for level in [Level::none(), Level::fast()] {
        let packed: Vec<u8> = parts.iter().flat_map(|part| member(part, level, None)).collect();
        for threads in [1, 2, 5] {
            assert!(unpack(&packed, threads) == (plain.clone(), None), "{threads} threads");
        }
        // Zeros at the end are padding; anything else is said.
        let padded = [packed.as_slice(), &[0; 700]].concat();
        assert!(unpack(&padded, 2) == (plain.clone(), None));
        for behind in [&b"x"[..], b"no gzip at all", b"\x1f\x8b", b"\x1f\x8b\x08\xff"] {
            let (bytes, error) = unpack(&[packed.as_slice(), behind].concat(), 3);
            assert!(bytes == plain && error.is_some(), "{behind:?}: {error:?}");
        }
    }
}

#[test]
fn bytes_that_could_be_members_a_million_times_cost_no_more_time() {
    // Each of these headers, if it was one, would begin a stream of megabytes: the zeros behind all of them.
    let mut stream = member(&vec![0; 6 << 20], Level::best(), None);
    stream.truncate(stream.len() - 8);
    // They have a name, which ends with the first zero: at the stream.
    let fakes: Vec<u8> = [0x1f, 0x8b, 8, 8, 1, 1, 1, 1, 2, 3].repeat(100_000);
    stream.drain(..10);
    stream.insert(0, 0);
    let data = [fakes.as_slice(), &stream].concat();
    let block = member(&data, Level::none(), None);
    let packed = block.repeat(4);
    let start = std::time::Instant::now();
    assert!(unpack(&packed, 4) == (data.repeat(4), None));
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

#[test]
fn of_a_file_that_is_cut_anywhere_all_is_used_that_is_there() {
    let plain = noise(60_000, 3);
    let (packed, places) = in_blocks(&plain, 2500);
    for cut in (20..packed.len()).step_by(97).chain(places.iter().map(|(at, _)| *at).filter(|at| *at > 0)) {
        let (bytes, error) = unpack(&packed[..cut], 1 + cut % 3);
        let whole = places.iter().take_while(|(at, _)| *at <= cut).last().unwrap();
        assert!(plain.starts_with(&bytes) && bytes.len() >= whole.1, "{cut}: {} bytes", bytes.len());
        // Between two blocks this cannot be detected.
        assert_eq!(error.is_some(), whole.0 != cut, "{cut}: {error:?}");
        // Of the block that is cut there is about as much as of its packed bytes.
        assert!(bytes.len() + 600 >= whole.1 + (cut - whole.0), "{cut}: {} bytes", bytes.len());
    }
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn a_damaged_block_is_read_as_zeros_and_the_others_as_they_are() {
    let plain = noise(14_000, 4);
    let (packed, places) = in_blocks(&plain, 2000);
    for at in (0..packed.len()).step_by(7) {
        let mut spoiled = packed.clone();
        spoiled[at] ^= 0x55;
        let block = places.windows(2).position(|pair| (pair[0].0..pair[1].0).contains(&at)).unwrap();
        let (from, to) = (places[block].1, places[block + 1].1);
        let is_last = block + 2 == places.len();
        let Some(_) = Compression::detect(&spoiled) else { continue };
        let (bytes, error) = unpack(&spoiled, 1 + at % 3);
        if bytes == plain {
            // Time, extra flags and system stand in a header and mean nothing; the mark neither, nor the length
            // behind a checksum that is right.
            let (from_start, to_end) = (at - places[block].0, places[block + 1].0 - at);
            let means_nothing = error.is_none() && (from_start < 40 || to_end <= 4);
            // Whose checksum is wrong and is the last one is used as it is.
            assert!(means_nothing || (is_last && to_end <= 8), "{at}: {error:?}");
            continue;
        }
        let error = error.unwrap_or_else(|| panic!("{at}: nothing was said"));
        let place = format!("{:#x}", places[block].0);
        assert!(bytes[..from] == plain[..from], "{at}: the blocks before");
        if is_last {
            // Flags in a header can move all that follows.
            assert!(error.contains(&place) || error.contains("ends in the middle"), "{at}: {error}");
            continue;
        }
        // The first block: its header may make one stream of all.
        if block == 0 && (error.contains("header") || bytes.len() != plain.len()) {
            continue;
        }
        let said = if block == 0 { "replaced with zeros" } else { "at least 2000 bytes" };
        assert!(error.contains(&place) && error.contains(said), "{at}: {error}");
        assert!(error.contains("may be at too low an offset"), "{at}: {error}");
        assert_eq!(bytes.len(), plain.len(), "{at}");
        assert!(bytes[to..] == plain[to..], "{at}: the blocks behind");
        assert!(block == 0 || bytes[from..to].iter().all(|byte| *byte == 0), "{at}: the block itself");
    }
}

#[test]
fn many_damaged_blocks_are_counted() {
    let plain = noise(60_000, 5);
    let (mut packed, places) = in_blocks(&plain, 2000);
    for (at, _) in &places[5..15] {
        packed[at + 500] ^= 1;
    }
    let (bytes, error) = unpack(&packed, 2);
    assert_eq!(bytes.len(), plain.len());
    assert!(bytes[places[4].1..places[5].1] == plain[places[4].1..places[5].1]);
    assert!(bytes[places[15].1..] == plain[places[15].1..]);
    let error = error.unwrap();
    assert!(error.matches("is damaged").count() == 3 && error.contains("7 more damaged blocks"), "{error}");
}

#[test]
fn a_damaged_border_of_two_blocks_is_said_to_move_what_is_behind() {
    let plain = noise(60_000, 10);
    let (packed, places) = in_blocks(&plain, 2000);
    for count in [1, 3] {
        let mut spoiled = packed.clone();
        for (at, _) in &places[6..6 + count] {
            spoiled[at - 20..at + 20].fill(0x77);
        }
        let (bytes, error) = unpack(&spoiled, 2);
        let error = error.unwrap();
        assert!(
            error.contains("at least 2000 bytes")
                && error.contains("the data after them is at too low an offset"),
            "{error}"
        );
        // Of all blocks whose borders are gone the last one's length is left.
        assert_eq!(bytes.len(), plain.len() - 2000 * count);
        let behind = &plain[places[6 + count].1..];
        assert!(bytes[..places[5].1] == plain[..places[5].1] && bytes.ends_with(behind));
        assert!(bytes[places[5].1..places[6].1].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_gzip_file_in_a_damaged_block_is_not_the_next_block() {
    let plain = noise(40_000, 11);
    let named = GzBuilder::new().filename("inner.txt").write(Vec::new(), Level::fast());
    let named = named.finish().unwrap();
    // One with a header of its own, one with the header of the blocks themselves.
    for inner in [named, member(b"inner", Level::fast(), None)] {
        let mut plain = plain.clone();
        // The length before it is a plausible one.
        plain[10_900..10_904].copy_from_slice(&500_u32.to_le_bytes());
        plain[10_904..10_904 + inner.len()].copy_from_slice(&inner);
        let (mut packed, mut starts) = (Vec::new(), Vec::new());
        for block in plain.chunks(2000) {
            starts.push(packed.len());
            packed.extend(member(block, Level::none(), None));
        }
        packed[starts[5] + 200] ^= 1;
        let (bytes, error) = unpack(&packed, 2);
        assert!(error.is_some_and(|error| error.contains("at least 2000 bytes")));
        plain[10_000..12_000].fill(0);
        assert!(bytes == plain);
    }
}

#[test]
fn blocks_behind_a_damaged_one_are_found_though_no_header_is_as_another() {
    let plain = noise(40_000, 16);
    let (mut packed, mut places) = (Vec::new(), Vec::new());
    for (number, block) in plain.chunks(2000).enumerate() {
        // Like files that were compressed separately, each with its name, and concatenated.
        let builder =
            GzBuilder::new().mtime(1_700_000_000 + number as u32).filename(format!("part-{number}"));
        let mut encoder = builder.write(Vec::new(), Level::none());
        encoder.write_all(block).unwrap();
        places.push(packed.len());
        packed.extend(encoder.finish().unwrap());
    }
    // In the middle; one before the last, which nothing follows.
    for damaged in [1, 7, 18] {
        let mut spoiled = packed.clone();
        spoiled[places[damaged] + 500] ^= 1;
        // A gzip file within the damaged one is not a part of it.
        let inner = member(b"inner", Level::fast(), None);
        spoiled[places[damaged] + 600..places[damaged] + 600 + inner.len()].copy_from_slice(&inner);
        let (bytes, error) = unpack(&spoiled, 2);
        let error = error.unwrap();
        assert!(error.contains("at least 2000 bytes are missing"), "{error}");
        let (from, to) = (damaged * 2000, damaged * 2000 + 2000);
        assert!(bytes[..from] == plain[..from] && bytes[to..] == plain[to..], "{damaged}");
        assert!(bytes[from..to].iter().all(|byte| *byte == 0), "{damaged}");
    }
}

#[test]
fn what_is_searched_in_vain_behind_a_damaged_block_has_a_bound() {
    // Each of four hundred headers, if it was one, would begin the stream of megabytes behind all of them; a thousand times.
    // To unpack all of them would take hours.
    let mut stream = member(&vec![0; 6 << 20], Level::best(), None);
    stream.truncate(stream.len() - 8);
    stream.drain(..10);
    let fakes: Vec<u8> = [0x1f, 0x8b, 8, 8, 1, 1, 1, 1, 2, 3].repeat(400);
    let all = [fakes.as_slice(), &[0], &stream].concat().repeat(1000);
    let good = member(b"good", Level::fast(), None);
    let damaged = [&good[..10], &[0xff; 100], &all].concat();
    let packed = [good.as_slice(), &good, &damaged, &good].concat();
    let start = std::time::Instant::now();
    let (bytes, error) = unpack(&packed, 2);
    let error = error.unwrap();
    assert!(bytes == b"goodgood" && error.contains("nothing after it was read"), "{error}");
    assert!(start.elapsed().as_secs() < 120, "{:?}", start.elapsed());
}

#[test]
fn the_last_block_is_used_and_said_to_be_perhaps_wrong() {
    let plain = noise(6000, 12);
    let (mut packed, _) = in_blocks(&plain, 2000);
    let end = packed.len();
    packed[end - 8] ^= 1;
    let (bytes, error) = unpack(&packed, 2);
    let error = error.unwrap();
    assert!(bytes == plain && error.contains("checksum") && error.contains("may be wrong"), "{error}");
}

#[test]
fn zeros_behind_a_large_member_are_padding() {
    let plain = [noise(1 << 20, 13), vec![0; 9 << 20]].concat();
    for packed in [member(&plain, Level::fast(), None), member(&plain, Level::fast(), None).repeat(2)] {
        let plain = plain.repeat(1 + usize::from(packed.len() > 2_000_000));
        for padding in [1, 4, 700, 100_000] {
            let padded = [packed.as_slice(), &vec![0; padding]].concat();
            assert!(unpack(&padded, 2) == (plain.clone(), None), "{padding}");
            let (bytes, error) = unpack(&[padded.as_slice(), b"x"].concat(), 2);
            assert!(bytes == plain && error.is_some_and(|error| error.contains("not gzip")), "{padding}");
        }
        // The position of a stream error is reported.
        let (bytes, error) = unpack(&packed[..packed.len() - 4], 2);
        let after = format!("after {} unpacked bytes", plain.len());
        assert!(bytes == plain && error.is_some_and(|error| error.contains(&after)));
    }
    let dump = zoo();
    let padded = [member(&tar(&[("a", &dump)]), Level::fast(), None), vec![0; 300]].concat();
    assert!(unpack(&padded, 1) == (dump, None));
}

#[test]
fn the_length_is_known_before_as_far_as_it_can_be() {
    let plain = noise(3_000_000, 6);
    let expected = |packed: &[u8]| {
        let out = Memory::default();
        packed::unpack(packed, Compression::detect(packed).unwrap(), &out, &|_| {}).unwrap();
        out.expected.into_inner().unwrap()
    };
    assert_eq!(expected(&member(&plain, Level::fast(), None)), Some(Size::AtLeast(3_000_000)));
    let about = |packed: &[u8]| {
        let Some(Size::About(bytes)) = expected(packed) else { panic!("an estimate") };
        bytes
    };
    let bytes = about(&in_blocks(&plain, 50_000).0);
    assert!((2_900_000..3_100_000).contains(&bytes), "{bytes}");
    // Blocks that pack a thousand times better say nothing of the others: the first one; each second one.
    let (zeros, parts) = (vec![0; 1 << 20], plain.chunks(50_000));
    let bytes = about(&[member(&zeros, Level::fast(), None), in_blocks(&plain, 50_000).0].concat());
    assert!((2_900_000..5_000_000).contains(&bytes), "{bytes}");
    let bytes = about(&members(&parts.flat_map(|part| [part, &zeros]).collect::<Vec<_>>(), None).0);
    let is = 3_000_000 + (60 << 20);
    assert!((is / 2..is * 2).contains(&bytes), "{bytes} of {is}");
    // With two this is unknown.
    assert_eq!(expected(&members(&[&zeros, &plain], None).0), None);
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.set_pledged_src_size(Some(3_000_000)).unwrap();
    encoder.write_all(&plain).unwrap();
    assert_eq!(expected(&encoder.finish().unwrap()), Some(Size::Stated(3_000_000)));
    let dump = zoo();
    let size = Some(Size::Stated(dump.len() as u64));
    assert_eq!(expected(&tar(&[("a", &dump)])), size);
    assert_eq!(expected(&member(&tar(&[("a", &dump)]), Level::fast(), None)), size);
    for method in [0, 8, 93] {
        assert_eq!(expected(&zip(&[("a", &dump, method)])), size);
    }
    // The last bytes of a cut file are no length.
    let cut = member(&vec![0; 3_000_000], Level::fast(), None);
    let mut cut = cut[..cut.len() / 2].to_vec();
    cut.extend([0xff; 4]);
    assert_eq!(expected(&cut), None);
}

/// As `pzstd` writes it: before each frame a skippable one with its length.
#[test]
fn frames_that_are_skipped_may_come_first() {
    let dump = heap();
    let (first, second) = dump.split_at(dump.len() / 2);
    let packed: Vec<u8> = [first, second]
        .iter()
        .flat_map(|part| {
            let frame = zstd::encode_all(*part, 1).unwrap();
            let length = u32::try_from(frame.len()).unwrap().to_le_bytes();
            [&[0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0][..], &length, &frame].concat()
        })
        .collect();
    assert_eq!(Compression::detect(&packed), Some(Compression::Zstd));
    assert!(unpack(&packed, 2) == (dump.clone(), None));
    let place = Folder::new();
    let answer = |name: &str, bytes: &[u8]| place.run(&["histo", &place.write(name, bytes)]).stdout;
    let (of_packed, of_plain) = (answer("heap.hprof.zst", &packed), answer("heap.hprof", &dump));
    assert!(!of_plain.is_empty() && of_packed == of_plain);
}

#[test]
fn what_gives_nothing_is_looked_at_so_far_only() {
    let dump = heap();
    let nothing = [
        // Members without a byte; one of stored parts without a byte; empty and skippable
        // frames.
        (Compression::Gzip, member(b"", Level::fast(), None), member(&dump, Level::fast(), None)),
        (
            Compression::Zstd,
            [&zstd::encode_all(&[][..], 1).unwrap()[..], &[0x50, 0x2a, 0x4d, 0x18, 200, 0, 0, 0], &[7; 200]]
                .concat(),
            zstd::encode_all(dump.as_slice(), 1).unwrap(),
        ),
    ];
    for (compression, part, packed) in nothing {
        // Some of it is accepted; a file that consists only of it is not read to its end.
        let some = [part.repeat(50_000 / part.len()), packed.clone()].concat();
        assert!(unpack(&some, 2) == (dump.clone(), None) && compression.peek(&some, 4096).1.is_none());
        let much = [part.repeat(500_000 / part.len()), packed].concat();
        let (bytes, error) = compression.peek(&much, 4096);
        let error = error.expect("an account").to_string();
        assert!(
            bytes.is_empty() && error == "its first 266240 compressed bytes unpack to only 0 bytes",
            "{error}"
        );
        let place = Folder::new();
        let output = place.run(&["histo", &place.write("nothing", &much)]);
        assert!(code(&output) == 2 && stderr(&output).contains("only 0 bytes"), "{}", stderr(&output));
    }
    let mut stored = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    stored.extend([0, 0, 0, 0xff, 0xff].repeat(100_000));
    stored.extend([1, 1, 0, 0xfe, 0xff, b'J']);
    assert!(Compression::Gzip.peek(&stored, 4096).0.is_empty());
}

#[test]
fn a_cut_block_file_is_answered_with_an_account() {
    let place = Folder::new();
    let packed = std::fs::read(sample_path("jdk/jdk17-gz.hprof.gz")).unwrap();
    let cut = place.write("cut", &packed[..packed.len() * 2 / 3]);
    let output = place.run(&["info", &cut]);
    assert_eq!(code(&output), 3);
    let said = stderr(&output);
    assert!(
        said.contains("compressed file is truncated") && said.contains("in the middle of a block"),
        "{said}"
    );
    // A damaged block of strings, classes or objects loses only its contents.
    let starts: Vec<usize> = memchr::memmem::find_iter(&packed, b"\x1f\x8b\x08\0\0\0").collect();
    assert_eq!(starts.len(), 3, "four blocks, the first with a comment");
    let mut block = Vec::new();
    flate2::read::GzDecoder::new(&packed[starts[1]..]).read_to_end(&mut block).unwrap();
    let mut spoiled = packed.clone();
    spoiled[starts[1] + 10_000] ^= 0xff;
    let path = place.write("spoiled", &spoiled);
    let (whole, output) =
        (place.run(&["histo", "samples/jdk/jdk17-gz.hprof.gz", "--top", "0"]), place.run(&["histo", &path]));
    assert_eq!((code(&whole), code(&output)), (0, 3), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(
        said.contains(&format!("at least {} bytes are missing and were replaced with zeros", block.len())),
        "{said}"
    );
    let objects = |output: &std::process::Output| -> u64 {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let total = text.lines().find(|line| line.ends_with("total")).unwrap();
        total.split_whitespace().next().unwrap().replace(',', "").parse().unwrap()
    };
    let (all, some) = (objects(&whole), objects(&output));
    // Strings and classes come first: of a heap of one and a half blocks, one is lost.
    assert!(some < all && some > all / 4, "{some} of {all}");
}

/// A file may not become larger than some kilobytes: the same to a program as a disk that is full.
#[test]
#[cfg(unix)]
fn a_full_disk_is_an_error_and_leaves_nothing() {
    let place = Folder::new();
    let dump = noise(3 << 20, 7);
    let dump = [zoo(), dump].concat();
    for (number, packed) in [
        in_blocks(&dump, 100_000).0,
        member(&dump, Level::fast(), None),
        zstd::encode_all(dump.as_slice(), 1).unwrap(),
        tar(&[("heap.hprof", &dump)]),
    ]
    .iter()
    .enumerate()
    {
        let name = format!("full-{number}");
        let path = place.write(&name, packed);
        for threads in ["1", "3"] {
            let script = "trap '' XFSZ; ulimit -f 1000; exec \"$0\" \"$@\"";
            let mut command = std::process::Command::new("sh");
            command.args(["-c", script, env!("CARGO_BIN_EXE_hprof-cli"), "histo", &path]);
            command.args(["--threads", threads]).env("HPROF_CLI_INDEX_DIR", place.path("index"));
            let output = command.output().unwrap();
            let error = stderr(&output);
            assert_eq!(code(&output), 2, "{error}");
            assert!(error.contains("cannot unpack") && error.contains("--index-dir"), "{error}");
            assert!(files_of(&place, &name).is_empty(), "{name}");
        }
    }
}

/// A directory of the index that cannot be made, not by root either.
#[test]
#[cfg(unix)]
fn without_a_place_for_the_index_the_copy_lies_in_the_temporary_directory_and_has_no_name() {
    let place = Folder::new();
    let dump = heap();
    let plain = place.run(&["histo", &place.write("plain.hprof", &dump)]);
    let no_place = place.text("plain.hprof/index");
    let temporary = place.path("temporary");
    std::fs::create_dir(&temporary).unwrap();
    for (name, packed) in [
        ("gz", member(&dump, Level::fast(), None)),
        ("blocks", in_blocks(&dump, 50_000).0),
        ("tar", tar(&[("a", &dump)])),
    ] {
        let path = place.write(name, &packed);
        let arguments = ["histo", &path, "--index-dir", &no_place];
        let output = place.command(&arguments).env("TMPDIR", &temporary).output().unwrap();
        assert_eq!((code(&output), &output.stdout), (0, &plain.stdout), "{name}: {}", stderr(&output));
        assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "{name}");
        // The copy is written there.
        let output = place.command(&arguments).env("TMPDIR", place.path("nowhere")).output().unwrap();
        let said = stderr(&output);
        assert!(code(&output) == 2 && said.contains("cannot unpack") && said.contains("nowhere"), "{said}");
    }
}

#[test]
fn why_nothing_can_be_unpacked_is_said() {
    let place = Folder::new();
    let whole = zstd::encode_all(heap().as_slice(), 1).unwrap();
    // Zstandard returns nothing before its first block is complete.
    let cut = whole[..5000].to_vec();
    let mut damaged = whole;
    damaged[7..300].fill(0xff);
    // One byte in a window of 2 GiB.
    let large = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 21 << 3, 9, 0, 0, b'J'];
    for (name, packed, said, advised) in [
        ("cut", cut, "nothing in the zstd file can be unpacked: ", "copy it again or make a new dump"),
        (
            "damaged",
            damaged,
            "nothing in the zstd file can be unpacked: ",
            "copy it again or make a new dump",
        ),
        ("large", large, "its window is larger than 128 MiB", "zstd --long"),
        ("empty", member(b"", Level::fast(), None), "the gzip file contains no data", "make a new dump"),
        (
            "page",
            member(b"<html><body>", Level::fast(), None),
            "it looks like HTML",
            "the error of the server",
        ),
    ] {
        let output = place.run(&["histo", &place.write(name, &packed)]);
        let error = stderr(&output);
        assert!(code(&output) == 2 && error.contains(said) && error.contains(advised), "{name}: {error}");
    }
}
