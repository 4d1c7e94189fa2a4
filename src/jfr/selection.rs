//! Fields of a type that are read together: one walk over a value instead of one for each field.

use crate::chunk::Chunk;
use crate::error::FlightError;
use crate::plan::{FieldEdge, Step};
use crate::reader::Reader;
use crate::values::{Array, FieldRead, Record, Value};

/// Fields of a type of a chunk ([`Chunk::select`]), for [`Record::values`] and [`Array::each`].
#[derive(Debug, Clone)]
pub struct Selection<const N: usize> {
    class: usize,
    /// Ascending by field.
    picks: Vec<Pick>,
    /// Steps after the last one.
    rest: Vec<Step>,
    /// Fields that are selected again: where the value is, and where it belongs as well.
    copies: Vec<(usize, usize)>,
}

/// A selected field.
#[derive(Debug, Clone)]
struct Pick {
    /// Steps from the one before.
    gap: Vec<Step>,
    read: FieldRead,
    /// Index among the selected fields.
    slot: usize,
}

impl Chunk<'_> {
    /// Selects fields of a type by their names. Those that it does not have are not found in any value.
    pub fn select<const N: usize>(&self, class: usize, names: [&str; N]) -> Selection<N> {
        let of = self.metadata.classes.get(class);
        let field = |(slot, name)| Some((of?.field(name)?, slot));
        let mut wanted: Vec<(usize, usize)> = names.into_iter().enumerate().filter_map(field).collect();
        wanted.sort_unstable();
        let mut selection = Selection { class, picks: Vec::new(), rest: Vec::new(), copies: Vec::new() };
        let mut at = FieldEdge::Start(0);
        let mut last: Option<(usize, usize)> = None;
        for (field, slot) in wanted {
            if let Some((_, known)) = last.filter(|(known, _)| *known == field) {
                selection.copies.push((known, slot));
                continue;
            }
            let gap = self.plans.between(class, at, FieldEdge::Start(field));
            let (Some(gap), Some(read)) = (gap, self.field_read(class, field)) else { break };
            at = if read.is_scalar() { FieldEdge::End(field) } else { FieldEdge::Start(field) };
            last = Some((field, slot));
            selection.picks.push(Pick { gap, read, slot });
        }
        selection.rest = self.plans.between(class, at, FieldEdge::OfAll).unwrap_or_default();
        selection
    }
}

impl<const N: usize> Selection<N> {
    /// Reads the fields, and the steps after them if there is an `end`. Returns what was found, and the error that ended it.
    fn read<'c>(
        &self,
        chunk: &'c Chunk<'c>,
        reader: &mut Reader<'c>,
        to_end: bool,
    ) -> ([Option<Value<'c>>; N], Result<(), FlightError>) {
        let mut values = [const { None }; N];
        let done = self.read_into(chunk, reader, &mut values).and_then(|()| match to_end {
            true => chunk.plans.skip_steps(&self.rest, reader, 0),
            false => Ok(()),
        });
        for (from, to) in &self.copies {
            let value = values.get(*from).cloned().flatten();
            if let Some(place) = values.get_mut(*to) {
                *place = value;
            }
        }
        (values, done)
    }

    fn read_into<'c>(
        &self,
        chunk: &'c Chunk<'c>,
        reader: &mut Reader<'c>,
        values: &mut [Option<Value<'c>>; N],
    ) -> Result<(), FlightError> {
        for pick in &self.picks {
            chunk.plans.skip_steps(&pick.gap, reader, 0)?;
            let value = if pick.read.is_scalar() {
                Some(pick.read.value(chunk, reader)?)
            } else {
                // What cannot be read can often be skipped, as a text that is not valid.
                pick.read.value(chunk, &mut { *reader }).ok()
            };
            if let Some(place) = values.get_mut(pick.slot) {
                *place = value;
            }
        }
        Ok(())
    }
}

impl<'c> Record<'c> {
    /// Selects fields of its type, as [`Chunk::select`].
    pub fn select<const N: usize>(&self, names: [&str; N]) -> Selection<N> {
        self.chunk().select(self.class_index(), names)
    }

    /// Returns the values of the selected fields, each as [`Record::value`] does; `None` for one that is damaged, or that
    /// comes after damage. Of another type than the selection's, there are none.
    pub fn values<const N: usize>(&self, selection: &Selection<N>) -> [Option<Value<'c>>; N] {
        if selection.class != self.class_index() {
            return [const { None }; N];
        }
        selection.read(self.chunk(), &mut self.reader(), false).0
    }
}

impl<'c> Array<'c> {
    /// Selects fields of the type of its elements, as [`Chunk::select`].
    pub fn select<const N: usize>(&self, names: [&str; N]) -> Selection<N> {
        self.chunk().select(self.class_index(), names)
    }

    /// Returns the values of the selected fields of each element, up to the first element that is damaged. Elements that
    /// have no fields are left out.
    pub fn each<'s, const N: usize>(
        &self,
        selection: &'s Selection<N>,
    ) -> impl Iterator<Item = [Option<Value<'c>>; N]> + use<'c, 's, N> {
        let (chunk, mut reader) = (self.chunk(), self.reader());
        let in_place = self.has_fields() && selection.class == self.class_index();
        let mut count = if in_place { self.len() } else { 0 };
        let in_place = std::iter::from_fn(move || {
            count = count.checked_sub(1)?;
            let (values, done) = selection.read(chunk, &mut reader, true);
            done.is_ok().then_some(values)
        });
        let keys = (!self.has_fields()).then(|| self.records().map(|record| record.values(selection)));
        in_place.fuse().chain(keys.into_iter().flatten())
    }
}
