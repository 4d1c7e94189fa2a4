//! MONITOR DUMP, MONITOR TIME, and the lines of `monitor=y`. Only the agent writes them.

use super::line::is_text;
use super::{Ranks, Reader, class_name};

impl Reader<'_> {
    /// `    THREAD %d, trace %d, status: %s`, then monitors.
    pub(super) fn monitor_dump(&mut self) -> Result<(), String> {
        self.exactly("MONITOR DUMP BEGIN")?;
        self.counted.sections.push("MONITOR DUMP");
        while self.peek().is_some_and(|line| line.starts_with("    THREAD ")) {
            self.take("a thread's state", |line, counted| {
                line.lit("    THREAD ")?;
                line.int()?;
                line.lit(", trace ")?;
                line.int()?;
                line.lit(", status: ")?;
                for prefix in ["S|", "intr|", "native|"] {
                    let _ = line.lit(prefix);
                }
                counted.states += 1;
                ["ZO", "NS", "SL", "MW", "CW", "R", "UN"].contains(&line.rest()).then_some(())
            })?;
        }
        while self.peek() != Some("MONITOR DUMP END") {
            self.monitor()?;
        }
        self.exactly("MONITOR DUMP END")
    }

    /// `    MONITOR %s` and its owner, or `    MONITOR %s unowned`; then who waits.
    fn monitor(&mut self) -> Result<(), String> {
        let owned = self.take("a monitor", |line, counted| {
            line.lit("    MONITOR ")?;
            counted.monitors += 1;
            let name = line.rest();
            let unowned = name.strip_suffix(" unowned");
            is_signature(unowned.unwrap_or(name))?;
            Some(unowned.is_none())
        })?;
        if owned {
            self.take("the owner", |line, _| {
                line.lit("\towner: thread ")?;
                line.int().filter(|thread| *thread != 0)?;
                line.lit(", entry count: ")?;
                line.int()
            })?;
        }
        for title in ["\twaiting to enter:", "\twaiting to be notified:"] {
            self.take("who waits", |line, _| {
                line.lit(title)?;
                while !line.is_at_end() {
                    if line.lit(" <unknown thread>").is_none() {
                        line.lit(" thread ")?;
                        line.int()?;
                    }
                    if !line.is_at_end() {
                        line.lit(",")?;
                        (!line.is_at_end()).then_some(())?;
                    }
                }
                Some(())
            })?;
        }
        Ok(())
    }

    /// `%4u %5.2f%% %5.2f%% %7u %5u %s (Java)`.
    pub(super) fn monitor_time(&mut self) -> Result<(), String> {
        self.take("MONITOR TIME BEGIN", |line, _| {
            line.lit("MONITOR TIME BEGIN (total = ")?;
            line.dec().filter(|total| *total > 0)?;
            line.lit(" ms) ")?;
            line.ctime()
        })?;
        self.counted.sections.push("MONITOR TIME");
        self.exactly("rank   self  accum   count trace monitor")?;
        let mut ranks = Ranks::default();
        while self.peek() != Some("MONITOR TIME END") {
            let (row, trace) = self.take("a row of MONITOR TIME", |line, counted| {
                let row = line.ranked(4)?;
                let (_, trace) = (line.column(7)?, line.column(5)?);
                line.lit(" ")?;
                let name = line.until_last(" (Java)")?;
                class_name(name, line.writer, counted)?;
                counted.contended += 1;
                Some((row, trace))
            })?;
            ranks.next(row)?;
            self.known_trace(trace)?;
        }
        self.exactly("MONITOR TIME END")
    }

    /// WAIT, WAITED, SLEEP and EXIT.
    pub(super) fn wait(&mut self) -> Result<(), String> {
        self.take("WAIT, WAITED, SLEEP or EXIT", |line, counted| {
            if line.lit("SLEEP: timeout=").is_some() {
                line.int()?;
            } else {
                let exits = line.lit("EXIT: MONITOR ").is_some();
                let waited = !exits && line.lit("WAITED: MONITOR ").is_some();
                if !exits && !waited {
                    line.lit("WAIT: MONITOR ")?;
                }
                is_signature(line.until(", ")?)?;
                line.back(2);
                if !exits {
                    line.lit(if waited { ", time_waited=" } else { ", timeout=" })?;
                    line.int()?;
                }
            }
            line.lit(", ")?;
            counted.waits += 1;
            if line.lit("<unknown thread>").is_some() {
                return Some(());
            }
            line.lit("thread ")?;
            line.int().filter(|thread| *thread != 0).map(|_| ())
        })
    }
}

/// A class as the JVM writes it: `Ljava/lang/Object;`, `[I`.
fn is_signature(text: &str) -> Option<()> {
    let element = text.trim_start_matches('[');
    let class = element.strip_prefix('L').and_then(|name| name.strip_suffix(';'));
    let good = |name: &str| {
        is_text(name).is_some() && !name.is_empty() && !name.contains([' ', ',', ':', ';', '(', ')', '='])
    };
    match class {
        Some(name) => good(name).then_some(()),
        None => (element.len() == 1 && text.len() > 1 && "ZBCSIJFD".contains(element)).then_some(()),
    }
}
