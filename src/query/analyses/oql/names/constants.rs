//! Expressions that are the same for all rows, or for all calls of a function.

use crate::oql::code::{AppliedCode, Code, CodeStep};

/// Returns whether an expression is the same for all rows. Constant subexpressions must already be resolved to values.
pub(super) fn is_constant(code: &Code) -> bool {
    let is_value = |code: &Code| matches!(code, Code::Value(_));
    match code {
        Code::Call(_, of) | Code::Not(of) | Code::Negate(of) => is_value(of),
        Code::Like(of, ..) | Code::InFound(of, ..) | Code::Is(of, _) => is_value(of),
        Code::Compare(left, _, right) => is_value(left) && is_value(right),
        Code::Arithmetic(first, more) => is_value(first) && more.iter().all(|(_, code)| is_value(code)),
        Code::All(of) | Code::Any(of) | Code::Coalesce(of) => of.iter().all(is_value),
        Code::In(of, values, _) => is_value(of) && values.iter().all(is_value),
        Code::Path(base, steps) => {
            let is_step = |step: &CodeStep| match step {
                CodeStep::Field(_) | CodeStep::Attribute(_) | CodeStep::Matches(_) => true,
                CodeStep::Method(_, arguments, _) => arguments.iter().all(is_value),
                CodeStep::Element(index) => is_value(index),
                CodeStep::Slice(first, last) => is_value(first) && is_value(last),
            };
            is_value(base) && steps.iter().all(is_step)
        }
        Code::Choose(of) => of.iter().all(is_value),
        Code::Record(_, values) | Code::Array(values) | Code::Heap(_, values, _) => {
            values.iter().all(is_value)
        }
        Code::Test(of, _) => is_value(of),
        Code::List(list) => {
            let is_closed = |applied: &AppliedCode| is_closed(&applied.body, 1);
            list.lists.iter().all(is_value) && list.applied.as_ref().is_none_or(is_closed)
        }
        Code::Value(_) | Code::Row | Code::Column(_) | Code::Aggregate(_) | Code::Parameter(..) => false,
    }
}

/// Returns whether an expression depends only on the parameters of the `frames` innermost functions around it.
fn is_closed(code: &Code, frames: u32) -> bool {
    let is = |code: &Code| is_closed(code, frames);
    match code {
        Code::Value(_) => true,
        Code::Row | Code::Column(_) | Code::Aggregate(_) => false,
        Code::Parameter(depth, _) => *depth < frames,
        Code::Call(_, of) | Code::Not(of) | Code::Negate(of) | Code::Test(of, _) => is(of),
        Code::Like(of, ..) | Code::InFound(of, ..) | Code::Is(of, _) => is(of),
        Code::Compare(left, _, right) => is(left) && is(right),
        Code::Arithmetic(first, more) => is(first) && more.iter().all(|(_, code)| is(code)),
        Code::All(of) | Code::Any(of) | Code::Coalesce(of) | Code::Array(of) => of.iter().all(is),
        Code::Record(_, of) | Code::Heap(_, of, _) => of.iter().all(is),
        Code::Choose(of) => of.iter().all(is),
        Code::In(of, values, _) => is(of) && values.iter().all(is),
        Code::Path(base, steps) => {
            let is_step = |step: &CodeStep| match step {
                CodeStep::Field(_) | CodeStep::Attribute(_) | CodeStep::Matches(_) => true,
                CodeStep::Method(_, arguments, _) => arguments.iter().all(is),
                CodeStep::Element(index) => is(index),
                CodeStep::Slice(first, last) => is(first) && is(last),
            };
            is(base) && steps.iter().all(is_step)
        }
        Code::List(list) => {
            let is_closed = |applied: &AppliedCode| is_closed(&applied.body, frames.saturating_add(1));
            list.lists.iter().all(is) && list.applied.as_ref().is_none_or(is_closed)
        }
    }
}
