//! `jvms`: the running JVMs of this machine.

use crate::cli::prelude::*;
use crate::cli::shared::durations::long_time;
use crate::cli::shared::user_files::opener;
use hprof_capture::jvms::{JvmList, JvmRow};
use hprof_report::table::Align;

use super::{kind, milliseconds};
use crate::cli::jvm::via::ViaArgs;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli jvms
  hprof-cli jvms --format json | jq '.rows[] | select(.container != null)'
  sudo hprof-cli jvms             # those of all users";

/// List the running JVMs of this machine
///
/// Includes JVMs in containers, with their process ID there. Reads /proc and the counters that JVMs publish in /tmp;
/// does not connect to any JVM. The used heap is the value that the JVM published last; some collectors publish it only
/// at a collection. A JVM with -XX:-UsePerfData publishes nothing: only the facts on its command line are known. The
/// JVMs of other users are visible only to root. Requires Linux.
#[derive(Debug, clap::Args)]
pub(crate) struct JvmsArgs {
    #[command(flatten)]
    via: ViaArgs,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(cx: &RunContext, args: &JvmsArgs) -> anyhow::Result<Outcome> {
    let opener = opener();
    let (mut machine, place) = args.via.connect(&opener, None)?;
    let list: JvmList = machine.jvms()?;
    drop(machine);
    if !list.hidden.is_empty() {
        let note = match list.hidden.len() as u64 {
            1 => "1 process of another user may be a JVM; run as root to list it".to_owned(),
            count => format!(
                "{} processes of other users may be JVMs; run as root to list them",
                group_digits(count)
            ),
        };
        cx.emit("note", &note);
    }
    let found = !list.jvms.is_empty();
    let answer = Answer::new(columns(), list.jvms).if_empty(NoRows::Line("no running JVM".into()));
    place.show(cx, "jvms", &args.output, answer)?;
    Ok(place.outcome(found))
}

/// Number of digits of a container's ID in a table, as in other tools.
const SHORT_ID: usize = 12;

fn columns() -> Columns<'static, JvmRow> {
    const UNKNOWN: &str = "unknown: the JVM publishes no counters";
    Columns::new([
        Column::new(names::PID, |row: &JvmRow| u64::from(row.pid).into())
            .header("PID")
            // An identifier, so no thousands separators.
            .cell(|row: &JvmRow| row.pid.to_string()),
        Column::new(names::NAMESPACE_PID, |row: &JvmRow| u64::from(row.namespace_pid).into())
            .header("inside")
            .cell(|row: &JvmRow| row.namespace_pid.to_string())
            .fit(Fit::Secondary { priority: 1 }),
        Column::new(names::USER, |row: &JvmRow| row.user.as_str().into()).header("user"),
        Column::new(names::VM_KIND, |row: &JvmRow| kind(row.kind).into()),
        Column::new(names::JAVA_VERSION, |row: &JvmRow| row.java_version.as_deref().into())
            .or_null(nulls::UNKNOWN)
            .header("JDK"),
        Column::new(names::COLLECTOR, |row: &JvmRow| row.collector.as_deref().into())
            .or_null(UNKNOWN)
            .header("collector")
            .fit(Fit::Secondary { priority: 2 }),
        Column::new(names::HEAP_USED_BYTES, |row: &JvmRow| row.heap_used_bytes.into())
            .or_null(
                "the JVM publishes no counters, or publishes this counter only after a garbage collection",
            )
            .header("used")
            .cell(|row: &JvmRow| row.heap_used_bytes.map(human_bytes).unwrap_or_default()),
        Column::new(names::HEAP_MAX_BYTES, |row: &JvmRow| row.heap_max_bytes.into())
            .or_null(UNKNOWN)
            .header("max")
            .cell(|row: &JvmRow| row.heap_max_bytes.map(human_bytes).unwrap_or_default()),
        Column::new(names::UPTIME_MS, |row: &JvmRow| row.uptime.map(milliseconds).into())
            .or_null(nulls::UNKNOWN),
        Column::table("up", Align::Right, |row: &JvmRow| row.uptime.map(long_time).unwrap_or_default())
            .fit(Fit::Secondary { priority: 0 }),
        Column::new(names::CONTAINER, |row: &JvmRow| row.container.as_deref().into())
            .or_null(nulls::NO_CONTAINER)
            .header("container")
            .cell(|row: &JvmRow| row.container.iter().flat_map(|id| id.chars().take(SHORT_ID)).collect()),
        Column::new(names::MAIN_CLASS, |row: &JvmRow| row.main_class.as_deref().into())
            .or_null(nulls::UNKNOWN)
            .header("main class")
            .fit(Fit::Shorten { priority: 0 })
            .cell(|row: &JvmRow| {
                let class = row.main_class.clone().unwrap_or_default();
                match row.kind {
                    hprof_capture::VmKind::HotSpot => class,
                    other => format!("{class} ({})", kind(other)),
                }
            }),
        Column::new(names::IS_PUBLISHING, |row: &JvmRow| row.has_counters.into()),
    ])
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    vec![ResultSchema {
        command: "jvms",
        variant: "",
        about: "A row is a running JVM or native image; `dump.path` is `/proc`, or the command of `--via`.",
        rows: columns().fields(),
        summary: Vec::new(),
    }]
}
