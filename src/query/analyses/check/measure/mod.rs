//! Figures of one dump that rules need. Results that several rules share are computed once.

mod duplicate_classes;
pub(super) mod growth;
mod heap;
mod instances;
mod loaders;
mod place;
mod retained;
mod secrets;
mod shallow;
mod suspects;
mod waste;

use std::io;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::places::PlacesOfDump;
use super::{MeasureKind, Rule};
use crate::compare::places::DumpPlaces;
use crate::frameworks::Frameworks;
use crate::leaks::Leaks;
use crate::secrets::Secrets;
use crate::waste::Waste;
use hprof_base::naming::pattern::ClassPattern;
use hprof_base::naming::suggestions;
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::{Dump, Heap};
use hprof_model::dominators::class_counts::Counts;
use hprof_model::dominators::retained_of_set;
use hprof_model::histogram::{self, Scope, all_bytes};
use hprof_model::loaders::ClassLoaderRow as LoaderRow;
use hprof_model::objects::selection::{Selection, SelectionKind};

/// All measures, in the order in which messages list them.
pub const MEASURES: [&MeasureKind; 11] = [
    &heap::DEFINITION,
    &retained::DEFINITION,
    &shallow::DEFINITION,
    &instances::DEFINITION,
    &loaders::DEFINITION,
    &duplicate_classes::DEFINITION,
    &suspects::DEFINITION,
    &waste::DEFINITION,
    &secrets::DEFINITION,
    &place::DEFINITION,
    &growth::DEFINITION,
];

/// A dump to measure.
#[derive(Clone, Copy)]
pub enum MeasuredDump<'a> {
    /// Summary only.
    Summary(&'a Heap),
    /// Summary and graph.
    Graph(&'a Dump<'a>),
}

/// A measured figure of a dump.
#[derive(Debug, Clone)]
pub struct Measurement {
    /// Bytes, or a count; negative if a growth rule measured a decrease.
    pub amount: i64,
    /// Total that percentages refer to.
    pub whole: u64,
    /// Additional findings about the figure.
    pub found: MeasureDetails,
    /// Omissions from the figure.
    pub left_out: LeftOut,
}

/// Parts of the heap that a figure omits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOut {
    /// Nothing.
    Nothing,
    /// Places: there are too many distinct ones, and those beyond the limit count with their parent.
    Places,
}

/// Findings about a measured figure, in addition to the amount.
#[derive(Debug, Clone)]
pub enum MeasureDetails {
    /// No findings.
    Nothing,
    /// No class or place has a matching name.
    NoMatch {
        /// Kind of thing that was searched for.
        named: NamedKind,
        /// Requested name.
        pattern: String,
        /// Similar names, most similar first.
        suggestions: Vec<String>,
    },
    /// The name with the largest share of the figure, if several names match. For growth: the name that grew most.
    Most {
        /// Name with the largest share.
        name: String,
        /// Share of that name.
        amount: u64,
        /// Number of names that the figure covers; for growth, the number of names that grew.
        of: u64,
    },
    /// The place that grew most, if the rule does not name a place.
    Grown {
        /// Text of the place.
        place: String,
        /// Text and growth of the place below it that explains most of the growth, as found by `diff --group-by place`.
        cause: Option<(String, u64)>,
    },
    /// Places of the dump, for [`super::BaselineComparison`].
    Places(Arc<PlacesOfDump>),
    /// Bytes of all classes by name, for [`super::BaselineComparison`].
    Classes(Arc<FxHashMap<String, u64>>),
    /// Result of `leaks` without options.
    Suspects(Arc<Leaks>),
}

/// Kind of named thing that a rule refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedKind {
    /// Classes.
    Class,
    /// Places.
    Place,
}

impl Measurement {
    pub(super) fn new(amount: u64, whole: u64) -> Self {
        Self {
            amount: i64::try_from(amount).unwrap_or(i64::MAX),
            whole,
            found: MeasureDetails::Nothing,
            left_out: LeftOut::Nothing,
        }
    }

    /// Returns the measurement with these findings.
    pub(super) fn with(self, found: MeasureDetails) -> Self {
        Self { found, ..self }
    }
}

