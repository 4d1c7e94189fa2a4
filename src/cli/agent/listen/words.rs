//! Parser of lines on stdin: one command for agents per line.

use crate::cli::shared::args::ratio;
use hprof_format::commands::{Command, Control, SiteFlags};

/// Output of `help`.
pub(super) const HELP: &str = "commands for all agents; a number before a command selects one agent (2 heap):
  heap                        write a heap dump
  sites [CUTOFF] [FLAG...]    write allocation sites [default: 0.0001]; flags:
                              gc           collect garbage first; without it, dead objects count as live
                              allocated    sort by allocated bytes, not by live bytes
                              incremental  only sites that changed since they were last written
  summary                     write totals of the heap
  traces                      write the traces not yet written
  samples [CUTOFF]            write CPU samples [default: 0.0001]
  control traces on|off       record allocation traces
  control cpu on|off [ID]     sample all threads, or the one with this object ID
  control clear               discard the CPU samples taken so far
  control depth N             set the depth of new traces
  gc                          collect garbage
  eof                         send no more commands to the agent
  exit                        end the JVM
  list                        show the connected agents
  help                        show this help";

/// A parsed line of stdin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum TypedLine {
    /// An empty line.
    Empty,
    /// `list`
    List,
    /// `help`
    Help,
    /// A command for one agent, or for all.
    Command { agent: Option<u32>, command: Command },
}

/// Default cutoff ratio of the agent.
const CUTOFF: f64 = 0.0001;

/// Parses a line of stdin.
///
/// # Errors
///
/// The reason why the line is not valid.
pub(super) fn parse(line: &str) -> Result<TypedLine, String> {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    let agent = match words.first() {
        None => return Ok(TypedLine::Empty),
        Some(word) => word.parse().ok(),
    };
    if agent.is_some() {
        words.remove(0);
    }
    match (agent, &words[..]) {
        (None, ["list"]) => Ok(TypedLine::List),
        (None, ["help" | "?"]) => Ok(TypedLine::Help),
        (agent, words) => command(words).map(|command| TypedLine::Command { agent, command }),
    }
}

/// Parses a command, without the number of an agent.
///
/// # Errors
///
/// The reason why the command is not valid.
pub(super) fn command(words: &[&str]) -> Result<Command, String> {
    let cutoff = |word: Option<&&str>| {
        #[allow(clippy::cast_possible_truncation)]
        word.map_or(Ok(CUTOFF), |word| ratio(word)).map(|ratio| ratio as f32)
    };
    Ok(match words {
        ["heap"] => Command::DumpHeap,
        ["sites", rest @ ..] => {
            let is_flag = |word: &&&str| SITE_FLAGS.iter().any(|(name, _)| name == *word);
            let (ratio, flags) = match rest {
                [ratio, flags @ ..] if !is_flag(&ratio) => (Some(ratio), flags),
                flags => (None, flags),
            };
            Command::AllocSites { flags: site_flags(flags)?, cutoff: cutoff(ratio)? }
        }
        ["summary"] => Command::HeapSummary,
        ["traces"] => Command::DumpTraces,
        ["samples", rest @ ..] if rest.len() < 2 => Command::CpuSamples { cutoff: cutoff(rest.first())? },
        ["control", rest @ ..] => Command::Control(control(rest)?),
        ["gc"] => Command::ForceGc,
        ["eof"] => Command::Eof,
        ["exit"] => Command::Exit,
        [] => return Err("a command is missing after the number; `help` lists them".to_owned()),
        words => return Err(format!("`{}` is not a command; `help` lists them", words.join(" "))),
    })
}

/// Flags of `sites`.
const SITE_FLAGS: [(&str, SiteFlags); 3] = [
    ("gc", SiteFlags::FORCE_GC),
    ("allocated", SiteFlags::BY_ALLOCATION),
    ("incremental", SiteFlags::INCREMENTAL),
];

fn site_flags(words: &[&str]) -> Result<SiteFlags, String> {
    words.iter().try_fold(SiteFlags::default(), |flags, word| {
        let flag = SITE_FLAGS.iter().find(|(name, _)| name == word);
        let (_, flag) = flag.ok_or_else(|| format!("`{word}` is not a flag of sites; `help` lists them"))?;
        Ok(flags.with(*flag))
    })
}

fn control(words: &[&str]) -> Result<Control, String> {
    let wrong = || format!("`control {}` is not a command; `help` lists them", words.join(" "));
    let thread = |rest: &[&str]| match rest {
        [] => Ok(0),
        [id] => {
            let hex = id.strip_prefix("0x").unwrap_or(id);
            u64::from_str_radix(hex, 16).map_err(|_| format!("`{id}` is not an object ID such as 0x7f12"))
        }
        _ => Err(wrong()),
    };
    Ok(match words {
        ["traces", "on"] => Control::AllocTracesOn,
        ["traces", "off"] => Control::AllocTracesOff,
        ["cpu", "on", rest @ ..] => Control::CpuSamplingOn { thread: thread(rest)? },
        ["cpu", "off", rest @ ..] => Control::CpuSamplingOff { thread: thread(rest)? },
        ["clear"] => Control::ClearCpuSamples,
        ["depth", depth] => {
            Control::Depth(depth.parse().map_err(|_| format!("`{depth}` is not a depth from 0 to 65535"))?)
        }
        _ => return Err(wrong()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let all = |command| Ok(TypedLine::Command { agent: None, command });
        for (line, meant) in [
            ("", Ok(TypedLine::Empty)),
            (" list ", Ok(TypedLine::List)),
            ("help", Ok(TypedLine::Help)),
            ("heap", all(Command::DumpHeap)),
            ("sites", all(Command::AllocSites { flags: SiteFlags(0), cutoff: 0.0001 })),
            ("sites 0.5", all(Command::AllocSites { flags: SiteFlags(0), cutoff: 0.5 })),
            ("sites gc", all(Command::AllocSites { flags: SiteFlags(4), cutoff: 0.0001 })),
            ("sites 0.5 incremental", all(Command::AllocSites { flags: SiteFlags(1), cutoff: 0.5 })),
            ("sites 0 gc allocated", all(Command::AllocSites { flags: SiteFlags(6), cutoff: 0.0 })),
            ("samples 0", all(Command::CpuSamples { cutoff: 0.0 })),
            ("control cpu on", all(Command::Control(Control::CpuSamplingOn { thread: 0 }))),
            ("control cpu off 0x1f", all(Command::Control(Control::CpuSamplingOff { thread: 31 }))),
            ("control depth 12", all(Command::Control(Control::Depth(12)))),
            ("12 exit", Ok(TypedLine::Command { agent: Some(12), command: Command::Exit })),
        ] {
            assert_eq!(parse(line), meant, "{line}");
        }
        for wrong in [
            "heapp",
            "heap now",
            "sites 2",
            "sites x",
            "sites 0 0",
            "sites gc 0",
            "sites 0 now",
            "2",
            "2 list",
            "control",
            "control cpu",
            "control depth 70000",
            "control cpu on x",
            "-1 heap",
            "control cpu on 1 2",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_command_of_the_help_is_one() {
        for line in HELP.lines().skip(1) {
            let line = line.get(2..30).unwrap_or_default().trim();
            let line = line
                .replace("[CUTOFF]", "0.5")
                .replace("[FLAG...]", "gc incremental")
                .replace("on|off", "on")
                .replace("[ID]", "1")
                .replace('N', "3");
            assert!(parse(&line).is_ok(), "{line}");
        }
    }
}
