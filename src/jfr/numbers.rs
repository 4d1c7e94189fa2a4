//! Integers and keys of constants that are read together: one walk over a value instead of one for each field.

use crate::chunk::Chunk;
use crate::error::FlightError;
use crate::plan::{FieldEdge, Step};
use crate::reader::Reader;
use crate::values::{Array, Constant, FieldRead, Record};

/// A field to select, by its name: a key or an integer.
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
    /// Selected fields, in the order of the values.
    picks: Vec<Pick>,
    /// Steps after the last one.
    rest: Vec<Step>,
    /// Fields that are selected more than once: the slot that has the number, and another slot for the same number.
    copies: Vec<(usize, usize)>,
    /// Types of the constants.
    classes: [usize; N],
}

/// Cache of the numbers of array elements, by their bytes: most stacks share most of their frames.
#[derive(Debug, Default)]
pub struct ElementNumbers {
    /// Type of the elements.
    class: usize,
    /// Number of elements that were visited, up to [`WITHOUT_TABLE`].
    visited: usize,
    /// Bytes with numbers; empty at first.
    table: Vec<(u64, u32)>,
}

/// Number of elements that are visited before there is a table: a recording can have any number of small chunks.
const WITHOUT_TABLE: usize = 1 << 10;
/// Bits of the index in a table.
const TABLE_BITS: u32 = 13;
/// Maximum number of integers of an element that is looked up by its bytes.
const MAX_INTEGERS: u16 = 8;
/// Bytes of no element: integers end with a byte without the highest bit.
const NO_ELEMENT: u64 = u64::MAX;

impl ElementNumbers {
    /// Returns the table entry for the bytes of an element.
    #[inline]
    fn place(&mut self, bytes: u64) -> Option<&mut (u64, u32)> {
        let at = bytes.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - TABLE_BITS);
        self.table.get_mut(usize::try_from(at).ok()?)
    }

    /// Prepares for an array.
    fn begin(&mut self, class: usize, count: usize) {
        if self.class != class {
            *self = Self { class, ..Self::default() };
        }
        self.visited = self.visited.saturating_add(count).min(WITHOUT_TABLE);
        if self.visited == WITHOUT_TABLE && self.table.is_empty() {
            self.table = vec![(NO_ELEMENT, 0); 1 << TABLE_BITS];
        }
    }
}

/// A selected field.
#[derive(Debug, Clone)]
struct Pick {
    /// Steps from the previous selected field.
    gap: Vec<Step>,
    read: FieldRead,
    /// Index among the selected fields.
    slot: usize,
}

impl Chunk<'_> {
    /// Selects fields of a type. If one does not exist or has another type, its number is `None` for all values.
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
    /// Returns the index of the type.
    pub fn class_index(&self) -> usize {
        self.class
    }

    /// Returns the constant of a key that was read from the selected field `slot`.
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
            match &*pick.gap {
                [] => {}
                // Most are one or two, which a loop over bytes would only delay.
                [Step::Variables(count @ 1..=4)] => {
                    for _ in 0..*count {
                        reader.skip_variable()?;
                    }
                }
                gap => chunk.plans.skip_steps(gap, reader, 0)?,
            }
            let number = pick.read.number(reader)?;
            if let Some(place) = numbers.get_mut(pick.slot) {
                *place = Some(number);
            }
        }
        Ok(())
    }

    /// Reads the numbers of a value, and skips the rest of it.
    #[inline]
    fn element(&self, chunk: &Chunk<'_>, reader: &mut Reader<'_>) -> Result<[Option<i64>; N], FlightError> {
        let mut numbers = [None; N];
        self.read(chunk, reader, &mut numbers)?;
        if !self.rest.is_empty() {
            chunk.plans.skip_steps(&self.rest, reader, 0)?;
        }
        self.copy(&mut numbers);
        Ok(numbers)
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
    /// that comes after damage. A value of another type has none.
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
    /// Selects fields of the type of the elements, like [`Chunk::numbers`].
    pub fn fields<const N: usize>(&self, fields: [NumberField<'_>; N]) -> NumberFields<N> {
        self.place.chunk.numbers(self.place.class, fields)
    }

    /// Visits a number for each of the first elements, at most `count`, like [`Array::for_each_element`]: the result of
    /// `number`
    /// for the numbers in the selected fields. `number` is not called again for most elements with equal bytes.
    pub fn each_numbered<const N: usize>(
        &self,
        fields: &NumberFields<N>,
        count: usize,
        known: &mut ElementNumbers,
        mut number: impl FnMut([Option<i64>; N]) -> u32,
        mut visit: impl FnMut(u32),
    ) {
        let chunk = self.place.chunk;
        let integers = chunk.plans.integers(self.place.class).filter(|integers| *integers <= MAX_INTEGERS);
        let Some(integers) = integers.filter(|_| self.has_fields() && fields.class == self.place.class)
        else {
            return self.for_each_element(fields, count, |numbers| visit(number(numbers)));
        };
        let mut reader = self.place.reader();
        let count = self.len().min(count);
        known.begin(self.place.class, count);
        for _ in 0..count {
            let bytes = reader.short_variables(integers);
            if let Some((bytes, length)) = bytes
                && let Some((_, number)) = known.place(bytes).filter(|(known, _)| *known == bytes)
            {
                visit(*number);
                reader = reader.at(reader.position() + length);
                continue;
            }
            let Ok(numbers) = fields.element(chunk, &mut reader) else { return };
            let number = number(numbers);
            visit(number);
            if let Some((bytes, _)) = bytes
                && let Some(place) = known.place(bytes)
            {
                *place = (bytes, number);
            }
        }
    }

    /// Visits the numbers in the selected fields of the first elements, at most `count`, up to the first that is damaged.
    /// Elements without fields are skipped, and so are keys of constants: the JVM writes the frames of stacks inline, and each
    /// of many keys could refer to one long value.
    pub fn for_each_element<const N: usize>(
        &self,
        fields: &NumberFields<N>,
        count: usize,
        mut visit: impl FnMut([Option<i64>; N]),
    ) {
        if !self.has_fields() || fields.class != self.place.class {
            return;
        }
        let (chunk, mut reader) = (self.place.chunk, self.place.reader());
        for _ in 0..self.len().min(count) {
            let Ok(numbers) = fields.element(chunk, &mut reader) else { return };
            visit(numbers);
        }
    }
}
