//! `overview`: a summary of a dump on one screen; `hprof-cli DUMP` is short for it.

use crate::cli::prelude::*;
use crate::cli::retention::leaks::allocated::{self, AllocatingLine};
use crate::cli::retention::leaks::words;
use crate::cli::shared::beside_recording::{ComparedRecording, RecordingArg};
use crate::cli::shared::commands::{self, Commands, NextCommand};
use crate::cli::shared::frameworks::FrameworksArgs;
use crate::cli::shared::holder::{self, cut};
use crate::cli::shared::messages;
use crate::cli::shared::output;
use hprof_index::Error;
use hprof_input::file::TextFile;
use hprof_query::dump::doctor::RetainedSizes;
use hprof_query::heap_facts::{MANY_FINALIZABLE, MUCH_GARBAGE, is_much_direct};
use hprof_query::leaks::holders::Holder;
use hprof_query::leaks::loaders::MANY_LOADERS;
use hprof_query::leaks::{Cause, Suspect};
use hprof_query::overview::{self, Overview};
use hprof_query::threads::JavaThread;
use hprof_query::waste::estimate::Estimate;
use hprof_report::column::JsonField;
use hprof_report::number::{format_count, whole_percent};
use hprof_report::table::Style;
use hprof_report::value::{id, list, record};
use hprof_report::{escape, fit};

use super::explained::{self, ExplainedPlaces, ExplainedRow};
use super::next;
use super::overview_findings::OverviewFindings;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli heap.hprof            # short for overview
  hprof-cli overview heap.hprof
  hprof-cli heap.hprof --format json | jq '.rows[0].largest[0]'";

/// Maximum number of frames of the thread that ran out of memory, including those of the error's constructor.
const FRAMES: usize = 9;
/// Maximum number of frames in the table.
const SHOWN_FRAMES: usize = 4;
/// Maximum number of suspects described in sentences below the headline.
const SHOWN_SUSPECTS: usize = 1;
/// Maximum number of lines of the table output: the table of places is shortened to fit.
const SCREEN: usize = 24;
/// Minimum number of rows of the table of places.
const MIN_ROWS: usize = 1;
/// Line width if stdout is not a terminal.
const WIDTH: u16 = 80;

/// Minimum width of the dump's name.
const MIN_NAME: usize = 20;

/// Summarize a dump: OutOfMemoryError, biggest objects, anomalies
///
/// `hprof-cli DUMP` is short for this command. It shows the thread that ran out of memory, the biggest
/// objects, each followed down the dominator tree to where its memory accumulates, anomalies (a long
/// finalizer queue, classes that many loaders define, direct memory, garbage, waste) and the commands to run
/// next. Builds the index on first use.
#[derive(Debug, clap::Args)]
pub(crate) struct OverviewArgs {
    #[command(flatten)]
    input: Input,

    #[command(flatten)]
    frameworks: FrameworksArgs,

