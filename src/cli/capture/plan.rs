//! The plan and the result of a dump: as lines of text, and as a row.

use std::path::Path;

use crate::cli::prelude::*;
use hprof_capture::heap_dump::DumpOutcome;
use hprof_capture::jvms::JvmRow;
use hprof_capture::plan::{DumpRoute, Plan};

use crate::cli::shared::durations::seconds;

use super::{kind, milliseconds};

/// A dump that is planned, or was taken.
pub(super) struct DumpRow<'a> {
    pub(super) row: &'a JvmRow,
    /// Plan of the dump; `None` for a native image.
    pub(super) plan: Option<&'a Plan>,
    pub(super) is_collected: bool,
    /// Command that runs programs on the machine of the JVM.
    pub(super) via: Option<&'a str>,
    pub(super) is_redacted: bool,
    pub(super) output: Option<&'a Path>,
    /// User as whom the file is created, if it is another one.
    pub(super) output_user: Option<u32>,
    pub(super) result: Option<DumpResult>,
}

/// Result of taking a dump.
#[derive(Debug, Clone, Copy)]
pub(super) struct DumpResult {
    pub(super) dumped: DumpOutcome,
    pub(super) file_bytes: Option<u64>,
}

fn transfer(way: DumpRoute) -> &'static str {
    match way {
        DumpRoute::Beside => "file",
        DumpRoute::BesideAndCompress => "file and compress",
        DumpRoute::Inside => "copy",
        DumpRoute::Fifo => "fifo",
    }
}

pub(super) fn columns<'a>() -> Columns<'a, DumpRow<'a>> {
    const NATIVE: &str = "the process is a native image";
    const PLANNED: &str = "the dump was not taken (`--dry-run`)";
    Columns::new([
        Column::new(names::PID, |row: &DumpRow<'a>| u64::from(row.row.pid).into()),
        Column::new(names::NAMESPACE_PID, |row: &DumpRow<'a>| u64::from(row.row.namespace_pid).into()),
        Column::new(names::USER, |row: &DumpRow<'a>| row.row.user.as_str().into()),
        Column::new(names::VM_KIND, |row: &DumpRow<'a>| kind(row.row.kind).into()),
        Column::new(names::MAIN_CLASS, |row: &DumpRow<'a>| row.row.main_class.as_deref().into())
            .or_null(nulls::UNKNOWN),
        Column::new(names::JAVA_VERSION, |row: &DumpRow<'a>| row.row.java_version.as_deref().into())
            .or_null(nulls::UNKNOWN),
        Column::new(names::CONTAINER, |row: &DumpRow<'a>| row.row.container.as_deref().into())
            .or_null(nulls::NO_CONTAINER),
        Column::new(names::IS_COLLECTED, |row: &DumpRow<'a>| row.is_collected.into()),
        Column::new(names::IS_REDACTED, |row: &DumpRow<'a>| row.is_redacted.into()),
        Column::new(names::TRANSFER, |row: &DumpRow<'a>| row.plan.map(|plan| transfer(plan.way)).into())
            .or_null(NATIVE),
        Column::new(names::HEAP_USED_BYTES, |row: &DumpRow<'a>| {
            row.plan.map(|plan| plan.heap_used_bytes).into()
        })
        .or_null(NATIVE),
        Column::new(names::DUMP_ESTIMATE_BYTES, |row: &DumpRow<'a>| {
            row.plan.map(|plan| plan.dump_bytes).into()
        })
        .or_null(NATIVE),
        Column::new(names::DUMP_DIR, |row: &DumpRow<'a>| {
            row.plan.map(|plan| plan.place.to_string_lossy().into_owned()).into()
        })
        .or_null(NATIVE),
        Column::new(names::SPACE_NEEDED_BYTES, |row: &DumpRow<'a>| {
            row.plan.map(|plan| plan.needed_bytes).into()
        })
        .or_null(NATIVE),
        Column::new(names::SPACE_FREE_BYTES, |row: &DumpRow<'a>| {
            row.plan.and_then(|plan| plan.free_bytes).into()
        })
        .or_null("the process is a native image, or the file system does not report free space"),
        Column::new(names::STANDSTILL_ESTIMATE_MS, |row: &DumpRow<'a>| {
            row.plan.map(|plan| milliseconds(plan.standstill)).into()
        })
        .or_null(NATIVE),
        Column::new(names::FILE, |row: &DumpRow<'a>| {
            row.output.map(|path| path.to_string_lossy().into_owned()).into()
        })
        .or_null("the dump goes to stdout"),
        Column::new(names::FILE_BYTES, |row: &DumpRow<'a>| {
            row.result.and_then(|result| result.file_bytes).into()
        })
        .or_null("the dump was not taken (`--dry-run`), or did not go to a file"),
        Column::new(names::SENT_BYTES, |row: &DumpRow<'a>| {
            row.result.and_then(|result| result.dumped.sent_bytes).into()
        })
        .or_null("the dump was not taken (`--dry-run`), or not with `--via`"),
        Column::new(names::DUMP_BYTES, |row: &DumpRow<'a>| {
            row.result.map(|result| result.dumped.dump_bytes).into()
        })
        .or_null(PLANNED),
        Column::new(names::STANDSTILL_MS, |row: &DumpRow<'a>| {
            row.result.map(|result| milliseconds(result.dumped.standstill)).into()
        })
        .or_null(PLANNED),
        Column::new(names::IS_STANDSTILL_MEASURED, |row: &DumpRow<'a>| {
            row.result.map(|result| result.dumped.is_measured).into()
        })
        .or_null(PLANNED),
    ])
}

