//! Distribution of a terminal's width over the columns of a table.

use std::cmp::Reverse;

use super::column::Fit;

/// Number of terminal columns between two columns of a table.
pub(super) const GAP: usize = 2;
/// Minimum width of names and texts while other columns can still be shortened.
const NARROWEST: usize = 20;
/// Minimum width of sentences, which are wrapped, while other columns can still be shortened.
const NARROWEST_WRAPPED: usize = 12;
/// Minimum width of any text.
const LEAST: usize = 4;
/// Width below which a terminal is too narrow for all columns of most tables.
const NARROW: usize = 60;
/// Minimum width of a text that can be understood.
const READABLE: usize = 12;

/// Widths that a column of a table requires.
#[derive(Debug, Clone, Copy)]
pub(super) struct ColumnWidth {
    /// Width of the widest cell.
    pub(super) width: usize,
    /// Required width; secondary columns are left out if it does not fit.
    pub(super) wanted: usize,
    /// Width of the object IDs in the column, which are never shortened.
    pub(super) least: usize,
    pub(super) fit: Fit,
    pub(super) is_text: bool,
}

/// Returns the total width of columns, including the gaps between them.
pub(super) fn total(widths: impl Iterator<Item = usize>) -> usize {
    widths.map(|width| width + GAP).sum::<usize>().saturating_sub(GAP)
}

fn excess(rooms: &[Option<usize>], terminal: usize) -> usize {
    total(rooms.iter().copied().flatten()).saturating_sub(terminal)
}

/// Returns the width of each column, or `None` for a column that is left out. Secondary columns are left out first. Then
/// columns that can be shortened lose the excess, lowest priority first; of several with the same priority, the widest are
/// shortened most. If that is not enough, all texts are shortened, and finally columns are left out from the right. In a narrow
/// terminal, numbers and IDs except the first column are left out from the right before texts become too short to be
/// understood.
pub(super) fn rooms(columns: &[ColumnWidth], terminal: usize) -> Vec<Option<usize>> {
    // Texts can be of any length: they displace other columns for at most half of the line.
    let wanted = |column: &ColumnWidth| match column.fit {
        Fit::Cut { .. } | Fit::Wrap => Some(column.wanted.min(terminal / 2)),
        _ => Some(column.wanted),
    };
    let mut rooms: Vec<Option<usize>> = columns.iter().map(wanted).collect();
    for (_, at) in by_priority(columns, |fit| match fit {
        Fit::Secondary { priority } => Some(priority),
        _ => None,
    }) {
        if excess(&rooms, terminal) > 0 {
            leave_out(&mut rooms, at);
        }
    }
    for (room, column) in rooms.iter_mut().zip(columns) {
        *room = room.map(|_| column.width);
    }
    if terminal < NARROW {
        leave_out_for_texts(columns, &mut rooms, terminal);
    }
    shorten(columns, &mut rooms, terminal);
    for at in (1..rooms.len()).rev() {
        if excess(&rooms, terminal) > 0 {
            leave_out(&mut rooms, at);
        }
    }
    rooms
}

/// Leaves out numbers and IDs from the right, except the first column, until texts are readable.
fn leave_out_for_texts(columns: &[ColumnWidth], rooms: &mut [Option<usize>], terminal: usize) {
    let is_id = |column: &ColumnWidth| column.width > 1 && column.least == column.width;
    let may_be_left_out =
        |column: &ColumnWidth| column.fit == Fit::Whole && (!column.is_text || is_id(column));
    for at in (1..columns.len()).rev().filter(|at| columns.get(*at).is_some_and(may_be_left_out)) {
        let mut shortened = rooms.to_vec();
        shorten(columns, &mut shortened, terminal);
        let is_readable = |(room, column): (&Option<usize>, &ColumnWidth)| {
            room.is_none_or(|room| !column.is_text || room >= column.width.min(READABLE))
        };
        if excess(&shortened, terminal) == 0 && shortened.iter().zip(columns).all(is_readable) {
            return;
        }
        leave_out(rooms, at);
    }
}

/// Returns the width of each column if none is left out. If nothing can be shortened further, lines are wider than the
/// terminal, as numbers are never truncated.
pub(super) fn shrunk(columns: &[ColumnWidth], terminal: usize) -> Vec<Option<usize>> {
    let mut rooms: Vec<Option<usize>> = columns.iter().map(|column| Some(column.width)).collect();
    shorten(columns, &mut rooms, terminal);
    rooms
}

