//! Search for the places of a dump: one pass over the dominator tree in preorder.

use rustc_hash::FxHashMap;

use crate::frameworks::Naming;
use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::model::tables::NONE;
use hprof_model::objects::collections::CollectionKind;
use hprof_model::objects::reader::FieldSlot;
use hprof_model::objects::reference_kind::ReferenceKind;

use super::held_by::{HeldBy, ReferenceFields};
use super::labels::{KEY, LabelNumbers, PlaceLabel, Pool, STACK, UNKNOWN, VALUE, Via};
use super::named::NamedObjects;
use super::nodes::{
    CountedObjects, Destination, OpenObject, PlaceDominator, PlaceNode, PrefetchedObject, VisitedBytes,
};
use super::traits::{ClassTraits, NO_TRAIT, Role};
use super::{DumpPlace, DumpPlaces};

/// First number of the range that is reserved for objects that framework rules name.
const CALLED: u32 = 1 << 31;
/// Maximum number of distinct places.
const MAX_PLACES: usize = 1 << 19;
/// Maximum depth of places.
const MAX_LEVELS: u32 = 64;
/// Maximum number of dominators that are followed for an object that adopts another one.
const MAX_CHAIN: usize = 256;
/// Maximum number of nested adopted objects.
const MAX_ADOPTIONS: usize = 8;
/// Maximum number of open objects; consecutive ones at one place count once.
const MAX_OPEN: usize = 1 << 20;

/// State of the pass over the dominator tree that builds the places.
pub(super) struct PlaceBuilder<'a> {
    pub(super) summary: &'a Summary,
    pub(super) java_lang_class: u32,
    pub(super) graph: &'a ObjectGraph,
    /// Properties by class number.
    pub(super) traits: Vec<ClassTraits>,
    pub(super) slots: &'a ReferenceFields<'a>,
    /// Returns the reference by which a dominator holds an object.
    pub(super) held_by: &'a (dyn Fn(Option<ObjectIndex>, ObjectIndex) -> HeldBy + Sync),
    pub(super) numbers: LabelNumbers,
    /// Map values that are distinguished by key: object, and the number of its [`Via`].
    pub(super) keys: FxHashMap<u32, u32>,
    /// Threads and roots, with the number of their [`Via`].
    pub(super) special: FxHashMap<u32, u32>,
    pub(super) adopted: FxHashMap<u32, (ObjectIndex, ReferenceKind<'a>)>,
    pub(super) named: NamedObjects,
    pub(super) nodes: Vec<PlaceNode>,
    /// Places by parent, holding reference, and class.
    pub(super) known: FxHashMap<(u32, u32, u32), u32>,
    pub(super) open: Vec<OpenObject>,
    pub(super) bytes: u64,
    /// Retained size of the class objects and adopted objects so far, which does not count at the places of the objects above
    /// them.
    pub(super) moved: u64,
    /// Number of open objects that count elsewhere, below which objects are counted separately.
    pub(super) level: u32,
    /// Places that were opened, with their `open` and `level` before that.
    pub(super) before: Vec<(u32, u32, u32)>,
    /// Places whose ancestors have to include adopted objects, and the size of these objects.
    pub(super) adoptions: Vec<(u32, u64)>,
    pub(super) is_cut: bool,
}

