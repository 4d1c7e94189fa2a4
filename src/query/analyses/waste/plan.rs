//! Plans of the pass over instances: the action for the instances of each class.

use super::WasteSearch;
use super::boxes::BoxClass;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::model::tables::ClassKind;
use hprof_index::objects::fields::slots;
use hprof_index::objects::strings::StringFields;
use hprof_model::objects::collections::usage::Usage;
use hprof_model::objects::reader::{Bits, FieldPlace};
use hprof_model::strings::STRING;
use hprof_values::names;

/// Minimum number of instances of a class whose fields are compared.
pub(super) const MIN_INSTANCES: u64 = 100;
/// Maximum number of fields of a class that are compared, including inherited ones.
const MAX_FIELDS: usize = 1 << 10;

/// Action for the instances of a class.
#[derive(Debug)]
pub(super) enum Plan {
    Nothing,
    String(StringFields),
    Boxed(BoxClass),
    Buffer(BufferClass),
    Collection(Usage),
}

/// A class that records how much of its array is used.
#[derive(Debug, Clone, Copy)]
pub(super) struct BufferClass {
    pub(super) array: FieldPlace,
    pub(super) used: FieldPlace,
    /// Field with the size of a counted element in bytes, as the exponent of a power of two.
    pub(super) coder: Option<FieldPlace>,
    /// Class that declares the fields.
    pub(super) class: ClassNumber,
}

/// A field that is compared in all instances.
#[derive(Debug, Clone, Copy)]
pub(super) struct ComparedField {
    /// Class that declares the field.
    pub(super) class: ClassNumber,
    /// Number of the field among the fields that the class declares.
    pub(super) number: u32,
    /// Number of instances of the class and its subclasses.
    pub(super) instances: u64,
}

/// Plans for all classes.
#[derive(Debug)]
pub(super) struct Plans {
    /// Action by class number.
    pub(super) of_class: Vec<Plan>,
    /// By class number: `true` if instances are read.
    pub(super) is_read: Vec<bool>,
    /// By class number: the compared fields that the class declares, with their location after the start of the class's fields,
    /// and their number in `fields`.
    own: Vec<Vec<(FieldPlace, u32)>>,
    /// By class number: `true` if the class or a superclass declares compared fields.
    has_compared: Vec<bool>,
    /// Compared fields of all classes.
    pub(super) fields: Vec<ComparedField>,
}

impl Plans {
    /// Returns the action for instances of a class.
    pub(super) fn plan_of(&self, class: Option<ClassNumber>) -> &Plan {
        class.and_then(|class| self.of_class.get(class.0 as usize)).unwrap_or(&Plan::Nothing)
    }

    /// Calls `visit` with number and value of each compared field of an instance.
    #[inline(always)]
    pub(super) fn for_each_compared(
        &self,
        summary: &Summary,
        class: ClassNumber,
        fields: &[u8],
        mut visit: impl FnMut(u32, Bits),
    ) {
        if self.has_compared.get(class.0 as usize) != Some(&true) {
            return;
        }
        let table = summary.class_table();
        let (mut class, mut bytes) = (Some(class), fields);
        while let Some(here) = class.filter(|_| !bytes.is_empty()) {
            for (place, number) in self.own.get(here.0 as usize).into_iter().flatten() {
                if let Some(value) = place.value(bytes, summary.id_size()) {
                    visit(*number, value);
                }
            }
            bytes = bytes.get(table.own_field_bytes(here) as usize..).unwrap_or_default();
            class = table.superclass_with_fields(here);
        }
    }
}

/// Classes that record how much of their array is used: class, field of the array, field of the used length.
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

/// Determines the plans for all classes.
pub(super) fn plans(search: &WasteSearch<'_>) -> Plans {
    let summary = search.dump.summary;
    let usages = search.forms.usages(summary);
    let buffers = buffers(summary);
    let of_class = |(number, row): (ClassNumber, &_)| {
        let at = number.0 as usize;
        let name = summary.class_name(row);
        if row.kind() != ClassKind::Instance {
            return Plan::Nothing;
        }
        if name == STRING {
            return StringFields::for_class(summary, number).map_or(Plan::Nothing, Plan::String);
        }
        if let Some(boxed) = BoxClass::for_class(search, number) {
            return Plan::Boxed(boxed);
        }
        if let Some(usage) = usages.get(at).copied().flatten() {
            return Plan::Collection(usage);
        }
        let buffer = buffers.get(at).copied().flatten().and_then(|class| buffer(summary, number, class));
        buffer.map_or(Plan::Nothing, Plan::Buffer)
    };
    let of_class: Vec<Plan> = summary.numbered_classes().map(of_class).collect();
    let mut fields = Vec::new();
    let own = compared_fields(summary, &mut fields);
    let has_compared = summary.class_table().derive(|class, above: Option<&bool>| {
        above.copied().unwrap_or(false) || own.get(class.0 as usize).is_some_and(|own| !own.is_empty())
    });
    let is_read = of_class.iter().zip(&has_compared);
    let is_read = is_read.map(|(plan, has_compared)| *has_compared || !matches!(plan, Plan::Nothing));
    Plans { is_read: is_read.collect(), of_class, own, has_compared, fields }
}

/// Returns, by class number, the class in [`BUFFERS`] that the class equals or extends: class number, and index in [`BUFFERS`].
fn buffers(summary: &Summary) -> Vec<Option<(ClassNumber, usize)>> {
    let of_name = |(number, row)| {
        let name = summary.class_name(row);
        Some((number, BUFFERS.iter().position(|(class, ..)| *class == name)?))
    };
    let own: Vec<Option<(ClassNumber, usize)>> = summary.numbered_classes().map(of_name).collect();
    summary.class_table().inherit(&own)
}

fn buffer(
    summary: &Summary,
    class: ClassNumber,
    (declares, at): (ClassNumber, usize),
) -> Option<BufferClass> {
    let (_, array, used) = BUFFERS.get(at)?;
    let place = |field: &str| {
        let mut slots = slots(summary, class).take(MAX_FIELDS);
        slots.find(|slot| slot.name == field && slot.class == declares).map(|slot| slot.place)
    };
    Some(BufferClass { array: place(array)?, used: place(used)?, coder: place("coder"), class: declares })
}

/// Returns, by class number, the compared fields: fields of classes outside the JDK with enough instances.
fn compared_fields(summary: &Summary, fields: &mut Vec<ComparedField>) -> Vec<Vec<(FieldPlace, u32)>> {
    let own = summary.classes().iter().map(|row| match row.kind() {
        ClassKind::Instance => row.objects.get(),
        _ => 0,
    });
    let totals = summary.class_table().totals(own.collect());
    let of_class = |((class, row), instances): ((ClassNumber, &_), u64)| {
        if instances < MIN_INSTANCES || names::is_of_jdk(summary.class_name(row)) {
            return Vec::new();
        }
        let declared = slots(summary, class).take_while(|slot| slot.class == class).take(MAX_FIELDS);
        let mut own = Vec::new();
        for (number, slot) in (0u32..).zip(declared) {
            // A dump has fewer than 2^32 fields.
            let Ok(next) = u32::try_from(fields.len()) else { break };
            own.push((slot.place, next));
            fields.push(ComparedField { class, number, instances });
        }
        own
    };
    summary.numbered_classes().zip(totals).map(of_class).collect()
}
