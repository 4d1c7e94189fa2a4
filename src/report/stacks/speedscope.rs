//! Weighted stacks in the JSON format of <https://www.speedscope.app>, as one profile of type `sampled`.
//!
//! Every stack is a sample with a weight. Lists are generated as they are written.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;

use crate::escape;
use crate::stream::StreamedList;
use hprof_query::recordings::stacks::{Label, Measure, Stacks};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a, F, P> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: &'static str,
    name: &'a str,
    active_profile_index: u8,
    shared: SharedFrames<F>,
    profiles: [P; 1],
}

#[derive(Serialize)]
struct SharedFrames<F> {
    frames: F,
}

#[derive(Serialize)]
struct Frame<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

impl<'a> Frame<'a> {
    fn new(label: &'a Label) -> Self {
        Self {
            name: escape::text(&label.text),
            file: label.source.as_deref().map(escape::text),
            line: label.line,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SampledProfile<'a, S, W> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    samples: S,
    weights: W,
}

/// Writes the document.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(out: &mut dyn Write, stacks: &Stacks, title: &str) -> io::Result<()> {
    let title = escape::text(title);
    let mut path: Vec<u32> = Vec::new();
    let samples = stacks.walk(|_| true).filter_map(|step| {
        path.truncate(step.depth);
        path.push(step.label);
        (step.rest > 0).then(|| path.clone())
    });
    let weights = stacks.walk(|_| true).map(|step| step.rest).filter(|weight| *weight > 0);
    let file = File {
        schema: SCHEMA,
        exporter: "hprof-cli",
        name: &title,
        active_profile_index: 0,
        shared: SharedFrames { frames: StreamedList::new(stacks.labels().iter().map(Frame::new)) },
        profiles: [SampledProfile {
            kind: "sampled",
            name: &title,
            unit: match stacks.measure {
                Measure::Samples | Measure::PercentHundredths | Measure::Objects => "none",
                Measure::Milliseconds => "milliseconds",
                Measure::Bytes => "bytes",
            },
            start_value: 0,
            end_value: stacks.total,
            samples: StreamedList::new(samples),
            weights: StreamedList::new(weights),
        }],
    };
    serde_json::to_writer(&mut *out, &file)?;
    out.write_all(b"\n")
}
