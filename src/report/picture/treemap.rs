//! Treemap: a picture of a tree as nested boxes.
//!
//! The layout is squarified (M. Bruls, K. Huizing, J. J. van Wijk: Squarified Treemaps, Proceedings of the Joint Eurographics
//! and IEEE TCVG Symposium on Visualization, 2000): boxes are placed largest first, in rows along the shorter side of the free
//! area; a row takes another box as long as this does not make its worst aspect ratio worse.

use maud::Markup;

use super::{Canvas, PictureBox, PlacedBox, Rectangle, children, svg};

/// Distance in pixels between a box and the boxes nested in it.
const PADDING: f64 = 2.0;
/// Height in pixels of the strip with the name of a box that contains nested boxes.
const HEADER: f64 = 15.0;
/// Minimum width and height of a box in pixels; smaller boxes are not drawn.
const MIN_SIDE: f64 = 3.0;

/// Draws a treemap as large as the canvas. The bytes of a node that are not in its children leave free space in its box.
pub fn treemap(root: &PictureBox, canvas: Canvas) -> Markup {
    let what = format!("Treemap: {}", root.name);
    svg("treemap", &what, Rectangle::from_canvas(canvas), &layout(root, canvas))
}

/// Returns the boxes to draw, in preorder.
pub(super) fn layout(root: &PictureBox, canvas: Canvas) -> Vec<PlacedBox<'_>> {
    let mut placed = Vec::new();
    let mut to_place = vec![PlacedBox { node: root, depth: 0, at: Rectangle::from_canvas(canvas) }];
    while let Some(next) = to_place.pop() {
        let PlacedBox { node, depth, at } = next;
        if at.width < MIN_SIDE || at.height < MIN_SIDE {
            continue;
        }
        placed.push(next);
        let header = if at.has_name() { HEADER } else { PADDING };
        let inner = Rectangle {
            x: at.x + PADDING,
            y: at.y + header,
            width: at.width - 2.0 * PADDING,
            height: at.height - header - PADDING,
        };
        if inner.width < MIN_SIDE || inner.height < MIN_SIDE {
            continue;
        }
        let (children, all) = children(node);
        let sizes: Vec<f64> = children.iter().map(|child| child.bytes as f64).collect();
        let places = squarify(&sizes, all, inner);
        let below = children.into_iter().zip(places).map(|(node, at)| PlacedBox {
            node,
            depth: depth.saturating_add(1),
            at,
        });
        to_place.extend(below.rev());
    }
    placed
}

/// Places sizes in a rectangle whose area represents `all`. Sizes must be positive and sorted, largest first. The remaining
/// area is free, on the right or at the bottom.
fn squarify(sizes: &[f64], all: f64, within: Rectangle) -> Vec<Rectangle> {
    let scale = within.width * within.height / all;
    let mut places = Vec::with_capacity(sizes.len());
    let (mut free, mut rest) = (within, sizes);
    while let Some((first, others)) = rest.split_first() {
        let side = free.width.min(free.height);
        let mut row = BoxRow { sum: first * scale, largest: first * scale, smallest: first * scale };
        let mut count = 1;
        for size in others {
            let longer = row.with(size * scale);
            if longer.worst(side) > row.worst(side) {
                break;
            }
            row = longer;
            count += 1;
        }
        let (in_row, after) = rest.split_at(count);
        rest = after;
        let is_column = free.width >= free.height;
        let thick = if side > 0.0 { row.sum / side } else { 0.0 };
        let thick = thick.min(if is_column { free.width } else { free.height });
        let mut before = 0.0;
        for size in in_row {
            // Computed from the sum, so that the last box ends where the row ends.
            let from = side * (before / row.sum).min(1.0);
            before += size * scale;
            let long = side * (before / row.sum).min(1.0) - from;
            places.push(if is_column {
                Rectangle { x: free.x, y: free.y + from, width: thick, height: long }
            } else {
                Rectangle { x: free.x + from, y: free.y, width: long, height: thick }
            });
        }
        if is_column {
            free.x += thick;
            free.width = (free.width - thick).max(0.0);
        } else {
            free.y += thick;
            free.height = (free.height - thick).max(0.0);
        }
    }
    places
}

/// Areas of the boxes in a row, in square pixels.
#[derive(Debug, Clone, Copy)]
struct BoxRow {
    sum: f64,
    largest: f64,
    smallest: f64,
}

impl BoxRow {
    /// Returns the row with another box added, which must be the smallest.
    fn with(self, size: f64) -> Self {
        Self { sum: self.sum + size, largest: self.largest, smallest: size }
    }

    /// Returns the worst aspect ratio of a box if the row is laid out along a side of this length.
    fn worst(&self, side: f64) -> f64 {
        let (side, sum) = (side * side, self.sum * self.sum);
        (side * self.largest / sum).max(sum / (side * self.smallest))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check, check_text, leaf, node, random, tree};
    use super::*;

    const CANVAS: Canvas = Canvas { width: 1180.0, height: 600.0 };

