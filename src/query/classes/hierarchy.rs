//! Classes and their subclasses.
//!
//! The superclasses that a dump states can go in circles, and their chains can be as long as there are classes: each class
//! is looked at once, parents before children, and a circle is cut where it is met first.

use std::cmp::Reverse;

use crate::index::layout::sizes::Sizes;
use crate::index::model::summary::{ClassNumber, Summary};
use crate::index::model::tables::NONE;

use super::histogram;
use super::pattern::{ClassPattern, any_matches};

/// Who extends whom.
#[derive(Debug, Clone)]
pub struct Hierarchy {
    /// By class number: the superclass; NONE if it has none, or if that would close a circle.
    parents: Vec<u32>,
    /// All classes, superclasses before their subclasses.
    order: Vec<u32>,
    /// The subclasses of each class, one class after another.
    children: Vec<u32>,
    /// By class number: where its subclasses start in `children`; one more for the end.
    starts: Vec<u32>,
}

impl Hierarchy {
    /// Looks at all classes.
    pub fn new(summary: &Summary) -> Self {
        let above = |class| summary.super_class(class).map_or(NONE, |class| class.0);
        Self::of(summary.classes().iter().map(above).collect())
    }

    /// The hierarchy of classes with these superclasses.
    fn of(mut parents: Vec<u32>) -> Self {
        let (children, starts) = children_of(&parents);
        let mut order: Vec<u32> = Vec::with_capacity(parents.len());
        let mut seen = vec![false; parents.len()];
        let tops = (0u32..).zip(&parents).filter(|(_, parent)| **parent == NONE);
        let mut stack: Vec<u32> = tops.map(|(class, _)| class).collect();
        stack.reverse();
        let mut cut = Vec::new();
        let mut others = 0u32..;
        loop {
            while let Some(class) = stack.pop() {
                match seen.get_mut(class as usize) {
                    Some(seen) if !*seen => *seen = true,
                    _ => continue,
                }
                order.push(class);
                stack.extend(row(&children, &starts, class).iter().rev());
            }
            // What is left lies in circles, or below one.
            let next = others.find(|class| seen.get(*class as usize).is_none_or(|seen| !*seen));
            match next.filter(|class| (*class as usize) < parents.len()) {
                None => break,
                Some(class) => {
                    cut.push(class);
                    stack.push(class);
                }
            }
        }
        if cut.is_empty() {
            return Self { parents, order, children, starts };
        }
        for class in cut {
            if let Some(parent) = parents.get_mut(class as usize) {
                *parent = NONE;
            }
        }
        let (children, starts) = children_of(&parents);
        Self { parents, order, children, starts }
    }

    /// The superclass.
    pub fn parent(&self, class: ClassNumber) -> Option<ClassNumber> {
        self.parents.get(class.0 as usize).copied().filter(|parent| *parent != NONE).map(ClassNumber)
    }

    /// The classes that extend a class directly, by class number.
    pub fn subclasses(&self, class: ClassNumber) -> impl ExactSizeIterator<Item = ClassNumber> + '_ {
        row(&self.children, &self.starts, class.0).iter().copied().map(ClassNumber)
    }

    /// All classes, superclasses before their subclasses.
    pub fn top_down(&self) -> impl DoubleEndedIterator<Item = ClassNumber> + '_ {
        self.order.iter().copied().map(ClassNumber)
    }

    /// Adds all subclasses to a set of classes, by class number.
    pub fn add_subclasses(&self, classes: &mut [bool]) {
        for class in self.top_down() {
            let above = self.parent(class).and_then(|parent| classes.get(parent.0 as usize)).copied();
            if let (Some(true), Some(class)) = (above, classes.get_mut(class.0 as usize)) {
                *class = true;
            }
        }
    }

    /// What each class has together with all its subclasses, by class number.
    fn totals(&self, mut own: Vec<u64>) -> Vec<u64> {
        for class in self.top_down().rev() {
            let sum = own.get(class.0 as usize).copied().unwrap_or(0);
            if let Some(above) = self.parent(class).and_then(|parent| own.get_mut(parent.0 as usize)) {
                *above = above.saturating_add(sum);
            }
        }
        own
    }
}

