//! Places of one heap, with their objects.

use hprof_index::graph::numbers::TreePosition;
use hprof_parser::ObjectId;

use super::explain::{Explained, explain};
use super::{Aligned, DumpPlaces};

/// Places of one heap, without uninformative keys.
#[derive(Debug, Clone, Default)]
pub struct OneHeap {
    /// Places of the heap.
    pub aligned: Aligned,
    /// By place: large objects at it, at most [`super::MAX_MEMBERS`], ascending.
    members: Vec<Vec<TreePosition>>,
}

impl OneHeap {
    /// Merges the places of a heap whose keys are uninformative.
    pub fn new(mut places: DumpPlaces) -> Self {
        let members = std::mem::take(&mut places.members);
        let all = Aligned::with_all_keys(&[places]);
        let (aligned, told_at) = match all.telling() {
            Some((aligned, told_at)) => (aligned, told_at),
            None => {
                let same = all.places().collect();
                (all, same)
            }
        };
        let mut of_place = vec![Vec::new(); aligned.parents.len()];
        for (members, place) in members.into_iter().zip(told_at) {
            if let Some(all) = of_place.get_mut(place as usize) {
                all.extend(members);
            }
        }
        of_place.iter_mut().for_each(|members: &mut Vec<TreePosition>| members.sort_unstable());
        Self { aligned, members: of_place }
    }

    /// Returns the places that explain the heap, as [`explain`] does.
    pub fn explain(&self, least: u64) -> Vec<Explained> {
        explain(&self.aligned, least)
    }

    /// Returns the name of a framework's object, with the field that holds it if other objects have the same name.
    pub fn title_of(&self, object: ObjectId) -> Option<String> {
        let is_it = |place: &u32| {
            self.aligned.label(*place).called.is_some() && self.aligned.figures(0, *place).example == object
        };
        self.aligned.places().find(is_it).map(|place| self.aligned.title(place).text)
    }

    /// Returns the large objects at a place.
    pub fn members(&self, place: u32) -> &[TreePosition] {
        self.members.get(place as usize).map_or(&[], Vec::as_slice)
    }
}
