//! Keys, and the views that letters open.

/// A key, or a mouse event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli::browse) enum Key {
    Char(char),
    Enter,
    Backspace,
    Esc,
    Tab,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    /// Clears the prompt: Ctrl-U.
    Clear,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-Z.
    Suspend,
    /// Click on this line of the screen.
    Click(u16),
}

/// A view that a letter opens.
#[derive(Debug)]
pub(super) struct Menu {
    pub(super) letter: char,
    pub(super) title: &'static str,
    pub(super) command: &'static str,
    pub(super) rest: &'static [&'static str],
    /// Explanation that `?` shows.
    pub(super) about: &'static str,
}

/// The views, in the order of the line at the bottom.
pub(super) const VIEWS: &[Menu] = &[
    Menu {
        letter: 'o',
        title: "Overview",
        command: "overview",
        rest: &[],
        about: "The size of the heap, anomalies, and the largest places.",
    },
    Menu {
        letter: 'l',
        title: "Leaks",
        command: "leaks",
        rest: &[],
        about: "Leak suspects with their evidence: what accumulates, where, and what keeps it alive.",
    },
    Menu {
        letter: 'd',
        title: "Dominators",
        command: "dominators",
        rest: &[],
        about: "The biggest objects by retained size: the memory that would be freed with each. → shows the objects \
                that an object dominates, ← hides them; b groups by class, package, loader, or the whole tree by \
                class.",
    },
    Menu {
        letter: 'h',
        title: "Histogram",
        command: "histo",
        rest: &[],
        about: "Instances and bytes by class. Enter lists the instances of a class, > sorts by another column.",
    },
    Menu {
        letter: 't',
        title: "Threads",
        command: "threads",
        rest: &[],
        about: "Threads and what they retain. Enter shows the stack of a thread with its local variables.",
    },
    Menu {
        letter: 's',
        title: "Strings",
        command: "strings",
        rest: &[],
        about: "The strings of the heap, largest first. `:strings --duplicates` shows duplicates.",
    },
    Menu {
        letter: 'w',
        title: "Waste",
        command: "waste",
        rest: &[],
        about: "Wasted memory, by kind. Enter shows the fields that reference it.",
    },
    Menu {
        letter: 'g',
        title: "Growth",
        command: "diff",
        rest: &["--group-by=place"],
        about: "The places that grew since the older dump (--baseline).",
    },
];

/// Returns the views that can be opened: those that compare only if there is a baseline.
pub(super) fn views(has_baseline: bool) -> impl Iterator<Item = &'static Menu> {
    VIEWS.iter().filter(move |view| has_baseline || !super::takes_two(view.command))
}

/// Other keys shown in the line at the bottom, most important first.
pub(super) const OTHERS: &[&str] = &["/ filter", ": command", "? help", "q quit"];

/// List of all keys, shown by `?`.
pub(super) const HELP: &str = "
Moving
  ↑ ↓ PgUp PgDn Home End, j k   move; rows are read as you scroll
  Enter             open the object, class, thread or command on the line
  Tab               next link on the line, or the next line with a link
  Backspace, f      back and forward, as in a browser
  /                 show only lines that contain a text; Esc shows all lines
The object or class on the line
  p                 paths from GC roots: what keeps it alive
  r                 referrers
  D                 objects that it dominates
  → ←, + -          in the dominator tree: expand (again: more), collapse
  m, M              mark it; the retained size of all marked objects together
  y, Y              copy its ID; copy the command that shows this view
The view
  b                 group by the next key
  >                 sort by the next column
  e, E              type an OQL query, an SQL query
  :                 run a command, such as :histo com.acme.** --retained
  Esc               cancel the running query, or show all lines, or go back
  ?                 this help
  q                 quit; Ctrl-Z suspends";
