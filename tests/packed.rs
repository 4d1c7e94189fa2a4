//! Dumps that are packed: gzip in blocks, cut and damaged, tar and zip archives, disks without room.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing
)]

mod support;
mod texts;

use std::io::{self, Read, Write};
use std::sync::Mutex;

use flate2::{Compression as Level, Crc, GzBuilder};
use hprof_cli::hprof::packed::{self, Compression, Output, Size, UnpackError, Unpacked};
use support::{Options, examples};
use texts::{Place, code, sample_path, stderr};

/// What was unpacked, in memory.
#[derive(Default)]
struct Memory {
    bytes: Mutex<Vec<u8>>,
    passed: Mutex<Vec<u8>>,
    expected: Mutex<Option<Size>>,
}

impl Output for Memory {
    fn expect(&self, size: Size) -> io::Result<()> {
        assert!(self.passed.lock().unwrap().is_empty() && self.expected.lock().unwrap().is_none());
        *self.expected.lock().unwrap() = Some(size);
        Ok(())
    }

    fn pass(&self, bytes: &[u8]) -> io::Result<()> {
        self.passed.try_lock().expect("one thread at a time").extend_from_slice(bytes);
        Ok(())
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut all = self.bytes.lock().unwrap();
        let at = at as usize;
        if all.len() < at + bytes.len() {
            all.resize(at + bytes.len(), 0xEE);
        }
        all[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

fn try_unpack(packed: &[u8], threads: usize) -> Result<(Vec<u8>, Unpacked), UnpackError> {
    let compression = Compression::of(packed).expect("it is packed");
    let out = Memory::default();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let unpacked = pool.install(|| packed::unpack(packed, compression, &out, &|_| {}))?;
    let bytes = out.bytes.into_inner().unwrap();
    assert_eq!(unpacked.len, bytes.len() as u64);
    assert!(out.passed.into_inner().unwrap() == bytes, "all bytes are passed once, in their order");
    Ok((bytes, unpacked))
}

fn unpack(packed: &[u8], threads: usize) -> (Vec<u8>, Option<String>) {
    let (bytes, unpacked) = try_unpack(packed, threads).unwrap();
    (bytes, unpacked.error)
}

/// Bytes that do not pack well, other ones for each seed.
fn noise(len: usize, mut seed: u64) -> Vec<u8> {
    (0..len)
        .map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 40) as u8
        })
        .collect()
}

fn member(bytes: &[u8], level: Level, comment: Option<&str>) -> Vec<u8> {
    let builder = comment.map_or_else(GzBuilder::new, |comment| GzBuilder::new().comment(comment));
    let mut encoder = builder.write(Vec::new(), level);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Members, and where each begins, packed and unpacked; the ends too.
fn members(parts: &[&[u8]], comment: Option<&str>) -> (Vec<u8>, Vec<(usize, usize)>) {
    let (mut packed, mut places, mut len) = (Vec::new(), vec![(0, 0)], 0);
    for (number, part) in parts.iter().enumerate() {
        packed.extend(member(part, Level::fast(), comment.filter(|_| number == 0)));
        len += part.len();
        places.push((packed.len(), len));
    }
    (packed, places)
}

fn in_blocks(all: &[u8], block: usize) -> (Vec<u8>, Vec<(usize, usize)>) {
    let parts: Vec<&[u8]> = all.chunks(block).collect();
    members(&parts, Some(&format!("HPROF BLOCKSIZE={block}")))
}

fn zoo() -> Vec<u8> {
    examples::zoo().write(&Options::hotspot()).bytes()
}

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
    // Members in members, not packed: headers stand everywhere in their data.
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
        // Between two blocks nobody can tell.
        assert_eq!(error.is_some(), whole.0 != cut, "{cut}: {error:?}");
        // Of the block that is cut there is about as much as of its packed bytes.
        assert!(bytes.len() + 600 >= whole.1 + (cut - whole.0), "{cut}: {} bytes", bytes.len());
    }
}

