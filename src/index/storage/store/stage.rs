//! The stages of an index.

/// Stages of an index, in build order: each is built from the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Stage {
    /// Classes, histogram, measurements, roots, offsets of strings and traces.
    Summary = 1,
    /// Address index, record offsets, and class of each object.
    Objects = 2,
    /// Marker that a compressed dump was unpacked into the file beside it.
    Unpacked = 3,
    /// References of each object.
    References = 4,
    /// Referrers of each object.
    Referrers = 5,
    /// The dominator tree.
    Dominators = 6,
    /// Places of large objects: a stored query result.
    Places = 7,
    /// Findings of the overview in passes over the heap: a stored query result.
    Overview = 8,
    /// Containers and their elements: a stored query result.
    Containers = 9,
}

impl Stage {
    /// All stages, in build order.
    pub const ALL: [Self; 9] = [
        Self::Unpacked,
        Self::Summary,
        Self::Objects,
        Self::References,
        Self::Referrers,
        Self::Dominators,
        Self::Places,
        Self::Overview,
        Self::Containers,
    ];

    /// Returns the name of the stage, which is the name of its file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Objects => "objects",
            Self::Unpacked => "unpacked",
            Self::References => "references",
            Self::Referrers => "referrers",
            Self::Dominators => "dominators",
            Self::Places => "places",
            Self::Overview => "overview",
            Self::Containers => "containers",
        }
    }

    /// Returns `true` if this is a stored query result ([`crate::Heap::store_result`]): if it is missing, it is computed again.
    pub const fn is_stored_result(self) -> bool {
        matches!(self, Self::Places | Self::Overview | Self::Containers)
    }
}
