//! Options of the agent: the ones of JDK 8's agent, with the same names, defaults and meanings, and new ones.

use std::path::PathBuf;

pub use hprof_format::AGENT_USAGE as USAGE;

/// Program that writes heap dumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dumper {
    /// The agent, over JVM TI; each object has the trace of its allocation.
    #[default]
    Agent,
    /// The JVM; the agent appends its records.
    Jvm,
}

/// Kind of CPU profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cpu {
    /// Samples of the stacks of running threads, one every `interval`.
    Samples,
    /// Time in methods, by stack.
    Times,
    /// Time in methods, as calls of one method by another.
    Old,
}

impl Cpu {
    /// Returns `true` if methods are rewritten to measure time.
    pub fn is_timed(self) -> bool {
        self != Self::Samples
    }
}

/// Format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// `format=a`: text.
    #[default]
    Text,
    /// `format=b`: binary.
    Binary,
}

/// Options of the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// `heap=dump|all`: dump the heap.
    pub heap_dump: bool,
    /// `heap=sites|all`: record allocation sites.
    pub sites: bool,
    /// `dump=jvm|agent`: program that writes heap dumps.
    pub dumper: Dumper,
    /// `cpu=samples|times|old`: kind of CPU profile.
    pub cpu: Option<Cpu>,
    /// `monitor=y`: record contention and waits at monitors.
    pub monitors: bool,
    /// `format=a|b`: format of the output.
    pub format: Format,
    /// `file=`: path of the output; `None` for `java.hprof` or `java.hprof.txt`.
    pub file: Option<PathBuf>,
    /// `net=host:port`: address to which output is sent instead of a file.
    pub net: Option<(String, u16)>,
    /// `depth=`: maximum number of frames of a trace.
    pub depth: usize,
    /// `interval=`: milliseconds between samples.
    pub interval_ms: u64,
    /// `cutoff=`: minimum share of the total for a row to be written.
    pub cutoff: f64,
    /// `lineno=y|n`: record line numbers in traces.
    pub lines: bool,
    /// `thread=y`: traces of different threads are distinct.
    pub threads: bool,
    /// `doe=y`: write a dump when the JVM ends.
    pub dump_on_exit: bool,
    /// `force=y|n`: replace an existing file instead of choosing another name.
    pub force: bool,
    /// `verbose=y|n`: write messages about dumps.
    pub verbose: bool,
    /// `sample=BYTES`: average number of bytes between sampled allocations; 0 samples all.
    pub sample: u32,
    /// `filter=`: packages that `cpu=times` and `cpu=old` measure; empty for all except the JDK's own.
    pub filter: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            heap_dump: false,
            sites: false,
            dumper: Dumper::Agent,
            cpu: None,
            monitors: false,
            format: Format::Text,
            file: None,
            net: None,
            depth: 4,
            interval_ms: 10,
            cutoff: 0.0001,
            lines: true,
            threads: false,
            dump_on_exit: true,
            force: true,
            verbose: true,
            sample: 0,
            filter: Vec::new(),
        }
    }
}

/// Maximum number of frames of a trace. The JVM's own limit for recorded stacks (`MaxJavaStackTraceDepth`) is 1,024 by default.
pub const MAX_DEPTH: usize = 4096;

/// Request that an option string makes.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentRequest {
    /// `help`: print the usage.
    Help,
    /// `dump`: write what a running agent has recorded so far.
    Dump,
    /// `stop`: write a dump, and stop recording.
    Stop,
    /// Start a recording.
    Record(Box<Options>),
}

