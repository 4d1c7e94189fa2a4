//! The path that keeps an object reachable, in one line.

use crate::cli::shared::paths;
use hprof_query::loaders::loader_sets::RootPath;
use hprof_query::paths::steps::ObjectStep;
use hprof_values::names;

/// Maximum number of objects shown of a path; the middle of a longer one is omitted.
const MAX_STEPS: usize = 8;

/// Returns a path in one line: `static listeners of container.EventBus -> ArrayList -> Object[] -> Plugin -> class
/// Plugin -> WebappLoader`.
pub(super) fn short_path(why: &RootPath) -> String {
    let steps = why.steps.get(why.start..).unwrap_or_default();
    let holder = why.start.checked_sub(1).and_then(|at| why.steps.get(at));
    let start = match (holder, steps.first()) {
        (Some(holder), Some(first)) => {
            let reference = paths::describe_held(first);
            format!("{reference} of {}", holder.label.as_deref().unwrap_or("<unknown class>"))
        }
        _ => paths::describe_root(&why.root),
    };
    let names: Vec<String> = steps.iter().map(short_name).collect();
    let middle = match (names.get(..MAX_STEPS / 2), names.len().checked_sub(MAX_STEPS / 2)) {
        (Some(first), Some(last)) if names.len() > MAX_STEPS => {
            let last = names.get(last..).unwrap_or_default();
            format!("{} -> … -> {}", first.join(" -> "), last.join(" -> "))
        }
        _ => names.join(" -> "),
    };
    format!("{start} -> {middle}")
}

/// Returns the simple class name of a step; for a class object, `class` and the simple name of the class it
/// represents.
fn short_name(step: &ObjectStep) -> String {
    let simple = |name: &str| names::simple(name).to_owned();
    match (step.class.as_deref(), step.label.as_deref()) {
        (Some("java.lang.Class"), Some(of)) => format!("class {}", simple(of)),
        (class, _) => class.map_or_else(|| "<unknown class>".to_owned(), simple),
    }
}
