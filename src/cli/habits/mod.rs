//! Command lines that were written for other tools: jhat, jmap, jcmd, Eclipse MAT, VisualVM and others. Each is answered with
//! the line that does the same here, with the files, objects and processes that the user gave; none is run.
//!
//! `names` lists commands, `flags` options; `given` reads a line, `answer` writes ours. `correction` is of lines that begin with one of
//! our commands but go on with the options of another tool.

mod agent;
mod answer;
mod correction;
mod flags;
mod given;
mod memory;
mod names;
mod own_options;

pub(super) use answer::{is_recording, translation};
pub(super) use correction::{Mistake, hint, mistake};
pub(super) use given::is_dump;
