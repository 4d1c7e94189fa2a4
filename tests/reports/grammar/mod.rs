//! The text format of the HPROF agent as one strict grammar, for tests.
//!
//! It is written from the formats that the agent of JDK 8 gives to `printf` (`hprof_io.c`) and knows nothing of the
//! library: a column that is one space short, a tab too many or a field out of order is an error. Beside the agent's own
//! words it knows those of `convert` ([`Writer::Convert`]), each of which is counted in [`Counted::extensions`].

mod heap;
mod line;
mod monitors;

use std::collections::{BTreeMap, HashSet};
use std::iter::Peekable;

use line::{Line, is_ctime, is_text};

/// Writer of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// The agent: numbers and ids of 32 bits, names as compilers make them.
    Agent,
    /// `convert`: larger numbers, any name, the words of [`EXTENSIONS`], no monitors and no times.
    Convert,
}

/// Constructs that `convert` writes and the agent does not.
pub const EXTENSIONS: [&str; 12] = [
    "<interned string>",
    "<finalizing>",
    "<debugger>",
    "<reference cleanup>",
    "<VM internal>",
    "<unreachable>",
    "<JNI monitor>",
    "<unknown class>",
    "<unknown array class>",
    "<Unknown Class>",
    "<class 0x...>",
    "line 0",
];

/// Contents of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    /// THREAD START.
    pub started: u64,
    /// THREAD END.
    pub ended: u64,
    /// TRACE, and the frames of all.
    pub traces: (u64, u64),
    /// Sections by name.
    pub sections: Vec<&'static str>,
    /// ROOT, CLS, OBJ, ARR.
    pub roots: u64,
    pub classes: u64,
    pub instances: u64,
    pub arrays: u64,
    /// Lines below CLS, OBJ and ARR.
    pub references: u64,
    /// The sum of all `sz`.
    pub sz: u64,
    /// Totals in HEAP DUMP BEGIN: objects and bytes.
    pub stated: (u64, u64),
    /// Rows of SITES, CPU SAMPLES, CPU TIME, MONITOR TIME, and of `cpu=old`.
    pub sites: u64,
    pub samples: u64,
    pub times: u64,
    pub contended: u64,
    pub calls: u64,
    /// Threads and monitors of MONITOR DUMP; WAIT, WAITED, SLEEP and EXIT.
    pub states: u64,
    pub monitors: u64,
    pub waits: u64,
    /// Words of [`EXTENSIONS`] that were met.
    pub extensions: BTreeMap<&'static str, u64>,
}

/// Reads a text line by line.
struct Reader<'t> {
    writer: Writer,
    lines: Peekable<std::iter::Enumerate<std::str::Split<'t, char>>>,
    counted: Counted,
    traces: HashSet<u64>,
}

/// Checks a text.
///
/// # Errors
/// The number of the first line that is not as the agent would have written it, and what was expected.
pub fn check(text: &[u8], writer: Writer) -> Result<Counted, String> {
    let text = std::str::from_utf8(text).map_err(|error| format!("no UTF-8: {error}"))?;
    let body = text.strip_suffix('\n').ok_or("the last line has no end")?;
    let mut reader = Reader {
        writer,
        lines: body.split('\n').enumerate().peekable(),
        counted: Counted::default(),
        traces: HashSet::new(),
    };
    if writer == Writer::Agent && body.starts_with("count callee") {
        reader.calls()?;
    } else {
        reader.header()?;
        reader.records()?;
    }
    Ok(reader.counted)
}

