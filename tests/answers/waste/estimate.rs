//! The estimate of the overview against `waste`: the same figures of a small heap, about the same of a sample.

use hprof_query::waste::estimate::{Estimate, estimate, estimate_with};
use hprof_query::waste::{WasteQuery, fields::FieldGroupBy, waste};

use crate::kit::dump::{Dump, whole_dump};

use super::made::Shop;

/// Six thousand Strings of which every other one is one of ten texts, and a large array of zeros.
fn shop() -> Dump {
    let mut shop = Shop::new();
    for number in 0..6000 {
        let text =
            if number % 2 == 0 { format!("text {:05}", number % 20) } else { format!("only {number:05}") };
        let string = shop.string(&text);
        shop.keep(string);
    }
    let zeros = shop.bytes(&[0; 200_000]);
    shop.keep(zeros);
    shop.dump()
}

#[test]
fn an_estimate_is_about_what_waste_says() {
    let dump = shop();
    let (heap, graph) = dump.open_graph();
    let question = WasteQuery { kinds: Vec::new(), group_by: FieldGroupBy::Field, examples: 0 };
    let exact = waste(&whole_dump(&heap, &graph), &question).unwrap();
    let of = |kind| exact.rows.iter().find(|row| row.kind.name == kind).unwrap().wasted_bytes;
    let whole = estimate(&whole_dump(&heap, &graph)).unwrap();
    assert!(whole.is_exact);
    assert_eq!((whole.wasted_bytes, whole.all_bytes), (exact.wasted_bytes, exact.all_bytes));
    let kinds: Vec<_> = exact.rows.iter().map(|row| (row.kind, row.wasted_bytes)).collect();
    assert_eq!(whole.kinds, kinds);
    // A third of the heap in 64 windows.
    let sample: Estimate = estimate_with(&whole_dump(&heap, &graph), 1000, (64, 64)).unwrap();
    assert!(!sample.is_exact && sample.wasted_bytes > 0, "{sample:?}");
    assert_eq!(sample.kinds.first().map(|(kind, _)| kind.name), Some("duplicate_strings"), "{sample:?}");
    // Large objects are in no sample: each would count for three.
    assert!(sample.kinds.iter().all(|(kind, _)| kind.name != "constant_arrays"), "{sample:?}");
    let strings = of("duplicate_strings");
    assert!((strings / 10 * 7..strings / 10 * 12).contains(&sample.wasted_bytes), "{sample:?}: {strings}");
    // The same each time.
    assert_eq!(sample, estimate_with(&whole_dump(&heap, &graph), 1000, (64, 64)).unwrap());
}
