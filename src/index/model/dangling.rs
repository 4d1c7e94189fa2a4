//! Dangling references: references to objects that a dump does not contain, counted while the references are
//! read.

use hprof_values::ObjectId;

/// Number of distinct IDs that are counted exactly; more give a lower bound. They take 16 MiB.
const MAX_IDS: usize = 1 << 20;

/// Counts of dangling references and of the missing objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct MissingObjects {
    /// Number of dangling references.
    pub references: u64,
    /// Number of distinct missing objects.
    pub objects: u64,
    /// `true` if `objects` is a lower bound.
    #[serde(rename = "is_incomplete")]
    pub more: bool,
}

/// Counter of dangling references and of the missing objects.
#[derive(Debug, Default)]
pub(crate) struct MissingCounter {
    references: u64,
    ids: Vec<ObjectId>,
    more: bool,
}

impl MissingCounter {
    /// Adds the IDs of dangling references, in any order, one for each reference.
    pub(crate) fn add<'a>(&mut self, ids: impl IntoIterator<Item = &'a ObjectId>) {
        for id in ids {
            self.references += 1;
            self.take(*id);
        }
    }

    /// Adds all counts of another counter.
    pub(crate) fn merge(&mut self, other: Self) {
        self.references += other.references;
        other.ids.into_iter().for_each(|id| self.take(id));
        self.more |= other.more;
    }

    fn take(&mut self, id: ObjectId) {
        if self.more {
            return;
        }
        self.ids.push(id);
        if self.ids.len() >= 2 * MAX_IDS {
            self.sort();
        }
    }

    fn sort(&mut self) {
        self.ids.sort_unstable();
        self.ids.dedup();
        if self.ids.len() > MAX_IDS {
            self.ids.truncate(MAX_IDS);
            self.more = true;
        }
    }

    /// Returns the counts.
    pub(crate) fn finish(mut self) -> MissingObjects {
        self.sort();
        MissingObjects { references: self.references, objects: self.ids.len() as u64, more: self.more }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_count_once_and_references_each_time() {
        let mut counter = MissingCounter::default();
        counter.add(&[7, 5, 7].map(ObjectId));
        counter.add(&[5, u64::MAX, 1].map(ObjectId));
        assert_eq!(counter.finish(), MissingObjects { references: 6, objects: 4, more: false });
        assert_eq!(MissingCounter::default().finish(), MissingObjects::default());
    }

    #[test]
    fn more_than_can_be_told_apart_are_said_to_be_more() {
        let ids: Vec<ObjectId> = (0..MAX_IDS as u64).map(ObjectId).collect();
        let mut exact = MissingCounter::default();
        (0..3).for_each(|_| exact.add(&ids));
        let all = MissingObjects { references: 3 << 20, objects: 1 << 20, more: false };
        assert_eq!(exact.finish(), all);
        let mut over = MissingCounter::default();
        over.add(&ids);
        over.add(&[ObjectId(u64::MAX)]);
        over.add(&ids);
        let most = MissingObjects { references: (2 << 20) + 1, objects: 1 << 20, more: true };
        let mut both = MissingCounter::default();
        both.add(&[1, u64::MAX].map(ObjectId));
        both.merge(over);
        assert_eq!(both.finish(), MissingObjects { references: most.references + 2, ..most });
    }
}