#[test]
fn a_damaged_block_is_read_as_zeros_and_the_others_as_they_are() {
    let plain = noise(14_000, 4);
    let (packed, places) = in_blocks(&plain, 2000);
    for at in (0..packed.len()).step_by(7) {
        let mut spoiled = packed.clone();
        spoiled[at] ^= 0x55;
        let block = places.windows(2).position(|pair| (pair[0].0..pair[1].0).contains(&at)).unwrap();
        let (from, to) = (places[block].1, places[block + 1].1);
        let is_last = block + 2 == places.len();
        let Some(_) = Compression::of(&spoiled) else { continue };
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
        let said = if block == 0 { "read as zeros" } else { "at least 2000 bytes" };
        assert!(error.contains(&place) && error.contains(said), "{at}: {error}");
        assert!(error.contains("may stand too early"), "{at}: {error}");
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
    assert!(error.matches("is damaged").count() == 3 && error.contains("7 more such blocks"), "{error}");
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
            error.contains("at least 2000 bytes") && error.contains("what is behind stands too early"),
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
        // The length in front of it is a likely one.
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
            assert!(bytes == plain && error.is_some_and(|error| error.contains("no gzip")), "{padding}");
        }
        // Where an error of a stream comes is said.
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
        packed::unpack(packed, Compression::of(packed).unwrap(), &out, &|_| {}).unwrap();
        out.expected.into_inner().unwrap()
    };
    assert_eq!(expected(&member(&plain, Level::fast(), None)), Some(Size::AtLeast(3_000_000)));
    let Some(Size::About(bytes)) = expected(&in_blocks(&plain, 50_000).0) else { panic!("an estimate") };
    assert!((2_900_000..3_100_000).contains(&bytes), "{bytes}");
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

/// A tar archive as POSIX has it, of files.
fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut all: Vec<u8> = files.iter().flat_map(|(name, bytes)| tar_entry(name, bytes, b'0')).collect();
    all.extend([0; 1024]);
    all
}

fn tar_entry(name: &str, bytes: &[u8], kind: u8) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..108].copy_from_slice(b"0000644\0");
    header[124..136].copy_from_slice(format!("{:011o}\0", bytes.len()).as_bytes());
    header[136..148].copy_from_slice(b"00000000000\0");
    header[148..156].copy_from_slice(b"        ");
    header[156] = kind;
    header[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header.extend_from_slice(bytes);
    header.resize(header.len().next_multiple_of(512), 0);
    header
}

/// A zip archive of files, each with the method by which it is packed.
fn zip(files: &[(&str, &[u8], u16)]) -> Vec<u8> {
    let (mut all, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes, method) in files {
        let packed = match method {
            8 => {
                let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), Level::fast());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            93 => zstd::encode_all(*bytes, 1).unwrap(),
            _ => bytes.to_vec(),
        };
        let mut crc = Crc::new();
        crc.update(bytes);
        let mut common = [20, 0, 0, 0].to_vec();
        common.extend(method.to_le_bytes());
        common.extend([0; 4]);
        common.extend(crc.sum().to_le_bytes());
        common.extend((packed.len() as u32).to_le_bytes());
        common.extend((bytes.len() as u32).to_le_bytes());
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0; 2]);
        directory.extend(b"PK\x01\x02\x14\0");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend((all.len() as u32).to_le_bytes());
        directory.extend(name.as_bytes());
        all.extend(b"PK\x03\x04");
        all.extend(&common);
        all.extend(name.as_bytes());
        all.extend(&packed);
    }
    let at = all.len() as u32;
    all.extend(&directory);
    all.extend(b"PK\x05\x06\0\0\0\0");
    all.extend((files.len() as u16).to_le_bytes().repeat(2));
    all.extend((directory.len() as u32).to_le_bytes());
    all.extend(at.to_le_bytes());
    all.extend([0; 2]);
    all
}

