//! Fits texts to a terminal: names are shortened from the left, sentences are wrapped.
//!
//! Recognizes in a cell the lines of a tree, names of classes with their packages, outer classes and members, object IDs,
//! quoted texts, and the source positions of stack frames. The least informative parts are shortened first, simple class names
//! and members last; object IDs are never shortened. Names given by the program, such as bean names, may look like class names,
//! but their parts mean nothing alone. They follow a word such as `bean`, or are keys in braces, and are not shortened in
//! parts. `…` is the only mark of omissions, and a shortened class name is a pattern that matches the class. All texts must
//! already be escaped.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Minimum width of a quoted text before packages are dropped.
const LONG_LABEL: usize = 40;
/// Minimum width of a quoted text before outer classes are dropped.
const SHORT_LABEL: usize = 16;
/// Minimum width of a quoted text before a simple class name is truncated.
const SHORTEST_LABEL: usize = 6;
/// Width of a quoted text that is reduced to `"…"`.
const NO_LABEL: usize = 3;
/// Minimum width of the field names that precede the class of the referenced object.
const SHORTEST_HELD: usize = 8;
/// Minimum width of the lines of a tree, which is one level.
const SHORTEST_TREE: usize = 3;

/// Words that precede the name of an object.
const NOUNS: &[&str] = &[
    "bean",
    "broker",
    "cache",
    "client",
    "executor",
    "loop",
    "pool",
    "queue",
    "scheduler",
    "store",
    "table",
    "thread",
    "timer",
    "Timer",
    "topic",
];

/// Returns the width of a text in terminal columns; East Asian characters take two.
pub fn width(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    // Terminals differ in the sequences that they combine.
    text.width().max(text.chars().map(|c| c.width().unwrap_or(0)).sum())
}

/// Shortens a text with names to a width: drops packages from the left, then truncates quoted texts, then drops outer classes,
/// then truncates the field names before the class of the referenced object. Finally it truncates the end, except object IDs.
pub fn names(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut cell = FitCell::parse(text, room);
    cell.labels(LONG_LABEL);
    cell.drop_first(PieceKind::Package, "…");
    cell.tree(room / 2);
    cell.labels(SHORT_LABEL);
    cell.places();
    cell.drop_first(PieceKind::Outer, "…$");
    cell.drop_all(PieceKind::Package);
    cell.drop_all(PieceKind::Outer);
    cell.labels(SHORTEST_LABEL);
    cell.tree(SHORTEST_TREE);
    cell.drop_all(PieceKind::Place);
    cell.inner_labels();
    cell.truncate_fields(room);
    cell.cut_end();
    cell.text()
}

/// Truncates the end of a text to a width, except object IDs.
pub fn end(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut cell = FitCell::parse(text, room);
    cell.labels(0);
    cell.cut_end();
    cell.text()
}

/// Removes the middle of a text that is too long, as both ends are more informative.
pub fn middle(text: &str, room: usize) -> String {
    let length = text.chars().count();
    if length <= room {
        return text.to_owned();
    }
    let tail = room.saturating_sub(1) * 2 / 3;
    let head = room.saturating_sub(1) - tail;
    text.chars().take(head).chain(['…']).chain(text.chars().skip(length - tail)).collect()
}

/// Returns the width that a cell needs with quoted texts truncated. Other columns are left out if it does not fit.
pub fn preferred_width(text: &str) -> usize {
    let all = width(text);
    if all <= LONG_LABEL || !text.contains('"') {
        return all;
    }
    let mut cell = FitCell::parse(text, 0);
    cell.labels(LONG_LABEL);
    cell.width()
}

/// Returns the minimum width of a truncated text: the width of its object IDs and of the mark of omission.
pub fn min_width(text: &str) -> usize {
    let all = width(text);
    if !text.contains("0x") {
        return all.min(1);
    }
    let cell = FitCell::parse(text, 0);
    let ids: usize =
        cell.pieces.iter().filter(|piece| piece.kind == PieceKind::Id).map(|piece| piece.width).sum();
    all.min(if ids == 0 { 1 } else { ids + 2 })
}

