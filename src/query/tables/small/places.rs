//! The table `places`.

use std::io;

use super::super::{Column, Context, Definition};
use super::RowWriter;
use hprof_analyses::compare::places::{Aligned, DumpPlaces};
use hprof_analyses::containers::Containers;
use hprof_base::dictionary::names;

/// Returns the definition of the table.
pub(crate) fn definition() -> Definition {
    Definition {
        name: "places".into(),
        meaning: "A place of the program that holds objects, by names that mean the same in every dump: `diff --group-by place` \
                  compares them. What is at a place retains what is at the places below it"
            .into(),
        order: "each after the place above it".into(),
        columns: vec![
            Column::of(names::PLACE_NUMBER),
            Column::of(names::PARENT_PLACE_NUMBER).or_null("it is at the top"),
            Column::of(names::DEPTH),
            Column::of(names::PLACE_TEXT),
            Column::of(names::KEYS)
                .or_null("there are none")
                .secret(),
            Column::of(names::CLASS).few()
                .or_null("the dump does not say"),
            Column::of(names::IS_CLASS_OBJECT),
            Column::of(names::OBJECTS),
            Column::of(names::RETAINED_BYTES),
            Column::of(names::IS_NESTING),
            Column::of(names::EXAMPLE_OBJECT).or_null("there is none"),
            Column::of(names::CONTAINER_FAMILY).few().or_null("it is no container"),
            Column::of(names::ELEMENTS).or_null("it is no container"),
        ],
    }
}

/// Makes the rows.
pub(crate) fn make(context: &Context<'_>, rows: &mut RowWriter) -> io::Result<()> {
    let places = DumpPlaces::new(&context.dump)?.without_structures();
    // Tables of several dumps are joined by path, while the keys worth showing differ between dumps.
    let aligned = Aligned::with_all_keys(&[places]);
    let containers = Containers::find(&context.dump)?;
    let by_object = containers.by_object();
    let mut depths: Vec<u64> = Vec::with_capacity(aligned.parents.len());
    for place in aligned.places() {
        let at = place as usize;
        let parent = aligned.parents.get(at).copied().flatten();
        let depth = parent.and_then(|parent| depths.get(parent as usize)).map_or(1, |depth| depth + 1);
        depths.push(depth);
        let (label, figures) = (aligned.label(place), aligned.figures(0, place));
        let container = by_object.get(&figures.example).filter(|_| figures.objects == 1);
        let keys = aligned.keys(place);
        let keys = (!keys.is_empty()).then(|| serde_json::Value::from(keys).to_string());
        rows.count(u64::from(place))
            .count(parent.map(u64::from))
            .count(depth)
            .text(&*aligned.text_without_keys(place))
            .text(keys.as_deref())
            .text(label.class.as_deref())
            .boolean(label.is_class_object)
            .count(figures.objects)
            .count(figures.retained_bytes)
            .boolean(aligned.is_nesting.get(at) == Some(&true))
            .id(figures.example.non_null())
            .text(container.map(|one| one.family.name()))
            .count(container.map(|one| one.elements))
            .end();
    }
    Ok(())
}