    #[command(flatten)]
    recording: RecordingArg,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(cx: &RunContext, args: &OverviewArgs) -> anyhow::Result<Outcome> {
    let path = args.input.path();
    if TextFile::open(path).map_err(Error::from)?.is_some() {
        anyhow::bail!(
            "{} is a text report, which has no values; `hprof-cli summary` shows what it contains, `hprof-cli leaks` and \
             `hprof-cli histo` what holds its heap",
            path.display()
        );
    }
    let frameworks = args.frameworks.rules(cx)?;
    let recording = args.recording.read(cx, &args.input)?;
    let (session, (overview, found, recording, allocated)) = Session::ask(cx, &args.input, |dump| {
        let (found, beside) = match &recording {
            None => (OverviewFindings::new(dump, &frameworks)?, None),
            Some(recording) => {
                let (found, beside) = OverviewFindings::find(dump, &frameworks, |leaks| {
                    let compared = recording.add_to(leaks, cx, dump);
                    let first = leaks.conclusions.first().and_then(|one| match one.cause {
                        Cause::Suspect(at) => leaks.suspects.get(at),
                        Cause::Loaders { .. } => None,
                    });
                    (compared, first.map(AllocatedFirst::new).unwrap_or_default())
                })?;
                (found, Some(beside))
            }
        };
        let OverviewFindings { findings, places, headline, suspects, untold } = found;
        let overview = overview::overview(dump, FRAMES, findings);
        let (recording, allocated) = beside.unzip();
        Ok((overview, (places, headline, suspects, untold), recording, allocated.unwrap_or_default()))
    })?;
    let (places, headline, suspects, untold) = found;
    recording.iter().for_each(|recording| recording.warn(cx));
    let commands = Commands::new(&args.input);
    let facts = OverviewFacts {
        next: next::steps(&overview, suspects.len(), &commands),
        overview,
        places,
        untold,
        suspects,
        headline,
        recording,
        allocated,
    };
    let style = output::style(cx, &args.output);
    let is_for_terminal = style.width.is_some() && !cx.is_taking();
    // Tables in a pipe have long lines. This is one screen of sentences for people, which looks the same in a mail;
    // programs read JSON and CSV.
    let style = Style { width: style.width.or(Some(WIDTH)), ..style };
    let width = usize::from(style.width.unwrap_or(WIDTH));
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let lines = head(&facts.overview, &name, width).into_iter().chain(stack(&facts.overview, width));
    let mut above: Vec<Section> = lines.map(Section::Line).collect();
    if facts.overview.info.heap_dumps > 0 {
        above.push(Section::Line(String::new()));
        above.push(Section::Line(words::line(&facts.headline)));
        let heap_line = facts.recording.as_ref().and_then(ComparedRecording::heap_line);
        let texts = [facts.allocated.sentence.as_deref(), heap_line.as_deref()];
        above.extend(texts.into_iter().flatten().map(|text| Section::Line(words::line(text))));
    }
    let mut next = facts.next.clone();
    if cfg!(feature = "browse") && is_for_terminal {
        next.push(Commands::new(&args.input).step("browse", [], "browse the dump interactively"));
    }
    let next = commands::lines(&next, width);
    // A header of two lines, and one for the omitted rows.
    let used = |above: &[Section]| above.iter().map(|one| height(one, width)).sum::<usize>() + next.len() + 3;
    for sentence in facts.untold.iter().take(SHOWN_SUSPECTS) {
        let text = words::line(&format!("Leak suspect: {sentence}"));
        let [blank, line] = [Section::Line(String::new()), Section::Line(text)];
        if used(&above) + 1 + height(&line, width) + MIN_ROWS <= SCREEN {
            above.extend([blank, line]);
        }
    }
    if !facts.places.rows.is_empty() {
        let rows = SCREEN.saturating_sub(used(&above)).max(MIN_ROWS);
        above.push(Section::Table(facts.places.table(width, rows)));
    }
    let under = Section::Unwrapped(next);
    let outcome = ComparedRecording::outcome(facts.recording.as_ref(), session.outcome(true));
    let headline = facts.headline.clone();
    let answer = Answer::new(columns(), [facts]).with_summary(&summary_columns(), &headline);
    let answer = above.into_iter().fold(answer, Answer::with_section_above).with_section_below(under);
    let format = args.output.with_rows_in(args.output.format());
    session.show_as(cx, "overview", format, style, answer)?;
    messages::about_contents(cx, &session.heap, args.input.quiet);
    Ok(outcome)
}

/// The only row of the result.
struct OverviewFacts {
    overview: Overview,
    places: ExplainedPlaces,
    /// Verdict on the heap in one line.
    headline: String,
    /// Accumulation points, one sentence each.
    suspects: Vec<String>,
    /// Sentences about suspects that neither the headline nor the table of places describes.
    untold: Vec<String>,
    next: Vec<NextCommand>,
    recording: Option<ComparedRecording>,
    allocated: AllocatedFirst,
}

/// Lines that allocated the objects of the first conclusion, from the recording.
#[derive(Default)]
struct AllocatedFirst {
    sentence: Option<String>,
    lines: Vec<AllocatingLine>,
}

impl AllocatedFirst {
    fn new(suspect: &Suspect) -> Self {
        Self { sentence: allocated::sentence(suspect), lines: allocated::lines(suspect) }
    }
}

/// Returns the lines above the sections: name and facts of the dump, and the verdict.
fn head(overview: &Overview, name: &str, width: usize) -> Vec<String> {
    let info = &overview.info;
    let mut what: Vec<String> = vec![jvm(overview).unwrap_or_else(|| info.format.to_owned())];
    what.extend(output::timestamp(info.created_ms).map(|time| match time.get(..19) {
        Some(seconds) => format!("{} UTC", seconds.replace('T', " ")),
        None => time,
    }));
    if overview.out_of_memory.is_some() {
        what.push("OutOfMemoryError".to_owned());
    }
    let mut what = what.join(", ");
    let with_main = command(overview).map(|command| format!("{command} on {what}"));
    let with_main = with_main.filter(|what| name.chars().count() + what.chars().count() + 2 <= width);
    let is_main_said = with_main.is_some();
    what = with_main.unwrap_or(what);
    let room = width.saturating_sub(what.chars().count() + 2);
    let mut lines = vec![format!("{}: {what}", fit::middle(name, room.max(MIN_NAME)))];
    if info.heap_dumps == 0 {
        lines.push("no heap dump".to_owned());
        return lines;
    }
    let used = human_bytes(info.shallow_bytes);
    let limit = overview.heap_limit.map(|limit| format!(" of at most {}", human_bytes(limit)));
    let (objects, bytes) = overview.unreachable;
    let unreachable = format!("{} in {}", human_bytes(bytes), format_count(objects, "object"));
    let used = format!("{used}{} used, {unreachable} unreachable", limit.unwrap_or_default());
    let main = command(overview).filter(|_| !is_main_said).map(|command| format!("{command}: {used}"));
    lines.push(main.filter(|line| line.chars().count() <= width).unwrap_or(used));
    let roots: u64 = info.roots.iter().map(|(_, count)| count).sum();
    lines.push(format!(
        "{} reachable, {}, {}, {}",
        format_count(overview.reachable.0, "object"),
        format_count(roots, "root"),
        format_count(overview.threads, "thread"),
        format_count(overview.class_loaders, "class loader"),
    ));
    let mut odd = odd(overview).into_iter();
    if let Some(first) = odd.next() {
        let mut line = format!("Anomalies: {first}");
        for next in odd {
            if line.chars().count() + next.chars().count() + 2 > width {
                lines.push(format!("{line};"));
                line = format!("           {next}");
            } else {
                line = format!("{line}; {next}");
            }
        }
        lines.push(line);
    }
    lines
}

/// Returns the main class of the program.
fn command(overview: &Overview) -> Option<&str> {
    let command = property(overview, "sun.java.command")?.split_whitespace().next()?;
    Some(command).filter(|command| command.len() < 60)
}

/// Returns the JVM's name and version: `OpenJDK 17.0.15`.
fn jvm(overview: &Overview) -> Option<String> {
    let name = property(overview, "java.vm.name")?;
    let name =
        [" 64-Bit", " Server VM", " Client VM", " VM"].iter().find_map(|end| Some(name.split_once(end)?.0));
    let name = name.or_else(|| property(overview, "java.vm.name"))?;
    Some(match property(overview, "java.version") {
        Some(version) => format!("{name} {version}"),
        None => name.to_owned(),
    })
}

fn property<'o>(overview: &'o Overview, key: &str) -> Option<&'o str> {
    let properties = &overview.info.properties;
    properties.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
}

