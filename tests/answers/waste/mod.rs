//! The answers of `waste`: heaps in which all that is wasted is known, real dumps against naive readings of them, and
//! planted waste.

mod collections;
mod estimate;
mod kinds;
pub mod made;
mod samples;
mod truth;

use serde_json::Value;

use crate::kit::dump::Dump;

/// Answer of `waste`.
pub struct Waste {
    pub code: i32,
    pub total: Value,
    pub rows: Vec<Value>,
}

/// A kind: how many objects, and what would be freed.
type Sum = (u64, u64);

impl Waste {
    pub fn of(dump: &Dump) -> Self {
        Self::with(dump, &[])
    }

    pub fn with(dump: &Dump, arguments: &[&str]) -> Self {
        let output = dump.run(&[&["waste", "-q", "--format", "json"], arguments].concat());
        let code = output.status.code().unwrap();
        assert!(matches!(code, 0 | 1 | 3), "{output:?}");
        let mut answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let Value::Array(rows) = answer["rows"].take() else { panic!("{answer}") };
        Self { code, total: answer["total"].take(), rows }
    }

    pub fn row(&self, kind: &str) -> Option<&Value> {
        self.rows.iter().find(|row| row["kind"] == kind)
    }

    /// Count and bytes of a kind; zeros if there is none.
    pub fn sum(&self, kind: &str) -> Sum {
        self.row(kind).map_or((0, 0), sum)
    }

    pub fn added(&self, kind: &str) -> u64 {
        self.row(kind).map_or(0, |row| row["added_bytes"].as_u64().unwrap())
    }

    /// Fields of a kind, most bytes first.
    pub fn fields(&self, kind: &str) -> Vec<(Option<String>, Sum)> {
        let fields = self.row(kind).into_iter().flat_map(|row| row["fields"].as_array().unwrap());
        fields.map(|field| (field["field"].as_str().map(str::to_owned), sum(field))).collect()
    }

    /// Count and bytes that a field holds of a kind.
    pub fn field(&self, kind: &str, name: &str) -> Sum {
        let fields = self.fields(kind);
        let mut found = fields.iter().filter(|(field, _)| field.as_deref() == Some(name));
        found.next().map_or((0, 0), |(_, sum)| *sum)
    }

    /// Returns one of the parts of a kind.
    pub fn part(&self, kind: &str, what: &str) -> Sum {
        let mut parts = self.row(kind).into_iter().flat_map(|row| row["parts"].as_array().unwrap());
        parts.find(|part| part["what"] == what).map_or((0, 0), sum)
    }
}

fn sum(row: &Value) -> Sum {
    (row["objects"].as_u64().unwrap(), row["wasted_bytes"].as_u64().unwrap())
}