/// Parses an option string.
///
/// # Errors
/// A message about the invalid option, with valid values.
pub fn parse(text: &str) -> Result<AgentRequest, String> {
    match text {
        "help" => return Ok(AgentRequest::Help),
        "dump" => return Ok(AgentRequest::Dump),
        "stop" => return Ok(AgentRequest::Stop),
        _ => {}
    }
    let mut options = Options::default();
    for option in text.split(',').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        set(&mut options, name, value)?;
    }
    if !options.heap_dump && !options.sites && options.cpu.is_none() && !options.monitors {
        // The old agent's default is heap=all, too.
        (options.heap_dump, options.sites) = (true, true);
    }
    if options.format == Format::Binary {
        if options.monitors {
            return Err("monitor=y needs format=a: the binary format has no record for monitors".to_owned());
        }
        if options.cpu.is_some_and(Cpu::is_timed) {
            return Err(
                "cpu=times and cpu=old need format=a: the binary format has no record for them".to_owned()
            );
        }
    }
    if options.dumper == Dumper::Jvm {
        if !options.heap_dump || options.format == Format::Text {
            return Err(
                "dump=jvm needs heap=dump or heap=all, and format=b: the JVM writes binary dumps".to_owned()
            );
        }
        if options.net.is_some() {
            return Err("dump=jvm needs file=, not net=: the JVM writes dumps to files".to_owned());
        }
    }
    if options.net.is_some() && options.file.is_some() {
        return Err("net= and file= cannot be used together".to_owned());
    }
    Ok(AgentRequest::Record(Box::new(options)))
}

fn set(options: &mut Options, name: &str, value: &str) -> Result<(), String> {
    match name {
        "heap" => {
            (options.heap_dump, options.sites) = match value {
                "dump" => (true, false),
                "sites" => (false, true),
                "all" => (true, true),
                _ => return Err(one_of(name, value, "dump, sites or all")),
            }
        }
        "dump" => {
            options.dumper = match value {
                "jvm" => Dumper::Jvm,
                "agent" => Dumper::Agent,
                _ => return Err(one_of(name, value, "jvm or agent")),
            }
        }
        "cpu" => {
            options.cpu = Some(match value {
                "samples" => Cpu::Samples,
                "times" => Cpu::Times,
                "old" => Cpu::Old,
                _ => return Err(one_of(name, value, "samples, times or old")),
            });
        }
        "format" => {
            options.format = match value {
                "a" => Format::Text,
                "b" => Format::Binary,
                _ => return Err(one_of(name, value, "a or b")),
            }
        }
        "file" if value.is_empty() => return Err("file= needs a name".to_owned()),
        "file" => options.file = Some(value.into()),
        "net" => {
            let net = value.rsplit_once(':').and_then(|(host, port)| {
                let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
                let port = port.parse().ok().filter(|port| *port != 0)?;
                (!host.is_empty()).then(|| (host.to_owned(), port))
            });
            options.net = Some(net.ok_or_else(|| one_of(name, value, "<host>:<port>"))?);
        }
        "depth" => options.depth = number(name, value, 0, MAX_DEPTH)?,
        "interval" => options.interval_ms = number(name, value, 1, 1 << 31)?,
        "cutoff" => {
            let cutoff = value.parse().ok().filter(|cutoff| (0.0..=1.0).contains(cutoff));
            options.cutoff = cutoff.ok_or_else(|| one_of(name, value, "a number from 0 to 1"))?;
        }
        "sample" => options.sample = number(name, value, 0, i32::MAX.unsigned_abs())?,
        "filter" => {
            options.filter = value.split(':').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        }
        "monitor" => options.monitors = yes(name, value)?,
        "lineno" => options.lines = yes(name, value)?,
        "thread" => options.threads = yes(name, value)?,
        "doe" => options.dump_on_exit = yes(name, value)?,
        "force" => options.force = yes(name, value)?,
        "verbose" => options.verbose = yes(name, value)?,
        // Options for Solaris' micro state accounting, and an option that JDK 5 removed. They are accepted, as by the old
        // agent.
        "msa" | "gc_okay" => {
            yes(name, value)?;
        }
        _ => return Err(format!("unknown option {name:?}; the option help lists all options")),
    }
    Ok(())
}

fn one_of(name: &str, value: &str, expected: &str) -> String {
    format!("{name}={value}: expected {expected}")
}

