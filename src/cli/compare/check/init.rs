//! `check --init`: generates a rules file from a dump, with one example of each measure, and limits that the dump passes with
//! a margin.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use super::rules;
use crate::cli::prelude::*;
use crate::cli::shared::output;
use crate::cli::shared::output::file::OutFile;
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::summary::Summary;
use hprof_index::{Dump, Heap};
use hprof_query::check::{
    MEASURES, Measure, MeasureDetails, MeasuredDump, Measurement, Range, Rule, RuleLimits, Severity, Unit,
    measure,
};
use hprof_query::compare::places::{AlignedPlaces, DumpPlaces, Via};
use hprof_query::frameworks::Frameworks;
use hprof_query::histogram::{self, Scope};
use hprof_query::naming::pattern::ClassPattern;
use hprof_report::escape;
use hprof_report::number;

/// Packages of the JDK, whose classes are not used as examples.
const JDK: &[&str] = &["java.", "javax.", "jdk.", "sun.", "com.sun."];
/// Maximum number of classes examined to find a class of the program.
const MAX_LOOKED_AT: usize = 10_000;
/// Longest prefix of a generated rule name that ends with a class name.
const INSTANCES: &str = "instances of ";
/// Maximum length of a class name: longer ones do not fit into a rule's name.
const MAX_CLASS: usize = rules::MAX_NAME - INSTANCES.len();
/// Maximum length of a place (path of fields) that is used as an example.
const MAX_PLACE: usize = 200;
/// Divisor of the current value; the quotient is the margin of the limit.
const ROOM: u64 = 4;
/// Step to which percentages are rounded.
const STEP: u64 = 5;

pub(super) fn run(cx: &RunContext, input: &Input, out: Option<&Path>) -> anyhow::Result<Outcome> {
    let file = out.map(|out| OutFile::create(out, &[input.path()])).transpose()?;
    if let Some(out) = out.filter(|out| out.is_file()) {
        // Somebody may have edited it.
        anyhow::bail!("{} already exists; remove it, or use another name", out.display());
    }
    let (session, text) = Session::ask(cx, input, |dump| {
        anyhow::ensure!(
            dump.summary.facts().heap_dumps.get() > 0,
            "{} contains no heap dump, so no rules can be made; `hprof-cli info` shows what it contains",
            dump.heap.path().display()
        );
        text_of(dump)
    })?;
    session.check()?;
    match file {
        Some(mut file) => {
            file.write_all(text.as_bytes())?;
            file.commit()?;
        }
        None => {
            let mut out = cx.writer();
            out.write_all(text.as_bytes())?;
            output::finish(out)?;
        }
    }
    Ok(session.outcome(true))
}

/// A rule of the generated file, before its limit is known.
struct RuleTemplate {
    about: &'static str,
    name: String,
    /// Lines of the rule after its key `of`.
    more: &'static str,
    measure: Measure,
}

impl RuleTemplate {
    /// Creates an example of a measure; `None` if there is no measure of this name.
    fn new(about: &'static str, name: impl Into<String>, measure: &str, of: Option<&str>) -> Option<Self> {
        let kind = MEASURES.into_iter().find(|kind| kind.name == measure)?;
        Some(Self { about, name: name.into(), more: "", measure: Measure::new(kind, of.map(str::to_owned)) })
    }
}

