//! Comparison of numbers: those that must be mapped are different, and those that are kept are unchanged.
//!
//! A permutation has some fixed points, by chance. So the distinct values of each field are counted and compared with the
//! number that chance leaves unchanged: of `int`, `long`, `float` and `double` hardly one in a dump, of a `byte` one in 127.

use std::collections::HashMap;

use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64;

use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_values::{BasicType, IdSize};

use super::super::RedactOptions;
use super::super::kept::{KeptReason, KeptValues};
use super::super::plan::{Plan, field_hash};
use super::super::symbol::{Class, class_of, class_of_box};
use super::chance::SameValues;
use super::pairs::{fold, readers};
use super::texts::SAME_PLACE;
use super::{KeptNumbers, ProofRow};
use hprof_index::Dump;
use hprof_model::objects::hiding::fields::{FieldTreatment, instance_rules, need, treatment};
use hprof_model::objects::reader::{FieldPlace, ObjectReader, ObjectRecord, PrimitiveArray};

/// Minimum size of a class of which hardly any value is unchanged by chance.
const WIDE: u64 = 1 << 30;
/// Maximum probability of a run of unchanged elements that is not attributed to chance: 6 bytes.
const RUN: f64 = 1.0 / (1_u64 << 41) as f64;
/// Maximum probability of being unchanged by chance for contents that are counted: a single character has 127 values.
const SHORTEST: f64 = 1.0 / (1_u64 << 13) as f64;

/// A compared number: its type, its treatment, and a hash of its field.
#[derive(Debug, Clone, Copy)]
struct NumberPlace {
    kind: BasicType,
    treatment: FieldTreatment,
    hash: u64,
}

/// Compares all numbers in fields, statics, constants and arrays.
pub(super) fn compare(
    plan: &Plan,
    options: &RedactOptions,
    kept: &KeptValues,
    a: &Dump<'_>,
    b: &Dump<'_>,
) -> [ProofRow; 2] {
    let readers = readers(a, b);
    let mut names = FieldNames::default();
    let fields = fields(&readers[0], options, &mut names);
    let new = || Counts::new(options);
    let mut all = new();
    statics(&mut all, &mut names, a.summary, b.summary);
    let counts = fold(&readers, new, |counts, object, one, other| match (one, other) {
        (ObjectRecord::Instance(one), ObjectRecord::Instance(other)) => {
            let class = readers[0].graph.objects.class(object);
            for (at, place) in class.and_then(|class| fields.get(&class)).into_iter().flatten() {
                let of = |fields| readers[0].value_at(fields, *at);
                if let (Some(x), Some(y)) = (of(one.fields), of(other.fields)) {
                    if place.treatment == FieldTreatment::Counter {
                        counts.counter(*place, kept.counters.contains(one.id), x.bits, y.bits);
                    } else {
                        counts.number(*place, x.bits, y.bits);
                    }
                }
            }
        }
        (ObjectRecord::PrimitiveArray(one), ObjectRecord::PrimitiveArray(other)) => {
            counts.array(kept, one, other)
        }
        (ObjectRecord::Class(one), ObjectRecord::Class(other)) => {
            for ((_, x), (_, y)) in one.constants().zip(other.constants()) {
                let treatment = FieldTreatment::Mapped;
                let place = NumberPlace { kind: x.kind, treatment, hash: xxh3_64(&one.id().0.to_le_bytes()) };
                if x.kind != BasicType::Object {
                    counts.number(place, x.bits, y.bits);
                }
            }
        }
        _ => {}
    });
    counts.into_iter().for_each(|counts| all.add(counts));
    all.rows(&names, plan)
}

/// Names of class and field, and type of the field, by hash of the field.
type FieldNames = FxHashMap<u64, (String, String, BasicType)>;