/// Distributes the excess over columns that can be shortened, and over all texts if that is not enough.
fn shorten(columns: &[ColumnWidth], rooms: &mut [Option<usize>], terminal: usize) {
    let flexible = by_priority(columns, |fit| match fit {
        Fit::Shorten { priority } | Fit::Cut { priority } | Fit::Middle { priority } => Some(priority),
        Fit::Wrap => Some(u8::MAX),
        Fit::Whole | Fit::Secondary { .. } => None,
    });
    for group in flexible.chunk_by(|(one, _), (other, _)| one == other) {
        shrink(rooms, terminal, |at| {
            let is_wrapped = columns.get(at).is_some_and(|column| column.fit == Fit::Wrap);
            let least = if is_wrapped { NARROWEST_WRAPPED } else { NARROWEST };
            group.iter().any(|(_, of)| *of == at).then_some(least)
        });
    }
    shrink(rooms, terminal, |at| {
        columns.get(at).filter(|column| column.is_text).map(|column| column.least.max(LEAST))
    });
}

/// Returns priority and index of the columns that have a priority: lowest priority first, and from the right for equal
/// priorities.
fn by_priority(columns: &[ColumnWidth], of: impl Fn(Fit) -> Option<u8>) -> Vec<(u8, usize)> {
    let all = columns.iter().enumerate();
    let mut found: Vec<_> = all.filter_map(|(at, column)| Some((of(column.fit)?, at))).collect();
    found.sort_by_key(|(priority, at)| (*priority, Reverse(*at)));
    found
}

fn leave_out(rooms: &mut [Option<usize>], at: usize) {
    if let Some(room) = rooms.get_mut(at) {
        *room = None;
    }
}

/// Distributes the excess over the columns for which `least` returns a minimum width, so that the widest become equally wide.
fn shrink(rooms: &mut [Option<usize>], terminal: usize, least: impl Fn(usize) -> Option<usize>) {
    let excess = excess(rooms, terminal);
    let shrunk =
        |at: usize, room: usize, most: usize| least(at).map_or(room, |least| room.min(most.max(least)));
    let sum = |most: usize| -> usize {
        rooms.iter().enumerate().filter_map(|(at, room)| Some(shrunk(at, (*room)?, most))).sum()
    };
    let aim = sum(usize::MAX).saturating_sub(excess);
    let most = (0..=terminal).rev().find(|most| sum(*most) <= aim).unwrap_or(0);
    for (at, room) in rooms.iter_mut().enumerate() {
        *room = room.map(|room| shrunk(at, room, most));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(width: usize) -> ColumnWidth {
        ColumnWidth { width, wanted: width, least: 1, fit: Fit::Whole, is_text: false }
    }

    fn id() -> ColumnWidth {
        ColumnWidth { least: 10, is_text: true, ..number(10) }
    }

    fn name(width: usize) -> ColumnWidth {
        ColumnWidth { fit: Fit::Shorten { priority: 0 }, is_text: true, ..number(width) }
    }

    #[test]
    fn in_a_narrow_terminal_texts_are_readable_and_the_last_numbers_and_ids_are_left_out() {
        let kind = ColumnWidth { fit: Fit::Whole, ..name(8) };
        let cases: [(&[ColumnWidth], [&[usize]; 2]); 5] = [
            // Columns for bytes, percentage, ID and name.
            (&[number(9), number(5), id(), name(50)], [&[9, 5, 10, 49], &[9, 5, 0, 21]]),
            // All names are short.
            (&[number(9), number(5), id(), name(7)], [&[9, 5, 10, 7], &[9, 5, 10, 7]]),
            (&[number(9), number(9), number(9), number(9), name(30)], [&[9, 9, 9, 9, 30], &[9, 9, 0, 0, 17]]),
            // Columns of words are not left out.
            (&[number(12), kind, id(), name(40)], [&[12, 8, 10, 40], &[12, 8, 0, 15]]),
            (&[id(), name(50)], [&[10, 50], &[10, 27]]),
        ];
        for (columns, expected) in cases {
            for (terminal, expected) in [79, 39].into_iter().zip(expected) {
                let rooms: Vec<usize> =
                    rooms(columns, terminal).into_iter().map(|room| room.unwrap_or(0)).collect();
                assert_eq!(rooms, expected, "{terminal}");
            }
        }
    }
}
