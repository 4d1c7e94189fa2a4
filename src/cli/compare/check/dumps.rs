//! Measuring dumps: each is opened once, with no more than its rules need.

use std::path::Path;

use crate::cli::prelude::*;
use crate::cli::shared::messages;
use crate::cli::shared::several::DumpOutcome;
use hprof_index::Heap;
use hprof_query::check::{MeasuredDump, Measurement, RequiredData, Rule, measure};
use hprof_query::frameworks::Frameworks;
use hprof_report::json::DumpHeader;

/// A dump that was checked, and the result.
pub(super) struct CheckSubject {
    /// Path of the dump, as given.
    pub(super) path: String,
    pub(super) state: CheckedState,
}

/// Result of measuring a dump.
pub(super) enum CheckedState {
    /// The dump was read.
    Read {
        /// Measured values, one per rule.
        measured: Vec<Measurement>,
        dump: DumpHeader<'static>,
        one: DumpOutcome,
        /// Description of the damage, if the dump is damaged.
        damage: Option<String>,
    },
    /// The dump could not be read.
    Unreadable(anyhow::Error),
}

impl CheckSubject {
    /// Opens a dump and measures what the rules require.
    pub(super) fn measure(cx: &RunContext, input: &Input, rules: &[&Rule], frameworks: &Frameworks) -> Self {
        let path = input.path().to_string_lossy().into_owned();
        let state = read(cx, input, rules, frameworks).unwrap_or_else(CheckedState::Unreadable);
        Self { path, state }
    }

    /// Returns a description of the damage, if the dump is damaged.
    pub(super) fn damage(&self) -> Option<&str> {
        match &self.state {
            CheckedState::Read { damage, .. } => damage.as_deref(),
            CheckedState::Unreadable(_) => None,
        }
    }
}

fn read(
    cx: &RunContext,
    input: &Input,
    rules: &[&Rule],
    frameworks: &Frameworks,
) -> anyhow::Result<CheckedState> {
    let needs = rules.iter().map(|rule| rule.measure.required_data()).max().unwrap_or(RequiredData::Summary);
    let rules = || rules.iter().copied();
    Ok(match needs {
        RequiredData::Summary => {
            let heap = input.open(cx)?;
            ensure_heap(&heap)?;
            let measured = measure(rules(), MeasuredDump::Summary(&heap), frameworks)?;
            CheckedState::Read {
                measured,
                dump: owned_header(&heap, heap.header()),
                one: DumpOutcome::from_source(&heap, created_ms(&heap)),
                damage: damage(&heap),
            }
        }
        RequiredData::Graph => {
            let (session, measured) = Session::ask(cx, input, |dump| {
                ensure_heap(dump.heap)?;
                Ok(measure(rules(), MeasuredDump::Graph(dump), frameworks)?)
            })?;
            CheckedState::Read {
                measured,
                dump: owned_header(&session.heap, session.header()),
                one: DumpOutcome::from_source(&session, created_ms(&session.heap)),
                damage: damage(&session.heap),
            }
        }
    })
}

/// Returns an error for a file without a heap: it would pass every rule, which nobody intends.
fn ensure_heap(heap: &Heap) -> anyhow::Result<()> {
    anyhow::ensure!(
        heap.summary().facts().heap_dumps.get() > 0,
        "{} contains no heap dump, so no rule can be checked; `hprof-cli info` shows what it contains",
        heap.path().display()
    );
    Ok(())
}

fn created_ms(heap: &Heap) -> u64 {
    heap.summary().facts().created_ms.get()
}

fn damage(heap: &Heap) -> Option<String> {
    heap.is_damaged().then(|| messages::account(heap))
}

fn owned_header(heap: &Heap, dump: DumpHeader<'_>) -> DumpHeader<'static> {
    DumpHeader {
        path: dump.path.into_owned().into(),
        format: Some(heap.summary().version().name()),
        created: dump.created.map(|created| created.into_owned().into()),
        file_bytes: dump.file_bytes,
        id_bytes: dump.id_bytes,
        heap_dump: dump.heap_dump,
        is_damaged: dump.is_damaged,
        unreachable_bytes: dump.unreachable_bytes,
    }
}

/// Returns the `dump` key of a JSON document, with only the path: the dump is not read, or one of several.
pub(super) fn only_path(path: &Path) -> DumpHeader<'static> {
    DumpHeader { path: path.to_string_lossy().into_owned().into(), ..DumpHeader::default() }
}
