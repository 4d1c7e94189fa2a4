//! Columns for kinds of waste.

use crate::cli::prelude::*;
use hprof_query::waste::{Example, FieldGroupBy, FieldSum, FindingPart, Waste, WasteRow};
use hprof_report::column::CellTarget;
use hprof_report::number::hundredths;
use hprof_report::value::id;

use super::WORDS;
use crate::cli::shared::facts;
use crate::cli::shared::keys::word_of;

/// A kind of waste, as a row of the result.
pub(super) struct WasteLine<'a> {
    pub(super) waste: &'a Waste,
    pub(super) row: &'a WasteRow,
    /// Maximum number of fields shown; `None` for all.
    pub(super) top: Option<usize>,
}

impl<'a> WasteLine<'a> {
    fn fields(&self) -> &'a [FieldSum] {
        first_fields(self.row, self.top)
    }
}

fn first_fields(row: &WasteRow, top: Option<usize>) -> &[FieldSum] {
    row.fields.get(..top.unwrap_or(usize::MAX).min(row.fields.len())).unwrap_or_default()
}

/// Returns the title of the column with the names of fields, or of the classes, loaders or packages that contain them.
pub(super) const fn title(by: FieldGroupBy) -> &'static str {
    match by {
        FieldGroupBy::Field => "field",
        FieldGroupBy::Class => "class of the field",
        FieldGroupBy::Loader => "loader",
        FieldGroupBy::Package => "package",
    }
}

/// Returns the name of a field in a table.
pub(super) fn name(field: &FieldSum) -> String {
    match (field.name(), field.loader) {
        (Some(name), Some(loader)) => format!("{name} {loader:#x}"),
        (Some(name), None) if name.is_empty() => "(unnamed package)".to_owned(),
        (Some(name), None) => name,
        (None, Some(_)) => "boot loader".to_owned(),
        (None, None) => "(GC roots)".to_owned(),
    }
}

/// Returns the link target of a field: its declaring class or, if fields are grouped by loader, the loader. A package has no
/// link.
fn target(field: &FieldSum, by: FieldGroupBy) -> Option<CellTarget> {
    match (by, &field.class, field.loader) {
        (FieldGroupBy::Field | FieldGroupBy::Class, Some(class), _) => {
            Some(CellTarget::Class(class.to_string(), None))
        }
        (FieldGroupBy::Loader, _, Some(loader)) => Some(CellTarget::Object(loader)),
        _ => None,
    }
}

/// Returns the link target of a kind of waste: its page.
fn page(row: &WasteLine<'_>) -> Option<CellTarget> {
    Some(CellTarget::Page(format!("waste?kind={}", word_of(&WORDS, row.row.kind))))
}

