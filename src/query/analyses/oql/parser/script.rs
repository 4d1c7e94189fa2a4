//! Parser of what jhat's and VisualVM's OQL have: functions over lists, `heap`, records, regular expressions.

use super::Parser;
use super::function::FunctionKind;
use crate::oql::builtins;
use crate::oql::error::OqlError;
use crate::oql::lexer::{self, TokenKind};
use crate::oql::tree::{
    Aggregate, Comparison, Expression, ExpressionNode, Function, HeapFunction, ListFunction, StepName,
};

/// Maximum number of values of a record.
const MAX_VALUES: usize = 1000;

impl Parser<'_> {
    /// Parses `/regex/(text)` or `/regex/.test(text)`.
    pub(super) fn test(&mut self, pattern: &str, flags: &str) -> Result<ExpressionNode, OqlError> {
        let start = self.start();
        self.step();
        if self.eat(".") && !self.eat_word("test") && !self.eat_word("exec") {
            return Err(self.expected_error("test(text)"));
        }
        if !self.eat("(") {
            return Err(self.expected_error("the text to search, as in /regex/.test(text)"));
        }
        let of = Box::new(self.node()?);
        self.expect(")")?;
        Ok(self.done(start, Expression::Test(of, pattern.to_owned(), flags.to_owned())))
    }

    /// Parses `{name: value, ...}`.
    pub(super) fn record(&mut self) -> Result<ExpressionNode, OqlError> {
        let start = self.start();
        self.expect("{")?;
        let mut values = Vec::new();
        while !self.eat("}") {
            let name = match (self.peek(), self.name_at(0)) {
                (TokenKind::Text(name), _) => lexer::unescape(name),
                (TokenKind::Char(unit), _) => String::from_utf16_lossy(&[*unit]),
                (_, Some(name)) => name.to_owned(),
                _ => return Err(self.expected_error("a name, as in {name: value}")),
            };
            self.step();
            self.expect(":")?;
            values.push((name, self.node()?));
            if values.len() > MAX_VALUES {
                return Err(OqlError::new(start, format!("a record can have at most {MAX_VALUES} values")));
            }
            if !self.is(0, "}") {
                self.expect(",")?;
            }
        }
        if values.is_empty() {
            return Err(OqlError::new(start, "a record needs values, as in {name: value}"));
        }
        Ok(self.done(start, Expression::Record(values)))
    }

    /// Parses `heap.function(...)`.
    pub(super) fn heap_call(&mut self, start: usize) -> Result<ExpressionNode, OqlError> {
        let name = self.name_at(2).unwrap_or_default();
        let lower = name.to_ascii_lowercase();
        let at = self.token(2).map_or(start, |token| self.base + token.start);
        self.at += 4;
        let (function, range) = match lower.as_str() {
            "findclass" => (HeapFunction::FindClass, 1..=1),
            "findobject" => (HeapFunction::FindObject, 1..=1),
            "classes" => (HeapFunction::Classes, 0..=0),
            "roots" => (HeapFunction::Roots, 0..=0),
            "finalizables" => (HeapFunction::Finalizables, 0..=0),
            "livepaths" => (HeapFunction::LivePaths, 1..=2),
            "objects" => return self.heap_objects(start),
            "foreachclass" => {
                let applied = self.function(FunctionKind::Prints)?;
                self.expect(")")?;
                let classes = self.done(start, Expression::Heap(HeapFunction::Classes, Vec::new()));
                return Ok(self.done(
                    start,
                    Expression::List(ListFunction::Map, vec![classes], Some(Box::new(applied))),
                ));
            }
            "foreachobject" => {
                let applied = self.function(FunctionKind::Prints)?;
                let arguments = if self.eat(",") {
                    self.arguments()?
                } else {
                    self.expect(")")?;
                    Vec::new()
                };
                let objects = self.done(start, Expression::Heap(HeapFunction::Objects, arguments));
                return Ok(self.done(
                    start,
                    Expression::List(ListFunction::Map, vec![objects], Some(Box::new(applied))),
                ));
            }
            _ => return Err(builtins::no_heap_function(at, name)),
        };
        let arguments = self.arguments()?;
        if !range.contains(&arguments.len()) {
            return Err(OqlError::new(at, format!("heap.{name}() takes {} arguments", range.end())));
        }
        Ok(self.done(start, Expression::Heap(function, arguments)))
    }

    /// Parses the arguments of `heap.objects(class, with subclasses, condition)`.
    fn heap_objects(&mut self, start: usize) -> Result<ExpressionNode, OqlError> {
        let mut arguments = Vec::new();
        let mut applied = None;
        while !self.eat(")") {
            match arguments.len() {
                0 | 1 => arguments.push(self.node()?),
                _ if applied.is_none() => applied = Some(Box::new(self.function(FunctionKind::Item)?)),
                _ => return Err(self.expected_error("`)`: heap.objects(class, subclasses, condition)")),
            }
            if !self.is(0, ")") {
                self.expect(",")?;
            }
        }
        let objects = self.done(start, Expression::Heap(HeapFunction::Objects, arguments));
        Ok(match applied {
            None => objects,
            applied => self.done(start, Expression::List(ListFunction::Filter, vec![objects], applied)),
        })
    }

    /// Parses a call of a function of jhat or VisualVM after its opening bracket; returns `None` for other functions.
    pub(super) fn script_call(
        &mut self,
        start: usize,
        lower: &str,
    ) -> Result<Option<ExpressionNode>, OqlError> {
        let (function, aggregate) = match lower {
            "map" => (ListFunction::Map, None),
            "filter" => (ListFunction::Filter, None),
            "sort" => (ListFunction::Sort, None),
            "top" => (ListFunction::Top, None),
            "unique" => (ListFunction::Unique, None),
            "contains" => (ListFunction::Contains, None),
            "concat" => (ListFunction::Concat, None),
            "toarray" => (ListFunction::ToArray, None),
            "length" => (ListFunction::Count, None),
            "count" => (ListFunction::Count, Some(Aggregate::Count)),
            "sum" => (ListFunction::Sum, Some(Aggregate::Sum)),
            "min" => (ListFunction::Min, Some(Aggregate::Min)),
            "max" => (ListFunction::Max, Some(Aggregate::Max)),
            "function" => return Err(self.no_function_here(start)),
            _ => return self.object_call(start, lower),
        };
        let list = self.node()?;
        let mut lists = vec![list];
        let mut applied = None;
        if function == ListFunction::Concat {
            while self.eat(",") {
                lists.push(self.node()?);
            }
        } else if self.eat(",") {
            applied = Some(Box::new(self.function(match function {
                ListFunction::Sort | ListFunction::Top | ListFunction::Min | ListFunction::Max => {
                    FunctionKind::Comparison
                }
                ListFunction::ToArray => return Err(self.expected_error("`)`")),
                _ => FunctionKind::Item,
            })?));
            if function == ListFunction::Top && self.eat(",") {
                lists.push(self.node()?);
            }
        } else if matches!(function, ListFunction::Map | ListFunction::Filter | ListFunction::Contains) {
            return Err(self.expected_error("`,` and what to do with each item, such as 'it.size > 3'"));
        }
        self.expect(")")?;
        // `sum(x)` adds up the rows, unless `x` is a list or there are no rows.
        let is_aggregate = applied.is_none() && self.scopes.is_empty() && !lists.iter().any(is_list);
        if let (Some(aggregate), true) = (aggregate, is_aggregate) {
            let of = lists.pop().map(Box::new);
            return Ok(Some(self.done(start, Expression::Aggregate(aggregate, of))));
        }
        Ok(Some(self.done(start, Expression::List(function, lists, applied))))
    }

    /// Parses a call of a function of objects.
    fn object_call(&mut self, start: usize, lower: &str) -> Result<Option<ExpressionNode>, OqlError> {
        let (function, range) = match lower {
            "reachables" => (Some(HeapFunction::Reachables), 1..=2),
            "refers" => (Some(HeapFunction::Refers), 2..=2),
            "identical" => (None, 2..=2),
            "unwrap" | "unwrapped" | "unwrapjavaobject" | "wrap" | "wrapjavaobject" => (None, 1..=1),
            "foreachreferrer" | "foreachreferee" => {
                let applied = Some(Box::new(self.function(FunctionKind::Prints)?));
                self.expect(",")?;
                let of = Box::new(self.node()?);
                self.expect(")")?;
                let function =
                    if lower == "foreachreferrer" { Function::Inbounds } else { Function::Outbounds };
                let lists = vec![self.done(start, Expression::Call(function, of))];
                return Ok(Some(self.done(start, Expression::List(ListFunction::Map, lists, applied))));
            }
            _ => return Ok(None),
        };
        let mut arguments = self.arguments()?;
        if !range.contains(&arguments.len()) {
            let text = format!("{lower}() takes {} arguments, not {}", range.end(), arguments.len());
            return Err(OqlError::new(start, text));
        }
        let expression = match (function, arguments.len()) {
            (Some(function), _) => Expression::Heap(function, arguments),
            (None, 2) => {
                let right = arguments.pop().map(Box::new);
                let left = arguments.pop().map(Box::new);
                let (Some(left), Some(right)) = (left, right) else { return Ok(None) };
                Expression::Compare(left, Comparison::Equal, right)
            }
            _ => {
                let end = self.end();
                return Ok(arguments.pop().map(|node| ExpressionNode { start, end, ..node }));
            }
        };
        Ok(Some(self.done(start, expression)))
    }
}

/// Returns whether an expression is a list, judged without evaluating it.
fn is_list(node: &ExpressionNode) -> bool {
    match &node.expression {
        Expression::Array(_) => true,
        Expression::List(function, ..) => matches!(
            function,
            ListFunction::Map
                | ListFunction::Filter
                | ListFunction::Sort
                | ListFunction::Top
                | ListFunction::Unique
                | ListFunction::Concat
                | ListFunction::ToArray
        ),
        Expression::Heap(function, _) => {
            !matches!(function, HeapFunction::FindClass | HeapFunction::FindObject | HeapFunction::Refers)
        }
        Expression::Call(function, _) => matches!(
            function,
            Function::Inbounds | Function::Outbounds | Function::Dominators | Function::Locals
        ),
        Expression::Path(_, steps) => match steps.last().map(|step| &step.what) {
            Some(StepName::Slice(..)) => true,
            Some(StepName::Method(name, _)) => {
                matches!(name.as_str(), "chain" | "subclasses" | "superclasses")
            }
            _ => false,
        },
        _ => false,
    }
}