/// Returns the lines about anomalies of the dump.
fn odd(overview: &Overview) -> Vec<String> {
    let odd = &overview.found.odd;
    let mut all = Vec::new();
    let (_, garbage) = overview.unreachable;
    if garbage.saturating_mul(100) > overview.info.shallow_bytes.saturating_mul(MUCH_GARBAGE) {
        let lacking = match overview.info.extent.retained {
            RetainedSizes::OfStatedRoots => ", but may be alive",
            _ => "",
        };
        let part = percent(garbage, overview.info.shallow_bytes);
        all.push(format!("{part} of the heap is unreachable{lacking}"));
    }
    all.extend(waste_share(overview));
    if let Some(waiting) = odd.finalizer_queue.filter(|waiting| *waiting >= MANY_FINALIZABLE) {
        all.push(format!("{} wait for the finalizer", format_count(waiting, "object")));
    }
    if let Some((class, loaders)) =
        odd.most_defined.as_ref().filter(|(_, loaders)| *loaders >= MANY_LOADERS as u64)
    {
        all.push(format!("{} class loaders define {class}", group_digits(*loaders)));
    }
    all.extend(odd.generated.iter().map(|(class, loaders, classes)| {
        let own = match classes == loaders {
            true => "one class each".to_owned(),
            false => format!("{} classes", group_digits(*classes)),
        };
        format!("{} class loaders of {class} with {own}", group_digits(*loaders))
    }));
    if is_much_direct(odd.direct.bytes, overview.info.shallow_bytes) {
        let buffers = format_count(odd.direct.buffers, "buffer");
        all.push(format!("{} of direct memory in {buffers}", human_bytes(odd.direct.bytes)));
    }
    all
}

