//! Classes of a text report's heap dumps, and the fields that each declares.

use std::collections::HashMap;

use hprof_values::ObjectId;

use super::class_names::{array_name, binary_name};

/// Number of a class in [`Classes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ClassIndex(pub(super) u32);

/// Number of a field's name in [`Classes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct FieldName(pub(super) u32);

/// Maximum number of fields that CLASS DUMP can state.
const MAX_FIELDS: u32 = u16::MAX as u32;

/// A class of a text report.
#[derive(Debug, Clone, Default)]
pub(super) struct TextClass {
    /// Binary name.
    pub(super) name: Vec<u8>,
    /// Object ID of the class object; an unused one if the text states none.
    pub(super) id: u64,
    /// Object ID of the superclass; 0 if the superclasses would form a circle.
    pub(super) super_class: u64,
    /// Size of the first instance; sizes of others are stated one by one.
    pub(super) size: Option<u32>,
    /// Number of instances.
    pub(super) instances: u64,
    /// Fields that it declares, with the number of fields of that name: names and counts. Before
    /// [`Classes::assign_fields`], the fields of its instances, including inherited ones.
    pub(super) fields: Vec<(FieldName, u32)>,
    /// Nearest superclass that declares fields.
    pub(super) above: Option<ClassIndex>,
    /// Number of fields of an instance, with those of superclasses.
    pub(super) slots: u64,
}

/// All classes of a run.
#[derive(Debug, Default)]
pub(super) struct Classes {
    rows: Vec<TextClass>,
    by_id: HashMap<u64, ClassIndex>,
    /// The first class of each binary name.
    by_name: HashMap<Vec<u8>, ClassIndex>,
    /// Array classes by the object ID of their elements' class: as JDK 1.2 to 1.4 identifies them.
    by_element: HashMap<u64, ClassIndex>,
    field_names: HashMap<Vec<u8>, FieldName>,
    /// Index in [`TextClass::fields`] of a class's field.
    field_places: HashMap<(ClassIndex, FieldName), usize>,
    /// Highest ID of an object or class.
    max_id: u64,
}

impl Classes {
    pub(super) fn rows(&self) -> &[TextClass] {
        &self.rows
    }

    pub(super) fn get(&self, class: ClassIndex) -> Option<&TextClass> {
        self.rows.get(class.0 as usize)
    }

    pub(super) fn get_mut(&mut self, class: ClassIndex) -> Option<&mut TextClass> {
        self.rows.get_mut(class.0 as usize)
    }

    pub(super) fn of_id(&self, id: u64) -> Option<ClassIndex> {
        self.by_id.get(&id).copied()
    }

    /// Records that an ID is used.
    #[inline]
    pub(super) fn see_id(&mut self, id: ObjectId) {
        self.max_id = self.max_id.max(id.0);
    }

    fn add(&mut self, name: Vec<u8>, id: u64) -> ClassIndex {
        // Each class takes more than a byte of memory.
        let index = ClassIndex(u32::try_from(self.rows.len()).unwrap_or(u32::MAX));
        self.by_name.entry(name.clone()).or_insert(index);
        if id != 0 {
            self.by_id.insert(id, index);
        }
        self.rows.push(TextClass { name, id, ..TextClass::default() });
        index
    }

    /// Returns the class that a line names; new if it is not known.
    #[inline]
    pub(super) fn class(&mut self, id: Option<ObjectId>, name: &[u8]) -> ClassIndex {
        match id.and_then(ObjectId::non_null) {
            Some(ObjectId(id)) => match self.by_id.get(&id) {
                Some(class) => *class,
                None => self.add(binary_name(name), id),
            },
            None => self.of_name(name),
        }
    }

    /// Returns the class of this name; new if it is not known.
    pub(super) fn of_name(&mut self, name: &[u8]) -> ClassIndex {
        self.of_binary_name(binary_name(name))
    }

    fn of_binary_name(&mut self, name: Vec<u8>) -> ClassIndex {
        match self.by_name.get(&name) {
            Some(class) => *class,
            None => self.add(name, 0),
        }
    }

    /// Returns the class of an array; new if it is not known.
    pub(super) fn array(&mut self, id: Option<ObjectId>, name: &[u8]) -> ClassIndex {
        if is_array_name(name) {
            return self.class(id, name);
        }
        let Some(ObjectId(element)) = id.and_then(ObjectId::non_null) else {
            return self.of_binary_name(array_name(name));
        };
        if let Some(class) = self.by_element.get(&element) {
            return *class;
        }
        let class = self.of_binary_name(array_name(name));
        self.by_element.insert(element, class);
        class
    }

    /// Returns the class that a line names, after [`Classes::finish`].
    #[inline]
    pub(super) fn known_class(&self, id: Option<ObjectId>, name: &[u8]) -> Option<ClassIndex> {
        match id.and_then(ObjectId::non_null) {
            Some(ObjectId(id)) => self.of_id(id),
            None => self.by_name.get(&binary_name(name)).copied(),
        }
    }

    /// Returns the class of an array, after [`Classes::finish`].
    pub(super) fn known_array(&self, id: Option<ObjectId>, name: &[u8]) -> Option<ClassIndex> {
        if is_array_name(name) {
            return self.known_class(id, name);
        }
        let by_element = id.and_then(|id| self.by_element.get(&id.0).copied());
        by_element.or_else(|| self.by_name.get(&array_name(name)).copied())
    }

