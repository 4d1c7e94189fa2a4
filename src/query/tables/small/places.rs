//! The table `places`.

use std::io;

use super::super::{Column, Context, Definition, Kind};
use super::Rows;
use crate::compare::places::{Aligned, Places};

/// What the table has.
pub(super) fn definition() -> Definition {
    Definition {
        name: "places".into(),
        meaning: "A place of the program that holds objects, by names that mean the same in every dump: `diff --group-by place` \
                  compares them. What is at a place retains what is at the places below it"
            .into(),
        order: "each after the place above it".into(),
        columns: vec![
            Column::new("number", Kind::Integer, "its number in this dump, from 0"),
            Column::new("parent_number", Kind::Integer, "the place above it").or_null("it is at the top"),
            Column::new("depth", Kind::Integer, "1 at the top"),
            Column::new(
                "path",
                Kind::Text,
                "labels from the top, as `diff --group-by place` prints them, but `{*}` for keys of maps",
            ),
            Column::new("keys", Kind::Text, "the keys of maps in `path`, as a JSON array")
                .or_null("there are none")
                .secret(),
            Column::new("class", Kind::Name, "the class of its objects; of class objects the class they stand for")
                .or_null("the dump does not say"),
            Column::new("is_class_object", Kind::Boolean, "whether its objects are class objects"),
            Column::new("objects", Kind::Integer, "its objects; of a collection the collection itself"),
            Column::new("retained_bytes", Kind::Integer, "what they retain"),
            Column::new(
                "is_nesting",
                Kind::Boolean,
                "whether objects below it are at a place above it again, whose retained bytes then hold its own",
            ),
            Column::new("example_id", Kind::Id, "one of its objects, a large one").or_null("there is none"),
        ],
    }
}

/// The rows.
pub(super) fn make(context: &Context<'_>, rows: &mut Rows) -> io::Result<()> {
    let places = Places::new(context.heap, context.graph, context.bytes)?;
    // Tables of several dumps are joined by path: which keys tell something is another thing in each dump.
    let aligned = Aligned::with_all_keys(&[places]);
    let mut depths: Vec<u64> = Vec::with_capacity(aligned.parents.len());
    for place in aligned.places() {
        let at = place as usize;
        let parent = aligned.parents.get(at).copied().flatten();
        let depth = parent.and_then(|parent| depths.get(parent as usize)).map_or(1, |depth| depth + 1);
        depths.push(depth);
        let (label, figures) = (aligned.label(place), aligned.figures(0, place));
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
            .end();
    }
    Ok(())
}