/// The children of each node, one node after another; and where each node's start.
fn children_of(parents: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let mut pairs: Vec<(u32, u32)> = (0u32..).zip(parents).map(|(class, parent)| (*parent, class)).collect();
    pairs.retain(|(parent, _)| *parent != NONE);
    pairs.sort_unstable();
    let mut starts = Vec::with_capacity(parents.len() + 1);
    let mut at = 0u32;
    let mut rest = pairs.iter().peekable();
    for class in (0u32..).take(parents.len()) {
        starts.push(at);
        while rest.next_if(|(parent, _)| *parent == class).is_some() {
            at += 1;
        }
    }
    starts.push(at);
    (pairs.into_iter().map(|(_, class)| class).collect(), starts)
}

fn row<'a>(children: &'a [u32], starts: &[u32], class: u32) -> &'a [u32] {
    let place = |at: usize| starts.get(at).map_or(0, |start| *start as usize);
    let at = class as usize;
    children.get(place(at)..place(at.saturating_add(1))).unwrap_or_default()
}

/// The order of a list of classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SortBy {
    /// Most instances first.
    #[default]
    Instances,
    /// Most instances first, those of subclasses included.
    Total,
    /// Most bytes first.
    Shallow,
    /// Most direct subclasses first.
    Subclasses,
    /// By name.
    Name,
}

/// What is asked of classes.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// Which classes; all if there is no pattern.
    pub patterns: Vec<ClassPattern>,
    /// The order of a list.
    pub sort_by: SortBy,
    /// How many classes a list keeps, or how many subclasses of each class a tree; all by default.
    pub top: Option<usize>,
    /// Levels of a tree; all by default.
    pub levels: Option<u32>,
}

/// A class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The class.
    pub class: ClassNumber,
    /// Its objects; of java.lang.Class all class objects.
    pub instances: u64,
    /// What they take.
    pub shallow_bytes: u64,
    /// Classes that extend it directly.
    pub subclasses: u64,
    /// Its objects and those of all classes below.
    pub total_instances: u64,
    /// What those take.
    pub total_shallow_bytes: u64,
    /// Levels below the first class of its tree; 0 in a list.
    pub depth: u32,
}

/// Some classes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The classes that are kept.
    pub rows: Vec<Row>,
    /// Classes before `top` and `levels` were taken.
    pub total: u64,
}

/// Figures of all classes, by class number.
struct Figures<'a> {
    summary: &'a Summary,
    hierarchy: Hierarchy,
    sizes: Sizes,
    total_instances: Vec<u64>,
    total_bytes: Vec<u64>,
}

impl<'a> Figures<'a> {
    fn new(summary: &'a Summary) -> Self {
        let (hierarchy, sizes) = (Hierarchy::new(summary), Sizes::new(summary, None));
        let classes = || summary.numbered_classes();
        let own = |(number, class)| histogram::instances(summary, number, class);
        let total_instances = hierarchy.totals(classes().map(own).collect());
        let total_bytes = hierarchy.totals(classes().map(|(number, _)| sizes.total(number)).collect());
        Self { summary, hierarchy, sizes, total_instances, total_bytes }
    }

    fn row(&self, class: ClassNumber, depth: u32) -> Option<Row> {
        let row = self.summary.class(class)?;
        let at = class.0 as usize;
        Some(Row {
            class,
            instances: histogram::instances(self.summary, class, row),
            shallow_bytes: self.sizes.total(class),
            subclasses: self.hierarchy.subclasses(class).len() as u64,
            total_instances: self.total_instances.get(at).copied().unwrap_or(0),
            total_shallow_bytes: self.total_bytes.get(at).copied().unwrap_or(0),
            depth,
        })
    }

    fn total(&self, class: ClassNumber) -> u64 {
        self.total_instances.get(class.0 as usize).copied().unwrap_or(0)
    }

    fn name(&self, class: ClassNumber) -> &'a str {
        self.summary.class(class).map_or("", |class| self.summary.class_name(class))
    }

    /// Siblings in the order of a tree.
    fn sorted(&self, mut classes: Vec<ClassNumber>) -> Vec<ClassNumber> {
        classes.sort_by_cached_key(|class| (Reverse(self.total(*class)), self.name(*class), *class));
        classes
    }
}

/// Which classes are shown at all: those that are dumped, or have objects.
fn is_shown(summary: &Summary, class: ClassNumber) -> bool {
    summary.class(class).is_some_and(|row| row.is_dumped() || histogram::instances(summary, class, row) > 0)
}

