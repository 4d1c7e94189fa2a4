//! Whether class loaders are closed, by their own fields: then nothing should refer to them any more.

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::objects::fields::{Bits, FieldPlace};
use hprof_values::BasicType;

use crate::objects::reader::ObjectReader;

/// Constants of a container's states from which an application does not come back.
const CLOSED: [&str; 5] = ["STOPPING", "STOPPED", "DESTROYING", "DESTROYED", "FAILED"];
const RUNNING: [&str; 2] = ["STARTING", "STARTED"];
/// Maximum number of characters of a constant.
const MAX_NAME: usize = 32;

/// State of a class loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoaderState {
    /// It has been closed, or its application has been stopped.
    Closed,
    /// Its application runs.
    Running,
    /// Its fields do not say.
    Unknown,
}

/// Places of a field, by class number.
type FieldPlaces = Vec<Option<FieldPlace>>;

/// Reader of the states of class loaders.
pub(super) struct LoaderStates<'o, 'a> {
    objects: &'o ObjectReader<'a>,
    /// The state that a container's loader has, and the name of an enum's constant.
    constant: FieldPlaces,
    name: FieldPlaces,
    /// The path of a `java.net.URLClassLoader`, and whether that is closed.
    path: FieldPlaces,
    closed: FieldPlaces,
}

impl<'o, 'a> LoaderStates<'o, 'a> {
    pub(super) fn new(objects: &'o ObjectReader<'a>) -> Self {
        let [constant, name, path, closed] =
            ["state", "name", "ucp", "closed"].map(|field| objects.places(field));
        Self { objects, constant, name, path, closed }
    }

    /// Returns the state of a loader: that of its container, or else whether it was closed.
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
