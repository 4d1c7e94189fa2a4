//! Code that commands share: arguments, opening, stdout and stderr.

pub(crate) mod advice;
pub(crate) mod args;
pub(crate) mod beside_recording;
pub(crate) mod color;
pub(crate) mod commands;
pub(crate) mod containers;
pub(crate) mod context;
#[cfg(target_os = "linux")]
pub(crate) mod doors;
pub(crate) mod durations;
pub(crate) mod frameworks;
pub(crate) mod heap_columns;
pub(crate) mod hiding;
pub(crate) mod holder;
#[cfg(target_os = "linux")]
mod jvm_advice;
pub(crate) mod key_file;
pub(crate) mod keys;
pub(crate) mod limit;
pub(crate) mod messages;
pub(crate) mod not_recorded;
pub(crate) mod object;
pub(crate) mod object_columns;
pub(crate) mod output;
pub(crate) mod paths;
pub(crate) mod query_text;
pub(crate) mod recording;
pub(crate) mod rules_file;
pub(crate) mod session;
pub(crate) mod several;
pub(crate) mod signals;
pub(crate) mod spool;
pub(crate) mod stack;
pub(crate) mod terminal;
pub(crate) mod unreachable;
pub(crate) mod worker;
