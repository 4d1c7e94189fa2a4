//! Strings of a dump, read byte by byte from the format's description: no code of the library is used.

use std::collections::HashMap;

/// A dump's bytes, and a place in them.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    id_bytes: usize,
}

impl Reader<'_> {
    fn number(&mut self, bytes: usize) -> u64 {
        let value =
            self.bytes[self.at..self.at + bytes].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        self.at += bytes;
        value
    }

    fn small(&mut self, bytes: usize) -> usize {
        usize::try_from(self.number(bytes)).unwrap()
    }

    fn id(&mut self) -> u64 {
        self.number(self.id_bytes)
    }

    /// Bytes of a value of a basic type.
    fn size(&self, code: u64) -> usize {
        match code {
            2 => self.id_bytes,
            4 | 8 => 1,
            5 | 9 => 2,
            6 | 10 => 4,
            7 | 11 => 8,
            other => panic!("no basic type {other}"),
        }
    }
}

#[derive(Default)]
struct Class {
    above: u64,
    /// Name's string id, and type.
    fields: Vec<(u64, u64)>,
}

/// The `java.lang.String`s of a dump, by object id: their UTF-16 units.
pub fn strings(bytes: &[u8]) -> HashMap<u64, Vec<u16>> {
    let name_end = bytes.iter().position(|byte| *byte == 0).unwrap();
    let mut reader = Reader { bytes, at: name_end + 1, id_bytes: 4 };
    reader.id_bytes = reader.small(4);
    reader.at += 8;
    let mut names: HashMap<u64, &[u8]> = HashMap::new();
    let mut class_names: HashMap<u64, u64> = HashMap::new();
    let mut classes: HashMap<u64, Class> = HashMap::new();
    // Object id -> class, and where the values begin.
    let mut instances: Vec<(u64, u64, usize)> = Vec::new();
    // Object id -> type, and the elements.
    let mut arrays: HashMap<u64, (u64, &[u8])> = HashMap::new();
    while reader.at < bytes.len() {
        let tag = reader.number(1);
        reader.at += 4;
        let len = reader.small(4);
        let end = reader.at + len;
        match tag {
            0x01 => {
                let id = reader.id();
                names.insert(id, &bytes[reader.at..end]);
            }
            0x02 => {
                reader.at += 4;
                let class = reader.id();
                reader.at += 4;
                class_names.insert(class, reader.id());
            }
            0x0c | 0x1c => {
                while reader.at < end {
                    sub_record(&mut reader, &mut classes, &mut instances, &mut arrays);
                }
            }
            _ => {}
        }
        reader.at = end;
    }
    let mut strings = HashMap::new();
    for (id, class, start) in instances {
        if class_names
            .get(&class)
            .and_then(|name| names.get(name))
            .is_none_or(|name| *name != b"java/lang/String" && *name != b"java.lang.String")
        {
            continue;
        }
        let mut values: HashMap<&[u8], u64> = HashMap::new();
        reader.at = start;
        let mut next = class;
        while let Some(class) = classes.get(&next) {
            for (name, kind) in &class.fields {
                let size = reader.size(*kind);
                values.insert(names[name], reader.number(size));
            }
            next = class.above;
        }
        let Some((kind, elements)) = arrays.get(&values[b"value".as_slice()]) else { continue };
        let pairs = elements.chunks_exact(2);
        let units: Vec<u16> = match (kind, values.get(b"coder".as_slice())) {
            (5, _) => pairs.map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect(),
            (8, Some(1)) => pairs.map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect(),
            (8, _) => elements.iter().map(|byte| u16::from(*byte)).collect(),
            other => panic!("a String of {other:?}"),
        };
        // JDK 6, and Android before 6: part of an array.
        let part = values.get(b"offset".as_slice()).zip(values.get(b"count".as_slice()));
        let units = match part {
            Some((offset, count)) => units[*offset as usize..(*offset + *count) as usize].to_vec(),
            None => units,
        };
        strings.insert(id, units);
    }
    strings
}

fn sub_record<'a>(
    reader: &mut Reader<'a>,
    classes: &mut HashMap<u64, Class>,
    instances: &mut Vec<(u64, u64, usize)>,
    arrays: &mut HashMap<u64, (u64, &'a [u8])>,
) {
    let tag = reader.number(1);
    let id = if tag == 0xfe { 0 } else { reader.id() };
    let id_bytes = reader.id_bytes;
    match tag {
        0xff | 0x05 | 0x07 | 0x89..=0x8d | 0x90 => {}
        0x01 => reader.at += id_bytes,
        0x02 | 0x03 | 0x08 | 0x8e => reader.at += 8,
        0x04 | 0x06 => reader.at += 4,
        0xfe => reader.at += 4 + id_bytes,
        0x20 => {
            reader.at += 4;
            let above = reader.id();
            reader.at += 5 * id_bytes + 4;
            for _ in 0..reader.small(2) {
                reader.at += 2;
                let kind = reader.number(1);
                reader.at += reader.size(kind);
            }
            for _ in 0..reader.small(2) {
                reader.at += id_bytes;
                let kind = reader.number(1);
                reader.at += reader.size(kind);
            }
            let fields = (0..reader.small(2)).map(|_| (reader.id(), reader.number(1))).collect();
            classes.insert(id, Class { above, fields });
        }
        0x21 => {
            reader.at += 4;
            let class = reader.id();
            let len = reader.small(4);
            instances.push((id, class, reader.at));
            reader.at += len;
        }
        0x22 => {
            reader.at += 4;
            let count = reader.small(4);
            reader.at += id_bytes * (count + 1);
        }
        0x23 => {
            reader.at += 4;
            let count = reader.small(4);
            let kind = reader.number(1);
            let len = count * reader.size(kind);
            arrays.insert(id, (kind, &reader.bytes[reader.at..reader.at + len]));
            reader.at += len;
        }
        0xc3 => reader.at += 9,
        other => panic!("no sub-record {other:#x}"),
    }
}

/// As text; half a character is `\udXXX`.
pub fn text(units: &[u16]) -> String {
    let characters = char::decode_utf16(units.iter().copied());
    let text = characters.map(|unit| match unit {
        Ok(c) => c.to_string(),
        Err(lone) => format!("\\u{:04x}", lone.unpaired_surrogate()),
    });
    text.collect()
}
