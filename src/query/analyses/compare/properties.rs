//! Comparison of the JVM's system properties.

use rustc_hash::FxHashMap;

use hprof_index::model::summary::Summary;

use hprof_base::change::Status;
use hprof_base::sorting::SortRows;

/// System properties of one dump by key: only those that a summary stores, which are not secret.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PropertyCensus(FxHashMap<String, String>);

/// Row of a comparison of system properties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PropertyChange {
    /// Key of the property.
    pub key: String,
    /// Status of the property: new, gone, changed or the same.
    pub status: Status,
    /// Value in the old dump, if present.
    pub old: Option<String>,
    /// Value in the new dump, if present.
    pub new: Option<String>,
}

impl PropertyCensus {
    /// Reads the properties of a dump.
    pub fn new(summary: &Summary) -> Self {
        Self(summary.properties().map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }

    /// Returns whether there are no properties.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Matches an old dump and a new one; rows are ascending by key.
    pub fn compare(old: &Self, new: &Self) -> Vec<PropertyChange> {
        let mut rows: Vec<PropertyChange> = super::join_by_key(&old.0, &new.0)
            .map(|(key, before, after)| PropertyChange {
                key: key.clone(),
                status: Status::from_presence(before.is_some(), after.is_some(), before == after),
                old: before.cloned(),
                new: after.cloned(),
            })
            .collect();
        rows.sort_rows_by(|a, b| a.key.cmp(&b.key));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn census(values: &[(&str, &str)]) -> PropertyCensus {
        PropertyCensus(values.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn values_are_compared_by_key() {
        let old = census(&[("os.name", "Linux"), ("java.version", "17"), ("jdk.debug", "release")]);
        let new = census(&[("os.name", "Linux"), ("java.version", "21"), ("user.dir", "/srv")]);
        let rows = PropertyCensus::compare(&old, &new);
        let told: Vec<_> = rows
            .iter()
            .map(|row| (row.key.as_str(), row.status, row.old.as_deref(), row.new.as_deref()))
            .collect();
        assert_eq!(
            told,
            [
                ("java.version", Status::Changed, Some("17"), Some("21")),
                ("jdk.debug", Status::Gone, Some("release"), None),
                ("os.name", Status::Same, Some("Linux"), Some("Linux")),
                ("user.dir", Status::New, None, Some("/srv")),
            ]
        );
    }
}
