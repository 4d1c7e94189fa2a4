//! How much of a dump was read, and what is missing: shared by `info` and `doctor`.

use hprof_index::model::problem::Account;
use hprof_query::dump::doctor::Extent;
use hprof_report::column::{Column, Columns, Field, Kind};
use hprof_report::findings;
use hprof_report::number::{counted, grouped, human_bytes};
use hprof_report::value::Value;

/// The kinds of problems, for the reference.
pub(super) const PROBLEM_KINDS: &str = "what kind of thing it is: `file_cut`, `compressed_file_cut`, `unknown_record`, \
     `damaged_record`, `unknown_sub_record`, `damaged_sub_record`, `no_record_follows`, `text_mode`, `more_places`, \
     `no_end_record`, `length_wrapped`, `length_open`, `empty_segments`, `repeated_objects`, `repeated_classes`, \
     `missing_classes`, `unnamed_classes`, `odd_instances`, `cut_arrays`, `threads_assumed`, `no_heap_dump` or \
     `cut_sub_record`";

/// How much of a dump is there, as lines of a table: only what there is to say.
pub(super) fn extent_lines(extent: &Extent, line: &mut dyn FnMut(&str, String)) {
    account_lines(&extent.account, line);
    match extent.missing {
        None => line("missing objects", "unknown: finding them requires reading all references".to_owned()),
        Some(missing) if missing.references == 0 => {
            line("missing objects", "none: there is no dangling reference".to_owned());
        }
        Some(missing) => {
            let at_least = if missing.more { "at least " } else { "" };
            let (objects, references) =
                (grouped(missing.objects), counted(missing.references, "dangling reference"));
            line("missing objects", format!("{at_least}{objects}, by {references}"));
        }
    }
    line("retained sizes", findings::retained(extent.retained).to_owned());
}

/// A size for people, and exactly.
pub(super) fn exact(bytes: u64) -> String {
    format!("{} ({})", human_bytes(bytes), grouped(bytes))
}

/// What was read and what is lost.
fn account_lines(account: &Account, line: &mut dyn FnMut(&str, String)) {
    let read = account.read_bytes();
    line(
        "read",
        match account.expected_bytes {
            None => format!("{}; the length of the whole dump is unknown", exact(read)),
            Some(expected) if expected == read => format!("all of {}", exact(expected)),
            // The record that the file ends in says where it ends. How many were to follow nothing says: HotSpot writes
            // segments of a megabyte or so.
            Some(expected) if expected > account.file_bytes => format!(
                "{} of at least {}: at most {} of the dump, as no record says how many were to follow",
                exact(read),
                exact(expected),
                share(read, expected)
            ),
            Some(expected) => format!("{} of {}, {}", exact(read), exact(expected), share(read, expected)),
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
        line(key, format!("{} {what}", counted(count, unit)));
    }
}

/// A part of a whole as people say it, never rounded up to all of it.
fn share(part: u64, whole: u64) -> String {
    let per_mille = u128::from(part) * 1000 / u128::from(whole.max(1));
    format!("{}.{} %", per_mille / 10, per_mille % 10)
}

/// The account as a column of rows that may have one.
pub(super) fn column<'c, R: 'c>(
    key: &'static str,
    extent: impl for<'r> Fn(&'r R) -> Option<&'r Extent> + Send + Sync + 'c,
) -> Column<'c, R> {
    let meaning = "what was read of the dump and what is missing, in numbers; leaves nothing out, while `problems` lists only \
                   the first of many places";
    Column::new(key, Kind::Record(columns().fields()), meaning, move |row: &R| {
        extent(row).map_or(Value::Null, |extent| columns().record(extent))
    })
}

fn columns() -> Columns<'static, Extent> {
    let integer = |key: &'static str, meaning: &'static str, value: fn(&Account) -> u64| {
        Column::integer(key, meaning, move |extent: &Extent| value(&extent.account).into())
    };
    let missing = vec![
        Field::new("references", Kind::Integer, "references to them"),
        Field::new("objects", Kind::Integer, "distinct objects"),
        Field::new("more", Kind::Boolean, "whether there are more than 1,048,576 of these"),
    ];
    Columns::new([
        integer("read_bytes", "bytes of the unpacked dump that were read", Account::read_bytes),
        Column::integer(
            "expected_bytes",
            "bytes that it has to have at least, as its last record says; its length if nothing is missing there",
            |extent: &Extent| extent.account.expected_bytes.into(),
        )
        .or_null("not known: the file ends between two records, or its compressed form is damaged"),
        integer("skipped_bytes", "bytes that are there and could not be read", |account| account.skipped_bytes),
        integer("lost_records", "damaged regions at the top level of the file, with one or more records each", |account| {
            account.lost_records
        }),
        integer("lost_places", "damaged regions in the heap dump, with one or more sub-records each", |account| {
            account.lost_places
        }),
        integer(
            "undumped_classes",
            "classes that records or objects name, and that the heap dump does not contain",
            |account| account.undumped_classes,
        ),
        integer("objects_without_class", "instances of such classes: their fields are not known", |account| {
            account.objects_without_class
        }),
        integer("odd_instances", "instances with more or fewer bytes than their class declares", |account| {
            account.odd_instances
        }),
        integer("empty_segments", "heap dump records without a sub-record", |account| account.empty_segments),
        integer("cut_arrays", "arrays as long as HotSpot can dump them: it may have truncated them", |account| {
            account.cut_object_arrays + account.cut_primitive_arrays
        }),
        Column::new(
            "missing_objects",
            Kind::Record(missing),
            "dangling references. Whole dumps of HotSpot have some, as it leaves out objects of its archive",
            |extent: &Extent| serde_json::to_value(extent.missing).unwrap_or_default().into(),
        )
        .or_null("the index has no stage `references` yet"),
        Column::text(
            "retained_sizes",
            "how far retained sizes can be believed: `exact`; `lower_bounds`, if only elements of primitive arrays are \
             missing; `of_what_is_there`, if objects, references or roots are missing: what held a lost object retains \
             more in truth, what shared an object with a lost one retains less",
            |extent: &Extent| serde_json::to_value(extent.retained).unwrap_or_default().into(),
        ),
    ])
}