fn yes(name: &str, value: &str) -> Result<bool, String> {
    match value {
        "y" => Ok(true),
        "n" => Ok(false),
        _ => Err(one_of(name, value, "y or n")),
    }
}

fn number<T: std::str::FromStr + PartialOrd + std::fmt::Display>(
    name: &str,
    value: &str,
    least: T,
    most: T,
) -> Result<T, String> {
    match value.parse::<T>() {
        Ok(number) if number >= least && number <= most => Ok(number),
        _ => Err(one_of(name, value, &format!("a whole number from {least} to {most}"))),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn options(text: &str) -> Options {
        match parse(text).unwrap() {
            AgentRequest::Record(options) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn nothing_is_heap_all() {
        let options = options("");
        assert!(options.heap_dump && options.sites && options.cpu.is_none());
        assert_eq!((options.depth, options.interval_ms, options.cutoff), (4, 10, 0.0001));
    }

    #[test]
    fn every_option_of_the_old_agent_is_read() {
        let read = options(
            "heap=sites,cpu=samples,monitor=n,format=b,file=/tmp/x.hprof,depth=8,interval=20,cutoff=0.5,lineno=n,\
             thread=y,doe=n,msa=y,force=n,verbose=n,gc_okay=y",
        );
        let expected = Options {
            sites: true,
            cpu: Some(Cpu::Samples),
            format: Format::Binary,
            file: Some("/tmp/x.hprof".into()),
            depth: 8,
            interval_ms: 20,
            cutoff: 0.5,
            lines: false,
            threads: true,
            dump_on_exit: false,
            force: false,
            verbose: false,
            ..Options::default()
        };
        assert_eq!(read, expected);
        assert!(options("cpu=times").cpu == Some(Cpu::Times) && options("cpu=old").cpu == Some(Cpu::Old));
        assert_eq!(options("net=[::1]:7000").net, Some(("::1".to_owned(), 7000)));
        assert_eq!(options("cpu=times,filter=com.acme:org.x").filter, ["com.acme", "org.x"]);
    }

    #[test]
    fn wrong_ones_are_named() {
        for (text, word) in [
            ("heap=some", "dump, sites or all"),
            ("cpu=fast", "samples, times or old"),
            ("format=c", "a or b"),
            ("depth=-1", "whole number"),
            ("interval=0", "whole number"),
            ("cutoff=2", "0 to 1"),
            ("cutoff=NaN", "0 to 1"),
            ("net=7000", "<host>:<port>"),
            ("net=:7000", "<host>:<port>"),
            ("net=[]:7000", "<host>:<port>"),
            ("doe=maybe", "y or n"),
            ("file=", "needs a name"),
            ("hep=dump", "unknown option"),
            ("monitor=y,format=b", "no record for monitors"),
            ("cpu=times,format=b", "no record for them"),
            ("cpu=old,format=b", "no record for them"),
            ("heap=sites,dump=jvm,format=b", "needs heap=dump"),
            ("heap=dump,dump=jvm", "format=b"),
            ("heap=dump,dump=jvm,format=b,net=h:1", "not net="),
            ("net=h:1,file=x", "cannot be used together"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    /// Every option in the usage is valid with one of the values listed there.
    #[test]
    fn usage_and_options_agree() {
        let mut listed = 0;
        for line in USAGE.lines() {
            let Some((name, values)) = line.split_whitespace().next().and_then(|word| word.split_once('='))
            else {
                continue;
            };
            // A sentence may start with an option.
            let is_example = values.contains(':') && !values.starts_with('<');
            if is_example || line.starts_with(' ') || !name.bytes().all(|byte| byte.is_ascii_lowercase()) {
                continue;
            }
            let value = match values {
                "<file>" => "f",
                "<host>:<port>" => "h:1",
                "<value>" => "0.1",
                "<packages>" => "com.acme",
                values if values.starts_with('<') => "7",
                values => values.split('|').next().unwrap(),
            };
            set(&mut Options::default(), name, value).unwrap();
            listed += 1;
        }
        assert_eq!(listed, 18);
    }
}
