//! Places of large objects: a pass over the dominator tree in preorder that examines only the children of large objects.
//!
//! Siblings are in descending order of retained size, so the large ones come first; the small ones are counted together, by
//! class and holding reference. Parts of collections are followed to the elements, regardless of their size. The links of a
//! chain are adjacent in preorder, and form one level.
//!
//! Records are read only of large objects, and of a few objects among many similar ones.

use rustc_hash::FxHashMap;

use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::graph::tree::Tree;
use hprof_index::model::summary::ClassNumber;
use hprof_index::model::tables::NONE;
use hprof_model::dominators::preorder;
use hprof_values::ObjectId;

use super::held_by::HeldBy;
use super::nodes::{CountedObjects, PlaceDominator, PrefetchedObject, VisitedBytes};
use super::subtree::References;
use super::traits::Role;
use super::tree::PlaceBuilder;

/// Positions per step of the pass.
const CHUNK: u32 = 1 << 14;
/// Maximum number of large objects that are stored per place.
const MAX_MEMBERS: usize = 1 << 16;
/// Maximum total number of large objects that are stored.
const MAX_KEPT: usize = 1 << 20;
/// Distances in positions by which the pass looks ahead in a chain.
const AHEAD: [u32; 2] = [1 << 12, 1 << 6];
/// Number of objects of a class that are looked up to determine by which field objects of another class hold them.
const READ: u32 = 16;

/// Returns the objects that retain at least `least` bytes. Of long chains, only some of the links are returned.
pub(super) fn large_objects(tree: &Tree, least: u64) -> Vec<TreePosition> {
    let mut found = Vec::new();
    let mut stack = vec![tree.top()];
    while let Some(children) = stack.last_mut() {
        // In descending order.
        let Some(position) = children.next().filter(|child| tree.retained_bytes(*child) >= least) else {
            stack.pop();
            continue;
        };
        found.push(position);
        let mut link = position;
        while let Some(ahead) = link_ahead(tree, link, tree.depth(link), least) {
            link = ahead;
        }
        if link != position {
            found.push(link);
        }
        stack.push(tree.children(link));
    }
    found
}

/// Returns the object some positions after a link, if it is large and each object up to there dominates the next.
fn link_ahead(tree: &Tree, link: TreePosition, depth: u32, least: u64) -> Option<TreePosition> {
    AHEAD.into_iter().find_map(|steps| {
        let ahead = TreePosition(link.0.saturating_add(steps));
        let is_link = ahead.0 < tree.reachable()
            && tree.depth(ahead) == depth.saturating_add(steps)
            && tree.retained_bytes(ahead) >= least;
        is_link.then_some(ahead)
    })
}

/// Visits the objects that retain at least `least` bytes, and counts the objects that they immediately dominate. Returns, by
/// place, its large objects of which none dominates another. Top-level objects and objects that share a name are returned
/// regardless of size.
pub(super) fn walk(
    builder: &mut PlaceBuilder<'_>,
    references: &References<'_, '_>,
    least: u64,
) -> Vec<Vec<TreePosition>> {
    let graph = builder.graph;
    let mut special = vec![0u64; (graph.tree.objects() as usize).div_ceil(64)];
    for object in builder.special_objects() {
        if let Some(bits) = special.get_mut(object as usize / 64) {
            *bits |= 1 << (object % 64);
        }
    }
    let mut pass = LargePass {
        tree: &graph.tree,
        builder,
        references,
        least,
        special,
        levels: Vec::new(),
        parts: Vec::new(),
        limit: 0,
        top_is_small: false,
        large_until: TreePosition(0),
        current: None,
        held: Vec::new(),
        slots: Vec::new(),
        slot_of: FxHashMap::default(),
        last_slot: None,
        levels_before: 0,
        by_classes: FxHashMap::default(),
        last_holder: None,
        last_references: Vec::new(),
        members: Vec::new(),
        kept: 0,
    };
    let tree = &graph.tree;
    for chunk in TreePosition::chunks(tree.positions(), CHUNK) {
        let mut objects = tree.objects_at(chunk.clone());
        preorder::visit(tree, chunk, |position, depth, bytes| {
            if let Some(object) = objects.next() {
                pass.object(position, depth, object, bytes);
            }
        });
    }
    pass.close(0);
    pass.add_slots(0);
    pass.members
}