/// Lists classes.
pub fn list(summary: &Summary, question: &Question) -> Answer {
    let figures = Figures::new(summary);
    let mut rows: Vec<Row> = (summary.numbered_classes())
        .filter(|(number, _)| is_shown(summary, *number))
        .filter(|(_, class)| any_matches(&question.patterns, summary.class_name(class)))
        .filter_map(|(number, _)| figures.row(number, 0))
        .collect();
    let figure = |row: &Row| match question.sort_by {
        SortBy::Instances => row.instances,
        SortBy::Total => row.total_instances,
        SortBy::Shallow => row.shallow_bytes,
        SortBy::Subclasses => row.subclasses,
        SortBy::Name => 0,
    };
    rows.sort_by_cached_key(|row| (Reverse(figure(row)), figures.name(row.class), row.class));
    let total = rows.len() as u64;
    rows.truncate(question.top.unwrap_or(usize::MAX));
    Answer { rows, total }
}

/// Draws the tree of classes: below those that match, or from those without a superclass, which is java.lang.Object, and
/// what else has objects. Subclasses with most instances come first.
pub fn tree(summary: &Summary, question: &Question) -> Answer {
    let figures = Figures::new(summary);
    let hierarchy = &figures.hierarchy;
    let mut answer = Answer::default();
    let mut starts = Vec::new();
    // By class number: whether it is below a start, or one.
    let mut inside = vec![false; summary.classes().len()];
    for class in hierarchy.top_down() {
        let parent = hierarchy.parent(class);
        let is_below = parent.and_then(|parent| inside.get(parent.0 as usize)).copied().unwrap_or(false);
        let is_start = !is_below
            && is_shown(summary, class)
            && if question.patterns.is_empty() {
                parent.is_none() && figures.total(class) > 0
            } else {
                any_matches(&question.patterns, figures.name(class))
            };
        if is_start {
            starts.push(class);
        }
        if let (true, Some(inside)) = (is_start || is_below, inside.get_mut(class.0 as usize)) {
            *inside = true;
            answer.total += 1;
        }
    }
    let most = question.top.unwrap_or(usize::MAX);
    let mut siblings = figures.sorted(starts);
    siblings.truncate(most);
    let mut levels = vec![siblings.into_iter()];
    while let Some(siblings) = levels.last_mut() {
        let Some(class) = siblings.next() else {
            levels.pop();
            continue;
        };
        let depth = u32::try_from(levels.len().saturating_sub(1)).unwrap_or(u32::MAX);
        answer.rows.extend(figures.row(class, depth));
        if question.levels.is_none_or(|levels| depth + 1 < levels) {
            let mut below = figures.sorted(hierarchy.subclasses(class).collect());
            below.truncate(most);
            levels.push(below.into_iter());
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_cut_and_chains_are_long() {
        // 0 <- 1 <- 2, 3 <-> 4 <- 5, 6 is its own superclass, 7 has one that is not there.
        let hierarchy = Hierarchy::of(vec![NONE, 0, 1, 4, 3, 4, 6, NONE]);
        let order: Vec<u32> = hierarchy.top_down().map(|class| class.0).collect();
        assert_eq!(order, [0, 1, 2, 7, 3, 4, 5, 6]);
        let parents: Vec<Option<u32>> =
            (0..8).map(|class| hierarchy.parent(ClassNumber(class)).map(|class| class.0)).collect();
        assert_eq!(parents, [None, Some(0), Some(1), None, Some(3), Some(4), None, None]);
        assert_eq!(hierarchy.totals(vec![1; 8]), [3, 2, 1, 3, 2, 1, 1, 1]);
        let mut below = vec![false, false, false, false, true, false, false, false];
        hierarchy.add_subclasses(&mut below);
        assert_eq!(below, [false, false, false, false, true, true, false, false]);

        let chain =
            Hierarchy::of((0..100_000u32).map(|class| class.checked_sub(1).unwrap_or(NONE)).collect());
        assert_eq!(chain.totals(vec![1; 100_000]).first(), Some(&100_000));
        let circle = Hierarchy::of((0..100_000u32).map(|class| (class + 1) % 100_000).collect());
        assert_eq!((circle.order.len(), circle.parent(ClassNumber(0))), (100_000, None));
    }
}
