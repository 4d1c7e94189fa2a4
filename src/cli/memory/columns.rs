//! Columns and keys of `memory`.

use hprof_memory::cgroup::Cgroup;
use hprof_memory::ledger::LedgerRow;
use hprof_report::value::list;

use crate::cli::prelude::*;
use crate::cli::shared::heap_columns;

use super::{MemorySource, words};

/// Reason for a number that no source states.
const NOT_STATED: &str = "no source states it";
const NO_PROCESS: &str = "only a dump was read";

/// Returns the columns of the rows.
pub(super) fn columns() -> Columns<'static, LedgerRow> {
    let columns = Columns::new([
        Column::new(names::KIND, |row: &LedgerRow| row.kind.name().into()),
        Column::new(names::RESIDENT_BYTES, |row: &LedgerRow| row.resident_bytes.into()).or_null(NO_PROCESS),
        Column::new(names::COMMITTED_BYTES, |row: &LedgerRow| row.committed_bytes.into()).or_null(NOT_STATED),
        Column::new(names::LIMIT_BYTES, |row: &LedgerRow| row.limit_bytes.into())
            .or_null("there is no limit, or it is unknown"),
        Column::new(names::SOURCE, |row: &LedgerRow| row.source.into()),
        Column::new(names::HELD_BY, |row: &LedgerRow| row.holder.as_deref().into())
            .or_null("no dump says it, or it is hidden"),
        Column::new(names::COUNT, |row: &LedgerRow| row.count.into()).or_null("nothing is counted"),
    ]);
    let bytes = |bytes: Option<u64>| bytes.map(human_bytes).unwrap_or_default();
    columns.table([
        TableColumn::new(names::KIND, "memory").cell(|row: &LedgerRow| words::kind(row.kind).to_owned()),
        TableColumn::new(names::RESIDENT_BYTES, "resident")
            .cell(move |row: &LedgerRow| bytes(row.resident_bytes)),
        TableColumn::new(names::COMMITTED_BYTES, "committed")
            .cell(move |row: &LedgerRow| bytes(row.committed_bytes)),
        TableColumn::new(names::LIMIT_BYTES, "limit").cell(move |row: &LedgerRow| bytes(row.limit_bytes)),
        TableColumn::new(names::SOURCE, "source").fit(Fit::Secondary { priority: 0 }),
        TableColumn::new(names::HELD_BY, "holder").fit(Fit::Shorten { priority: 1 }).cell(
            |row: &LedgerRow| match (&row.holder, row.count) {
                (Some(holder), _) => holder.clone(),
                (None, Some(count)) => words::count_text(row.kind, count),
                (None, None) => String::new(),
            },
        ),
    ])
}

/// Returns the keys next to the rows.
pub(super) fn summary_columns() -> Columns<'static, MemorySource> {
    Columns::new([
        Column::new(names::SENTENCE, |source: &MemorySource| words::sentence(source).into()),
        Column::new(names::ADVICE_LINES, |source: &MemorySource| list(words::advice_lines(source))),
        Column::new(names::PID, |source: &MemorySource| source.saved.pid.map(u64::from).into())
            .or_null("no running process was read"),
        Column::new(names::MAIN_CLASS, |source: &MemorySource| source.saved.main_class.as_deref().into())
            .or_null(nulls::UNKNOWN),
        Column::new(names::PROCESS_BYTES, |source: &MemorySource| source.ledger.process_bytes.into())
            .or_null(NO_PROCESS),
        Column::new(names::UNEXPLAINED_BYTES, |source: &MemorySource| source.ledger.unexplained_bytes.into())
            .or_null(NO_PROCESS),
        Column::new(names::LIMIT_BYTES, |source: &MemorySource| {
            source.sources().cgroup.as_ref().and_then(|group| group.limit_bytes).into()
        })
        .or_null("the control group has no limit, or was not read"),
        Column::new(names::PEAK_BYTES, |source: &MemorySource| source.sources().peak_bytes.into())
            .or_null(NO_PROCESS),
        Column::new(names::SWAP_BYTES, |source: &MemorySource| source.swap_bytes().into())
            .or_null(NO_PROCESS),
        Column::new(names::HUGETLB_BYTES, |source: &MemorySource| source.hugetlb_bytes().into())
            .or_null(NO_PROCESS),
        Column::new(names::IS_TRACKING, |source: &MemorySource| {
            source.sources().native_memory.is_some().into()
        }),
        Column::new(names::OTHER_PROCESSES_BYTES, |source: &MemorySource| {
            source
                .sources()
                .cgroup
                .as_ref()
                .and_then(|group| source.ledger.other_processes_bytes(group))
                .into()
        })
        .or_null("the control group was not read"),
        Column::records(names::MEMORY_OVER_TIME, heap_columns::figure(), |source: &MemorySource| {
            source.over_time().map(|memory| memory.figures.as_slice()).unwrap_or_default()
        }),
        Column::record(names::CGROUP, group_columns(), |source: &MemorySource| {
            source.sources().cgroup.clone()
        })
        .or_null("it was not read"),
    ])
}

fn group_columns() -> Columns<'static, Cgroup> {
    const NO_FILE: &str = "the kernel does not state it";
    Columns::new([
        Column::new(names::PATH, |group: &Cgroup| group.path.as_str().into()),
        Column::new(names::CURRENT_BYTES, |group: &Cgroup| group.current_bytes.into()).or_null(NO_FILE),
        Column::new(names::LIMIT_BYTES, |group: &Cgroup| group.limit_bytes.into()).or_null("it has no limit"),
        Column::new(names::HIGH_BYTES, |group: &Cgroup| group.high_bytes.into()).or_null("it has none"),
        Column::new(names::PEAK_BYTES, |group: &Cgroup| group.peak_bytes.into()).or_null(NO_FILE),
        Column::new(names::ANON_BYTES, |group: &Cgroup| group.anon_bytes.into()).or_null(NO_FILE),
        Column::new(names::FILE_BYTES, |group: &Cgroup| group.file_bytes.into()).or_null(NO_FILE),
        Column::new(names::SHMEM_BYTES, |group: &Cgroup| group.shmem_bytes.into()).or_null(NO_FILE),
        Column::new(names::RECLAIMABLE_BYTES, |group: &Cgroup| group.reclaimable_bytes.into())
            .or_null(NO_FILE),
        Column::new(names::KERNEL_BYTES, |group: &Cgroup| group.kernel_bytes.into()).or_null(NO_FILE),
        Column::new(names::KERNEL_STACK_BYTES, |group: &Cgroup| group.kernel_stack_bytes.into())
            .or_null(NO_FILE),
        Column::new(names::PAGE_TABLE_BYTES, |group: &Cgroup| group.page_table_bytes.into()).or_null(NO_FILE),
        Column::new(names::SLAB_BYTES, |group: &Cgroup| group.slab_bytes.into()).or_null(NO_FILE),
        Column::new(names::SWAP_BYTES, |group: &Cgroup| group.swap_bytes.into()).or_null(NO_FILE),
        Column::new(names::OOM_KILLS, |group: &Cgroup| group.oom_kills.into()).or_null(NO_FILE),
        Column::new(names::LIMIT_HITS, |group: &Cgroup| group.limit_hits.into()).or_null(NO_FILE),
        Column::new(names::PROCESSES, |group: &Cgroup| group.processes.into()).or_null(NO_FILE),
    ])
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    vec![ResultSchema {
        command: "memory",
        variant: "",
        about: "A row is a kind of memory. The `resident_bytes` of all rows and `unexplained_bytes` sum to `process_bytes`.",
        rows: columns().fields(),
        summary: summary_columns().fields(),
    }]
}