/// Returns the numeric fields of the instances of each class.
fn fields(
    reader: &ObjectReader<'_>,
    options: &RedactOptions,
    names: &mut FieldNames,
) -> FxHashMap<ClassNumber, Vec<(FieldPlace, NumberPlace)>> {
    let summary = reader.summary;
    let mut of_class = |class: ClassNumber| {
        let rules = summary.class(class).map_or(0, |class| instance_rules(summary.class_name(class)));
        let numbers = reader.slots(class).filter(|slot| slot.kind != BasicType::Object);
        let place = numbers.map(|slot| {
            let declaring = summary.class(slot.class).map_or("", |class| summary.class_name(class));
            let treatment = treatment(declaring, slot.name, slot.kind);
            let treatment = treatment.in_instance(rules, options.strict_numbers);
            let hash = field_hash(declaring, slot.name);
            names.entry(hash).or_insert_with(|| (declaring.to_owned(), slot.name.to_owned(), slot.kind));
            (slot.place, NumberPlace { kind: slot.kind, treatment, hash })
        });
        place.collect()
    };
    let classes = summary.numbered_classes().filter(|(_, class)| class.objects.get() > 0);
    classes.map(|(number, _)| (number, of_class(number))).collect()
}

/// Compares the static fields of all classes.
fn statics(counts: &mut Counts<'_>, names: &mut FieldNames, a: &Summary, b: &Summary) {
    let others: HashMap<_, _> = b.classes().iter().map(|class| (class.id, class)).collect();
    for class in a.classes() {
        let Some(other) = others.get(&class.id) else { continue };
        let name = a.class_name(class);
        for ((field, kind, x), (_, _, y)) in a.statics(class).zip(b.statics(other)) {
            let treatment = treatment(name, field, kind).in_instance(0, counts.options.strict_numbers);
            let hash = field_hash(name, field);
            if kind != BasicType::Object {
                names.entry(hash).or_insert_with(|| (name.to_owned(), field.to_owned(), kind));
            }
            counts.number(NumberPlace { kind, treatment, hash }, x, y);
        }
    }
}

/// Counts of one parallel task.
struct Counts<'o> {
    options: &'o RedactOptions,
    /// Number of values that should be unchanged, or keep their form, but do not.
    wrong: u64,
    /// Number of names of threads, properties and counters that should be kept but differ.
    gone: u64,
    /// Number of unchanged values, by the hash of the field.
    kept: FxHashMap<u64, u64>,
    wide: SameValues,
    narrow: SameValues,
}

impl<'o> Counts<'o> {
    fn new(options: &'o RedactOptions) -> Self {
        let values = || SameValues::new(options.break_equality);
        Self { options, wrong: 0, gone: 0, kept: FxHashMap::default(), wide: values(), narrow: values() }
    }

    fn add(&mut self, other: Self) {
        self.wrong += other.wrong;
        self.gone += other.gone;
        for (field, count) in other.kept {
            *self.kept.entry(field).or_default() += count;
        }
        self.wide.add(other.wide);
        self.narrow.add(other.narrow);
    }

    fn rows(&self, names: &FieldNames, plan: &Plan) -> [ProofRow; 2] {
        let stay = ProofRow {
            allowed: self.gone,
            reason: Some(
                "names of threads, properties and counters, which are replaced if the dump was read from a pipe",
            ),
            kept: self.kept_numbers(names, plan),
            ..ProofRow::new("numbers_that_stay", self.wrong)
        };
        let (mut differences, mut allowed) = (0, 0);
        for (same, is_improbable) in self.wide.results().chain(self.narrow.results()) {
            *(if is_improbable { &mut differences } else { &mut allowed }) += same;
        }
        let reason = Some("by chance, a random permutation leaves this many values unchanged");
        [stay, ProofRow { differences, allowed, reason, ..ProofRow::new("numbers_that_go", 0) }]
    }

    /// Returns the kept numbers, by field.
    fn kept_numbers(&self, names: &FieldNames, plan: &Plan) -> Vec<KeptNumbers> {
        let fields = self.kept.iter().filter_map(|(hash, count)| {
            let (class, field, kind) = names.get(hash)?;
            let need = need(class, field, *kind)?;
            Some(KeptNumbers {
                class: plan.renames().class(class).unwrap_or_else(|| class.clone()),
                field: field.clone(),
                is_boolean: *kind == BasicType::Boolean,
                count: *count,
                commands: need.commands,
                answer: need.answer,
            })
        });
        let mut fields: Vec<_> = fields.collect();
        fields.sort_unstable_by(|a, b| (&a.class, &a.field).cmp(&(&b.class, &b.field)));
        fields
    }

