//! What is known of recorded rows.

use hprof_base::dictionary::names;
use hprof_base::fact::Fact;

use crate::cpu::RankedSamples;

impl RankedSamples {
    /// Returns the facts of the samples of a trace.
    pub fn facts() -> Vec<Fact<Self>> {
        vec![
            Fact::new(names::RANK, |row: &Self| row.rank.into()),
            Fact::new(names::TRACE, |row: &Self| row.trace.into()),
            Fact::new(names::SAMPLES, |row: &Self| row.samples.into()),
            Fact::new(names::SELF_PERCENT, |row: &Self| row.self_percent.into()),
            Fact::new(names::ACCUMULATED_PERCENT, |row: &Self| row.accumulated_percent.into()),
            Fact::new(names::METHOD, |row: &Self| row.method.as_ref().into())
                .or_null("the trace has no frame, or is not in the file"),
        ]
    }
}
