//! `waste`: wasted memory by kind and by the fields that reference it.

mod columns;
mod explain;
mod screen;

use std::sync::LazyLock;

use hprof_query::waste::{self, FieldGroupBy, KINDS, Waste, WasteKind, WasteQuery};

use crate::cli::prelude::*;
use crate::cli::shared::commands;
use crate::cli::shared::messages;
use crate::cli::shared::output;
use crate::cli::shared::session::ensure_values;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli waste heap.hprof
  hprof-cli waste heap.hprof --kind duplicate-strings --top 10
  hprof-cli waste heap.hprof --group-by package
  hprof-cli waste heap.hprof --format csv > waste.csv
  hprof-cli waste --explain sparse-collections";

/// Number of examples of each kind.
const EXAMPLE_COUNT: usize = 5;

/// Values of `--group-by`.
const GROUP_BY: &[Keyword<FieldGroupBy>] = &[
    ("field", FieldGroupBy::Field, "The field that references the wasted memory"),
    ("class", FieldGroupBy::Class, "The class that declares that field"),
    ("loader", FieldGroupBy::Loader, "The class loader of that class"),
    ("package", FieldGroupBy::Package, "The package of that class"),
];

/// Values of `--kind` and `--explain`: the kinds of waste.
static WORDS: LazyLock<Vec<Keyword<&WasteKind>>> = LazyLock::new(|| {
    let word = |kind: &'static WasteKind| -> Keyword<&WasteKind> {
        (kind.name.replace('_', "-").leak(), kind, kind.summary)
    };
    KINDS.into_iter().map(word).collect()
});

/// Find wasted memory
///
/// Finds duplicate strings and arrays, empty and sparse collections, boxed numbers, constant fields and more, each with
/// the fields that reference the waste. The bytes of a kind are exactly what fixing it alone would free, in the object
/// layout of the JVM; the total is what fixing all kinds would free, and counts no byte twice. Only reachable objects
/// count, except for the kind `unreachable`. The exit code is 1 if nothing is wasted. Builds the index on first use.
#[derive(Debug, clap::Args)]
#[command(mut_arg("dump", without_dump))]
pub(crate) struct WasteArgs {
    #[command(flatten)]
    input: Input,

    /// Only these kinds of waste
    #[arg(
        long,
        value_name = "KIND,...",
        value_parser = keys(&WORDS),
        value_delimiter = ',',
        hide_possible_values = true,
        help_heading = "Filter"
    )]
    kind: Vec<&'static WasteKind>,

    /// Group rows by KEY
    #[arg(
        long,
        value_name = "KEY",
        value_parser = keys(GROUP_BY),
        default_value = "field",
        help_heading = "Output"
    )]
    group_by: FieldGroupBy,

    /// Explain a kind of waste: its definition, when it is harmless, and how to avoid it
    #[arg(long, value_name = "KIND", value_parser = keys(&WORDS), help_heading = "Output")]
    explain: Option<&'static WasteKind>,

    #[command(flatten)]
    top: Top,

    #[command(flatten)]
    output: Output,
}

/// Makes the argument for the dump optional, as `--explain` needs none; the placeholder value is ignored.
fn without_dump(dump: clap::Arg) -> clap::Arg {
    let explains = clap::builder::ArgPredicate::IsPresent;
    dump.required(false).required_unless_present("explain").default_value_if("explain", explains, "-")
}

pub(crate) fn run(cx: &RunContext, args: &WasteArgs) -> anyhow::Result<Outcome> {
    if let Some(kind) = args.explain {
        explain::show(cx, kind)?;
        return Ok(Outcome::Fine);
    }
    let input = &args.input;
    let question = WasteQuery { kinds: args.kind.clone(), group_by: args.group_by, examples: EXAMPLE_COUNT };
    let (session, found) = Session::ask(cx, input, |dump| {
        ensure_values(dump.heap, "it cannot be told what is duplicate, empty or unused")?;
        Ok(waste::waste(dump, &question)?)
    })?;
    cx.for_each_format(args.output.format(), |cx, format| show(cx, args, &session, &found, format))?;
    messages::about_contents(cx, &session.heap, input.quiet);
    Ok(session.outcome(!found.rows.is_empty()))
}

/// Shows waste in a format.
fn show(
    cx: &RunContext,
    args: &WasteArgs,
    session: &Session,
    found: &Waste,
    format: Format,
) -> anyhow::Result<()> {
    let top = args.top.rows(format);
    match (format, &args.kind[..]) {
        (Format::Csv, _) => {
            let answer =
                Answer::new(columns::flat(), columns::flat_rows(found, top)).if_empty(NoRows::Nothing);
            session.show_in(cx, "waste", &args.output, format, answer)?;
        }
        (Format::Table, [_]) => screen::one_kind(cx, session, &args.output, found, args.group_by, top)?,
        (format, _) => {
            let is_table = format == Format::Table;
            // In a table kinds are rows, and only the first field of each is shown.
            let kinds = if is_table { top.unwrap_or(usize::MAX) } else { usize::MAX };
            let rows = found.rows.iter().take(kinds).map(|row| columns::WasteLine { waste: found, row, top });
            let mut answer = Answer::new(columns::columns(args.group_by), rows)
                .matching(found.rows.len() as u64, "kinds")
                .with_summary(&columns::summary_columns(), &found)
                .if_empty(NoRows::Nothing);
            if is_table {
                let width = output::style(cx, &args.output).width.map_or(usize::MAX, usize::from);
                answer = answer.with_section_above(Section::Line(screen::headline(found)));
                let steps = screen::next(&args.input, found);
                if !steps.is_empty() {
                    answer = answer.with_section_below(Section::Unwrapped(commands::lines(&steps, width)));
                }
            }
            session.show_in(cx, "waste", &args.output, format, answer)?;
        }
    }
    Ok(())
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    vec![ResultSchema {
        command: "waste",
        variant: "",
        about: "A row is a kind of waste, those that would save most first; [waste.md](waste.md) defines the kinds. \
                CSV has a row for each kind and field: `kind`, `field`, `is_static`, `loader_object`, `objects`, \
                `wasted_bytes`; a kind without fields has one row. The exit code is 1 if there are no rows.",
        rows: columns::columns(FieldGroupBy::Field).fields(),
        summary: columns::summary_columns().fields(),
    }]
}