impl<'t> Reader<'t> {
    fn peek(&mut self) -> Option<&'t str> {
        self.lines.peek().map(|(_, line)| *line)
    }

    /// An error at the line that would be next.
    fn error<T>(&mut self, expected: &str) -> Result<T, String> {
        match self.lines.peek() {
            Some((number, line)) => Err(format!("line {}: {expected} expected, found {line:?}", number + 1)),
            None => Err(format!("at the end: {expected} expected")),
        }
    }

    /// Takes the next line, which has to be read to its end.
    fn take<T>(
        &mut self,
        expected: &str,
        read: impl FnOnce(&mut Line<'t>, &mut Counted) -> Option<T>,
    ) -> Result<T, String> {
        let writer = self.writer;
        if let Some(text) = self.peek() {
            let mut line = Line::new(text, writer);
            if let Some(read) = read(&mut line, &mut self.counted)
                && line.is_at_end()
            {
                self.lines.next();
                return Ok(read);
            }
        }
        self.error(expected)
    }

    fn exactly(&mut self, expected: &str) -> Result<(), String> {
        self.take(&format!("{expected:?}"), |line, _| line.lit(expected))
    }

    /// `JAVA PROFILE 1.0.1, created DATE`, an explanation, and the line that ends it between two empty ones.
    fn header(&mut self) -> Result<(), String> {
        self.take("the first line", |line, _| {
            line.lit("JAVA PROFILE 1.0.1, created ")?;
            line.ctime()
        })?;
        self.exactly("")?;
        let mut before = "";
        loop {
            match self.lines.next() {
                None => return Err("the head has no end".to_owned()),
                Some((number, "--------")) if !before.is_empty() => {
                    return Err(format!("line {}: no empty line before it", number + 1));
                }
                Some((_, "--------")) => break,
                Some((_, line)) => before = line,
            }
        }
        self.exactly("")
    }

    fn records(&mut self) -> Result<(), String> {
        // THREAD and TRACE come before the sections, and the sections in this order; the agent writes traces that are
        // new before each section.
        const ORDER: [&str; 9] = [
            "THREAD ",
            "TRACE ",
            "MONITOR DUMP BEGIN",
            "MONITOR TIME BEGIN",
            "HEAP DUMP BEGIN",
            "SITES BEGIN",
            "CPU SAMPLES BEGIN",
            "CPU TIME (ms) BEGIN",
            "",
        ];
        let mut last = 0;
        while let Some(text) = self.peek() {
            if self.writer == Writer::Agent
                && ["WAIT: ", "WAITED: ", "SLEEP: ", "EXIT: "].iter().any(|word| text.starts_with(word))
            {
                self.wait()?;
                continue;
            }
            let kind = ORDER.iter().position(|word| text.starts_with(word)).unwrap_or(8);
            let repeats = kind < 2;
            if kind == 8
                || kind < last && !(repeats && self.writer == Writer::Agent)
                || kind == last && !repeats
            {
                return self.error("a record, in order,");
            }
            last = last.max(kind);
            match kind {
                0 => self.thread()?,
                1 => self.trace()?,
                2 if self.writer == Writer::Agent => self.monitor_dump()?,
                3 if self.writer == Writer::Agent => self.monitor_time()?,
                4 => self.heap_dump()?,
                5 => self.sites()?,
                6 => self.costs("CPU SAMPLES")?,
                7 if self.writer == Writer::Agent => self.costs("CPU TIME (ms)")?,
                _ => return self.error("a record of convert"),
            }
        }
        Ok(())
    }

    /// `THREAD START (obj=%x, id = %d, name="%s", group="%s")` and `THREAD END (id = %d)`.
    fn thread(&mut self) -> Result<(), String> {
        if self.peek().is_some_and(|line| line.starts_with("THREAD START ")) {
            return self.take("THREAD START", |line, counted| {
                line.lit("THREAD START (obj=")?;
                line.hex()?;
                line.lit(", id = ")?;
                line.int()?;
                line.lit(", name=\"")?;
                let names = [line.until("\", group=\"")?, line.until_last("\")")?];
                for name in names {
                    is_text(name).filter(|name| line.writer == Writer::Convert || !name.contains('"'))?;
                }
                counted.started += 1;
                Some(())
            });
        }
        // The agent ends threads that ran before it did, without a start.
        self.take("THREAD END", |line, counted| {
            line.lit("THREAD END (id = ")?;
            line.int()?;
            counted.ended += 1;
            line.lit(")")
        })
    }

    /// `TRACE %u:`, ` (thread=%d)` if there is one, ` (from %s phase of JVM)`; then frames, or `<empty>`.
    fn trace(&mut self) -> Result<(), String> {
        let serial = self.take("TRACE", |line, counted| {
            line.lit("TRACE ")?;
            let serial = line.dec()?;
            line.lit(":")?;
            if line.lit(" (thread=").is_some() {
                line.int().filter(|thread| *thread != 0)?;
                line.lit(")")?;
            }
            if line.writer == Writer::Agent && line.lit(" (from ").is_some() {
                is_text(line.until_last(" phase of JVM)")?).filter(|phase| !phase.contains(' '))?;
            }
            counted.traces.0 += 1;
            Some(serial)
        })?;
        if !self.traces.insert(serial) {
            return Err(format!("TRACE {serial} is there twice"));
        }
        if self.peek() == Some("\t<empty>") {
            return self.exactly("\t<empty>");
        }
        self.frame()?;
        while self.peek().is_some_and(|line| line.starts_with('\t')) {
            self.frame()?;
        }
        Ok(())
    }

    /// `\t%s.%s(%s:%s)`: class, method, source, and a line or what stands for it.
    fn frame(&mut self) -> Result<(), String> {
        self.take("a frame", |line, counted| {
            line.lit("\t")?;
            let place = line.until_last(")")?;
            let (place, at) = place.rsplit_once(':')?;
            let (method, source) = match line.writer {
                Writer::Agent => place.split_once('(')?,
                Writer::Convert => place.rsplit_once('(')?,
            };
            method_name(method, line.writer, counted)?;
            is_text(source).filter(|source| !source.is_empty())?;
            if line.writer == Writer::Agent && source.contains(['(', ')', ':', '"', ',', '=']) {
                return None;
            }
            if !["Compiled method", "Native method", "Unknown line"].contains(&at) {
                let number = Line::new(at, line.writer).whole_int()?;
                if (-3..0).contains(&number) {
                    return None;
                }
                if number < 1 {
                    *counted.extensions.entry("line 0").or_default() += 1;
                    (line.writer == Writer::Convert).then_some(())?;
                }
            }
            counted.traces.1 += 1;
            Some(())
        })
    }

    /// `%5u %5.2f%% %5.2f%% %9u %4u %9u %5u %5u %s` between BEGIN and END, below two title lines.
    fn sites(&mut self) -> Result<(), String> {
        let by_allocation = self.take("SITES BEGIN", |line, _| {
            line.lit("SITES BEGIN (ordered by ")?;
            let by_allocation = line.lit("allocated").is_some();
            if !by_allocation {
                line.lit("live")?;
            }
            line.lit(" bytes) ")?;
            line.ctime()?;
            Some(by_allocation)
        })?;
        self.counted.sections.push("SITES");
        self.exactly("          percent          live          alloc'ed  stack class")?;
        self.exactly(" rank   self  accum     bytes objs     bytes  objs trace name")?;
        let mut ranks = Ranks::default();
        let mut before = u64::MAX;
        while self.peek() != Some("SITES END") {
            let (row, trace, key) = self.take("a row of SITES", |line, counted| {
                let row = line.ranked(5)?;
                let (live, _) = (line.column(9)?, line.column(4)?);
                let (allocated, _) = (line.column(9)?, line.column(5)?);
                let trace = line.column(5)?;
                line.lit(" ")?;
                let name = line.rest();
                class_name(name, line.writer, counted)?;
                counted.sites += 1;
                Some((row, trace, if by_allocation { allocated } else { live }))
            })?;
            ranks.next(row)?;
            self.known_trace(trace)?;
            if key > before {
                return Err(format!("SITES: rank {} has more than the one before", row.0));
            }
            before = key;
        }
        self.exactly("SITES END")
    }

    /// CPU SAMPLES and CPU TIME (ms): `%4u %5.2f%% %5.2f%% %7u %5u`, then ` %s.%s` or ` <empty trace>`.
    fn costs(&mut self, section: &'static str) -> Result<(), String> {
        let total = self.take("CPU SAMPLES or CPU TIME BEGIN", |line, _| {
            line.lit(section)?;
            line.lit(" BEGIN (total = ")?;
            let total = line.int()?;
            line.lit(") ")?;
            line.ctime()?;
            Some(total)
        })?;
        self.counted.sections.push(section);
        let end = format!("{section} END");
        if self.peek() == Some(end.as_str()) {
            return self.exactly(&end);
        }
        self.exactly("rank   self  accum   count trace method")?;
        let mut ranks = Ranks::default();
        let mut before = f64::INFINITY;
        loop {
            let (row, trace, count) = self.take("a row of CPU SAMPLES or CPU TIME", |line, counted| {
                let row = line.ranked(4)?;
                let (count, trace) = (line.column(7)?, line.column(5)?);
                line.lit(" ")?;
                if line.lit("<empty trace>").is_none() {
                    let method = line.rest();
                    method_name(method, line.writer, counted)?;
                }
                *(if section == "CPU SAMPLES" { &mut counted.samples } else { &mut counted.times }) += 1;
                Some((row, trace, count))
            })?;
            ranks.next(row)?;
            self.known_trace(trace)?;
            if row.1 > before {
                return Err(format!("{section}: rank {} has more than the one before", row.0));
            }
            before = row.1;
            // Of samples the count is what is counted.
            if section == "CPU SAMPLES" && total > 0 {
                let percent = format!("{:.2}", count as f64 / total as f64 * 100.0);
                if percent != format!("{:.2}", row.1) {
                    return Err(format!("{section}: rank {} should be {percent}%", row.0));
                }
            }
            if self.peek() == Some(end.as_str()) {
                return self.exactly(&end);
            }
        }
    }

    /// The agent writes a trace before it refers to it.
    fn known_trace(&self, serial: u64) -> Result<(), String> {
        if self.writer == Writer::Agent && !self.traces.contains(&serial) {
            return Err(format!("there is no TRACE {serial} above"));
        }
        Ok(())
    }

    /// `cpu=old`: `%d CALLEE CALLER %d`, methods as `%s.%s%s`.
    fn calls(&mut self) -> Result<(), String> {
        self.exactly("count callee caller time")?;
        while self.peek().is_some() {
            self.take("a call of cpu=old", |line, counted| {
                line.int()?;
                for unknown in ["<unknown callee>", "<unknown caller>"] {
                    line.lit(" ")?;
                    if line.lit(unknown).is_none() {
                        let method = line.until(" ")?;
                        line.back(1);
                        let at = method.find('(')?;
                        method_name(&method[..at], line.writer, counted)?;
                        is_method_signature(&method[at..])?;
                    }
                }
                line.lit(" ")?;
                line.int()?;
                counted.calls += 1;
                Some(())
            })?;
        }
        Ok(())
    }
}

