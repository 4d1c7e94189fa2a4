//! A dump in a tar or zip archive.

use crate::kit::process::{Folder, stderr};
use crate::kit::texts::code;
use crate::packing::{
    archives, files_of, heap, in_blocks, member, noise, tar, tar_entry, try_unpack, unpack, zip, zip64, zoo,
    zstd_with_checksum,
};
use flate2::Compression as Level;
use hprof_input::packed::{Compression, UnpackError};

#[test]
fn the_one_dump_in_an_archive_is_found_however_it_is_packed() {
    let dump = heap();
    let readme: &[u8] = b"JAVA PROFILE is not all";
    for inner in [
        dump.clone(),
        member(&dump, Level::fast(), None),
        in_blocks(&dump, 70_000).0,
        zstd::encode_all(dump.as_slice(), 1).unwrap(),
    ] {
        for (name, packed) in archives(&[("logs/read me", readme), ("no dump.hprof", b""), ("d", &inner)]) {
            assert_eq!(Compression::detect(&packed).unwrap().name(), name);
            assert!(unpack(&packed, 2) == (dump.clone(), None), "{name}");
        }
        for (name, packed) in archives(&[("d", &inner), ("z", &noise(2000, 9))]) {
            assert!(unpack(&packed, 1) == (dump.clone(), None), "{name}");
        }
    }
}

