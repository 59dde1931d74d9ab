//! Locks that a failing test does not break.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, even if a thread panicked while it had it.
///
/// Failing tests panic in the midst of things; what these mutexes guard is whole
/// between any two operations all the same, and handles must still close.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