/// Returns one line that describes the JVM.
pub(super) fn describe_jvm(row: &JvmRow) -> String {
    let class = row.main_class.as_deref().unwrap_or("unknown program");
    let inside =
        if row.namespace_pid == row.pid { String::new() } else { format!(" ({} inside)", row.namespace_pid) };
    let version = row.java_version.as_deref().map(|version| format!("JDK {version}, ")).unwrap_or_default();
    let collector = row.collector.as_deref().map(|name| format!("{name}, ")).unwrap_or_default();
    format!("process {}{inside}: {class}, {version}{collector}user {}", row.pid, row.user)
}

/// Returns the lines of a plan.
pub(super) fn lines(row: &DumpRow<'_>, plan: &Plan) -> Vec<String> {
    let to = row.output.map_or_else(|| "stdout".to_owned(), |path| path.display().to_string());
    let objects = if plan.is_live {
        "reachable objects: the JVM collects garbage first (--all dumps everything)"
    } else {
        "all objects, including unreachable ones"
    };
    let size = human_bytes(plan.dump_bytes);
    let mut lines = vec![
        describe_jvm(&plan.row),
        format!("objects: {objects}"),
        format!(
            "size: about {size}; {} of the heap are in use, including garbage",
            human_bytes(plan.heap_used_bytes)
        ),
    ];
    let place = plan.place.display();
    let twice = if plan.is_segmented { " (twice the size: this JVM merges segments at the end)" } else { "" };
    let space = || {
        let free = plan.free_bytes.map_or("an unknown number of bytes".to_owned(), human_bytes);
        format!("needs about {}{twice}; {free} are free", human_bytes(plan.needed_bytes))
    };
    lines.push(match plan.way {
        DumpRoute::Beside => format!("method: the JVM writes to {place}, which {}", space()),
        DumpRoute::BesideAndCompress => format!(
            "method: the JVM writes to {place}, which {}; the dump is then {}",
            space(),
            if row.is_redacted { "redacted" } else { "compressed" }
        ),
        DumpRoute::Inside => format!("method: the JVM writes to {place}, which {}; the dump is then copied", space()),
        DumpRoute::Fifo => format!(
            "method: through a FIFO and {}, using no disk where the JVM runs; the JVM remains paused while {} stalls",
            if row.via.is_some() { "a helper on the target" } else { "this process" },
            if row.via.is_some() { "the connection, this process or its output" } else { "this process or its output" }
        ),
    });
    lines.extend(row.via.map(|command| {
        format!(
            "connection: `{command}`; the dump is sent compressed with zstd; a slow connection makes the pause longer"
        )
    }));
    if let Some(tight) = &plan.tight {
        lines.push(format!(
            "space: {} has {} free, but the dump needs {} if the heap contains no garbage; if it does not fit, \
             nothing is kept",
            tight.place.display(),
            human_bytes(tight.free_bytes),
            human_bytes(tight.needed_bytes)
        ));
    }
    lines.push(format!("to: {to}"));
    lines.extend(row.output_user.map(|user| {
        let owner = if user == 0 { "root".to_owned() } else { format!("user {user}") };
        format!("owner: {owner}; other users can change the directory, so the file is created with only that user's \
                 rights")
    }));
    let speed = human_bytes(plan.bytes_per_second);
    lines.push(format!(
        "pause: all threads of the program stop for about {}, at {speed} per second; the time depends on disk, \
         processors and heap",
        seconds(plan.standstill)
    ));
    lines
}

/// Returns one line that describes a dump that was taken.
pub(super) fn done(result: &DumpResult, output: Option<&Path>) -> String {
    let DumpResult { dumped, file_bytes } = result;
    let to = output.map_or_else(|| "stdout".to_owned(), |path| path.display().to_string());
    let compressed = match file_bytes {
        Some(bytes) if *bytes != dumped.dump_bytes => format!(", compressed to {}", human_bytes(*bytes)),
        _ => String::new(),
    };
    let stood = seconds(dumped.standstill);
    let standstill = if dumped.is_measured {
        format!("the program's threads were paused for {stood} (safepoint time measured by the JVM)")
    } else {
        format!(
            "the program's threads were paused for at most {stood} (duration of the whole command; the JVM publishes \
             no safepoint times)"
        )
    };
    let sent = dumped.sent_bytes.map(|bytes| format!(", {} over the connection", human_bytes(bytes)));
    format!(
        "wrote {to}: {}{compressed}{}; {standstill}",
        human_bytes(dumped.dump_bytes),
        sent.unwrap_or_default()
    )
}
