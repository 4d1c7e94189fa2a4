//! Places that explain the heap, as rows of `overview`.

use crate::cli::prelude::*;
use hprof_index::ObjectGraph;
use hprof_query::compare::places::{ExplainedPlace, PlaceFigures};
use hprof_query::frameworks::{FrameworkDescription, FrameworkFact};
use hprof_query::leaks::Leaks;
use hprof_query::leaks::heap_places::HeapPlaces;
use hprof_report::column::CellTarget;
use hprof_report::number::hundredths;
use hprof_report::table::{Align, TableBuilder};
use hprof_report::value::id;
use hprof_report::{escape, fit};
use hprof_values::ObjectId;
use serde::{Deserialize, Serialize};

use crate::cli::retention::leaks::words;
use crate::cli::shared::holder::cut;
use crate::cli::shared::{containers, frameworks};

/// Maximum number of rows.
const MAX_ROWS: usize = 10;
/// Maximum number of characters of a place and of its description: labels may contain names of 64 KiB.
const LONGEST: usize = 1 << 12;
/// Condition under which a row has no facts.
const NO_RULE: &str = "no rule describes its object";

/// The places that explain the heap, as found by one analysis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ExplainedPlaces {
    pub(super) rows: Vec<ExplainedRow>,
    /// Size of the reachable heap in bytes.
    all_bytes: u64,
    /// Upper limit of the retained size in bytes of any place without a row.
    largest_left: u64,
}

/// A place that explains a part of the heap.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ExplainedRow {
    /// Description of the objects at the place.
    pub(super) text: String,
    name: String,
    depth: usize,
    class: Option<String>,
    figures: PlaceFigures,
    /// `true` if the shallow size of all objects at the place is known.
    is_whole: bool,
    /// Number of elements in the container at the place, and their class.
    stored: Option<(u64, Option<String>)>,
    /// `true` if the place is a leak suspect.
    is_suspect: bool,
    framework: Option<DescribedFacts>,
    pub(super) retained_bytes: u64,
    /// Size of the reachable heap in bytes.
    all_bytes: u64,
}

/// Facts from a rule about a framework.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct DescribedFacts {
    framework: String,
    facts: Vec<(String, FrameworkFact)>,
}

impl DescribedFacts {
    fn new(known: &FrameworkDescription) -> Self {
        Self { framework: known.framework.to_string(), facts: known.facts.clone() }
    }
}

impl ExplainedRow {
    /// Returns the object at the place, if there is only one.
    fn single(&self) -> Option<ObjectId> {
        (self.figures.objects == 1).then_some(self.figures.example).and_then(ObjectId::non_null)
    }

    /// Returns link targets: `leaks` for a leak suspect, then the object if it is the only one at the place.
    fn targets(&self) -> impl Iterator<Item = CellTarget> {
        let evidence = self.is_suspect.then(|| CellTarget::Command(vec!["leaks".to_owned()]));
        evidence.into_iter().chain(self.single().map(CellTarget::Object))
    }
}

impl ExplainedPlaces {
    /// Creates the rows; places that are leak suspects are described as in `leaks`.
    pub(super) fn new(graph: &ObjectGraph, places: &HeapPlaces, leaks: &Leaks) -> Self {
        let aligned = &places.heap.aligned;
        let class = |place: u32| aligned.label(place).class.as_deref().map(str::to_owned);
        let all_bytes = graph.tree.reachable_bytes();
        let all = &places.explained.places;
        let row = |(one, suspect): (&ExplainedPlace, &Option<usize>)| {
            let ExplainedPlace { place, others, retained_bytes, objects, elements } = one;
            let figures = aligned.figures(0, *place);
            let beside = others.iter().map(|other| aligned.figures(0, *other).own_bytes);
            let own_bytes = beside.fold(figures.own_bytes, u64::saturating_add);
            let suspect = suspect.and_then(|at| leaks.suspects.get(at));
            let is_suspect = suspect.is_some();
            let suspect = suspect.filter(|one| words::says_more(one));
            let known = suspect.and_then(|suspect| suspect.framework.as_ref());
            let known = known.or_else(|| places.description(graph, one));
            let row = ExplainedRow {
                text: fit::middle(
                    &suspect.map_or_else(|| text(graph, places, one), words::describe_accumulation),
                    LONGEST,
                ),
                name: fit::middle(&aligned.text(*place), LONGEST),
                depth: aligned.path(*place).len(),
                class: class(*place),
                is_whole: places.heap.members(one).len() as u64 == *objects,
                stored: elements.filter(|of| of.place != *place).map(|of| (of.objects, class(of.place))),
                framework: known.map(DescribedFacts::new),
                is_suspect,
                figures: PlaceFigures { objects: *objects, own_bytes, ..figures },
                retained_bytes: *retained_bytes,
                all_bytes,
            };
            (row, known)
        };
        // A sentence can explain objects at several places: a queue, and the objects in it that others also hold.
        let mut rows: Vec<ExplainedRow> = Vec::new();
        let mut said: Vec<&FrameworkDescription> = Vec::new();
        for (mut one, known) in all.iter().zip(&leaks.suspect_of_place).map(row) {
            if let Some(known) = known {
                if said.contains(&known) {
                    one.text = format!("more of {}", known.called.as_deref().unwrap_or(&one.text));
                }
                said.push(known);
            }
            rows.push(one);
        }
        let next = rows.get(MAX_ROWS).map_or(0, |row| row.retained_bytes);
        rows.truncate(MAX_ROWS);
        Self { rows, all_bytes, largest_left: next.max(places.explained.largest_left) }
    }

