//! Votes on the values of fields.
//!
//! Candidates are found by majority votes: a value that more than half of the instances have wins, in one pass and with
//! a few bytes for each field (R. S. Boyer, J S. Moore: MJRTY, a fast majority vote algorithm, 1991). A vote also
//! yields a lower bound for the number of instances with another value, so that most fields drop out early; the others
//! are counted.

use super::plan::Plans;
use hprof_index::model::summary::{ClassNumber, Summary};

/// Denominator of the fraction of instances that may have another value.
pub(super) const ONE_OF: u64 = 100;

/// Majority vote on a field.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Vote {
    pub(super) candidate: u64,
    /// Number of votes for the candidate that no opposing vote has cancelled.
    pub(super) score: u64,
    /// Number of pairs of different values; at least one value of each pair is not the majority's.
    pub(super) pairs: u64,
}

impl Vote {
    #[inline(always)]
    fn add_one(&mut self, value: u64) {
        if self.score == 0 {
            (self.candidate, self.score) = (value, 1);
        } else if self.candidate == value {
            self.score += 1;
        } else {
            self.score -= 1;
            self.pairs += 1;
        }
    }

    fn add(&mut self, other: &Self) {
        self.pairs += other.pairs;
        if self.candidate == other.candidate {
            self.score += other.score;
        } else {
            self.pairs += self.score.min(other.score);
            if other.score > self.score {
                self.candidate = other.candidate;
            }
            self.score = self.score.abs_diff(other.score);
        }
    }
}

/// Votes on all compared fields.
#[derive(Debug)]
pub(super) struct Votes {
    pub(super) votes: Vec<Vote>,
    /// By field: number of pairs at which the field drops out.
    pub(super) limits: Vec<u64>,
    /// By class number: number of instances that have voted.
    pub(super) classes: Vec<u64>,
}

impl Votes {
    pub(super) fn new(plans: &Plans) -> Self {
        let limits = plans.fields.iter().map(|field| field.instances / ONE_OF).collect();
        Self {
            votes: vec![Vote::default(); plans.fields.len()],
            limits,
            classes: vec![0; plans.of_class.len()],
        }
    }

    /// Adds the votes of an instance of a class.
    #[inline(always)]
    pub(super) fn vote(&mut self, plans: &Plans, summary: &Summary, class: ClassNumber, fields: &[u8]) {
        if let Some(count) = self.classes.get_mut(class.0 as usize) {
            *count += 1;
        }
        plans.for_each_compared(summary, class, fields, |number, value| {
            let number = number as usize;
            if let (Some(vote), Some(limit)) = (self.votes.get_mut(number), self.limits.get(number))
                && vote.pairs <= *limit
            {
                vote.add_one(value.bits);
            }
        });
    }

    /// Adds the votes of another pass.
    pub(super) fn add(&mut self, others: &Self) {
        self.votes.iter_mut().zip(&others.votes).for_each(|(vote, other)| vote.add(other));
        self.classes.iter_mut().zip(&others.classes).for_each(|(count, other)| *count += other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the combined vote of several voters, among which the values are divided.
    fn vote(values: &[u64], voters: usize) -> Vote {
        let parts = values.chunks(values.len().div_ceil(voters).max(1)).map(|values| {
            let mut vote = Vote::default();
            values.iter().for_each(|value| vote.add_one(*value));
            vote
        });
        parts.fold(Vote::default(), |mut all, vote| {
            all.add(&vote);
            all
        })
    }

    #[test]
    fn what_nearly_all_have_wins_and_pairs_are_no_more_than_the_others() {
        for (all, other_at) in [(1000u64, 7u64), (1000, 97), (1000, 101), (500, 3)] {
            for voters in [1, 2, 7] {
                let values: Vec<u64> =
                    (0..all).map(|at| if at % other_at == 0 { at + 10 } else { 5 }).collect();
                let others = values.iter().filter(|value| **value != 5).count() as u64;
                let vote = vote(&values, voters);
                assert_eq!(vote.candidate, 5);
                assert!(vote.pairs <= others && vote.score + 2 * vote.pairs == all, "{vote:?}");
            }
        }
        assert_eq!(vote(&[3; 100], 7).pairs, 0);
        let different: Vec<u64> = (0..100).collect();
        assert!(vote(&different, 3).pairs >= 49);
    }
}
