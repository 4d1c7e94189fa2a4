//! CPU SAMPLES, CPU TIME and MONITOR TIME: all tables of one kind in a run, combined into one.
//!
//! The agent resets its counters each time it writes them, so tables of one kind are summed.

use std::cmp::Reverse;

use super::display_names;
use crate::profile::sites::percent;
use crate::profile::{Samples, TimeRow, Times};
use hprof_base::sorting::SortRows;
use hprof_index::storage::id_map::IdMap;
use hprof_parser::text::event::{CpuRow, MonitorName, Ranking};
use hprof_values::TraceSerial;

/// Tables of one kind, in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Tables {
    tables: Vec<RankingTable>,
}

#[derive(Debug)]
struct RankingTable {
    total: i64,
    rows: Vec<TimeRow>,
    date: Option<String>,
}

impl Tables {
    pub(super) fn begin(&mut self, total: i64, date: &[u8]) {
        self.tables.push(RankingTable { total, rows: Vec::new(), date: display_names::date(date) });
    }

    pub(super) fn row(&mut self, ranking: Ranking, row: &CpuRow<'_>) {
        let Some(table) = self.tables.last_mut() else { return };
        let name = row.name.map(|name| match ranking {
            Ranking::Samples | Ranking::Times => display_names::method(name),
            Ranking::Contention => display_names::monitor(&MonitorName::of_row(name)),
        });
        table.rows.push(TimeRow {
            trace: row.trace,
            count: row.count,
            self_percent: row.self_percent,
            accumulated_percent: row.accumulated_percent,
            name,
            nanos: None,
        });
    }

    pub(super) fn samples(self) -> Option<Samples> {
        let date = self.tables.last()?.date.clone();
        let several = self.tables.len() > 1;
        let mut samples = Samples { date, ..Samples::default() };
        let mut places: IdMap<TraceSerial, usize> = IdMap::default();
        for table in self.tables {
            let mut sum = 0u64;
            for row in table.rows {
                sum = sum.saturating_add(row.count);
                let place = *places.entry(row.trace).or_insert(samples.rows.len());
                match samples.rows.get_mut(place) {
                    Some((_, count)) => *count = count.saturating_add(row.count),
                    None => samples.rows.push((row.trace, row.count)),
                }
                if let Some(name) = row.name {
                    samples.methods.entry(row.trace).or_insert(name.into());
                }
            }
            // A total beyond 31 bits is printed as a signed number.
            let total = u64::try_from(table.total).unwrap_or_else(|_| {
                i32::try_from(table.total).map_or(0, |total| total.cast_unsigned().into())
            });
            samples.total = samples.total.saturating_add(total.max(sum));
        }
        if several {
            samples.rows.sort_rows_by_key(|(_, count)| Reverse(*count));
        }
        Some(samples)
    }

    pub(super) fn times(self) -> Option<Times> {
        let RankingTable { total, rows, date } = self.sum()?;
        Some(Times { total_ms: total, rows, date, event: None })
    }

    /// Returns a single table unchanged, or the sum of several tables, whose times are computed from the percentages of the
    /// totals.
    fn sum(mut self) -> Option<RankingTable> {
        let last = self.tables.pop()?;
        if self.tables.is_empty() {
            return Some(last);
        }
        self.tables.push(last);
        let mut total = 0i64;
        let mut date = None;
        let mut rows: Vec<(f64, TimeRow)> = Vec::new();
        // Names come from an untrusted file: this map uses the hash of the standard library.
        let mut places: std::collections::HashMap<(TraceSerial, Option<String>), usize> =
            std::collections::HashMap::new();
        for table in self.tables {
            total = total.saturating_add(table.total.max(0));
            date = table.date;
            #[allow(clippy::cast_precision_loss)] // Percentages have two decimals.
            let whole = table.total.max(0) as f64;
            for row in table.rows {
                let time = row.self_percent / 100.0 * whole;
                let place = *places.entry((row.trace, row.name.clone())).or_insert(rows.len());
                match rows.get_mut(place) {
                    Some((sum, known)) => {
                        *sum += time;
                        known.count = known.count.saturating_add(row.count);
                    }
                    None => rows.push((time, row)),
                }
            }
        }
        rows.sort_rows_by(|a, b| b.0.total_cmp(&a.0));
        #[allow(clippy::cast_precision_loss)] // As above.
        let whole = (total as f64).max(1.0);
        let mut accumulated = 0.0;
        let rows = rows.into_iter().map(|(time, row)| {
            accumulated += time / whole;
            TimeRow { self_percent: percent(time / whole), accumulated_percent: percent(accumulated), ..row }
        });
        Some(RankingTable { total, rows: rows.collect(), date })
    }
}