    /// Returns whether rows that were read from a file can belong to this heap. Nested places count twice, so the sum of the
    /// rows may exceed the heap.
    pub(super) fn is_valid(&self, graph: &ObjectGraph) -> bool {
        let all = graph.tree.reachable_bytes();
        let held = self.rows.iter().try_fold(0u64, |sum, row| sum.checked_add(row.retained_bytes));
        self.rows.len() <= MAX_ROWS
            && self.all_bytes == all
            && self.rows.iter().all(|row| row.all_bytes == all)
            && held.is_some()
    }

    /// Returns a table whose rows take at most this many lines.
    pub(super) fn table(&self, width: usize, rows: usize) -> TableBuilder {
        let all = self.all_bytes;
        let columns = [("", Align::Right), ("", Align::Right), ("", Align::Left)];
        let mut table = TableBuilder::new(&columns).wrapping();
        let (shown, left) = self.rows.split_at(rows.min(self.rows.len()));
        let held: u64 = shown.iter().fold(0, |sum, one| sum.saturating_add(one.retained_bytes));
        let rest = all.saturating_sub(held);
        let bytes = || shown.iter().map(|one| one.retained_bytes).chain([rest]);
        let sizes = bytes().map(|bytes| human_bytes(bytes).len()).chain(["retained".len()]).max();
        let shares = bytes().map(|bytes| percent(bytes, all).len()).max();
        let room = width.saturating_sub(sizes.unwrap_or(0) + shares.unwrap_or(0) + 4);
        table.row(["", "", ""]);
        table.row(["retained", "%", "what"]);
        for (one, text) in shown.iter().zip(texts(shown, room, rows)) {
            let bytes = one.retained_bytes;
            table.linked_row([human_bytes(bytes), percent(bytes, all), text], one.targets());
        }
        let largest_left =
            left.first().map_or(self.largest_left, |one| one.retained_bytes.max(self.largest_left));
        let rest_text = match largest_left.min(rest) {
            0 => "everything else".to_owned(),
            most => format!("everything else, no place above {}", percent(most, all)),
        };
        table.row([human_bytes(rest), percent(rest, all), cut(&rest_text, room)]);
        table
    }
}

/// Describes a place: by the rule of a framework, or, if its only object is a container, with the elements.
fn text(graph: &ObjectGraph, places: &HeapPlaces, one: &ExplainedPlace) -> String {
    let example = places.heap.aligned.figures(0, one.place).example;
    let is_said = places.description(graph, one).is_some_and(|known| known.text.is_some());
    let is_named = one.elements.is_some_and(|of| places.heap.name_of_elements(&of).is_some());
    let container = places.containers.of_object(example).filter(|of| one.objects == 1 && of.accumulates());
    match container.filter(|_| !is_said && !is_named) {
        Some(of) => {
            format!("{}: {}", places.heap.aligned.title(one.place).text, containers::elements(of, true))
        }
        None => places.text(graph, one),
    }
}

/// Returns the escaped descriptions of rows, each at most `room` columns wide. If `lines` exceeds the number of rows, the first
/// long descriptions take two lines.
fn texts(shown: &[ExplainedRow], room: usize, lines: usize) -> Vec<String> {
    let mut spare = lines.saturating_sub(shown.len());
    let text = |one: &ExplainedRow| {
        let text = escape::text(&one.text);
        let short = cut(&text, room);
        // A text from which only packages were removed, without `...`, is not worth a second line.
        let long = if spare > 0 && short.contains("...") { two_lines(&text, room) } else { None };
        spare -= usize::from(long.is_some());
        long.unwrap_or(short)
    };
    shown.iter().map(text).collect()
}

