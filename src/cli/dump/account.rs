//! The bytes of a dump that were read, and those that are missing: shared by `info` and `doctor`.

use crate::cli::prelude::*;
use hprof_index::model::problem::Account;
use hprof_query::dictionary::Name;
use hprof_query::dump::doctor::Extent;
use hprof_report::column::JsonField;
use hprof_report::findings;
use hprof_report::number::format_count;

/// Adds table lines about the extent of a dump; lines that would be empty are left out.
pub(super) fn extent_lines(extent: &Extent, line: &mut dyn FnMut(&str, String)) {
    account_lines(&extent.account, line);
    match extent.missing {
        None => line("missing objects", "unknown: finding them requires reading all references".to_owned()),
        Some(missing) if missing.references == 0 => {
            line("missing objects", "none".to_owned());
        }
        Some(missing) => {
            let at_least = if missing.more { "at least " } else { "" };
            let (objects, references) =
                (group_digits(missing.objects), format_count(missing.references, "dangling reference"));
            line("missing objects", format!("{at_least}{objects}, by {references}"));
        }
    }
    line("retained sizes", findings::retained_accuracy(extent.retained).to_owned());
}

/// Formats a size in units, followed by the exact number of bytes.
pub(super) fn exact(bytes: u64) -> String {
    format!("{} ({})", human_bytes(bytes), group_digits(bytes))
}

/// Adds table lines about the bytes read and the damaged regions.
fn account_lines(account: &Account, line: &mut dyn FnMut(&str, String)) {
    let read = account.read_bytes();
    line(
        "read",
        match account.expected_bytes {
            None => format!("{}; the length of the whole dump is unknown", exact(read)),
            Some(expected) if expected == read => format!("all of {}", exact(expected)),
            // The last record's length gives a lower bound for the file. The number of records that would follow is
            // unknown: HotSpot writes segments of about a megabyte.
            Some(expected) if expected > account.file_bytes => format!(
                "{} of at least {}: at most {} of the dump, whose full length is unknown",
                exact(read),
                exact(expected),
                percent(read, expected)
            ),
            Some(expected) => format!("{} of {}, {}", exact(read), exact(expected), percent(read, expected)),
        },
    );
    let records = "at the top level, with one or more records each";
    let objects = "in the heap dump, with one or more objects or roots each";
    let undumped = "of classes that are not in the dump";
    let counts = [
        ("  unreadable", account.skipped_bytes, "byte", "of the file"),
        ("  lost records", account.lost_records, "damaged region", records),
        ("  lost objects", account.lost_places, "damaged region", objects),
        ("  lost classes", account.undumped_classes, "name", undumped),
        ("  odd objects", account.objects_without_class, "instance", undumped),
        (
            "  odd lengths",
            account.odd_instances,
            "instance",
            "with more or fewer bytes than the class declares",
        ),
    ];
    for (key, count, unit, what) in counts.into_iter().filter(|(_, count, ..)| *count > 0) {
        line(key, format!("{} {what}", format_count(count, unit)));
    }
}

/// Returns the column with the account of a file, `null` for rows without one.
pub(super) fn column<'c, R: 'c>(
    extent: impl for<'r> Fn(&'r R) -> Option<&'r Extent> + Send + Sync + 'c,
) -> Column<'c, R> {
    Column::with_fields(names::ACCOUNT, columns().fields(), move |row: &R| {
        extent(row).map_or(Value::Null, |extent| columns().record(extent))
    })
}

fn columns() -> Columns<'static, Extent> {
    let integer = |name: Name, value: fn(&Account) -> u64| {
        Column::new(name, move |extent: &Extent| value(&extent.account).into())
    };
    let missing = vec![
        JsonField::new(names::REFERENCES),
        JsonField::new(names::OBJECTS),
        JsonField::new(names::IS_INCOMPLETE),
    ];
    Columns::new([
        integer(names::READ_BYTES, Account::read_bytes),
        Column::new(names::EXPECTED_BYTES, |extent: &Extent| extent.account.expected_bytes.into())
            .or_null("unknown: the file ends between two records, or its compressed form is damaged"),
        integer(names::SKIPPED_BYTES, |account| account.skipped_bytes),
        integer(names::LOST_RECORDS, |account| account.lost_records),
        integer(names::LOST_PLACES, |account| account.lost_places),
        integer(names::UNDUMPED_CLASSES, |account| account.undumped_classes),
        integer(names::OBJECTS_WITHOUT_CLASS, |account| account.objects_without_class),
        integer(names::ODD_INSTANCES, |account| account.odd_instances),
        integer(names::EMPTY_SEGMENTS, |account| account.empty_segments),
        integer(names::CUT_ARRAYS, |account| account.cut_object_arrays + account.cut_primitive_arrays),
        Column::with_fields(names::DANGLING_REFERENCES, missing, |extent: &Extent| {
            serde_json::to_value(extent.missing).unwrap_or_default().into()
        })
        .or_null("the index has no stage `references` yet"),
        Column::new(names::RETAINED_SIZES, |extent: &Extent| {
            serde_json::to_value(extent.retained).unwrap_or_default().into()
        }),
    ])
}
