//! ALLOC SITES: one table from all records of a file.
//!
//! A record is complete or, if bit 0 of its flags is set, incremental. A complete record replaces all earlier records. An
//! incremental record lists the sites that changed. The specification does not define whether it contains increments or new
//! figures; the JVMTI agent writes new figures (`site_write` in `hprof_site.c`). Each record also contains totals over all
//! sites, which decide: figures that would exceed the totals if added to the earlier ones are new figures.

use rustc_hash::FxHashMap;

use std::sync::Arc;

use super::Site;
use hprof_base::sorting::SortRows;
use hprof_parser::record::{AllocSite, AllocSites, HeapSummary, Record};
use hprof_values::{BasicType, TraceSerial};

/// Flag of an incremental record (bit 0).
const INCREMENTAL: u16 = 1;
/// Flag of a record whose sites are sorted by allocated bytes (bit 1).
const BY_ALLOCATION: u16 = 2;

/// Table of sites, combined from all ALLOC SITES records.
pub(super) struct CombinedSites {
    pub(super) rows: Vec<SiteRecord>,
    /// Totals over all sites, from the last record.
    pub(super) totals: Site,
    pub(super) by_allocation: bool,
    /// Last ALLOC SITES record.
    pub(super) last: Option<Record>,
}

/// Site in a record, before its class serial number is resolved to a name.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SiteRecord {
    pub(super) class_serial: u32,
    /// Element type stated by the record, if the objects are arrays.
    array: Option<BasicType>,
    pub(super) site: Site,
}

impl SiteRecord {
    /// Returns the name of the site's class in Java source form; `named` is the class with its serial number.
    ///
    /// The agent of JDK 5 to 8 names the class of an array. The one before (JVMPI) names the class of its elements; for arrays
    /// of primitives, and for objects allocated while the JVM starts, it names none.
    pub(super) fn class_name(&self, named: Option<&Arc<str>>) -> Arc<str> {
        match (self.array, named) {
            (None, Some(name)) => Arc::clone(name),
            (Some(_), Some(name)) if name.ends_with("[]") => Arc::clone(name),
            (Some(BasicType::Object), Some(name)) => format!("{name}[]").into(),
            (Some(BasicType::Object), None) if self.class_serial == 0 => "<unknown class>[]".into(),
            (Some(BasicType::Object), None) => format!("<unknown array class {}>", self.class_serial).into(),
            (Some(element), _) => format!("{}[]", element.java_name()).into(),
            (None, None) => self.placeholder_name().into(),
        }
    }

    /// Returns a name for a class that has no LOAD CLASS record.
    fn placeholder_name(&self) -> String {
        match self.class_serial {
            0 => "<unknown class>".to_owned(),
            serial => format!("<unknown class {serial}>"),
        }
    }
}

