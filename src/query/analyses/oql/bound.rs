//! Expressions with names bound to values, such as `this`: rules use them to query one object.
//!
//! Subqueries may also use the names. They select only from values, never from a class, so that an expression reads
//! only objects reachable from its values.

use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::Summary;

use hprof_model::objects::hiding::HIDDEN;

use super::error::OqlError;
use super::evaluate::{EvaluatedRow, Evaluator};
use super::group::children;
use super::names::resolve::{NameScope, Resolver};
use super::parser;
use super::run::SubqueryRunner;
use super::selected::{Bindings, BoundValue, Objects, QueryContext};
use super::tree::{Expression, ExpressionNode, Select, SelectSource, Union};
use super::value::ExpressionValue;

/// An expression in which names are bound.
#[derive(Debug)]
pub(crate) struct BoundExpression {
    text: Box<str>,
    node: ExpressionNode,
    /// Placeholder for the SELECT of the expression: it has no alias, and is never run.
    select: Select,
}

/// An error at a byte of a bound expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BoundExpressionError {
    /// Byte offset in the expression.
    pub(crate) at: usize,
    /// Description of the error.
    pub(crate) text: String,
}

impl BoundExpression {
    /// Parses an expression.
    ///
    /// # Errors
    /// If the text is not an expression, or uses a name that is not bound.
    pub(crate) fn parse(text: &str, is_bound: &dyn Fn(&str) -> bool) -> Result<Self, BoundExpressionError> {
        let error = |wrong: OqlError| BoundExpressionError { at: wrong.at, text: wrong.text };
        let node = parser::parse_expression(text).map_err(error)?;
        check(&node, &mut Vec::new(), is_bound).map_err(error)?;
        let source =
            SelectSource::Value(Box::new(ExpressionNode { start: 0, end: 0, expression: Expression::Null }));
        let select = Select::new(0, source);
        Ok(Self { text: text.into(), node, select })
    }
}

/// Checks that all names are bound, or are aliases of an enclosing query.
fn check<'n>(
    node: &'n ExpressionNode,
    aliases: &mut Vec<&'n str>,
    is_bound: &dyn Fn(&str) -> bool,
) -> Result<(), OqlError> {
    match &node.expression {
        Expression::Name(name) if !aliases.contains(&name.as_str()) && !is_bound(name) => {
            let text = format!(
                "unknown name {}; use `this`, a fact declared earlier, or an alias",
                super::builtins::cut(name)
            );
            return Err(OqlError::new(node.start, text));
        }
        Expression::Row => return Err(OqlError::new(node.start, "no row is in scope; write `this.@...`")),
        Expression::Aggregate(..) if aliases.is_empty() => {
            let text =
                "aggregates are allowed only in a query: (SELECT count(*) FROM OBJECTS (this.list[0:-1]) e)";
            return Err(OqlError::new(node.start, text));
        }
        Expression::Query(query) => check_query(query, aliases, is_bound)?,
        Expression::InQuery(_, query, _) => check_query(query, aliases, is_bound)?,
        Expression::Is(_, _, at) => {
            // Such a comparison is an error if the dump does not contain the class.
            return Err(OqlError::new(
                *at,
                "rules cannot use this comparison; write classof(x).@name = \"class\"",
            ));
        }
        Expression::List(..) | Expression::Heap(..) => {
            let text = "rules cannot use functions over lists; write (SELECT count(*) FROM OBJECTS (this.list[0:-1]) e)";
            return Err(OqlError::new(node.start, text));
        }
        _ => {}
    }
    children(node).into_iter().try_for_each(|child| check(child, aliases, is_bound))
}

fn check_query<'n>(
    query: &'n Union,
    aliases: &mut Vec<&'n str>,
    is_bound: &dyn Fn(&str) -> bool,
) -> Result<(), OqlError> {
    for select in &query.selects {
        let from = &select.from;
        match &from.source {
            // The alias is not in scope yet.
            SelectSource::Value(node) => check(node, &mut Vec::new(), is_bound)?,
            SelectSource::Query(query) => check_query(query, &mut Vec::new(), is_bound)?,
            _ => {
                return Err(OqlError::new(
                    from.at,
                    "rules can select only from values: FROM OBJECTS (this.list[0:-1]) e",
                ));
            }
        }
        let Some(alias) = from
            .alias
            .as_deref()
            .filter(|_| from.is_objects || matches!(from.source, SelectSource::Query(_)))
        else {
            return Err(OqlError::new(
                from.at,
                "OBJECTS or the alias is missing; write FROM OBJECTS (this.list[0:-1]) e",
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
    /// Returns the value of an expression; null if the expression has none.
    pub(crate) fn evaluate(&self, expression: &BoundExpression, bindings: &dyn Bindings) -> BoundValue {
        let asking =
            SubqueryRunner::new(self, QueryContext { text: &expression.text, bindings: Some(bindings) });
        let mut resolver = Resolver::new(self, &expression.select, NameScope::Nothing, &asking);
        let code = resolver.code(&expression.node);
        BoundValue(
            code.map_or(ExpressionValue::Null, |code| {
                self.value(&code, &EvaluatedRow::new(u32::MAX, &[], None))
            }),
        )
    }

    /// Returns the elements of a list, at most `most`; `None` if the value is not a list.
    pub(crate) fn items(&self, value: &BoundValue, most: usize) -> Option<Vec<BoundValue>> {
        if !value.0.is_listed() {
            return None;
        }
        Some(self.items_of(&value.0)?.take(most).map(BoundValue).collect())
    }

    /// Returns the name of the class of an object.
    pub(crate) fn class_name_of(&self, value: &BoundValue) -> Option<String> {
        self.class_name(self.object_of(value)?).map(str::to_owned)
    }

    /// Returns the reachable objects of the classes marked by class number, in address order.
    pub(crate) fn objects_of_classes(&self, classes: Vec<bool>) -> Vec<ObjectIndex> {
        let found = self.matching(&Objects::Classes(classes), None, None);
        found.into_iter().map(ObjectIndex).collect()
    }

    pub(crate) fn summary(&self) -> &'a Summary {
        self.dump.summary
    }

    pub(crate) fn graph(&self) -> &'a ObjectGraph {
        self.dump.graph
    }

    /// Returns whether a text by [`Self::text_of`] is a placeholder for a hidden text.
    pub(crate) fn is_hidden_text(&self, text: &str) -> bool {
        self.hides_values && text.starts_with(HIDDEN)
    }

    /// Returns the text of an object or a text value; a placeholder if values are hidden.
    pub(crate) fn text_of(&self, value: &BoundValue) -> Option<String> {
        match self.call(super::tree::Function::ToText, value.0.clone()) {
            ExpressionValue::Text(text) => Some(text.into()),
            _ => None,
        }
    }

    /// Returns the object, if the value is one.
    pub(crate) fn object_of(&self, value: &BoundValue) -> Option<ObjectIndex> {
        if let ExpressionValue::Object(object) = value.0 { Some(object) } else { None }
    }

    /// Returns the object that the value is, or the objects in a list, at most `most`.
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
