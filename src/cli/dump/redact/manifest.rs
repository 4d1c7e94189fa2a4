//! The manifest: a JSON file next to a redacted dump that describes the redaction.

use std::borrow::Cow;
use std::path::Path;

use serde_json::{Value, json};

use hprof_query::redact::KeptReason;
use hprof_query::redact::proof::ProofRow;

use super::{RedactionResult, WhatGoes};

/// Data of a manifest.
pub(crate) struct Manifest<'a> {
    /// Name of the input file.
    pub(crate) input: Cow<'a, str>,
    pub(crate) done: &'a RedactionResult,
    pub(crate) output: &'a Path,
    pub(crate) output_bytes: u64,
    pub(crate) output_hash: &'a str,
    pub(crate) what: &'a WhatGoes,
    /// Rows of the proof; `None` if no proof was requested.
    pub(crate) proof: Option<&'a [ProofRow]>,
}

/// Returns the text of the manifest.
pub(crate) fn text(result: &Manifest<'_>) -> String {
    let (args, done) = (result.what, result.done);
    let counts = &done.redacted.counts;
    let kept: serde_json::Map<String, Value> = KeptReason::ALL
        .iter()
        .map(|reason| (reason.name().to_owned(), counts.arrays_kept.get(reason).copied().unwrap_or(0).into()))
        .collect();
    let manifest = json!({
        "manifest_version": 1,
        "program": concat!("hprof-cli ", env!("CARGO_PKG_VERSION")),
        "input": {
            "file": result.input,
            "bytes": done.input_bytes,
            "xxh3_128": done.input_hash,
            "read": if done.is_pipe { "once, as a pipe" } else { "twice, as a file" },
        },
        "output": {
            "file": result.output.file_name().map(|name| name.to_string_lossy()),
            "bytes": result.output_bytes,
            "xxh3_128": result.output_hash,
            "unpacked_bytes": done.redacted.written,
        },
        "options": {
            // Patterns of texts may contain the names that `--classes` hides.
            "keep": args.classes.is_empty().then_some(&args.keep),
            "keep_patterns": args.keep.len(),
            "thread_names": args.thread_names || done.is_pipe,
            "properties": if done.is_pipe { "all mapped" } else { "mapped except public ones" },
            "lines": args.lines,
            "strict_numbers": args.strict_numbers,
            "zero": args.zero,
            "break_equality": args.break_equality,
            "class_patterns": args.classes.len(),
            "answers_that_suffer": args.strict_numbers.then(hprof_query::redact::finer_answers),
            "key": if args.key.is_some() { "kept in a file: whoever has it can undo the redaction" } else { "random, not kept" },
        },
        "counts": {
            "arrays": counts.arrays,
            "arrays_mapped": counts.arrays_mapped,
            "arrays_of_one_value_mapped": counts.arrays_repeated,
            "arrays_without_values": counts.arrays_without_values,
            "arrays_kept": kept,
            "numbers_mapped": counts.numbers_mapped,
            "numbers_kept": counts.numbers_kept,
            "hashes_mapped": counts.hashes_mapped,
            "classes_renamed": done.redacted.renames.old_names().len(),
            "symbols_renamed": counts.symbols_renamed,
            "symbols_mapped": counts.symbols_mapped,
            "symbols_kept": counts.symbols_kept,
            "lines_removed": counts.lines_removed,
            "instances_of_unknown_classes": counts.unknown_instances,
            "damaged_regions": counts.damaged_regions,
            "lost_from_offset": done.redacted.end.lost_from,
            "packed_error": done.packed_error,
        },
        "notes": [
            "cached hash codes no longer match the texts or the buckets of hash tables",
            if args.break_equality {
                "lengths are the same: see docs/redact.md for what this reveals"
            } else {
                "equal contents are equal and lengths are the same: see docs/redact.md for what this reveals"
            },
            "Strings that share a char[] (up to JDK 6) are no longer equal to Strings with the same text in another array",
        ],
        "proof": result.proof.map(|rows| {
            let row = |row: &ProofRow| json!({
                "what": row.what,
                "equal": row.is_equal(),
                "differences": row.differences,
                "allowed": row.allowed,
                "allowed_because": row.reason,
                "numbers_that_stay": row.kept.iter().map(|kept| kept.count).sum::<u64>(),
                "fields_of_these": row.kept.len(),
            });
            rows.iter().map(row).collect::<Vec<_>>()
        }),
    });
    format!("{manifest:#}\n")
}
