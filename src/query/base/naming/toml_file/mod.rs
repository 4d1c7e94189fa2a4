//! Reader of rules files: TOML in which every key must be known. All errors of a file are reported, each with its line and
//! column.

mod source;
mod table;
#[cfg(test)]
mod tests;

use std::cell::RefCell;

use toml::de::DeTable;
pub use toml::de::DeValue;

use source::TomlSource;
pub use source::{TomlErrors, position, quoted};
pub use table::{TomlTable, TomlText};

/// Maximum size of a file in bytes, far above that of a real one.
pub const MAX_BYTES: usize = 1 << 20;

/// Parses a file and calls `read` with the table that contains all others.
///
/// # Errors
/// The errors that `read` reports. If the file is not TOML or is too long, `read` is not called.
pub fn read<T>(text: &str, file: &str, read: impl FnOnce(&TomlTable<'_>) -> T) -> Result<T, TomlErrors> {
    let source = TomlSource { text, errors: RefCell::default() };
    if text.len() > MAX_BYTES {
        source.report(0, "the file is larger than 1 MiB");
        return Err(source.into_errors(file));
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        source.report_syntax(&errors);
        return Err(source.into_errors(file));
    }
    let root = TomlTable {
        source: &source,
        table: table.get_ref(),
        at: 0,
        path: String::new(),
        place: "the file".to_owned(),
    };
    let value = read(&root);
    if root.has_errors() { Err(source.into_errors(file)) } else { Ok(value) }
}