/// Returns the share of wasted memory if it is large: `45.3% of the heap is wasted, 30.7% on duplicate_strings`.
fn waste_share(overview: &Overview) -> Option<String> {
    let Estimate { kinds, wasted_bytes, all_bytes, is_exact, .. } = &overview.found.waste;
    let (kind, bytes) = kinds.iter().find(|(kind, _)| kind.is_of_reachable())?;
    let share = |bytes: u64| {
        let exact = percent(bytes, *all_bytes);
        if *is_exact { exact } else { format!("about {}", whole_percent(bytes, *all_bytes)) }
    };
    overview.is_much_wasted().then(|| {
        format!("{} of the heap is wasted, {} on {}", share(*wasted_bytes), share(*bytes), kind.name)
    })
}

/// Describes the thread that ran out of memory, with its stack.
fn stack(overview: &Overview, width: usize) -> Vec<String> {
    let Some(thread) = &overview.out_of_memory else { return Vec::new() };
    let name = thread.name.clone().unwrap_or_else(|| format!("{:#x}", thread.object));
    let mut lines = vec![String::new(), format!("Thread {} ran out of memory in", escape::quoted(&name))];
    let frames = words::own_frames(&thread.frames);
    lines.extend(frames.iter().take(SHOWN_FRAMES).map(|frame| {
        let line = format!("  {}", frame.frame);
        if line.chars().count() <= width {
            return line;
        }
        format!("  {}", cut(&frame.frame.qualified_method(), width.saturating_sub(2)))
    }));
    let shown = frames.len().min(SHOWN_FRAMES);
    let more = (frames.len() - shown) as u64 + thread.frames_left_out;
    if let (Some(last), true) = (lines.last_mut(), more > 0) {
        let text = format!("{} more {}", group_digits(more), if more == 1 { "frame" } else { "frames" });
        let used = last.chars().count() + text.len();
        if used + 3 <= width {
            last.push_str(&" ".repeat((width - used).min(8)));
            last.push_str(&text);
        }
    }
    lines.iter().map(|line| cut(line, width)).collect()
}

/// Returns the number of lines that a section takes.
fn height(section: &Section, width: usize) -> usize {
    match section {
        Section::Line(text) => fit::wrap(&escape::text(text), width, 0).len().max(1),
        _ => 1,
    }
}

/// Returns the keys at the top of the JSON document: the verdict, as in `leaks`.
fn summary_columns<'a>() -> Columns<'a, String> {
    Columns::new([Column::new(names::HEADLINE, |headline: &String| headline.as_str().into())])
}

