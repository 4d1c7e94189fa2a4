//! The text of a dump, computed in the simplest way for tests, from the bytes alone. It uses no index, no chunks and no
//! threads, and shares no code with the library. It holds everything in memory and trusts what it reads.
//!
//! Sizes are not computed: `sz` and the bytes of HEAP DUMP BEGIN are `*`, see [`masked`].

use std::collections::HashMap;
use std::fmt::Write;

/// Contents of a class dump.
#[derive(Debug, Clone, Default)]
struct Class {
    at: usize,
    super_class: u64,
    /// Name and type code.
    fields: Vec<(u64, u8)>,
}

#[derive(Debug, Default)]
pub struct Naive {
    id_bytes: usize,
    created_ms: u64,
    strings: HashMap<u64, String>,
    /// Class id -> name.
    names: HashMap<u64, String>,
    /// Class serial number -> name.
    serials: HashMap<u32, String>,
    frames: HashMap<u64, String>,
    /// Innermost frame without source and line, by frame.
    methods: HashMap<u64, String>,
    traces: HashMap<u32, Vec<u64>>,
    classes: HashMap<u64, Class>,
    /// Number of objects.
    pub objects: u64,
    /// THREAD, TRACE, HEAP DUMP, SITES and CPU SAMPLES.
    pub sections: [String; 5],
    pub sites_are_recorded: bool,
}

#[derive(Clone, Copy)]
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    id_bytes: usize,
}

impl Cursor<'_> {
    fn number(&mut self, bytes: usize) -> u64 {
        let number = self.bytes[self.at..self.at + bytes].iter().fold(0, |n, b| n << 8 | u64::from(*b));
        self.at += bytes;
        number
    }
    fn u1(&mut self) -> u8 {
        u8::try_from(self.number(1)).unwrap()
    }
    fn u4(&mut self) -> u32 {
        u32::try_from(self.number(4)).unwrap()
    }
    fn i4(&mut self) -> i32 {
        self.u4().cast_signed()
    }
    fn id(&mut self) -> u64 {
        self.number(self.id_bytes)
    }
    fn value(&mut self, code: u8) -> u64 {
        self.number(width(code, self.id_bytes))
    }
}

fn width(code: u8, id_bytes: usize) -> usize {
    match code {
        2 => id_bytes,
        4 | 8 => 1,
        5 | 9 => 2,
        6 | 10 => 4,
        7 | 11 => 8,
        _ => panic!("type {code}"),
    }
}

fn type_name(code: u8) -> &'static str {
    match code {
        4 => "boolean",
        5 => "char",
        6 => "float",
        7 => "double",
        8 => "byte",
        9 => "short",
        10 => "int",
        _ => "long",
    }
}

/// A record of the file: tag, time, and range of its body.
struct Record {
    tag: u8,
    time_us: u32,
    body: std::ops::Range<usize>,
}

impl Naive {
    /// Reads a dump; if it has several heap dumps, the last one.
    pub fn read(bytes: &[u8]) -> Self {
        let end = bytes.iter().position(|b| *b == 0).unwrap();
        let mut head = Cursor { bytes, at: end + 1, id_bytes: 0 };
        let id_bytes = head.u4() as usize;
        let mut naive = Self { id_bytes, created_ms: head.number(8), ..Self::default() };
        let mut records = Vec::new();
        let mut at = Cursor { id_bytes, ..head };
        while at.at + 9 <= bytes.len() {
            let (tag, time_us, length) = (at.u1(), at.u4(), at.u4() as usize);
            // A heap dump of length 0 in an old file extends to its end.
            let to_end = tag == 0x0C && length == 0;
            let end = if to_end { bytes.len() } else { at.at + length };
            records.push(Record { tag, time_us, body: at.at..end });
            at.at = end;
        }
        naive.tables(bytes, &records);
        naive.threads_and_traces(bytes, &records);
        naive.heap(bytes, &records);
        naive.sites(bytes, &records);
        naive.samples(bytes, &records);
        naive
    }

