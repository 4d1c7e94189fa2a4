//! Steps that skip the values of each type, as flat lists.

use crate::error::{FlightError, FlightErrorKind};
use crate::metadata::{MAX_DEPTH, Metadata};
use crate::reader::Reader;

/// Maximum number of steps of a type: types of the JVM have at most 60.
const MAX_STEPS: usize = 4096;
/// Maximum number of steps of all types together.
const MAX_ALL_STEPS: usize = 1 << 20;
/// Maximum number of steps of all types together, as a multiple of the number of fields: values can be nested, so that each
/// type has twice as many steps as the one in it. Types of a JVM have about as many steps as fields.
const STEPS_OF_FIELD: usize = 16;

/// Primitive type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Primitive {
    /// One byte: a `boolean` or `byte`.
    Byte,
    Short,
    Char,
    Int,
    Long,
    Float,
    Double,
    Text,
}

impl Primitive {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "boolean" | "byte" => Self::Byte,
            "short" => Self::Short,
            "char" => Self::Char,
            "int" => Self::Int,
            "long" => Self::Long,
            "float" => Self::Float,
            "double" => Self::Double,
            "java.lang.String" => Self::Text,
            _ => return None,
        })
    }

    fn step(self, compressed: bool) -> Step {
        match self {
            Self::Byte => Step::Bytes(1),
            Self::Float => Step::Bytes(4),
            Self::Double => Step::Bytes(8),
            Self::Text => Step::Text,
            Self::Short | Self::Char | Self::Int | Self::Long if compressed => Step::Variable,
            Self::Short | Self::Char => Step::Bytes(2),
            Self::Int => Step::Bytes(4),
            Self::Long => Step::Bytes(8),
        }
    }
}

/// A step that skips a value or several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Bytes of fixed length.
    Bytes(u8),
    /// An integer of variable length.
    Variable,
    /// Integers of variable length, one after the other.
    Variables(u16),
    Text,
    /// An array of keys of constants.
    Keys,
    /// An array of values of this type.
    Array(u32),
}

/// Steps over the values of all types.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    of_class: Vec<ClassPlan>,
    compressed: bool,
}

/// Steps over the values of one type.
#[derive(Debug, Clone, Default)]
struct ClassPlan {
    primitive: Option<Primitive>,
    /// Steps over a value, if the type can be read.
    steps: Option<Vec<Step>>,
    /// The same steps, with integers of variable length joined.
    joined: Vec<Step>,
    /// Number of steps before each field.
    fields: Vec<usize>,
}

/// Returns the steps of all types.
pub(crate) fn plans(metadata: &Metadata, compressed: bool) -> Plans {
    let fields: usize = metadata.classes.iter().map(|class| class.fields.len()).sum();
    let mut flattening = Flattening {
        metadata,
        compressed,
        max_steps: (MAX_STEPS + STEPS_OF_FIELD * fields).min(MAX_ALL_STEPS),
        plans: vec![ClassPlan::default(); metadata.classes.len()],
        states: vec![State::New; metadata.classes.len()],
        steps: 0,
    };
    for class in 0..metadata.classes.len() {
        flattening.flatten(class, 0);
    }
    for plan in &mut flattening.plans {
        plan.joined = join_variables(plan.steps.iter().flatten().copied());
    }
    Plans { of_class: flattening.plans, compressed }
}

/// Joins steps over integers of variable length.
fn join_variables(steps: impl IntoIterator<Item = Step>) -> Vec<Step> {
    let mut joined: Vec<Step> = Vec::new();
    for step in steps {
        match (step, joined.last_mut()) {
            (Step::Variable, Some(Step::Variables(count))) if *count < u16::MAX => *count += 1,
            (Step::Variable, _) => joined.push(Step::Variables(1)),
            (step, _) => joined.push(step),
        }
    }
    joined.shrink_to_fit();
    joined
}

/// State of a type whose steps are computed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Begun,
    Done,
}

/// Computation of the steps of all types.
struct Flattening<'m> {
    metadata: &'m Metadata,
    compressed: bool,
    max_steps: usize,
    plans: Vec<ClassPlan>,
    states: Vec<State>,
    /// Number of steps so far, including types that have too many.
    steps: usize,
}

impl Flattening<'_> {
    /// Finds the steps of a type, unless it contains itself or is nested too deeply.
    fn flatten(&mut self, index: usize, depth: usize) {
        let Some(class) = self.metadata.classes.get(index) else { return };
        let is_new = self.states.get(index) == Some(&State::New);
        if depth > MAX_DEPTH || self.steps > self.max_steps || !is_new {
            return;
        }
        self.set(index, State::Begun);
        let mut plan = ClassPlan { primitive: Primitive::from_name(&class.name), ..ClassPlan::default() };
        // Fields without steps take time, too.
        let mut steps = (class.fields.len() <= MAX_STEPS).then(Vec::<Step>::new);
        if let (Some(primitive), Some(steps)) = (plan.primitive, &mut steps) {
            steps.push(primitive.step(self.compressed));
        }
        for field in class.fields.iter().filter(|_| plan.primitive.is_none()) {
            // A type that cannot be read takes no more time.
            let Some(before) = &steps else { break };
            plan.fields.push(before.len());
            let kind = self.metadata.index_of(field.type_id);
            let key = if self.compressed { Step::Variable } else { Step::Bytes(8) };
            let added = match (field.is_constant, field.is_array, kind) {
                (true, true, _) => Some(vec![Step::Keys]),
                (true, false, _) => Some(vec![key]),
                (false, true, kind) => kind.and_then(|kind| Some(vec![Step::Array(kind.try_into().ok()?)])),
                (false, false, kind) => kind.and_then(|kind| {
                    self.flatten(kind, depth + 1);
                    let is_done = self.states.get(kind) == Some(&State::Done);
                    self.plans.get(kind).filter(|_| is_done)?.steps.clone()
                }),
            };
            self.steps += added.as_ref().map_or(0, Vec::len);
            match (&mut steps, added) {
                (Some(steps), Some(added)) if steps.len() + added.len() <= MAX_STEPS => steps.extend(added),
                _ => steps = None,
            }
        }
        plan.steps = steps.filter(|_| self.steps <= self.max_steps);
        if let Some(place) = self.plans.get_mut(index) {
            *place = plan;
        }
        self.set(index, State::Done);
    }

    fn set(&mut self, index: usize, state: State) {
        if let Some(place) = self.states.get_mut(index) {
            *place = state;
        }
    }
}