pub(super) fn columns<'a>(by: FieldGroupBy) -> Columns<'a, WasteLine<'a>> {
    let columns = Columns::new([
        Column::new(names::KIND, |row: &WasteLine<'a>| row.row.kind.name.into()),
        Column::new(names::OBJECTS, |row: &WasteLine<'a>| row.row.count.into()),
        Column::new(names::WASTED_BYTES, |row: &WasteLine<'a>| row.row.wasted_bytes.into()),
        Column::new(names::HEAP_PERCENT, |row: &WasteLine<'a>| {
            Value::Float(hundredths(row.row.wasted_bytes, row.waste.all_bytes))
        }),
        Column::new(names::ADDED_BYTES, |row: &WasteLine<'a>| row.row.added_bytes.into()),
        Column::new(names::FIELD_COUNT, |row: &WasteLine<'a>| row.row.fields.len().into()),
        Column::records(names::FIELDS, fields(), |row: &WasteLine<'a>| row.fields()),
        Column::records(names::PARTS, parts(), |row: &WasteLine<'a>| &row.row.parts),
        Column::records(names::EXAMPLES, examples(), |row: &WasteLine<'a>| &row.row.examples),
    ]);
    let most = |row: &WasteLine<'a>| {
        let Some(field) = row.row.fields.first() else { return String::new() };
        format!("{} {}", percent(field.wasted_bytes, row.row.wasted_bytes), name(field))
    };
    columns.table([
        TableColumn::new(names::WASTED_BYTES, "wasted")
            .cell(|row: &WasteLine<'a>| human_bytes(row.row.wasted_bytes)),
        TableColumn::new(names::HEAP_PERCENT, "%")
            .cell(|row: &WasteLine<'a>| percent(row.row.wasted_bytes, row.waste.all_bytes)),
        TableColumn::new(names::ADDED_BYTES, "added")
            .cell(|row: &WasteLine<'a>| human_bytes(row.row.added_bytes))
            .fit(Fit::Secondary { priority: 0 }),
        TableColumn::new(names::OBJECTS, "count"),
        TableColumn::new(names::KIND, "kind").target(page),
        TableColumn::table_only(format!("most by {}", title(by)), Align::Left, most)
            .fit(Fit::Shorten { priority: 0 })
            .target(move |row: &WasteLine<'a>| target(row.row.fields.first()?, by)),
    ])
}

fn fields<'c>() -> Columns<'c, FieldSum> {
    Columns::new(facts::own_columns(FieldSum::facts()))
}

/// Returns the columns for the parts of a kind of waste.
pub(super) fn parts<'c>() -> Columns<'c, FindingPart> {
    let columns = Columns::new([
        Column::new(names::WHAT, |part: &FindingPart| (&part.what).into()),
        Column::new(names::OBJECTS, |part: &FindingPart| part.count.into()),
        Column::new(names::WASTED_BYTES, |part: &FindingPart| part.wasted_bytes.into()),
        Column::new(names::RATIO, |part: &FindingPart| {
            part.ratio.map_or(Value::Null, |ratio| Value::Float((ratio * 1e4).round() / 1e4))
        })
        .or_null("nothing is full or empty"),
    ]);
    columns.table([
        TableColumn::new(names::WASTED_BYTES, "wasted")
            .cell(|part: &FindingPart| human_bytes(part.wasted_bytes)),
        TableColumn::new(names::OBJECTS, "count"),
        TableColumn::new(names::RATIO, "ratio")
            .align(Align::Right)
            .cell(|part: &FindingPart| part.ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"))),
        TableColumn::new(names::WHAT, "what"),
    ])
}

/// Returns the columns for example objects.
pub(super) fn examples<'c>() -> Columns<'c, Example> {
    let columns = Columns::new([
        Column::new(names::OBJECT, |example: &Example| id(example.object)),
        Column::new(names::CLASS, |example: &Example| example.class.as_ref().into())
            .or_null(nulls::CLASS_MISSING),
        Column::new(names::LABEL, |example: &Example| example.label.as_ref().into())
            .or_null(nulls::NONE_LISTED),
        Column::new(names::COPIES, |example: &Example| example.count.into()),
        Column::new(names::WASTED_BYTES, |example: &Example| example.wasted_bytes.into()),
    ]);
    columns.table([
        TableColumn::new(names::WASTED_BYTES, "wasted"),
        TableColumn::new(names::COPIES, "count"),
        TableColumn::new(names::OBJECT, "object"),
        TableColumn::new(names::CLASS, "class"),
        TableColumn::new(names::LABEL, "label").fit(Fit::Cut { priority: 0 }),
    ])
}

/// Returns the keys in addition to the rows.
pub(super) fn summary_columns<'a>() -> Columns<'a, &'a Waste> {
    Columns::new([
        Column::new(names::TOTAL.dot(names::WASTED_BYTES), |waste: &&'a Waste| waste.wasted_bytes.into()),
        Column::new(names::TOTAL.dot(names::REACHABLE_BYTES), |waste: &&'a Waste| {
            waste.reachable_bytes.into()
        }),
        Column::new(names::TOTAL.dot(names::SHALLOW_BYTES), |waste: &&'a Waste| waste.all_bytes.into()),
    ])
}

/// A kind of waste and one of its fields: a row of CSV, or of the table of one kind.
pub(super) struct FlatRow<'a> {
    pub(super) of: &'a WasteRow,
    /// Field that references the waste; `None` for a kind without fields.
    pub(super) field: Option<&'a FieldSum>,
}

/// Returns a row for each field of each kind, and one for each kind without fields.
pub(super) fn flat_rows(waste: &Waste, top: Option<usize>) -> Vec<FlatRow<'_>> {
    let rows = waste.rows.iter().flat_map(|of| {
        let fields = first_fields(of, top);
        let none = of.fields.is_empty().then_some(FlatRow { of, field: None });
        fields.iter().map(move |field| FlatRow { of, field: Some(field) }).chain(none)
    });
    rows.collect()
}

/// Returns the columns for a kind of waste and one of its fields.
pub(super) fn flat<'a>() -> Columns<'a, FlatRow<'a>> {
    Columns::new([
        Column::new(names::KIND, |row: &FlatRow<'a>| row.of.kind.name.into()),
        Column::new(names::FIELD, |row: &FlatRow<'a>| row.field.and_then(FieldSum::name).into()),
        Column::new(names::IS_STATIC, |row: &FlatRow<'a>| row.field.map(|field| field.is_static).into()),
        Column::new(names::LOADER_OBJECT, |row: &FlatRow<'a>| id(row.field.and_then(|field| field.loader))),
        Column::new(names::OBJECTS, |row: &FlatRow<'a>| {
            row.field.map_or(row.of.count, |field| field.count).into()
        }),
        Column::new(names::WASTED_BYTES, |row: &FlatRow<'a>| {
            row.field.map_or(row.of.wasted_bytes, |field| field.wasted_bytes).into()
        }),
    ])
}

/// Returns the columns for the fields of one kind of waste; `bytes` is the total size of the kind.
pub(super) fn of_fields<'a>(by: FieldGroupBy, bytes: u64) -> Columns<'a, &'a FieldSum> {
    Columns::new([]).table([
        TableColumn::table_only("wasted", Align::Right, |field: &&'a FieldSum| {
            human_bytes(field.wasted_bytes)
        }),
        TableColumn::table_only("%", Align::Right, move |field: &&'a FieldSum| {
            percent(field.wasted_bytes, bytes)
        }),
        TableColumn::table_only("count", Align::Right, |field: &&'a FieldSum| group_digits(field.count)),
        TableColumn::table_only(title(by), Align::Left, |field: &&'a FieldSum| name(field))
            .fit(Fit::Shorten { priority: 0 })
            .target(move |field: &&'a FieldSum| target(field, by)),
    ])
}