/// A large object that contains the current position, or a chain of them.
struct LargeLevel {
    /// Depth of the object, or of the first link.
    first_depth: u32,
    /// Depth of the innermost link that contains the current position.
    last_depth: u32,
    above: PlaceDominator,
    /// Index of the first reference of the object. References are not read for chains and at the top.
    references: usize,
    is_chain: bool,
    /// `true` once a child was not large: later siblings are not large either.
    is_small: bool,
    /// Unique number of the level.
    number: u32,
    /// Index of the level's first slot.
    slots: usize,
}

/// A small part of a collection, or a small link of a chain, that contains the current position.
struct SmallPart {
    depth: u32,
    object: ObjectIndex,
    class: u32,
    role: Role,
}

/// The small object that contains the current position, and the objects below it so far.
struct Element {
    slot: usize,
    own_bytes: u64,
    all_bytes: u64,
}

/// Key of a slot: level, class of the part in between or [`NONE`], class of the objects, and the reference that holds them.
type LevelSlotKey = (u32, u32, u32, HeldBy);

/// State of the pass over the dominator tree.
struct LargePass<'w, 'b, 'o, 'a, 't> {
    tree: &'t Tree,
    builder: &'w mut PlaceBuilder<'b>,
    references: &'w References<'o, 'a>,
    least: u64,
    /// A bit for each object whose place does not follow from its class and holding reference.
    special: Vec<u64>,
    levels: Vec<LargeLevel>,
    parts: Vec<SmallPart>,
    /// Maximum depth up to which objects are examined.
    limit: u32,
    top_is_small: bool,
    /// Position up to which (exclusive) all positions after a link of the current chain are large.
    large_until: TreePosition,
    current: Option<Element>,
    /// References of the large objects that contain the current position; the references of each object are in the order of
    /// IDs.
    held: Vec<(ObjectId, HeldBy)>,
    slots: Vec<CountedObjects>,
    slot_of: FxHashMap<LevelSlotKey, usize>,
    /// Key and index of the slot that was used last.
    last_slot: Option<(LevelSlotKey, usize)>,
    /// Total number of levels so far.
    levels_before: u32,
    /// By classes of holder and object: the field, the number of objects looked up, and whether the fields differ.
    by_classes: FxHashMap<(u32, u32), (HeldBy, u32, bool)>,
    /// The object whose references were read last, and its references in the order of IDs.
    last_holder: Option<ObjectIndex>,
    last_references: Vec<(ObjectId, HeldBy)>,
    members: Vec<Vec<TreePosition>>,
    kept: usize,
}

