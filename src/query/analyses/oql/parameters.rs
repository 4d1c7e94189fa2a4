//! Values of the parameters of functions while a function is applied.

use std::cell::RefCell;

use super::tree::PARAMETERS;
use super::value::ExpressionValue;

/// Values of the parameters of a function, and of the functions around it.
#[derive(Debug)]
pub(super) struct Parameters<'r> {
    values: RefCell<[ExpressionValue; PARAMETERS.len()]>,
    outer: Option<&'r Parameters<'r>>,
}

impl<'r> Parameters<'r> {
    pub(super) fn new(outer: Option<&'r Parameters<'r>>) -> Self {
        Self { values: RefCell::new([const { ExpressionValue::Null }; PARAMETERS.len()]), outer }
    }

    /// Returns the value of a parameter of the function `depth` functions further out.
    pub(super) fn get(&self, depth: u32, slot: u8) -> Option<ExpressionValue> {
        let mut parameters = self;
        for _ in 0..depth {
            parameters = parameters.outer?;
        }
        parameters.values.borrow().get(usize::from(slot)).cloned()
    }

    pub(super) fn set(&self, slot: usize, value: ExpressionValue) {
        if let Some(known) = self.values.borrow_mut().get_mut(slot) {
            *known = value;
        }
    }
}
