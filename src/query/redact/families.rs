//! Families of classes that are found in a single pass over a dump. A family has the classes with certain names and all their
//! subclasses.

use hprof_index::storage::id_map::{IdMap, IdSet};
use hprof_values::ObjectId;

/// Classes of a family read so far. Each is found once, regardless of the order of names, superclasses and
/// subclasses.
#[derive(Default)]
pub(super) struct ClassFamily {
    pub(super) classes: IdSet<ObjectId>,
    /// Classes added since the caller last took them.
    pub(super) added: Vec<ObjectId>,
    /// Subclasses of classes that are not yet in the family.
    subclasses: IdMap<ObjectId, Vec<ObjectId>>,
    /// Classes whose name has not been read yet, by the symbol of the name.
    unnamed: IdMap<u64, Vec<ObjectId>>,
    /// Names of the classes; empty for a family to which only [`Self::add`] adds classes.
    names: &'static [&'static [u8]],
}

impl ClassFamily {
    /// Creates a family of the classes with these names.
    pub(super) fn from_names(names: &'static [&'static [u8]]) -> Self {
        Self { names, ..Self::default() }
    }

    /// Adds a loaded class if it has one of the names; without `name`, once the symbol is read.
    pub(super) fn add_loaded(&mut self, class: ObjectId, symbol: u64, name: Option<&[u8]>) {
        match name {
            None => self.unnamed.entry(symbol).or_default().push(class),
            Some(name) if self.names.contains(&name) => self.add(class),
            Some(_) => {}
        }
    }

    /// Receives the text of a symbol, and adds the classes that it names.
    pub(super) fn symbol(&mut self, symbol: u64, name: &[u8]) {
        let classes = self.unnamed.remove(&symbol).unwrap_or_default();
        if self.names.contains(&name) {
            classes.into_iter().for_each(|class| self.add(class));
        }
    }

    /// Receives the superclass of a class, and adds the class if the superclass is in the family, now or later.
    pub(super) fn extends(&mut self, class: ObjectId, above: ObjectId) {
        if self.classes.contains(&above) {
            self.add(class);
        } else if !above.is_null() {
            self.subclasses.entry(above).or_default().push(class);
        }
    }

    /// Adds a class and its known subclasses.
    pub(super) fn add(&mut self, class: ObjectId) {
        let mut found = vec![class];
        while let Some(class) = found.pop() {
            if self.classes.insert(class) {
                self.added.push(class);
                found.extend(self.subclasses.remove(&class).unwrap_or_default());
            }
        }
    }
}
