//! Names of a text report, converted to the forms shown.

use hprof_parser::mutf8;
use hprof_parser::text::event::MonitorName;
use hprof_parser::text::rfc3339;
use hprof_values::names;

/// Decodes modified UTF-8.
pub(super) fn text(bytes: &[u8]) -> String {
    mutf8::decode(bytes).into_owned()
}

/// Converts a class name to Java source form.
pub(super) fn class(bytes: &[u8]) -> String {
    names::java_class_name(&mutf8::decode(bytes))
}

/// Converts a qualified method name, with its class in Java source form.
pub(super) fn method(bytes: &[u8]) -> String {
    let text = mutf8::decode(bytes);
    match text.rsplit_once('.') {
        Some((class, method)) => format!("{}.{method}", names::java_class_name(class)),
        None => text.into_owned(),
    }
}

/// Converts a monitor's class from its signature or name; the name of a raw monitor is unchanged.
pub(super) fn monitor(monitor: &MonitorName<'_>) -> String {
    if monitor.raw {
        return text(monitor.name);
    }
    let name = monitor.name.strip_prefix(b"L").and_then(|name| name.strip_suffix(b";"));
    class(name.unwrap_or(monitor.name))
}

/// Converts a date. A date that cannot be parsed is unchanged; an empty one becomes `None`.
pub(super) fn date(bytes: &[u8]) -> Option<String> {
    let text = text(bytes);
    let text = text.trim();
    (!text.is_empty()).then(|| rfc3339(text).unwrap_or_else(|| text.to_owned()))
}
