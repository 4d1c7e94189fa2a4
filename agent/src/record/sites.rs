//! Allocation sites: a class, and the trace in which its objects were allocated.
//!
//! With interval 0, each allocation is reported, except those that escape analysis removed. With another interval, the JVM
//! samples: an object of `size` bytes is sampled with probability `1 - e^(-size/interval)`, so it represents the inverse of
//! this number of objects (JEP 331, "Low-Overhead Heap Profiling").

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

use rustc_hash::FxHashMap;

use super::{read, recording, write};
use crate::jvm::Frame;

/// Allocated objects and bytes of a site. With sampling, both are in units of 1/1024, so that fractions can be summed.
#[derive(Debug, Default)]
pub struct Site {
    objects: AtomicU64,
    bytes: AtomicU64,
    /// Number of the trace.
    pub trace: u32,
}

impl Site {
    /// Adds the weight of an allocated object to the site.
    #[inline]
    pub fn add(&self, weight: Weight) {
        self.objects.fetch_add(weight.objects, Ordering::Relaxed);
        self.bytes.fetch_add(weight.bytes, Ordering::Relaxed);
    }
}

/// Number of objects and bytes that a reported object represents, or a sum of such numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weight {
    /// Number of objects; with sampling, in units of 1/1024.
    pub objects: u64,
    /// Number of bytes; with sampling, in units of 1/1024.
    pub bytes: u64,
}

impl Weight {
    /// Adds another weight.
    pub fn add(&mut self, other: Self) {
        self.objects = self.objects.saturating_add(other.objects);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

const SCALE: f64 = 1024.0;

/// Sampling interval, from which the weights of objects are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    interval: u32,
}

impl Sampling {
    /// Creates an interval of an average number of bytes; 0 means that each allocation is reported.
    pub const fn every(interval: u32) -> Self {
        Self { interval }
    }

    /// Returns `true` if allocations are sampled, so that counts are estimates.
    pub const fn is_estimate(self) -> bool {
        self.interval > 0
    }

    /// Returns the weight of a reported object of `size` bytes.
    #[inline]
    pub fn weight(self, size: u64) -> Weight {
        if self.interval == 0 {
            return Weight { objects: 1, bytes: size };
        }
        // Both numbers are far below 2^53.
        let (size, interval) = (size as f64, f64::from(self.interval));
        let objects = 1.0 / -(-size / interval).exp_m1();
        // `as` saturates at the limits of the type.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let scaled = |number: f64| (number * SCALE).round() as u64;
        Weight { objects: scaled(objects), bytes: scaled(objects * size) }
    }

    /// Converts a weight to whole objects and bytes.
    pub fn round_weight(self, weight: Weight) -> Weight {
        if self.interval == 0 {
            return weight;
        }
        let whole = |number: u64| number.saturating_add(512) >> 10;
        Weight { objects: whole(weight.objects), bytes: whole(weight.bytes) }
    }
}

/// Key of a site: ID of the class object and number of the trace.
pub type SiteKey = (u64, u32);

/// Numbers and bytes of the live and allocated objects of a site.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SiteCounts {
    /// Live objects.
    pub live: Weight,
    /// Allocated objects.
    pub allocated: Weight,
}

const SHARDS: usize = 16;

/// All sites of a recording, in shards with separate locks.
#[derive(Debug, Default)]
pub struct Sites {
    shards: [RwLock<FxHashMap<SiteKey, Arc<Site>>>; SHARDS],
}

impl Sites {
    fn shard(&self, (class, trace): SiteKey) -> &RwLock<FxHashMap<SiteKey, Arc<Site>>> {
        let at = (class >> 3) as usize ^ trace as usize;
        // A shard exists for every remainder.
        self.shards.get(at % SHARDS).unwrap_or(&self.shards[0])
    }

    /// Returns the site of a class and a trace, adding it if it is new.
    pub fn site(&self, key: SiteKey) -> Arc<Site> {
        let shard = self.shard(key);
        if let Some(site) = read(shard).get(&key) {
            return Arc::clone(site);
        }
        let new = || Arc::new(Site { trace: key.1, ..Site::default() });
        Arc::clone(write(shard).entry(key).or_insert_with(new))
    }

    /// Removes all sites.
    pub fn clear(&self) {
        for shard in &self.shards {
            *write(shard) = FxHashMap::default();
        }
    }

    /// Returns the allocated objects and bytes of each site.
    pub fn allocations(&self) -> FxHashMap<SiteKey, Weight> {
        let mut all = FxHashMap::default();
        for shard in &self.shards {
            all.extend(read(shard).iter().map(|(key, site)| {
                let objects = site.objects.load(Ordering::Relaxed);
                (*key, Weight { objects, bytes: site.bytes.load(Ordering::Relaxed) })
            }));
        }
        all
    }
}

/// Entry of the cache of sites that a thread used recently.
#[derive(Debug)]
struct Recent {
    hash: u64,
    class: u64,
    frames: Box<[Frame]>,
    site: Arc<Site>,
}

/// Thread-local data: cached sites, reused buffers, and the state of counted events.
#[derive(Debug, Default)]
struct ThreadSites {
    /// Number of the recording to which the data belongs.
    recording: u32,
    recent: Vec<Option<Recent>>,
    frames: Vec<Frame>,
    /// Number of objects that were counted at the JVM's own event, and for which a sampling event may follow.
    counted: u32,
    /// Allocation that the last event of the thread counted, if it was a sampling event.
    sampled: Option<SampledAllocation>,
}