impl PlaceBuilder<'_> {
    /// Visits the next object of the pass. Returns its place, unless another open object of the place contains it.
    pub(super) fn object(&mut self, depth: u32, found: PrefetchedObject, bytes: VisitedBytes) -> Option<u32> {
        self.close(depth);
        let object = ObjectIndex(found.object);
        let above = self.open.last().map(|open| PlaceDominator {
            place: open.place,
            class: open.class,
            role: open.role,
        });
        let adopted = self.adopted_step(above, found, MAX_ADOPTIONS);
        let is_adopted = adopted.is_some();
        let step = adopted.unwrap_or_else(|| self.step(above, found));
        let is_new = above.is_none_or(|above| above.place != step.place);
        let first_before = self.before.len();
        if is_adopted || matches!(step.role, Role::Class(_)) {
            self.level += 1;
        }
        if is_adopted {
            // Its contents also count at the places above, through the object that adopts it.
            let mut at = self.nodes.get(step.place as usize).map_or(NONE, |node| node.parent);
            while let Some(node) = self.nodes.get(at as usize) {
                let parent = node.parent;
                self.enter(at);
                at = parent;
            }
        }
        let is_first = is_new && self.enter(step.place);
        if let Some(node) = self.nodes.get_mut(step.place as usize) {
            node.objects += u64::from(step.counts);
            node.following += u64::from(step.counts && !is_new);
            node.own_bytes = node.own_bytes.saturating_add(bytes.own);
            if step.counts && node.example.0 == NONE {
                node.example = object;
            }
        }
        let opened = u32::try_from(self.before.len() - first_before).unwrap_or(u32::MAX);
        let before = self.bytes;
        self.bytes = self.bytes.saturating_add(bytes.all);
        let is_full = self.open.len() >= MAX_OPEN;
        if let Some(open) = self.open.last()
            && !is_new
            && (is_full || open.role == step.role && (open.class == found.class || step.role == Role::Beyond))
        {
            // Not opened: one of many consecutive objects at a place, or too many are open.
            self.is_cut |= is_full;
            return None;
        }
        self.open.push(OpenObject {
            depth,
            place: step.place,
            class: found.class,
            role: step.role,
            is_first,
            before,
            moved_before: self.moved,
            is_adopted,
            opened,
            last: (NONE, NONE, NONE),
        });
        (is_first || is_adopted).then_some(step.place)
    }

    /// Returns the number of open objects, and the innermost one.
    pub(super) fn innermost(&self) -> (usize, Option<PlaceDominator>) {
        let above =
            |open: &OpenObject| PlaceDominator { place: open.place, class: open.class, role: open.role };
        (self.open.len(), self.open.last().map(above))
    }

    /// Passes over objects that are counted together with others.
    pub(super) fn pass_by(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Visits another object of the innermost place, held by the previous one. `counts` is `false` if it is only a part of an
    /// object of the place.
    pub(super) fn add_link(&mut self, place: u32, counts: bool, bytes: u64) {
        self.pass_by(bytes);
        if let Some(node) = self.nodes.get_mut(place as usize) {
            node.objects += u64::from(counts);
            node.following += u64::from(counts);
            node.own_bytes = node.own_bytes.saturating_add(bytes);
        }
    }

    /// Adds objects whose bytes were already visited. Their holder must be open.
    pub(super) fn add(&mut self, counted: &CountedObjects) {
        let level = self.level;
        let Some(node) = self.nodes.get_mut(counted.to.place as usize) else { return };
        node.own_bytes = node.own_bytes.saturating_add(counted.own_bytes);
        if counted.to.counts {
            node.objects = node.objects.saturating_add(counted.objects);
            if node.example.0 == NONE {
                node.example = counted.example;
            }
        }
        if counted.is_within {
            node.following =
                node.following.saturating_add(if counted.to.counts { counted.objects } else { 0 });
        } else if node.open == 0 || node.level != level {
            node.retained_bytes = node.retained_bytes.saturating_add(counted.retained_bytes);
            node.largest_bytes = node.largest_bytes.max(counted.largest_bytes);
        }
    }

    /// Returns the objects whose places do not follow from their class and holding reference.
    pub(super) fn special_objects(&self) -> impl Iterator<Item = u32> {
        let known = self.special.keys().chain(self.adopted.keys()).chain(self.keys.keys());
        known.chain(self.named.called.keys()).chain(self.named.entries.keys()).copied()
    }

    /// Closes the open objects at this depth and below.
    pub(super) fn close(&mut self, depth: u32) {
        while let Some(open) = self.open.pop_if(|open| open.depth >= depth) {
            let OpenObject { place, role, is_first, before, moved_before, is_adopted, opened, .. } = open;
            let all = self.bytes.saturating_sub(before);
            let own = all.saturating_sub(self.moved.saturating_sub(moved_before));
            let is_moved = is_adopted || matches!(role, Role::Class(_));
            if is_moved {
                self.level = self.level.saturating_sub(1);
                if !self.open.is_empty() {
                    self.moved = moved_before.saturating_add(all);
                }
            }
            let came_from_above = self.open.last().is_none_or(|above| above.place != place);
            if let Some(node) = self.nodes.get_mut(place as usize) {
                node.open = node.open.saturating_sub(u32::from(came_from_above));
                if is_first {
                    node.retained_bytes = node.retained_bytes.saturating_add(own);
                    node.largest_bytes = node.largest_bytes.max(own);
                }
                if is_adopted {
                    self.adoptions.push((node.parent, own));
                }
            }
            for _ in 0..opened {
                let Some((place, open, level)) = self.before.pop() else { break };
                if let Some(node) = self.nodes.get_mut(place as usize) {
                    (node.open, node.level) = (open, level);
                }
            }
        }
    }

    /// Returns whether an object is the collection with the entries of the named object at a place.
    fn is_of_entries(&self, object: u32, place: u32) -> bool {
        let owner = self.named.entries.get(&object).and_then(|owner| self.named.called.get(owner));
        let node = self.nodes.get(place as usize);
        owner.zip(node).is_some_and(|(called, node)| node.class == CALLED + called)
    }

    /// Returns whether the objects at a place are many that share a name.
    pub(super) fn is_of_many(&self, place: u32) -> bool {
        let class = self.nodes.get(place as usize).map_or(NONE, |node| node.class);
        let called = class.checked_sub(CALLED).filter(|_| class != NONE);
        let called = called.and_then(|called| self.numbers.called.all.get(called as usize));
        called.is_some_and(|called| called.naming == Naming::Many)
    }

    fn is_in_library(&self, class: u32) -> bool {
        self.traits.get(class as usize).is_some_and(|of| of.is_passed || of.is_plumbing)
    }

    /// Enters a place. Returns `true` if the place had no open object since the last one that counts elsewhere.
    fn enter(&mut self, place: u32) -> bool {
        let level = self.level;
        let Some(node) = self.nodes.get_mut(place as usize) else { return false };
        if node.open > 0 && node.level == level {
            node.open += 1;
            return false;
        }
        self.before.push((place, node.open, node.level));
        (node.open, node.level) = (1, level);
        true
    }

    /// Returns the destination of an object dominated by `above`; `above` is `None` at the top.
    pub(super) fn step(&mut self, above: Option<PlaceDominator>, found: PrefetchedObject) -> Destination {
        let of_class = self.traits.get(found.class as usize).copied().unwrap_or(NO_TRAIT);
        let class_object = if found.class == self.java_lang_class {
            self.graph.class_of_class_object(ObjectIndex(found.object))
        } else {
            None
        };
        let role = class_object.map_or(of_class.role, Role::Class);
        if let Some(above) = above
            && class_object.is_none()
        {
            let same = |role, counts| Destination { place: above.place, role, counts };
            if self.is_of_entries(found.object, above.place) {
                if let Some(node) = self.nodes.get_mut(above.place as usize) {
                    node.kind = of_class.kind;
                }
                return same(of_class.role, false);
            }
            match above.role {
                Role::Beyond => return same(Role::Beyond, false),
                Role::Collection | Role::Wrapper(_) | Role::Part if of_class.is_part => {
                    return same(Role::Part, false);
                }
                // Within a library's own table, arrays and references of the JDK are also parts.
                Role::Part if of_class.is_plumbing && self.is_in_library(above.class) => {
                    return same(Role::Part, false);
                }
                // A subclass may have arrays and collections of its own in other fields.
                Role::Collection if of_class.is_array && self.is_field_of_jdk(above, found) => {
                    return same(Role::Part, false);
                }
                Role::Wrapper(field)
                    if matches!(of_class.role, Role::Collection | Role::Wrapper(_))
                        && (self.slot(above, found).is_some_and(|slot| slot.name == field)
                            || self.is_field_of_jdk(above, found)) =>
                {
                    return same(of_class.role, false);
                }
                Role::Plain if role == Role::Plain && above.class == found.class => {
                    return same(role, true);
                }
                _ => {}
            }
        }
        // A class object is at the top, whatever dominates it: its dominator depends on whether it has instances, and where.
        let above = above.filter(|_| class_object.is_none());
        let via = if class_object.is_some() { UNKNOWN } else { self.via(above, found, of_class) };
        let (name, is_class) = match class_object {
            Some(class) => (self.numbers.of_class.get(class.0 as usize).copied(), 1),
            None => (self.numbers.of_class.get(found.class as usize).copied(), 0),
        };
        let class = name.map_or(NONE, |name| name.saturating_mul(2) + is_class);
        let called = self.named.called.get(&found.object);
        let class = called.map_or(class, |called| CALLED + called);
        let is_of_jdk = match class_object {
            Some(class) => self.traits.get(class.0 as usize).is_none_or(|of| of.is_of_jdk),
            None => of_class.is_of_jdk,
        };
        let parent = above.map_or(NONE, |above| above.place);
        if parent != NONE && self.open.len() >= MAX_OPEN {
            self.is_cut = true;
            return Destination { place: parent, role: Role::Beyond, counts: false };
        }
        match self.node(parent, via, class, is_of_jdk, of_class.kind) {
            Some(place) => Destination { place, role, counts: true },
            // Too deep, or too many places: counted at the place above.
            None => Destination { place: parent, role: Role::Beyond, counts: false },
        }
    }

    /// Returns the field by which an object's dominator refers to the object.
    fn slot(&self, above: PlaceDominator, found: PrefetchedObject) -> Option<FieldSlot<'_>> {
        let slots = self.slots.slots_of(ClassNumber(above.class));
        match (found.by, slots) {
            (HeldBy::Field(field), _) => slots.get(field as usize).copied(),
            // A class with only one reference field is not read.
            (HeldBy::Unknown, [slot]) => Some(*slot),
            _ => None,
        }
    }

    /// Returns whether the dominator refers to an object by a field that a JDK class declares.
    fn is_field_of_jdk(&self, above: PlaceDominator, found: PrefetchedObject) -> bool {
        let declares = self.slot(above, found).map(|slot| slot.class.0 as usize);
        declares.and_then(|class| self.traits.get(class)).is_some_and(|of| of.is_of_jdk)
    }

    /// Returns the kind of collection of the objects at the place of `above`.
    fn kind_of(&self, above: PlaceDominator) -> Option<CollectionKind> {
        self.nodes.get(above.place as usize).and_then(|node| node.kind)
    }

    /// Returns the number of the [`Via`] by which an object is held.
    fn via(&self, above: Option<PlaceDominator>, found: PrefetchedObject, of_class: ClassTraits) -> u32 {
        let Some(above) = above else {
            let special = self.special.get(&found.object).copied();
            return special.unwrap_or(UNKNOWN);
        };
        if !matches!(above.role, Role::Collection | Role::Wrapper(_) | Role::Part) {
            return self.via_of(above, found, of_class);
        }
        if let Some(key) = self.keys.get(&found.object) {
            return *key;
        }
        let via = self.via_of(above, found, of_class);
        if via == UNKNOWN && self.kind_of(above) == Some(CollectionKind::Map) { VALUE } else { via }
    }

    /// Returns the number of the [`Via`] for the dominator's reference to an object.
    fn via_of(&self, above: PlaceDominator, found: PrefetchedObject, of_class: ClassTraits) -> u32 {
        if of_class.is_thread
            && let Some(name) = self.special.get(&found.object)
        {
            return *name;
        }
        let class = ClassNumber(above.class);
        let field = match (found.by, self.slots.slots_of(class)) {
            (HeldBy::Stack, _) => return STACK,
            (HeldBy::Field(field), _) => field,
            // A class with only one reference field is not read.
            (HeldBy::Unknown, [_]) if !matches!(above.role, Role::Class(_)) => 0,
            (HeldBy::Unknown, _) => return UNKNOWN,
        };
        match above.role {
            Role::Class(of) => self.numbers.static_field(of, field),
            Role::Part => {
                let is_key =
                    self.slots.slots_of(class).get(field as usize).is_some_and(|slot| slot.name == "key");
                if is_key && self.kind_of(above) != Some(CollectionKind::Set) { KEY } else { UNKNOWN }
            }
            Role::Plain | Role::Collection | Role::Wrapper(_) => self.numbers.field(class, field),
            Role::Beyond => UNKNOWN,
        }
    }

    /// Returns the place with this label, creating it if it is new; `None` if it is too deep, or there are too many places.
    fn node(
        &mut self,
        parent: u32,
        via: u32,
        class: u32,
        is_of_jdk: bool,
        kind: Option<CollectionKind>,
    ) -> Option<u32> {
        if let Some(open) = self.open.last()
            && open.place == parent
            && (open.last.0, open.last.1) == (via, class)
        {
            return Some(open.last.2);
        }
        let place = match self.known.get(&(parent, via, class)) {
            Some(place) => *place,
            None => {
                let place = match self.same_label_above(parent, via, class) {
                    Some(place) => {
                        self.mark_nesting(parent, place);
                        place
                    }
                    None => self.new_node(parent, via, class, is_of_jdk, kind)?,
                };
                self.known.insert((parent, via, class), place);
                place
            }
        };
        if let Some(open) = self.open.last_mut()
            && open.place == parent
        {
            open.last = (via, class, place);
        }
        Some(place)
    }

    fn new_node(
        &mut self,
        parent: u32,
        via: u32,
        class: u32,
        is_of_jdk: bool,
        kind: Option<CollectionKind>,
    ) -> Option<u32> {
        let depth = self.nodes.get(parent as usize).map_or(0, |above| above.depth + 1);
        let number = u32::try_from(self.nodes.len()).ok()?;
        let is_full = depth >= MAX_LEVELS || self.nodes.len() >= MAX_PLACES;
        if parent != NONE && is_full {
            self.is_cut = true;
            return None;
        }
        self.nodes.push(PlaceNode {
            parent,
            via,
            class,
            depth,
            is_of_jdk,
            kind,
            is_nesting: false,
            open: 0,
            level: 0,
            objects: 0,
            own_bytes: 0,
            retained_bytes: 0,
            largest_bytes: 0,
            following: 0,
            example: ObjectIndex(NONE),
        });
        Some(number)
    }

    /// Returns the place above that has the same label: objects nested in similar ones belong to that place. Labels of JDK
    /// classes recur in any program, so they are the same place only if all places in between have such labels.
    fn same_label_above(&self, parent: u32, via: u32, class: u32) -> Option<u32> {
        let label_is_of_jdk = |node: &PlaceNode| {
            let via = self.numbers.vias.all.get(node.via as usize);
            node.is_of_jdk && via.is_none_or(Via::is_of_jdk)
        };
        let mut at = parent;
        let mut between_is_of_jdk = true;
        while let Some(node) = self.nodes.get(at as usize) {
            let is_of_jdk = label_is_of_jdk(node);
            if (node.via, node.class) == (via, class) && node.parent != NONE {
                return (!is_of_jdk || between_is_of_jdk).then_some(at);
            }
            between_is_of_jdk &= is_of_jdk;
            at = node.parent;
        }
        None
    }

    /// Marks the places from `place` up to `end`, since objects below `place` belong to `end`.
    fn mark_nesting(&mut self, place: u32, end: u32) {
        let mut at = place;
        while at != end
            && let Some(node) = self.nodes.get_mut(at as usize)
        {
            node.is_nesting = true;
            at = node.parent;
        }
    }

    /// Returns the destination of an object that a stack references in addition to the field that is considered its holder.
    /// `None` if the object is not adopted, or if its dominator holds it by a field.
    fn adopted_step(
        &mut self,
        above: Option<PlaceDominator>,
        found: PrefetchedObject,
        adoptions: usize,
    ) -> Option<Destination> {
        if above.is_some() && found.by != HeldBy::Stack {
            return None;
        }
        let (holder, reference) = *self.adopted.get(&found.object)?;
        let above = self.place_of(holder, adoptions.checked_sub(1)?)?;
        let class = ClassNumber(above.class);
        let by = match (reference, above.role) {
            (ReferenceKind::Static(name), Role::Class(of)) => {
                let statics = self.summary.class(of).into_iter().flat_map(|row| self.summary.statics(row));
                position(statics.map(|(field, ..)| field == name))
            }
            (ReferenceKind::Field { name, class: declared }, _) => {
                let is_it = |slot: &FieldSlot<'_>| {
                    let declares = self.summary.class(slot.class).map(|row| self.summary.class_name(row));
                    slot.name == name && declares == Some(declared)
                };
                position(self.slots.slots_of(class).iter().map(is_it))
            }
            _ => HeldBy::Unknown,
        };
        Some(self.step(Some(above), PrefetchedObject { by, ..found }))
    }

    /// Returns the place of an object, independently of the current position.
    fn place_of(&mut self, object: ObjectIndex, adoptions: usize) -> Option<PlaceDominator> {
        let tree = &self.graph.tree;
        let mut chain = vec![object];
        let mut position = tree.reachable_position(object)?;
        while let Some(dominator) = tree.dominator(position) {
            if chain.len() >= MAX_CHAIN {
                return None;
            }
            position = dominator;
            chain.push(tree.object_at(position)?);
        }
        let mut above: Option<PlaceDominator> = None;
        let mut dominator = None;
        while let Some(object) = chain.pop() {
            let class = self.graph.objects.class(object).map_or(NONE, |class| class.0);
            let found = PrefetchedObject { object: object.0, class, by: (self.held_by)(dominator, object) };
            dominator = Some(object);
            let adopted = self.adopted_step(above, found, adoptions);
            let step = adopted.unwrap_or_else(|| self.step(above, found));
            above = Some(PlaceDominator { place: step.place, class, role: step.role });
        }
        above
    }

    /// Returns the finished places.
    pub(super) fn finish(mut self) -> DumpPlaces {
        for (place, bytes) in std::mem::take(&mut self.adoptions) {
            let mut at = place;
            while let Some(node) = self.nodes.get_mut(at as usize) {
                node.retained_bytes = node.retained_bytes.saturating_add(bytes);
                at = node.parent;
            }
        }
        let Self { numbers, nodes, graph, is_cut, .. } = self;
        let mut labels: Pool<(u32, u32)> = Pool::new();
        let id = |object: ObjectIndex| graph.objects.addresses.id_of(object).unwrap_or_default();
        let places = nodes.iter().map(|node| DumpPlace {
            parent: Some(node.parent).filter(|parent| *parent != NONE),
            label: labels.number((node.via, node.class)),
            objects: node.objects,
            own_bytes: node.own_bytes,
            retained_bytes: node.retained_bytes,
            largest_bytes: node.largest_bytes,
            following: node.following,
            is_nesting: node.is_nesting,
            example: id(node.example),
        });
        let places = places.collect();
        let label = |(via, class): &(u32, u32)| {
            let called = if *class == NONE { None } else { class.checked_sub(CALLED) };
            let called = called.and_then(|called| numbers.called.all.get(called as usize));
            let class = called.map_or(*class, |called| called.class.saturating_mul(2));
            PlaceLabel {
                via: numbers.vias.all.get(*via as usize).cloned().unwrap_or(Via::Unknown),
                class: numbers.classes.all.get((class / 2) as usize).cloned(),
                is_class_object: class != NONE && class % 2 == 1,
                called: called.map(|called| called.name.clone()),
                naming: called.map(|called| called.naming).unwrap_or_default(),
                has_sentence: called.is_some_and(|called| called.has_sentence),
            }
        };
        DumpPlaces {
            places,
            labels: labels.all.iter().map(label).collect(),
            reachable_bytes: graph.tree.reachable_bytes(),
            reachable_objects: graph.tree.reachable().into(),
            members: Vec::new(),
            structures: Vec::new(),
            is_cut,
            hides_values: false,
        }
    }
}

/// Returns the index of the first field that matches.
fn position(mut fields: impl Iterator<Item = bool>) -> HeldBy {
    let at = fields.position(|is_it| is_it).and_then(|at| u32::try_from(at).ok());
    at.map_or(HeldBy::Unknown, HeldBy::Field)
}