/// Maximum length of a reported class name: a hostile dump can have one of 300 MB.
const MAX_TOLD_NAME: usize = 1 << 10;
/// Message of the error if the graph is missing.
const NO_GRAPH: &str =
    "a rule needs the reference graph, but only the summary of the dump was opened; this is a bug";

/// Measures the quantities that the rules need; for growth rules, the value in this dump. Leak suspects are named by the rules
/// in `frameworks`.
///
/// # Errors
/// If neither memory nor disk has space for a few numbers per object, or if a rule needs the graph and `opened` has none
/// ([`super::Measure::required_data`]).
pub fn measure<'r>(
    rules: impl IntoIterator<Item = &'r Rule>,
    opened: MeasuredDump<'_>,
    frameworks: &Frameworks,
) -> io::Result<Vec<Measurement>> {
    let rules: Vec<&Rule> = rules.into_iter().collect();
    let mut dump = DumpData::new(opened, frameworks);
    waste::prepare(&mut dump, &rules)?;
    rules.into_iter().map(|rule| (rule.measure.kind.measure)(&mut dump, &rule.measure)).collect()
}

fn no_class(pattern: &ClassPattern, suggestions: Vec<&str>) -> MeasureDetails {
    let suggestions = suggestions.into_iter().map(str::to_owned).collect();
    MeasureDetails::NoMatch { named: NamedKind::Class, pattern: pattern.text().to_owned(), suggestions }
}

/// A dump to measure, and results computed from it.
pub(super) struct DumpData<'a> {
    frameworks: &'a Frameworks,
    summary: &'a Summary,
    dump: Option<&'a Dump<'a>>,
    sizes: Sizes,
    /// Counts of objects by class number.
    counts: FxHashMap<Scope, Vec<Counts>>,
    /// Shallow size by class name, in bytes.
    class_bytes: FxHashMap<Scope, Arc<FxHashMap<String, u64>>>,
    waste: Option<Waste>,
    secrets: Option<Secrets>,
    loaders: Option<Vec<LoaderRow>>,
    places: Option<Arc<PlacesOfDump>>,
}

impl<'a> DumpData<'a> {
    fn new(opened: MeasuredDump<'a>, frameworks: &'a Frameworks) -> Self {
        let (heap, dump) = match opened {
            MeasuredDump::Summary(heap) => (heap, None),
            MeasuredDump::Graph(dump) => (dump.heap, Some(dump)),
        };
        Self {
            frameworks,
            summary: heap.summary(),
            dump,
            sizes: Sizes::new(heap.summary(), None),
            counts: FxHashMap::default(),
            class_bytes: FxHashMap::default(),
            waste: None,
            secrets: None,
            loaders: None,
            places: None,
        }
    }

    fn dump(&self) -> io::Result<&'a Dump<'a>> {
        self.dump.ok_or_else(|| io::Error::other(NO_GRAPH))
    }

    fn all_bytes(&self) -> u64 {
        all_bytes(self.summary, &self.sizes)
    }

    fn reachable_bytes(&self) -> io::Result<u64> {
        Ok(self.dump()?.graph.tree.reachable_bytes())
    }

    /// Returns the shallow size of the objects in bytes.
    fn shallow_bytes(&self, scope: Scope) -> io::Result<u64> {
        Ok(match scope {
            Scope::All => self.all_bytes(),
            Scope::Reachable => self.reachable_bytes()?,
            Scope::Unreachable => self.all_bytes().saturating_sub(self.reachable_bytes()?),
        })
    }

    /// Returns the total that percentages refer to, as in histograms.
    fn total_bytes(&self, scope: Scope) -> io::Result<u64> {
        match scope {
            Scope::Reachable => self.reachable_bytes(),
            Scope::All | Scope::Unreachable => Ok(self.all_bytes()),
        }
    }

    /// Returns the classes with a matching name that have objects or were loaded.
    fn matching(&self, pattern: &ClassPattern) -> Vec<ClassNumber> {
        let known = self.summary.numbered_classes();
        let known = known.filter(|(_, class)| class.objects.get() > 0 || class.is_dumped());
        let matching = known.filter(|(_, class)| pattern.matches(self.summary.class_name(class)));
        matching.map(|(number, _)| number).collect()
    }

