//! Trees and bars for people.

/// Level below which levels are not drawn separately: a line would be mostly space.
const DEEPEST: usize = 40;
/// Text after the depth of a row that is deeper.
const LEVELS: &str = " levels: ";
/// Width of a bar in characters.
const BAR_WIDTH: u64 = 10;

/// Returns the lines that lead to each row of a tree, given the rows' depths in preorder. Rows of depth 0 get none.
pub fn branches(depths: &[u32]) -> Vec<String> {
    // Whether a sibling follows is known from the bottom up: by depth, `true` if there is one before the level ends.
    let mut follows: Vec<bool> = Vec::new();
    let mut out: Vec<String> = Vec::with_capacity(depths.len());
    for depth in depths.iter().rev().map(|depth| *depth as usize) {
        if follows.len() <= depth.min(DEEPEST) {
            follows.resize(depth.min(DEEPEST) + 1, false);
        }
        let mut line = String::new();
        for level in 1..depth.min(DEEPEST) {
            line.push_str(if follows.get(level).copied().unwrap_or(false) { "│  " } else { "   " });
        }
        if depth > DEEPEST {
            line.push_str(&format!("… {depth}{LEVELS}"));
        } else if depth > 0 {
            line.push_str(if follows.get(depth).copied().unwrap_or(false) { "├─ " } else { "└─ " });
        }
        out.push(line);
        // This row ends all deeper levels, and is a sibling for the rows above.
        follows.truncate(depth.min(DEEPEST) + 1);
        if let Some(level) = follows.get_mut(depth.min(DEEPEST)) {
            *level = true;
        }
    }
    out.reverse();
    out
}

/// Returns the lines that lead to a row of a tree, at the start of its cell.
pub fn branch_of(cell: &str) -> &str {
    let is_drawn = |piece: &str| ["│  ", "   ", "├─ ", "└─ "].contains(&piece);
    let mut end = 0;
    while let Some(piece) = cell.get(end..).and_then(|rest| {
        let length: usize = rest.chars().take(3).map(char::len_utf8).sum();
        rest.get(..length)
    }) && is_drawn(piece)
    {
        end += piece.len();
    }
    let rest = cell.get(end..).unwrap_or_default();
    end += levels(rest).map_or(0, |(_, length)| length);
    cell.get(..end).unwrap_or_default()
}

/// Returns the depth of a row of a tree, by its cell.
pub fn depth_of(cell: &str) -> usize {
    let branch = branch_of(cell);
    let deep = branch.find('…').and_then(|at| levels(branch.get(at..)?));
    deep.map_or_else(|| branch.chars().count() / 3, |(depth, _)| depth)
}

/// Parses the depth of a row below the deepest level that is drawn: the depth, and the length of its text.
fn levels(text: &str) -> Option<(usize, usize)> {
    let (number, _) = text.strip_prefix("… ")?.split_once(LEVELS)?;
    let depth = number.parse().ok().filter(|depth| *depth > DEEPEST)?;
    Some((depth, "… ".len() + number.len() + LEVELS.len()))
}

/// Returns which rows of a tree are shown if these are, with the rows above them, given the rows' depths in preorder.
pub fn with_above(depths: &[usize], is_wanted: &[bool]) -> Vec<bool> {
    let mut shown = is_wanted.to_vec();
    // Ancestors of the current row.
    let mut above: Vec<(usize, usize)> = Vec::new();
    for (row, depth) in depths.iter().enumerate() {
        while above.pop_if(|(_, other)| *other >= *depth).is_some() {}
        if is_wanted.get(row).copied().unwrap_or(false) {
            // Those that are shown already have theirs above them.
            for (ancestor, _) in above.iter().rev() {
                match shown.get_mut(*ancestor) {
                    Some(is_shown) if !*is_shown => *is_shown = true,
                    _ => break,
                }
            }
        }
        above.push((row, *depth));
    }
    shown
}

/// Returns the number of children of each row among the rows, given the rows' depths in preorder.
pub fn children(depths: &[u32]) -> Vec<u64> {
    let mut out = vec![0; depths.len()];
    // Ancestors of the current row.
    let mut above: Vec<(usize, u32)> = Vec::new();
    for (row, depth) in depths.iter().enumerate() {
        while above.pop_if(|(_, other)| *other >= *depth).is_some() {}
        if let Some(count) = above.last().and_then(|(parent, _)| out.get_mut(*parent)) {
            *count += 1;
        }
        above.push((row, *depth));
    }
    out
}

/// Draws a share as a bar, to an eighth of a character.
pub fn bar(part: u64, whole: u64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if whole == 0 {
        return String::new();
    }
    let eighths = u128::from(part.min(whole)) * u128::from(BAR_WIDTH * 8) / u128::from(whole);
    // At most eight times the width.
    let eighths = usize::try_from(eighths).unwrap_or(0);
    let rest = EIGHTHS.get(eighths % 8).copied().unwrap_or_default();
    format!("{}{rest}", "█".repeat(eighths / 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_drawn() {
        let lines = branches(&[0, 1, 2, 2, 1, 0, 1]);
        assert_eq!(lines, ["", "├─ ", "│  ├─ ", "│  └─ ", "└─ ", "", "└─ "]);
        assert_eq!(children(&[0, 1, 2, 2, 1, 0, 1]), [2, 2, 0, 0, 0, 1, 0]);
        let deep = branches(&(0..100).collect::<Vec<_>>());
        assert!(deep.iter().all(|line| line.chars().count() < 200), "{deep:?}");
        for (depth, branch) in deep.iter().enumerate() {
            let cell = format!("{branch}java.lang.Object[]");
            assert_eq!((branch_of(&cell), depth_of(&cell)), (branch.as_str(), depth));
        }
        let shown = with_above(&[0, 1, 2, 2, 1, 0, 1], &[false, false, false, true, false, true, false]);
        assert_eq!(shown, [true, true, false, true, false, true, false]);
    }

    #[test]
    fn bars_are_as_long_as_the_part() {
        assert_eq!(
            [bar(0, 9), bar(1, 2), bar(9, 9), bar(u64::MAX, 1)],
            ["", "█████", "██████████", "██████████"]
        );
        assert_eq!(bar(1, 16), "▋");
        assert_eq!(bar(1, 0), "");
    }
}
