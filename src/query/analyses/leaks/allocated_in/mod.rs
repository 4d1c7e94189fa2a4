//! Lines of code that allocated the accumulated objects, from a Flight Recorder recording given in addition to the dump.
//!
//! A recording has allocation samples by class and stack, and, if enabled, samples of objects that were alive when it was
//! written. It does not identify the allocated objects in the dump, since addresses change. The order of the lines and its
//! certainty are described in `order.rs` and docs/jfr.md.

mod callers;
mod live;
mod order;
pub mod process;

use std::collections::HashMap;

use hprof_index::graph::numbers::TreePosition;
use hprof_index::{Dump, ObjectGraph};
use hprof_values::names;

use hprof_recordings::allocation_sites::{AllocationSite, own_frame, sites_of};
use hprof_recordings::profile::flight::AllocationEvent;
use hprof_recordings::profile::flight::allocations::{Allocations, ChainLink, OldObject, SampleSum};

use hprof_model::threads::frames::Frame;

use super::evidence::Path;
use super::{Leaks, Suspect, SuspectKind};
use callers::AliveStacks;
use live::LiveObjects;
use order::OldSums;
use process::RecordedShare;

/// Minimum number of samples of a class for naming a line.
pub const MIN_SAMPLES: u64 = 20;
/// Maximum number of lines that are reported.
const TOLD_SITES: usize = 10;

/// Allocation of a suspect's objects, from a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocatedIn {
    /// Class of the accumulated objects.
    pub class: String,
    /// Status by the number of samples.
    pub status: AllocationStatus,
    /// `true` if part of the recording could not be read.
    pub is_partial: bool,
    /// Events that are counted.
    pub event: Option<AllocationEvent>,
    /// Sum of all samples of the class. For an array, samples of other lengths than those of the live arrays are excluded, if
    /// events contain the length.
    pub sum: SampleSum,
    /// Number of sampled objects of the class that were alive when the recording was written.
    pub old_objects: u64,
    /// Shallow size of the objects of the class that accumulate in the dump.
    pub live_bytes: u64,
    /// Part of `live_bytes` that was allocated during the recording, if it grew evenly.
    pub recorded_live_bytes: u64,
    /// Reason for the order of the lines.
    pub sure: Certainty,
    /// Lines, starting with the one that most likely allocated the live objects; empty if there are too few samples.
    pub sites: Vec<LeakSite>,
    /// Number of lines, including those not in `sites`.
    pub all_sites: u64,
}

/// Availability of samples of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllocationStatus {
    /// Enough samples.
    Found,
    /// Fewer than [`MIN_SAMPLES`].
    TooFew,
    /// No samples.
    None,
}

impl AllocationStatus {
    /// Returns the name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::TooFew => "too_few",
            Self::None => "none",
        }
    }
}

/// Reason for the order of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    /// Most of the sampled live objects are from the line, and held as in the dump.
    HeldAlike,
    /// Most of the sampled live objects are from the line.
    OldObjects,
    /// All other lines together allocated less than half of the live bytes.
    OnlyLine,
    /// At all lines together, little more was allocated than is alive, and most of it at the line.
    NoGarbage,
    /// The line is the only one that allocated about as much as is alive.
    LiveBytes,
    /// The line is the only one with enough bytes that is called by the class that holds the objects.
    Holder,
    /// The lines are ordered only by bytes: the line may allocate garbage.
    Unsure,
}

impl Certainty {
    /// Returns the name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HeldAlike => "held_alike",
            Self::OldObjects => "old_objects",
            Self::OnlyLine => "only_line",
            Self::NoGarbage => "no_garbage",
            Self::LiveBytes => "live_bytes",
            Self::Holder => "holder",
            Self::Unsure => "unsure",
        }
    }
}

/// A line that allocated objects of a suspect's class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeakSite {
    /// Allocating line.
    pub site: AllocationSite,
    /// Number of sampled objects from the line that were alive when the recording was written.
    pub old_objects: u64,
    /// Number of these objects that are held by the same field as in the dump.
    pub held_alike: u64,
    /// Samples of the line. For an array, samples of other lengths than those of the live arrays are excluded, if events
    /// contain the length.
    pub like: SampleSum,
    /// Caller of the line in the application for most of these objects, if they decide the order and there are several callers.
    pub caller: Option<Frame>,
}

impl LeakSite {
    fn new(site: AllocationSite) -> Self {
        Self { old_objects: 0, held_alike: 0, like: site.sum, caller: None, site }
    }
}

