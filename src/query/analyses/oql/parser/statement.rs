//! Parser of queries: SELECT, FROM and the clauses after them.

use super::{Parser, is_keyword};
use crate::oql::error::OqlError;
use crate::oql::lexer::{self, TokenKind};
use crate::oql::tree::{Expression, ExpressionNode, From, Select, SelectItem, SelectSource, StepName, Union};
use hprof_values::ObjectId;

/// Maximum number of columns of a SELECT, and of grouping and sort keys.
const MAX_COLUMNS: usize = 1000;

impl Parser<'_> {
    /// Parses SELECT statements separated by UNION.
    pub(super) fn union(&mut self) -> Result<Union, OqlError> {
        self.deeper(|parser| {
            let mut selects = vec![parser.select()?];
            while parser.eat_word("union") {
                parser.expect("(")?;
                selects.extend(parser.union()?.selects);
                parser.expect(")")?;
            }
            Ok(Union { selects })
        })
    }

    fn select(&mut self) -> Result<Select, OqlError> {
        let at = self.start();
        self.expect_word("SELECT")?;
        let mut is_distinct = self.eat_word("distinct");
        let is_retained = self.is_word(0, "as") && self.is_word(1, "retained") && self.is_word(2, "set");
        self.at += if is_retained { 3 } else { 0 };
        is_distinct |= self.eat_word("distinct");
        let is_objects =
            self.is_word(0, "objects") && !self.is(1, ".") && !self.is(1, ",") && !self.is_word(1, "from");
        self.at += usize::from(is_objects);
        let items = if self.eat("*") { None } else { Some(self.items()?) };
        if let Some(items) = &items
            && self.is_query_end()
        {
            return script(at, is_distinct || is_retained || is_objects, items.clone());
        }
        self.expect_word("FROM")?;
        let from = self.from()?;
        let condition = if self.eat_word("where") { Some(self.node()?) } else { None };
        let mut group = Vec::new();
        if self.eat_word("group") {
            self.expect_word("BY")?;
            group.push(self.node()?);
            while self.eat(",") {
                group.push(self.node()?);
            }
        }
        let mut order = Vec::new();
        if self.eat_word("order") {
            self.expect_word("BY")?;
            loop {
                let node = self.node()?;
                let descending = self.eat_word("desc");
                if !descending {
                    self.eat_word("asc");
                }
                order.push((node, descending));
                if !self.eat(",") {
                    break;
                }
            }
        }
        let limit = if self.eat_word("limit") {
            match self.peek() {
                TokenKind::Whole(number) => {
                    self.step();
                    Some(*number)
                }
                _ => return Err(self.expected_error("a number of rows")),
            }
        } else {
            None
        };
        if items.iter().flatten().count().max(group.len()).max(order.len()) > MAX_COLUMNS {
            return Err(OqlError::new(at, format!("a SELECT can have at most {MAX_COLUMNS} columns")));
        }
        Ok(Select { at, is_distinct, is_retained, is_objects, items, from, condition, group, order, limit })
    }

    /// Returns whether no clause follows, as after `select heap.classes()`.
    fn is_query_end(&self) -> bool {
        matches!(self.peek(), TokenKind::End | TokenKind::Symbol(")" | ";")) || self.is_word(0, "union")
    }

    fn items(&mut self) -> Result<Vec<SelectItem>, OqlError> {
        let mut items = Vec::new();
        loop {
            let node = self.node()?;
            // Each value of `{a: x, b: y}` is a column.
            if let Expression::Record(values) = node.expression {
                items.extend(values.into_iter().map(|(name, node)| SelectItem { node, name }));
                if !self.eat(",") {
                    return Ok(items);
                }
                continue;
            }
            let mut name = self.slice(node.start, node.end).split_whitespace().collect::<Vec<_>>().join(" ");
            if self.eat_word("as") {
                name = match (self.peek(), self.name_at(0)) {
                    (TokenKind::Text(text), _) => lexer::unescape(text),
                    // No clause could use it: `ORDER BY objects` begins with a keyword.
                    (_, Some(name)) if is_keyword(name) => {
                        let text = format!("{name} is a keyword and cannot name a column; use another name");
                        return Err(OqlError::new(self.start(), text));
                    }
                    (_, Some(name)) => name.to_owned(),
                    _ => return Err(self.expected_error("a name for the column")),
                };
                self.step();
            }
            items.push(SelectItem { node, name });
            if !self.eat(",") {
                return Ok(items);
            }
        }
    }

    fn from(&mut self) -> Result<From, OqlError> {
        let mut is_objects = self.is_word(0, "objects") && !self.is(1, ".");
        self.at += usize::from(is_objects);
        let with_subclasses = self.eat_word("instanceof");
        if !is_objects && self.is_word(0, "objects") && !self.is(1, ".") {
            is_objects = true;
            self.step();
        }
        let at = self.start();
        let source = match self.peek() {
            TokenKind::Text(pattern) => {
                self.step();
                SelectSource::Pattern(pattern.clone())
            }
            TokenKind::Hex(_) => SelectSource::Addresses(self.numbers(|kind| match kind {
                TokenKind::Hex(number) => Some(ObjectId(*number)),
                _ => None,
            })?),
            TokenKind::Whole(_) => SelectSource::Indices(self.numbers(|kind| match kind {
                TokenKind::Whole(number) => i64::try_from(*number).ok(),
                _ => None,
            })?),
            TokenKind::Symbol("(") if self.is_word(1, "select") => {
                self.step();
                let query = self.union()?;
                self.expect(")")?;
                SelectSource::Query(Box::new(query))
            }
            TokenKind::Snapshot | TokenKind::Symbol("(") => value(self.deeper(Self::path)?),
            // A function, or `${alias}`.
            TokenKind::Name
                if self.is(1, "(") || self.slice(at, at + 1) == "$" && self.slice(at + 1, at + 2) == "{" =>
            {
                value(self.deeper(Self::path)?)
            }
            _ => SelectSource::Class(self.class_name()?),
        };
        let alias = self.name_at(0).filter(|name| !is_keyword(name)).map(str::to_owned);
        self.at += usize::from(alias.is_some());
        Ok(From { at, is_objects, with_subclasses, source, alias })
    }

    fn numbers<T>(&mut self, number: impl Fn(&TokenKind) -> Option<T>) -> Result<Vec<T>, OqlError> {
        let mut numbers = Vec::new();
        loop {
            let Some(found) = number(self.peek()) else {
                return Err(self.expected_error("another number in the same notation, decimal or 0x"));
            };
            numbers.push(found);
            self.step();
            if !self.eat(",") {
                return Ok(numbers);
            }
        }
    }

    /// Parses `java.lang.String`, `int[][]`, `[I`, `[Ljava.lang.String;`.
    pub(super) fn class_name(&mut self) -> Result<String, OqlError> {
        let start = self.start();
        while self.eat("[") {}
        loop {
            if self
                .name_at(0)
                .is_none_or(|name| self.start() == start && is_keyword(name) && !self.is(1, "."))
            {
                return Err(self.expected_error(
                    "a class, a pattern in quotes, an object ID (0x...) or a query in parentheses",
                ));
            }
            self.step();
            if !self.eat(".") && !self.eat("/") {
                break;
            }
        }
        if self.slice(start, start + 1) == "[" {
            self.eat(";");
        }
        while self.is(0, "[") && self.is(1, "]") {
            self.at += 2;
        }
        Ok(self.slice(start, self.end()).chars().filter(|c| !c.is_whitespace()).collect())
    }
}

