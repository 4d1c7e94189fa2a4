//! Parser of functions for the items of a list: `'it.size > 3'`, `it => it.size`, `function (it) { return it.size; }`.

use super::{Parser, Scope};
use crate::oql::error::OqlError;
use crate::oql::lexer::{self, Token, TokenKind};
use crate::oql::tree::{
    Comparison, Expression, ExpressionNode, FunctionNode, ItemOrder, Operator, PARAMETERS, StepName,
};

/// Use of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FunctionKind {
    /// Returns a value for an item.
    Item,
    /// Compares two items, or returns the value by which they are compared.
    Comparison,
    /// Prints a row for an item.
    Prints,
}

/// Slot of `lhs`, followed by that of `rhs`.
const LEFT: u8 = 4;

impl Parser<'_> {
    /// Returns the parameter with this name of an enclosing function.
    pub(super) fn parameter(&mut self, name: &str) -> Option<Expression> {
        for scope in self.scopes.iter_mut().rev() {
            if let Some((_, slot)) = scope.parameters.iter().find(|(known, _)| known == name) {
                scope.slots |= 1 << slot;
                return Some(Expression::Parameter(scope.number, *slot, name.to_owned()));
            }
        }
        None
    }

    /// Parses a function that is applied to the items of a list.
    pub(super) fn function(&mut self, kind: FunctionKind) -> Result<FunctionNode, OqlError> {
        let code = match self.peek() {
            TokenKind::Text(text) => Some(lexer::unescape(text)),
            TokenKind::Char(unit) => Some(String::from_utf16_lossy(&[*unit])),
            _ => None,
        };
        if let Some(code) = code {
            let names = PARAMETERS.iter().map(|name| (*name).to_owned()).zip(0..).collect();
            let at = self.start();
            self.step();
            return self.with_parameters(names, kind, |parser| parser.quoted_body(&code, at));
        }
        let is_function = self.is_word(0, "function");
        self.at += usize::from(is_function);
        let mut names = Vec::new();
        if !is_function && self.is(1, "=>") {
            names.extend(self.name_at(0).map(str::to_owned));
            self.step();
        } else if self.is(0, "(") {
            self.step();
            while let Some(name) = self.name_at(0) {
                names.push(name.to_owned());
                self.step();
                if !self.eat(",") {
                    break;
                }
            }
            self.expect(")")?;
        } else {
            return Err(self.expected_error("what to do with each item: 'it.size > 3' or it => it.size > 3"));
        }
        let first = if kind == FunctionKind::Comparison && names.len() > 1 { LEFT } else { 0 };
        if names.len() > usize::from(LEFT) {
            return Err(OqlError::new(self.start(), "a function has at most four parameters"));
        }
        let names = names.into_iter().zip(first..).collect();
        if !is_function && !self.is(0, "=>") {
            return Err(self.expected_error("`=>`"));
        }
        self.at += usize::from(!is_function);
        self.with_parameters(names, kind, |parser| {
            let is_block = parser.is(0, "{") && !parser.is(2, ":");
            if is_block { parser.block(kind) } else { parser.node() }
        })
    }

    /// Parses the body of a function with these parameters.
    fn with_parameters(
        &mut self,
        parameters: Vec<(String, u8)>,
        kind: FunctionKind,
        parse: impl FnOnce(&mut Self) -> Result<ExpressionNode, OqlError>,
    ) -> Result<FunctionNode, OqlError> {
        self.functions = self.functions.saturating_add(1);
        let number = self.functions;
        self.scopes.push(Scope { number, parameters, slots: 0 });
        let body = self.deeper(parse);
        let Some(scope) = self.scopes.pop() else {
            return Err(OqlError::new(self.start(), "a function has no parameters"));
        };
        let body = body?;
        if scope.slots >> LEFT == 0 {
            return Ok(FunctionNode { number, slots: scope.slots, body, compared: None });
        }
        if kind != FunctionKind::Comparison {
            let text = "lhs and rhs are the items that sort, top, min and max compare; write it";
            return Err(OqlError::new(body.start, text));
        }
        self.comparison(scope, body)
    }

    /// Parses a quoted body, which starts at `at`.
    fn quoted_body(&mut self, code: &str, at: usize) -> Result<ExpressionNode, OqlError> {
        let base = at.saturating_add(1);
        let tokens = lexer::tokens(code).map_err(|wrong| wrong.relocate(base))?;
        let mut parser = Parser {
            text: code,
            tokens: &tokens,
            at: 0,
            depth: self.depth,
            base,
            scopes: std::mem::take(&mut self.scopes),
            functions: self.functions,
        };
        let node = parser.node().and_then(|node| {
            parser.eat(";");
            match parser.peek() {
                TokenKind::End => Ok(node),
                _ => Err(parser.expected_error("the end of the condition")),
            }
        });
        (self.scopes, self.functions) = (parser.scopes, parser.functions);
        node
    }

    /// Parses `{ return value; }`, or `{ print(value); }`.
    fn block(&mut self, kind: FunctionKind) -> Result<ExpressionNode, OqlError> {
        let start = self.start();
        self.expect("{")?;
        let mut printed = Vec::new();
        loop {
            while self.eat(";") {}
            if self.eat("}") {
                break;
            }
            if self.eat_word("return") {
                let node = self.node()?;
                while self.eat(";") {}
                self.expect("}")?;
                return Ok(node);
            }
            if !self.is_word(0, "print") && !self.is_word(0, "println") || !self.is(1, "(") {
                return Err(self.no_statement());
            }
            if kind != FunctionKind::Prints {
                let text = "print works in heap.forEachClass, heap.forEachObject and forEachReferrer; here, return the value";
                return Err(OqlError::new(self.start(), text));
            }
            self.at += 2;
            printed.extend(self.arguments()?);
        }
        // Each call is a row of its own.
        printed.retain(|node| !is_blank(node));
        match printed.len() {
            0 => Err(OqlError::new(start, "the function returns nothing; write { return value; }")),
            1 => Ok(printed.swap_remove(0)),
            _ => {
                let first = ExpressionNode { start, end: start, expression: Expression::Text(String::new()) };
                let more = printed.into_iter().map(|node| (Operator::Add, node)).collect();
                Ok(self.done(start, Expression::Arithmetic(Box::new(first), more)))
            }
        }
    }

    /// Creates the error for a statement other than `return`.
    fn no_statement(&self) -> OqlError {
        let rest = self.tokens.get(self.at..).unwrap_or_default();
        let is_loop = |token: &&Token| {
            token.kind == TokenKind::Name && matches!(self.token_text(token), "while" | "for" | "do")
        };
        if let Some(token) = rest.iter().find(is_loop) {
            let text = format!(
                "`{}` is not supported: OQL has expressions, not statements; for what a field links, use \
                 map(chain(it, \"next\"), 'toString(it)'), for a list map(list, 'it.name')",
                self.token_text(token)
            );
            return OqlError::new(self.base + token.start, text);
        }
        let word = self.name_at(0).unwrap_or_default();
        let text = match word {
            "var" | "let" | "const" => "variables are not supported: write the expression where it is used",
            "if" | "switch" => "conditions are expressions: write condition ? value : other",
            _ => {
                return self.expected_error(
                    "`return` and an expression; other statements, such as assignments, are not supported",
                );
            }
        };
        OqlError::new(self.start(), text)
    }

    /// Creates the error for a function that is not an argument.
    pub(super) fn no_function_here(&self, start: usize) -> OqlError {
        let text = "a function is allowed as an argument, as in map(list, function (it) { return it.name; })";
        OqlError::new(start.max(self.base), text)
    }

    /// Reads the order from a comparison of the same value of two items.
    fn comparison(&self, scope: Scope, body: ExpressionNode) -> Result<FunctionNode, OqlError> {
        let at = body.start;
        let name = |wanted: u8| {
            let mut names = scope.parameters.iter();
            names.find(|(_, slot)| *slot == wanted).map_or("", |(name, _)| name.as_str())
        };
        let (left_name, right_name) = (name(LEFT), name(LEFT + 1));
        let words = |start: usize, end: usize| -> Vec<String> {
            let text = self.slice(start, end);
            let tokens = lexer::tokens(text).unwrap_or_default();
            tokens
                .iter()
                .map(|token| text.get(token.start..token.end).unwrap_or_default().to_owned())
                .collect()
        };
        let (start, end) = (body.start, body.end);
        let found = match body.expression {
            Expression::Arithmetic(left, mut more) => match (more.pop(), more.is_empty()) {
                (Some((Operator::Subtract, right)), true) => {
                    let ends = [left.start, left.end, right.start, right.end];
                    Some((*left, ends, ItemOrder { rises: true, is_difference: true }))
                }
                _ => None,
            },
            Expression::Compare(left, comparison, right) => {
                let ends = [left.start, left.end, right.start, right.end];
                let rises = matches!(comparison, Comparison::Greater | Comparison::GreaterOrEqual);
                let is_order = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
                is_order.then_some((*left, ends, ItemOrder { rises, is_difference: false }))
            }
            Expression::Path(base, mut steps) => match steps.pop() {
                Some(step) => match step.what {
                    StepName::Method(name, arguments) if name == "compareTo" || name == "localeCompare" => {
                        let left_end = step.at.saturating_sub(1);
                        let right = arguments.first().map_or((end, end), |node| (node.start, node.end));
                        let left = match steps.is_empty() {
                            true => *base,
                            false => ExpressionNode {
                                start,
                                end: left_end,
                                expression: Expression::Path(base, steps),
                            },
                        };
                        let ends = [start, left_end, right.0, right.1];
                        Some((left, ends, ItemOrder { rises: true, is_difference: true }))
                    }
                    _ => None,
                },
                None => None,
            },
            _ => None,
        };
        let wrong = || {
            let text = "no order can be read from this; compare the same value of both items, such as 'lhs.size - rhs.size'";
            OqlError::new(at, text)
        };
        let (left, [a, b, c, d], mut order) = found.ok_or_else(wrong)?;
        let (left_words, right_words) = (words(a, b), words(c, d));
        let has = |name: &str| left_words.iter().any(|word| word == name);
        let is_left = match (has(left_name), has(right_name)) {
            (true, false) => true,
            (false, true) => false,
            _ => return Err(wrong()),
        };
        let swapped = |word: &String| match word.as_str() {
            word if word == left_name => right_name.to_owned(),
            word if word == right_name => left_name.to_owned(),
            word => word.to_owned(),
        };
        if left_words.iter().map(swapped).ne(right_words) {
            return Err(wrong());
        }
        order.rises = order.rises == is_left;
        Ok(FunctionNode { number: scope.number, slots: scope.slots, body: left, compared: Some(order) })
    }
}

/// Returns whether a node is a text of white space, such as a line break that is printed.
fn is_blank(node: &ExpressionNode) -> bool {
    match &node.expression {
        Expression::Text(text) => text.trim().is_empty(),
        Expression::Char(unit) => matches!(*unit, 9 | 10 | 13 | 32),
        _ => false,
    }
}
