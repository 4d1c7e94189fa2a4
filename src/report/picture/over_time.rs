//! Bytes over time as a bar chart, with a mark at one time: SVG for a page.

use maud::{Markup, html};

use super::{CHAR_WIDTH, Canvas, MAX_TITLE, Rectangle, TEXT_INDENT, Tenths, cut};
use crate::escape;
use crate::number::human_bytes;

/// Height of the line of text above the bars in pixels.
const LABEL_HEIGHT: f64 = 18.0;
/// Minimum and maximum width of a bar in pixels.
const BAR_WIDTH: (f64, f64) = (1.0, 14.0);

/// Bar of the chart: a number of bytes at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BytesAtTime {
    /// Time, in a unit common to all bars.
    pub time: i64,
    /// Number of bytes, which is the height of the bar.
    pub bytes: u64,
    /// Full description, for the tooltip.
    pub title: String,
}

/// Draws bytes over time; `mark` is a time with a name. If the mark's distance from the bars is greater than the time between
/// the bars, it is drawn at the edge with the word `earlier` or `later`, as the bars would be too narrow otherwise.
pub fn over_time(bars: &[BytesAtTime], mark: Option<(i64, &str)>, what: &str, canvas: Canvas) -> Markup {
    let canvas = Rectangle::from_canvas(canvas);
    let times = || bars.iter().map(|bar| i128::from(bar.time));
    let (first, last) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
    let span = (last - first).max(1);
    let mark = mark.map(|(time, name)| match i128::from(time) {
        time if time < first - span => (first - span / 4, format!("{name}, earlier")),
        time if time > last + span => (last + span / 4, format!("{name}, later")),
        time => (time, name.to_owned()),
    });
    let marked = mark.as_ref().map(|(time, _)| *time);
    let (start, end) = (first.min(marked.unwrap_or(first)), last.max(marked.unwrap_or(last)));
    let most = bars.iter().map(|bar| bar.bytes).max().unwrap_or(0);
    let part = |time: i128| time as f64 / ((end - start) as f64).max(1.0);
    // Bars are ordered by time.
    let distances = bars.windows(2).filter_map(|two| match two {
        [a, b] => Some(part(i128::from(b.time) - i128::from(a.time)) * canvas.width),
        _ => None,
    });
    let width = distances.fold(BAR_WIDTH.1, f64::min).max(BAR_WIDTH.0);
    let room = (canvas.width - width).max(0.0);
    let x = |time: i128| part(time - start) * room;
    let height = |bytes: u64| bytes as f64 / most.max(1) as f64 * (canvas.height - LABEL_HEIGHT).max(0.0);
    let what = escape::text(what);
    html! {
        svg.time viewBox={ "0 0 " (Tenths::from_pixels(canvas.width)) " " (Tenths::from_pixels(canvas.height)) } role="img"
            aria-label=(cut(&what, MAX_TITLE)) {
            @for bar in bars {
                @let (x, height) = (x(i128::from(bar.time)), height(bar.bytes));
                @let title = escape::text(&bar.title);
                g {
                    title { (cut(&title, MAX_TITLE)) }
                    rect.h0 x=(Tenths::from_pixels(x)) y=(Tenths::from_pixels(canvas.height - height))
                        width=(Tenths::between(x, width)) height=(Tenths::between(canvas.height - height, height)) {}
                }
            }
            text x=(Tenths::from_pixels(TEXT_INDENT)) y=(Tenths::from_pixels(LABEL_HEIGHT - 6.0)) { (human_bytes(most)) }
            @if let Some((time, name)) = mark {
                @let name = escape::text(&name);
                @let at = x(time) + width / 2.0;
                // The name is to the left of its line if it would not fit to the right.
                @let length = name.chars().count() as f64 * CHAR_WIDTH + TEXT_INDENT;
                @let is_left = at + length > canvas.width;
                line.mark x1=(Tenths::from_pixels(at)) x2=(Tenths::from_pixels(at)) y1="0" y2=(Tenths::from_pixels(canvas.height)) {}
                text x=(Tenths::from_pixels(if is_left { at - TEXT_INDENT } else { at + TEXT_INDENT }))
                    y=(Tenths::from_pixels(LABEL_HEIGHT - 6.0)) text-anchor=(if is_left { "end" } else { "start" }) { (name) }
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const CANVAS: Canvas = Canvas { width: 600.0, height: 118.0 };

    fn bar(time: i64, bytes: u64) -> BytesAtTime {
        BytesAtTime { time, bytes, title: format!("<{bytes}>") }
    }

    /// Returns the values of a numeric attribute of all elements with this name.
    fn numbers(svg: &str, element: &str, attribute: &str) -> Vec<f64> {
        let element = format!("<{element} ");
        let of = |tag: &str| {
            let (_, rest) = tag.split_once(&format!(" {attribute}=\""))?;
            rest.split_once('"')?.0.parse().ok()
        };
        let tags = svg.split('<').map(|tag| format!("<{tag}"));
        tags.filter(|tag| tag.starts_with(&element)).filter_map(|tag| of(&tag)).collect()
    }

    #[test]
    fn bars_are_proportional_in_both_directions() {
        let svg = over_time(&[bar(100, 50), bar(150, 100), bar(300, 0)], None, "floors", CANVAS).0;
        assert_eq!(numbers(&svg, "rect", "x"), [0.0, 146.5, 586.0]);
        assert_eq!(numbers(&svg, "rect", "height"), [50.0, 100.0, 0.0]);
        assert_eq!(numbers(&svg, "rect", "y"), [68.0, 18.0, 118.0]);
        assert!(svg.contains("&lt;50&gt;") && !svg.contains("<50>"), "{svg}");
        assert!(!svg.contains("<line"), "{svg}");
    }

    #[test]
    fn a_moment_after_the_last_bar_is_on_the_canvas() {
        let svg = over_time(&[bar(0, 1), bar(100, 1)], Some((200, "dump <1>")), "floors", CANVAS).0;
        assert_eq!(numbers(&svg, "line", "x1"), [593.0]);
        assert_eq!(numbers(&svg, "rect", "x"), [0.0, 293.0]);
        assert!(svg.contains(r#"text-anchor="end">dump &lt;1&gt;<"#), "{svg}");
        let svg = over_time(&[bar(0, 1), bar(100, 1)], Some((-100, "dump")), "floors", CANVAS).0;
        assert_eq!(numbers(&svg, "line", "x1"), [7.0]);
        assert!(svg.contains(r#"text-anchor="start">dump<"#), "{svg}");
    }

    #[test]
    fn nothing_and_extremes_are_drawn_within_the_canvas() {
        over_time(&[], None, "", CANVAS);
        let bars = [bar(i64::MIN, u64::MAX), bar(i64::MAX, u64::MAX)];
        let svg = over_time(&bars, Some((0, "dump")), "", CANVAS).0;
        assert_eq!(numbers(&svg, "rect", "x"), [0.0, 586.0]);
        assert_eq!(numbers(&svg, "rect", "height"), [100.0, 100.0]);
        let bars = [bar(0, 1), bar(1, 2), bar(1000, 3)];
        let svg = over_time(&bars, Some((i64::MAX, "dump")), "", CANVAS).0;
        assert!(svg.contains(">dump, later<"), "{svg}");
        // Narrow bars, as two are close together; four fifths of the canvas.
        assert_eq!(numbers(&svg, "rect", "x"), [0.0, 0.5, 479.2]);
        let svg = over_time(&bars, Some((i64::MIN, "dump")), "", CANVAS).0;
        assert!(svg.contains(">dump, earlier<"), "{svg}");
        over_time(&bars, None, "", Canvas { width: f64::NAN, height: -1.0 });
    }
}
