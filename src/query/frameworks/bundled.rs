//! The files of rules that are compiled in.

/// Name and text of each file.
pub(super) const BUNDLED: &[(&str, &str)] = &[("tomcat.toml", include_str!("rules/tomcat.toml"))];
