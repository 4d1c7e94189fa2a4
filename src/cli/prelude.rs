//! Names that nearly every command uses: `use crate::cli::prelude::*;`.
//!
//! It contains only re-exports. `tests/commands/imports.rs` counts those that a file uses as its imports; the files of
//! [`super::shared`] import each name themselves, as the modules here depend on them.

pub(crate) use crate::cli::Outcome;
pub(crate) use crate::cli::shared::args::{Input, Output, OutputFormat};
pub(crate) use crate::cli::shared::context::RunContext;
pub(crate) use crate::cli::shared::keys::{Keyword, keys};
pub(crate) use crate::cli::shared::limit::Top;
pub(crate) use crate::cli::shared::session::{AnswerSource, Session};
pub(crate) use hprof_query::dictionary::{names, nulls};
pub(crate) use hprof_report::Format;
pub(crate) use hprof_report::answer::{Answer, NoRows, ResultSchema, Section};
pub(crate) use hprof_report::column::{Align, Column, Columns, Fit, TableColumn};
pub(crate) use hprof_report::number::{group_digits, human_bytes, percent};
pub(crate) use hprof_report::value::Value;
