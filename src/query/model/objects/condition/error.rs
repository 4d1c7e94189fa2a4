//! Errors for conditions that cannot hold for any object of the given classes.

/// Reason why a condition cannot hold for any object of the given classes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// No class has the field.
    #[error("{condition}: no field `{name}` in {class}{fields}")]
    NoField {
        /// The condition.
        condition: String,
        /// The field.
        name: String,
        /// One of the classes.
        class: String,
        /// List of existing fields, as text.
        fields: String,
    },
    /// A field in the middle of a path is not a reference.
    #[error("{condition}: `{name}` is {kind}, which has no fields")]
    NoReference {
        /// The condition.
        condition: String,
        /// The field.
        name: String,
        /// Type of the field.
        kind: &'static str,
    },
    /// The field has another type.
    #[error("{condition}: `{name}` is {kind}, but `{value}` is not{hint}")]
    Type {
        /// The condition.
        condition: String,
        /// The field.
        name: String,
        /// Type of the field.
        kind: &'static str,
        /// The value.
        value: String,
        /// Hint about another possible mistake.
        hint: &'static str,
    },
}
