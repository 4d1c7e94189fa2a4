//! What is recorded while the program runs.

pub mod classes;
pub mod monitors;
pub mod samples;
pub mod sites;
pub mod threads;
pub mod times;
pub mod traces;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A JVM may be recorded more than once. What threads remember of a recording that was stopped is of no use in the next.
static RECORDING: AtomicU32 = AtomicU32::new(0);

/// The number of the recording.
#[inline]
pub fn recording() -> u32 {
    RECORDING.load(Ordering::Relaxed)
}

/// The next recording begins.
pub fn next_recording() {
    RECORDING.fetch_add(1, Ordering::Relaxed);
}

/// Held by tests that begin a recording, or depend on none beginning.
#[cfg(test)]
static TESTED: Mutex<()> = Mutex::new(());

/// Locks; a panic of another thread, which was told, does not stop this one.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As [`lock`], to read.
pub fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// As [`lock`], to write.
pub fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
