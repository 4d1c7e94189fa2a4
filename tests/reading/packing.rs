//! Packs dumps for tests, by other means than what reads them, and unpacks them in memory.

use std::io::{self, Write};
use std::sync::Mutex;

use flate2::{Compression as Level, Crc, GzBuilder};
use hprof_input::packed::{self, Compression, Output, Size, UnpackError, UnpackOutcome};

use crate::kit::process::Folder;
use hprof_writer::{Elements, Options, examples};

/// Unpacked bytes, in memory.
#[derive(Default)]
pub struct Memory {
    pub bytes: Mutex<Vec<u8>>,
    pub passed: Mutex<Vec<u8>>,
    pub expected: Mutex<Option<Size>>,
}

impl Output for Memory {
    fn expect(&self, size: Size) -> io::Result<()> {
        assert!(self.passed.lock().unwrap().is_empty() && self.expected.lock().unwrap().is_none());
        *self.expected.lock().unwrap() = Some(size);
        Ok(())
    }

    fn receive(&self, bytes: &[u8]) -> io::Result<()> {
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

pub fn try_unpack(packed: &[u8], threads: usize) -> Result<(Vec<u8>, UnpackOutcome), UnpackError> {
    let compression = Compression::detect(packed).expect("it is packed");
    let out = Memory::default();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let unpacked = pool.install(|| packed::unpack(packed, compression, &out, &|_| {}))?;
    let bytes = out.bytes.into_inner().unwrap();
    assert_eq!(unpacked.len, bytes.len() as u64);
    assert!(out.passed.into_inner().unwrap() == bytes, "all bytes are passed once, in their order");
    Ok((bytes, unpacked))
}

pub fn unpack(packed: &[u8], threads: usize) -> (Vec<u8>, Option<String>) {
    let (bytes, unpacked) = try_unpack(packed, threads).unwrap();
    (bytes, unpacked.error)
}

/// Bytes that do not pack well, other ones for each seed.
pub fn noise(len: usize, mut seed: u64) -> Vec<u8> {
    (0..len)
        .map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 40) as u8
        })
        .collect()
}

pub fn member(bytes: &[u8], level: Level, comment: Option<&str>) -> Vec<u8> {
    let builder = comment.map_or_else(GzBuilder::new, |comment| GzBuilder::new().comment(comment));
    let mut encoder = builder.write(Vec::new(), level);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Members, and where each begins, packed and unpacked; the ends too.
pub fn members(parts: &[&[u8]], comment: Option<&str>) -> (Vec<u8>, Vec<(usize, usize)>) {
    let (mut packed, mut places, mut len) = (Vec::new(), vec![(0, 0)], 0);
    for (number, part) in parts.iter().enumerate() {
        packed.extend(member(part, Level::fast(), comment.filter(|_| number == 0)));
        len += part.len();
        places.push((packed.len(), len));
    }
    (packed, places)
}

pub fn in_blocks(all: &[u8], block: usize) -> (Vec<u8>, Vec<(usize, usize)>) {
    let parts: Vec<&[u8]> = all.chunks(block).collect();
    members(&parts, Some(&format!("HPROF BLOCKSIZE={block}")))
}

pub fn zoo() -> Vec<u8> {
    examples::zoo().write(&Options::hotspot()).bytes()
}

/// Creates a dump larger than the part of a file that is read to detect its format: an array of bytes that do not
/// compress well.
pub fn heap() -> Vec<u8> {
    let mut model = examples::zoo();
    let bytes = noise(400_000, 21).into_iter().map(u8::cast_signed).collect();
    model.prim_array(Elements::Byte(bytes));
    model.write(&Options::hotspot()).bytes()
}

/// A tar archive as POSIX has it, of files.
pub fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut all: Vec<u8> = files.iter().flat_map(|(name, bytes)| tar_entry(name, bytes, b'0')).collect();
    all.extend([0; 1024]);
    all
}

pub fn tar_entry(name: &str, bytes: &[u8], kind: u8) -> Vec<u8> {
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
pub fn zip(files: &[(&str, &[u8], u16)]) -> Vec<u8> {
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

pub fn zstd_with_checksum(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// All forms of an archive with these files.
pub fn archives(files: &[(&str, &[u8])]) -> Vec<(&'static str, Vec<u8>)> {
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

/// The files in the index of a dump.
pub fn files_of(place: &Folder, dump: &str) -> Vec<String> {
    let names = |dir: &std::path::Path| -> Vec<String> {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    };
    let index = names(&place.path("index")).into_iter().filter(|dir| dir.starts_with(dump));
    index.flat_map(|dir| names(&place.path("index").join(dir))).collect()
}

/// A zip archive of one file, as zip64 writes it: all lengths and places in fields of 64 bits.
pub fn zip64(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), Level::fast());
    encoder.write_all(bytes).unwrap();
    let packed = encoder.finish().unwrap();
    let mut crc = Crc::new();
    crc.update(bytes);
    let (len, packed_len) = (bytes.len() as u64, packed.len() as u64);
    let common = |extra: u16| {
        let mut common = [45, 0, 0, 0, 8, 0, 0, 0, 0, 0].to_vec();
        common.extend(crc.sum().to_le_bytes());
        common.extend([0xff; 8]);
        common.extend((name.len() as u16).to_le_bytes());
        common.extend(extra.to_le_bytes());
        common
    };
    let mut all = b"PK\x03\x04".to_vec();
    all.extend(common(20));
    all.extend(name.as_bytes());
    all.extend([1, 0, 16, 0]);
    all.extend([len, packed_len].map(u64::to_le_bytes).concat());
    all.extend(&packed);
    let directory = all.len() as u64;
    all.extend(b"PK\x01\x02\x2d\0");
    all.extend(common(28));
    all.extend([0; 10]);
    all.extend([0xff; 4]);
    all.extend(name.as_bytes());
    all.extend([1, 0, 24, 0]);
    all.extend([len, packed_len, 0].map(u64::to_le_bytes).concat());
    let end = all.len() as u64;
    all.extend(b"PK\x06\x06");
    all.extend(44_u64.to_le_bytes());
    all.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    all.extend([1, 1, end - directory, directory].map(u64::to_le_bytes).concat());
    all.extend(b"PK\x06\x07\0\0\0\0");
    all.extend(end.to_le_bytes());
    all.extend([1, 0, 0, 0]);
    all.extend(b"PK\x05\x06\0\0\0\0");
    all.extend([0xff; 12]);
    all.extend([0; 2]);
    all
}