fn text_of(dump: &Dump<'_>) -> anyhow::Result<String> {
    let summary = dump.summary;
    let class = class_of_the_program(summary);
    let of_class = Some(&*class);
    let examples = [
        RuleTemplate::new(
            "The heap: total size of reachable objects. `objects` = \"all\" counts unreachable ones too.",
            "heap",
            "heap",
            None,
        ),
        RuleTemplate::new(
            "Retained size of all reachable objects of some classes together. `of` is a pattern of class names:\n# \"com.acme.**Cache\", \"Session\", \"byte[]\".",
            format!("retained by {class}"),
            "retained",
            of_class,
        ),
        RuleTemplate::new(
            "Shallow size of the objects of some classes.",
            format!("size of {class}"),
            "shallow",
            of_class,
        ),
        RuleTemplate::new(
            "Number of objects of some classes: `objects` is \"all\", \"reachable\" or \"unreachable\".\n# `min` is \
             for objects that must exist. A rule fails if no class matches, unless it contains `optional = true`.",
            format!("{INSTANCES}{class}"),
            "instances",
            of_class,
        )
        .map(|example| RuleTemplate {
            more: "objects = \"reachable\"\n",
            measure: Measure { scope: Scope::Reachable, ..example.measure },
            ..example
        }),
        RuleTemplate::new(
            "Class loaders; `of` is a pattern of their classes or names.",
            "class loaders",
            "loaders",
            None,
        ),
        RuleTemplate::new(
            "Classes that several class loaders define: definitions beyond the first of each name.",
            "no more duplicate classes",
            "duplicate_classes",
            None,
        ),
        RuleTemplate::new(
            "The largest leak suspect, as in `hprof-cli leaks`: its share of the reachable heap.",
            "no large leak suspect",
            "suspects",
            None,
        ),
        RuleTemplate::new(
            "Wasted bytes, by the kinds of `hprof-cli waste`; without `of`, of all kinds together.",
            "duplicate strings",
            "waste",
            Some("duplicate_strings"),
        )
        .map(|example| RuleTemplate { more: "severity = \"warning\"\n", ..example }),
        RuleTemplate::new(
            "Credentials, as in `hprof-cli secrets`; `of` is one of its rules.",
            "no more credentials",
            "secrets",
            None,
        ),
        largest_static(&DumpPlaces::new(dump)?)
            .and_then(|place| RuleTemplate::new(PLACE, "a place", "place", Some(&place))),
    ];
    let examples: Vec<RuleTemplate> = examples.into_iter().flatten().collect();
    let made: Vec<Rule> =
        examples.iter().map(|example| rule(&example.measure, placeholder_limits())).collect();
    let measured = measure(&made, MeasuredDump::Graph(dump), &Frameworks::builtin())?;
    let mut text = head(dump.heap);
    for (example, measured) in examples.iter().zip(&measured) {
        let (limit, now) = match &measured.found {
            MeasureDetails::Suspects(_) => limit_with_headroom(measured),
            _ => with_room(measured, example.measure.kind.unit),
        };
        // Writing to a String cannot fail.
        let _ = write!(text, "\n# {}\n[[rule]]\nname = {}\n", example.about, quoted(&example.name));
        let _ = writeln!(text, "measure = \"{}\"", example.measure.kind.name);
        if let Some(of) = &example.measure.of {
            let _ = writeln!(text, "of = {}", quoted(of));
        }
        text += example.more;
        // If no class name makes an example, its rule covers no class.
        if matches!(measured.found, MeasureDetails::NoMatch { .. }) {
            text += "optional = true\n";
        }
        let _ = writeln!(text, "max = {limit}  # now: {now}");
    }
    text += GROWTH;
    Ok(text)
}

const PLACE: &str =
    "Retained size of a place, as shown by `hprof-cli diff --group-by place`; `*` matches anything.";

/// Returns the static field that retains the most memory.
fn largest_static(places: &DumpPlaces) -> Option<String> {
    let aligned = AlignedPlaces::new(std::slice::from_ref(places));
    let all = 0..u32::try_from(aligned.parents.len()).unwrap_or(u32::MAX);
    let statics = all.filter(|place| matches!(aligned.label(*place).via, Via::Static { .. }));
    let is_named = |text: &String| text.len() <= MAX_PLACE && text.trim() == text;
    let named = statics.map(|place| (aligned.figures(0, place).retained_bytes, aligned.text(place)));
    named.filter(|(_, text)| is_named(text)).max().map(|(_, text)| text)
}

