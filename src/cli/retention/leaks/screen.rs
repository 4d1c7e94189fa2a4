//! Suspects as text: sentences, path, contents, and suggested commands.

use hprof_index::model::summary::Summary;
use hprof_query::leaks::contents::Reason;
use hprof_query::leaks::evidence::Paths;
use hprof_query::leaks::{Cause, Conclusion, LeakVerdict, Leaks, NO_BOUND, Suspect, SuspectKind};
use hprof_report::escape;
use hprof_report::number::format_count;
use hprof_report::table::{Align, TableBuilder};

use crate::cli::prelude::*;
use crate::cli::retention::paths_to_root::objects;
use crate::cli::shared::commands::{Commands, NextCommand, matches_itself};
use crate::cli::shared::{holder, object, paths};

use super::{LeaksReport, allocated, facts, loaders, parts, words};

/// Maximum number of frames shown of the thread that ran out of memory.
const SHOWN_FRAMES: usize = 6;
/// Maximum number of suggested commands.
const STEPS: usize = 3;

/// Returns the sections of the output, without the commands.
pub(super) fn sections(session: &Session, told: &LeaksReport) -> Vec<Section> {
    let summary = session.heap.summary();
    let mut all = vec![Section::Line(words::headline(&told.leaks))];
    if !told.leaks.largest.is_empty() {
        all.push(made_of(told));
    }
    for (number, conclusion) in told.leaks.conclusions.iter().enumerate() {
        all.extend(conclusion_sections(summary, told, number, conclusion));
    }
    for (at, suspect) in other_suspects(&told.leaks) {
        all.extend(row(summary, told, at, suspect));
    }
    let lines = facts::lines(told);
    if !lines.is_empty() {
        all.push(Section::Line(String::new()));
        all.extend(lines.into_iter().map(|fact| Section::Line(format!("Also: {fact}"))));
    }
    all.extend(loaders::other_paths(&told.leaks));
    all.extend(stack(told));
    let lines = |section| match section {
        Section::Line(text) => Section::Line(words::line(&text)),
        other => other,
    };
    all.into_iter().map(lines).collect()
}

/// Returns the indices of suspects that are not conclusions: holders, and parts of class loaders.
pub(super) fn other_suspects(leaks: &Leaks) -> impl Iterator<Item = (usize, &Suspect)> {
    let is_told = |at: usize| leaks.conclusions.iter().any(|conclusion| conclusion.suspect() == at);
    let all = leaks.suspects.iter().enumerate();
    all.filter(move |(at, suspect)| !is_told(*at) && !suspect.has_judgement_row())
}

/// Renders a conclusion: the suspect, or the class loaders, why they are alive, and the suspects that they explain.
fn conclusion_sections(
    summary: &Summary,
    told: &LeaksReport,
    number: usize,
    conclusion: &Conclusion,
) -> Vec<Section> {
    match &conclusion.cause {
        Cause::Suspect(at) => {
            let suspect = told.leaks.suspects.get(*at);
            let mut all = suspect.map(|suspect| row(summary, told, *at, suspect)).unwrap_or_default();
            let parts = parts_of_it(&told.leaks, &conclusion.side_tables);
            all.extend(parts.map(|parts| Section::Line(format!("  {parts}"))));
            all
        }
        Cause::Loaders { group, suspects, .. } => {
            let Some(group) = told.leaks.loaders.get(*group) else { return Vec::new() };
            let sentence = words::conclusion(&told.leaks, conclusion);
            let title = words::suspect_title(number);
            let mut all = vec![Section::Line(String::new()), Section::Line(format!("{title}: {sentence}"))];
            all.extend(parts_of_it(&told.leaks, suspects).map(|parts| Section::Line(format!("  {parts}"))));
            all.extend(loaders::paths_of(group));
            all
        }
    }
}

/// Returns a sentence with the numbers of the suspects that are parts of a conclusion.
pub(super) fn parts_of_it(leaks: &Leaks, suspects: &[usize]) -> Option<String> {
    let titles: Vec<String> = suspects.iter().map(|at| words::title(leaks, *at)).collect();
    match titles.as_slice() {
        [] => None,
        [one] => Some(format!("{one} below is part of it")),
        [some @ .., last] => Some(format!("{} and {last} below are parts of it", some.join(", "))),
    }
}