    /// Compares a counter, which is kept if another object holds it.
    fn counter(&mut self, place: NumberPlace, is_held: bool, x: u64, y: u64) {
        let is_negative = |value: u64| place.kind == BasicType::Int && value >> 31 == 1;
        if x != 0 && !is_negative(x) && is_negative(y) {
            // In a dump from a pipe, any number may be the size of a queue.
            self.gone += u64::from(is_held);
        } else if is_held {
            self.number(NumberPlace { treatment: FieldTreatment::Stays, ..place }, x, y);
        } else {
            self.number(NumberPlace { treatment: FieldTreatment::Mapped, ..place }, x, y);
        }
    }

    /// Compares a number that must be kept.
    fn same(&mut self, place: NumberPlace, is_right: bool) {
        *self.kept.entry(place.hash).or_default() += u64::from(is_right);
        self.expect_same(is_right);
    }

    /// Compares a number in a field or constant.
    fn number(&mut self, place: NumberPlace, x: u64, y: u64) {
        let NumberPlace { kind, treatment, .. } = place;
        let class = match treatment {
            FieldTreatment::Reference => return,
            _ if x == 0 => return self.expect_same(y == 0),
            FieldTreatment::Mapped if kind == BasicType::Boolean => return self.expect_same(y == 0),
            // A boolean is 0 or 1, whatever else the byte may hold.
            _ if kind == BasicType::Boolean => return self.same(place, y == 1),
            FieldTreatment::Stays
            | FieldTreatment::Finer
            | FieldTreatment::InInstances(_)
            | FieldTreatment::Boolean => return self.same(place, x == y),
            FieldTreatment::MarkedHash if kind == BasicType::Int && x >> 31 == 1 => {
                return self.same(place, x == y);
            }
            FieldTreatment::Boxed => class_of_box(kind, x),
            FieldTreatment::Hash | FieldTreatment::MarkedHash => class_of(kind, x),
            FieldTreatment::Counter | FieldTreatment::Mapped if self.options.zero => {
                return self.expect_same(y == 0);
            }
            FieldTreatment::Counter | FieldTreatment::Mapped => class_of(kind, x),
        };
        let other =
            if treatment == FieldTreatment::Boxed { class_of_box(kind, y) } else { class_of(kind, y) };
        self.expect_same(class == other);
        // Hashes are the same in all fields, and boxes of one type everywhere.
        let of_place = match treatment {
            FieldTreatment::Hash | FieldTreatment::MarkedHash => 1,
            FieldTreatment::Boxed => 2,
            _ => place.hash,
        };
        self.expect_changed(class, x == y, || hash_of(&[of_place, u64::from(kind.code()), x]));
    }

    fn expect_same(&mut self, is_right: bool) {
        self.wrong += u64::from(!is_right);
    }

    /// Counts a value that must change.
    fn expect_changed(&mut self, class: Class, is_same: bool, hash: impl FnOnce() -> u64) {
        if class.is_fixed() {
            self.expect_same(is_same);
        } else if class.radix >= WIDE {
            self.wide.wide(chance(class), is_same, hash);
        } else {
            self.narrow.narrow(chance(class), is_same, hash);
        }
    }

