//! Tokens as a syntax tree.
//!
//! Nesting is bounded, so that no query overflows the stack: each level costs a dozen calls here and a few where the
//! tree is walked. What repeats on one level (AND, OR, sums, the steps of a path, UNION) is a list.

use super::error::Wrong;
use super::lexer::{self, Kind, Token};
use super::tree::{
    Aggregate, Comparison, Expression, From, Function, Item, Node, Operator, Select, Source, Step, Union,
    What,
};

/// Brackets, functions and queries inside one another.
const MAX_DEPTH: u32 = 48;
/// Bytes of a query.
const MAX_LEN: usize = 1 << 20;

/// Words that no alias can be.
const KEYWORDS: &[&str] = &[
    "select",
    "from",
    "where",
    "union",
    "group",
    "order",
    "limit",
    "by",
    "and",
    "or",
    "not",
    "like",
    "in",
    "as",
    "implements",
    "instanceof",
    "objects",
    "distinct",
    "null",
    "true",
    "false",
    "asc",
    "desc",
];

/// The tree of a query.
pub(super) fn parse(text: &str) -> Result<Union, Wrong> {
    if text.len() > MAX_LEN {
        return Err(Wrong::new(0, "the query is longer than a megabyte"));
    }
    let tokens = lexer::tokens(text)?;
    let mut parser = Parser { text, tokens: &tokens, at: 0, depth: 0 };
    let union = parser.union()?;
    parser.takes(";");
    match parser.peek() {
        Kind::End => Ok(union),
        _ => Err(parser.expected("the end of the query")),
    }
}

struct Parser<'t> {
    text: &'t str,
    tokens: &'t [Token],
    at: usize,
    depth: u32,
}