/// Creates a SELECT without FROM.
fn script(at: usize, is_wrong: bool, items: Vec<SelectItem>) -> Result<Select, OqlError> {
    if is_wrong {
        return Err(OqlError::new(at, "DISTINCT, OBJECTS and AS RETAINED SET need FROM; use unique(list)"));
    }
    Ok(Select::new(at, SelectSource::Expressions(items)))
}

/// Converts an expression after FROM to a source: `${snapshot}.getClasses()` means all classes.
fn value(node: ExpressionNode) -> SelectSource {
    if let Expression::Path(base, steps) = &node.expression
        && base.expression == Expression::Snapshot
        && let [step] = steps.as_slice()
    {
        match &step.what {
            StepName::Attribute(name) if name == "classes" => return SelectSource::AllClasses,
            StepName::Method(name, arguments) => match (name.as_str(), arguments.as_slice()) {
                ("getClasses", []) => return SelectSource::AllClasses,
                ("getClassesByName", [name, with_subclasses]) => {
                    if let (Expression::Text(name), Expression::Boolean(with_subclasses)) =
                        (&name.expression, &with_subclasses.expression)
                    {
                        return SelectSource::ClassesByName(name.clone(), *with_subclasses);
                    }
                }
                _ => {}
            },
            _ => {}
        }
    }
    SelectSource::Value(Box::new(node))
}