/// Ranks count from 1, and the accumulated part is the sum of the parts but for rounding.
#[derive(Default)]
struct Ranks {
    rank: u64,
    accumulated: f64,
}

impl Ranks {
    fn next(&mut self, (rank, part, accumulated): (u64, f64, f64)) -> Result<(), String> {
        self.rank += 1;
        if rank != self.rank {
            return Err(format!("rank {} expected, found {rank}", self.rank));
        }
        if (self.accumulated + part - accumulated).abs() > 0.0151 {
            return Err(format!("rank {rank}: {} and {part} are not {accumulated}", self.accumulated));
        }
        self.accumulated = accumulated;
        Ok(())
    }
}

/// A class and a method, `%s.%s`.
fn method_name(text: &str, writer: Writer, counted: &mut Counted) -> Option<()> {
    let (class, method) = text.rsplit_once('.')?;
    class_name(class, writer, counted)?;
    let inner = method.strip_prefix('<').and_then(|method| method.strip_suffix('>'));
    match writer {
        Writer::Agent => {
            let known = ["init", "clinit", "Unknown Method"];
            inner.map_or(is_java_name(method), |inner| known.contains(&inner)).then_some(())
        }
        Writer::Convert => is_text(method).filter(|method| !method.is_empty()).map(|_| ()),
    }
}

