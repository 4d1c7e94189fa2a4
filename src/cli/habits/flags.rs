//! Options of other tools, and what they are here.

use super::flags::Role::{Drop, Dump, Flag, Name, Old, Out, Process, Text, With};
use super::flags::Strength::{Strong, Weak};

/// What an option or its value is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Nothing.
    Drop,
    /// An option without a value.
    Flag(&'static str),
    /// An option with the value.
    With(&'static str),
    /// The value is the dump.
    Dump,
    /// The value is the older dump.
    Old,
    /// The value is the file to write.
    Out,
    /// The value is a text that is searched for.
    Text,
    /// The value is the ID of a process, or its name.
    Process,
    /// The value is the name of a query.
    Name,
}

/// How an option competes with others for the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strength {
    /// It is the command, as in jmap.
    Strong,
    /// It determines the command only if nothing else does.
    Weak,
}

/// An option of another tool.
pub(super) struct ForeignOption {
    /// Names without hyphens, in lower case unless they are one letter, with `_` for `-`.
    pub(super) names: &'static [&'static str],
    /// Whether the next word is its value, unless one is attached.
    pub(super) takes_value: bool,
    pub(super) role: Role,
    /// Name of the command that it stands for, as in [`super::names::NAMES`], or a line.
    pub(super) command: Option<(Strength, &'static str)>,
}

const fn flag(names: &'static [&'static str], role: Role) -> ForeignOption {
    ForeignOption { names, takes_value: false, role, command: None }
}

const fn with_value(names: &'static [&'static str], role: Role) -> ForeignOption {
    ForeignOption { names, takes_value: true, role, command: None }
}

impl ForeignOption {
    const fn weak(self, line: &'static str) -> Self {
        Self { command: Some((Weak, line)), ..self }
    }

    const fn strong(self, line: &'static str) -> Self {
        Self { command: Some((Strong, line)), ..self }
    }
}

/// Options; of those that determine the command weakly, the first of this list does.
pub(super) static OPTIONS: &[ForeignOption] = &[
    // jhat.
    with_value(&["port"], With("--port")).weak("serve DUMP"),
    with_value(&["baseline", "snapshot2", "diff"], Old).weak("delta"),
    with_value(&["exclude", "excludes_file"], With("--exclude-file")).weak("paths-to-root DUMP OBJECT"),
    with_value(&["refs"], Drop).weak("histo DUMP"),
    with_value(&["debug"], Drop).weak("doctor DUMP"),
    with_value(&["stack"], Drop).weak("overview DUMP"),
    flag(&["version"], Drop).strong("--version"),
    flag(&["?"], Drop).strong("--help"),
    // jmap, jcmd, jhsdb, jinfo.
    flag(&["histo"], Drop).strong("histo"),
    flag(&["dump", "binaryheap"], Drop).strong("dump PID --all {-o OUT}"),
    flag(&["clstats", "permstat", "permgen"], Drop).strong("clstats"),
    flag(&["finalizerinfo"], Drop).strong("finalizerinfo"),
    flag(&["heap"], Drop).strong("heap"),
    flag(&["flags", "flag"], Drop).strong("flags"),
    flag(&["sysprops"], Drop).strong("sysprops"),
    flag(&["m", "mixed"], Drop),
    flag(&["F"], Drop),
    flag(&["force", "overwrite"], Flag("--force")),
    flag(&["live"], Flag("--live")).weak("histo DUMP"),
    flag(&["all"], Flag("--all")),
    with_value(&["gz"], Flag("--gzip")),
    with_value(&["parallel"], With("--threads")),
    with_value(&["file", "filename", "dumpfile", "output", "out"], Out),
    with_value(&["pid", "openpid"], Process).weak("dump PID"),
    with_value(&["process"], Process),
    with_value(&["heapdump"], Process).strong("dump PID"),
    with_value(&["threaddump"], Process).strong("threads DUMP --stack"),
    with_value(&["gcutil", "gccause", "gcnew", "gcold"], Process).strong("jvms"),
    with_value(&["core", "exe"], Drop).weak("overview DUMP"),
    // Eclipse MAT.
    with_value(&["command"], Name),
    with_value(&["pattern"], Text).weak("strings DUMP --pattern TEXT"),
    with_value(&["snapshot_identifier"], With("--heap-dump")).weak("overview DUMP"),
    with_value(&["redact", "unzip", "groupby", "mode", "application", "consolelog", "data"], Drop),
    flag(&["vmargs", "nosplash", "keep_unreachable_objects", "discard_ratio"], Drop)
        .weak("histo DUMP --unreachable"),
    // hprof-slurp, hprof-analyzer, shark-cli, VisualVM.
    with_value(&["t", "top"], With("--top")).weak("histo DUMP"),
    flag(&["l", "list_strings", "liststrings"], Drop).weak("strings DUMP"),
    with_value(&["i", "inputfile", "input_file"], Dump).weak("histo DUMP"),
    with_value(&["heap_file"], Dump).weak("dominators DUMP"),
    with_value(&["log_file"], Drop),
    with_value(&["hprof"], Dump),
    with_value(&["openfile", "open_file"], Dump).weak("serve DUMP --open"),
    // async-profiler, jfr.
    flag(&["cpu"], Flag("--data cpu")),
    flag(&["alloc"], Flag("--data allocated")),
    flag(&["lock"], Flag("--data contention")),
    with_value(&["d"], Drop).weak("asprof"),
    with_value(&["e", "events", "categories", "stack_depth"], Drop),
    with_value(&["minwidth"], With("--min-width")),
];
