//! Which stack traces a user means: those with a frame of a class, or of a method.

use super::profile::{Frame, Traces};
use crate::classes::pattern::{ClassPattern, MethodPattern};
use hprof_parser::TraceSerial;

/// Which stack traces are meant. What is empty asks for nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StackFilter {
    /// A frame's class matches one of these.
    pub classes: Vec<ClassPattern>,
    /// A frame's class and method match one of these.
    pub methods: Vec<MethodPattern>,
}

impl StackFilter {
    /// Looks at each different frame once.
    pub fn of<'a>(&self, traces: &'a Traces) -> Matcher<'a> {
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
        Matcher {
            traces,
            classes: (!self.classes.is_empty()).then(|| frames(&of_class)),
            methods: (!self.methods.is_empty()).then(|| frames(&of_method)),
        }
    }

    /// Returns whether one of these methods, given as class and name, is meant.
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
pub struct Matcher<'a> {
    traces: &'a Traces,
    /// Whether each frame's class matches, if that is asked for.
    classes: Option<Vec<bool>>,
    /// Whether each frame's method matches, if that is asked for.
    methods: Option<Vec<bool>>,
}

impl Matcher<'_> {
    /// Returns whether the trace with this serial number is meant. One that is not there is, if nothing is asked for.
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

    /// A frame `class.method`.
    pub(crate) fn frame(class: &str, method: &str) -> Frame {
        Frame { class: Some(class.into()), method: Some(method.into()), source: None, line: 1 }
    }

    /// Traces by serial number, frames innermost first as `class.method`.
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
            let matcher = filter.of(&traces);
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