fn zstd_with_checksum(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// All forms of an archive with these files.
fn archives(files: &[(&str, &[u8])]) -> Vec<(&'static str, Vec<u8>)> {
    let tar = tar(files);
    let zip = |method| zip(&files.iter().map(|(name, bytes)| (*name, *bytes, method)).collect::<Vec<_>>());
    vec![
        ("tar in gzip", member(&tar, Level::fast(), None)),
        ("tar in zstd", zstd_with_checksum(&tar)),
        ("tar", tar),
        ("zip", zip(0)),
        ("zip", zip(8)),
        ("zip", zip(93)),
    ]
}

#[test]
fn the_one_dump_in_an_archive_is_found_however_it_is_packed() {
    let dump = zoo();
    let readme: &[u8] = b"JAVA PROFILE is not all";
    for inner in [
        dump.clone(),
        member(&dump, Level::fast(), None),
        in_blocks(&dump, 700).0,
        zstd::encode_all(dump.as_slice(), 1).unwrap(),
    ] {
        for (name, packed) in archives(&[("logs/read me", readme), ("no dump.hprof", b""), ("d", &inner)]) {
            assert_eq!(Compression::of(&packed).unwrap().name(), name);
            assert!(unpack(&packed, 2) == (dump.clone(), None), "{name}");
        }
        for (name, packed) in archives(&[("d", &inner), ("z", &noise(2000, 9))]) {
            assert!(unpack(&packed, 1) == (dump.clone(), None), "{name}");
        }
    }
}

#[test]
fn archives_without_a_dump_or_with_several_say_what_is_in_them() {
    let dump = zoo();
    let packed_dump = member(&dump, Level::fast(), None);
    for (name, packed) in archives(&[("a/one.hprof", &dump), ("x.txt", b"x"), ("two.gz", &packed_dump)]) {
        let Err(UnpackError::Members(members)) = try_unpack(&packed, 2) else { panic!("{name}") };
        let said = members.to_string();
        assert!(
            said.contains("2 heap dumps: a/one.hprof, two.gz") && members.file_count == 3,
            "{name}: {said}"
        );
    }
    for (name, packed) in archives(&[("x.txt", b"x"), ("y.txt", b"y")]) {
        let Err(UnpackError::Members(members)) = try_unpack(&packed, 2) else { panic!("{name}") };
        assert!(members.to_string().contains("no heap dump: x.txt, y.txt"), "{name}: {members}");
    }
    let names: Vec<String> = (0..50).map(|number| format!("file-{number}")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b"x"[..])).collect();
    for (name, packed) in archives(&files) {
        let Err(UnpackError::Members(members)) = try_unpack(&packed, 2) else { panic!("{name}") };
        assert!(members.to_string().contains("file-19, and 30 more"), "{name}: {members}");
    }
}

#[test]
fn long_names_directories_and_links_in_tar_archives_are_read() {
    let dump = zoo();
    let long = "directory/".repeat(25) + "heap.hprof";
    let pax = |name: &str| {
        let line = format!(" path={name}\n");
        let len = line.len() + 3;
        format!("{len}{line}").into_bytes()
    };
    let other = "o".repeat(150);
    let all = [
        tar_entry("directory/", b"", b'5'),
        tar_entry("link", b"", b'2'),
        tar_entry("pax_global_header", b"30 comment=0123456789abcdefgh\n", b'g'),
        tar_entry("././@LongLink", long.as_bytes(), b'L'),
        tar_entry("directory/directory", &dump, b'0'),
        tar_entry("PaxHeaders/x", &pax(&other), b'x'),
        tar_entry("ooo", &dump, b'0'),
        vec![0; 1024],
    ];
    let Err(UnpackError::Members(members)) = try_unpack(&all.concat(), 1) else { panic!("two dumps") };
    assert_eq!(members.dumps, [long, other]);
}

