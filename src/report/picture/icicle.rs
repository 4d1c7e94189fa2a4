//! Icicle: a picture of a tree with one row per depth and the root on top.

use maud::Markup;

use super::{Canvas, PictureBox, PlacedBox, Rectangle, children, svg};

/// Height of a row in pixels.
const ROW: f64 = 20.0;
/// Minimum width of a box in pixels; narrower boxes are not drawn.
const MIN_WIDTH: f64 = 1.0;

/// Draws an icicle as wide as the canvas. Its height depends on its rows, not on the canvas. The bytes of a node that are not
/// in its children leave free space below the node, on the right.
pub fn icicle(root: &PictureBox, canvas: Canvas) -> Markup {
    let what = format!("Icicle: {}", root.name);
    let boxes = layout(root, canvas);
    let rows = boxes.iter().map(|placed| f64::from(placed.depth) + 1.0).fold(0.0, f64::max);
    let canvas = Rectangle { height: rows * ROW, ..Rectangle::from_canvas(canvas) };
    svg("icicle", &what, canvas, &boxes)
}

/// Returns the boxes to draw, in preorder.
pub(super) fn layout(root: &PictureBox, canvas: Canvas) -> Vec<PlacedBox<'_>> {
    let canvas = Rectangle { height: ROW, ..Rectangle::from_canvas(canvas) };
    let mut placed = Vec::new();
    let mut to_place = vec![PlacedBox { node: root, depth: 0, at: canvas }];
    while let Some(next) = to_place.pop() {
        let PlacedBox { node, depth, at } = next;
        placed.push(next);
        let (children, all) = children(node);
        let mut before = 0.0;
        // Children are sorted by size: after the first that is too small, all others are too small, too.
        let below = children.into_iter().map_while(|node| {
            let from = at.width * (before / all).min(1.0);
            before += node.bytes as f64;
            let width = at.width * (before / all).min(1.0) - from;
            let at = Rectangle { x: at.x + from, y: at.y + ROW, width, height: ROW };
            (width >= MIN_WIDTH).then_some(PlacedBox { node, depth: depth.saturating_add(1), at })
        });
        let first = to_place.len();
        to_place.extend(below);
        if let Some(new) = to_place.get_mut(first..) {
            new.reverse();
        }
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check, check_text, leaf, node, random, tree};
    use super::*;

    const CANVAS: Canvas = Canvas { width: 1000.0, height: 7.0 };

    #[test]
    fn widths_are_in_proportion_to_bytes() {
        let inner = node("b.C", 400, vec![leaf("d.F", 100), leaf("d.E", 200)]);
        let root = node("all", 1000, vec![leaf("a.A", 100), inner, leaf("a.B", 300)]);
        let boxes = layout(&root, CANVAS);
        check(&boxes);
        let places: Vec<_> = boxes
            .iter()
            .map(|placed| {
                (placed.node.name.as_str(), placed.at.x.round(), placed.at.y, placed.at.width.round())
            })
            .collect();
        let expected = [
            ("all", 0.0, 0.0, 1000.0),
            ("b.C", 0.0, 20.0, 400.0),
            ("d.E", 0.0, 40.0, 200.0),
            ("d.F", 200.0, 40.0, 100.0),
            ("a.B", 400.0, 20.0, 300.0),
            ("a.A", 700.0, 20.0, 100.0),
        ];
        assert_eq!(places, expected);
        let svg = icicle(&root, CANVAS).into_string();
        check_text(&svg);
        assert!(svg.starts_with(
            "<svg viewBox=\"0 0 1000 60\" role=\"img\" aria-label=\"Icicle: all\" class=\"icicle\">"
        ));
    }

    #[test]
    fn boxes_never_overlap() {
        let mut random = random();
        for nodes in [2, 3, 10, 100, 1500] {
            let root = tree(nodes, &mut random);
            for width in [1000.0, 320.0, 5.0, 1.0] {
                let boxes = layout(&root, Canvas { width, height: 0.0 });
                check(&boxes);
                for placed in &boxes {
                    assert!(placed.at.width >= 1.0 && placed.at.x + placed.at.width <= width + 1e-6);
                }
            }
        }
    }

    #[test]
    fn five_thousand_equal_children_are_too_small() {
        let root = node("all", 5000, (0..5000).map(|_| leaf("a.B", 1)).collect());
        assert_eq!(layout(&root, CANVAS).len(), 1);
        let boxes = layout(&root, Canvas { width: 10_000.0, height: 0.0 });
        assert_eq!(boxes.len(), 5001);
        check(&boxes);
    }

    #[test]
    fn odd_trees_have_a_picture() {
        let canvases =
            [CANVAS, Canvas { width: 0.0, height: 0.0 }, Canvas { width: f64::NAN, height: f64::NAN }];
        let nothing = node("all", 0, vec![leaf("a.B", 0), leaf("a.C", 0)]);
        let more_than_all = node("all", 10, vec![leaf("a.B", u64::MAX), leaf("a.C", u64::MAX)]);
        for root in [leaf("", 0), leaf("a.B", 5), nothing, more_than_all] {
            for canvas in canvases {
                check(&layout(&root, canvas));
                check_text(&icicle(&root, canvas).into_string());
            }
        }
        assert_eq!(layout(&leaf("a.B", 5), CANVAS).len(), 1);
    }
}