impl Leaks {
    /// Adds to each suspect the lines that allocated the accumulated objects.
    pub fn add_recording(&mut self, dump: &Dump<'_>, allocations: &Allocations) {
        let share = RecordedShare::new(dump.heap, allocations);
        for (suspect, positions) in self.suspects.iter_mut().zip(&self.positions) {
            let tops = tops(dump.graph, suspect, positions);
            let live = LiveObjects::count(dump, suspect, &tops);
            suspect.allocated_in = allocated_in(suspect, &live, share, allocations);
        }
    }
}

/// Returns the objects below which memory accumulates.
fn tops(graph: &ObjectGraph, suspect: &Suspect, positions: &[TreePosition]) -> Vec<TreePosition> {
    if suspect.kind == SuspectKind::Single && suspect.is_by_mat() {
        let base = graph.objects.addresses.index_of(suspect.base.object);
        return base.and_then(|base| graph.tree.reachable_position(base)).into_iter().collect();
    }
    positions.to_vec()
}

/// Returns the allocation of the accumulated objects according to a recording; `None` if nothing accumulates. Of several
/// classes, uses the first that is certain, or else the first with enough samples.
fn allocated_in(
    suspect: &Suspect,
    live: &LiveObjects,
    share: RecordedShare,
    allocations: &Allocations,
) -> Option<AllocatedIn> {
    let sampled = |class: &str| sample_class(suspect, live, share, allocations, class);
    most_sure(classes(suspect, live).into_iter().map(sampled).collect())
}

fn most_sure(all: Vec<AllocatedIn>) -> Option<AllocatedIn> {
    let is_found = |of: &&AllocatedIn| of.status == AllocationStatus::Found;
    let is_sure = |of: &&AllocatedIn| is_found(of) && of.sure != Certainty::Unsure;
    all.iter().find(is_sure).or_else(|| all.iter().find(is_found)).or(all.first()).cloned()
}

/// Returns the classes whose samples are searched: the application class with most objects, or else the last class; and the
/// class that takes up most of the bytes.
fn classes<'s>(suspect: &'s Suspect, live: &LiveObjects) -> Vec<&'s str> {
    let mut levels = suspect.accumulated.iter().filter(|level| !level.is_class_object);
    let own = levels
        .clone()
        .filter(|level| !names::is_of_jdk(&level.class) && !level.class.ends_with("[]"))
        .max_by_key(|level| level.objects);
    let all = live.all_bytes();
    let most = levels.clone().find(|level| live.live_class(&level.class).bytes > all / 2);
    let mut found: Vec<&str> =
        own.or_else(|| levels.next_back()).map(|level| &*level.class).into_iter().collect();
    found.extend(most.map(|level| &*level.class).filter(|class| !found.contains(class)));
    found
}

fn sample_class(
    suspect: &Suspect,
    live: &LiveObjects,
    share: RecordedShare,
    allocations: &Allocations,
    class: &str,
) -> AllocatedIn {
    let of_class = live.live_class(class);
    let callers = holders(suspect);
    let mut sites: Vec<LeakSite> =
        sites_of(allocations, class, &callers).into_iter().map(LeakSite::new).collect();
    if let Some(sizes) = of_class.sizes() {
        let is_alive = |size: &u64| sizes.contains(size);
        let has_any = sites.iter().flat_map(|site| site.site.sizes.keys()).any(is_alive);
        let is_known = |site: &LeakSite| !site.site.sizes.is_empty() && !site.site.has_more_sizes;
        for site in sites.iter_mut().filter(|site| has_any && is_known(site)) {
            site.like = SampleSum::default();
            let like = site.site.sizes.iter().filter(|(size, _)| is_alive(size));
            like.for_each(|(_, sum)| site.like.add(*sum));
        }
    }
    let is_as_long = |old: &&OldObject| {
        let lengths = of_class.lengths();
        lengths.is_none_or(|lengths| old.elements.is_none_or(|elements| lengths.contains(&elements)))
    };
    let old_objects = allocations.old_objects.iter().filter(|old| &*old.class == class).filter(is_as_long);
    let links = links(suspect);
    let mut old = OldSums { suspect_percent: of_class.percent(), ..OldSums::default() };
    let mut alive = AliveStacks::default();
    let mut by_frame: HashMap<Option<Frame>, usize> =
        sites.iter().enumerate().map(|(at, site)| (site.site.frame.clone(), at)).collect();
    for sampled in old_objects {
        let is_alike = is_held_alike(sampled, &links);
        old.all += 1;
        old.alike += u64::from(is_alike);
        old.has_chains |= !sampled.chain.is_empty();
        let stack = allocations.stack(sampled.stack());
        let Some(frame) = own_frame(&stack) else { continue };
        alive.add(&frame, sampled.stack(), is_alike);
        let at = *by_frame.entry(Some(frame)).or_insert_with_key(|frame| {
            sites.push(LeakSite::new(AllocationSite::new(frame.clone(), &stack)));
            sites.len() - 1
        });
        if let Some(site) = sites.get_mut(at) {
            site.old_objects += 1;
            site.held_alike += u64::from(is_alike);
        }
    }
    let mut sum = SampleSum::default();
    sites.iter().for_each(|site| sum.add(site.like));
    let status = match (sum.samples, old.all) {
        (0, 0) => AllocationStatus::None,
        (samples, old) if samples.max(old) < MIN_SAMPLES => AllocationStatus::TooFew,
        _ => AllocationStatus::Found,
    };
    // Only objects allocated during the recording can have been sampled.
    let live = share.parts(of_class.bytes);
    let sure = order::order(&mut sites, live, old);
    if matches!(sure, Certainty::HeldAlike | Certainty::OldObjects) {
        alive.tell(&mut sites, allocations, class);
    }
    let all_sites = sites.len() as u64;
    sites.truncate(if status == AllocationStatus::Found { TOLD_SITES } else { 0 });
    AllocatedIn {
        class: class.to_owned(),
        status,
        is_partial: !allocations.problems.is_empty(),
        event: allocations.event,
        sum,
        old_objects: old.all,
        live_bytes: of_class.bytes,
        recorded_live_bytes: live.1,
        sure,
        sites,
        all_sites,
    }
}

