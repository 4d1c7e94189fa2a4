//! Lines of trees, and bars, drawn with characters.

/// Maximum depth that is drawn; deeper levels are drawn like it, as lines would be mostly space.
const DEEPEST: usize = 40;
/// Width of a bar in characters.
const BAR_WIDTH: u64 = 10;

/// Position of a row in its tree: its depth, and the lines drawn before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Branch {
    /// Depth in the tree; 0 for the first level.
    pub depth: u32,
    /// Lines drawn at the start of the row's cell; empty for the first level.
    pub lines: String,
}

impl Branch {
    /// Returns the lines that continue to the left of rows below this row.
    pub fn continuation(&self) -> String {
        self.lines.replace("├─ ", "│  ").replace("└─ ", "   ")
    }
}

/// Returns the position of each row of a tree, given the rows' depths in preorder.
pub fn branches(depths: &[u32]) -> Vec<Branch> {
    // Siblings are known from the bottom up. By depth: `true` if a sibling follows before the level ends.
    let mut follows: Vec<bool> = Vec::new();
    let mut out: Vec<Branch> = Vec::with_capacity(depths.len());
    for given in depths.iter().rev() {
        let depth = *given as usize;
        if follows.len() <= depth.min(DEEPEST) {
            follows.resize(depth.min(DEEPEST) + 1, false);
        }
        let mut lines = String::new();
        for level in 1..depth.min(DEEPEST) {
            lines.push_str(if follows.get(level).copied().unwrap_or(false) { "│  " } else { "   " });
        }
        if depth > DEEPEST {
            lines.push_str(&format!("… {depth} levels: "));
        } else if depth > 0 {
            lines.push_str(if follows.get(depth).copied().unwrap_or(false) { "├─ " } else { "└─ " });
        }
        out.push(Branch { depth: *given, lines });
        // This row ends all deeper levels, and is a sibling for the rows above.
        follows.truncate(depth.min(DEEPEST) + 1);
        if let Some(level) = follows.get_mut(depth.min(DEEPEST)) {
            *level = true;
        }
    }
    out.reverse();
    out
}

/// Returns whether each row of a tree is shown, given the depths of all rows in preorder and the wanted rows: the wanted rows
/// and their ancestors are shown.
pub fn with_above(depths: &[usize], is_wanted: &[bool]) -> Vec<bool> {
    let mut shown = is_wanted.to_vec();
    // Ancestors of the current row.
    let mut above: Vec<(usize, usize)> = Vec::new();
    for (row, depth) in depths.iter().enumerate() {
        while above.pop_if(|(_, other)| *other >= *depth).is_some() {}
        if is_wanted.get(row).copied().unwrap_or(false) {
            // If an ancestor is already shown, so are its own ancestors.
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

/// Returns the number of children of each row, given the rows' depths in preorder. Only children among the rows are counted.
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

/// Draws a share as a bar with a resolution of an eighth of a character.
pub fn bar(part: u64, whole: u64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if whole == 0 {
        return String::new();
    }
    let eighths = u128::from(part.min(whole)) * u128::from(BAR_WIDTH * 8) / u128::from(whole);
    // The number is at most eight times the width of a bar.
    let eighths = usize::try_from(eighths).unwrap_or(0);
    let rest = EIGHTHS.get(eighths % 8).copied().unwrap_or_default();
    format!("{}{rest}", "█".repeat(eighths / 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_drawn() {
        let lines: Vec<String> =
            branches(&[0, 1, 2, 2, 1, 0, 1]).into_iter().map(|branch| branch.lines).collect();
        assert_eq!(lines, ["", "├─ ", "│  ├─ ", "│  └─ ", "└─ ", "", "└─ "]);
        assert_eq!(children(&[0, 1, 2, 2, 1, 0, 1]), [2, 2, 0, 0, 0, 1, 0]);
        let deep = branches(&(0..100).collect::<Vec<_>>());
        assert!(deep.iter().all(|branch| branch.lines.chars().count() < 200), "{deep:?}");
        assert!(deep.iter().map(|branch| branch.depth).eq(0..100));
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