/// Hash of the stack, ID of the class, and size of an allocation.
pub type SampledAllocation = (u64, u64, u64);

/// Number of cached sites per thread, which take about 100 KB. A thread that allocates at more sites often takes the slow path.
const RECENT: usize = 512;

thread_local! {
    static THREAD: RefCell<ThreadSites> = RefCell::new(ThreadSites::default());
}

/// Calls `run` with the current thread's data for the current recording.
#[inline]
fn with<T>(run: impl FnOnce(&mut ThreadSites) -> T) -> Option<T> {
    THREAD
        .try_with(|thread| {
            let thread = &mut *thread.borrow_mut();
            if thread.recording != recording() {
                *thread = ThreadSites { recording: recording(), ..ThreadSites::default() };
            }
            run(thread)
        })
        .ok()
}

/// Calls `run` with a reused buffer for frames.
pub fn with_frames<T>(run: impl FnOnce(&mut Vec<Frame>) -> T) -> Option<T> {
    // The buffer is taken out, so that a nested event finds an empty one.
    let mut frames = with(|thread| std::mem::take(&mut thread.frames))?;
    let result = run(&mut frames);
    let _ = with(|thread| thread.frames = frames);
    Some(result)
}

/// Returns the site of a stack and a class from the current thread's cache.
#[inline]
pub fn recent(hash: u64, class: u64, frames: &[Frame]) -> Option<Arc<Site>> {
    with(|thread| {
        let recent = thread.recent.get(slot(hash, class))?.as_ref()?;
        let same = recent.hash == hash && recent.class == class && *recent.frames == *frames;
        same.then(|| Arc::clone(&recent.site))
    })
    .flatten()
}

/// Stores a site in the current thread's cache.
pub fn remember(hash: u64, class: u64, frames: &[Frame], site: Arc<Site>) {
    let _ = with(|thread| {
        if thread.recent.is_empty() {
            thread.recent.resize_with(RECENT, || None);
        }
        if let Some(place) = thread.recent.get_mut(slot(hash, class)) {
            *place = Some(Recent { hash, class, frames: frames.into(), site });
        }
    });
}

fn slot(hash: u64, class: u64) -> usize {
    // The upper bits of the hash are the best-mixed ones.
    let slot = ((hash >> 40) ^ (class >> 3)) % RECENT as u64;
    usize::try_from(slot).unwrap_or(0)
}

/// Records that an object was counted at the JVM's own event, so that a sampling event for it may follow.
pub fn counted_by_jvm() {
    let _ = with(|thread| thread.counted += 1);
}

/// Records that an object was counted at a sampling event, so that the JVM's own event for it may follow at once.
#[inline]
pub fn record_sampled(allocation: SampledAllocation) {
    let _ = with(|thread| thread.sampled = Some(allocation));
}

/// Returns and removes the allocation that [`record_sampled`] recorded last on this thread. It applies to only one event of the
/// JVM's own.
pub fn take_sampled() -> Option<SampledAllocation> {
    with(|thread| thread.sampled.take()).flatten()
}

/// Returns `true` if [`take_sampled`] would return an allocation.
#[inline]
pub fn has_sampled() -> bool {
    with(|thread| thread.sampled.is_some()).unwrap_or(false)
}

/// Returns `true` if objects of this thread were counted at the JVM's own event, so that a sampling event may be a duplicate.
#[inline]
pub fn may_be_counted() -> bool {
    with(|thread| thread.counted > 0).unwrap_or(false)
}

/// Records that a sampling event was a duplicate of the JVM's own event.
pub fn was_counted() {
    let _ = with(|thread| thread.counted = thread.counted.saturating_sub(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_allocation_counts_as_one() {
        assert_eq!(Sampling::every(0).weight(24), Weight { objects: 1, bytes: 24 });
        assert_eq!(
            Sampling::every(0).round_weight(Weight { objects: 7, bytes: 9 }),
            Weight { objects: 7, bytes: 9 }
        );
    }

    /// An object much smaller than the interval represents interval / size objects; a much larger object represents only
    /// itself.
    #[test]
    fn samples_are_weighted_by_their_probability() {
        let sampling = Sampling::every(512 << 10);
        let small = sampling.round_weight(sampling.weight(32));
        assert!((16_384..=16_385).contains(&small.objects), "{small:?}");
        assert!((524_288..=524_320).contains(&small.bytes), "{small:?}");
        let large = sampling.round_weight(sampling.weight(64 << 20));
        assert_eq!(large, Weight { objects: 1, bytes: 64 << 20 });
    }

    #[test]
    fn a_thread_finds_what_it_remembers_of_this_recording() {
        let _alone = super::super::lock(&super::super::TESTED);
        let frames = [Frame { method: crate::jvm::MethodId(8), location: 3 }];
        let site = Arc::new(Site { trace: 5, ..Site::default() });
        assert!(recent(1 << 50, 16, &frames).is_none());
        remember(1 << 50, 16, &frames, site);
        assert_eq!(recent(1 << 50, 16, &frames).map(|site| site.trace), Some(5));
        assert!(recent(1 << 50, 24, &frames).is_none() && recent(1 << 50, 16, &[]).is_none());
        crate::record::next_recording();
        assert!(recent(1 << 50, 16, &frames).is_none());
    }
}
