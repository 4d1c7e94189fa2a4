//! The agent's text reports, taken apart for comparisons. Whether they are well formed is the grammar's to say.

use std::collections::BTreeMap;

/// A frame: class, method, source file, and a line or what stands for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Frame {
    pub class: String,
    pub method: String,
    pub source: String,
    pub line: String,
}

impl Frame {
    /// `Class.method:line`.
    pub fn place(&self) -> String {
        format!("{}.{}:{}", self.class, self.method, self.line)
    }
}

/// A stack trace.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    pub thread: Option<u32>,
    /// Innermost first.
    pub frames: Vec<Frame>,
}

impl Trace {
    /// The innermost frame in a class or its nested classes.
    pub fn innermost(&self, class: &str) -> Option<&Frame> {
        self.frames.iter().find(|frame| {
            frame.class == class || frame.class.strip_prefix(class).is_some_and(|rest| rest.starts_with('$'))
        })
    }
}

/// A row of SITES.
#[derive(Debug, Clone)]
pub struct Site {
    pub live: Count,
    pub allocated: Count,
    pub trace: u32,
    pub class: String,
    pub percent: f64,
}

/// Objects and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count {
    pub objects: u64,
    pub bytes: u64,
}

impl Count {
    pub fn of(objects: u64, size: u64) -> Self {
        Self { objects, bytes: objects * size }
    }

    fn add(&mut self, other: Self) {
        self.objects += other.objects;
        self.bytes += other.bytes;
    }
}

/// A row of CPU SAMPLES, CPU TIME or MONITOR TIME.
#[derive(Debug, Clone)]
pub struct Cost {
    pub percent: f64,
    pub count: u64,
    pub trace: u32,
    /// A method, or the class of a monitor.
    pub name: String,
}

/// A report.
#[derive(Debug, Default)]
pub struct Report {
    /// Serial numbers and names.
    pub threads: Vec<(u32, String)>,
    pub traces: BTreeMap<u32, Trace>,
    /// Of the last SITES.
    pub sites: Vec<Site>,
    /// Of the last CPU SAMPLES.
    pub samples: Vec<Cost>,
    /// Of the last CPU TIME.
    pub times: Vec<Cost>,
    /// Milliseconds in all, of the last CPU TIME.
    pub times_ms: u64,
    /// Of the last MONITOR TIME, and its milliseconds.
    pub contended: Vec<Cost>,
    pub contended_ms: u64,
    /// Lines of the last MONITOR DUMP.
    pub monitors: Vec<String>,
}

fn number_after(text: &str, words: &str) -> Option<u64> {
    let rest = text.split(words).nth(1)?;
    rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())].parse().ok()
}

impl Report {
    pub fn read(text: &str) -> Self {
        let mut report = Self::default();
        let mut trace = None;
        let mut section = "";
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("TRACE ") {
                let serial = rest.split(':').next().unwrap().parse().unwrap();
                let thread = number_after(rest, "(thread=").map(|thread| u32::try_from(thread).unwrap());
                report.traces.insert(serial, Trace { thread, frames: Vec::new() });
                trace = Some(serial);
            } else if let Some(frame) = line.strip_prefix('\t').filter(|_| trace.is_some()) {
                report.frame(trace.unwrap(), frame);
            } else {
                trace = None;
                report.line(line, &mut section);
            }
        }
        report
    }

    fn frame(&mut self, trace: u32, text: &str) {
        if text == "<empty>" {
            return;
        }
        let (place, at) = text.strip_suffix(')').unwrap().split_once('(').unwrap();
        let (class, method) = place.rsplit_once('.').unwrap();
        let (source, line) = at.rsplit_once(':').unwrap();
        let [class, method, source, line] = [class, method, source, line].map(str::to_owned);
        self.traces.get_mut(&trace).unwrap().frames.push(Frame { class, method, source, line });
    }

    fn line(&mut self, line: &str, section: &mut &'static str) {
        if let Some(rest) = line.strip_prefix("THREAD START ") {
            let id = number_after(rest, "id = ").unwrap();
            let name = rest.split("name=\"").nth(1).unwrap().split("\", group=").next().unwrap();
            self.threads.push((u32::try_from(id).unwrap(), name.to_owned()));
        } else if let Some((name, _)) = line.split_once(" BEGIN") {
            let known =
                ["SITES", "CPU SAMPLES", "CPU TIME (ms)", "MONITOR TIME", "MONITOR DUMP", "HEAP DUMP"];
            *section = known.into_iter().find(|known| *known == name).unwrap();
            let total = number_after(line, "(total = ").unwrap_or(0);
            match *section {
                "SITES" => self.sites.clear(),
                "CPU SAMPLES" => self.samples.clear(),
                "CPU TIME (ms)" => (self.times_ms, self.times) = (total, Vec::new()),
                "MONITOR TIME" => (self.contended_ms, self.contended) = (total, Vec::new()),
                "MONITOR DUMP" => self.monitors.clear(),
                _ => {}
            }
        } else if line.ends_with(" END") {
            *section = "";
        } else if *section == "MONITOR DUMP" {
            self.monitors.push(line.to_owned());
        } else if line.starts_with(|c: char| c == ' ' || c.is_ascii_digit()) {
            self.row(line, section);
        }
    }

    fn row(&mut self, line: &str, section: &str) {
        let words: Vec<_> = line.split_whitespace().collect();
        if words[0].parse::<u64>().is_err() {
            return;
        }
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        let percent = words[1].strip_suffix('%').unwrap().parse().unwrap();
        if section == "SITES" {
            self.sites.push(Site {
                live: Count { bytes: number(3), objects: number(4) },
                allocated: Count { bytes: number(5), objects: number(6) },
                trace: u32::try_from(number(7)).unwrap(),
                class: words[8].to_owned(),
                percent,
            });
            return;
        }
        let trace = u32::try_from(number(4)).unwrap();
        let cost = Cost { percent, count: number(3), trace, name: words[5..].join(" ") };
        match section {
            "CPU SAMPLES" => self.samples.push(cost),
            "CPU TIME (ms)" => self.times.push(cost),
            "MONITOR TIME" => self.contended.push(cost),
            _ => {}
        }
    }

    /// Live and allocated objects of a class, over the sites that `wanted` takes.
    pub fn sum(&self, class: &str, wanted: impl Fn(&Trace) -> bool) -> [Count; 2] {
        let mut sums = [Count::default(); 2];
        for site in self.sites.iter().filter(|site| site.class == class && wanted(&self.traces[&site.trace]))
        {
            sums[0].add(site.live);
            sums[1].add(site.allocated);
        }
        sums
    }

    /// The same of a program's method: where its innermost frame is.
    pub fn of_method(&self, class: &str, program: &str, method: &str) -> [Count; 2] {
        self.sum(class, |trace| trace.innermost(program).is_some_and(|frame| frame.method == method))
    }

    /// Returns the costs of a class's methods: the sum of all rows whose innermost frame of the program is the
    /// method.
    pub fn percent_of(&self, costs: &[Cost], program: &str, method: &str) -> f64 {
        let is_in = |cost: &&Cost| {
            self.traces[&cost.trace].innermost(program).is_some_and(|frame| frame.method == method)
        };
        costs.iter().filter(is_in).map(|cost| cost.percent).sum()
    }

    /// The number of calls of a method.
    pub fn calls(&self, method: &str) -> u64 {
        self.times.iter().filter(|cost| cost.name == method).map(|cost| cost.count).sum()
    }
}