#[test]
fn archives_that_are_cut_or_damaged_are_used_as_far_as_they_go() {
    let dump = zoo();
    for (name, packed) in archives(&[("a.txt", b"a"), ("heap.hprof", &dump)]) {
        let mut used = 0;
        for cut in (0..packed.len()).step_by(53) {
            let cut = &packed[..cut];
            if Compression::of(cut) != Compression::of(&packed) {
                continue;
            }
            if let Ok((bytes, unpacked)) = try_unpack(cut, 2) {
                assert!(dump.starts_with(&bytes), "{name} {}", cut.len());
                assert!(unpacked.error.is_some() || bytes == dump, "{name} {}: nothing was said", cut.len());
                used = used.max(bytes.len());
            }
        }
        // A zip archive that is cut tells of its first file only.
        // Zstandard has nothing of a block that is not whole.
        assert!(
            ["zip", "tar in zstd"].contains(&name) || used > dump.len() / 2,
            "{name}: {used} of {}",
            dump.len()
        );
        for at in 0..packed.len() {
            let mut spoiled = packed.clone();
            spoiled[at] ^= 0xff;
            if Compression::of(&spoiled).is_some() {
                // Wrong bytes are said to be wrong. tar itself has no checksum of what is in it.
                if let Ok((bytes, unpacked)) = try_unpack(&spoiled, 1) {
                    let is_said = unpacked.error.is_some() || name == "tar";
                    assert!(bytes == dump || is_said, "{name}, byte {at}: nothing was said");
                }
            }
        }
    }
    for method in [0, 8] {
        let packed = zip(&[("heap.hprof", &dump, method)]);
        let (bytes, error) = unpack(&packed[..packed.len() - 30], 1);
        assert!(bytes == dump && error.unwrap().contains("list of its files"));
    }
    // A byte of the dump itself.
    let mut packed = zip(&[("heap.hprof", &dump, 8)]);
    packed[500] ^= 1;
    assert!(unpack(&packed, 1).1.is_some());
}

#[test]
fn what_is_wrong_behind_the_dump_in_an_archive_is_said() {
    let dump = [zoo(), noise(2 << 20, 14)].concat();
    let packed = tar(&[("heap.hprof", &dump), ("z", b"z")]);
    // The checksum, and the data of another file.
    let at_end = |packed: &[u8], back: usize| {
        let mut packed = packed.to_vec();
        let at = packed.len() - back;
        packed[at] ^= 1;
        unpack(&packed, 1)
    };
    let gzip = member(&packed, Level::fast(), None);
    for (packed, back) in [(&gzip, 8), (&gzip, 1), (&zstd_with_checksum(&packed), 1)] {
        let (bytes, error) = at_end(packed, back);
        assert!(bytes == dump && error.is_some());
    }
    let (bytes, error) = at_end(&packed, 1024 + 1024 - 2);
    assert!(bytes == dump && error.is_some_and(|error| error.contains("header")));
    // A byte of a dump that is stored.
    let mut stored = zip(&[("heap.hprof", &dump, 0)]);
    stored[1_000_000] ^= 1;
    assert!(unpack(&stored, 1).1.is_some_and(|error| error.contains("checksum")));
    // Cut in front of the dump.
    let packed = tar(&[("x", &noise(5000, 1)), ("heap.hprof", &dump)]);
    for packed in [packed[..3000].to_vec(), member(&packed[..3000], Level::fast(), None)] {
        let Err(UnpackError::Members(members)) = try_unpack(&packed, 1) else { panic!("a dump") };
        assert!(members.to_string().contains("the tar archive is cut"), "{members}");
    }
}

#[test]
fn a_dump_in_zstandard_in_an_archive_is_found_though_its_first_block_is_large() {
    let dump = [zoo(), noise(2 << 20, 15)].concat();
    let inner = zstd_with_checksum(&dump);
    for (name, packed) in archives(&[("x", b"x"), ("heap.hprof.zst", &inner)]) {
        assert!(unpack(&packed, 2) == (dump.clone(), None), "{name}");
    }
}

