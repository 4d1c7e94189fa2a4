//! The table `suspects`.

use std::io;

use super::super::fact_columns::{self, FactColumns};
use super::super::{Batch, Definition, TableContext};
use hprof_analyses::leaks::contents::Reason;
use hprof_analyses::leaks::evidence::Owner;
use hprof_analyses::leaks::heap_places::HeapPlaces;
use hprof_analyses::leaks::{self, DEFAULT_THRESHOLD, LeakEvidence, Suspect};
use hprof_base::dictionary::{names, nulls};
use hprof_base::fact::Fact;
use hprof_base::share::hundredths;

/// Row of `suspects`.
struct SuspectEntry {
    rank: u64,
    percent: f64,
    suspect: Suspect,
}

impl SuspectEntry {
    fn owner(&self) -> Option<&Owner> {
        self.suspect.paths.as_ref().and_then(|paths| paths.owner.as_ref())
    }

    /// Returns the facts that the table formats or shortens differently from the command.
    fn facts() -> Vec<Fact<Self>> {
        const NO_PATH: &str = "no path to the suspect has a field outside the JDK";
        const NO_TRACES: &str = "the dump has no allocation traces";
        vec![
            Fact::new(names::RANK, |entry: &Self| entry.rank.into()),
            Fact::new(names::RETAINED_PERCENT, |entry: &Self| entry.percent.into()),
            Fact::new(names::ACCUMULATION_POINT_OBJECT, |entry: &Self| {
                entry.suspect.point.as_ref().map(|point| point.object).into()
            })
            .or_null(nulls::NO_COMMON_PATH),
            Fact::new(names::ACCUMULATION_POINT_CLASS, |entry: &Self| {
                entry.suspect.point.as_ref().and_then(|point| point.class.as_ref()).into()
            })
            .or_null("`accumulation_point_object` is null, or its class is not in the dump"),
            Fact::new(names::ACCUMULATED_BYTES, |entry: &Self| entry.suspect.accumulated_bytes.into()),
            Fact::new(names::HOW, |entry: &Self| entry.suspect.reason.as_ref().map(Reason::name).into())
                .or_null(nulls::IS_HOLDER),
            Fact::new(names::OWNER_CLASS, |entry: &Self| entry.owner().map(|owner| &owner.class).into())
                .or_null(NO_PATH),
            Fact::new(names::OWNER_FIELD, |entry: &Self| entry.owner().map(|owner| &owner.field).into())
                .or_null(NO_PATH),
            Fact::new(names::IS_OWNER_STATIC, |entry: &Self| {
                entry.owner().map(|owner| owner.is_static).into()
            })
            .or_null(NO_PATH),
            Fact::new(names::IS_OOM_THREAD, |entry: &Self| entry.suspect.is_oom_thread.into()),
            Fact::new(names::CONTENT_CLASS, |entry: &Self| {
                entry.suspect.contents.first().map(|share| &share.class).into()
            })
            .or_null("the classes of the retained objects are not in the dump"),
            Fact::new(names::ALLOCATED_CLASS, |entry: &Self| {
                entry.suspect.allocation.as_ref().map(|found| &found.class).into()
            })
            .or_null(NO_TRACES),
            Fact::new(names::ALLOCATION_SITE, |entry: &Self| {
                let frame = entry.suspect.allocation.as_ref().and_then(|found| found.frame());
                frame.map(ToString::to_string).into()
            })
            .or_null(NO_TRACES),
        ]
    }
}

/// Returns the columns of the table.
fn columns() -> FactColumns<'static, SuspectEntry> {
    let mut facts = fact_columns::columns(Suspect::facts(), |entry: &SuspectEntry| &entry.suspect);
    facts.extend(fact_columns::own_columns(SuspectEntry::facts()));
    let shown = [
        names::RANK,
        names::OBJECT,
        names::CLASS,
        names::KIND,
        names::RULE,
        names::VERDICT,
        names::WHAT,
        names::LABEL,
        names::OBJECTS,
        names::SHALLOW_BYTES,
        names::RETAINED_BYTES,
        names::RETAINED_PERCENT,
        names::ACCUMULATION_POINT_OBJECT,
        names::ACCUMULATION_POINT_CLASS,
        names::ACCUMULATED_BYTES,
        names::HOW,
        names::OWNER_CLASS,
        names::OWNER_FIELD,
        names::IS_OWNER_STATIC,
        names::IS_OOM_THREAD,
        names::CONTENT_CLASS,
        names::ALLOCATED_CLASS,
        names::ALLOCATION_SITE,
    ];
    let few = [
        names::CLASS,
        names::KIND,
        names::RULE,
        names::VERDICT,
        names::WHAT,
        names::ACCUMULATION_POINT_CLASS,
        names::HOW,
        names::OWNER_CLASS,
        names::OWNER_FIELD,
        names::CONTENT_CLASS,
        names::ALLOCATED_CLASS,
    ];
    FactColumns::new(&shown, &few, facts)
}

/// Returns the definition of the table.
pub(crate) fn definition() -> Definition {
    Definition {
        name: "suspects".into(),
        meaning: "A leak suspect, as in `leaks`: an object that only GC roots dominate and that retains more than 10 percent \
                  of the reachable bytes; all other objects of a class that only GC roots dominate, if they retain as much together; a store \
                  within a holder; or a finding of a framework rule (`rule`)"
            .into(),
        order: "by rule: first the suspects by MAT's rules, largest retained size first; then those of framework rules; then \
                those within holders"
            .into(),
        columns: columns().definitions(),
    }
}

/// Adds the rows.
pub(crate) fn make(context: &TableContext<'_>, rows: &mut Batch) -> io::Result<()> {
    let dump = &context.dump;
    let places = HeapPlaces::new(dump, &context.frameworks, DEFAULT_THRESHOLD)?;
    let found = leaks::leaks(dump, DEFAULT_THRESHOLD, &places, LeakEvidence::All)?;
    let columns = columns();
    for (rank, suspect) in (1u64..).zip(found.suspects) {
        let percent = hundredths(suspect.retained_bytes, found.reachable_bytes);
        columns.add_with_names(&SuspectEntry { rank, percent, suspect }, dump.summary, rows);
    }
    Ok(())
}