impl<'t> Parser<'t> {
    fn token(&self, ahead: usize) -> Option<&'t Token> {
        self.tokens.get(self.at + ahead).or_else(|| self.tokens.last())
    }

    fn kind(&self, ahead: usize) -> &'t Kind {
        self.token(ahead).map_or(&Kind::End, |token| &token.kind)
    }

    fn peek(&self) -> &'t Kind {
        self.kind(0)
    }

    /// Where the next token starts.
    fn start(&self) -> usize {
        self.token(0).map_or(self.text.len(), |token| token.start)
    }

    /// Where the last token ended.
    fn end(&self) -> usize {
        self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(0, |token| token.end)
    }

    fn slice(&self, start: usize, end: usize) -> &'t str {
        self.text.get(start..end).unwrap_or_default()
    }

    fn name_at(&self, ahead: usize) -> Option<&'t str> {
        let token = self.token(ahead)?;
        (token.kind == Kind::Name).then(|| self.slice(token.start, token.end))
    }

    fn step(&mut self) {
        self.at += 1;
    }

    fn is(&self, ahead: usize, symbol: &str) -> bool {
        matches!(self.kind(ahead), Kind::Symbol(found) if *found == symbol)
    }

    fn takes(&mut self, symbol: &str) -> bool {
        let is = self.is(0, symbol);
        self.at += usize::from(is);
        is
    }

    fn expects(&mut self, symbol: &str) -> Result<(), Wrong> {
        if self.takes(symbol) { Ok(()) } else { Err(self.expected(&format!("`{symbol}`"))) }
    }

    fn is_word(&self, ahead: usize, word: &str) -> bool {
        self.name_at(ahead).is_some_and(|name| name.eq_ignore_ascii_case(word))
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let is = self.is_word(0, word);
        self.at += usize::from(is);
        is
    }

    fn expects_word(&mut self, word: &str) -> Result<(), Wrong> {
        if self.takes_word(word) { Ok(()) } else { Err(self.expected(word)) }
    }

    fn expected(&self, what: &str) -> Wrong {
        let found = match (self.peek(), self.token(0)) {
            (Kind::End, _) | (_, None) => "the query ends".to_owned(),
            (_, Some(token)) => {
                let text: String = self.slice(token.start, token.end).chars().take(40).collect();
                format!("found `{text}`")
            }
        };
        Wrong::new(self.start(), format!("expected {what}, {found}"))
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, Wrong>) -> Result<T, Wrong> {
        if self.depth >= MAX_DEPTH {
            return Err(Wrong::new(self.start(), format!("nested more than {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn union(&mut self) -> Result<Union, Wrong> {
        self.deeper(|parser| {
            let mut selects = vec![parser.select()?];
            while parser.takes_word("union") {
                parser.expects("(")?;
                selects.extend(parser.union()?.selects);
                parser.expects(")")?;
            }
            Ok(Union { selects })
        })
    }

    fn select(&mut self) -> Result<Select, Wrong> {
        let at = self.start();
        self.expects_word("SELECT")?;
        let mut is_distinct = self.takes_word("distinct");
        let is_retained = self.is_word(0, "as") && self.is_word(1, "retained") && self.is_word(2, "set");
        self.at += if is_retained { 3 } else { 0 };
        is_distinct |= self.takes_word("distinct");
        let is_objects =
            self.is_word(0, "objects") && !self.is(1, ".") && !self.is(1, ",") && !self.is_word(1, "from");
        self.at += usize::from(is_objects);
        let items = if self.takes("*") { None } else { Some(self.items()?) };
        self.expects_word("FROM")?;
        let from = self.from()?;
        let condition = if self.takes_word("where") { Some(self.node()?) } else { None };
        let mut group = Vec::new();
        if self.takes_word("group") {
            self.expects_word("BY")?;
            group.push(self.node()?);
            while self.takes(",") {
                group.push(self.node()?);
            }
        }
        let mut order = Vec::new();
        if self.takes_word("order") {
            self.expects_word("BY")?;
            loop {
                let node = self.node()?;
                let descending = self.takes_word("desc");
                if !descending {
                    self.takes_word("asc");
                }
                order.push((node, descending));
                if !self.takes(",") {
                    break;
                }
            }
        }
        let limit = if self.takes_word("limit") {
            match self.peek() {
                Kind::Whole(number) => {
                    let limit = u64::try_from(*number).ok();
                    self.step();
                    limit
                }
                _ => return Err(self.expected("a number of rows")),
            }
        } else {
            None
        };
        Ok(Select { at, is_distinct, is_retained, is_objects, items, from, condition, group, order, limit })
    }

    fn items(&mut self) -> Result<Vec<Item>, Wrong> {
        let mut items = Vec::new();
        loop {
            let node = self.node()?;
            let mut name = self.slice(node.start, node.end).split_whitespace().collect::<Vec<_>>().join(" ");
            if self.takes_word("as") {
                name = match (self.peek(), self.name_at(0)) {
                    (Kind::Text(text), _) => lexer::unescaped(text),
                    (_, Some(name)) => name.to_owned(),
                    _ => return Err(self.expected("the name of the column")),
                };
                self.step();
            }
            items.push(Item { node, name });
            if !self.takes(",") {
                return Ok(items);
            }
        }
    }

    fn from(&mut self) -> Result<From, Wrong> {
        let mut is_objects = self.is_word(0, "objects") && !self.is(1, ".");
        self.at += usize::from(is_objects);
        let with_subclasses = self.takes_word("instanceof");
        if !is_objects && self.is_word(0, "objects") && !self.is(1, ".") {
            is_objects = true;
            self.step();
        }
        let at = self.start();
        let source = match self.peek() {
            Kind::Text(pattern) => {
                self.step();
                Source::Pattern(pattern.clone())
            }
            Kind::Hex(_) => Source::Addresses(self.numbers(|kind| match kind {
                Kind::Hex(number) => Some(*number),
                _ => None,
            })?),
            Kind::Whole(_) => Source::Indices(self.numbers(|kind| match kind {
                Kind::Whole(number) => Some(*number),
                _ => None,
            })?),
            Kind::Symbol("(") => {
                self.step();
                let query = self.union()?;
                self.expects(")")?;
                Source::Query(Box::new(query))
            }
            Kind::Snapshot => {
                self.step();
                is_objects = true;
                self.snapshot()?
            }
            _ => Source::Class(self.class_name()?),
        };
        let alias = self.name_at(0).filter(|name| !is_keyword(name)).map(str::to_owned);
        self.at += usize::from(alias.is_some());
        Ok(From { at, is_objects, with_subclasses, source, alias })
    }

    fn numbers<T>(&mut self, number: impl Fn(&Kind) -> Option<T>) -> Result<Vec<T>, Wrong> {
        let mut numbers = Vec::new();
        loop {
            let Some(found) = number(self.peek()) else {
                return Err(self.expected("one more number of the same form"));
            };
            numbers.push(found);
            self.step();
            if !self.takes(",") {
                return Ok(numbers);
            }
        }
    }

    /// What is called on `${snapshot}`.
    fn snapshot(&mut self) -> Result<Source, Wrong> {
        self.expects(".")?;
        self.takes("@");
        let at = self.start();
        let source = match self.name_at(0) {
            Some("getClasses" | "classes") => {
                self.step();
                if self.takes("(") {
                    self.expects(")")?;
                }
                Source::AllClasses
            }
            Some("getClassesByName") => {
                self.step();
                self.expects("(")?;
                let Kind::Text(name) = self.peek() else {
                    return Err(self.expected("the name of a class, in quotes"));
                };
                self.step();
                self.expects(",")?;
                let with_subclasses = self.takes_word("true");
                if !with_subclasses {
                    self.expects_word("false")?;
                }
                self.expects(")")?;
                Source::ClassesByName(name.clone(), with_subclasses)
            }
            _ => {
                return Err(Wrong::new(
                    at,
                    "${snapshot} has getClasses() and getClassesByName(\"...\", true) here",
                ));
            }
        };
        Ok(source)
    }

    /// `java.lang.String`, `int[][]`, `[I`, `[Ljava.lang.String;`.
    fn class_name(&mut self) -> Result<String, Wrong> {
        let start = self.start();
        while self.takes("[") {}
        loop {
            if self
                .name_at(0)
                .is_none_or(|name| self.start() == start && is_keyword(name) && !self.is(1, "."))
            {
                return Err(self.expected("a class, \"a pattern\", 0xaddress or (a query)"));
            }
            self.step();
            if !self.takes(".") && !self.takes("/") {
                break;
            }
        }
        if self.slice(start, start + 1) == "[" {
            self.takes(";");
        }
        while self.is(0, "[") && self.is(1, "]") {
            self.at += 2;
        }
        Ok(self.slice(start, self.end()).chars().filter(|c| !c.is_whitespace()).collect())
    }

    /// A node that started at `start` and ends here.
    fn done(&self, start: usize, expression: Expression) -> Node {
        Node { start, end: self.end(), expression }
    }

    fn node(&mut self) -> Result<Node, Wrong> {
        self.deeper(|parser| {
            parser.list(&["or", "||"], Expression::Any, |parser| {
                parser.list(&["and", "&&"], Expression::All, Self::not)
            })
        })
    }

    /// Nodes with one of these words between them; one alone is itself.
    fn list(
        &mut self,
        words: &[&str],
        all: impl FnOnce(Vec<Node>) -> Expression,
        mut parse: impl FnMut(&mut Self) -> Result<Node, Wrong>,
    ) -> Result<Node, Wrong> {
        let start = self.start();
        let first = parse(self)?;
        let mut more = Vec::new();
        while words.iter().any(|word| self.takes_word(word) || self.takes(word)) {
            more.push(parse(self)?);
        }
        if more.is_empty() {
            return Ok(first);
        }
        more.insert(0, first);
        Ok(self.done(start, all(more)))
    }

    fn not(&mut self) -> Result<Node, Wrong> {
        let start = self.start();
        // As many as there are: the last of `NOT NOT x` says it all.
        let mut is_negated = false;
        while self.takes_word("not") || self.takes("!") {
            is_negated = !is_negated;
        }
        let node = self.equality()?;
        if !is_negated {
            return Ok(node);
        }
        Ok(self.done(start, Expression::Not(Box::new(node))))
    }

    fn equality(&mut self) -> Result<Node, Wrong> {
        let start = self.start();
        let left = self.relation()?;
        let comparison = if self.takes("=") || self.takes("==") {
            Comparison::Equal
        } else if self.takes("!=") || self.takes("<>") {
            Comparison::NotEqual
        } else {
            return Ok(left);
        };
        let right = self.relation()?;
        Ok(self.done(start, Expression::Compare(Box::new(left), comparison, Box::new(right))))
    }

    fn relation(&mut self) -> Result<Node, Wrong> {
        let start = self.start();
        let left = self.sum()?;
        let comparison = match self.peek() {
            Kind::Symbol("<") => Comparison::Less,
            Kind::Symbol("<=") => Comparison::LessOrEqual,
            Kind::Symbol(">") => Comparison::Greater,
            Kind::Symbol(">=") => Comparison::GreaterOrEqual,
            _ => return self.membership(start, left),
        };
        self.step();
        let right = self.sum()?;
        Ok(self.done(start, Expression::Compare(Box::new(left), comparison, Box::new(right))))
    }

    /// LIKE, IN, `instanceof` and `implements`, if there is one.
    fn membership(&mut self, start: usize, left: Node) -> Result<Node, Wrong> {
        let is_negated = self.is_word(0, "not") && (self.is_word(1, "like") || self.is_word(1, "in"));
        self.at += usize::from(is_negated);
        let left = Box::new(left);
        if self.takes_word("like") {
            let Kind::Text(pattern) = self.peek() else {
                return Err(self.expected("a regular expression in quotes"));
            };
            self.step();
            return Ok(self.done(start, Expression::Like(left, pattern.clone(), is_negated)));
        }
        if self.takes_word("in") {
            if self.is(0, "(") && self.is_word(1, "select") {
                self.step();
                let query = self.union()?;
                self.expects(")")?;
                return Ok(self.done(start, Expression::InQuery(left, Box::new(query), is_negated)));
            }
            let mut values = Vec::new();
            if self.takes("(") {
                values.push(self.node()?);
                while self.takes(",") {
                    values.push(self.node()?);
                }
                self.expects(")")?;
            } else {
                values.push(self.sum()?);
            }
            return Ok(self.done(start, Expression::In(left, values, is_negated)));
        }
        if self.takes_word("implements") || self.takes_word("instanceof") {
            let at = self.start();
            let class = match self.peek() {
                Kind::Text(class) => {
                    self.step();
                    class.clone()
                }
                _ => self.class_name()?,
            };
            return Ok(self.done(start, Expression::Is(left, class, at)));
        }
        Ok(*left)
    }

    fn sum(&mut self) -> Result<Node, Wrong> {
        self.arithmetic(&[("+", Operator::Add), ("-", Operator::Subtract)], |parser| {
            parser.arithmetic(&[("*", Operator::Multiply), ("/", Operator::Divide)], Self::signed)
        })
    }

    fn arithmetic(
        &mut self,
        operators: &[(&str, Operator)],
        mut parse: impl FnMut(&mut Self) -> Result<Node, Wrong>,
    ) -> Result<Node, Wrong> {
        let start = self.start();
        let first = parse(self)?;
        let mut more = Vec::new();
        while let Some((_, operator)) = operators.iter().find(|(symbol, _)| self.is(0, symbol)) {
            self.step();
            more.push((*operator, parse(self)?));
        }
        if more.is_empty() {
            return Ok(first);
        }
        Ok(self.done(start, Expression::Arithmetic(Box::new(first), more)))
    }

    fn signed(&mut self) -> Result<Node, Wrong> {
        let start = self.start();
        let mut is_negated = false;
        while self.takes("-") {
            is_negated = !is_negated;
        }
        let node = self.path()?;
        if !is_negated {
            return Ok(node);
        }
        Ok(self.done(start, Expression::Negate(Box::new(node))))
    }

    fn path(&mut self) -> Result<Node, Wrong> {
        let start = self.start();
        let root = if self.is(0, "@") { self.done(start, Expression::Row) } else { self.primary()? };
        let mut steps = Vec::new();
        loop {
            let at = self.start();
            if self.takes("[") {
                let index = self.node()?;
                self.expects("]")?;
                steps.push(Step { at, what: What::Element(Box::new(index)) });
                continue;
            }
            let is_attribute = if self.takes("@") {
                if !steps.is_empty() || self.end() != at + 1 || !matches!(root.expression, Expression::Row) {
                    return Err(Wrong::new(
                        at,
                        "expected an operator, found `@`; attributes stand behind a dot: s.@length",
                    ));
                }
                true
            } else if self.takes(".") {
                self.takes("@")
            } else {
                break;
            };
            let at = self.start();
            let Some(name) = self.name_at(0) else {
                return Err(self.expected("the name of a field or an attribute"));
            };
            self.step();
            let name = name.to_owned();
            let what = if self.takes("(") {
                What::Method(name, self.arguments()?)
            } else if is_attribute {
                What::Attribute(name)
            } else {
                What::Field(name)
            };
            steps.push(Step { at, what });
        }
        if steps.is_empty() {
            return Ok(root);
        }
        Ok(self.done(start, Expression::Path(Box::new(root), steps)))
    }

    /// What stands between brackets, and the closing one.
    fn arguments(&mut self) -> Result<Vec<Node>, Wrong> {
        let mut arguments = Vec::new();
        if self.takes(")") {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.node()?);
            if !self.takes(",") {
                self.expects(")")?;
                return Ok(arguments);
            }
        }
    }

    fn primary(&mut self) -> Result<Node, Wrong> {
        let start = self.start();
        let expression = match self.peek() {
            Kind::Whole(number) => Expression::Whole(*number),
            // As a Java long: MAT's addresses are longs.
            Kind::Hex(number) => Expression::Whole(number.cast_signed()),
            Kind::Fraction(number) => Expression::Fraction(*number),
            Kind::Char(unit) => Expression::Char(*unit),
            Kind::Text(text) => Expression::Text(lexer::unescaped(text)),
            Kind::Symbol("(") => {
                self.step();
                let mut node = self.node()?;
                self.expects(")")?;
                (node.start, node.end) = (start, self.end());
                return Ok(node);
            }
            Kind::Name => return self.named(start),
            _ => return Err(self.expected("a field, a number, a text or a function")),
        };
        self.step();
        Ok(self.done(start, expression))
    }

    /// A name, or a call of a function.
    fn named(&mut self, start: usize) -> Result<Node, Wrong> {
        let name = self.name_at(0).unwrap_or_default();
        let lower = name.to_ascii_lowercase();
        if self.is(1, "(") {
            self.at += 2;
            return self.call(start, name, &lower);
        }
        let expression = match lower.as_str() {
            "null" => Expression::Null,
            "true" => Expression::Boolean(true),
            "false" => Expression::Boolean(false),
            _ if is_keyword(name) && !self.is(1, ".") => {
                return Err(self.expected("a field, a number, a text or a function"));
            }
            _ => Expression::Name(name.to_owned()),
        };
        self.step();
        Ok(self.done(start, expression))
    }

    fn call(&mut self, start: usize, name: &str, lower: &str) -> Result<Node, Wrong> {
        let aggregate = match lower {
            "count" => Some(Aggregate::Count),
            "sum" => Some(Aggregate::Sum),
            "min" => Some(Aggregate::Min),
            "max" => Some(Aggregate::Max),
            "avg" => Some(Aggregate::Average),
            _ => None,
        };
        if aggregate == Some(Aggregate::Count) && (self.is(0, "*") || self.is(0, ")")) {
            self.takes("*");
            self.expects(")")?;
            return Ok(self.done(start, Expression::Aggregate(Aggregate::Count, None)));
        }
        let function = match lower {
            "tohex" => Some(Function::ToHex),
            "tostring" => Some(Function::ToText),
            "dominators" => Some(Function::Dominators),
            "dominatorof" => Some(Function::DominatorOf),
            "outbounds" => Some(Function::Outbounds),
            "inbounds" => Some(Function::Inbounds),
            "classof" => Some(Function::ClassOf),
            _ => None,
        };
        if aggregate.is_none() && function.is_none() && lower != "eval" {
            const NAMES: &str = "toString, toHex, dominators, dominatorof, outbounds, inbounds, classof, eval, count, \
                                 sum, min, max, avg";
            return Err(Wrong::new(start, format!("there is no function {name}; functions are {NAMES}")));
        }
        let argument = self.node()?;
        self.expects(")")?;
        Ok(match (aggregate, function) {
            (Some(aggregate), _) => {
                self.done(start, Expression::Aggregate(aggregate, Some(Box::new(argument))))
            }
            (None, Some(function)) => self.done(start, Expression::Call(function, Box::new(argument))),
            (None, None) => Node { start, end: self.end(), ..argument },
        })
    }
}

fn is_keyword(name: &str) -> bool {
    KEYWORDS.iter().any(|keyword| keyword.eq_ignore_ascii_case(name))
}

#[cfg(test)]
#[path = "parser_tests.rs"]
mod tests;
