//! Names of the class with the methods that rewritten classes call.

/// Tracker: names of the class, and of its two methods `void NAME(int)`, that rewritten classes call.
///
/// Classes of all modules call the tracker, so its package must be exported to all of them. The unnamed module of the boot
/// loader does not suffice for a class of a named module, unless the JVM adds the read edge (it does so for modules whose
/// classes an agent changed, once the module system is initialized).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tracker<'a> {
    pub(super) class: &'a str,
    pub(super) enter: &'a str,
    pub(super) exit: &'a str,
}

impl<'a> Tracker<'a> {
    /// Creates a tracker with the internal name `class` (`java/lang/Name`), whose methods are called on
    /// each entry and each exit.
    ///
    /// # Panics
    ///
    /// If a name is empty, longer than 1,024 bytes, or not ASCII. In a constant, this is an error of the compiler.
    pub const fn new(class: &'a str, enter: &'a str, exit: &'a str) -> Tracker<'a> {
        assert!(is_name(class) && is_name(enter) && is_name(exit), "a short ASCII name");
        Tracker { class, enter, exit }
    }
}

/// Returns `true` if a name is the same in UTF-8 and in modified UTF-8, and fits into a Utf8 constant.
const fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 1024 && name.is_ascii()
}
