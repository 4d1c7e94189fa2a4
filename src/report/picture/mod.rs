//! Pictures of trees and of values over time: SVG for a page.
//!
//! [`treemap()`] and [`icicle()`] draw the same type of tree, [`PictureBox`]. Boxes have CSS classes but no style; the page's
//! stylesheet defines the colours: `d0` to `d9` by depth, `h0` to `h11` by hue, `hm` for merged objects, `ho` for the other
//! objects. A box with an address is a link. Its `<title>` is the tooltip and the accessible name.
//! [`over_time()`] draws bars.

mod icicle;
mod over_time;
mod treemap;

use std::borrow::Cow;
use std::fmt;

use maud::{Markup, Render, html};
use unicode_width::UnicodeWidthChar;
use xxhash_rust::xxh3::xxh3_64;

use super::escape;

pub use icicle::icicle;
pub use over_time::{BytesAtTime, over_time};
pub use treemap::treemap;

/// Approximate width in pixels of a character at a font size of 11 px.
const CHAR_WIDTH: f64 = 6.3;
/// Space to the left of a name in pixels.
const TEXT_INDENT: f64 = 4.0;
/// Distance of a name's base line from the top of its box in pixels.
const BASE_LINE: f64 = 12.0;
/// Minimum number of columns for a name; a name with fewer columns is illegible.
const MIN_COLUMNS: usize = 4;
/// Maximum number of characters of a title, as names in a dump can be of any length.
const MAX_TITLE: usize = 500;
/// Maximum size of a canvas in pixels.
const MAX_PIXELS: f64 = 20_000.0;
/// Number of hues in the stylesheet.
const HUES: u16 = 12;
/// Last depth that has its own colour.
const LAST_DEPTH: u32 = 9;

/// Node of a tree that is drawn as a box with nested boxes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PictureBox {
    /// Text in the box, truncated to fit.
    pub name: String,
    /// Full description, for the tooltip.
    pub title: String,
    /// Link target, URL-encoded.
    pub href: Option<String>,
    /// Size, to which the area is proportional. Bytes that are not in children belong to the box itself.
    pub bytes: u64,
    /// Colour of the box.
    pub hue: Hue,
    /// Nested boxes, in any order.
    pub children: Vec<PictureBox>,
}

/// Colour of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hue {
    /// Angle on the colour wheel, from 0 to 359 degrees.
    Degrees(u16),
    /// Objects merged by class.
    Merged,
    /// All other objects.
    Others,
}

impl Hue {
    /// Returns the hue of a class, which depends only on its package, so that it is the same in all pictures.
    pub fn of_class(name: &str) -> Self {
        let package = name.rsplit_once('.').map_or("", |(package, _)| package);
        Self::Degrees(u16::try_from(xxh3_64(package.as_bytes()) % 360).unwrap_or(0))
    }
}

/// Size of a picture in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Canvas {
    /// Width of the picture.
    pub width: f64,
    /// Height of the picture.
    pub height: f64,
}

/// Rectangle on the canvas, in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rectangle {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Rectangle {
    /// Returns a rectangle of the size of the canvas; an empty one if the canvas has no size.
    fn from_canvas(canvas: Canvas) -> Self {
        let pixels = |pixels: f64| if pixels.is_nan() { 0.0 } else { pixels.clamp(0.0, MAX_PIXELS) };
        Self { x: 0.0, y: 0.0, width: pixels(canvas.width), height: pixels(canvas.height) }
    }

    /// Returns whether a name in the rectangle would be legible.
    fn has_name(&self) -> bool {
        self.height >= BASE_LINE + 1.0 && self.columns() >= MIN_COLUMNS
    }

    /// Returns the number of text columns that fit into the rectangle.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` keeps to the range of the type.
    fn columns(&self) -> usize {
        ((self.width - 2.0 * TEXT_INDENT) / CHAR_WIDTH) as usize
    }
}

