//! States of class loaders, read from their fields. Nothing should refer to a closed loader any more.

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::objects::fields::{Bits, FieldPlace};
use hprof_values::BasicType;

use crate::objects::reader::ObjectReader;

/// Constants for the final states of a container: its application does not run again.
const CLOSED: [&str; 5] = ["STOPPING", "STOPPED", "DESTROYING", "DESTROYED", "FAILED"];
const RUNNING: [&str; 2] = ["STARTING", "STARTED"];
/// Maximum number of characters of a constant.
const MAX_NAME: usize = 32;

/// State of a class loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoaderState {
    /// The loader was closed, or its application was stopped.
    Closed,
    /// The application is running.
    Running,
    /// The fields do not contain the state.
    Unknown,
}

/// Location of a field, by class number.
type FieldPlaces = Vec<Option<FieldPlace>>;

/// Reader of the states of class loaders.
pub(super) struct LoaderStates<'o, 'a> {
    objects: &'o ObjectReader<'a>,
    /// Location of the field `state` of a container's loader.
    constant: FieldPlaces,
    /// Location of the field `name` of an enum constant.
    name: FieldPlaces,
    /// Location of the field `ucp` of a `java.net.URLClassLoader`.
    path: FieldPlaces,
    /// Location of the field `closed` of the object in `ucp`.
    closed: FieldPlaces,
}

impl<'o, 'a> LoaderStates<'o, 'a> {
    pub(super) fn new(objects: &'o ObjectReader<'a>) -> Self {
        let [constant, name, path, closed] =
            ["state", "name", "ucp", "closed"].map(|field| objects.places(field));
        Self { objects, constant, name, path, closed }
    }

    /// Returns the state of a loader: the state of its container, or else whether it was closed.
    pub(super) fn state(&self, loader: ObjectIndex) -> LoaderState {
        let object = |from, places| self.objects.object(self.value(from, places)?);
        let constant = object(loader, &self.constant).and_then(|state| object(state, &self.name));
        let name = constant.and_then(|name| Some(self.objects.string(name)?.text(MAX_NAME)));
        if let Some(name) = name {
            if CLOSED.contains(&name.as_str()) {
                return LoaderState::Closed;
            }
            if RUNNING.contains(&name.as_str()) {
                return LoaderState::Running;
            }
        }
        match object(loader, &self.path).and_then(|path| self.value(path, &self.closed)) {
            Some(closed) if closed.kind == BasicType::Boolean && closed.bits != 0 => LoaderState::Closed,
            _ => LoaderState::Unknown,
        }
    }

    fn value(&self, object: ObjectIndex, places: &FieldPlaces) -> Option<Bits> {
        let class = self.objects.graph.objects.class(object)?;
        let place = (*places.get(class.0 as usize)?)?;
        self.objects.value_at(self.objects.instance(object)?, place)
    }
}
