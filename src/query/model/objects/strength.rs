//! Strength with which a `java.lang.ref.Reference` holds its referent.
//!
//! Only the field `referent` is weaker than others: a subclass holds objects in its own fields strongly.

use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_values::RootKind;

use super::reference_kind::ReferenceKind;

/// Strength with which one object holds another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strength {
    /// A reference that keeps the object alive.
    Strong,
    /// The referent of a SoftReference.
    Soft,
    /// The referent of a WeakReference.
    Weak,
    /// The referent of a PhantomReference, including cleaners.
    Phantom,
    /// The referent of a FinalReference: the object has a finalizer that is still to run.
    Finalizer,
}

impl Strength {
    /// Strengths that can be excluded.
    pub const EXCLUDABLE: [Self; 4] = [Self::Weak, Self::Soft, Self::Phantom, Self::Finalizer];

    /// Returns the name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Strong => "strong",
            Self::Soft => "soft",
            Self::Weak => "weak",
            Self::Phantom => "phantom",
            Self::Finalizer => "finalizer",
        }
    }

    /// Returns the strength that the class of this name gives its referent.
    fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "java.lang.ref.SoftReference" => Self::Soft,
            "java.lang.ref.WeakReference" => Self::Weak,
            "java.lang.ref.PhantomReference" => Self::Phantom,
            "java.lang.ref.FinalReference" | "java.lang.ref.FinalizerReference" => Self::Finalizer,
            _ => return None,
        })
    }
}

/// Class that declares the referent.
const REFERENCE: &str = "java.lang.ref.Reference";

/// Returns whether a reference is the referent of a Reference.
pub fn is_referent(meaning: &ReferenceKind<'_>) -> bool {
    matches!(meaning, ReferenceKind::Field { name: "referent", class: REFERENCE })
}

/// Excluded references, by strength, and excluded roots, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exclusions {
    strengths: u8,
    /// One bit per element of [`RootKind::ALL`].
    roots: u16,
}

impl Exclusions {
    /// Excludes nothing.
    pub const NONE: Self = Self { strengths: 0, roots: 0 };

    /// Excludes references of these strengths, but never strong ones.
    pub fn from_strengths(strengths: impl IntoIterator<Item = Strength>) -> Self {
        let strengths = strengths.into_iter().fold(0, |bits, strength| bits | Self::bit(strength));
        Self { strengths, roots: 0 }
    }

    /// Excludes all references that are not strong.
    pub fn all_but_strong() -> Self {
        Self::from_strengths(Strength::EXCLUDABLE)
    }

    /// Adds roots of these kinds to the exclusions.
    pub fn without_roots(self, kinds: impl IntoIterator<Item = RootKind>) -> Self {
        Self { roots: kinds.into_iter().fold(self.roots, |bits, kind| bits | Self::root_bit(kind)), ..self }
    }

    /// Keeps the excluded roots, but follows all references.
    pub fn following_all(self) -> Self {
        Self { strengths: 0, ..self }
    }

    fn bit(strength: Strength) -> u8 {
        match strength {
            Strength::Strong => 0,
            Strength::Soft => 1,
            Strength::Weak => 2,
            Strength::Phantom => 4,
            Strength::Finalizer => 8,
        }
    }

    fn root_bit(kind: RootKind) -> u16 {
        let mut bits = (0..16).map(|place| 1 << place).zip(RootKind::ALL);
        bits.find(|(_, other)| *other == kind).map_or(0, |(bit, _)| bit)
    }

    /// Returns whether references of this strength are excluded.
    pub fn contains(self, strength: Strength) -> bool {
        self.strengths & Self::bit(strength) != 0
    }

    /// Returns whether roots of this kind are excluded.
    pub fn contains_root(self, kind: RootKind) -> bool {
        self.roots & Self::root_bit(kind) != 0
    }

    /// Returns whether no reference is excluded.
    pub fn follows_all(self) -> bool {
        self.strengths == 0
    }
}

/// Strength with which the instances of each class hold their referent.
#[derive(Debug)]
pub struct Strengths {
    by_class: Vec<Strength>,
}

impl Strengths {
    /// Determines the strengths of all classes.
    pub fn new(summary: &Summary) -> Self {
        let classes = summary.classes();
        let own: Vec<Option<Strength>> =
            classes.iter().map(|class| Strength::of_name(summary.class_name(class))).collect();
        let inherited = summary.class_table().inherit(&own);
        Self { by_class: inherited.into_iter().map(|known| known.unwrap_or(Strength::Strong)).collect() }
    }

    /// Returns the strength with which instances of a class hold their referent; strong if they have none.
    pub fn of_class(&self, class: ClassNumber) -> Strength {
        self.by_class.get(class.0 as usize).copied().unwrap_or(Strength::Strong)
    }

    /// Returns the strength with which an object holds its referent.
    pub fn of_object(&self, graph: &ObjectGraph, object: ObjectIndex) -> Strength {
        graph.objects.class(object).map_or(Strength::Strong, |class| self.of_class(class))
    }
}