    fn array(&mut self, kept: &KeptValues, one: &PrimitiveArray<'_>, other: &PrimitiveArray<'_>) {
        let (kind, size) = (one.element, one.element.dump_bytes(IdSize::Eight));
        let (Some(x), Some(y)) = (one.elements, other.elements) else { return };
        if kind != other.element || x.len() != y.len() {
            return self.expect_same(false);
        }
        match kept.reason(kind, x) {
            // In a dump from a pipe they are mapped, since they come after the objects.
            Some(KeptReason::ThreadName | KeptReason::Property) if x != y => {
                self.gone += 1;
                return;
            }
            Some(_) => return self.expect_same(x == y),
            None => {}
        }
        let pairs = || x.chunks_exact(size).map(bits_of).zip(y.chunks_exact(size).map(bits_of));
        let first = pairs().next().unwrap_or_default();
        // Any byte that is not 0 is `true`.
        let is_true = |(x, y): (u64, u64)| (u64::from(x != 0), y);
        let form = |pair| if kind == BasicType::Boolean { is_true(pair) } else { pair };
        let (first, y_first) = (form(first), y.first());
        let is_long = x.len() > size || kind == BasicType::Boolean;
        let is_repeated = is_long && pairs().all(|pair| form(pair) == first);
        if is_repeated {
            let class = class_of(kind, first.0);
            self.expect_same(class == class_of(kind, first.1));
            let length = u64::from(one.length);
            let hash = || hash_of(&[length, u64::from(kind.code()), first.0]);
            return self.expect_changed(class, first.0 == first.1, hash);
        }
        self.expect_same(if kind == BasicType::Boolean {
            y.iter().all(|y| *y < 2) && y.iter().any(|y| Some(y) != y_first)
        } else if kind == BasicType::Byte {
            x.iter().zip(y).all(|(x, y)| (x ^ y) < 0x80 && (*x == 0) == (*y == 0))
        } else {
            pairs().all(|(x, y)| class_of(kind, x) == class_of(kind, y))
        });
        match kind {
            BasicType::Int | BasicType::Long | BasicType::Float | BasicType::Double => {
                let contents = || hash_of(&[u64::from(kind.code()), one.length.into(), xxh3_64(x)]);
                for (at, (x, y)) in (0_u64..).zip(pairs()) {
                    let class = class_of(kind, x);
                    if !class.is_fixed() {
                        let hash = || hash_of(&[contents(), at, 3]);
                        self.wide.wide(chance(class), x == y, hash);
                    }
                }
            }
            _ => self.short_elements(kind, x, x == y, pairs),
        }
    }

    /// Compares contents whose elements have few values: entirely if they are short, otherwise by runs. The characters of
    /// longer texts are compared by `texts_at_the_same_place`.
    fn short_elements<I: Iterator<Item = (u64, u64)>>(
        &mut self,
        kind: BasicType,
        contents: &[u8],
        is_same: bool,
        pairs: impl Fn() -> I,
    ) {
        let chance_of = |value| {
            if kind == BasicType::Boolean { 0.5 } else { chance(class_of(kind, value)) }
        };
        let mut all = 1.0;
        for (value, _) in pairs() {
            all *= chance_of(value);
            if all < RUN {
                break;
            }
        }
        let hash = || hash_of(&[u64::from(kind.code()), contents.len() as u64, xxh3_64(contents)]);
        if (RUN..SHORTEST).contains(&all) {
            self.narrow.narrow(all, is_same, hash);
        } else if all < RUN && matches!(kind, BasicType::Byte | BasicType::Char) {
            // Fewer characters of large alphabets are not a text for `texts_at_the_same_place`.
            if pairs().filter(|(value, _)| *value != 0).take(SAME_PLACE).count() < SAME_PLACE {
                self.narrow.wide(all, is_same, hash);
            }
        } else if all < RUN {
            let mut run = 1.0;
            let has_run = pairs().any(|(x, y)| {
                run = if x == y { run * chance_of(x) } else { 1.0 };
                run < RUN
            });
            #[allow(clippy::cast_precision_loss)] // An estimate.
            self.wide.wide(RUN * contents.len() as f64, has_run, hash);
        }
    }
}

/// Returns the bits of an element.
fn bits_of(element: &[u8]) -> u64 {
    element.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}

/// Returns the probability that a permutation of a class leaves a value unchanged.
#[allow(clippy::cast_precision_loss)] // An estimate.
fn chance(class: Class) -> f64 {
    1.0 / class.radix as f64
}

fn hash_of(words: &[u64; 3]) -> u64 {
    xxh3_64(&words.map(u64::to_le_bytes).concat())
}