/// Wraps a text to lines of a width, between words if possible. The other lines are indented like the first one plus `hanging`
/// columns.
pub fn wrap(text: &str, room: usize, hanging: usize) -> Vec<String> {
    let room = room.max(1);
    let spaces = text.len() - text.trim_start_matches(' ').len();
    let indent = " ".repeat((spaces + hanging).min(room / 2));
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    let mut rest = text;
    while !rest.is_empty() {
        // Next word with the spaces before it.
        let blank = rest.len() - rest.trim_start_matches(' ').len();
        let (_, word) = rest.split_at(blank);
        let length = blank + word.find(' ').unwrap_or(word.len());
        let (mut next, after) = rest.split_at(length);
        rest = after;
        if used + width(next) > room && !line.trim_start().is_empty() {
            lines.push(std::mem::replace(&mut line, indent.clone()));
            used = indent.len();
            next = next.trim_start_matches(' ');
        }
        // A word that is wider than a line is split.
        while used + width(next) > room {
            let first = head(next, room.saturating_sub(used));
            // A character may be wider than the line.
            let length =
                if first.is_empty() { next.chars().next().map_or(0, char::len_utf8) } else { first.len() };
            let (first, after) = next.split_at(length);
            line.push_str(first);
            lines.push(std::mem::replace(&mut line, indent.clone()));
            used = indent.len();
            next = after;
        }
        line.push_str(next);
        used += width(next);
    }
    lines.push(line);
    lines
}