/// Node with its depth and its position on the canvas.
#[derive(Debug, Clone, Copy)]
struct PlacedBox<'a> {
    node: &'a PictureBox,
    depth: u32,
    at: Rectangle,
}

/// Returns the children of a node that are not empty, largest first, and the size of the entire node in the same unit.
fn children(node: &PictureBox) -> (Vec<&PictureBox>, f64) {
    let mut children: Vec<&PictureBox> = node.children.iter().filter(|child| child.bytes > 0).collect();
    children.sort_by_key(|child| std::cmp::Reverse(child.bytes));
    let sum: f64 = children.iter().map(|child| child.bytes as f64).sum();
    (children, sum.max(node.bytes as f64))
}

/// Coordinate in tenths of a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Tenths(i64);

impl Tenths {
    #[allow(clippy::cast_possible_truncation)] // A canvas is not that large.
    fn from_pixels(pixels: f64) -> Self {
        Self((pixels * 10.0).round() as i64)
    }

    /// Returns the rounded size of a box that starts at `from`. Edges are rounded instead of sizes, so that adjacent boxes
    /// touch but do not overlap.
    fn between(from: f64, size: f64) -> Self {
        Self(Self::from_pixels(from + size).0 - Self::from_pixels(from).0)
    }
}

impl fmt::Display for Tenths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, tenths) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        match tenths % 10 {
            0 => write!(f, "{sign}{}", tenths / 10),
            rest => write!(f, "{sign}{}.{rest}", tenths / 10),
        }
    }
}

impl Render for Tenths {
    fn render_to(&self, buffer: &mut String) {
        // Writing to a String cannot fail.
        let _ = fmt::Write::write_fmt(buffer, format_args!("{self}"));
    }
}

/// Returns a text, truncated to a number of columns with an ellipsis.
fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    // Characters without width count as a column, so that the length of the text is limited.
    let width = |c: char| c.width().unwrap_or(1).max(1);
    let mut taken = 0;
    // End of the text before the ellipsis, if it is truncated.
    let mut end = 0;
    for (at, c) in text.char_indices() {
        taken += width(c);
        if taken > columns {
            return Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default().trim_end()));
        }
        if taken < columns {
            end = at + c.len_utf8();
        }
    }
    Cow::Borrowed(text)
}

