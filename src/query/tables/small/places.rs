//! The table `places`.

use std::io;

use super::super::fact_columns::{self, FactColumns};
use super::super::{Batch, Definition, TableContext};
use hprof_analyses::compare::places::{AlignedPlaces, DumpPlaces, PlaceEntry};
use hprof_analyses::containers::{Container, ContainerRow, Containers};
use hprof_base::dictionary::{names, nulls};
use hprof_base::fact::Fact;

/// Row of `places`.
struct PlaceLine<'c> {
    place: u32,
    parent: Option<u32>,
    text: String,
    keys: Option<String>,
    entry: PlaceEntry,
    is_nesting: bool,
    container: Option<&'c Container>,
}

impl ContainerRow for PlaceLine<'_> {
    fn container(&self) -> Option<&Container> {
        self.container
    }
}

/// Returns the columns of the table.
fn columns<'c>() -> FactColumns<'c, PlaceLine<'c>> {
    let own = vec![
        Fact::new(names::PLACE_NUMBER, |line: &PlaceLine<'c>| line.place.into()),
        Fact::new(names::PARENT_PLACE_NUMBER, |line: &PlaceLine<'c>| line.parent.into())
            .or_null(nulls::TOP_PLACE),
        Fact::new(names::PLACE_TEXT, |line: &PlaceLine<'c>| (&line.text).into()),
        Fact::new(names::KEYS, |line: &PlaceLine<'c>| line.keys.as_ref().into())
            .or_null("the place has no keys")
            .secret(),
        Fact::new(names::IS_NESTING, |line: &PlaceLine<'c>| line.is_nesting.into()),
    ];
    let mut facts = fact_columns::own_columns(own);
    facts.extend(fact_columns::columns(PlaceEntry::facts(), |line: &PlaceLine<'c>| &line.entry));
    facts.extend(fact_columns::own_columns(PlaceLine::container_facts()));
    let shown = [
        names::PLACE_NUMBER,
        names::PARENT_PLACE_NUMBER,
        names::DEPTH,
        names::PLACE_TEXT,
        names::KEYS,
        names::CLASS,
        names::IS_CLASS_OBJECT,
        names::OBJECTS,
        names::RETAINED_BYTES,
        names::IS_NESTING,
        names::EXAMPLE_OBJECT,
        names::CONTAINER_FAMILY,
        names::ELEMENTS,
    ];
    FactColumns::new(&shown, &[names::CLASS, names::CONTAINER_FAMILY], facts)
}

/// Returns the definition of the table.
pub(crate) fn definition() -> Definition {
    Definition {
        name: "places".into(),
        meaning: "A place of the program that holds objects, by names that mean the same in every dump: `diff --group-by place` \
                  compares them. What is at a place retains what is at the places below it"
            .into(),
        order: "by parent: each place after its parent".into(),
        columns: columns().definitions(),
    }
}

/// Adds the rows.
pub(crate) fn make(context: &TableContext<'_>, rows: &mut Batch) -> io::Result<()> {
    let places = DumpPlaces::new(&context.dump)?.without_structures();
    // Tables of several dumps are joined by path, while the informative keys differ between dumps.
    let aligned = AlignedPlaces::with_all_keys(&[places]);
    let containers = Containers::find(&context.dump)?;
    let by_object = containers.by_object();
    let columns = columns();
    let mut depths: Vec<u64> = Vec::with_capacity(aligned.parents.len());
    for place in aligned.places() {
        let at = place as usize;
        let parent = aligned.parents.get(at).copied().flatten();
        let depth = parent.and_then(|parent| depths.get(parent as usize)).map_or(1, |depth| depth + 1);
        depths.push(depth);
        let entry = PlaceEntry::new(&aligned, place, depth, context.dump.graph.tree.reachable_bytes());
        let container = by_object.get(&entry.figures.example).filter(|_| entry.figures.objects == 1);
        let keys = aligned.keys(place);
        let line = PlaceLine {
            place,
            parent,
            text: aligned.text_without_keys(place),
            keys: (!keys.is_empty()).then(|| serde_json::Value::from(keys).to_string()),
            entry,
            is_nesting: aligned.is_nesting(place),
            container: container.copied(),
        };
        columns.add_with_names(&line, context.dump.summary, rows);
    }
    Ok(())
}
