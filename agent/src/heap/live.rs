//! Counts of live objects of each site, from a walk over all objects after a garbage collection.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::jvm::walk::{Reference, TagSlot as Place, Visitor, WalkControl};
use crate::record::sites::{Sampling, SiteKey, Weight};
use crate::state::AgentState;
use crate::tags::{Epoch, Tag};

/// Visitor that counts objects by class and trace.
#[derive(Debug)]
pub struct Live {
    /// Number and bytes of objects, by class and trace.
    pub counts: FxHashMap<SiteKey, Weight>,
    /// Number of objects whose class is unknown.
    pub unknown: u64,
    /// IDs of the classes whose class objects were found.
    pub classes: FxHashSet<u64>,
    sampling: Sampling,
    last: (SiteKey, Weight),
    class_class: u64,
    /// IDs of the class objects of fillers.
    fillers: Vec<u64>,
    /// Mark for counted objects, if objects can be reported more than once.
    epoch: Option<Epoch>,
}

impl Live {
    /// Creates an empty count. With an epoch, objects are counted in a walk that reports references to them.
    pub fn new(state: &AgentState, epoch: Option<Epoch>) -> Self {
        Self {
            counts: FxHashMap::default(),
            unknown: 0,
            classes: FxHashSet::default(),
            sampling: state.sampling,
            last: ((0, 0), Weight::default()),
            class_class: state.class_class(),
            fillers: state.fillers(),
            epoch,
        }
    }

    /// Adds the objects that were counted last, which completes the counts.
    pub fn finish(&mut self) {
        let (key, weight) = std::mem::take(&mut self.last);
        if weight.objects > 0 {
            self.counts.entry(key).or_default().add(weight);
        }
    }
}

impl Visitor for Live {
    fn object(&mut self, object: &Place, class: i64, size: u64, _: Option<u32>) -> WalkControl {
        let class = Tag(class).id();
        if class == 0 {
            self.unknown += 1;
            return WalkControl::Visit;
        }
        if self.fillers.contains(&class) {
            return WalkControl::Visit;
        }
        let tag = Tag(object.get());
        if class == self.class_class && tag.id() != 0 {
            self.classes.insert(tag.id());
        }
        // With sampling, an object that was not sampled is represented by sampled ones. An object that is older than the agent
        // has no trace and is not represented by samples.
        let weight = if tag.trace() == 0 {
            if self.sampling.is_estimate() {
                return WalkControl::Visit;
            }
            Sampling::every(0).weight(size)
        } else {
            self.sampling.weight(size)
        };
        let key = (class, tag.trace());
        if key != self.last.0 {
            self.finish();
            self.last.0 = key;
        }
        self.last.1.add(weight);
        WalkControl::Visit
    }

    fn reference(&mut self, reference: &Reference<'_>) -> WalkControl {
        let tag = Tag(reference.tag.get());
        if let Some(epoch) = self.epoch
            && tag.epoch() != epoch
        {
            reference.tag.set(tag.with_epoch(epoch).0);
            self.object(reference.tag, reference.class, reference.size, reference.length);
        }
        WalkControl::Visit
    }
}

/// Visitor that counts the objects and bytes of the entire heap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Size {
    /// IDs of the class objects of fillers, which are not counted.
    pub fillers: Vec<u64>,
    /// Number of objects.
    pub objects: u64,
    /// Total size in bytes.
    pub bytes: u64,
}

impl Visitor for Size {
    fn object(&mut self, _: &Place, class: i64, size: u64, _: Option<u32>) -> WalkControl {
        if !self.fillers.contains(&Tag(class).id()) {
            self.objects += 1;
            self.bytes += size;
        }
        WalkControl::Visit
    }
}