    #[test]
    fn the_example_of_the_paper_is_laid_out_as_there() {
        let within = Rectangle { x: 0.0, y: 0.0, width: 6.0, height: 4.0 };
        let places = squarify(&[6.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0], 24.0, within);
        let expected = [
            (0.0, 0.0, 3.0, 2.0),
            (0.0, 2.0, 3.0, 2.0),
            (3.0, 0.0, 12.0 / 7.0, 7.0 / 3.0),
            (3.0 + 12.0 / 7.0, 0.0, 9.0 / 7.0, 7.0 / 3.0),
            (3.0, 7.0 / 3.0, 1.2, 5.0 / 3.0),
            (4.2, 7.0 / 3.0, 1.2, 5.0 / 3.0),
            (5.4, 7.0 / 3.0, 0.6, 5.0 / 3.0),
        ];
        for (place, (x, y, width, height)) in places.iter().zip(expected) {
            let is_near = |a: f64, b: f64| (a - b).abs() < 1e-9;
            assert!(is_near(place.x, x) && is_near(place.y, y), "{place:?}");
            assert!(is_near(place.width, width) && is_near(place.height, height), "{place:?}");
        }
        assert_eq!(places.len(), expected.len());
    }

    #[test]
    fn areas_are_in_proportion_to_bytes() {
        let sizes = [5000, 2500, 1250, 625, 300, 200];
        let inner = node("b.C", 4000, vec![leaf("d.E", 3000), leaf("d.F", 500)]);
        let mut all: Vec<PictureBox> = sizes.iter().map(|bytes| leaf("a.B", *bytes)).collect();
        all.push(inner);
        let root = node("all", 20_000, all);
        let boxes = layout(&root, CANVAS);
        assert_eq!(boxes.len(), 10);
        check(&boxes);
        let per_byte = |at: usize| boxes[at].at.width * boxes[at].at.height / boxes[at].node.bytes as f64;
        let siblings: Vec<usize> = (0..boxes.len()).filter(|at| boxes[*at].depth == 1).collect();
        for at in &siblings {
            assert!((per_byte(*at) / per_byte(siblings[0]) - 1.0).abs() < 1e-9);
        }
        let (inner_width, inner_height) = (1180.0 - 4.0, 600.0 - 17.0);
        assert!((per_byte(1) - inner_width * inner_height / 20_000.0).abs() < 1e-9);
        // The drawn boxes have the same areas, except for rounding.
        let svg = treemap(&root, CANVAS).into_string();
        check_text(&svg);
        assert!(svg.starts_with(
            "<svg viewBox=\"0 0 1180 600\" role=\"img\" aria-label=\"Treemap: all\" class=\"treemap\">"
        ));
    }

    #[test]
    fn boxes_never_overlap() {
        let mut random = random();
        for nodes in [2, 3, 10, 100, 1000, 1500] {
            let root = tree(nodes, &mut random);
            for (width, height) in [(1180.0, 600.0), (320.0, 900.0), (50.0, 5.0), (3.0, 3.0)] {
                let boxes = layout(&root, Canvas { width, height });
                assert!(!boxes.is_empty());
                check(&boxes);
                for placed in &boxes {
                    let at = placed.at;
                    assert!(at.x + at.width <= width + 1e-6 && at.y + at.height <= height + 1e-6, "{at:?}");
                }
            }
        }
    }

    #[test]
    fn children_are_in_their_parents() {
        let root = tree(1000, &mut random());
        let boxes = layout(&root, CANVAS);
        for inner in &boxes {
            let is_parent = |outer: &&PlacedBox<'_>| {
                outer.node.children.iter().any(|child| std::ptr::eq(child, inner.node))
            };
            let Some(outer) = boxes.iter().find(is_parent) else { continue };
            let (a, b) = (outer.at, inner.at);
            assert!(b.x >= a.x + 2.0 - 1e-6 && b.x + b.width <= a.x + a.width - 2.0 + 1e-6);
            assert!(b.y >= a.y + 2.0 - 1e-6 && b.y + b.height <= a.y + a.height - 2.0 + 1e-6);
            assert!(b.width >= MIN_SIDE && b.height >= MIN_SIDE);
        }
    }

    #[test]
    fn five_thousand_equal_children_fill_the_box() {
        let root = node("all", 5000, (0..5000).map(|_| leaf("a.B", 1)).collect());
        let boxes = layout(&root, CANVAS);
        assert_eq!(boxes.len(), 5001);
        check(&boxes);
        for placed in boxes.iter().skip(1) {
            let ratio = placed.at.width / placed.at.height;
            assert!((0.5..=2.0).contains(&ratio), "{placed:?}");
        }
    }

    #[test]
    fn odd_trees_have_a_picture() {
        let canvases = [
            CANVAS,
            Canvas { width: 0.0, height: 0.0 },
            Canvas { width: f64::NAN, height: f64::INFINITY },
            Canvas { width: -5.0, height: 10.0 },
        ];
        let nothing = node("all", 0, vec![leaf("a.B", 0), leaf("a.C", 0)]);
        let more_than_all = node("all", 10, vec![leaf("a.B", u64::MAX), leaf("a.C", u64::MAX)]);
        let tiny = node("all", u64::MAX, vec![leaf("a.B", 1), leaf("a.C", u64::MAX - 1)]);
        for root in [leaf("", 0), leaf("a.B", 5), nothing, more_than_all, tiny] {
            for canvas in canvases {
                check(&layout(&root, canvas));
                check_text(&treemap(&root, canvas).into_string());
            }
        }
        assert_eq!(layout(&leaf("a.B", 5), CANVAS).len(), 1);
        assert_eq!(layout(&node("all", 0, vec![leaf("a.B", 0)]), CANVAS).len(), 1);
    }
}