    pub(super) fn field_name(&mut self, name: &[u8]) -> FieldName {
        if let Some(known) = self.field_names.get(name) {
            return *known;
        }
        let number = FieldName(u32::try_from(self.field_names.len()).unwrap_or(u32::MAX));
        self.field_names.insert(name.to_vec(), number);
        number
    }

    pub(super) fn known_field_name(&self, name: &[u8]) -> Option<FieldName> {
        self.field_names.get(name).copied()
    }

    /// Returns the names of all fields, by number.
    pub(super) fn field_names(&self) -> Vec<&[u8]> {
        let mut names = vec![&b""[..]; self.field_names.len()];
        for (name, number) in &self.field_names {
            if let Some(place) = names.get_mut(number.0 as usize) {
                *place = name;
            }
        }
        names
    }

    /// Adds the fields of an instance: an ascending list in which a name occurs as often as the instance has fields of it.
    pub(super) fn see_fields(&mut self, class: ClassIndex, names: &[FieldName]) {
        for same in names.chunk_by(|one, other| one == other) {
            let Some(name) = same.first().copied() else { continue };
            let count = u32::try_from(same.len()).unwrap_or(u32::MAX);
            let Some(row) = self.rows.get_mut(class.0 as usize) else { return };
            let place = *self.field_places.entry((class, name)).or_insert_with(|| {
                row.fields.push((name, 0));
                row.fields.len() - 1
            });
            if let Some((_, most)) = row.fields.get_mut(place) {
                *most = count.max(*most);
            }
        }
    }

    /// Assigns IDs to classes without one, and each field to the topmost class whose own instances have it. Superclasses that
    /// form a circle are cut.
    pub(super) fn finish(&mut self) {
        let mut next = self.max_id;
        let rows = (0..).map(ClassIndex).zip(&mut self.rows);
        for (index, row) in rows.filter(|(_, row)| row.id == 0) {
            // If the highest possible ID is used, those of classes are searched from the lowest on.
            next = next.checked_add(8).unwrap_or(1);
            while self.by_id.contains_key(&next) {
                next = next.wrapping_add(1).max(1);
            }
            row.id = next;
            self.by_id.insert(next, index);
        }
        self.assign_fields();
    }

    fn assign_fields(&mut self) {
        let mut subclasses: HashMap<u64, Vec<ClassIndex>> = HashMap::new();
        let mut tops = Vec::new();
        for (index, row) in (0..).map(ClassIndex).zip(&mut self.rows) {
            match self.by_id.get(&row.super_class) {
                Some(above) if *above == index => {
                    row.super_class = 0;
                    tops.push(index);
                }
                Some(_) => subclasses.entry(row.super_class).or_default().push(index),
                None => tops.push(index),
            }
        }
        let mut is_done = vec![false; self.rows.len()];
        for top in tops {
            self.assign_below(top, &subclasses, &mut is_done);
        }
        // What no class without a superclass leads to is part of a circle, or below one.
        for index in (0..self.rows.len()).rev() {
            if is_done.get(index) == Some(&false) {
                let top = ClassIndex(u32::try_from(index).unwrap_or(u32::MAX));
                if let Some(row) = self.get_mut(top) {
                    row.super_class = 0;
                }
                self.assign_below(top, &subclasses, &mut is_done);
            }
        }
    }

    /// Visits a class and its subclasses, depth first: the fields of all superclasses are counted once, however long the chain
    /// is.
    fn assign_below(
        &mut self,
        top: ClassIndex,
        subclasses: &HashMap<u64, Vec<ClassIndex>>,
        is_done: &mut [bool],
    ) {
        let mut inherited: HashMap<FieldName, u32> = HashMap::new();
        let mut inherited_slots = 0u64;
        let mut declaring = Vec::new();
        let mut path = vec![Step::Enter(top)];
        while let Some(step) = path.pop() {
            match step {
                Step::Enter(class) => {
                    let Some(done) = is_done.get_mut(class.0 as usize) else { continue };
                    if std::mem::replace(done, true) {
                        continue;
                    }
                    let Some(row) = self.rows.get_mut(class.0 as usize) else { continue };
                    let mut left = MAX_FIELDS;
                    row.fields.retain_mut(|(name, count)| {
                        *count = count.saturating_sub(inherited.get(name).copied().unwrap_or(0)).min(left);
                        left -= *count;
                        *count > 0
                    });
                    for (name, count) in &row.fields {
                        *inherited.entry(*name).or_default() += count;
                    }
                    inherited_slots += u64::from(MAX_FIELDS - left);
                    row.slots = inherited_slots;
                    row.above = declaring.last().copied();
                    if !row.fields.is_empty() {
                        declaring.push(class);
                    }
                    path.push(Step::Leave(class));
                    path.extend(
                        subclasses.get(&row.id).into_iter().flatten().rev().map(|sub| Step::Enter(*sub)),
                    );
                }
                Step::Leave(class) => {
                    let Some(row) = self.rows.get(class.0 as usize) else { continue };
                    declaring.pop_if(|last| *last == class);
                    for (name, count) in &row.fields {
                        inherited_slots -= u64::from(*count);
                        if let Some(all) = inherited.get_mut(name) {
                            *all -= count;
                        }
                    }
                }
            }
        }
    }
}

/// Returns whether a name is that of an array class. The agent of JDK 5 to 8 names the class of an array, the one before the
/// class of its elements.
fn is_array_name(name: &[u8]) -> bool {
    name.ends_with(b"]") || name.starts_with(b"[")
}

/// Step of a depth-first visit.
enum Step {
    Enter(ClassIndex),
    Leave(ClassIndex),
}