    fn cursor<'a>(&self, bytes: &'a [u8], at: usize) -> Cursor<'a> {
        Cursor { bytes, at, id_bytes: self.id_bytes }
    }

    fn text(&self, id: u64) -> String {
        self.strings.get(&id).cloned().unwrap_or_default()
    }

    fn tables(&mut self, bytes: &[u8], records: &[Record]) {
        for record in records.iter().filter(|record| record.tag == 0x01) {
            let mut at = self.cursor(bytes, record.body.start);
            let id = at.id();
            self.strings.insert(id, mutf8(&bytes[at.at..record.body.end]));
        }
        for record in records.iter().filter(|record| record.tag == 0x02) {
            let mut at = self.cursor(bytes, record.body.start);
            let (serial, id, _, name) = (at.u4(), at.id(), at.u4(), at.id());
            let name = source_name(&self.text(name));
            self.names.insert(id, name.clone());
            self.serials.insert(serial, name);
        }
        for record in records.iter().filter(|record| record.tag == 0x04) {
            let mut at = self.cursor(bytes, record.body.start);
            let (id, method, _, source) = (at.id(), at.id(), at.id(), at.id());
            let (class, line) = (at.u4(), at.i4());
            let or = |text: Option<String>, none: &str| {
                escaped(&text.filter(|text| !text.is_empty()).unwrap_or(none.to_owned()))
            };
            let class = or(self.serials.get(&class).cloned(), "<Unknown Class>");
            let method = format!("{class}.{}", or(Some(self.text(method)), "<Unknown Method>"));
            let line = match line {
                -1 => "Unknown line".to_owned(),
                -2 => "Compiled method".to_owned(),
                -3 => "Native method".to_owned(),
                line => line.to_string(),
            };
            let source = or(Some(self.text(source)), "<Unknown Source>");
            self.frames.insert(id, format!("\t{method}({source}:{line})\n"));
            self.methods.insert(id, method);
        }
    }

    fn threads_and_traces(&mut self, bytes: &[u8], records: &[Record]) {
        for record in records {
            let mut at = self.cursor(bytes, record.body.start);
            match record.tag {
                0x0A => {
                    let (serial, object, _, name, group) = (at.u4(), at.id(), at.u4(), at.id(), at.id());
                    let (name, group) = (escaped(&self.text(name)), escaped(&self.text(group)));
                    let line = format!("(obj={object:x}, id = {serial}, name=\"{name}\", group=\"{group}\")");
                    writeln!(self.sections[0], "THREAD START {line}").unwrap();
                }
                0x0B => writeln!(self.sections[0], "THREAD END (id = {})", at.u4()).unwrap(),
                0x05 => {
                    let (serial, thread, count) = (at.u4(), at.u4(), at.u4());
                    let frames: Vec<u64> = (0..count).map(|_| at.id()).collect();
                    let thread = if thread == 0 { String::new() } else { format!(" (thread={thread})") };
                    writeln!(self.sections[1], "TRACE {serial}:{thread}").unwrap();
                    if frames.is_empty() {
                        self.sections[1] += "\t<empty>\n";
                    }
                    for frame in &frames {
                        self.sections[1] += &self.frames[frame];
                    }
                    self.traces.insert(serial, frames);
                }
                _ => {}
            }
        }
    }

    fn heap(&mut self, bytes: &[u8], records: &[Record]) {
        let mut segments: Vec<&Record> = Vec::new();
        let mut is_open = false;
        for record in records {
            match record.tag {
                0x0C => (segments, is_open) = (vec![record], false),
                0x1C if is_open => segments.push(record),
                0x1C => (segments, is_open) = (vec![record], true),
                0x2C => is_open = false,
                _ => {}
            }
        }
        let Some(first) = segments.first() else { return };
        let date = self.date(first.time_us);
        let mut lines = String::new();
        for pass in [Pass::Classes, Pass::Lines] {
            for segment in &segments {
                let mut at = self.cursor(bytes, segment.body.start);
                while at.at < segment.body.end {
                    self.sub_record(&mut at, pass, &mut lines);
                }
            }
        }
        let head = format!("HEAP DUMP BEGIN ({} objects, * bytes) {date}\n", self.objects);
        self.sections[2] = head + &lines + "HEAP DUMP END\n";
    }

    fn sub_record(&mut self, at: &mut Cursor<'_>, pass: Pass, out: &mut String) {
        let start = at.at;
        let tag = at.number(1);
        if let 0x20..=0x23 | 0xC3 = tag {
            self.objects += u64::from(pass == Pass::Lines && tag != 0x20);
            let text = match tag {
                0x20 => self.class(at, start, pass),
                0x21 => self.instance(at),
                0x22 => self.object_array(at),
                _ => primitive_array(at, tag == 0x23),
            };
            if pass == Pass::Lines {
                *out += &text;
            }
            return;
        }
        let id = at.id();
        let in_frame = |at: &mut Cursor<'_>| format!(", thread={}, frame={}", at.u4(), at.i4());
        let kind = match tag {
            0xFF => "<unknown>".to_owned(),
            0x01 => format!("<JNI global ref>, id={:x}, trace=0", at.id()),
            0x02 => "<JNI local ref>".to_owned() + &in_frame(at),
            0x03 => "<Java stack>".to_owned() + &in_frame(at),
            0x04 => format!("<native stack>, thread={}", at.u4()),
            0x05 => format!("<system class>, name={}", self.known_class(id)),
            0x06 => format!("<thread block>, thread={}", at.u4()),
            0x07 => "<busy monitor>".to_owned(),
            0x08 => format!("<thread>, id={}, trace={}", at.u4(), at.u4()),
            0x89 => "<interned string>".to_owned(),
            0x8A => "<finalizing>".to_owned(),
            0x8B => "<debugger>".to_owned(),
            0x8C => "<reference cleanup>".to_owned(),
            0x8D => "<VM internal>".to_owned(),
            0x8E => "<JNI monitor>".to_owned() + &in_frame(at),
            0x90 => "<unreachable>".to_owned(),
            // HEAP DUMP INFO: a number of four bytes and a name; `id` has read a part of these.
            0xFE => {
                at.at = start + 1 + 4 + self.id_bytes;
                return;
            }
            _ => panic!("sub-record {tag:#x} at {start}"),
        };
        if pass == Pass::Lines {
            writeln!(out, "ROOT {id:x} (kind={kind})").unwrap();
        }
    }

    /// Returns the name of a class that objects refer to.
    fn class_name(&self, id: u64) -> String {
        match self.names.get(&id).filter(|name| !name.is_empty()) {
            Some(name) => escaped(name),
            None if id == 0 => "<unknown class>".to_owned(),
            None => format!("<class {id:#x}>"),
        }
    }

    /// Returns the name of a class for another reference: the target may not be a class.
    fn known_class(&self, id: u64) -> String {
        let known = self.names.contains_key(&id) || self.classes.contains_key(&id);
        if known { self.class_name(id) } else { "<unknown class>".to_owned() }
    }

    fn class(&mut self, at: &mut Cursor<'_>, start: usize, pass: Pass) -> String {
        let (id, trace) = (at.id(), at.u4());
        let ids: Vec<u64> = (0..6).map(|_| at.id()).collect();
        at.u4();
        let mut text = format!("CLS {id:x} (name={}, trace={trace})\n", self.class_name(id));
        for (name, value) in ["super", "loader", "signers", "domain"].iter().zip(&ids) {
            if *value != 0 {
                writeln!(text, "\t{name}\t\t{value:x}").unwrap();
            }
        }
        let mut constants = String::new();
        for _ in 0..at.number(2) {
            let (index, code) = (at.number(2), at.u1());
            let value = at.value(code);
            if code == 2 && value != 0 {
                writeln!(constants, "\tconstant pool entry {index}\t{value:x}").unwrap();
            }
        }
        for _ in 0..at.number(2) {
            let (name, code) = (at.id(), at.u1());
            let value = at.value(code);
            if code == 2 && value != 0 {
                writeln!(text, "\tstatic {}\t{value:x}", escaped(&self.text(name))).unwrap();
            }
        }
        let count = at.number(2);
        let fields = (0..count).map(|_| (at.id(), at.u1())).collect();
        if pass == Pass::Classes {
            self.classes.entry(id).or_insert(Class { at: start, super_class: ids[0], fields });
            return String::new();
        }
        // The first dump of a class counts.
        if self.classes[&id].at != start {
            return String::new();
        }
        self.objects += 1;
        text + &constants
    }

    fn instance(&self, at: &mut Cursor<'_>) -> String {
        let (id, trace, class, length) = (at.id(), at.u4(), at.id(), at.u4() as usize);
        let end = at.at + length;
        let mut levels: Vec<String> = Vec::new();
        let mut above = Some(class);
        while let Some(class) = above.and_then(|id| self.classes.get(&id)) {
            let mut level = String::new();
            for (name, code) in &class.fields {
                let value = at.value(*code);
                if *code == 2 && value != 0 {
                    let name = escaped(&self.text(*name));
                    let tabs = if name.len() < 8 { "\t\t" } else { "\t" };
                    writeln!(level, "\t{name}{tabs}{value:x}").unwrap();
                }
            }
            levels.push(level);
            above = Some(class.super_class);
        }
        levels.reverse();
        at.at = end;
        let name = self.class_name(class);
        format!("OBJ {id:x} (sz=*, trace={trace}, class={name}@{class:x})\n{}", levels.concat())
    }

    fn object_array(&self, at: &mut Cursor<'_>) -> String {
        let (id, trace, length, class) = (at.id(), at.u4(), at.u4(), at.id());
        let name = self.class_name(class);
        let mut text =
            format!("ARR {id:x} (sz=*, trace={trace}, nelems={length}, elem type={name}@{class:x})\n");
        for index in 0..length {
            let value = at.id();
            if value != 0 {
                writeln!(text, "\t[{index}]\t\t{value:x}").unwrap();
            }
        }
        text
    }

    /// Formats the last record; the tested dumps have only one.
    fn sites(&mut self, bytes: &[u8], records: &[Record]) {
        let Some(record) = records.iter().rfind(|record| record.tag == 0x06) else { return };
        self.sites_are_recorded = true;
        let mut at = self.cursor(bytes, record.body.start);
        let flags = at.number(2);
        at.u4();
        let total = at.u4();
        at.at += 4 + 8 + 8;
        let order = if flags & 2 == 0 { "live" } else { "allocated" };
        let mut out = format!("SITES BEGIN (ordered by {order} bytes) {}\n", self.date(record.time_us));
        out += "          percent          live          alloc'ed  stack class\n";
        out += " rank   self  accum     bytes objs     bytes  objs trace name\n";
        let mut sum = 0.0;
        for rank in 1..=at.u4() {
            let (array, class, trace) = (at.u1(), at.u4(), at.u4());
            let [live, objects, bytes, allocated] = [(); 4].map(|()| at.u4());
            let part = if total == 0 { 0.0 } else { f64::from(live) / f64::from(total) };
            sum += part;
            let name = match (self.serials.get(&class), array) {
                (Some(name), _) => escaped(name),
                (None, 0) => format!("<unknown class {class}>"),
                (None, 2) => format!("<unknown array class {class}>"),
                (None, code) => format!("{}[]", type_name(code)),
            };
            let (part, sum) = (part * 100.0, sum * 100.0);
            write!(out, "{rank:>5} {part:>5.2}% {sum:>5.2}% {live:>9} {objects:>4} ").unwrap();
            writeln!(out, "{bytes:>9} {allocated:>5} {trace:>5} {name}").unwrap();
        }
        self.sections[3] = out + "SITES END\n";
    }

    fn samples(&mut self, bytes: &[u8], records: &[Record]) {
        let found: Vec<&Record> = records.iter().filter(|record| record.tag == 0x0D).collect();
        let Some(last) = found.last() else { return };
        let mut total = 0;
        let mut rows: Vec<(u64, u32)> = Vec::new();
        for record in &found {
            let mut at = self.cursor(bytes, record.body.start);
            total += u64::from(at.u4());
            for _ in 0..at.u4() {
                let (count, trace) = (u64::from(at.u4()), at.u4());
                match rows.iter_mut().find(|(_, known)| *known == trace) {
                    Some((sum, _)) => *sum += count,
                    None => rows.push((count, trace)),
                }
            }
        }
        if found.len() > 1 {
            rows.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        }
        let mut out = format!("CPU SAMPLES BEGIN (total = {total}) {}\n", self.date(last.time_us));
        if !rows.is_empty() {
            out += "rank   self  accum   count trace method\n";
        }
        let mut sum = 0.0;
        for (rank, (count, trace)) in (1..).zip(rows) {
            let part = if total == 0 { 0.0 } else { count as f64 / total as f64 * 100.0 };
            sum += part;
            let frame = self.traces.get(&trace).and_then(|frames| frames.first());
            let method = frame.map_or("<empty trace>", |frame| &self.methods[frame]);
            writeln!(out, "{rank:>4} {part:>5.2}% {sum:>5.2}% {count:>7} {trace:>5} {method}").unwrap();
        }
        self.sections[4] = out + "CPU SAMPLES END\n";
    }

    /// Returns the file's time plus `time_us` microseconds, in UTC, in the format of `ctime`.
    pub fn date(&self, time_us: u32) -> String {
        let ms = if self.created_ms == 0 { 0 } else { self.created_ms + u64::from(time_us) / 1000 };
        let seconds = ms / 1000;
        let (mut year, mut day) = (1970, seconds / 86_400);
        let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][(day % 7) as usize];
        let is_leap =
            |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        while day >= 365 + u64::from(is_leap(year)) {
            day -= 365 + u64::from(is_leap(year));
            year += 1;
        }
        let names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let mut month = 0;
        while day >= lengths[month] {
            day -= lengths[month];
            month += 1;
        }
        let [hour, minute, second] = [seconds / 3600 % 24, seconds / 60 % 60, seconds % 60];
        format!("{weekday} {} {:2} {hour:02}:{minute:02}:{second:02} {year}", names[month], day + 1)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Classes,
    Lines,
}