/// Renders boxes as a picture; they must be in the order in which they are drawn.
fn svg(kind: &str, what: &str, canvas: Rectangle, boxes: &[PlacedBox<'_>]) -> Markup {
    let (width, height) = (Tenths::from_pixels(canvas.width), Tenths::from_pixels(canvas.height));
    // Screen readers ignore the content of an image, so a picture with links must not be one.
    let has_links = boxes.iter().any(|placed| placed.node.href.is_some());
    let role = if has_links { "group" } else { "img" };
    let what = escape::text(what);
    let what = cut(&what, MAX_TITLE);
    html! {
        svg viewBox={ "0 0 " (width) " " (height) } role=(role) aria-label=(what) class=(kind) {
            @for placed in boxes {
                @match &placed.node.href {
                    Some(href) => a href=(href) { (content(placed)) },
                    None => g { (content(placed)) },
                }
            }
        }
    }
}

/// Renders the content of a box's group.
fn content(PlacedBox { node, depth, at }: &PlacedBox<'_>) -> Markup {
    let lines: Vec<_> = node.title.lines().map(escape::text).collect();
    let title = lines.join("\n");
    let name = escape::text(&node.name);
    let depth = LAST_DEPTH.min(*depth);
    let (width, height) = (Tenths::between(at.x, at.width), Tenths::between(at.y, at.height));
    html! {
        title { (cut(&title, MAX_TITLE)) }
        rect class={ "d" (depth) " " (node.hue) } x=(Tenths::from_pixels(at.x)) y=(Tenths::from_pixels(at.y))
            width=(width) height=(height) {}
        @if at.has_name() && !name.is_empty() {
            text x=(Tenths::from_pixels(at.x + TEXT_INDENT)) y=(Tenths::from_pixels(at.y + BASE_LINE)) {
                (cut(&name, at.columns()))
            }
        }
    }
}

impl Render for Hue {
    /// Renders the CSS class of the hue.
    fn render_to(&self, buffer: &mut String) {
        match self {
            Self::Degrees(degrees) => {
                buffer.push('h');
                (degrees % 360 / (360 / HUES)).render_to(buffer);
            }
            Self::Merged => buffer.push_str("hm"),
            Self::Others => buffer.push_str("ho"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn leaf(name: &str, bytes: u64) -> PictureBox {
        node(name, bytes, Vec::new())
    }

    pub(super) fn node(name: &str, bytes: u64, children: Vec<PictureBox>) -> PictureBox {
        let hue = Hue::of_class(name);
        PictureBox { name: name.into(), title: format!("{name}: {bytes}"), href: None, bytes, hue, children }
    }

    /// Returns a generator of pseudorandom numbers that are the same in every run.
    pub(super) fn random() -> impl FnMut(u64) -> u64 {
        let mut state = 7u64;
        move |below| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        }
    }

    /// Returns a tree with the given number of nodes, many of which have children.
    pub(super) fn tree(nodes: u64, random: &mut impl FnMut(u64) -> u64) -> PictureBox {
        if nodes <= 1 {
            return leaf("com.example.Leaf", 1 + random(1000));
        }
        let parts = 1 + random((nodes - 1).min(7));
        let children: Vec<PictureBox> = (0..parts).map(|_| tree((nodes - 1) / parts, random)).collect();
        let bytes = children.iter().map(|child| child.bytes).sum::<u64>() + random(300);
        node("java.util.concurrent.ConcurrentHashMap$Node[]", bytes, children)
    }

    /// Checks that boxes, as drawn, are inside their parents and do not overlap their siblings.
    pub(super) fn check(boxes: &[PlacedBox<'_>]) {
        let edges = |placed: &PlacedBox<'_>| {
            let Rectangle { x, y, width, height } = placed.at;
            assert!(x.is_finite() && y.is_finite() && width >= 0.0 && height >= 0.0, "{placed:?}");
            [
                Tenths::from_pixels(x),
                Tenths::from_pixels(y),
                Tenths::from_pixels(x + width),
                Tenths::from_pixels(y + height),
            ]
        };
        let mut above: Vec<(&PlacedBox<'_>, Vec<[Tenths; 4]>)> = Vec::new();
        for placed in boxes {
            above.truncate(placed.depth as usize);
            let here = edges(placed);
            if let Some((parent, siblings)) = above.last_mut() {
                assert!(parent.node.children.iter().any(|child| std::ptr::eq(child, placed.node)));
                for other in siblings.iter() {
                    let is_apart = here[2] <= other[0]
                        || other[2] <= here[0]
                        || here[3] <= other[1]
                        || other[3] <= here[1];
                    assert!(is_apart, "{here:?} {other:?}");
                }
                siblings.push(here);
            }
            above.push((placed, Vec::new()));
        }
    }

    /// Checks that a picture contains only boxes with CSS classes, without style.
    pub(super) fn check_text(svg: &str) {
        for word in ["style", "fill", "<script", "NaN", "inf", "\u{1b}"] {
            assert!(!svg.contains(word), "{word}: {svg}");
        }
        let mut reader = quick_xml::Reader::from_str(svg);
        let mut depth = 0i32;
        loop {
            match reader.read_event().expect("it is XML") {
                quick_xml::events::Event::Start(_) => depth += 1,
                quick_xml::events::Event::End(_) => depth -= 1,
                quick_xml::events::Event::Eof => break,
                _ => {}
            }
        }
        assert_eq!(depth, 0);
    }

    #[test]
    fn coordinates_have_one_decimal() {
        let text = |pixels| Tenths::from_pixels(pixels).to_string();
        assert_eq!(
            [text(0.0), text(1.04), text(1.05), text(99.96), text(-0.1)],
            ["0", "1", "1.1", "100", "-0.1"]
        );
        assert_eq!(Tenths::between(0.05, 0.1).to_string(), "0.1");
    }

    #[test]
    fn names_are_cut_to_what_fits() {
        assert_eq!(cut("ConcurrentHashMap", 17), "ConcurrentHashMap");
        assert_eq!(cut("ConcurrentHashMap", 16), "ConcurrentHashM…");
        assert_eq!(cut("9,000 x Product", 7), "9,000…");
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut(&"\u{301}".repeat(1000), 5).chars().count(), 5);
        assert_eq!([cut("", 0), cut("a", 0)], ["", "…"]);
    }

    #[test]
    fn a_package_has_one_hue() {
        assert_eq!(Hue::of_class("shop.Product"), Hue::of_class("shop.Price[]"));
        assert_ne!(Hue::of_class("shop.Product"), Hue::of_class("java.util.HashMap"));
        let classes =
            [0, 29, 30, 359, 360, u16::MAX].map(|degrees| Hue::Degrees(degrees).render().into_string());
        assert_eq!(classes, ["h0", "h0", "h1", "h11", "h0", "h0"]);
        assert_eq!([Hue::Merged, Hue::Others].map(|hue| hue.render().into_string()), ["hm", "ho"]);
    }

    #[test]
    fn text_is_harmless() {
        for draw in [treemap, icicle] {
            let hostile = "</title><script>alert(1)</script>\u{1b}[31m\"'&\u{202e}";
            let mut root = leaf(hostile, 7);
            root.title = hostile.repeat(1000);
            root.href = Some("/object/0x1?a=1&b=\"2".into());
            let svg = draw(&root, Canvas { width: 900.0, height: 100.0 }).into_string();
            check_text(&svg);
            assert!(svg.len() < 5000, "{}", svg.len());
            assert!(svg.contains("&lt;script&gt;") && svg.contains("\\u001b[31m") && svg.contains("\\u202e"));
            assert!(svg.contains("href=\"/object/0x1?a=1&amp;b=&quot;2\""), "{svg}");
        }
    }

    #[test]
    fn a_picture_with_links_is_no_image() {
        let canvas = Canvas { width: 200.0, height: 50.0 };
        let mut root = leaf("a.B", 1);
        for draw in [treemap, icicle] {
            root.href = None;
            let svg = draw(&root, canvas).into_string();
            assert!(svg.contains("role=\"img\"") && svg.contains("<g><title>a.B: 1</title>"), "{svg}");
            root.href = Some("#".into());
            let svg = draw(&root, canvas).into_string();
            assert!(svg.contains("role=\"group\"") && svg.contains("<a href=\"#\"><title>"), "{svg}");
        }
    }

    #[test]
    fn a_picture_of_1500_boxes_is_small() {
        fn link(node: &mut PictureBox, count: &mut u64) {
            *count += 1;
            node.href = Some(format!("/object/0x{:x}", 0xff00_0000 + *count));
            node.title = format!("{} 3.5 MiB retained, 73.0%, 12,345 objects", node.name);
            node.children.iter_mut().for_each(|child| link(child, count));
        }
        let mut random = random();
        let flat = node("all", 1500, (0..1500).map(|_| leaf("java.util.HashMap$Node", 1)).collect());
        for mut root in [tree(1500, &mut random), flat] {
            let mut count = 0;
            link(&mut root, &mut count);
            assert!(count > 1000, "{count}");
            for draw in [treemap, icicle] {
                let svg = draw(&root, Canvas { width: 1180.0, height: 600.0 }).into_string();
                check_text(&svg);
                assert!(svg.len() < 300_000, "{}", svg.len());
            }
        }
    }
}