fn columns() -> Columns<'static, OverviewFacts> {
    let counts = || [names::OBJECTS, names::SHALLOW_BYTES].map(JsonField::new).to_vec();
    let pair = |(objects, bytes): (u64, u64)| {
        record([(names::OBJECTS, objects.into()), (names::SHALLOW_BYTES, bytes.into())])
    };
    Columns::new([
        Column::new(names::HEADLINE, |facts: &OverviewFacts| (&*facts.headline).into()),
        Column::new(names::JVM_TEXT, |facts: &OverviewFacts| facts.overview.info.jvm().into())
            .or_null(nulls::UNSTATED),
        Column::new(names::MAIN, |facts: &OverviewFacts| command(&facts.overview).into())
            .or_null(nulls::UNSTATED),
        Column::new(names::CREATED, |facts: &OverviewFacts| {
            output::timestamp(facts.overview.info.created_ms).into()
        })
        .or_null(nulls::UNSTATED),
        Column::new(names::SHALLOW_BYTES, |facts: &OverviewFacts| facts.overview.info.shallow_bytes.into()),
        Column::new(names::HEAP_LIMIT_BYTES, |facts: &OverviewFacts| facts.overview.heap_limit.into())
            .or_null("the dump does not say, or `-XX:MaxDirectMemorySize` was smaller"),
        Column::with_fields(names::REACHABLE, counts(), move |facts: &OverviewFacts| {
            pair(facts.overview.reachable)
        }),
        Column::with_fields(names::UNREACHABLE, counts(), move |facts: &OverviewFacts| {
            pair(facts.overview.unreachable)
        }),
        Column::new(names::GC_ROOTS_TOTAL, |facts: &OverviewFacts| {
            facts.overview.info.roots.iter().map(|(_, count)| count).sum::<u64>().into()
        }),
        Column::new(names::THREADS, |facts: &OverviewFacts| facts.overview.threads.into()),
        Column::new(names::CLASS_LOADERS, |facts: &OverviewFacts| facts.overview.class_loaders.into()),
        Column::record(names::OUT_OF_MEMORY, out_of_memory(), |facts: &OverviewFacts| {
            facts.overview.out_of_memory.clone()
        })
        .csv(|facts: &OverviewFacts| {
            let thread = facts.overview.out_of_memory.as_ref();
            thread.map(|thread| thread.name.clone().unwrap_or_else(|| format!("{:#x}", thread.object))).into()
        })
        .or_null("none did"),
        Column::records(names::LARGEST, largest_columns(), |facts: &OverviewFacts| {
            &facts.overview.found.largest
        })
        .csv(|facts: &OverviewFacts| {
            let text = |holder: &Holder| {
                format!("{} {}", holder.retained_bytes, holder::text(holder, [false, false]))
            };
            join_texts(facts.overview.found.largest.iter().map(text))
        }),
        Column::records(names::PLACES, explained::columns(), |facts: &OverviewFacts| &facts.places.rows).csv(
            |facts: &OverviewFacts| {
                let text = |row: &ExplainedRow| format!("{} {}", row.retained_bytes, row.text);
                join_texts(facts.places.rows.iter().map(text))
            },
        ),
        Column::new(names::SUSPECTS, |facts: &OverviewFacts| list(facts.suspects.iter().map(String::as_str)))
            .csv(|facts: &OverviewFacts| join_texts(facts.suspects.iter().cloned())),
        Column::records(names::ALLOCATED_IN, allocated::columns(), |facts: &OverviewFacts| {
            &facts.allocated.lines
        })
        .csv(|facts: &OverviewFacts| join_texts(facts.allocated.lines.iter().map(AllocatingLine::frame))),
        Column::record(names::RECORDING, ComparedRecording::columns(), |facts: &OverviewFacts| {
            facts.recording.clone()
        })
        .csv(|facts: &OverviewFacts| facts.recording.as_ref().map(ComparedRecording::path).into())
        .or_null(nulls::NONE),
        Column::new(names::FINALIZER_QUEUE, |facts: &OverviewFacts| {
            facts.overview.found.odd.finalizer_queue.into()
        })
        .or_null(nulls::UNSTATED),
        Column::new(names::DIRECT_MEMORY.dot(names::BUFFERS), |facts: &OverviewFacts| {
            facts.overview.found.odd.direct.buffers.into()
        }),
        Column::new(names::DIRECT_MEMORY.dot(names::CAPACITY_BYTES), |facts: &OverviewFacts| {
            facts.overview.found.odd.direct.bytes.into()
        }),
        Column::new(names::DUPLICATE_CLASSES.dot(names::NAMES), |facts: &OverviewFacts| {
            facts.overview.found.odd.duplicate_classes.into()
        }),
        Column::new(names::DUPLICATE_CLASSES.dot(names::CLASS), |facts: &OverviewFacts| {
            facts.overview.found.odd.most_defined.as_ref().map(|(class, _)| class.as_str()).into()
        })
        .or_null(nulls::NONE),
        Column::new(names::DUPLICATE_CLASSES.dot(names::LOADERS), |facts: &OverviewFacts| {
            facts.overview.found.odd.most_defined.as_ref().map(|(_, loaders)| *loaders).into()
        })
        .or_null(nulls::NONE),
        Column::new(names::WASTE.dot(names::WASTED_BYTES), |facts: &OverviewFacts| {
            facts.overview.found.waste.wasted_bytes.into()
        }),
        Column::new(names::WASTE.dot(names::IS_EXACT), |facts: &OverviewFacts| {
            facts.overview.found.waste.is_exact.into()
        }),
        Column::new(names::WASTE.dot(names::KIND), |facts: &OverviewFacts| {
            facts.overview.found.waste.kinds.first().map(|(kind, _)| kind.name).into()
        })
        .or_null("nothing is wasted"),
        Column::new(names::WASTE.dot(names::KIND_BYTES), |facts: &OverviewFacts| {
            facts.overview.found.waste.kinds.first().map(|(_, bytes)| *bytes).into()
        })
        .or_null("nothing is wasted"),
        Column::new(names::ODD, |facts: &OverviewFacts| list(odd(&facts.overview)))
            .csv(|facts: &OverviewFacts| join_texts(odd(&facts.overview))),
        Column::records(names::NEXT, next(), |facts: &OverviewFacts| &facts.next)
            .csv(|facts: &OverviewFacts| join_texts(facts.next.iter().map(|step| step.command.clone()))),
    ])
}

