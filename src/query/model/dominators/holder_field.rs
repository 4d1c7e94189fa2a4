//! The field that identifies an object: `orders.OrderIndex.byNumber.table` for the array in the map in that field.
//!
//! The dominator of an object is not always what a programmer knows it by: an array is in a field of a map, and the map
//! in a field of the program's class, while a thread's stack references the array as well.

use crate::objects::reference_kind::ReferenceKind;
use crate::objects::reference_names::Edges;
use crate::objects::strength::Exclusions;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_values::names;

/// Maximum number of fields in a name.
const MAX_FIELDS: usize = 4;
/// Maximum number of referrers of an object examined.
const MAX_REFERRERS: usize = 8;

/// Returns the field that identifies an object: the class that declares it and the names of the fields from there to
/// the object. `None` if several objects reference it, or only objects of the JDK.
pub fn field(edges: &Edges<'_>, object: ObjectIndex) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    let mut held = object;
    while names.len() < MAX_FIELDS {
        let (holder, reference) = holder(edges, held, |_| true)?;
        let (name, class) = match reference {
            ReferenceKind::Field { name, class } => (name, class),
            ReferenceKind::Static(name) => {
                let class = edges.dump.summary.class(edges.class_of_class_object(holder)?)?;
                (name, edges.dump.summary.class_name(class))
            }
            _ => return None,
        };
        names.push(name);
        if !names::is_of_jdk(class) {
            names.push(class);
            names.reverse();
            return Some(names.join("."));
        }
        held = holder;
    }
    None
}

/// Returns the only object that holds another strongly, and its first reference that does. Locals of threads and
/// referrers rejected by `count` are ignored.
pub fn holder<'a>(
    edges: &Edges<'a>,
    object: ObjectIndex,
    counts: impl Fn(ObjectIndex) -> bool,
) -> Option<(ObjectIndex, ReferenceKind<'a>)> {
    let mut found = None;
    let is_reachable = |holder: &ObjectIndex| edges.dump.graph.tree.reachable_position(*holder).is_some();
    let holders = edges.dump.graph.referrers(object).filter(|holder| is_reachable(holder) && counts(*holder));
    for (at, holder) in holders.enumerate() {
        if at >= MAX_REFERRERS {
            return None;
        }
        if holder == object || !edges.is_followed(holder, object, Exclusions::all_but_strong()) {
            continue;
        }
        let meanings = edges.holding(holder, object).meanings.into_iter();
        let mut fields = meanings.filter(|meaning| !matches!(meaning, ReferenceKind::Local { .. }));
        let Some(reference) = fields.next() else { continue };
        if found.is_some() {
            return None;
        }
        found = Some((holder, reference));
    }
    found
}
