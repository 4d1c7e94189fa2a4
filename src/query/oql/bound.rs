//! Expressions about names that are bound to values, such as `this`: what rules ask of one object.
//!
//! Inner queries may use the names, too. They select from values alone, never from a class, so that an expression looks
//! at no more than what its values lead to.

use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::Summary;

use super::error::Wrong;
use super::evaluate::{EvaluatedRow, Evaluator};
use super::group::children;
use super::parser;
use super::resolve::{NameScope, Resolver};
use super::run::Asking;
use super::selected::{Around, Bindings, BoundValue, Objects};
use super::tree::{Expression, ExpressionNode, From, Select, SelectSource, Union};
use super::value::ExpressionValue;

/// An expression in which names are bound.
#[derive(Debug)]
pub(crate) struct BoundExpression {
    text: Box<str>,
    node: ExpressionNode,
    /// The expression stands in no SELECT; this one has no alias, and is never run.
    select: Select,
}

/// An error at a byte of a bound expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BoundExpressionError {
    /// The byte.
    pub(crate) at: usize,
    /// Description of the error.
    pub(crate) text: String,
}

impl BoundExpression {
    /// Parses an expression.
    ///
    /// # Errors
    /// If it is none, or uses a name that is not bound.
    pub(crate) fn parse(text: &str, is_bound: &dyn Fn(&str) -> bool) -> Result<Self, BoundExpressionError> {
        let error = |wrong: Wrong| BoundExpressionError { at: wrong.at, text: wrong.text };
        let node = parser::parse_expression(text).map_err(error)?;
        check(&node, &mut Vec::new(), is_bound).map_err(error)?;
        let source =
            SelectSource::Value(Box::new(ExpressionNode { start: 0, end: 0, expression: Expression::Null }));
        let from = From { at: 0, is_objects: true, with_subclasses: false, source, alias: None };
        let select = Select {
            at: 0,
            is_distinct: false,
            is_retained: false,
            is_objects: false,
            items: None,
            from,
            condition: None,
            group: Vec::new(),
            order: Vec::new(),
            limit: None,
        };
        Ok(Self { text: text.into(), node, select })
    }
}

/// Checks that all names are bound, or are the alias of a query around them.
fn check<'n>(
    node: &'n ExpressionNode,
    aliases: &mut Vec<&'n str>,
    is_bound: &dyn Fn(&str) -> bool,
) -> Result<(), Wrong> {
    match &node.expression {
        Expression::Name(name) if !aliases.contains(&name.as_str()) && !is_bound(name) => {
            let text = format!(
                "there is no name {}; names are `this`, facts before this one, and aliases",
                super::builtins::cut(name)
            );
            return Err(Wrong::new(node.start, text));
        }
        Expression::Row => return Err(Wrong::new(node.start, "write `this.@...`")),
        Expression::Aggregate(..) if aliases.is_empty() => {
            let text = "aggregates belong in a query: (SELECT count(*) FROM OBJECTS (this.list[0:-1]) e)";
            return Err(Wrong::new(node.start, text));
        }
        Expression::Query(query) => check_query(query, aliases, is_bound)?,
        Expression::InQuery(_, query, _) => check_query(query, aliases, is_bound)?,
        Expression::Is(_, _, at) => {
            // Classes that a dump has not are an error there.
            return Err(Wrong::new(*at, "write classof(x).@name = \"class\""));
        }
        _ => {}
    }
    children(node).into_iter().try_for_each(|child| check(child, aliases, is_bound))
}

fn check_query<'n>(
    query: &'n Union,
    aliases: &mut Vec<&'n str>,
    is_bound: &dyn Fn(&str) -> bool,
) -> Result<(), Wrong> {
    for select in &query.selects {
        let from = &select.from;
        match &from.source {
            // The alias is not there yet.
            SelectSource::Value(node) => check(node, &mut Vec::new(), is_bound)?,
            SelectSource::Query(query) => check_query(query, &mut Vec::new(), is_bound)?,
            _ => {
                return Err(Wrong::new(from.at, "select from values: FROM OBJECTS (this.list[0:-1]) e"));
            }
        }
        let Some(alias) = from
            .alias
            .as_deref()
            .filter(|_| from.is_objects || matches!(from.source, SelectSource::Query(_)))
        else {
            return Err(Wrong::new(
                from.at,
                "write FROM OBJECTS and an alias: FROM OBJECTS (this.list[0:-1]) e",
            ));
        };
        aliases.push(alias);
        let items = select.items.iter().flatten().map(|item| &item.node);
        let order = select.order.iter().map(|(node, _)| node);
        let mut nodes = items.chain(&select.condition).chain(&select.group).chain(order);
        let checked = nodes.try_for_each(|node| check(node, aliases, is_bound));
        aliases.pop();
        checked?;
    }
    Ok(())
}

impl<'o, 'a> Evaluator<'o, 'a> {
    /// The value of an expression; null if it has none.
    pub(crate) fn evaluate(&self, expression: &BoundExpression, bindings: &dyn Bindings) -> BoundValue {
        let asking = Asking::new(self, Around { text: &expression.text, bindings: Some(bindings) });
        let mut resolver = Resolver::new(self, &expression.select, NameScope::Nothing, &asking);
        let code = resolver.code(&expression.node);
        BoundValue(
            code.map_or(ExpressionValue::Null, |code| {
                self.value(&code, &EvaluatedRow::new(u32::MAX, &[], None))
            }),
        )
    }

    /// The first elements of a value that is a list.
    pub(crate) fn items(&self, value: &BoundValue, most: usize) -> Option<Vec<BoundValue>> {
        if !matches!(
            value.0,
            ExpressionValue::List(..) | ExpressionValue::Slice(_) | ExpressionValue::Many(_)
        ) {
            return None;
        }
        Some(self.items_of(&value.0)?.take(most).map(BoundValue).collect())
    }

    /// The name of the class of an object.
    pub(crate) fn class_name_of(&self, value: &BoundValue) -> Option<String> {
        self.class_name(self.object_of(value)?).map(str::to_owned)
    }

    /// The reachable objects of classes, by class number, in address order.
    pub(crate) fn objects_of_classes(&self, classes: Vec<bool>) -> Vec<ObjectIndex> {
        let found = self.matching(&Objects::Classes(classes), None, None);
        found.into_iter().map(ObjectIndex).collect()
    }

    pub(crate) fn summary(&self) -> &'a Summary {
        self.summary
    }

    pub(crate) fn graph(&self) -> &'a ObjectGraph {
        self.graph
    }

    /// The text of a value that is an object or a text, hidden if values are.
    pub(crate) fn text_of(&self, value: &BoundValue) -> Option<String> {
        match self.call(super::tree::Function::ToText, value.0.clone()) {
            ExpressionValue::Text(text) => Some(text.into()),
            _ => None,
        }
    }

    /// The object that a value is.
    pub(crate) fn object_of(&self, value: &BoundValue) -> Option<ObjectIndex> {
        if let ExpressionValue::Object(object) = value.0 { Some(object) } else { None }
    }

    /// The objects that a value is, or that are in the list that it is; no more than `most`.
    pub(crate) fn objects_in(&self, value: &BoundValue, most: usize) -> Vec<ObjectIndex> {
        let objects: Box<dyn Iterator<Item = ObjectIndex> + '_> = match &value.0 {
            ExpressionValue::Object(_)
            | ExpressionValue::List(..)
            | ExpressionValue::Slice(_)
            | ExpressionValue::Many(_) => self.objects_of(value.0.clone()),
            _ => return Vec::new(),
        };
        objects.take(most).collect()
    }
}