#[test]
fn archives_without_a_dump_or_with_several_say_what_is_in_them() {
    let dump = heap();
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

/// Names in an archive are as hostile as those in a dump.
#[test]
fn control_characters_in_names_of_archives_do_not_come_out() {
    let (one, two) = ("=evil\u{1b}[2J\u{202e}\u{7}.hprof", "\u{9b}1m\u{2066}.hprof");
    let (dump, place) = (heap(), Folder::new());
    let several = archives(&[(one, &dump), (two, &dump)]).into_iter().map(|made| (made, 2));
    let none = archives(&[(one, b"x"), (two, b"y")]).into_iter().map(|made| (made, 2));
    let damaged = archives(&[(one, &dump[..dump.len() / 2])]).into_iter().map(|made| (made, 3));
    for (number, ((kind, packed), expected)) in several.chain(none).chain(damaged).enumerate() {
        let output = place.run(&["info", &place.write(&number.to_string(), &packed)]);
        let said = stderr(&output) + std::str::from_utf8(&output.stdout).unwrap();
        assert_eq!(code(&output), expected, "{kind}: {said}");
        assert!(expected == 3 || said.contains("=evil\\u001b[2J"), "{kind}: {said}");
        let is_harmful = |c: char| {
            (c.is_control() && c != '\n') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        assert!(!said.chars().any(is_harmful), "{kind}: {said:?}");
    }
}

#[test]
fn long_names_directories_and_links_in_tar_archives_are_read() {
    let dump = heap();
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

/// Tests archives of a dump that are truncated, or in which one byte is changed, at regular offsets.
fn cut_and_damaged(dump: &[u8], cut_step: usize, byte_step: usize) {
    for (name, packed) in archives(&[("a.txt", b"a"), ("heap.hprof", dump)]) {
        let mut used = 0;
        for cut in (0..packed.len()).step_by(cut_step) {
            let cut = &packed[..cut];
            if Compression::detect(cut) != Compression::detect(&packed) {
                continue;
            }
            if let Ok((bytes, unpacked)) = try_unpack(cut, 2) {
                assert!(dump.starts_with(&bytes), "{name} {}", cut.len());
                assert!(unpacked.error.is_some() || bytes == dump, "{name} {}: nothing was said", cut.len());
                used = used.max(bytes.len());
            }
        }
        // A truncated zip archive contains only its first file. Zstandard returns nothing of an incomplete block.
        let is_used = used > dump.len() / 2 || ["zip", "tar in zstd"].contains(&name);
        assert!(is_used, "{name}: {used} of {}", dump.len());
        for at in (0..packed.len()).step_by(byte_step) {
            let mut spoiled = packed.clone();
            spoiled[at] ^= 0xff;
            if Compression::detect(&spoiled).is_some() {
                // Wrong bytes are reported as wrong. tar itself has no checksum of its contents.
                if let Ok((bytes, unpacked)) = try_unpack(&spoiled, 1) {
                    let is_said = unpacked.error.is_some() || name == "tar";
                    assert!(bytes == dump || is_said, "{name}, byte {at}: nothing was said");
                }
            }
        }
    }
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn archives_that_are_cut_or_damaged_are_used_as_far_as_they_go() {
    cut_and_damaged(&zoo(), 53, 1);
    let dump = heap();
    cut_and_damaged(&dump, 4001, 1009);
    for method in [0, 8] {
        let packed = zip(&[("heap.hprof", &dump, method)]);
        let (bytes, error) = unpack(&packed[..packed.len() - 30], 1);
        assert!(bytes == dump && error.unwrap().contains("central directory"));
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
        assert!(members.to_string().contains("the tar archive is truncated"), "{members}");
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
    let dump = heap();
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
    let place = Folder::new();
    let dump = heap();
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
        assert!(files_of(&place, "evil").is_empty(), "{name}");
    }
    // The copy of an older file is not kept beside what replaces it.
    let path = place.write("replaced", tar(&[("heap.hprof", &dump)]));
    assert_eq!(code(&place.run(&["histo", &path])), 0);
    assert!(files_of(&place, "replaced").contains(&"unpacked.hprof".to_owned()));
    let path = place.write("replaced", tar(&[("x", b"no dump"), ("y", b"here")]));
    assert_eq!(code(&place.run(&["histo", &path])), 2);
    assert!(!files_of(&place, "replaced").contains(&"unpacked.hprof".to_owned()));
}

/// A field of the directory's only entry, counted from the entry's start.
fn with_field(packed: &[u8], at: usize, value: u32) -> Vec<u8> {
    let mut packed = packed.to_vec();
    let entry = memchr::memmem::rfind(&packed, b"PK\x01\x02").unwrap();
    packed[entry + at..entry + at + 4].copy_from_slice(&value.to_le_bytes());
    packed
}

#[test]
fn a_zip_directory_that_lies_gives_no_byte_that_is_not_there() {
    let dump = heap();
    for method in [0, 8, 93] {
        let packed = zip(&[("heap.hprof", &dump, method)]);
        let (packed_len, offset) = (packed.len() as u32, 42);
        // Its position: nowhere, after everything, in the directory, in the middle of the data.
        for lie in [u32::MAX, u32::MAX - 1, packed_len, packed_len - 1, packed_len - 60, 1000] {
            let Err(UnpackError::Members(members)) = try_unpack(&with_field(&packed, offset, lie), 1) else {
                panic!("method {method}, at {lie}: a dump")
            };
            assert!(members.to_string().contains("no heap dump: heap.hprof"), "{members}");
        }
        // Its packed length: more than exists, including the directory; or less.
        for lie in [u32::MAX - 1, packed_len, 200_000] {
            let (bytes, error) = unpack(&with_field(&packed, 20, lie), 1);
            let is_more = lie > 200_000;
            if is_more && method == 0 {
                // Stored: only the directory states its end.
                assert!(bytes.starts_with(&dump) && bytes.len() < packed.len());
            } else {
                assert!(
                    dump.starts_with(&bytes) && (bytes.len() == dump.len()) == is_more,
                    "{}",
                    bytes.len()
                );
            }
            assert!(error.is_some(), "method {method}, {lie} packed bytes: nothing was said");
        }
        // Its unpacked length: the actual one counts.
        for lie in [u32::MAX - 1, 1_000_000, 0, 1] {
            assert!(unpack(&with_field(&packed, 24, lie), 1).0 == dump, "method {method}, {lie} bytes");
        }
        // The lengths of its name and of the field after that.
        for field in [28, 30] {
            let error = try_unpack(&with_field(&packed, field, u32::MAX), 1);
            assert!(matches!(error, Err(UnpackError::Members(_))), "method {method}, field {field}");
        }
    }
    // One dump, named by two entries.
    let packed = zip(&[("a", &dump, 8), ("b", &dump, 8)]);
    let Err(UnpackError::Members(members)) = try_unpack(&with_field(&packed, 42, 0), 1) else {
        panic!("one")
    };
    assert_eq!(members.dump_count, 2);
}

#[test]
fn zip64_is_read_and_cut_anywhere_used_as_far_as_it_goes() {
    let dump = heap();
    let packed = zip64("heap.hprof", &dump);
    assert!(unpack(&packed, 1) == (dump.clone(), None));
    let data_end = memchr::memmem::rfind(&packed, b"PK\x01\x02").unwrap();
    for cut in (100..data_end).step_by(5003).chain(data_end - 3..packed.len() - 2) {
        match try_unpack(&packed[..cut], 1) {
            Ok((bytes, unpacked)) => {
                assert!(dump.starts_with(&bytes) && unpacked.error.is_some(), "{cut}");
                assert!(cut < data_end || bytes == dump, "{cut}: {} bytes", bytes.len());
                assert!(bytes.len() + 40_000 >= cut.min(dump.len()), "{cut}: {} bytes", bytes.len());
            }
            Err(error) => assert!(cut < 1000, "{cut}: {error}"),
        }
    }
    // The record with the wide fields is pointed to by what lies: the first file is what is left.
    let end = memchr::memmem::rfind(&packed, b"PK\x06\x07").unwrap() + 8;
    for lie in [0, 1000, packed.len() as u64, u64::MAX] {
        let mut packed = packed.clone();
        packed[end..end + 8].copy_from_slice(&lie.to_le_bytes());
        match try_unpack(&packed, 1) {
            Ok((bytes, unpacked)) => assert!(bytes == dump && unpacked.error.is_some(), "{lie}"),
            Err(error) => assert!(error.to_string().contains("central directory"), "{lie}: {error}"),
        }
    }
}

#[test]
fn how_to_take_one_dump_out_of_several_is_said() {
    let place = Folder::new();
    let dump = heap();
    for (name, packed) in archives(&[("a/one.hprof", &dump), ("two\nthree.hprof", &dump)]) {
        let output = place.run(&["histo", &place.write("several", &packed)]);
        let said = stderr(&output);
        assert_eq!(code(&output), 2);
        assert!(said.contains("2 heap dumps: a/one.hprof, two\\nthree.hprof"), "{name}: {said}");
        let how = if name == "zip" { "unzip -p ARCHIVE NAME" } else { "tar -xOf ARCHIVE NAME" };
        assert!(said.contains(how), "{name}: {said}");
    }
}

#[test]
fn why_a_file_in_an_archive_cannot_be_looked_into_is_said_behind_its_name() {
    // A frame of Zstandard that claims a window of 2 GiB.
    let frame = [&[0x28, 0xb5, 0x2f, 0xfd, 0, 21 << 3, 0x21, 0, 0][..], b"JAVA"].concat();
    for (name, packed) in archives(&[("heap.hprof.zst", &frame)]) {
        let Err(UnpackError::Members(members)) = try_unpack(&packed, 1) else { panic!("{name}") };
        let said = members.to_string();
        assert!(said.contains("heap.hprof.zst (its window is larger than 128 MiB"), "{name}: {said}");
    }
}

/// A Zstandard frame of these bytes, each kept as it is or, with a count, repeated as often: four bytes for 128 KiB.
fn frame(parts: &[(&[u8], usize)]) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3];
    for (bytes, repeated) in parts {
        for raw in bytes.chunks(100_000) {
            frame.extend(&((raw.len() as u32) << 3).to_le_bytes()[..3]);
            frame.extend(raw);
        }
        let block = [&((128_u32 << 10) << 3 | 2).to_le_bytes()[..3], &[0]].concat();
        frame.extend(block.repeat(repeated / (128 << 10)));
    }
    frame.extend([1, 0, 0]);
    frame
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: cargo test --features long-tests")]
fn of_what_is_not_the_dump_no_more_is_unpacked_than_is_in_proportion() {
    // The header of a file of zeros, without them.
    let zeros_header = |name: &str, bytes: usize| {
        let mut header = tar_entry(name, b"", b'0');
        header[124..136].copy_from_slice(format!("{bytes:011o}\0").as_bytes());
        header[148..156].fill(b' ');
        let sum: u32 = header[..512].iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        header
    };
    let dump = zoo();
    let (entry, end) = (tar_entry("heap.hprof", &dump, b'0'), [0; 1024]);
    // Some hundred MB beside the dump are a usual thing, however well they pack.
    let some = 300 << 20;
    let packed = frame(&[(&zeros_header("a", some), some), (&entry, 0), (&end, some)]);
    assert!(unpack(&packed, 1) == (dump.clone(), None));
    let much = 3 << 29;
    let header = zeros_header("a", much);
    let refused = [
        // Before the dump, or what is there of a header.
        frame(&[(&header, much), (&entry, 0), (&end, 0)]),
        frame(&[(&entry, 0), (&entry, 0), (&zeros_header("a", some), some), (&header, much), (&end, 0)]),
    ];
    for packed in refused {
        let Err(UnpackError::Members(members)) = try_unpack(&packed, 1) else { panic!("a dump") };
        assert!(members.to_string().contains("besides the dump"), "{members}");
    }
    let gzip = member(&dump, Level::fast(), None);
    let mut gzip_entry = zeros_header("heap.hprof.gz", gzip.len() + much);
    gzip_entry.extend(&gzip);
    let plain_gzip = frame(&[(&gzip, much)]);
    let unpacked = [
        // Behind the dump; behind the end; in a packed dump, as padding.
        frame(&[(&entry, 0), (&header, much), (&end, 0)]),
        frame(&[(&entry, 0), (&end, much)]),
        frame(&[(&gzip_entry, much), (&end, 0)]),
        zip_of_frame("heap.hprof.gz", &plain_gzip, gzip.len() + much),
    ];
    for (number, packed) in unpacked.iter().enumerate() {
        let (bytes, error) = unpack(packed, 1);
        let error = error.unwrap_or_else(|| panic!("{number}: nothing was said"));
        assert!(bytes == dump && error.contains("besides the dump"), "{number}: {error}");
    }
}

/// A directory may name the same bytes any number of times: each look at them costs as much as the first.
#[test]
fn a_zip_directory_that_names_the_same_bytes_again_and_again_is_not_followed_for_ever() {
    let dump = heap();
    let one = zip(&[("again", &dump, 8)]);
    let entry = memchr::memmem::rfind(&one, b"PK\x01\x02").unwrap();
    let end = memchr::memmem::rfind(&one, b"PK\x05\x06").unwrap();
    let count = 3000_u16;
    let mut packed = one[..entry].to_vec();
    (0..count).for_each(|_| packed.extend(&one[entry..end]));
    packed.extend(b"PK\x05\x06\0\0\0\0");
    packed.extend(count.to_le_bytes().repeat(2));
    packed.extend((u32::from(count) * (end - entry) as u32).to_le_bytes());
    packed.extend((entry as u32).to_le_bytes());
    packed.extend([0; 2]);
    let Err(UnpackError::Members(members)) = try_unpack(&packed, 1) else { panic!("one dump") };
    // As many bytes as there are, and no more.
    let looks = packed.len() / entry.min(1 << 18) + 1;
    assert!((2..=looks as u64).contains(&members.dump_count), "{} of {looks}", members.dump_count);
    assert_eq!(members.file_count, u64::from(count));
    // This many files side by side are all examined.
    let names: Vec<String> = (0..count).map(|number| format!("log-{number}")).collect();
    let mut files: Vec<(&str, &[u8], u16)> = names.iter().map(|name| (name.as_str(), &b"x"[..], 8)).collect();
    files.push(("heap.hprof", &dump, 8));
    assert!(unpack(&zip(&files), 1) == (dump, None));
}

/// A zip archive of one file that is packed already.
fn zip_of_frame(name: &str, frame: &[u8], bytes: usize) -> Vec<u8> {
    // Stored, and then said to be packed.
    let mut packed = zip(&[(name, frame, 0)]);
    let entry = memchr::memmem::rfind(&packed, b"PK\x01\x02").unwrap();
    packed[8] = 93;
    packed[entry + 10] = 93;
    with_field(&packed, 24, bytes as u32)
}