impl Plans {
    /// Returns the primitive type with this index, if it is one.
    #[inline]
    pub(crate) fn primitive(&self, class: usize) -> Option<Primitive> {
        self.of_class.get(class)?.primitive
    }

    /// Returns whether values of a type can be read.
    #[inline]
    pub(crate) fn is_readable(&self, class: usize) -> bool {
        self.of_class.get(class).is_some_and(|plan| plan.steps.is_some())
    }

    /// Returns whether values of a type have no bytes, or cannot be read.
    pub(crate) fn is_empty(&self, class: usize) -> bool {
        self.of_class.get(class).and_then(|plan| plan.steps.as_ref()).is_none_or(Vec::is_empty)
    }

    /// Returns the number of steps of all types.
    #[cfg(test)]
    pub(crate) fn step_count(&self) -> usize {
        self.of_class.iter().flat_map(|plan| &plan.steps).map(Vec::len).sum()
    }

    /// Returns the number of integers of variable length in a value; `None` if it contains anything else.
    pub(crate) fn integers(&self, class: usize) -> Option<u16> {
        match self.of_class.get(class).map(|plan| &*plan.joined)? {
            [Step::Variables(integers)] => Some(*integers),
            _ => None,
        }
    }

    /// Skips a value of a type.
    pub(crate) fn skip(&self, class: usize, reader: &mut Reader<'_>) -> Result<(), FlightError> {
        self.skip_at(class, reader, 0)
    }

    /// Skips all fields before this one.
    pub(crate) fn skip_to(
        &self,
        class: usize,
        field: usize,
        reader: &mut Reader<'_>,
    ) -> Result<(), FlightError> {
        let Some(steps) = self.steps(class) else { return Err(reader.error(FlightErrorKind::TooDeep)) };
        let end = self.start_of(class, field).unwrap_or(0);
        self.skip_steps(steps.get(..end).unwrap_or(steps), reader, 0)
    }

    /// Returns the steps over the values from the start or the end of a field up to the start of another one, or up to
    /// the end; `None` if the type cannot be read.
    pub(crate) fn between(&self, class: usize, from: FieldEdge, to: FieldEdge) -> Option<Vec<Step>> {
        let steps = self.steps(class)?;
        let at = |edge| match edge {
            FieldEdge::Start(field) => self.start_of(class, field),
            // The next field starts there.
            FieldEdge::End(field) => Some(self.start_of(class, field + 1).unwrap_or(steps.len())),
            FieldEdge::OfAll => Some(steps.len()),
        };
        Some(join_variables(steps.get(at(from)?..at(to)?)?.iter().copied()))
    }

    fn steps(&self, class: usize) -> Option<&[Step]> {
        self.of_class.get(class)?.steps.as_deref()
    }

    /// Returns the number of steps before a field.
    fn start_of(&self, class: usize, field: usize) -> Option<usize> {
        self.of_class.get(class)?.fields.get(field).copied()
    }

    fn skip_at(&self, class: usize, reader: &mut Reader<'_>, depth: usize) -> Result<(), FlightError> {
        match self.of_class.get(class).filter(|plan| plan.steps.is_some()) {
            Some(plan) => self.skip_steps(&plan.joined, reader, depth),
            None => Err(reader.error(FlightErrorKind::TooDeep)),
        }
    }

    /// Skips the values of these steps.
    pub(crate) fn skip_steps(
        &self,
        steps: &[Step],
        reader: &mut Reader<'_>,
        depth: usize,
    ) -> Result<(), FlightError> {
        for step in steps {
            match step {
                Step::Bytes(length) => _ = reader.take(usize::from(*length))?,
                Step::Variable => reader.skip_variable()?,
                Step::Variables(count) => reader.skip_variables(usize::from(*count))?,
                Step::Text => _ = reader.text()?,
                Step::Keys => {
                    let count = reader.count()?;
                    if self.compressed {
                        reader.skip_variables(count)?;
                    } else {
                        for _ in 0..count {
                            reader.long()?;
                        }
                    }
                }
                Step::Array(element) => self.skip_array(*element as usize, reader, depth)?,
            }
        }
        Ok(())
    }

    fn skip_array(&self, element: usize, reader: &mut Reader<'_>, depth: usize) -> Result<(), FlightError> {
        if depth >= MAX_DEPTH {
            return Err(reader.error(FlightErrorKind::TooDeep));
        }
        // A hostile file could state that an array has millions of elements without fields.
        let stated = reader.count()?;
        let count = if self.is_empty(element) { 0 } else { stated };
        // Frames of stacks, most of the bytes of constants, have integers only.
        if let Some(of_each) = self.integers(element) {
            return reader.skip_variables(count.saturating_mul(usize::from(of_each)));
        }
        for _ in 0..count {
            self.skip_at(element, reader, depth + 1)?;
        }
        Ok(())
    }
}

/// Start or end of a field among the steps of its type.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FieldEdge {
    Start(usize),
    End(usize),
    /// End of all fields.
    OfAll,
}