/// Joins several texts into one CSV cell.
fn join_texts(texts: impl IntoIterator<Item = String>) -> Value<'static> {
    texts.into_iter().collect::<Vec<_>>().join("; ").into()
}

fn next<'c>() -> Columns<'c, NextCommand> {
    Columns::new([
        Column::new(names::COMMAND, |step: &NextCommand| (&step.command).into()),
        Column::new(names::WHY, |step: &NextCommand| (&step.why).into()),
    ])
}

fn out_of_memory<'c>() -> Columns<'c, JavaThread> {
    Columns::new([
        Column::new(names::OBJECT, |thread: &JavaThread| id(thread.object)),
        Column::new(names::NAME, |thread: &JavaThread| thread.name.as_ref().into()).or_null(nulls::UNSTATED),
        Column::new(names::RETAINED_BYTES, |thread: &JavaThread| thread.retained_bytes.into())
            .or_null(nulls::UNREACHABLE),
        Column::new(names::STACK, |thread: &JavaThread| {
            list(words::own_frames(&thread.frames).iter().map(|frame| frame.frame.to_string()))
        }),
        Column::new(names::FRAMES_LEFT_OUT, |thread: &JavaThread| thread.frames_left_out.into()),
    ])
}

fn largest_columns<'c>() -> Columns<'c, Holder> {
    const UNKNOWN: &str = "there is none, or it is not known";
    Columns::new([
        Column::new(names::OBJECT, |holder: &Holder| id(holder.object)),
        Column::new(names::CLASS, |holder: &Holder| holder.class.as_ref().into())
            .or_null(nulls::CLASS_MISSING),
        Column::new(names::LABEL, |holder: &Holder| holder.label.as_ref().into()).or_null(nulls::NO_LABEL),
        Column::new(names::INSTANCES, |holder: &Holder| holder.instances.into()),
        Column::new(names::THREADS_NAME, |holder: &Holder| {
            holder.threads.as_ref().and_then(|threads| threads.name.as_ref()).into()
        })
        .or_null("the row is not of threads, or they have no name"),
        Column::new(names::THREADS_METHOD, |holder: &Holder| {
            holder.threads.as_ref().and_then(|threads| threads.method.as_ref()).into()
        })
        .or_null("the row is not of threads, or they have no stack"),
        Column::new(names::RETAINED_BYTES, |holder: &Holder| holder.retained_bytes.into()),
        Column::new(names::FIELD, |holder: &Holder| holder.field.as_ref().map(|field| &field.name).into())
            .or_null(UNKNOWN),
        Column::new(names::IS_STATIC, |holder: &Holder| {
            holder.field.as_ref().map(|field| field.is_static).into()
        })
        .or_null(UNKNOWN),
        Column::new(names::HOLDER, |holder: &Holder| id(holder.field.as_ref().map(|field| field.object)))
            .or_null(UNKNOWN),
        Column::new(names::HOLDER_CLASS, |holder: &Holder| {
            holder.field.as_ref().map(|field| &field.class).into()
        })
        .or_null(UNKNOWN),
        Column::new(names::HELD_OBJECTS, |holder: &Holder| {
            holder.held.as_ref().map(|held| held.objects).into()
        })
        .or_null(UNKNOWN),
        Column::new(names::HELD_CLASS, |holder: &Holder| holder.held.as_ref().map(|held| &held.class).into())
            .or_null(UNKNOWN),
        Column::new(names::TEXT, |holder: &Holder| holder::text(holder, [false, false]).into()),
    ])
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    vec![ResultSchema {
        command: "overview",
        variant: "",
        about: "Exactly one row. `hprof-cli DUMP` is short for it.",
        rows: columns().fields(),
        summary: summary_columns().fields(),
    }]
}
