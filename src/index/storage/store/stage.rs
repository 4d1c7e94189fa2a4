//! The stages of an index.

/// The stages of an index: what is built, in this order, each from the ones before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Stage {
    /// Classes, histogram, measurements, roots, places of strings and traces.
    Summary = 1,
    /// Address index, record offsets, the class of each object.
    Objects = 2,
    /// That a compressed dump was unpacked into the file beside.
    Unpacked = 3,
    /// The objects that each object refers to.
    References = 4,
    /// The objects that refer to each object.
    Referrers = 5,
    /// The dominator tree.
    Dominators = 6,
}

impl Stage {
    /// All stages, in the order in which they are built.
    pub const ALL: [Self; 6] =
        [Self::Unpacked, Self::Summary, Self::Objects, Self::References, Self::Referrers, Self::Dominators];

    /// The name, which is also that of the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Objects => "objects",
            Self::Unpacked => "unpacked",
            Self::References => "references",
            Self::Referrers => "referrers",
            Self::Dominators => "dominators",
        }
    }
}
