//! The page with the flame graph of a recording: stacks as an icicle whose boxes are links that zoom.

use std::collections::BTreeMap;

use maud::{Markup, html};

use hprof_report::escape;
use hprof_report::number::{group_digits, percent};
use hprof_report::picture::{self, Canvas, Hue, PictureBox};

use super::ask::CommandQuery;
use super::frame::{self, Page};
use super::request::Request;

/// Maximum depth of frames drawn; the samples of deeper frames count in the boxes above them.
const MAX_DEPTH: usize = 120;
/// Minimum share of a box, as a divisor of the total.
const MIN_SHARE: u64 = 2000;
const CANVAS: Canvas = Canvas { width: 1180.0, height: 620.0 };

/// Separator between the frames of a zoom in a URL.
const SEPARATOR: char = ';';

fn ask<'a>(request: &Request<'a>) -> CommandQuery<'a> {
    let mut ask = request.ask("flamegraph");
    for name in ["data", "unit", "class", "method"] {
        if let Some(value) = request.value(name) {
            ask = ask.option(name, value);
        }
    }
    for name in ["reverse", "by-thread", "lines"] {
        if request.value(name).is_some() {
            ask = ask.flag(name);
        }
    }
    ask
}

pub(crate) fn page(request: &Request<'_>) -> Page {
    let ask = ask(request);
    let body = html! {
        p.dim { "Each box is a method as wide as its share; its callees are below it. Click to zoom." }
        form.filter action=(request.href("flamegraph")) {
            label { span { "Data" } select name="data" {
                option value="" { "–" }
                @for kind in ["cpu", "allocated", "live", "cputime"] { option selected[request.value("data") == Some(kind)] { (kind) } }
            } }
            label { span { "Unit" } select name="unit" {
                @for unit in ["bytes", "objects"] { option selected[request.value("unit") == Some(unit)] { (unit) } }
            } }
            label { span { "Method" } input name="method" value=[request.value("method")] spellcheck="false"; }
            @for (name, label) in [("reverse", "Reverse"), ("by-thread", "By thread"), ("lines", "Lines")] {
                label.check { input type="checkbox" name=(name) value="1" checked[request.value(name).is_some()]; span { (label) } }
            }
            button { "Show" }
        }
        (figure(&ask, request))
        (frame::command(&ask, &request.links()))
    };
    let page = Page::new("flamegraph", "Flame graph", body);
    match request.value("zoom") {
        Some(_) => page.breadcrumb("Flame graph", "flamegraph"),
        None => page,
    }
}

fn figure(ask: &CommandQuery<'_>, request: &Request<'_>) -> Markup {
    let links = request.links();
    let (folded, notes) = match ask.format("folded") {
        Ok(answer) => answer,
        Err(failure) => return frame::failure_alert(&failure, &links),
    };
    let zoom = request.value("zoom").unwrap_or_default();
    let href = |path: &str| Some(request.with("zoom", path));
    match picture(&String::from_utf8_lossy(&folded), zoom, &href) {
        Some(picture) => html! {
            @if !zoom.is_empty() { p { a href=(request.with("zoom", "")) { "Zoom out" } " · " (escape::text(zoom.rsplit(SEPARATOR).next().unwrap_or_default())) } }
            figure data-part="picture" tabindex="0" aria-label="Picture" { (picture) }
        },
        None => html! { p { "There is nothing to draw." } (frame::notes(&notes, &links)) },
    }
}

/// A frame in the tree of stacks, with its callees.
#[derive(Default)]
struct Frame<'a> {
    weight: u64,
    called: BTreeMap<&'a str, Frame<'a>>,
}

/// Draws folded stacks below `zoom`. `href` returns the URL of a zoom; `None` in a report.
pub(crate) fn picture(folded: &str, zoom: &str, href: &dyn Fn(&str) -> Option<String>) -> Option<Markup> {
    let mut root = Frame::default();
    for line in folded.lines() {
        let Some((stack, weight)) = line.rsplit_once(' ') else { continue };
        let Ok(weight) = weight.parse::<u64>() else { continue };
        let stack = match stack.strip_prefix(zoom) {
            Some(below) if zoom.is_empty() || below.is_empty() || below.starts_with(SEPARATOR) => below,
            _ => continue,
        };
        let mut frame = &mut root;
        frame.weight = frame.weight.saturating_add(weight);
        for name in stack.split(SEPARATOR).filter(|name| !name.is_empty()).take(MAX_DEPTH) {
            frame = frame.called.entry(name).or_default();
            frame.weight = frame.weight.saturating_add(weight);
        }
    }
    let whole = root.weight;
    let name = zoom.rsplit(SEPARATOR).next().filter(|name| !name.is_empty()).unwrap_or("all");
    (whole > 0).then(|| picture::icicle(&node(name, zoom, &root, whole, href), CANVAS))
}

fn node(
    name: &str,
    path: &str,
    frame: &Frame<'_>,
    whole: u64,
    href: &dyn Fn(&str) -> Option<String>,
) -> PictureBox {
    let large = frame.called.iter().filter(|(_, called)| called.weight.saturating_mul(MIN_SHARE) >= whole);
    let below =
        |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}{SEPARATOR}{name}") };
    PictureBox {
        name: name.to_owned(),
        title: format!(
            "{name}\n{} of {}, {}",
            group_digits(frame.weight),
            group_digits(whole),
            percent(frame.weight, whole)
        ),
        href: href(path),
        bytes: frame.weight,
        hue: Hue::of_class(name.rsplit_once('.').map_or(name, |(class, _)| class)),
        children: large.map(|(name, called)| node(name, &below(name), called, whole, href)).collect(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hprof_report::html::percent_encode;

    #[test]
    fn a_zoom_shows_what_is_below_a_frame() {
        let folded = "a.A.run;b.B.go 3\na.A.run;c.C.go 1\na.A.runs 4\n";
        let none = |_: &str| None;
        let whole = picture(folded, "", &none).unwrap().into_string();
        assert!(whole.contains("8 of 8") && whole.contains("4 of 8"));
        let zoomed = picture(folded, "a.A.run", &none).unwrap().into_string();
        assert!(zoomed.contains("4 of 4") && zoomed.contains("3 of 4") && !zoomed.contains("runs"));
        assert!(picture(folded, "nothing", &none).is_none());
        // The URL of a box shows the frames below it.
        let href = |path: &str| Some(format!("?zoom={}", percent_encode(path)));
        assert!(picture(folded, "", &href).unwrap().into_string().contains("?zoom=a.A.run%3Bb.B.go"));
    }
}