#[test]
fn sparse_files_are_no_dumps_and_links_have_no_bytes() {
    let dump = zoo();
    let pax = b"22 GNU.sparse.major=1\n34 GNU.sparse.name=sparse.hprof.1\n";
    let old = {
        // With a block more of its list of parts.
        let mut entry = tar_entry("old.hprof", &dump, b'S');
        entry[482] = 1;
        entry[148..156].fill(b' ');
        let sum: u32 = entry[..512].iter().map(|byte| u32::from(*byte)).sum();
        entry[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        [&entry[..512], &[0; 512], &entry[512..]].concat()
    };
    let sparse =
        [old, tar_entry("PaxHeaders/x", pax, b'x'), tar_entry("GNUSparseFile.1/x", &dump, b'0')].concat();
    let end = vec![0; 1024];
    for all in [
        [sparse.clone(), end.clone()].concat(),
        member(&[sparse.clone(), end.clone()].concat(), Level::fast(), None),
    ] {
        let Err(UnpackError::Members(members)) = try_unpack(&all, 1) else { panic!("a dump") };
        let said = members.to_string();
        assert!(
            said.contains("old.hprof (sparse: extract it with tar -xf), sparse.hprof.1 (sparse"),
            "{said}"
        );
        assert!(members.damage.is_none(), "{said}");
    }
    // A hard link states the length of what it links to.
    let link = tar_entry("link.hprof", &dump, b'1')[..512].to_vec();
    let all = [sparse, link, tar_entry("heap.hprof", &dump, b'0'), end].concat();
    for all in [all.clone(), member(&all, Level::fast(), None)] {
        assert!(unpack(&all, 1) == (dump.clone(), None));
    }
}

#[test]
fn archives_as_commands_see_them() {
    let place = Place::new();
    let dump = zoo();
    let plain = place.run(&["histo", &place.write("plain.hprof", &dump)]);
    for (number, (name, packed)) in archives(&[("x", b"x"), ("heap.hprof", &dump)]).iter().enumerate() {
        let path = place.write(&format!("archive-{number}"), packed);
        let output = place.run(&["histo", &path]);
        assert_eq!((code(&output), &output.stdout), (0, &plain.stdout), "{name}: {}", stderr(&output));
        let output = place.run(&["info", &path, "--format", "json"]);
        let info = String::from_utf8(output.stdout).unwrap();
        assert!(info.contains(&format!("\"compression\": \"{name}\"")), "{info}");
        assert!(info.contains(&format!("\"dump_bytes\": {}", dump.len())), "{info}");
    }
    // Names are escaped, and nothing is left of what was unpacked.
    let evil = "e\u{1b}[31m\u{202e}vil";
    for (name, packed) in archives(&[(evil, &dump), ("other", &dump)]) {
        let path = place.write("evil", &packed);
        let output = place.run(&["histo", &path]);
        let error = stderr(&output);
        assert!(
            code(&output) == 2 && error.contains("2 heap dumps") && error.contains("vil, other"),
            "{error}"
        );
        assert!(!error.contains(['\u{1b}', '\u{202e}']) && error.contains("hint"), "{name}: {error}");
        assert_eq!(files_of(&place, "evil"), ["lock"]);
    }
    // The copy of an older file is not kept beside what replaces it.
    let path = place.write("replaced", &tar(&[("heap.hprof", &dump)]));
    assert_eq!(code(&place.run(&["histo", &path])), 0);
    assert!(files_of(&place, "replaced").contains(&"unpacked.hprof".to_owned()));
    let path = place.write("replaced", &tar(&[("x", b"no dump"), ("y", b"here")]));
    assert_eq!(code(&place.run(&["histo", &path])), 2);
    assert!(!files_of(&place, "replaced").contains(&"unpacked.hprof".to_owned()));
}

/// The files in the index of a dump.
fn files_of(place: &Place, dump: &str) -> Vec<String> {
    let names = |dir: &std::path::Path| -> Vec<String> {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    };
    let index = names(&place.path("index")).into_iter().filter(|dir| dir.starts_with(dump));
    index.flat_map(|dir| names(&place.path("index").join(dir))).collect()
}

#[test]
fn a_cut_block_file_is_answered_with_an_account() {
    let place = Place::new();
    let packed = std::fs::read(sample_path("jdk/jdk17-gz.hprof.gz")).unwrap();
    let cut = place.write("cut", &packed[..packed.len() * 2 / 3]);
    let output = place.run(&["info", &cut]);
    assert_eq!(code(&output), 3);
    let said = stderr(&output);
    assert!(said.contains("compressed file is cut") && said.contains("in the middle of a block"), "{said}");
    // A block of strings, classes or objects that is damaged costs what is in it.
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
        said.contains(&format!("at least {} bytes are missing here and read as zeros", block.len())),
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
    let place = Place::new();
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
            assert_eq!(files_of(&place, &name), ["lock"]);
        }
    }
}