/// Returns the classes of the application that hold the accumulated objects.
fn holders(suspect: &Suspect) -> Vec<&str> {
    let owner = suspect.paths.as_ref().and_then(|paths| paths.owner.as_ref()).map(|owner| &*owner.class);
    let place = suspect.place.as_ref().and_then(|place| place.field.as_ref()).map(|field| &*field.class);
    owner.into_iter().chain(place).filter(|class| !names::is_of_jdk(class)).collect()
}

/// Returns alternative sets of references (class and field) by which a chain of a sampled object is recognized. They come from
/// the path to the suspect, and from its path from a thread's frame, since a chain leads to only one of several roots, often a
/// variable. Of each path, uses the reference of the last application object, or else all fields.
fn links(suspect: &Suspect) -> Vec<Vec<(&str, &str)>> {
    let Some(paths) = &suspect.paths else { return Vec::new() };
    let own = match &paths.owner {
        Some(owner) => vec![(&*owner.class, &*owner.field)],
        None => fields(&paths.path),
    };
    let through_frame = paths.through_frame.as_ref().map(|path| {
        let fields = fields(path);
        let last = fields.iter().rfind(|(class, _)| !names::is_of_jdk(class)).copied();
        last.map_or(fields, |last| vec![last])
    });
    [own].into_iter().chain(through_frame).collect()
}

/// Returns the fields of a path, and the classes of the objects that have them.
fn fields(path: &Path) -> Vec<(&str, &str)> {
    let steps = path.steps.windows(2);
    let fields = steps.filter_map(|pair| {
        let [holder, held] = pair else { return None };
        let field = held.reference.as_deref().filter(|field| !field.starts_with(['[', '<']))?;
        Some((holder.class.as_deref()?, field))
    });
    fields.collect()
}

/// Returns whether the chain of a sampled object has all references of one of the alternatives.
fn is_held_alike(old: &OldObject, links: &[Vec<(&str, &str)>]) -> bool {
    let is_in = |(class, field): &(&str, &str)| {
        let is_it = |link: &ChainLink| &*link.class == *class && link.field.as_deref() == Some(*field);
        old.chain.iter().any(is_it)
    };
    links.iter().any(|links| !links.is_empty() && links.iter().all(is_in))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_classes_the_sure_one_is_told() {
        use AllocationStatus::{Found, None, TooFew};
        use Certainty::{HeldAlike, LiveBytes, Unsure};
        let of = |class: usize, (status, sure)| AllocatedIn {
            class: class.to_string(),
            status,
            is_partial: false,
            event: Option::None,
            sum: SampleSum::default(),
            old_objects: 0,
            live_bytes: 0,
            recorded_live_bytes: 0,
            sure,
            sites: Vec::new(),
            all_sites: 0,
        };
        for (first, second, told) in [
            ((Found, Unsure), (Found, HeldAlike), "1"),
            ((Found, LiveBytes), (Found, HeldAlike), "0"),
            ((Found, Unsure), (Found, Unsure), "0"),
            ((Found, Unsure), (TooFew, HeldAlike), "0"),
            ((TooFew, HeldAlike), (Found, Unsure), "1"),
            ((None, Unsure), (TooFew, Unsure), "0"),
        ] {
            let all = vec![of(0, first), of(1, second)];
            assert_eq!(most_sure(all).map(|of| of.class).as_deref(), Some(told), "{first:?} {second:?}");
        }
        assert_eq!(most_sure(Vec::new()), Option::None);
    }
}
