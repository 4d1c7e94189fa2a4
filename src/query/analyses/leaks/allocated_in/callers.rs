//! Stacks of the sampled objects that were alive. A line can allocate both retained objects and garbage: then its
//! callers differ.

use std::collections::{HashMap, HashSet};

use rustc_hash::FxHashMap;

use hprof_model::threads::frames::Frame;
use hprof_recordings::allocation_sites::own_frames;
use hprof_recordings::profile::flight::allocations::Allocations;

use super::LeakSite;

/// Numbers of sampled objects: those that are held as in the dump, and all.
type SampleCounts = (u64, u64);

/// Stacks that allocated the sampled live objects, by line. The hash is seeded, since the lines come from the file.
#[derive(Debug, Default)]
pub(super) struct AliveStacks {
    stacks: HashMap<Frame, FxHashMap<u32, SampleCounts>>,
}

impl AliveStacks {
    /// Adds a sampled object that a line allocated in a stack.
    pub(super) fn add(&mut self, line: &Frame, stack: u32, is_alike: bool) {
        let stacks = self.stacks.entry(line.clone()).or_default();
        let (alike, all) = stacks.entry(stack).or_default();
        *alike += u64::from(is_alike);
        *all += 1;
    }

    /// Sets the stack of each line to that of most of its objects; and, for each line with several callers, the caller from
    /// which most of its objects are.
    pub(super) fn tell(&self, sites: &mut [LeakSite], allocations: &Allocations, class: &str) {
        let mut callers: HashMap<Frame, HashSet<Frame>> = HashMap::new();
        let alive =
            self.stacks.values().flat_map(|stacks| stacks.keys().map(|stack| allocations.stack(*stack)));
        for stack in allocations.of_class(class).map(|(stack, _)| stack).chain(alive) {
            if let Some((line, Some(caller))) = own_frames(&stack) {
                callers.entry(line).or_default().insert(caller);
            }
        }
        for site in sites {
            let Some(line) = &site.site.frame else { continue };
            let Some(stacks) = self.stacks.get(line) else { continue };
            let has_several = callers.get(line).is_some_and(|callers| callers.len() > 1);
            site.caller = has_several.then(|| most_frequent(stacks, allocations)).flatten();
            let caller_of = |stack: u32| own_frames(&allocations.stack(stack)).and_then(|(_, caller)| caller);
            let stack = (stacks.iter())
                .filter(|(stack, _)| site.caller.is_none() || caller_of(**stack) == site.caller)
                .max_by_key(|(stack, objects)| (**objects, std::cmp::Reverse(**stack)));
            if let Some((stack, _)) = stack {
                site.site.set_stack(&allocations.stack(*stack));
            }
        }
    }
}

/// Returns the caller from which most objects are.
fn most_frequent(stacks: &FxHashMap<u32, SampleCounts>, allocations: &Allocations) -> Option<Frame> {
    let any_alike = stacks.values().any(|(alike, _)| *alike > 0);
    let mut sums: HashMap<Option<Frame>, u64> = HashMap::new();
    for (stack, (alike, all)) in stacks {
        let caller = own_frames(&allocations.stack(*stack)).and_then(|(_, caller)| caller);
        *sums.entry(caller).or_default() += if any_alike { alike } else { all };
    }
    let all: u64 = sums.values().sum();
    sums.into_iter().find(|(_, objects)| *objects > all / 2)?.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use hprof_writer::hostile_keys::is_seeded;

    /// The lines come from the file: without a seed they could be chosen to collide.
    #[test]
    fn the_hash_is_seeded() {
        assert!(is_seeded(&AliveStacks::default().stacks));
    }
}