/// Combines all records into one table; `None` if there are none.
pub(super) fn combine(records: &[(Record, AllocSites<'_>)]) -> Option<CombinedSites> {
    let (last, last_sites) = records.last()?;
    let from = records.iter().rposition(|(_, sites)| sites.flags & INCREMENTAL == 0).unwrap_or(0);
    let mut table = SiteTable::default();
    for (number, (_, sites)) in records.iter().skip(from).enumerate() {
        if number == 0 || table.may_add(sites) { table.add(sites) } else { table.replace(sites) }
    }
    let by_allocation = last_sites.flags & BY_ALLOCATION != 0;
    let mut rows = table.rows;
    if records.len() - from > 1 {
        // A single record keeps its order; several records have no common order.
        let key =
            |row: &SiteRecord| if by_allocation { row.site.allocated_bytes } else { row.site.live_bytes };
        rows.sort_rows_by_key(|row| std::cmp::Reverse(key(row)));
    }
    Some(CombinedSites { rows, totals: totals(&last_sites.totals), by_allocation, last: Some(*last) })
}

fn totals(totals: &HeapSummary) -> Site {
    Site {
        live_bytes: totals.live_bytes.into(),
        live_instances: totals.live_instances.into(),
        allocated_bytes: totals.allocated_bytes,
        allocated_instances: totals.allocated_instances,
        ..Site::default()
    }
}

#[derive(Default)]
struct SiteTable {
    rows: Vec<SiteRecord>,
    /// Index of the row of a class serial number, element type and trace: a JVMPI agent gives arrays the number of another class.
    places: FxHashMap<(u32, Option<BasicType>, TraceSerial), usize>,
    /// Sums of the four figures over all rows. Sums of a file's 32-bit numbers cannot exceed 128 bits.
    sums: [u128; 4],
}

/// Returns the four figures of a site, or of the totals.
fn figures(site: &Site) -> [u64; 4] {
    [site.live_bytes, site.live_instances, site.allocated_bytes, site.allocated_instances]
}

fn count(sums: &mut [u128; 4], site: &Site) {
    for (sum, figure) in sums.iter_mut().zip(figures(site)) {
        *sum += u128::from(figure);
    }
}

fn site_of(row: &AllocSite) -> Site {
    Site {
        trace: row.trace,
        live_bytes: row.live_bytes.into(),
        live_instances: row.live_instances.into(),
        allocated_bytes: row.allocated_bytes.into(),
        allocated_instances: row.allocated_instances.into(),
        ..Site::default()
    }
}

impl SiteTable {
    /// Returns whether the figures of a record, added to the earlier ones, are within the record's totals.
    fn may_add(&self, sites: &AllocSites<'_>) -> bool {
        let mut sums = self.sums;
        for site in sites.sites() {
            count(&mut sums, &site_of(&site));
        }
        let stated = figures(&totals(&sites.totals));
        sums.iter().zip(stated).all(|(sum, stated)| *sum <= stated.into() || stated == 0)
    }

    fn add(&mut self, sites: &AllocSites<'_>) {
        for row in sites.sites() {
            let more = site_of(&row);
            count(&mut self.sums, &more);
            let site = self.site(&row);
            site.live_bytes = site.live_bytes.saturating_add(more.live_bytes);
            site.live_instances = site.live_instances.saturating_add(more.live_instances);
            site.allocated_bytes = site.allocated_bytes.saturating_add(more.allocated_bytes);
            site.allocated_instances = site.allocated_instances.saturating_add(more.allocated_instances);
        }
    }

    fn replace(&mut self, sites: &AllocSites<'_>) {
        for row in sites.sites() {
            let new = site_of(&row);
            let old = std::mem::replace(self.site(&row), new.clone());
            for (sum, figure) in self.sums.iter_mut().zip(figures(&old)) {
                *sum = sum.saturating_sub(figure.into());
            }
            count(&mut self.sums, &new);
        }
    }

    /// Returns the row of a site; a new row has zero figures.
    fn site(&mut self, row: &AllocSite) -> &mut Site {
        let rows = &mut self.rows;
        let at = *self.places.entry((row.class_serial, row.array, row.trace)).or_insert_with(|| {
            let site = Site { trace: row.trace, ..Site::default() };
            rows.push(SiteRecord { class_serial: row.class_serial, array: row.array, site });
            rows.len() - 1
        });
        // Index of a row that was pushed.
        #[allow(clippy::indexing_slicing)]
        &mut self.rows[at].site
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hprof_parser::record::BodyReader;
    use hprof_values::IdSize;

    /// Class, trace, live bytes, live objects, allocated bytes, allocated objects.
    type Figures = [u32; 6];

    /// Returns a record as stored in a file: flags, totals (live bytes and objects, allocated bytes and objects), sites.
    fn record(flags: u16, [live, objects, bytes, allocated]: [u64; 4], sites: &[Figures]) -> Vec<u8> {
        let mut body = flags.to_be_bytes().to_vec();
        body.extend_from_slice(&0xEB1C_432Du32.to_be_bytes());
        for total in [live, objects] {
            body.extend_from_slice(&u32::try_from(total).unwrap().to_be_bytes());
        }
        for total in [bytes, allocated] {
            body.extend_from_slice(&total.to_be_bytes());
        }
        body.extend_from_slice(&u32::try_from(sites.len()).unwrap().to_be_bytes());
        for site in sites {
            body.push(0);
            body.extend(site.iter().flat_map(|number| number.to_be_bytes()));
        }
        alloc_sites_record(&body)
    }

    fn alloc_sites_record(body: &[u8]) -> Vec<u8> {
        let mut out = vec![hprof_parser::record::tag::ALLOC_SITES, 0, 0, 0, 0];
        out.extend_from_slice(&u32::try_from(body.len()).unwrap().to_be_bytes());
        out.extend_from_slice(body);
        out
    }

    fn combine_records(records: &[Vec<u8>]) -> Option<CombinedSites> {
        let bytes = records.concat();
        let reader = BodyReader::new(&bytes, IdSize::Four);
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(record) = Record::at(&bytes, at) {
            found.push((record, reader.alloc_sites(&record).unwrap()));
            at = usize::try_from(record.end()).unwrap();
        }
        assert_eq!(found.len(), records.len());
        combine(&found)
    }

    fn rows(records: &[Vec<u8>]) -> Vec<[u64; 6]> {
        let rows = combine_records(records).unwrap().rows;
        rows.iter()
            .map(|row| {
                let [live, objects, bytes, allocated] = figures(&row.site);
                [row.class_serial.into(), row.site.trace.0.into(), live, objects, bytes, allocated]
            })
            .collect()
    }

    const PLENTY: [u64; 4] = [1000; 4];

    #[test]
    fn no_record_is_no_table() {
        assert!(combine_records(&[]).is_none());
        assert!(combine_records(&[record(0, PLENTY, &[])]).unwrap().rows.is_empty());
    }

    #[test]
    fn a_complete_record_replaces_all_before_it() {
        let first = record(0, PLENTY, &[[1, 1, 9, 9, 9, 9], [2, 1, 5, 5, 5, 5]]);
        let changes = record(1, PLENTY, &[[3, 1, 1, 1, 1, 1]]);
        let second = record(2, [20, 2, 30, 3], &[[2, 1, 4, 1, 30, 3]]);
        assert_eq!(rows(&[first.clone(), changes, second.clone()]), [[2, 1, 4, 1, 30, 3]]);
        let table = combine_records(&[first.clone(), second]).unwrap();
        assert_eq!((figures(&table.totals), table.by_allocation), ([20, 2, 30, 3], true));
        assert_eq!(table.last.unwrap().offset, first.len());
        assert!(!combine_records(&[first]).unwrap().by_allocation);
    }

    #[test]
    fn changes_that_the_totals_can_hold_are_added() {
        let first = record(0, [10, 1, 10, 1], &[[1, 7, 10, 1, 10, 1]]);
        let changes = record(1, [35, 4, 35, 4], &[[2, 7, 20, 2, 20, 2], [1, 7, 5, 1, 5, 1]]);
        assert_eq!(rows(&[first, changes]), [[2, 7, 20, 2, 20, 2], [1, 7, 15, 2, 15, 2]]);
    }

    /// The agent leaves out unchanged sites, and writes the current counters of changed ones.
    #[test]
    fn changes_that_the_totals_cannot_hold_are_new_figures() {
        let first = record(0, [30, 3, 30, 3], &[[1, 7, 20, 2, 20, 2], [2, 7, 10, 1, 10, 1]]);
        let changes = record(1, [50, 5, 50, 5], &[[2, 7, 30, 3, 30, 3]]);
        assert_eq!(rows(&[first.clone(), changes]), [[2, 7, 30, 3, 30, 3], [1, 7, 20, 2, 20, 2]]);
        // Any of the four figures decides: here only the number of allocated objects.
        let changes = record(1, [100, 100, 100, 5], &[[2, 7, 30, 3, 30, 3]]);
        assert_eq!(rows(&[first.clone(), changes])[0], [2, 7, 30, 3, 30, 3]);
        // A site without live objects.
        let changes = record(1, [20, 2, 30, 3], &[[2, 7, 0, 0, 10, 1]]);
        assert_eq!(rows(&[first, changes]), [[1, 7, 20, 2, 20, 2], [2, 7, 0, 0, 10, 1]]);
    }

    #[test]
    fn totals_of_nothing_say_nothing() {
        let first = record(0, [0; 4], &[[1, 7, 10, 1, 10, 1]]);
        let changes = record(1, [0; 4], &[[1, 7, 5, 1, 5, 1]]);
        assert_eq!(rows(&[first, changes]), [[1, 7, 15, 2, 15, 2]]);
    }

    #[test]
    fn a_first_record_may_be_incremental() {
        let changes = |live| record(1, PLENTY, &[[1, 7, live, 1, 10, 1]]);
        assert_eq!(rows(&[changes(10)]), [[1, 7, 10, 1, 10, 1]]);
        assert_eq!(rows(&[changes(10), changes(20)]), [[1, 7, 30, 2, 20, 2]]);
        // Even if the totals of the complete record are wrong.
        let wrong = record(1, [1; 4], &[[1, 7, 10, 10, 10, 10]]);
        assert_eq!(rows(&[wrong]), [[1, 7, 10, 10, 10, 10]]);
    }

    #[test]
    fn one_record_keeps_its_order_and_several_are_sorted() {
        let unsorted =
            |flags| record(flags, PLENTY, &[[1, 7, 1, 1, 9, 1], [2, 7, 3, 1, 7, 1], [3, 7, 2, 1, 8, 1]]);
        let classes = |records: &[Vec<u8>]| rows(records).iter().map(|row| row[0]).collect::<Vec<_>>();
        assert_eq!(classes(&[unsorted(0)]), [1, 2, 3]);
        assert_eq!(classes(&[record(0, PLENTY, &[]), unsorted(1)]), [2, 3, 1]);
        assert_eq!(classes(&[record(0, PLENTY, &[]), unsorted(3)]), [1, 3, 2]);
        // A complete record discards the order of earlier records.
        assert_eq!(classes(&[unsorted(0), unsorted(0)]), [1, 2, 3]);
        // Equal rows stay in the order in which they were read.
        let equal = record(1, PLENTY, &[[5, 1, 1, 1, 1, 1], [4, 1, 1, 1, 1, 1], [6, 1, 1, 1, 1, 1]]);
        assert_eq!(classes(&[equal, record(1, PLENTY, &[])]), [5, 4, 6]);
    }

    #[test]
    fn a_site_is_a_class_and_a_trace() {
        let sites = [[1, 7, 1, 1, 1, 1], [1, 8, 2, 1, 2, 1], [2, 7, 3, 1, 3, 1], [1, 7, 4, 1, 4, 1]];
        let expected = [[1, 7, 5, 2, 5, 2], [1, 8, 2, 1, 2, 1], [2, 7, 3, 1, 3, 1]];
        assert_eq!(rows(&[record(0, PLENTY, &sites)]), expected);
    }

    #[test]
    fn the_largest_figures_are_held() {
        let most = u32::MAX;
        let all = u64::from(most);
        let full = record(0, [all, all, u64::MAX, u64::MAX], &[[1, 7, most, most, most, most]]);
        let more = record(1, [all, all, u64::MAX, u64::MAX], &[[1, 7, most, most, most, most]]);
        // The totals of live bytes have 32 bits, too: they cannot contain twice the maximum.
        assert_eq!(rows(&[full.clone(), more]), [[1, 7, all, all, all, all]]);
        let more = record(1, [0, 0, u64::MAX, u64::MAX], &[[1, 7, most, most, most, most]]);
        assert_eq!(rows(&[full, more]), [[1, 7, 2 * all, 2 * all, 2 * all, 2 * all]]);
    }

    /// A count of sites that exceeds the record, and one that is too small.
    #[test]
    fn counts_that_lie() {
        let mut more = record(0, PLENTY, &[[1, 7, 1, 1, 1, 1]]);
        let count = more.len() - 25 - 4;
        more.splice(count..count + 4, [0xFF; 4]);
        assert_eq!(rows(&[more]), [[1, 7, 1, 1, 1, 1]]);
        let mut fewer = record(0, PLENTY, &[[1, 7, 1, 1, 1, 1], [2, 7, 1, 1, 1, 1]]);
        let count = fewer.len() - 50 - 4;
        fewer.splice(count..count + 4, 1u32.to_be_bytes());
        assert_eq!(rows(&[fewer]), [[1, 7, 1, 1, 1, 1]]);
    }

    /// Head and first sites of a record written by the agent of JDK 8 (`samples/agent/all.hprof.zst`).
    #[test]
    fn the_agents_own_record() {
        let body = [
            [0x00, 0x00, 0xeb, 0x1c, 0x43, 0x2d, 0x00, 0x0b, 0x4a, 0x28, 0x00, 0x00, 0x2b, 0xd9].as_slice(),
            &[0x00, 0x00, 0x00, 0x00, 0x00, 0x0b, 0x4a, 0x28, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x2b, 0xd9],
            &[0x00, 0x00, 0x00, 0x03],
            &[0x00, 0x00, 0x01, 0x88, 0x90, 0x00, 0x04, 0x95, 0x99, 0x00, 0x01, 0xd4, 0xc0, 0x00, 0x00, 0x13],
            &[0x88, 0x00, 0x01, 0xd4, 0xc0, 0x00, 0x00, 0x13, 0x88],
            &[0x05, 0x00, 0x01, 0x88, 0x1e, 0x00, 0x04, 0x93, 0xe0, 0x00, 0x01, 0x24, 0x60, 0x00, 0x00, 0x03],
            &[0x46, 0x00, 0x01, 0x24, 0x60, 0x00, 0x00, 0x03, 0x46],
            &[0x08, 0x00, 0x01, 0x88, 0x1b, 0x00, 0x04, 0x94, 0xdc, 0x00, 0x00, 0xc0, 0x60, 0x00, 0x00, 0x00],
            &[0x06, 0x00, 0x00, 0xc0, 0x60, 0x00, 0x00, 0x00, 0x06],
        ];
        let table = combine_records(&[alloc_sites_record(&body.concat())]).unwrap();
        assert_eq!(figures(&table.totals), [739_880, 11_225, 739_880, 11_225]);
        assert!(!table.by_allocation);
        let found: Vec<_> = table
            .rows
            .iter()
            .map(|row| (row.class_name(None).to_string(), row.site.trace.0, figures(&row.site)))
            .collect();
        let expected = [
            ("<unknown class 100496>", 300_441, [120_000, 5000, 120_000, 5000]),
            ("char[]", 300_000, [74_848, 838, 74_848, 838]),
            ("byte[]", 300_252, [49_248, 6, 49_248, 6]),
        ];
        assert_eq!(found, expected.map(|(name, trace, figures)| (name.to_owned(), trace, figures)));
    }

    #[test]
    fn classes_without_a_name() {
        let row = |array| SiteRecord { class_serial: 9, array, site: Site::default() }.class_name(None);
        assert_eq!(&*row(None), "<unknown class 9>");
        assert_eq!(&*row(Some(BasicType::Object)), "<unknown array class 9>");
        assert_eq!(&*row(Some(BasicType::Double)), "double[]");
    }

    /// The sums that are compared with totals are updated on replacement.
    #[test]
    fn new_figures_are_not_counted_beside_the_old() {
        let first = record(0, [30, 3, 30, 3], &[[1, 7, 30, 3, 30, 3]]);
        let replaced = record(1, [10, 1, 40, 4], &[[1, 7, 10, 1, 40, 4]]);
        let added = record(1, [15, 2, 45, 5], &[[1, 7, 5, 1, 5, 1]]);
        assert_eq!(rows(&[first, replaced, added]), [[1, 7, 15, 2, 45, 5]]);
    }

    /// This takes more than a minute if each record visits all earlier rows.
    #[test]
    fn many_records_of_one_site_each() {
        let many: Vec<_> = (1..=100_000).map(|n| record(1, [0; 4], &[[n, n, 1, 1, 1, 1]])).collect();
        assert_eq!(combine_records(&many).unwrap().rows.len(), many.len());
    }
}
