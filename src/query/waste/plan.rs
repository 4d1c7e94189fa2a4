//! What is looked for in the instances of each class.

use rustc_hash::FxHashMap;

use super::Search;
use super::boxes::Boxed;
use crate::hprof::names;
use crate::index::model::summary::{ClassNumber, Summary};
use crate::index::model::tables::ClassKind;
use crate::index::objects::fields::slots;
use crate::index::objects::strings::StringFields;
use crate::query::objects::collections::Forms;
use crate::query::objects::collections::usage::Usage;
use crate::query::objects::reader::Place;
use crate::query::strings::STRING;

/// Instances that a field is compared in, at least.
pub(super) const MIN_INSTANCES: u64 = 100;
/// Fields of a class, with those of its superclasses, that are compared.
const MAX_FIELDS: usize = 1 << 10;

/// What is looked for in the instances of a class.
#[derive(Debug)]
pub(super) enum Plan {
    Nothing,
    String(StringFields),
    Boxed(Boxed),
    Buffer(Buffer),
    Collection(Usage),
    /// A class of the program: the fields that are compared, and their numbers in [`Plans::fields`].
    Program(Vec<(Place, u32)>),
}

/// A class that says how much of its array is used.
#[derive(Debug, Clone, Copy)]
pub(super) struct Buffer {
    pub(super) array: Place,
    pub(super) used: Place,
    /// How many bytes an element that is counted takes, as a power of two.
    pub(super) coder: Option<Place>,
    /// The class that declares it so.
    pub(super) class: ClassNumber,
}

/// A field that is compared in all instances.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compared {
    /// The class that declares it.
    pub(super) class: ClassNumber,
    /// Its number among the fields of that class.
    pub(super) number: u32,
    /// Instances of that class and its subclasses.
    pub(super) instances: u64,
}

/// Plans for all classes.
#[derive(Debug)]
pub(super) struct Plans {
    /// By class number.
    pub(super) of_class: Vec<Plan>,
    /// By class number: whether there is a plan.
    pub(super) has_plan: Vec<bool>,
    /// The fields that are compared.
    pub(super) fields: Vec<Compared>,
}

impl Plans {
    pub(super) fn of(&self, class: Option<ClassNumber>) -> &Plan {
        class.and_then(|class| self.of_class.get(class.0 as usize)).unwrap_or(&Plan::Nothing)
    }
}

/// Buffers: class, array, how much of it is used.
const BUFFERS: &[(&str, &str, &str)] = &[
    ("java.lang.AbstractStringBuilder", "value", "count"),
    ("java.io.ByteArrayOutputStream", "buf", "count"),
    ("java.io.CharArrayWriter", "buf", "count"),
    ("java.io.BufferedInputStream", "buf", "count"),
    ("java.io.BufferedOutputStream", "buf", "count"),
    ("java.io.BufferedReader", "cb", "nChars"),
    ("java.io.BufferedWriter", "cb", "nextChar"),
    ("java.util.BitSet", "words", "wordsInUse"),
];

/// Plans what is looked for.
pub(super) fn plans(search: &Search<'_>) -> Plans {
    let summary = search.summary;
    let usages = Forms::new(&search.objects).usages(summary);
    let buffers = buffers(summary);
    let mut fields = Vec::new();
    let compared = compared(summary, &mut fields);
    let of_class = |(number, row): (ClassNumber, &_)| {
        let at = number.0 as usize;
        let name = summary.class_name(row);
        if row.kind() != ClassKind::Instance {
            return Plan::Nothing;
        }
        if name == STRING {
            return StringFields::of(summary, number).map_or(Plan::Nothing, Plan::String);
        }
        if let Some(boxed) = Boxed::of(search, number) {
            return Plan::Boxed(boxed);
        }
        if let Some(usage) = usages.get(at).copied().flatten() {
            return Plan::Collection(usage);
        }
        if let Some(buffer) =
            buffers.get(at).copied().flatten().and_then(|class| buffer(summary, number, class))
        {
            return Plan::Buffer(buffer);
        }
        let places: Vec<(Place, u32)> = slots(summary, number)
            .take(MAX_FIELDS)
            .scan((ClassNumber(u32::MAX), 0u32), |(class, next), slot| {
                (*class, *next) = if *class == slot.class { (*class, *next + 1) } else { (slot.class, 0) };
                Some((slot, *next))
            })
            .filter_map(|(slot, at)| Some((slot.place, *compared.get(&(slot.class, at))?)))
            .collect();
        if places.is_empty() { Plan::Nothing } else { Plan::Program(places) }
    };
    let of_class: Vec<Plan> = summary.numbered_classes().map(of_class).collect();
    let has_plan = of_class.iter().map(|plan| !matches!(plan, Plan::Nothing)).collect();
    Plans { of_class, has_plan, fields }
}

/// By class number: the class of [`BUFFERS`] that it is, or extends.
fn buffers(summary: &Summary) -> Vec<Option<(ClassNumber, usize)>> {
    let of_name = |(number, row)| {
        let name = summary.class_name(row);
        Some((number, BUFFERS.iter().position(|(class, ..)| *class == name)?))
    };
    let own: Vec<Option<(ClassNumber, usize)>> = summary.numbered_classes().map(of_name).collect();
    summary.class_table().inherit(&own)
}

fn buffer(summary: &Summary, class: ClassNumber, (declares, at): (ClassNumber, usize)) -> Option<Buffer> {
    let (_, array, used) = BUFFERS.get(at)?;
    let place = |field: &str| {
        let mut slots = slots(summary, class).take(MAX_FIELDS);
        slots.find(|slot| slot.name == field && slot.class == declares).map(|slot| slot.place)
    };
    Some(Buffer { array: place(array)?, used: place(used)?, coder: place("coder"), class: declares })
}

/// The fields that classes outside the JDK declare and that enough instances have: by class and number, the number in
/// `fields`.
fn compared(summary: &Summary, fields: &mut Vec<Compared>) -> FxHashMap<(ClassNumber, u32), u32> {
    let own = summary.classes().iter().map(|row| match row.kind() {
        ClassKind::Instance => row.objects.get(),
        _ => 0,
    });
    let totals = summary.class_table().totals(own.collect());
    let mut compared = FxHashMap::default();
    for ((class, row), instances) in summary.numbered_classes().zip(totals) {
        if instances < MIN_INSTANCES || names::is_of_jdk(summary.class_name(row)) {
            continue;
        }
        for (number, _) in (0u32..).zip(summary.raw_fields(row)).take(MAX_FIELDS) {
            // There are fewer fields than bytes of a dump that 32 bits number.
            let Ok(next) = u32::try_from(fields.len()) else { return compared };
            compared.insert((class, number), next);
            fields.push(Compared { class, number, instances });
        }
    }
    compared
}