/// Renders a suspect with its evidence.
fn row(summary: &Summary, told: &LeaksReport, at: usize, suspect: &Suspect) -> Vec<Section> {
    let sentence = words::sentence(&told.leaks, suspect);
    let title = words::title(&told.leaks, at);
    let mut all = vec![Section::Line(String::new()), Section::Line(format!("{title}: {sentence}"))];
    if suspect.verdict == LeakVerdict::Holder && !suspect.parts.is_empty() {
        all.push(parts(told, suspect));
    }
    all.extend(evidence(summary, &told.leaks, suspect).into_iter().map(Section::Line));
    if let (LeakVerdict::Accumulation, Some(paths)) = (suspect.verdict, &suspect.paths) {
        all.push(Section::Line(format!("  path: {}", path_heading(paths))));
        if paths.path.steps.len() > 1 {
            all.push(objects::table_of(&paths.path.steps, paths.path.left_out));
        }
    }
    all
}

/// Describes the composition of the heap if nothing accumulates.
fn made_of(told: &LeaksReport) -> Section {
    let mut table =
        TableBuilder::new(&[("retained", Align::Right), ("%", Align::Right), ("what", Align::Left)]);
    for holder in &told.leaks.largest {
        let bytes = holder.retained_bytes;
        table.row([
            human_bytes(bytes),
            percent(bytes, told.leaks.reachable_bytes),
            holder::text(holder, [false, false]),
        ]);
    }
    Section::Table(table)
}

/// Returns the section about the parts of a holder.
fn parts(told: &LeaksReport, suspect: &Suspect) -> Section {
    let mut table =
        TableBuilder::new(&[("retained", Align::Right), ("%", Align::Right), ("part", Align::Left)]);
    for part in &suspect.parts {
        let bytes = part.retained_bytes;
        let percent = percent(bytes, told.leaks.reachable_bytes);
        table.row([human_bytes(bytes), percent, parts::part_text(part)]);
    }
    Section::Table(table)
}

/// Returns the lines of evidence: a label and a fact each.
fn evidence(summary: &Summary, leaks: &Leaks, suspect: &Suspect) -> Vec<String> {
    facts_of(summary, leaks, suspect).into_iter().map(|(what, text)| format!("  {what}: {text}")).collect()
}

