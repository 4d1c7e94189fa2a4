//! The table `allocation_sites`: lines that allocate, in a recording of Flight Recorder. It exists if one is given beside
//! the dump.

use std::io;

use super::super::{Column, Context, Definition};
use super::RowWriter;
use hprof_base::dictionary::names;
use hprof_jfr::Recording;
use hprof_recordings::allocation_sites::all_sites;
use hprof_recordings::profile::flight::allocations;

/// Returns the definition of the table.
pub(crate) fn definition() -> Definition {
    Definition {
        name: "allocation_sites".into(),
        meaning: "A line that allocated objects of a class, by the allocation samples in the recording of Flight Recorder that \
                  is beside the dump"
            .into(),
        order: "by class; of a class most bytes first".into(),
        columns: vec![
            Column::of(names::CLASS).few(),
            Column::of(names::FRAME).or_null("the samples have no stack"),
            Column::of(names::SAMPLES),
            Column::of(names::WEIGHT_BYTES),
            Column::of(names::RATE).few(),
        ],
    }
}

/// Makes the rows.
pub(crate) fn make(context: &Context<'_>, rows: &mut RowWriter) -> io::Result<()> {
    let Some(file) = &context.about.recording else { return Ok(()) };
    // The file was read before: it is a recording.
    let Ok(recording) = Recording::new(file.bytes()) else { return Ok(()) };
    for (class, sites) in all_sites(&allocations::read(&recording)) {
        for site in sites {
            let frame = site.frame.as_ref().map(ToString::to_string);
            rows.text(class)
                .text(frame.as_deref())
                .count(site.sum.samples)
                .count(site.sum.bytes)
                .text(site.rate().name())
                .end();
        }
    }
    Ok(())
}
