//! Integers and keys of constants that are read together: one walk over a value instead of one for each field.

use crate::chunk::Chunk;
use crate::error::FlightError;
use crate::plan::{FieldEdge, Step};
use crate::reader::Reader;
use crate::values::{Array, Constant, FieldRead, Record};

/// A field, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberField<'n> {
    /// Key of a constant.
    Key(&'n str),
    /// Integer.
    Integer(&'n str),
}

/// Fields of a type of a chunk that are integers or keys ([`Chunk::numbers`]).
#[derive(Debug, Clone)]
pub struct NumberFields<const N: usize> {
    class: usize,
    /// Ascending by field.
    picks: Vec<Pick>,
    /// Steps after the last one.
    rest: Vec<Step>,
    /// Fields that are selected again: where the number is, and where it belongs as well.
    copies: Vec<(usize, usize)>,
    /// Types of the constants.
    classes: [usize; N],
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
    /// Selects fields of a type. Of one that does not exist, or is of another kind, no number is found in any value.
    pub fn numbers<const N: usize>(&self, class: usize, fields: [NumberField<'_>; N]) -> NumberFields<N> {
        let of = self.metadata.classes.get(class);
        let wanted = |(slot, wanted)| {
            let (name, is_key) = match wanted {
                NumberField::Key(name) => (name, true),
                NumberField::Integer(name) => (name, false),
            };
            let field = of?.field(name)?;
            let read = self.field_read(class, field)?;
            let is_wanted = if is_key { read.is_key() } else { read.is_integer() };
            is_wanted.then_some((field, slot, read))
        };
        let mut wanted: Vec<_> = fields.into_iter().enumerate().filter_map(wanted).collect();
        wanted.sort_unstable_by_key(|(field, slot, _)| (*field, *slot));
        let (mut picks, mut copies, mut classes) = (Vec::<Pick>::new(), Vec::new(), [usize::MAX; N]);
        let mut at = FieldEdge::Start(0);
        let mut last = None;
        for (field, slot, read) in wanted {
            if let Some(of_slot) = classes.get_mut(slot) {
                *of_slot = read.class();
            }
            if let Some(known) = picks.last().filter(|_| last == Some(field)) {
                copies.push((known.slot, slot));
                continue;
            }
            let Some(gap) = self.plans.between(class, at, FieldEdge::Start(field)) else { break };
            (at, last) = (FieldEdge::End(field), Some(field));
            picks.push(Pick { gap, read, slot });
        }
        let rest = self.plans.between(class, at, FieldEdge::OfAll).unwrap_or_default();
        NumberFields { class, picks, rest, copies, classes }
    }
}

impl<const N: usize> NumberFields<N> {
    /// Returns the constant of a key in this place.
    pub fn constant<'c>(&self, chunk: &'c Chunk<'c>, slot: usize, key: Option<i64>) -> Option<Constant<'c>> {
        Some(Constant::new(chunk, *self.classes.get(slot)?, key?))
    }

    /// Reads numbers until one is damaged.
    #[inline]
    fn read(
        &self,
        chunk: &Chunk<'_>,
        reader: &mut Reader<'_>,
        numbers: &mut [Option<i64>; N],
    ) -> Result<(), FlightError> {
        for pick in &self.picks {
            if !pick.gap.is_empty() {
                chunk.plans.skip_steps(&pick.gap, reader, 0)?;
            }
            let number = pick.read.number(reader)?;
            if let Some(place) = numbers.get_mut(pick.slot) {
                *place = Some(number);
            }
        }
        Ok(())
    }

    #[inline]
    fn copy(&self, numbers: &mut [Option<i64>; N]) {
        for (from, to) in &self.copies {
            let number = numbers.get(*from).copied().flatten();
            if let Some(place) = numbers.get_mut(*to) {
                *place = number;
            }
        }
    }
}

impl<'c> Record<'c> {
    /// Returns the numbers in the selected fields, each as [`Record::value`] returns it; `None` for one that is damaged, or
    /// that comes after damage. In a value of another type there are none.
    #[inline]
    pub fn numbers<const N: usize>(&self, fields: &NumberFields<N>) -> [Option<i64>; N] {
        let mut numbers = [None; N];
        if fields.class == self.place.class {
            let _damage = fields.read(self.place.chunk, &mut self.place.reader(), &mut numbers);
            fields.copy(&mut numbers);
        }
        numbers
    }
}

impl<'c> Array<'c> {
    /// Selects fields of the type of its elements, as [`Chunk::numbers`].
    pub fn fields<const N: usize>(&self, fields: [NumberField<'_>; N]) -> NumberFields<N> {
        self.place.chunk.numbers(self.place.class, fields)
    }

    /// Visits the numbers in the selected fields of the first elements, at most `count`, up to the first that is damaged.
    /// Elements that have no fields are left out.
    pub fn each<const N: usize>(
        &self,
        fields: &NumberFields<N>,
        count: usize,
        mut visit: impl FnMut([Option<i64>; N]),
    ) {
        if !self.has_fields() {
            return self.records().take(count).for_each(|record| visit(record.numbers(fields)));
        }
        if fields.class != self.place.class {
            return;
        }
        let (chunk, mut reader) = (self.place.chunk, self.place.reader());
        for _ in 0..self.len().min(count) {
            let mut numbers = [None; N];
            let mut element = || {
                fields.read(chunk, &mut reader, &mut numbers)?;
                if fields.rest.is_empty() {
                    Ok(())
                } else {
                    chunk.plans.skip_steps(&fields.rest, &mut reader, 0)
                }
            };
            if element().is_err() {
                return;
            }
            fields.copy(&mut numbers);
            visit(numbers);
        }
    }
}