    fn no_match(&self, pattern: &ClassPattern) -> MeasureDetails {
        no_class(pattern, suggestions::class_names(self.summary, pattern.text()))
    }

    /// Returns the class with the largest amount if several match, or `NoMatch` if none does.
    fn largest_class(
        &self,
        pattern: &ClassPattern,
        classes: &[ClassNumber],
        figure: impl Fn(ClassNumber) -> u64,
    ) -> MeasureDetails {
        // The first, if several are equal.
        let most =
            classes.iter().rev().map(|class| (figure(*class), *class)).max_by_key(|(figure, _)| *figure);
        let Some((amount, class)) = most else { return self.no_match(pattern) };
        let of = classes.iter().filter(|class| figure(**class) > 0).count() as u64;
        match self.summary.class(class) {
            Some(row) if of > 1 => {
                MeasureDetails::Most { name: self.summary.class_name(row).to_owned(), amount, of }
            }
            _ => MeasureDetails::Nothing,
        }
    }

    fn of_classes(
        &mut self,
        pattern: &ClassPattern,
        scope: Scope,
        figure: impl Fn(&Counts) -> u64,
    ) -> io::Result<Measurement> {
        let counts = match self.counts.remove(&scope) {
            Some(counts) => counts,
            None if scope == Scope::All => self.all_counts(),
            None => histogram::counts(self.dump()?, scope),
        };
        let classes = self.matching(pattern);
        let of_class = |class: ClassNumber| counts.get(class.0 as usize).map_or(0, &figure);
        let amount = classes.iter().fold(0, |sum: u64, class| sum.saturating_add(of_class(*class)));
        let found = self.largest_class(pattern, &classes, of_class);
        self.counts.insert(scope, counts);
        Ok(Measurement::new(amount, self.total_bytes(scope)?).with(found))
    }

    fn all_counts(&self) -> Vec<Counts> {
        let of_class = |(number, class)| Counts {
            objects: histogram::instances(self.summary, number, class),
            shallow_bytes: self.sizes.total(number),
        };
        self.summary.numbered_classes().map(of_class).collect()
    }

    /// Returns the shallow size by class name, from counts that were already computed. Names longer than `MAX_TOLD_NAME` are
    /// omitted.
    fn class_bytes(&mut self, scope: Scope) -> Arc<FxHashMap<String, u64>> {
        if let Some(bytes) = self.class_bytes.get(&scope) {
            return bytes.clone();
        }
        let mut bytes: FxHashMap<String, u64> = FxHashMap::default();
        let counts = self.counts.get(&scope).map_or(&[][..], Vec::as_slice);
        for ((_, class), counts) in self.summary.numbered_classes().zip(counts) {
            let name = self.summary.class_name(class);
            if counts.shallow_bytes > 0 && name.len() <= MAX_TOLD_NAME {
                let sum = bytes.entry(name.to_owned()).or_default();
                *sum = sum.saturating_add(counts.shallow_bytes);
            }
        }
        let bytes = Arc::new(bytes);
        self.class_bytes.insert(scope, bytes.clone());
        bytes
    }

    fn retained_size(&self, pattern: &ClassPattern) -> io::Result<Measurement> {
        let dump = self.dump()?;
        let selection =
            Selection { text: pattern.text().to_owned(), what: SelectionKind::Classes(pattern.clone()) };
        let objects = selection.objects(dump);
        let retained = retained_of_set::retained(dump.graph, &objects).retained_bytes;
        let found =
            if self.matching(pattern).is_empty() { self.no_match(pattern) } else { MeasureDetails::Nothing };
        Ok(Measurement::new(retained, dump.graph.tree.reachable_bytes()).with(found))
    }

    fn places(&mut self) -> io::Result<Arc<PlacesOfDump>> {
        if let Some(places) = &self.places {
            return Ok(places.clone());
        }
        let places = Arc::new(PlacesOfDump::new(DumpPlaces::new(self.dump()?)?));
        self.places = Some(places.clone());
        Ok(places)
    }
}
