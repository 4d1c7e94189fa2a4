//! Measuring dumps: each is opened once, with no more than its rules need.

use std::path::Path;

use crate::cli::shared::args::Input;
use crate::cli::shared::context::RunContext;
use crate::cli::shared::messages;
use crate::cli::shared::session::{Session, Source};
use crate::cli::shared::several::OneDump;
use hprof_index::{Heap, Quiet};
use hprof_query::check::{Measured, Needs, Opened, Rule, measure};
use hprof_report::json::Dump;

/// A dump that was looked at.
pub(super) struct Subject {
    /// As it was given.
    pub(super) path: String,
    pub(super) state: State,
}

/// What came of it.
pub(super) enum State {
    /// It was read.
    Read {
        /// A figure for each rule.
        measured: Vec<Measured>,
        dump: Dump<'static>,
        one: OneDump,
        /// What of it could not be read, if it is damaged.
        damage: Option<String>,
    },
    /// It was not, and why.
    Unreadable(anyhow::Error),
}

impl Subject {
    /// Opens a dump and measures what the rules ask for.
    pub(super) fn measure(cx: &RunContext, input: &Input, rules: &[&Rule]) -> Self {
        let path = input.path().to_string_lossy().into_owned();
        let state = read(cx, input, rules).unwrap_or_else(State::Unreadable);
        Self { path, state }
    }

    /// What could not be read of it, if it is damaged.
    pub(super) fn damage(&self) -> Option<&str> {
        match &self.state {
            State::Read { damage, .. } => damage.as_deref(),
            State::Unreadable(_) => None,
        }
    }
}

fn read(cx: &RunContext, input: &Input, rules: &[&Rule]) -> anyhow::Result<State> {
    let needs = rules.iter().map(|rule| rule.measure.needs()).max().unwrap_or(Needs::Summary);
    let rules = || rules.iter().copied();
    Ok(match needs {
        Needs::Summary => {
            let heap = input.open(cx)?;
            ensure_heap(&heap)?;
            let measured = measure(rules(), Opened::Summary(&heap))?;
            State::Read {
                measured,
                dump: owned(&heap, heap.dump()),
                one: OneDump::of(&heap, created_ms(&heap)),
                damage: damage(&heap),
            }
        }
        Needs::Graph => {
            let (session, measured) = Session::ask(cx, input, |heap, graph| {
                ensure_heap(heap)?;
                Ok(measure(rules(), Opened::Graph(heap, graph, heap.bytes(&Quiet)?))?)
            })?;
            State::Read {
                measured,
                dump: owned(&session.heap, session.dump()),
                one: OneDump::of(&session, created_ms(&session.heap)),
                damage: damage(&session.heap),
            }
        }
    })
}

/// All is well with a file that holds nothing: nobody means that.
fn ensure_heap(heap: &Heap) -> anyhow::Result<()> {
    anyhow::ensure!(
        heap.summary().facts().heap_dumps.get() > 0,
        "{}: no heap dump is in it, so no rule can be checked; `hprof-cli info` shows what it contains",
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

fn owned(heap: &Heap, dump: Dump<'_>) -> Dump<'static> {
    Dump {
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

/// What JSON says of dumps, where not all is known or there are several.
pub(super) fn only_path(path: &Path) -> Dump<'static> {
    Dump { path: path.to_string_lossy().into_owned().into(), ..Dump::default() }
}
