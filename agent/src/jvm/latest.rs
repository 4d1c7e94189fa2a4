//! A value that lives as long as the process, until another takes its place.

use std::sync::atomic::{AtomicPtr, Ordering};

/// The latest of values of which each stays where it is: events may still be using one that was replaced.
#[derive(Debug)]
pub struct Latest<T: 'static>(AtomicPtr<T>);

impl<T: Sync> Latest<T> {
    /// None yet.
    pub const fn none() -> Self {
        Self(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// The latest.
    #[inline]
    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: null, or what `set` leaked: nobody frees or changes it.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// From now on it is this one.
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
        static NUMBER: Latest<String> = Latest::none();
        assert_eq!(NUMBER.get(), None);
        let one = NUMBER.set("one".to_owned());
        assert_eq!(NUMBER.get().map(String::as_str), Some("one"));
        NUMBER.set("two".to_owned());
        assert_eq!((one.as_str(), NUMBER.get().map(String::as_str)), ("one", Some("two")));
    }
}
