//! Conversion of tokens to a syntax tree.
//!
//! Nesting is bounded, so that no query overflows the stack: each level takes a dozen calls here and a few where the tree is
//! traversed. Repetitions on one level (AND, OR, sums, the steps of a path, UNION) are lists.

use super::MAX_LEN;
use super::error::OqlError;
use super::lexer::{self, Token, TokenKind};
use super::tree::{ExpressionNode, Union};

mod expression;
mod function;
mod script;
mod statement;

/// Maximum nesting depth of brackets, functions and queries.
const MAX_DEPTH: u32 = 48;

/// Words of the language that cannot be aliases.
pub const KEYWORDS: &[&str] = &[
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

/// Parses a query into its tree.
pub(super) fn parse(text: &str) -> Result<Union, OqlError> {
    if text.len() > MAX_LEN {
        return Err(OqlError::new(0, "the query is longer than 1 MiB"));
    }
    let tokens = lexer::tokens(text)?;
    let mut parser = Parser::new(text, &tokens);
    let union = parser.union()?;
    parser.eat(";");
    match parser.peek() {
        TokenKind::End => Ok(union),
        _ => Err(parser.expected_error("the end of the query")),
    }
}

/// Parses a single expression into its tree.
pub(super) fn parse_expression(text: &str) -> Result<ExpressionNode, OqlError> {
    if text.len() > MAX_LEN {
        return Err(OqlError::new(0, "the expression is longer than 1 MiB"));
    }
    let tokens = lexer::tokens(text)?;
    let mut parser = Parser::new(text, &tokens);
    let node = parser.node()?;
    match parser.peek() {
        TokenKind::End => Ok(node),
        _ => Err(parser.expected_error("the end of the expression")),
    }
}

/// Parser over the tokens of a query.
struct Parser<'t> {
    text: &'t str,
    tokens: &'t [Token],
    at: usize,
    depth: u32,
    /// Offset of the text in the query, of which it may be a quoted part.
    base: usize,
    /// Functions around the current position, innermost last.
    scopes: Vec<Scope>,
    /// Number of functions so far.
    functions: u32,
}

/// Parameters of a function.
struct Scope {
    number: u32,
    /// Names, with their slots.
    parameters: Vec<(String, u8)>,
    /// Slots that are used, one bit each.
    slots: u8,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str, tokens: &'t [Token]) -> Self {
        Self { text, tokens, at: 0, depth: 0, base: 0, scopes: Vec::new(), functions: 0 }
    }

    fn token(&self, ahead: usize) -> Option<&'t Token> {
        self.tokens.get(self.at + ahead).or_else(|| self.tokens.last())
    }

    fn kind(&self, ahead: usize) -> &'t TokenKind {
        self.token(ahead).map_or(&TokenKind::End, |token| &token.kind)
    }

    fn peek(&self) -> &'t TokenKind {
        self.kind(0)
    }

    /// Returns the start offset of the next token.
    fn start(&self) -> usize {
        self.base + self.token(0).map_or(self.text.len(), |token| token.start)
    }

    /// Returns the end offset of the last token.
    fn end(&self) -> usize {
        self.base + self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(0, |token| token.end)
    }

    /// Returns the text between two offsets in the query.
    fn slice(&self, start: usize, end: usize) -> &'t str {
        let range = start.saturating_sub(self.base)..end.saturating_sub(self.base);
        self.text.get(range).unwrap_or_default()
    }

    fn token_text(&self, token: &Token) -> &'t str {
        self.text.get(token.start..token.end).unwrap_or_default()
    }

    fn name_at(&self, ahead: usize) -> Option<&'t str> {
        let token = self.token(ahead)?;
        let name = self.token_text(token);
        let name = name.strip_prefix("${").and_then(|name| name.strip_suffix('}')).unwrap_or(name);
        (token.kind == TokenKind::Name).then_some(name)
    }

    fn step(&mut self) {
        self.at += 1;
    }

    fn is(&self, ahead: usize, symbol: &str) -> bool {
        matches!(self.kind(ahead), TokenKind::Symbol(found) if *found == symbol)
    }

    fn eat(&mut self, symbol: &str) -> bool {
        let is = self.is(0, symbol);
        self.at += usize::from(is);
        is
    }

    fn expect(&mut self, symbol: &str) -> Result<(), OqlError> {
        if self.eat(symbol) { Ok(()) } else { Err(self.expected_error(&format!("`{symbol}`"))) }
    }

    fn is_word(&self, ahead: usize, word: &str) -> bool {
        self.name_at(ahead).is_some_and(|name| name.eq_ignore_ascii_case(word))
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let is = self.is_word(0, word);
        self.at += usize::from(is);
        is
    }

    fn expect_word(&mut self, word: &str) -> Result<(), OqlError> {
        if self.eat_word(word) { Ok(()) } else { Err(self.expected_error(word)) }
    }

    fn expected_error(&self, what: &str) -> OqlError {
        let found = match (self.peek(), self.token(0)) {
            (TokenKind::End, _) | (_, None) => "found the end of the input".to_owned(),
            (_, Some(token)) => {
                let text: String = self.token_text(token).chars().take(40).collect();
                format!("found `{text}`")
            }
        };
        // The end is after the last word, not after trailing white space.
        let at = if *self.peek() == TokenKind::End { self.end() } else { self.start() };
        OqlError::new(at, format!("expected {what}, {found}"))
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, OqlError>) -> Result<T, OqlError> {
        if self.depth >= MAX_DEPTH {
            return Err(OqlError::new(self.start(), format!("nested more than {MAX_DEPTH} levels deep")));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }
}

fn is_keyword(name: &str) -> bool {
    KEYWORDS.iter().any(|keyword| keyword.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests;
