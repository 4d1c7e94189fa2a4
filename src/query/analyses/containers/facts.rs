//! Facts about rows that may have a container.

use hprof_base::dictionary::names;
use hprof_base::fact::Fact;

use super::{Container, NestedElements};

/// A row that may have a container.
pub trait ContainerRow: Sized {
    /// Returns the container of the row.
    fn container(&self) -> Option<&Container>;

    /// Returns the elements of the collections in the container.
    fn nested_elements(&self) -> Option<&NestedElements> {
        self.container()?.nested.as_ref()
    }

    /// Returns the facts about the container.
    fn container_facts() -> Vec<Fact<Self>> {
        const NONE: &str = "not a container";
        vec![
            Fact::new(names::CONTAINER_FAMILY, |row: &Self| {
                row.container().map(|one| one.family.name()).into()
            })
            .or_null(NONE),
            Fact::new(names::ELEMENTS, |row: &Self| row.container().map(|one| one.elements).into())
                .or_null(NONE),
            Fact::new(names::IS_EXACT, |row: &Self| row.container().map(|one| one.is_exact).into())
                .or_null(NONE),
        ]
    }

    /// Returns the facts about the elements of the collections in the container.
    fn nested_facts() -> Vec<Fact<Self>> {
        const NONE: &str = "the elements are not collections, retain little of the container, or hold elements of different kinds";
        vec![
            Fact::new(names::NESTED_ELEMENTS, |row: &Self| {
                row.nested_elements().map(|nested| nested.elements).into()
            })
            .or_null(NONE),
            Fact::new(names::IS_NESTED_EXACT, |row: &Self| {
                row.nested_elements().map(|nested| nested.is_exact).into()
            })
            .or_null(NONE),
            Fact::new(names::NESTED_CLASS, |row: &Self| {
                row.nested_elements().and_then(|nested| nested.element_class.as_ref()).into()
            })
            .or_null(NONE),
        ]
    }
}
