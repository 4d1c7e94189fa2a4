//! The table `waste`.

use std::io;

use super::super::{Column, Context, Definition, Kind};
use super::Rows;
use crate::waste::{FieldSum, GroupBy, Question, waste};

/// What the table has.
pub(super) fn definition() -> Definition {
    Definition {
        name: "waste".into(),
        meaning: "Memory spent for nothing: a kind of waste and a field that holds it, as `waste` tells"
            .into(),
        order: "kinds by bytes, most first; of a kind fields by bytes, most first".into(),
        columns: vec![
            Column::new("kind", Kind::Name, "the kind of waste, as in `waste`"),
            Column::new(
                "field",
                Kind::Text,
                "class and field that hold it; the class alone if the field is not known",
            )
            .or_null("only GC roots hold it, or the kind has no fields"),
            Column::new("class", Kind::Name, "the class of the field").or_null("as `field`"),
            Column::new("is_static", Kind::Boolean, "whether the field is static"),
            Column::new(
                "objects",
                Kind::Integer,
                "objects that it holds and that would be freed or get smaller",
            ),
            Column::new(
                "wasted_bytes",
                Kind::Integer,
                "what would be freed of them if this kind alone were mended",
            ),
            Column::new("kind_objects", Kind::Integer, "objects of the kind; the same in all its rows"),
            Column::new(
                "kind_wasted_bytes",
                Kind::Integer,
                "what is wasted of the kind; the same in all its rows",
            ),
            Column::new(
                "kind_added_bytes",
                Kind::Integer,
                "what mending the kind frees beyond the kinds before it; the same in all its rows. Of all kinds they add up to what \
                 can be freed",
            ),
        ],
    }
}

/// The rows.
pub(super) fn make(context: &Context<'_>, rows: &mut Rows) -> io::Result<()> {
    let question = Question { kinds: Vec::new(), group_by: GroupBy::Field, examples: 0 };
    let found = waste(context.heap, context.graph, context.bytes, &question)?;
    for kind in &found.rows {
        let none = kind.fields.is_empty().then_some(None);
        for field in kind.fields.iter().map(Some).chain(none) {
            rows.text(kind.kind.name())
                .text(field.and_then(FieldSum::name).as_deref())
                .text(field.and_then(|field| field.class.as_deref()))
                .boolean(field.is_some_and(|field| field.is_static))
                .count(field.map_or(kind.count, |field| field.count))
                .count(field.map_or(kind.wasted_bytes, |field| field.wasted_bytes))
                .count(kind.count)
                .count(kind.wasted_bytes)
                .count(kind.added_bytes)
                .end();
        }
    }
    Ok(())
}