const GROWTH: &str = "
# Growth against the baseline: \"heap\", \"class PATTERN\" (shallow size of its objects), \"retained PATTERN\", \"place\" (the one
# that grew most) or \"place PATTERN\". Percentages are of the baseline's heap.
# [[rule]]
# name = \"no place grows\"
# measure = \"growth\"
# of = \"place\"
# max = \"5 %\"
";

fn head(heap: &Heap) -> String {
    let path = escape::text(&heap.path().to_string_lossy()).into_owned();
    format!(
        "# Rules for hprof-cli check, made from {path}.
#
#   hprof-cli check DUMP... --rules FILE
#
# Each rule has a name, what it measures, and a limit: `max`, `min` or both. Limits are numbers, sizes (\"50 MiB\"), or
# parts of the heap (\"20 %\"). Its severity is \"error\" (the check fails), \"warning\" or \"note\".

# The dump to compare with, for rules of measure \"growth\"; a path relative to this file. --baseline OLD overrides it.
# baseline = \"old.hprof\"
"
    )
}

/// Returns the class of the program whose objects have the largest total size; if there is none, any class.
fn class_of_the_program(summary: &Summary) -> String {
    let question =
        histogram::HistogramQuery { top: Some(MAX_LOOKED_AT), ..histogram::HistogramQuery::default() };
    let rows = histogram::histogram(summary, &Sizes::new(summary, None), &question).rows;
    // A hostile dump has names with another meaning as patterns.
    let is_itself = |name: &str| {
        let Ok(pattern) = name.parse::<ClassPattern>();
        !name.is_empty() && name.trim() == name && pattern.matches(name)
    };
    let is_named = |row: &&histogram::HistogramRow| row.name.len() <= MAX_CLASS && is_itself(&row.name);
    let is_of_program = |row: &&histogram::HistogramRow| {
        row.name.contains('.') && !JDK.iter().any(|package| row.name.starts_with(package))
    };
    let found = rows.iter().filter(is_named).find(is_of_program).or_else(|| rows.iter().find(is_named));
    found.map_or_else(|| "java.lang.Object".to_owned(), |row| row.name.to_string())
}

fn rule(measure: &Measure, limits: RuleLimits) -> Rule {
    Rule {
        name: String::new(),
        severity: Severity::default(),
        measure: measure.clone(),
        limits,
        is_optional: true,
    }
}

fn placeholder_limits() -> RuleLimits {
    RuleLimits::Number(Range::Max(u64::MAX))
}

/// Returns a limit with a margin above the measured value, and the measured value.
fn with_room(measured: &Measurement, unit: Unit) -> (String, String) {
    let now = measured.amount.unsigned_abs();
    let limit = now.saturating_add(now.div_ceil(ROOM));
    match unit {
        Unit::Count => (limit.to_string(), group_digits(now)),
        Unit::Bytes => {
            let (size, name) = if limit >= 1 << 20 { (1 << 20, "MiB") } else { (1 << 10, "KiB") };
            (format!("\"{} {name}\"", limit.div_ceil(size)), human_bytes(now))
        }
    }
}

/// Returns a limit with a margin above the measured percentage, and the percentage, both in coarse steps.
fn limit_with_headroom(measured: &Measurement) -> (String, String) {
    let (now, whole) = (measured.amount.unsigned_abs(), measured.whole);
    let limit = u128::from(now.saturating_add(now.div_ceil(ROOM))) * 100;
    let steps = limit.div_ceil(u128::from(whole.max(1)) * u128::from(STEP)).max(1);
    let limit = (steps * u128::from(STEP)).min(100);
    (format!("\"{limit} %\""), number::percent(now, whole.max(1)).replace('%', " %"))
}

/// Quotes a text as a basic string of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            // Writing to a String cannot fail.
            c if escape::is_harmful(c) => drop(write!(out, "\\U{:08x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