fn is_java_name(name: &str) -> bool {
    let good = |c: char| c.is_alphanumeric() || !c.is_ascii() || "_$-".contains(c);
    !name.is_empty() && name.chars().all(good)
}

/// `(I[Ljava/lang/String;)V`.
fn is_method_signature(text: &str) -> Option<()> {
    let (parameters, result) = text.strip_prefix('(')?.split_once(')')?;
    let mut left = parameters;
    while !left.is_empty() {
        left = after_type(left)?;
    }
    (result == "V" || after_type(result)?.is_empty()).then_some(())
}

/// Returns the text after a type's signature.
fn after_type(text: &str) -> Option<&str> {
    let element = text.trim_start_matches('[');
    if element.starts_with(['Z', 'B', 'C', 'S', 'I', 'J', 'F', 'D']) {
        return Some(&element[1..]);
    }
    let (class, left) = element.strip_prefix('L')?.split_once(';')?;
    class.split('/').all(is_java_name).then_some(left)
}

/// A class in Java source form. The agent's are what compilers write; `convert`'s are what the dump holds.
fn class_name(name: &str, writer: Writer, counted: &mut Counted) -> Option<()> {
    if writer == Writer::Agent {
        let element = name.trim_end_matches("[]");
        return element.split('.').all(is_java_name).then_some(());
    }
    let known = ["<unknown class>", "<Unknown Class>"].iter().find(|known| **known == name);
    let word = match name {
        _ if known.is_some() => known.copied(),
        _ if name.starts_with("<class 0x") => Some("<class 0x...>"),
        _ if name.starts_with("<unknown class ") => Some("<unknown class>"),
        _ if name.starts_with("<unknown array class ") => Some("<unknown array class>"),
        _ => None,
    };
    if let Some(word) = word {
        *counted.extensions.entry(word).or_default() += 1;
    }
    is_text(name).filter(|name| !name.is_empty()).map(|_| ())
}

impl Line<'_> {
    fn ctime(&mut self) -> Option<()> {
        let date = self.rest();
        is_ctime(date).then_some(())
    }
}
