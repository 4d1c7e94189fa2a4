//! Positions of the records of a dump: top-level ones and those in heap dumps.

/// A record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    /// Offset of its tag.
    pub at: usize,
    pub end: usize,
    /// Offset of a four-byte length or count.
    pub count: Option<usize>,
    /// Tag.
    pub tag: u8,
}

/// The records of a dump, in the order of the file.
#[derive(Debug, Default)]
pub struct Map {
    /// Length of the header.
    pub header: usize,
    pub id_bytes: usize,
    pub records: Vec<Spot>,
    /// Records in heap dumps.
    pub inner: Vec<Spot>,
}

/// Tags of records and sub-records.
pub const TAGS: [u8; 36] = [
    0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x0A, 0x0B, 0x0C, 0x0D, 0x0E, 0x1C, 0x20, 0x21, 0x22,
    0x23, 0x2C, 0x89, 0x8A, 0x8B, 0x8C, 0x8D, 0x8E, 0x90, 0xC3, 0xFE, 0xFF, 0x00, 0x09, 0x24, 0x2D, 0x80,
    0x7F, 0x3B,
];

fn number(bytes: &[u8], at: usize, width: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(width)?)?;
    Some(bytes.iter().fold(0usize, |value, byte| (value << 8) | usize::from(*byte)))
}

/// Returns the size of a value in bytes.
fn value_bytes(kind: u8, id_bytes: usize) -> Option<usize> {
    match kind {
        2 => Some(id_bytes),
        4 | 8 => Some(1),
        5 | 9 => Some(2),
        6 | 10 => Some(4),
        7 | 11 => Some(8),
        _ => None,
    }
}

impl Map {
    /// Walks over a dump, up to the first invalid record. `None` if it has no header.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let name =
            bytes.starts_with(b"JAVA PROFILE 1.0.").then(|| bytes.iter().position(|byte| *byte == 0))??;
        let id_bytes = number(bytes, name + 1, 4).filter(|id_bytes| matches!(id_bytes, 4 | 8))?;
        let mut map = Self { header: name + 13, id_bytes, ..Self::default() };
        let mut at = map.header;
        while let Some(len) = number(bytes, at + 5, 4).filter(|len| at + 9 + len <= bytes.len()) {
            let spot = Spot { at, end: at + 9 + len, count: Some(at + 5), tag: bytes[at] };
            map.records.push(spot);
            if matches!(spot.tag, 0x0C | 0x1C) {
                let mut inner = at + 9;
                while let Some(spot) = sub_record(bytes, inner, id_bytes).filter(|sub| sub.end <= spot.end) {
                    map.inner.push(spot);
                    inner = spot.end;
                }
            }
            at = spot.end;
        }
        Some(map)
    }

    /// Returns the IDs of objects, each with the end offset of its record.
    pub fn objects<'m>(&'m self, bytes: &'m [u8]) -> impl Iterator<Item = (usize, u64)> + 'm {
        let objects = self.inner.iter().filter(|spot| (0x20..=0x23).contains(&spot.tag));
        objects.filter_map(|spot| Some((spot.end, number(bytes, spot.at + 1, self.id_bytes)? as u64)))
    }

    /// Returns whether an offset is inside a heap dump.
    pub fn is_in_heap(&self, place: usize) -> bool {
        let before = self.records.partition_point(|spot| spot.at < place);
        let last = before.checked_sub(1).and_then(|last| self.records.get(last));
        last.is_some_and(|spot| matches!(spot.tag, 0x0C | 0x1C) && place < spot.end)
    }
}

/// Returns the sub-record at an offset.
fn sub_record(bytes: &[u8], at: usize, id_bytes: usize) -> Option<Spot> {
    let tag = *bytes.get(at)?;
    let body = at + 1;
    let fixed = |len| Some((body + len, None));
    let counted = |count: usize, rest: usize, each: usize| {
        let end = number(bytes, count, 4)?.checked_mul(each)?.checked_add(rest)?;
        Some((end, Some(count)))
    };
    let (end, count) = match tag {
        0x05 | 0x07 | 0xFF | 0x89..=0x8D | 0x90 => fixed(id_bytes),
        0x01 => fixed(2 * id_bytes),
        0x04 | 0x06 | 0xFE => fixed(id_bytes + 4),
        0x02 | 0x03 | 0x08 | 0x8E => fixed(id_bytes + 8),
        0x20 => class_end(bytes, body, id_bytes).map(|end| (end, Some(body + 7 * id_bytes + 4))),
        0x21 => counted(body + 2 * id_bytes + 4, body + 2 * id_bytes + 8, 1),
        0x22 => counted(body + id_bytes + 4, body + 2 * id_bytes + 8, id_bytes),
        0x23 => {
            let each = value_bytes(*bytes.get(body + id_bytes + 8)?, id_bytes)?;
            counted(body + id_bytes + 4, body + id_bytes + 9, each)
        }
        0xC3 => Some((body + id_bytes + 9, Some(body + id_bytes + 4))),
        _ => None,
    }?;
    (end <= bytes.len()).then_some(Spot { at, end, count, tag })
}

/// Returns the end of a CLASS DUMP.
fn class_end(bytes: &[u8], body: usize, id_bytes: usize) -> Option<usize> {
    let mut at = body + 7 * id_bytes + 8;
    // Constants: an index, a type, a value; statics: a name, a type, a value.
    for head in [2, id_bytes] {
        let count = number(bytes, at, 2)?;
        at += 2;
        for _ in 0..count {
            at += head + 1 + value_bytes(*bytes.get(at + head)?, id_bytes)?;
        }
    }
    let fields = number(bytes, at, 2)?;
    Some(at + 2 + fields * (id_bytes + 1))
}
