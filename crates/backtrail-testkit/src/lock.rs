//! Mutexes that survive a failing test.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, even if a thread panicked while holding it.
///
/// Failing tests panic in the middle of things; the guarded state is consistent between
/// any two operations anyway, and handles must still close.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