/// Returns the longest prefix of a text that fits into a width.
pub(super) fn head(text: &str, room: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find(|(_, c)| {
        used += c.width().unwrap_or(0);
        used > room
    });
    end.map_or(text, |(at, _)| text.split_at(at).0)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PieceKind {
    /// Lines of a tree before a row, or spaces.
    Tree,
    /// Packages of a name, each followed by a dot.
    Package,
    /// Outer classes of a name, each followed by a `$`.
    Outer,
    /// Object ID.
    Id,
    /// Text in quotes.
    Label,
    /// Source position of a stack frame: `(HashMap.java:635)`.
    Place,
    /// Simple class names, members, and everything that is not a name.
    Plain,
}

/// Part of a cell that is shortened in its own way.
#[derive(Debug)]
struct CellPiece {
    kind: PieceKind,
    text: String,
    width: usize,
}

/// Cell that is being shortened.
#[derive(Debug)]
struct FitCell {
    pieces: Vec<CellPiece>,
    /// Number of columns by which the cell is too wide.
    excess: usize,
}

impl FitCell {
    fn parse(text: &str, room: usize) -> Self {
        let mut cell = Self { pieces: Vec::new(), excess: 0 };
        let tree = text.len() - text.trim_start_matches([' ', '│', '├', '└', '─']).len();
        let (tree, mut rest) = text.split_at(tree);
        cell.push(PieceKind::Tree, tree);
        let mut before = ' ';
        while let Some(c) = rest.chars().next() {
            // The hexadecimal number in the name of a hidden class follows a slash or a plus and is not an object ID.
            let is_start = !before.is_alphanumeric() && !matches!(before, '.' | '/' | '+');
            let id = id_length(rest);
            let (kind, length) = if id > 0 && is_start {
                (PieceKind::Id, id)
            } else if c == '"' {
                (PieceKind::Label, label_length(rest))
            } else if c == '(' && before.is_alphanumeric() | (before == '>') {
                (PieceKind::Place, rest.find(')').map_or(rest.len(), |at| at + 1))
            } else if is_start && (c.is_alphabetic() || c == '_' || c == '$') {
                let length = name_length(rest);
                let (name, _) = rest.split_at(length);
                if cell.is_before_name() {
                    cell.push(PieceKind::Plain, name);
                } else {
                    cell.name(name);
                }
                (PieceKind::Plain, length)
            } else {
                cell.push(PieceKind::Plain, c.encode_utf8(&mut [0; 4]));
                (PieceKind::Plain, c.len_utf8())
            };
            let (piece, after) = rest.split_at(length);
            if kind != PieceKind::Plain {
                cell.push(kind, piece);
            }
            before = piece.chars().next_back().unwrap_or(' ');
            rest = after;
        }
        cell.excess = cell.width().saturating_sub(room);
        cell
    }

    fn push(&mut self, kind: PieceKind, text: &str) {
        match self.pieces.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.kind == PieceKind::Plain && kind == PieceKind::Plain => {
                last.text.push_str(text);
                last.width += width(text);
            }
            _ => self.pieces.push(CellPiece { kind, text: text.to_owned(), width: width(text) }),
        }
    }

    /// Returns whether the pieces so far end with a word or a brace that precedes the name of an object.
    fn is_before_name(&self) -> bool {
        let Some(last) = self.pieces.last() else { return false };
        let word = last.text.strip_suffix(' ').map(|text| text.rsplit(' ').next().unwrap_or(text));
        last.text.ends_with('{') || word.is_some_and(|word| NOUNS.contains(&word))
    }

    /// Adds the pieces of a name such as `java.util.HashMap$Node.next`.
    fn name(&mut self, name: &str) {
        let segments: Vec<&str> = name.split('.').collect();
        let is_class = |segment: &&str| segment.trim_start_matches('$').starts_with(char::is_uppercase);
        // Packages are in lower case.
        let class = segments.iter().position(is_class).unwrap_or(segments.len() - 1);
        for (at, segment) in segments.iter().enumerate() {
            if at < class {
                self.push(PieceKind::Package, &format!("{segment}."));
                continue;
            }
            let parts: Vec<&str> = segment.split('$').collect();
            // `Outer$1` and `Outer$$Lambda$14` mean nothing without the outer class.
            let is_name = |part: &&str| {
                !part.is_empty() && *part != "Lambda" && !part.starts_with(|c: char| c.is_ascii_digit())
            };
            let simple = if at == class { parts.iter().rposition(is_name).unwrap_or(0) } else { 0 };
            for (number, part) in parts.iter().enumerate() {
                if number < simple && !part.is_empty() {
                    self.push(PieceKind::Outer, &format!("{part}$"));
                } else {
                    self.push(PieceKind::Plain, part);
                    self.push(PieceKind::Plain, if number + 1 < parts.len() { "$" } else { "" });
                }
            }
            if at + 1 < segments.len() {
                self.push(PieceKind::Plain, ".");
            }
        }
    }

    fn width(&self) -> usize {
        self.pieces.iter().map(|piece| piece.width).sum()
    }

    fn text(self) -> String {
        self.pieces.into_iter().map(|piece| piece.text).collect()
    }

    /// Shortens pieces of a kind, from the left, until the cell fits.
    fn shorten(&mut self, kind: PieceKind, shorter: impl Fn(&CellPiece, usize) -> String) {
        for piece in self.pieces.iter_mut().filter(|piece| piece.kind == kind) {
            if self.excess == 0 {
                return;
            }
            let text = shorter(piece, self.excess);
            let width = width(&text);
            if width < piece.width {
                self.excess = self.excess.saturating_sub(piece.width - width);
                *piece = CellPiece { kind, text, width };
            }
        }
    }

    /// Replaces as few pieces of a kind as possible by a mark, from the left, until the cell fits. In each name, the first
    /// pieces are replaced. The mark for outer classes also replaces the packages before them.
    fn drop_first(&mut self, kind: PieceKind, mark: &str) {
        let mark_width = width(mark);
        let mut kept = Vec::with_capacity(self.pieces.len());
        for piece in std::mem::take(&mut self.pieces) {
            if self.excess == 0 || piece.kind != kind {
                kept.push(piece);
                continue;
            }
            let before =
                kept.pop_if(|last: &mut CellPiece| last.kind == kind || last.kind == PieceKind::Package);
            let dropped = piece.width + before.as_ref().map_or(0, |before| before.width);
            if dropped > mark_width {
                kept.push(CellPiece { kind, text: mark.to_owned(), width: mark_width });
                self.excess = self.excess.saturating_sub(dropped - mark_width);
            } else {
                kept.extend(before);
                kept.push(piece);
            }
        }
        self.pieces = kept;
    }

    /// Removes the text of all pieces of a kind. A class name without its packages or outer classes is a pattern, but a name
    /// with `$` is matched as written and needs a mark: `…Weak$1`.
    fn drop_all(&mut self, kind: PieceKind) {
        if self.excess > 0 {
            let before = self.width();
            let mut pieces = self.pieces.iter_mut().peekable();
            while let Some(piece) = pieces.next() {
                if piece.kind == kind {
                    let has_dollar =
                        |next: &&mut CellPiece| next.text.split_at(name_length(&next.text)).0.contains('$');
                    let is_marked = kind == PieceKind::Outer && pieces.peek().is_some_and(has_dollar);
                    let text = if is_marked { "…" } else { "" };
                    *piece = CellPiece { kind, text: text.to_owned(), width: width(text) };
                }
            }
            self.excess = self.excess.saturating_sub(before - self.width());
        }
    }

    /// Reduces source positions to the line number, as the file is named after the class.
    fn places(&mut self) {
        self.shorten(PieceKind::Place, |piece, _| match piece.text.rsplit_once(':') {
            Some((_, line)) => format!("(:{line}"),
            None => "()".to_owned(),
        });
    }

    /// Truncates quoted texts to no less than a minimum width.
    fn labels(&mut self, least: usize) {
        self.shorten(PieceKind::Label, |piece, excess| {
            let room = piece.width.saturating_sub(excess).max(least);
            if room >= piece.width || room < 3 {
                return piece.text.clone();
            }
            format!("{}…\"", head(&piece.text, room - 2))
        });
    }

    /// Reduces quoted texts to `"…"`, except at the end of the cell, where nothing follows them.
    fn inner_labels(&mut self) {
        let last = self.pieces.pop_if(|last| last.kind == PieceKind::Label);
        self.labels(NO_LABEL);
        self.pieces.extend(last);
    }

    /// Truncates the field names before the first object ID (`left, right: Node 0x7c00012a8`) until the class and the ID fit.
    /// The first of several field names is enough.
    fn truncate_fields(&mut self, room: usize) {
        let Some(id) = self.pieces.iter().position(|piece| piece.kind == PieceKind::Id) else { return };
        let before = self.pieces.get(..id).unwrap_or_default();
        let first = usize::from(before.first().is_some_and(|piece| piece.kind == PieceKind::Tree));
        let text: String = before.iter().skip(first).map(|piece| piece.text.as_str()).collect();
        let Some((held, class)) = text.split_once(": ") else { return };
        // Width of the mark of omission after the ID.
        let mark = usize::from(id + 1 < self.pieces.len());
        let used: usize = self.pieces.iter().take(id + 1).map(|piece| piece.width).sum();
        let left = width(held).saturating_sub((used + mark).saturating_sub(room)).max(SHORTEST_HELD);
        if self.excess == 0 || left >= width(held) {
            return;
        }
        let text = format!("{}…: {class}", head(held, left - 1));
        let shorter = CellPiece { kind: PieceKind::Plain, width: width(&text), text };
        let before = self.width();
        self.pieces.splice(first..id, [shorter]);
        self.excess = self.excess.saturating_sub(before - self.width());
    }

    /// Shortens the lines of a tree on the left, and shows the level as a number instead.
    fn tree(&mut self, least: usize) {
        self.shorten(PieceKind::Tree, |piece, excess| {
            let level = format!("…{}", piece.width / 3);
            let room = piece.width.saturating_sub(excess).max(least).saturating_sub(width(&level));
            // A level takes three columns.
            let kept = (room / 3 * 3).max(SHORTEST_TREE);
            let lines = piece.text.chars().skip(piece.text.chars().count().saturating_sub(kept));
            level.chars().chain(lines).collect()
        });
    }

    /// Truncates the end, except object IDs.
    fn cut_end(&mut self) {
        // Most pieces may be one character long: a mark for each would take as much space.
        let mut room = self.width().saturating_sub(self.excess);
        if self.excess == 0 {
            return;
        }
        room -= room.min(
            self.pieces.iter().filter(|piece| piece.kind == PieceKind::Id).map(|piece| piece.width).sum(),
        );
        room = room.saturating_sub(1);
        let mut is_cut = false;
        let mut is_nested = false;
        for piece in self.pieces.iter_mut().filter(|piece| piece.kind != PieceKind::Id) {
            if is_cut {
                piece.text.clear();
            } else if piece.width > room {
                // Without a mark for the outer class, the start of a nested class's name would not be a pattern.
                let start = head(&piece.text, room.saturating_sub(is_nested.into()));
                let mark = if is_nested && !start.is_empty() { "…" } else { "" };
                piece.text = format!("{mark}{start}…");
                is_cut = true;
            }
            is_nested = piece.kind == PieceKind::Outer && piece.text.is_empty();
            room = room.saturating_sub(piece.width);
        }
        self.excess = 0;
    }
}