fn primitive_array(at: &mut Cursor<'_>, has_data: bool) -> String {
    let (id, trace, length, code) = (at.id(), at.u4(), at.u4(), at.u1());
    at.at += if has_data { length as usize * width(code, 8) } else { 0 };
    format!("ARR {id:x} (sz=*, trace={trace}, nelems={length}, elem type={}[])\n", type_name(code))
}

/// Decodes modified UTF-8: characters above U+FFFF are two surrogates, U+0000 is two bytes.
fn mutf8(bytes: &[u8]) -> String {
    let mut units = Vec::new();
    let mut rest = bytes.iter().map(|b| u16::from(*b));
    while let Some(first) = rest.next() {
        let mut more = || rest.next().unwrap() & 0x3F;
        units.push(match first {
            0..0x80 => first,
            0xC0..0xE0 => (first & 0x1F) << 6 | more(),
            _ => (first & 0x0F) << 12 | more() << 6 | more(),
        });
    }
    // A string constant may contain half of a pair.
    String::from_utf16_lossy(&units)
}

/// Converts `java/lang/String`, `[B`, `[Ljava/lang/String;` and `java.lang.String` to Java source form.
fn source_name(name: &str) -> String {
    let element = name.trim_start_matches('[');
    let dimensions = name.len() - element.len();
    let letters = "ZCFDBSIJ".chars().zip(4u8..);
    let class = match letters.clone().find(|(letter, _)| dimensions > 0 && element == letter.to_string()) {
        Some((_, code)) => type_name(code).to_owned(),
        None if dimensions > 0 => element.strip_prefix('L').unwrap().strip_suffix(';').unwrap().to_owned(),
        None => element.to_owned(),
    };
    // The name of a hidden class has an address after its last slash.
    let hidden =
        class.rsplit_once("/0x").filter(|(_, address)| address.chars().all(|c| c.is_ascii_hexdigit()));
    let class = match hidden {
        Some((class, address)) => format!("{}/0x{address}", class.replace('/', ".")),
        None => class.replace('/', "."),
    };
    class + &"[]".repeat(dimensions)
}

fn escaped(text: &str) -> String {
    let escape = |c: char| match c {
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        c if c.is_control() || c == '\u{202e}' => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    text.chars().map(escape).collect()
}

/// Returns a text from `--------` on, with `*` for its sizes; and the sizes, in order.
pub fn masked(text: &str) -> (String, Vec<u64>) {
    let (_, body) = text.split_once("\n--------\n\n").unwrap();
    let mut sizes = Vec::new();
    let mut out = String::with_capacity(body.len());
    for line in body.split_inclusive('\n') {
        let from = match line.get(..4) {
            Some("OBJ " | "ARR ") => line.find("(sz=").map(|at| at + 4),
            Some("HEAP") => line.find(" objects, ").map(|at| at + 10),
            _ => None,
        };
        let Some(from) = from else {
            out += line;
            continue;
        };
        let to = from + line[from..].find(|c: char| !c.is_ascii_digit()).unwrap();
        sizes.push(line[from..to].parse().unwrap());
        write!(out, "{}*{}", &line[..from], &line[to..]).unwrap();
    }
    (out, sizes)
}
