//! Queries on an open heap, answered as plain data: no text, no terminal.
//!
//! A facade over the crates that answer them: `hprof_base`, `hprof_model`, `hprof_recordings`, `hprof_analyses`,
//! `hprof_redact` and `hprof_tables`, each of which sees only some of those before it. Renderers are in the crate above,
//! `hprof-report`.

pub use hprof_analyses::{check, compare, containers, frameworks, leaks, oql, overview, secrets, waste};
pub use hprof_base::{change, dictionary, fact, kept, keyed, naming, share};
pub use hprof_model::{
    dominators, dump, framework_rules, generated_loaders, heap_facts, histogram, loaders, objects, paths,
    refs, show, strings, threads,
};
pub use hprof_recordings as recordings;
pub use hprof_redact as redact;
pub use hprof_redact::recover;
pub use hprof_tables as tables;
#[cfg(feature = "sql")]
pub use hprof_tables::sql;