/// Breaks a text into two lines of `room` columns; `None` if it fits in one line, or if a word does not fit in a line.
fn two_lines(text: &str, room: usize) -> Option<String> {
    if text.split(' ').any(|word| fit::width(word) > room) {
        return None;
    }
    let lines = fit::wrap(text, room, 0);
    let (first, _) = lines.split_first().filter(|(_, others)| !others.is_empty())?;
    let rest = text.strip_prefix(first.as_str())?.trim_start();
    let both = format!("{first} {}", cut(rest, room));
    (fit::wrap(&both, room, 0).len() == 2).then_some(both)
}

pub(super) fn columns<'c>() -> Columns<'c, ExplainedRow> {
    Columns::new([
        Column::new(names::PLACE_NAME, |row: &ExplainedRow| (&*row.name).into()),
        Column::new(names::DEPTH, |row: &ExplainedRow| (row.depth as u64).into()),
        Column::new(names::OWN_BYTES, |row: &ExplainedRow| {
            row.is_whole.then_some(row.figures.own_bytes).into()
        })
        .or_null("some of the objects are too small to be looked into"),
        Column::new(names::RETAINED_BYTES, |row: &ExplainedRow| row.retained_bytes.into()),
        Column::new(names::RETAINED_PERCENT, |row: &ExplainedRow| {
            hundredths(row.retained_bytes, row.all_bytes).into()
        }),
        Column::new(names::OBJECTS, |row: &ExplainedRow| row.figures.objects.into()),
        Column::new(names::CLASS, |row: &ExplainedRow| row.class.as_deref().into())
            .or_null(nulls::CLASS_MISSING),
        Column::new(names::STORED_OBJECTS, |row: &ExplainedRow| {
            row.stored.as_ref().map(|(objects, _)| *objects).into()
        })
        .or_null("it stores nothing like that"),
        Column::new(names::STORED_CLASS, |row: &ExplainedRow| {
            row.stored.as_ref().and_then(|(_, class)| class.as_deref()).into()
        })
        .or_null("it stores nothing like that"),
        Column::new(names::OBJECT, move |row: &ExplainedRow| id(row.single()))
            .or_null(nulls::SEVERAL_OBJECTS),
        Column::new(names::FRAMEWORK, |row: &ExplainedRow| {
            row.framework.as_ref().map(|known| &*known.framework).into()
        })
        .or_null(NO_RULE),
        Column::new(names::FRAMEWORK_FACTS, |row: &ExplainedRow| {
            row.framework.as_ref().map_or(Value::Null, |known| frameworks::facts(&known.facts))
        })
        .or_null(NO_RULE),
        Column::new(names::TEXT, |row: &ExplainedRow| (&*row.text).into()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str) -> ExplainedRow {
        ExplainedRow {
            text: text.to_owned(),
            name: String::new(),
            depth: 0,
            class: None,
            figures: PlaceFigures::default(),
            is_whole: true,
            stored: None,
            is_suspect: false,
            framework: None,
            retained_bytes: 0,
            all_bytes: 0,
        }
    }

    #[test]
    fn texts_take_no_more_lines_than_there_are() {
        let long = "outbound buffer of a channel: 30,701 messages, 15.4 MiB, wait for a peer that does not read, and more";
        let class = "HashMap org.spring.boot.web.WebMvcAutoConfiguration$EnableWebMvcConfiguration.handlers: 5,000 x Order";
        let hostile = "\u{1b}".repeat(4000);
        let rows: Vec<ExplainedRow> = [long, class, &hostile, "short", long].map(row).into();
        for room in 3..120 {
            for lines in 5..10 {
                let texts = texts(&rows, room, lines);
                let used: usize =
                    texts.iter().map(|text| fit::wrap(&escape::text(text), room, 0).len()).sum();
                assert!(used <= lines, "{room} {lines}: {texts:?}");
            }
        }
        let shown = texts(&rows, 63, 6);
        assert_eq!(
            shown[0],
            "outbound buffer of a channel: 30,701 messages, 15.4 MiB, wait for a peer that does not read, and more"
        );
        // The one line to spare is used, and a name is never broken.
        assert_eq!(shown[1], "HashMap ...$EnableWebMvcConfiguration.handlers: 5,000 x Order");
        assert!(shown[4].ends_with("...") && shown[4].len() <= 63, "{}", shown[4]);
        assert_eq!(texts(&rows[1..2], 63, 9), shown[1..2]);
    }
}
