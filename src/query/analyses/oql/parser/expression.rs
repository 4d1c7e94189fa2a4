//! Parser of expressions, from OR down to names and numbers.

use super::Parser;
use super::is_keyword;
use crate::oql::builtins;
use crate::oql::error::OqlError;
use crate::oql::lexer::{self, TokenKind};
use crate::oql::tree::{Aggregate, Comparison, Expression, ExpressionNode, Operator, StepName, StepNode};

/// Maximum number of steps of a path, since all of them are evaluated for each row.
const MAX_STEPS: usize = 1000;

impl Parser<'_> {
    /// Creates a node from `start` to the current position.
    pub(super) fn done(&self, start: usize, expression: Expression) -> ExpressionNode {
        ExpressionNode { start, end: self.end(), expression }
    }

    /// Parses an expression.
    pub(super) fn node(&mut self) -> Result<ExpressionNode, OqlError> {
        self.deeper(|parser| {
            let start = parser.start();
            let node = parser.list(&["or", "||"], Expression::Any, |parser| {
                parser.list(&["and", "&&"], Expression::All, Self::not)
            })?;
            if !parser.eat("?") {
                return Ok(node);
            }
            let value = parser.node()?;
            parser.expect(":")?;
            let other = parser.node()?;
            Ok(parser.done(start, Expression::Choose(Box::new([node, value, other]))))
        })
    }

    /// Parses expressions separated by one of these words; a single expression is returned as it is.
    fn list(
        &mut self,
        words: &[&str],
        all: impl FnOnce(Vec<ExpressionNode>) -> Expression,
        mut parse: impl FnMut(&mut Self) -> Result<ExpressionNode, OqlError>,
    ) -> Result<ExpressionNode, OqlError> {
        let start = self.start();
        let first = parse(self)?;
        let mut more = Vec::new();
        while words.iter().any(|word| self.eat_word(word) || self.eat(word)) {
            more.push(parse(self)?);
        }
        if more.is_empty() {
            return Ok(first);
        }
        more.insert(0, first);
        Ok(self.done(start, all(more)))
    }

    fn not(&mut self) -> Result<ExpressionNode, OqlError> {
        let start = self.start();
        // Any number of them: only the parity counts.
        let mut is_negated = false;
        while self.eat_word("not") || self.eat("!") {
            is_negated = !is_negated;
        }
        let node = self.equality()?;
        if !is_negated {
            return Ok(node);
        }
        Ok(self.done(start, Expression::Not(Box::new(node))))
    }

    fn equality(&mut self) -> Result<ExpressionNode, OqlError> {
        let start = self.start();
        let left = self.relation()?;
        let comparison = if self.eat("=") || self.eat("==") || self.eat("===") {
            Comparison::Equal
        } else if self.eat("!=") || self.eat("<>") || self.eat("!==") {
            Comparison::NotEqual
        } else {
            return Ok(left);
        };
        let right = self.relation()?;
        Ok(self.done(start, Expression::Compare(Box::new(left), comparison, Box::new(right))))
    }

    fn relation(&mut self) -> Result<ExpressionNode, OqlError> {
        let start = self.start();
        let left = self.sum()?;
        let comparison = match self.peek() {
            TokenKind::Symbol("<") => Comparison::Less,
            TokenKind::Symbol("<=") => Comparison::LessOrEqual,
            TokenKind::Symbol(">") => Comparison::Greater,
            TokenKind::Symbol(">=") => Comparison::GreaterOrEqual,
            _ => return self.membership(start, left),
        };
        self.step();
        let right = self.sum()?;
        Ok(self.done(start, Expression::Compare(Box::new(left), comparison, Box::new(right))))
    }

    /// Parses LIKE, IN, `instanceof` and `implements`, if present.
    fn membership(&mut self, start: usize, left: ExpressionNode) -> Result<ExpressionNode, OqlError> {
        let is_negated = self.is_word(0, "not") && (self.is_word(1, "like") || self.is_word(1, "in"));
        self.at += usize::from(is_negated);
        let left = Box::new(left);
        if self.eat_word("like") {
            let TokenKind::Text(pattern) = self.peek() else {
                return Err(self.expected_error("a regular expression in quotes"));
            };
            self.step();
            return Ok(self.done(start, Expression::Like(left, pattern.clone(), is_negated)));
        }
        if self.eat_word("in") {
            if self.is(0, "(") && self.is_word(1, "select") {
                self.step();
                let query = self.union()?;
                self.expect(")")?;
                return Ok(self.done(start, Expression::InQuery(left, Box::new(query), is_negated)));
            }
            let mut values = Vec::new();
            if self.eat("(") {
                values.push(self.node()?);
                while self.eat(",") {
                    values.push(self.node()?);
                }
                self.expect(")")?;
            } else {
                values.push(self.sum()?);
            }
            return Ok(self.done(start, Expression::In(left, values, is_negated)));
        }
        if self.eat_word("implements") || self.eat_word("instanceof") {
            let at = self.start();
            let class = match self.peek() {
                TokenKind::Text(class) => {
                    self.step();
                    class.clone()
                }
                _ => self.class_name()?,
            };
            return Ok(self.done(start, Expression::Is(left, class, at)));
        }
        Ok(*left)
    }

    fn sum(&mut self) -> Result<ExpressionNode, OqlError> {
        self.arithmetic(&[("+", Operator::Add), ("-", Operator::Subtract)], |parser| {
            parser.arithmetic(&[("*", Operator::Multiply), ("/", Operator::Divide)], Self::unary)
        })
    }

    fn arithmetic(
        &mut self,
        operators: &[(&str, Operator)],
        mut parse: impl FnMut(&mut Self) -> Result<ExpressionNode, OqlError>,
    ) -> Result<ExpressionNode, OqlError> {
        let start = self.start();
        let mut first = parse(self)?;
        let mut more = Vec::new();
        while let Some((_, operator)) = operators.iter().find(|(symbol, _)| self.is(0, symbol)) {
            self.step();
            more.push((*operator, parse(self)?));
        }
        if more.is_empty() {
            return Ok(first);
        }
        // `index + '='` joins texts: a character is not added as a number.
        if more.iter().any(|(operator, _)| *operator == Operator::Add) {
            more.iter_mut().for_each(|(_, node)| make_text(node));
            make_text(&mut first);
        }
        Ok(self.done(start, Expression::Arithmetic(Box::new(first), more)))
    }

    fn unary(&mut self) -> Result<ExpressionNode, OqlError> {
        let start = self.start();
        let mut is_negated = false;
        while self.eat("-") {
            is_negated = !is_negated;
        }
        // The smallest long: without the sign, the number is not a long.
        if is_negated && *self.peek() == TokenKind::Whole(1 << 63) {
            self.step();
            return Ok(self.done(start, Expression::Whole(i64::MIN)));
        }
        let node = self.path()?;
        if !is_negated {
            return Ok(node);
        }
        Ok(self.done(start, Expression::Negate(Box::new(node))))
    }

    /// Parses a path of fields, attributes, methods and elements.
    pub(super) fn path(&mut self) -> Result<ExpressionNode, OqlError> {
        let start = self.start();
        let mut root = if self.is(0, "@") { self.done(start, Expression::Row) } else { self.primary()? };
        let mut steps = Vec::new();
        loop {
            let at = self.start();
            if steps.len() > MAX_STEPS {
                return Err(OqlError::new(at, format!("a path can have at most {MAX_STEPS} steps")));
            }
            if self.eat("[") {
                let index = Box::new(self.node()?);
                let what = if self.eat(":") {
                    StepName::Slice(index, Box::new(self.node()?))
                } else {
                    StepName::Element(index)
                };
                self.expect("]")?;
                steps.push(StepNode { at, what });
                continue;
            }
            let is_attribute = if self.eat("@") {
                if !steps.is_empty() || self.end() != at + 1 || !matches!(root.expression, Expression::Row) {
                    return Err(OqlError::new(
                        at,
                        "expected an operator, found `@`; attributes follow a dot: s.@length",
                    ));
                }
                true
            } else if self.eat(".") {
                self.eat("@")
            } else {
                break;
            };
            let at = self.start();
            let name = match (self.peek(), self.name_at(0)) {
                (TokenKind::Text(column), _) if !is_attribute => lexer::unescape(column),
                (_, Some(name)) => name.to_owned(),
                _ => return Err(self.expected_error("the name of a field or attribute")),
            };
            self.step();
            if let (true, TokenKind::Regex(pattern, flags)) = (self.is(0, "("), self.kind(1)) {
                if !matches!(name.as_str(), "match" | "matches") {
                    return Err(self.expected_error(
                        "match(/regex/), the only method of texts with a regular expression",
                    ));
                }
                if matches!(root.expression, Expression::Test(..)) {
                    return Err(OqlError::new(at, "expected an operator: match() is true or false"));
                }
                self.at += 2;
                self.expect(")")?;
                let of = match steps.is_empty() {
                    true => root,
                    false => self.done(start, Expression::Path(Box::new(root), std::mem::take(&mut steps))),
                };
                root = self.done(start, Expression::Test(Box::new(of), pattern.clone(), flags.clone()));
                continue;
            }
            let what = if self.eat("(") {
                StepName::Method(name, self.arguments()?)
            } else if is_attribute {
                StepName::Attribute(name)
            } else {
                StepName::Field(name)
            };
            steps.push(StepNode { at, what });
        }
        if steps.is_empty() {
            return Ok(root);
        }
        Ok(self.done(start, Expression::Path(Box::new(root), steps)))
    }

    /// Parses arguments in brackets, including the closing one.
    pub(super) fn arguments(&mut self) -> Result<Vec<ExpressionNode>, OqlError> {
        let mut arguments = Vec::new();
        if self.eat(")") {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.node()?);
            if !self.eat(",") {
                self.expect(")")?;
                return Ok(arguments);
            }
        }
    }

    fn primary(&mut self) -> Result<ExpressionNode, OqlError> {
        let start = self.start();
        let expression = match self.peek() {
            TokenKind::Whole(number) => match i64::try_from(*number) {
                Ok(number) => Expression::Whole(number),
                Err(_) => return Err(self.expected_error("a number of up to 9223372036854775807")),
            },
            // As a Java long: MAT's addresses are longs.
            TokenKind::Hex(number) => Expression::Whole(number.cast_signed()),
            TokenKind::Fraction(number) => Expression::Fraction(*number),
            TokenKind::Char(unit) => Expression::Char(*unit),
            TokenKind::Text(text) => Expression::Text(lexer::unescape(text)),
            TokenKind::Symbol("(") => {
                let is_query = self.is_word(1, "select");
                self.step();
                let mut node = if is_query {
                    let query = self.union()?;
                    self.done(start, Expression::Query(Box::new(query)))
                } else {
                    self.node()?
                };
                self.expect(")")?;
                (node.start, node.end) = (start, self.end());
                return Ok(node);
            }
            TokenKind::Snapshot => Expression::Snapshot,
            TokenKind::Regex(pattern, flags) => return self.test(pattern, flags),
            TokenKind::Symbol("{") => return self.record(),
            TokenKind::Symbol("[") => {
                self.step();
                let values = self.values()?;
                return Ok(self.done(start, Expression::Array(values)));
            }
            TokenKind::Name => return self.name_or_call(start),
            _ => return Err(self.expected_error("a field, a number, a string or a function")),
        };
        self.step();
        Ok(self.done(start, expression))
    }

    /// Parses a name, or a function call.
    fn name_or_call(&mut self, start: usize) -> Result<ExpressionNode, OqlError> {
        let name = self.name_at(0).unwrap_or_default();
        let lower = name.to_ascii_lowercase();
        if name == "heap" && self.is(1, ".") && self.is(3, "(") {
            return self.heap_call(start);
        }
        if let Some(parameter) = self.parameter(name).filter(|_| !self.is(1, "(")) {
            self.step();
            return Ok(self.done(start, parameter));
        }
        if self.is(1, "(") {
            self.at += 2;
            return self.call(start, name, &lower);
        }
        let expression = match lower.as_str() {
            "null" => Expression::Null,
            "true" => Expression::Boolean(true),
            "false" => Expression::Boolean(false),
            _ if is_keyword(name) && !self.is(1, ".") => {
                return Err(self.expected_error("a field, a number, a string or a function"));
            }
            _ => Expression::Name(name.to_owned()),
        };
        self.step();
        Ok(self.done(start, expression))
    }

    fn call(&mut self, start: usize, name: &str, lower: &str) -> Result<ExpressionNode, OqlError> {
        let aggregate = match lower {
            "count" => Some(Aggregate::Count),
            "sum" => Some(Aggregate::Sum),
            "min" => Some(Aggregate::Min),
            "max" => Some(Aggregate::Max),
            "avg" => Some(Aggregate::Average),
            _ => None,
        };
        if aggregate == Some(Aggregate::Count) && (self.is(0, "*") || self.is(0, ")")) {
            self.eat("*");
            self.expect(")")?;
            return Ok(self.done(start, Expression::Aggregate(Aggregate::Count, None)));
        }
        if let Some(node) = self.script_call(start, lower)? {
            return Ok(node);
        }
        match lower {
            "chain" => return self.chain(start),
            "coalesce" => {
                let of = self.arguments()?;
                return Ok(self.done(start, Expression::Coalesce(of)));
            }
            _ => {}
        }
        let meaning = builtins::function(lower);
        if aggregate.is_none() && meaning.is_none() && lower != "eval" {
            return Err(builtins::no_function(start, name, lower));
        }
        let argument = self.node()?;
        self.expect(")")?;
        Ok(match (aggregate, meaning) {
            (Some(aggregate), _) => {
                self.done(start, Expression::Aggregate(aggregate, Some(Box::new(argument))))
            }
            (None, Some(builtins::Meaning::Function(function))) => {
                self.done(start, Expression::Call(function, Box::new(argument)))
            }
            (None, Some(builtins::Meaning::Attribute(name))) => {
                let step = StepNode { at: start, what: StepName::Attribute(name.to_owned()) };
                self.done(start, Expression::Path(Box::new(argument), vec![step]))
            }
            (None, None) => ExpressionNode { start, end: self.end(), ..argument },
        })
    }

    /// Parses the values of `[a, b]`, including the closing bracket.
    fn values(&mut self) -> Result<Vec<ExpressionNode>, OqlError> {
        let mut values = Vec::new();
        while !self.eat("]") {
            values.push(self.node()?);
            if !self.is(0, "]") {
                self.expect(",")?;
            }
        }
        Ok(values)
    }

    /// Parses `chain(x, "field")`, which means `x.chain("field")`.
    fn chain(&mut self, start: usize) -> Result<ExpressionNode, OqlError> {
        let base = Box::new(self.node()?);
        self.expect(",")?;
        let what = StepName::Method("chain".to_owned(), vec![self.node()?]);
        self.expect(")")?;
        Ok(self.done(start, Expression::Path(base, vec![StepNode { at: start, what }])))
    }
}

/// Makes a character in quotes a text.
fn make_text(node: &mut ExpressionNode) {
    if let Expression::Char(unit) = node.expression {
        node.expression = Expression::Text(String::from_utf16_lossy(&[unit]));
    }
}
