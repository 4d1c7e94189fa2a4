//! Filter of stack traces by the classes and methods of their frames.

use super::profile::{Frame, Traces};
use hprof_base::naming::pattern::{ClassPattern, MethodPattern};
use hprof_values::TraceSerial;

/// Filter of stack traces. Empty lists match everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StackFilter {
    /// Patterns of classes, one of which a frame must match.
    pub classes: Vec<ClassPattern>,
    /// Patterns of qualified methods (`CLASS.METHOD`), one of which a frame must match.
    pub methods: Vec<MethodPattern>,
}

impl StackFilter {
    /// Applies the filter to each distinct frame of the traces once.
    pub fn matcher<'a>(&self, traces: &'a Traces) -> StackMatcher<'a> {
        let frames = |is_meant: &dyn Fn(&Frame) -> bool| -> Vec<bool> {
            (0u32..).map_while(|number| traces.frame(number)).map(is_meant).collect()
        };
        let of_class = |frame: &Frame| {
            frame.class.as_ref().is_some_and(|class| self.classes.iter().any(|one| one.matches(class)))
        };
        let of_method = |frame: &Frame| {
            let name = frame.qualified_method();
            self.methods.iter().any(|one| one.matches(&name))
        };
        StackMatcher {
            traces,
            classes: (!self.classes.is_empty()).then(|| frames(&of_class)),
            methods: (!self.methods.is_empty()).then(|| frames(&of_method)),
        }
    }

    /// Returns whether a stack with these methods, given as class and method name, matches the filter.
    pub fn matches_any<'m>(&self, methods: impl Iterator<Item = (&'m str, &'m str)> + Clone) -> bool {
        let class = self.classes.is_empty()
            || methods.clone().any(|(class, _)| self.classes.iter().any(|one| one.matches(class)));
        class
            && (self.methods.is_empty()
                || methods.into_iter().any(|(class, name)| {
                    let name = format!("{class}.{name}");
                    self.methods.iter().any(|one| one.matches(&name))
                }))
    }
}

/// A filter, applied to the traces of a profile.
#[derive(Debug)]
pub struct StackMatcher<'a> {
    traces: &'a Traces,
    /// By frame number: `true` if the frame's class matches; `None` if classes are not filtered.
    classes: Option<Vec<bool>>,
    /// By frame number: `true` if the frame's method matches; `None` if methods are not filtered.
    methods: Option<Vec<bool>>,
}

impl StackMatcher<'_> {
    /// Returns whether the trace with this serial number matches. A missing trace matches only if the filter is empty.
    pub fn matches(&self, serial: TraceSerial) -> bool {
        if self.classes.is_none() && self.methods.is_none() {
            return true;
        }
        let Some(trace) = self.traces.get(serial) else { return false };
        let numbers = self.traces.numbers(trace);
        let any = |meant: &Option<Vec<bool>>| {
            meant.as_ref().is_none_or(|meant| {
                numbers.iter().any(|number| meant.get(*number as usize).copied().unwrap_or(false))
            })
        };
        any(&self.classes) && any(&self.methods)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests {
    use super::*;

    /// Creates a frame `class.method`.
    pub(crate) fn frame(class: &str, method: &str) -> Frame {
        Frame { class: Some(class.into()), method: Some(method.into()), source: None, line: 1 }
    }

    /// Creates traces from serial numbers and lists of class and method, innermost frame first.
    pub(crate) fn traces(of: &[(u32, &[(&str, &str)])]) -> Traces {
        let mut traces = Traces::default();
        for (serial, frames) in of {
            traces.add(
                TraceSerial(*serial),
                0,
                None,
                frames.iter().map(|(class, method)| frame(class, method)),
            );
        }
        traces
    }

    #[test]
    fn traces_are_found_by_any_frame() {
        let traces = traces(&[
            (1, &[("a.A", "x"), ("b.B", "y")]),
            (2, &[("a.A", "x")]),
            (3, &[]),
            (4, &[("b.B", "z")]),
        ]);
        let found = |classes: &[&str], methods: &[&str]| -> Vec<u32> {
            let filter = StackFilter {
                classes: classes.iter().map(|text| text.parse().unwrap()).collect(),
                methods: methods.iter().map(|text| text.parse().unwrap()).collect(),
            };
            let matcher = filter.matcher(&traces);
            (1..=5).filter(|serial| matcher.matches(TraceSerial(*serial))).collect()
        };
        assert_eq!(found(&[], &[]), [1, 2, 3, 4, 5]);
        assert_eq!(found(&["b.*"], &[]), [1, 4]);
        assert_eq!(found(&[], &["x"]), [1, 2]);
        assert_eq!(found(&["B"], &["A.x"]), [1]);
        assert_eq!(found(&["c.**"], &[]), [0; 0]);
    }

    #[test]
    fn methods_without_traces() {
        let filter =
            StackFilter { classes: vec!["a.A".parse().unwrap()], methods: vec!["y".parse().unwrap()] };
        assert!(filter.matches_any([("a.A", "x"), ("b.B", "y")].into_iter()));
        assert!(!filter.matches_any([("a.A", "x")].into_iter()));
        assert!(StackFilter::default().matches_any(std::iter::empty()));
    }
}