impl LargePass<'_, '_, '_, '_, '_> {
    #[inline]
    fn object(&mut self, position: TreePosition, depth: u32, object: ObjectIndex, bytes: u64) {
        if depth > self.limit {
            if let Some(element) = &mut self.current {
                element.all_bytes = element.all_bytes.saturating_add(bytes);
            }
            return;
        }
        self.look_at(position, depth, object, bytes);
        let parts = self.parts.last().map(|part| part.depth);
        let levels = self.levels.last().map(|level| level.last_depth);
        self.limit = parts.or(levels).map_or(0, |above| above.saturating_add(1));
    }

    fn look_at(&mut self, position: TreePosition, depth: u32, object: ObjectIndex, bytes: u64) {
        self.close(depth);
        let class = self.builder.graph.objects.class(object).map_or(NONE, |class| class.0);
        let is_special = class == self.builder.java_lang_class || self.is_special(object);
        if self.parts.is_empty() && self.is_large(position, depth) {
            self.large(position, depth, object, class, is_special, bytes);
            return;
        }
        let by = self.held_by(position, object, class);
        let found = PrefetchedObject { object: object.0, class, by };
        if is_special {
            let all = self.tree.retained_bytes(position);
            let outermost = self.builder.object(depth, found, VisitedBytes { own: bytes, all });
            if let Some(place) = outermost
                && (self.levels.is_empty() || self.builder.is_of_many(place))
            {
                self.keep(place, position);
            }
            return;
        }
        let slot = self.slot(found);
        let Some(counted) = self.slots.get(slot) else { return };
        let role = counted.to.role;
        if role == Role::Part || counted.is_within && counted.to.counts {
            // A part, or a small link at the end of a chain.
            self.parts.push(SmallPart { depth, object, class, role });
        } else if self.levels.is_empty() {
            self.keep(counted.to.place, position);
        }
        self.current = Some(Element { slot, own_bytes: bytes, all_bytes: bytes });
    }

    /// Finishes the levels and parts that do not contain an object at this depth.
    fn close(&mut self, depth: u32) {
        if let Some(element) = self.current.take() {
            self.builder.pass_by(element.all_bytes);
            if let Some(slot) = self.slots.get_mut(element.slot) {
                slot.objects += 1;
                slot.own_bytes = slot.own_bytes.saturating_add(element.own_bytes);
                slot.retained_bytes = slot.retained_bytes.saturating_add(element.all_bytes);
                slot.largest_bytes = slot.largest_bytes.max(element.all_bytes);
            }
        }
        while self.parts.pop_if(|part| part.depth >= depth).is_some() {}
        while let Some(level) = self.levels.pop_if(|level| level.first_depth >= depth) {
            self.add_slots(level.slots);
            self.held.truncate(level.references);
            self.builder.close(level.first_depth);
        }
        if let Some(level) = self.levels.last_mut() {
            level.last_depth = level.last_depth.min(depth.saturating_sub(1));
        }
        self.builder.close(depth);
    }

    fn add_slots(&mut self, from: usize) {
        for counted in self.slots.get(from..).unwrap_or_default() {
            self.builder.add(counted);
        }
        self.slots.truncate(from);
    }

    fn is_special(&self, object: ObjectIndex) -> bool {
        self.special.get(object.at() / 64).is_some_and(|bits| bits >> (object.0 % 64) & 1 == 1)
    }

    /// Returns whether a child of a large object, or a top-level object, is large.
    fn is_large(&mut self, position: TreePosition, depth: u32) -> bool {
        if position < self.large_until {
            return true;
        }
        let is_chain = self.levels.last().is_some_and(|level| level.is_chain);
        let is_small = self.levels.last().map_or(self.top_is_small, |level| level.is_small && !is_chain);
        let is_large = !is_small && self.tree.retained_bytes(position) >= self.least;
        match self.levels.last_mut() {
            Some(level) => level.is_small |= !is_large,
            None => self.top_is_small |= !is_large,
        }
        if is_large && is_chain {
            self.large_until = link_ahead(self.tree, position, depth, self.least).unwrap_or(self.large_until);
        }
        is_large
    }

    fn large(
        &mut self,
        position: TreePosition,
        depth: u32,
        object: ObjectIndex,
        class: u32,
        is_special: bool,
        bytes: u64,
    ) {
        // The next link of a chain.
        if let Some(level) = self.levels.last_mut()
            && level.is_chain
            && level.last_depth + 1 == depth
            && level.above.class == class
            && !is_special
        {
            level.last_depth = depth;
            let (place, counts) = (level.above.place, level.above.role == Role::Plain);
            self.builder.add_link(place, counts, bytes);
            return;
        }
        let by = self.held_by(position, object, class);
        let (before, _) = self.builder.innermost();
        let outermost = self.builder.object(
            depth,
            PrefetchedObject { object: object.0, class, by },
            VisitedBytes::from_shallow(bytes),
        );
        if let Some(place) = outermost {
            self.keep(place, position);
        }
        let (after, above) = self.builder.innermost();
        let Some(above) = above else { return };
        if after == before
            && let Some(level) = self.levels.last_mut()
            && level.last_depth + 1 == depth
        {
            // It is at the place of the object that contains it, and of the same class.
            level.is_chain |= matches!(above.role, Role::Plain | Role::Part) && level.above.class == class;
            level.last_depth = depth;
            level.is_small = false;
            return;
        }
        self.levels_before += 1;
        self.levels.push(LargeLevel {
            first_depth: depth,
            last_depth: depth,
            above: PlaceDominator { class, ..above },
            references: self.held.len(),
            is_chain: false,
            is_small: false,
            number: self.levels_before,
            slots: self.slots.len(),
        });
        self.references.append_references(object, &mut self.held);
    }

    /// Returns the reference by which an object's dominator holds the object.
    fn held_by(&mut self, position: TreePosition, object: ObjectIndex, class: u32) -> HeldBy {
        let (part, holder, of) = match (self.parts.last(), self.levels.last()) {
            (Some(part), _) => (Some(part.role), Some(part.object), part.class),
            (None, Some(level)) if level.is_chain => (None, None, level.above.class),
            (None, Some(level)) => {
                let own = self.held.get(level.references..).unwrap_or_default();
                return self.references.find(own, object);
            }
            (None, None) => return HeldBy::Unknown,
        };
        // Which field of a part holds an object matters only for keys and values.
        let slots = self.builder.slots.slots_of(ClassNumber(of));
        if part == Some(Role::Part) && !slots.iter().any(|slot| slot.name == "key") {
            return HeldBy::Unknown;
        }
        let known = self.by_classes.get(&(of, class)).copied();
        if let Some((by, READ.., false)) = known {
            return by;
        }
        let dominator = || self.tree.dominator(position).and_then(|above| self.tree.object_at(above));
        let Some(holder) = holder.or_else(dominator) else { return HeldBy::Unknown };
        if self.last_holder != Some(holder) {
            self.last_references.clear();
            self.references.append_references(holder, &mut self.last_references);
            self.last_holder = Some(holder);
        }
        let by = self.references.find(&self.last_references, object);
        let (first, read, differ) = known.unwrap_or((by, 0, false));
        self.by_classes.insert((of, class), (first, read.saturating_add(1), differ || first != by));
        by
    }

    /// Returns the index of the slot in which a small object is counted.
    fn slot(&mut self, found: PrefetchedObject) -> usize {
        let level = self.levels.last();
        let part = self.parts.last().map(|part| (part.class, part.role));
        let of_part = part.map_or(NONE, |(class, _)| class);
        let key = (level.map_or(0, |level| level.number), of_part, found.class, found.by);
        // Siblings are usually alike.
        if let Some((last, slot)) = self.last_slot
            && last == key
        {
            return slot;
        }
        let next = self.slots.len();
        let slot = *self.slot_of.entry(key).or_insert(next);
        self.last_slot = Some((key, slot));
        if slot < next {
            return slot;
        }
        let above = level.map(|level| match part {
            None => level.above,
            Some((class, role)) => PlaceDominator { class, role, ..level.above },
        });
        let to = self.builder.step(above, found);
        self.slots.push(CountedObjects {
            to,
            is_within: above.is_some_and(|above| above.place == to.place),
            example: ObjectIndex(found.object),
            objects: 0,
            own_bytes: 0,
            retained_bytes: 0,
            largest_bytes: 0,
        });
        next
    }

    fn keep(&mut self, place: u32, position: TreePosition) {
        let at = place as usize;
        if self.members.len() <= at {
            self.members.resize_with(at + 1, Vec::new);
        }
        let members = self.members.get_mut(at).filter(|members| members.len() < MAX_MEMBERS);
        if let Some(members) = members.filter(|_| self.kept < MAX_KEPT) {
            members.push(position);
            self.kept += 1;
        }
    }
}
