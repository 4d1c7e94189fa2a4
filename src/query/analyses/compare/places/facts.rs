//! Facts about the places of one dump.

use std::sync::Arc;

use hprof_base::dictionary::{names, nulls};
use hprof_base::fact::Fact;
use hprof_base::share::hundredths;
use hprof_values::ObjectId;

use super::{AlignedPlaces, PlaceFigures};

/// Row of a place of one dump.
#[derive(Debug, Clone)]
pub struct PlaceEntry {
    /// Depth, from 1 at the top.
    pub depth: u64,
    /// Class of the objects; for class objects, the represented class. `None` if the class is not in the dump.
    pub class: Option<Arc<str>>,
    /// `true` if the objects are class objects.
    pub is_class_object: bool,
    /// Figures of the objects at the place.
    pub figures: PlaceFigures,
    /// Bytes of all reachable objects of the dump.
    pub reachable_bytes: u64,
}

impl PlaceEntry {
    /// Creates the row of a place of the first dump.
    pub fn new(aligned: &AlignedPlaces, place: u32, depth: u64, reachable_bytes: u64) -> Self {
        let label = aligned.label(place);
        Self {
            depth,
            class: label.class.clone(),
            is_class_object: label.is_class_object,
            figures: aligned.figures(0, place),
            reachable_bytes,
        }
    }

    /// Returns the object at the place if there is only one.
    fn object(&self) -> Option<ObjectId> {
        (self.figures.objects == 1).then_some(self.figures.example).and_then(ObjectId::non_null)
    }

    /// Returns the facts about a place, without its name, which depends on the display of keys.
    pub fn facts() -> Vec<Fact<Self>> {
        vec![
            Fact::new(names::DEPTH, |place: &Self| place.depth.into()),
            Fact::new(names::OWN_BYTES, |place: &Self| place.figures.own_bytes.into()),
            Fact::new(names::RETAINED_BYTES, |place: &Self| place.figures.retained_bytes.into()),
            Fact::new(names::RETAINED_PERCENT, |place: &Self| {
                hundredths(place.figures.retained_bytes, place.reachable_bytes).into()
            }),
            Fact::new(names::OBJECTS, |place: &Self| place.figures.objects.into()),
            Fact::new(names::CLASS, |place: &Self| place.class.as_deref().into())
                .or_null(nulls::CLASS_MISSING),
            Fact::new(names::IS_CLASS_OBJECT, |place: &Self| place.is_class_object.into()),
            Fact::new(names::OBJECT, |place: &Self| place.object().into())
                .or_null("the place has several objects"),
            Fact::new(names::EXAMPLE_OBJECT, |place: &Self| place.figures.example.non_null().into())
                .or_null("the place has no objects"),
        ]
    }
}
