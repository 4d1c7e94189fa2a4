//! Names: how they are written, matched, suggested, and compared over dumps.

pub mod object_id;
pub mod pattern;
pub mod stable_names;
pub mod suggestions;
pub mod toml_file;
