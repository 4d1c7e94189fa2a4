//! Cell for a value that lives as long as the process, and can be replaced.

use std::sync::atomic::{AtomicPtr, Ordering};

/// Cell that contains the latest of several values. Replaced values are never freed, because events may still be using them.
#[derive(Debug)]
pub struct Latest<T: 'static>(AtomicPtr<T>);

impl<T: Sync> Latest<T> {
    /// Creates an empty cell.
    pub const fn empty() -> Self {
        Self(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Returns the latest value; `None` if the cell is empty.
    #[inline]
    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: The pointer is null, or was leaked by `set`; nothing frees or changes the value.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// Replaces the value.
    pub fn set(&self, value: T) -> &'static T {
        let value: &'static T = Box::leak(Box::new(value));
        self.0.store(std::ptr::from_ref(value).cast_mut(), Ordering::Release);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_replaced_stays() {
        static NUMBER: Latest<String> = Latest::empty();
        assert_eq!(NUMBER.get(), None);
        let one = NUMBER.set("one".to_owned());
        assert_eq!(NUMBER.get().map(String::as_str), Some("one"));
        NUMBER.set("two".to_owned());
        assert_eq!((one.as_str(), NUMBER.get().map(String::as_str)), ("one", Some("two")));
    }
}