/// Returns the evidence as pairs of label and fact.
pub(super) fn facts_of(summary: &Summary, leaks: &Leaks, suspect: &Suspect) -> Vec<(&'static str, String)> {
    let mut all: Vec<(&'static str, String)> = Vec::new();
    if let Some(point) = &suspect.point {
        all.push(("accumulation point", words::describe_object(point)));
    }
    if suspect.kind == SuspectKind::Single {
        all.push(("retained by", words::describe_object(&suspect.object)));
    } else {
        let largest = suspect.members.iter().take(3).map(words::describe_object).collect::<Vec<_>>();
        all.push(("largest", largest.join("; ")));
    }
    if suspect.evidence.iter().any(|text| text != NO_BOUND) {
        all.push(("verdict", format!("{}: {}", suspect.verdict.name(), suspect.evidence.join("; "))));
    }
    if suspect.verdict == LeakVerdict::Accumulation && !suspect.accumulated.is_empty() {
        all.push(("consists of", parts::accumulation_text(suspect)));
    }
    if let Some(allocation) = &suspect.allocation
        && let Some(frame) = allocation.frame()
    {
        all.push((
            "allocated in",
            format!(
                "{}: {} of {} x {} (trace {})",
                frame.as_shown(),
                group_digits(allocation.of_trace),
                group_digits(allocation.objects),
                allocation.class,
                allocation.trace
            ),
        ));
    }
    all.extend(allocated::evidence(suspect).into_iter().map(|line| ("allocated in", line)));
    let contents = suspect.contents.iter().map(|share| {
        format!("{} {} x {}", human_bytes(share.shallow_bytes), group_digits(share.objects), share.class)
    });
    all.push(("most bytes in", contents.collect::<Vec<_>>().join(", ")));
    if !suspect.loader.is_null() {
        all.push(("class loader", object::loader_text(summary, suspect.loader)));
    }
    for local in
        suspect.thread_locals.iter().filter(|local| local.retained_bytes > suspect.retained_bytes / 20)
    {
        all.push((
            "thread local",
            format!("{}, {}", parts::local_text(local, None, None), human_bytes(local.retained_bytes)),
        ));
    }
    let titles =
        |rows: &[usize]| rows.iter().map(|at| words::title(leaks, *at)).collect::<Vec<_>>().join(", ");
    if !suspect.covers.is_empty() {
        all.push(("explains", titles(&suspect.covers)));
    }
    let at = leaks.suspects.iter().position(|one| std::ptr::eq(one, suspect));
    let explained_by = |one: &Suspect| at.is_some_and(|at| one.covers.contains(&at));
    let by: Vec<usize> =
        (0..).zip(&leaks.suspects).filter(|(_, one)| explained_by(one)).map(|(by, _)| by).collect();
    if !by.is_empty() {
        all.push(("explained by", titles(&by)));
    }
    if !suspect.related.is_empty() {
        let titles: Vec<String> = suspect.related.iter().map(|at| words::title(leaks, *at)).collect();
        all.push(("related to", format!("{}: their paths start the same way", titles.join(", "))));
    }
    all
}

pub(super) fn path_heading(paths: &Paths) -> String {
    let root = paths::describe_root(&paths.path.root);
    match &paths.through_frame {
        None => root,
        Some(frame) => format!("{root}; another starts at a {}", paths::describe_root(&frame.root)),
    }
}

/// Returns the stack of the thread that ran out of memory.
fn stack(told: &LeaksReport) -> Vec<Section> {
    let Some(thread) = &told.facts.out_of_memory else { return Vec::new() };
    let name = thread.name.clone().unwrap_or_else(|| format!("{:#x}", thread.object));
    let mut lines = vec![String::new(), format!("Thread {} ran out of memory in", escape::quoted(&name))];
    let frames = words::own_frames(&thread.frames);
    lines.extend(frames.iter().take(SHOWN_FRAMES).map(|frame| format!("  {}", frame.frame)));
    let more = frames.len().saturating_sub(SHOWN_FRAMES) as u64 + thread.frames_left_out;
    if more > 0 {
        lines.push(format!("  {}", format_count(more, "more frame")));
    }
    lines.into_iter().map(Section::Line).collect()
}

/// Returns the suggested commands.
pub(super) fn next(told: &LeaksReport, input: &Input) -> Vec<NextCommand> {
    let commands = Commands::new(input);
    let mut steps = Vec::new();
    let first = told.leaks.conclusions.first().and_then(|one| told.leaks.suspects.get(one.suspect()));
    if let Some(suspect) = first.or(told.leaks.suspects.first()) {
        let id = format!("{:#x}", suspect.base.object);
        if matches!(suspect.reason, Some(Reason::Threads { .. })) {
            let arguments = ["--group", "--locals"].map(str::to_owned);
            steps.push(commands.step("threads", arguments, "what the threads do and retain"));
        }
        if let Some(place) = suspect.place.as_ref().filter(|place| place.is_collection) {
            steps.push(commands.step("show", [format!("{:#x}", place.object)], "its contents"));
        }
        // For several objects, suggests the paths to all of them.
        let class = suspect
            .group_class
            .as_deref()
            .filter(|class| matches!(suspect.reason, Some(Reason::Members)) && matches_itself(class));
        let what = class.map_or_else(|| id.clone(), str::to_owned);
        steps.push(commands.step("paths-to-root", [what], "what keeps it alive"));
        let merge = ["--of", id.as_str(), "--group-by", "class-tree", "--depth", "5"].map(str::to_owned);
        steps.push(commands.step("dominators", merge, "what it consists of"));
    }
    if !told.leaks.loaders.is_empty() {
        steps.insert(0, commands.step("loaders", ["--duplicates".to_owned()], "the class loaders"));
    }
    if steps.is_empty() {
        let merge = ["--group-by", "class-tree"].map(str::to_owned);
        steps.push(commands.step("dominators", merge, "what the heap consists of"));
        steps.push(commands.step("histo", [], "objects by class"));
    }
    steps.truncate(STEPS);
    steps
}