/// Returns the length of the quoted text at the start of a text. Quotes in the quoted text are escaped by a backslash; if the
/// quoted text itself ends with a backslash, its end cannot be determined.
fn label_length(text: &str) -> usize {
    let is_end =
        |(at, _): &(usize, &str)| *at > 0 && text.get(..*at).is_some_and(|before| !before.ends_with('\\'));
    let end = text.match_indices('"').find(is_end).map(|(at, _)| at).or_else(|| text.rfind('"'));
    end.filter(|at| *at > 0).map_or(text.len(), |at| at + 1)
}

/// Returns the length of an object ID at the start of a text; 0 if there is none.
pub(super) fn id_length(text: &str) -> usize {
    let Some(digits) = text.strip_prefix("0x") else { return 0 };
    let digits = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
    if digits == 0 { 0 } else { digits + 2 }
}

/// Returns the length of the name at the start of a text: words separated by single dots.
fn name_length(text: &str) -> usize {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$' || c == '-';
    let mut before_dot = false;
    let mut length = 0;
    for (at, c) in text.char_indices() {
        if is_part(c) {
            before_dot = false;
            length = at + c.len_utf8();
        } else if c == '.' && !before_dot && at > 0 {
            before_dot = true;
        } else {
            break;
        }
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_go_first_from_the_left_then_outer_classes() {
        let name = "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject";
        for (room, expected) in [
            (69, name),
            (68, "…util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject"),
            (64, "…concurrent.locks.AbstractQueuedSynchronizer$ConditionObject"),
            (48, "…AbstractQueuedSynchronizer$ConditionObject"),
            (42, "…$ConditionObject"),
            (16, "ConditionObject"),
            (10, "…Conditio…"),
            (3, "…C…"),
            (2, "…"),
        ] {
            assert_eq!(names(name, room), expected, "{room}");
        }
        let name = "org.apache.spark.sql.catalyst.expressions.Row";
        assert_eq!(names(name, 28), "…catalyst.expressions.Row");
        assert_eq!(names(name, 5), "…Row");
        assert_eq!(names(name, 3), "Row");
        assert_eq!(names("a.Outer$Inner$Deep", 17), "…Outer$Inner$Deep");
        assert_eq!(names("a.Outer$Inner$Deep", 16), "…$Inner$Deep");
        assert_eq!(names("a.Outer$Inner$Deep", 11), "…$Deep");
        assert_eq!(names("java.lang.WeakPairMap$Pair$Weak$1", 8), "…$Weak$1");
        assert_eq!(names("java.lang.WeakPairMap$Pair$Weak$1", 7), "…Weak$1");
        // Parts of the first name are dropped before parts of the next name.
        let two = "java.util.HashMap of java.lang.String";
        assert_eq!(names(two, 33), "…util.HashMap of java.lang.String");
        assert_eq!(names(two, 24), "…HashMap of …lang.String");
    }

    #[test]
    fn names_of_objects_are_no_class_names() {
        for (text, room, expected) in [
            (
                "├─ bean ordersApplication.ReportScheduler: com.acme.OrdersApplication$ReportScheduler",
                64,
                "├─ bean ordersApplication.ReportScheduler: …$ReportScheduler",
            ),
            (
                "bean com.acme.Cache (com.acme.LookupTable.map): 40,000 x Order",
                44,
                "bean com.acme.Cache (LookupTable.map): 40,0…",
            ),
            ("queue com.acme.Orders: 20,000 pending", 24, "queue com.acme.Orders: …"),
            ("{com.acme.Region}: com.acme.region.Store", 30, "{com.acme.Region}: …Store"),
            ("40,000 x com.acme.Order", 16, "40,000 x …Order"),
        ] {
            assert_eq!(names(text, room), expected);
        }
    }

    #[test]
    fn dollars_of_a_name_that_starts_with_one_stay() {
        for (name, room, expected) in [
            ("com.sun.proxy.$Proxy12", 16, "…proxy.$Proxy12"),
            ("$Proxy12.next", 11, "$Proxy12.n…"),
            ("x $Proxy12 com.sun.proxy.Other", 25, "x $Proxy12 …proxy.Other"),
        ] {
            assert_eq!(names(name, room), expected);
        }
    }

    #[test]
    fn members_stay_and_ids_are_never_cut() {
        let expected = "…HashMap$Node.next";
        assert_eq!(names("java.util.HashMap$Node.next", 22), expected);
        assert_eq!(names("java.util.HashMap.putVal(HashMap.java:635)", 30), "…HashMap.putVal(:635)");
        assert_eq!(
            names("java.lang.Thread 0x7f00a0b0c0d0 \"main\"", 34),
            "…lang.Thread 0x7f00a0b0c0d0 \"main\""
        );
        for room in 14..40 {
            let text = names("java.lang.Thread 0x7f00a0b0c0d0 \"main\"", room);
            assert!(text.contains("0x7f00a0b0c0d0") && width(&text) <= room.max(16), "{room} {text}");
        }
        assert_eq!(end("a text with 0xff00 in it", 12), "a tex…0xff00");
    }

    #[test]
    fn fields_go_before_the_class_that_they_hold() {
        let text = "│  uncaughtExceptionHandler, target: orders.ImportJob 0xffb55130, also a local of thread \"main\"";
        for (room, expected) in [
            (60, "│  uncaughtExceptionHandler, target: ImportJob 0xffb55130, …"),
            (57, "│  uncaughtExceptionHandler, targ…: ImportJob 0xffb55130…"),
            (34, "│  uncaugh…: ImportJob 0xffb55130…"),
        ] {
            assert_eq!(names(text, room), expected, "{room}");
        }
        // Only the part before the ID is a field name.
        let root = "java.lang.Thread 0xffb548a0 \"main\": thread object of thread \"main\"";
        assert_eq!(names(root, 48), "Thread 0xffb548a0 \"…\": thread object of thread …");
    }

    #[test]
    fn methods_are_cut_after_places_and_texts() {
        let text = "java.lang.Thread \"order-import\" in java.util.HashMap.putVal(HashMap.java:635)";
        assert_eq!(names(text, 34), "Thread \"ord…\" in HashMap.putVal");
        assert_eq!(names(text, 28), "Thread \"…\" in HashMap.putVal");
    }

    #[test]
    fn trees_lose_their_left() {
        let text = format!("{}└─ java.util.HashMap$Node", "│  ".repeat(20));
        assert_eq!(names(&text, 40), "…21│  │  │  │  │  │  │  └─ …HashMap$Node");
        for room in 10..90 {
            assert!(width(&names(&text, room)) <= room, "{room}");
        }
    }

    #[test]
    fn sentences_break_between_words_and_lose_nothing() {
        assert_eq!(wrap("one two three", 8, 2), ["one two", "  three"]);
        assert_eq!(wrap("", 8, 2), [""]);
        assert_eq!(wrap("日本語日本語", 5, 0), ["日本", "語日", "本語"]);
        assert_eq!(wrap("日本", 1, 0), ["日", "本", ""]);
        let path = "/a/very/long/path/that/is/copied";
        assert_eq!(wrap(path, 10, 0).concat(), path);
    }
}
