//! Data that is recorded while the program runs.

pub mod classes;
pub mod monitors;
pub mod samples;
pub mod sites;
pub mod threads;
pub mod times;
pub mod traces;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Number of the current recording. A JVM can be recorded more than once, and thread-local data of an earlier recording must
/// not be used in a later one.
static RECORDING: AtomicU32 = AtomicU32::new(0);

/// Returns the number of the current recording.
#[inline]
pub fn recording() -> u32 {
    RECORDING.load(Ordering::Relaxed)
}

/// Increments the number of the current recording.
pub fn next_recording() {
    RECORDING.fetch_add(1, Ordering::Relaxed);
}

/// Lock for tests that start a recording, or require that none is started meanwhile.
#[cfg(test)]
static TESTED: Mutex<()> = Mutex::new(());

/// Locks a mutex, even if another thread panicked while holding it; the panic was already reported.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks for reading, even if another thread panicked while holding the lock.
pub fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// Locks for writing, even if another thread panicked while holding the lock.
pub fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
