//! Descriptions of containers, and their columns.

use hprof_query::containers::{Container, ContainerRow, ElementClass, NestedElements};
use hprof_query::dictionary::names;
use hprof_query::share::is_share;
use hprof_report::column::{Column, Columns};
use hprof_report::number::{format_count, group_digits};
use hprof_values::names::is_of_jdk;

use super::{facts, holder};

/// Maximum number of classes of elements that a sentence names.
const NAMED_CLASSES: usize = 4;

/// Minimum percentage of elements of one class for which the others are only counted.
const NEARLY_ALL: u64 = 90;

/// Describes the elements of a container: `40,000 x acme.Event (acme.Login 10,000, acme.Logout 10,000)`; without packages if
/// `is_short` is set.
pub(crate) fn elements(container: &Container, is_short: bool) -> String {
    let Container { elements, is_exact, element_class, element_classes, is_mostly, .. } = container;
    let count = format!("{}{}", if *is_exact { "" } else { "at least " }, group_digits(*elements));
    let of_class = container.elements_of_class();
    let simple = |class| holder::simple(class, is_short);
    // If the class of the keys belongs to the program, it describes the elements.
    let key = match container.keys.as_slice() {
        [key] if !is_of_jdk(&key.class) && Some(&key.class) != element_class.as_ref() => {
            format!(" by {}", simple(&key.class))
        }
        _ => String::new(),
    };
    let elements = match (element_class, element_classes.as_slice()) {
        // The other elements may be no more than sentinels.
        (Some(class), _) if *is_mostly && *is_exact && is_share(of_class, *elements, NEARLY_ALL) => {
            let others = format_count(elements.saturating_sub(of_class), "other");
            format!("{} x {} and {others}", group_digits(of_class), simple(class))
        }
        (Some(class), _) if *is_mostly => format!("{count} elements, mostly {}", simple(class)),
        (Some(class), [] | [_]) => format!("{count} x {}", simple(class)),
        (Some(class), classes) => {
            format!("{count} x {} ({})", simple(class), class_counts(classes, container.classes, is_short))
        }
        (None, []) => format!("{count} elements"),
        (None, classes) => {
            format!("{count} elements ({})", class_counts(classes, container.classes, is_short))
        }
    };
    let nested =
        container.nested.as_ref().map(|nested| nested_elements(nested, is_short)).unwrap_or_default();
    elements + &key + &nested
}

/// Describes the elements of the collections in a container: ` with 40,000 x acme.Event`.
fn nested_elements(nested: &NestedElements, is_short: bool) -> String {
    let count =
        format!("{}{}", if nested.is_exact { "" } else { "at least " }, group_digits(nested.elements));
    match &nested.element_class {
        Some(class) if nested.is_mostly => {
            format!(" with {count} elements, mostly {}", holder::simple(class, is_short))
        }
        Some(class) => format!(" with {count} x {}", holder::simple(class, is_short)),
        None => format!(" with {count} elements"),
    }
}

/// Names the classes with the most elements: `acme.Login 10,000, acme.Logout 9,000 and 2 more classes`.
fn class_counts(classes: &[ElementClass], all: u64, is_short: bool) -> String {
    let one = |row: &ElementClass| {
        let class = if row.class.is_empty() { "null" } else { holder::simple(&row.class, is_short) };
        format!("{class} {}", group_digits(row.elements))
    };
    let told: Vec<String> = classes.iter().take(NAMED_CLASSES).map(one).collect();
    match (all.saturating_sub(told.len() as u64), told.join(", ")) {
        (0, told) => told,
        (1, told) => format!("{told} and 1 more class"),
        (more, told) => format!("{told} and {} more classes", group_digits(more)),
    }
}

/// Returns the columns about the container of a row.
pub(crate) fn columns<'c, R: ContainerRow + 'c>() -> Vec<Column<'c, R>> {
    let mut columns = facts::own_columns(R::container_facts());
    columns.extend([
        Column::records(names::ELEMENT_CLASSES, class_columns(), |row: &R| {
            row.container().map_or(&[], |one| one.element_classes.as_slice())
        })
        .csv(|row: &R| row.container().map(|one| elements(one, false)).into()),
        Column::records(names::KEY_CLASSES, class_columns(), |row: &R| {
            row.container().map_or(&[], |one| one.keys.as_slice())
        })
        .csv(|row: &R| {
            row.container()
                .map(|one| class_counts(&one.keys, one.keys.len() as u64, false))
                .filter(|text| !text.is_empty())
                .into()
        }),
    ]);
    columns.extend(facts::own_columns(R::nested_facts()));
    columns
}

/// Returns the columns for the classes of elements or keys.
fn class_columns<'c>() -> Columns<'c, ElementClass> {
    Columns::new([
        Column::new(names::CLASS, |row: &ElementClass| (&row.class).into()),
        Column::new(names::ELEMENTS, |row: &ElementClass| row.elements.into()),
        Column::new(names::RETAINED_BYTES, |row: &ElementClass| row.retained_bytes.into()),
    ])
}
