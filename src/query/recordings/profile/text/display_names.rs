//! Names of a text report, in the forms in which they are shown.

use hprof_parser::text::event::MonitorName;
use hprof_parser::text::rfc3339;
use hprof_parser::{mutf8, names};

/// Text.
pub(super) fn text(bytes: &[u8]) -> String {
    mutf8::decode(bytes).into_owned()
}

/// A class in Java source form.
pub(super) fn class(bytes: &[u8]) -> String {
    names::java_class_name(&mutf8::decode(bytes))
}

/// A class and a method, the class in Java source form.
pub(super) fn method(bytes: &[u8]) -> String {
    let text = mutf8::decode(bytes);
    match text.rsplit_once('.') {
        Some((class, method)) => format!("{}.{method}", names::java_class_name(class)),
        None => text.into_owned(),
    }
}

/// A monitor's class, from its signature or name; a raw monitor's name as it is.
pub(super) fn monitor(monitor: &MonitorName<'_>) -> String {
    if monitor.raw {
        return text(monitor.name);
    }
    let name = monitor.name.strip_prefix(b"L").and_then(|name| name.strip_suffix(b";"));
    class(name.unwrap_or(monitor.name))
}

/// A date; one that cannot be read is kept as it is, none is none.
pub(super) fn date(bytes: &[u8]) -> Option<String> {
    let text = text(bytes);
    let text = text.trim();
    (!text.is_empty()).then(|| rfc3339(text).unwrap_or_else(|| text.to_owned()))
}
