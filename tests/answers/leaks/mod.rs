//! The answers of `leaks`: suspects and accumulation points against Eclipse MAT's, verdicts against what was planted.

mod below;
mod containers;
mod groups;
mod headlines;
mod judgement;
mod loaders;
mod made;
mod mat;
mod program;
mod rules;
mod truth;
mod verdicts;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::kit::dump::Dump;

/// The dumps of leaking programs with MAT's suspects that are in `samples/leaks`.
const DUMPS: [&str; 4] = ["s1", "s3", "s4", "s5"];

/// More of them, which are not in the repository; `HPROF_CLI_LEAK_DUMPS` names their directory.
const MORE_DUMPS: [&str; 5] = ["s2", "s6", "s7-t1", "s7-t2", "s7-t3"];

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/leaks")
}

/// Returns the directory of the other dumps.
fn more_samples() -> PathBuf {
    std::env::var_os("HPROF_CLI_LEAK_DUMPS").expect("HPROF_CLI_LEAK_DUMPS names a directory").into()
}

/// A dump in one of these directories.
fn sample(dir: &Path, name: &str) -> Dump {
    Dump::sample(&dir.join(format!("{name}.hprof.zst")))
}

/// Answer of `leaks`.
struct Leaks {
    code: i32,
    total: Value,
    /// Suspects by MAT's rules.
    rows: Vec<Value>,
    /// Suspects within holders, and those that frameworks' rules find.
    below: Vec<Value>,
}

impl Leaks {
    fn of(dump: &Dump) -> Self {
        Self::above(dump, 10)
    }

    fn above(dump: &Dump, percent: u64) -> Self {
        let output = dump.run(&["leaks", "--threshold", &percent.to_string(), "--format", "json"]);
        let code = output.status.code().unwrap();
        assert!(matches!(code, 0 | 1), "{output:?}");
        let mut answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let Value::Array(rows) = answer["rows"].take() else { panic!("{answer}") };
        let is_of_mat: fn(&Value) -> bool = |row| row["rule"] == "mat";
        // MAT's come first, in its order.
        assert!(rows.is_sorted_by_key(|row| !is_of_mat(row)));
        let (mut rows, mut below): (Vec<Value>, Vec<Value>) = rows.into_iter().partition(is_of_mat);
        // The verdict on what MAT finds is in a row of its own, unless it is a holder.
        for row in &mut rows {
            assert!(row["verdict"].is_null() && row["evidence"] == Value::Array(Vec::new()), "{row}");
            let is_it = |other: &&mut Value| {
                let keys =
                    ["kind", "what", "class", "object", "objects", "retained_bytes", "accumulation_point"];
                other["rule"] == "below" && keys.iter().all(|key| row[*key] == other[*key])
            };
            let judged = below.extract_if(.., |other| is_it(&other)).next();
            match judged {
                Some(judged) => {
                    let (rule, mat_verdict) = (row["rule"].take(), row["mat_verdict"].take());
                    *row = judged;
                    (row["rule"], row["mat_verdict"]) = (rule, mat_verdict);
                }
                None => row["verdict"] = Value::from("holder"),
            }
        }
        Self { code, total: answer["total"].take(), rows, below }
    }

    /// The only row.
    fn one(dump: &Dump) -> Value {
        let leaks = Self::of(dump);
        assert_eq!(leaks.rows.len(), 1, "{:#?}", leaks.rows);
        let row = leaks.rows.into_iter().next().unwrap();
        let accumulates = |row: &Value| row["verdict"] == "accumulation";
        assert_eq!(
            leaks.code,
            i32::from(!accumulates(&row) && !leaks.below.iter().any(accumulates)),
            "{row}"
        );
        row
    }
}

/// An object ID in JSON.
fn id(value: &Value) -> u64 {
    let text = value.as_str().and_then(|text| text.strip_prefix("0x"));
    u64::from_str_radix(text.unwrap_or_else(|| panic!("{value} is no ID")), 16).unwrap()
}

/// An object ID in JSON, or null.
fn optional_id(value: &Value) -> Option<u64> {
    (!value.is_null()).then(|| id(value))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}
