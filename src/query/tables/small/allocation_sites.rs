//! The table `allocation_sites`: allocating lines in a Flight Recorder recording. It exists only if a recording is
//! given in addition to the dump.

use std::io;

use super::super::fact_columns::{self, FactColumns};
use super::super::{Batch, Definition, TableContext};
use hprof_base::dictionary::names;
use hprof_base::fact::Fact;
use hprof_jfr::Recording;
use hprof_recordings::allocation_sites::{AllocationSite, all_sites};
use hprof_recordings::profile::flight::allocations;

/// Row of `allocation_sites`.
struct AllocationEntry<'s> {
    class: &'s str,
    site: AllocationSite,
}

/// Returns the columns of the table.
fn columns<'s>() -> FactColumns<'s, AllocationEntry<'s>> {
    let own = vec![
        Fact::new(names::CLASS, |entry: &AllocationEntry<'s>| entry.class.into()),
        Fact::new(names::SAMPLES, |entry: &AllocationEntry<'s>| entry.site.sum.samples.into()),
        Fact::new(names::WEIGHT_BYTES, |entry: &AllocationEntry<'s>| entry.site.sum.bytes.into()),
    ];
    let mut facts = fact_columns::columns(AllocationSite::facts(), |entry: &AllocationEntry<'s>| &entry.site);
    facts.extend(fact_columns::own_columns(own));
    let shown = [names::CLASS, names::FRAME, names::SAMPLES, names::WEIGHT_BYTES, names::RATE];
    FactColumns::new(&shown, &[names::CLASS, names::RATE], facts)
}

/// Returns the definition of the table.
pub(crate) fn definition() -> Definition {
    Definition {
        name: "allocation_sites".into(),
        meaning: "A line that allocated objects of a class, according to the allocation samples in \
                  the Flight Recorder recording of the dump"
            .into(),
        order: "by class; within a class by bytes, largest first".into(),
        columns: columns().definitions(),
    }
}

/// Adds the rows.
pub(crate) fn make(context: &TableContext<'_>, rows: &mut Batch) -> io::Result<()> {
    let Some(file) = &context.about.recording else { return Ok(()) };
    // The file was read before, so it is a recording.
    let Ok(recording) = Recording::new(file.bytes()) else { return Ok(()) };
    let (allocations, columns) = (allocations::read(&recording), columns());
    for (class, sites) in all_sites(&allocations) {
        for site in sites {
            columns.add_with_names(&AllocationEntry { class, site }, context.dump.summary, rows);
        }
    }
    Ok(())
}
