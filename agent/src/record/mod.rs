//! Data recorded while the program runs.

pub mod classes;
pub mod monitors;
pub mod samples;
pub mod sites;
pub mod threads;
pub mod times;
pub mod traces;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Number of the recording. A JVM can be recorded more than once; thread-local data of a recording that was stopped is useless
/// in the next.
static RECORDING: AtomicU32 = AtomicU32::new(0);

/// Returns the number of the recording.
#[inline]
pub fn recording() -> u32 {
    RECORDING.load(Ordering::Relaxed)
}

/// Starts the next recording.
pub fn next_recording() {
    RECORDING.fetch_add(1, Ordering::Relaxed);
}

/// Held by tests that start a recording, or require that none starts.
#[cfg(test)]
static TESTED: Mutex<()> = Mutex::new(());

/// Locks a mutex, ignoring a panic of another thread, which was reported.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As [`lock`], for reading.
pub fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// As [`lock`], for writing.
pub fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
