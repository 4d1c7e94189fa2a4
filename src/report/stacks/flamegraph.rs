//! Stacks as a flame graph: a self-contained SVG with search and zoom.
//!
//! The picture is drawn by the crate `inferno`, whose script is part of the file. Colours are derived from names, so that equal
//! stacks have equal pictures. With a baseline, they are derived from the difference between the frame's own weights, as in
//! Brendan Gregg's differential flame graphs.

use std::io::{self, Write};

use inferno::flamegraph::color::{BackgroundColor, BasicPalette, Color, PaletteMap, StrokeColor};
use inferno::flamegraph::{self, Direction, Options};

use super::folded;
use crate::number::{group_digits, percent};
use hprof_query::recordings::stacks::{Baseline, LabelKind, Stacks};

/// Maximum size in bytes of the stacks as text. Stacks that are wide enough to be visible take far less.
const MAX_TEXT: usize = 1 << 29;

/// Appearance of a flame graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// Title of the picture.
    pub title: String,
    /// Width in pixels; `None` to fill the window.
    pub width: Option<u16>,
    /// Minimum width of a frame in percent of the picture; narrower frames are left out.
    pub min_width_percent: f64,
    /// Colours of frames that are methods.
    pub palette: Palette,
    /// `true` if frames hang from the top instead of standing on the bottom.
    pub hanging: bool,
    /// Scale of the baseline's weights in a comparison.
    pub scale: Scale,
}

/// Conversion of a baseline's weights before the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// Unchanged, for amounts at one moment.
    #[default]
    Absolute,
    /// Scaled to the new total, for runs of different lengths.
    Normalized,
}

/// Colours of methods. Objects and threads have their own colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // They are what they are called.
pub enum Palette {
    /// Red to yellow, as in flame graphs of CPU time.
    Hot,
    /// Green to blue, as in flame graphs of memory.
    Mem,
    /// Shades of blue, as in flame graphs of I/O.
    Io,
    Red,
    Green,
    Blue,
    Aqua,
    Yellow,
    Purple,
    Orange,
}

impl Palette {
    fn of_inferno(self) -> BasicPalette {
        match self {
            Self::Hot => BasicPalette::Hot,
            Self::Mem => BasicPalette::Mem,
            Self::Io => BasicPalette::Io,
            Self::Red => BasicPalette::Red,
            Self::Green => BasicPalette::Green,
            Self::Blue => BasicPalette::Blue,
            Self::Aqua => BasicPalette::Aqua,
            Self::Yellow => BasicPalette::Yellow,
            Self::Purple => BasicPalette::Purple,
            Self::Orange => BasicPalette::Orange,
        }
    }

    /// Returns the colour of a label that is not a method; it differs from the colours of methods.
    fn label_color(self, kind: LabelKind) -> Option<Color> {
        let (r, g, b) = match (kind, self) {
            (LabelKind::Method, _) => return None,
            (LabelKind::Objects, Self::Hot | Self::Red | Self::Yellow | Self::Purple | Self::Orange) => {
                (130, 170, 235)
            }
            (LabelKind::Objects, _) => (240, 170, 90),
            (LabelKind::Thread, _) => (190, 190, 205),
            (LabelKind::Nothing, _) => (215, 215, 215),
        };
        Some(Color { r, g, b })
    }
}

/// Writes the flame graph.
///
/// # Errors
/// If `out` cannot be written; [`io::ErrorKind::InvalidInput`] if there are no stacks, or far too many.
pub fn write(out: &mut dyn Write, stacks: &Stacks, look: &Look) -> io::Result<()> {
    if stacks.total == 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no stacks to draw"));
    }
    let names = folded::names(stacks);
    let mut lines = LimitedBuffer(Vec::new());
    let is_wide = |weight: u64| weight as f64 * 100.0 / stacks.total as f64 >= look.min_width_percent;
    match stacks.baseline {
        None => folded::write_where(&mut lines, stacks, &names, is_wide)?,
        Some(baseline) => {
            let scaled = |old: u64| look.scale.scale_weight(old, baseline.total, stacks.total);
            let steps = stacks.walk_both(|new, old| is_wide(new.max(scaled(old))));
            let mut sum = 0;
            folded::write_both(&mut lines, steps, &names, |step| {
                // Frames that occur only in the baseline have no width.
                (step.total > 0).then(|| {
                    let new = step.rest.min(MAX_WEIGHT - sum);
                    sum += new;
                    (scaled(step.old_rest).min(MAX_WEIGHT), new)
                })
            })?;
        }
    }
    // The lines consist of texts, so they are valid UTF-8.
    let lines = String::from_utf8(lines.0).map_err(io::Error::other)?;
    let mut colors = PaletteMap::default();
    colors.insert("", Color { r: 230, g: 230, b: 230 });
    for (name, label) in names.iter().zip(stacks.labels()) {
        if let Some(color) = look.palette.label_color(label.kind) {
            colors.insert(name, color);
        }
    }
    let mut options = Options::default();
    options.title = folded::frame(&look.title).into_owned();
    options.name_type = "Frame:".to_owned();
    options.count_name = stacks.measure.name().to_owned();
    options.colors = flamegraph::Palette::Basic(look.palette.of_inferno());
    options.deterministic = true;
    if let Some(baseline) = stacks.baseline {
        options.bgcolors = Some(BackgroundColor::Flat(BEHIND));
        options.stroke_color = StrokeColor::Color(EDGE);
        options.subtitle = Some(subtitle(stacks, baseline, look.scale));
    }
    options.palette_map = Some(&mut colors);
    options.image_width = look.width.map(|width| usize::from(width).max(MIN_WIDTH));
    options.min_width = 0.0; // Narrow frames are already left out.
    options.direction = if look.hanging { Direction::Inverted } else { Direction::Straight };
    // Sorting by bytes would split a frame whose name is a prefix of another frame's name (`run`, `run$1`). Only a flame chart
    // keeps the order of lines, from last to first; nothing else changes.
    options.flame_chart = true;
    let mut svg = WithoutDoctype::new(out);
    flamegraph::from_lines(&mut options, lines.lines().rev(), &mut svg)?;
    svg.finish()
}

/// Background colour of a differential flame graph, in which unchanged frames are white.
const BEHIND: Color = Color { r: 235, g: 235, b: 235 };
/// Colour of the edges of frames in a differential flame graph.
const EDGE: Color = Color { r: 130, g: 130, b: 130 };

/// Maximum sum of compared weights: `inferno` multiplies differences by 150.
const MAX_WEIGHT: u64 = i64::MAX as u64 / 200;

impl Scale {
    /// Returns a baseline's weight after conversion.
    fn scale_weight(self, old: u64, old_total: u64, new_total: u64) -> u64 {
        if self == Self::Absolute || old_total == new_total || old_total == 0 {
            return old;
        }
        let scaled =
            (u128::from(old) * u128::from(new_total) + u128::from(old_total) / 2) / u128::from(old_total);
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

/// Returns the legend for the colours, and the part of the baseline that is not in the picture.
fn subtitle(stacks: &Stacks, baseline: Baseline, scale: Scale) -> String {
    let (old, new) = (group_digits(baseline.total), group_digits(stacks.total));
    let unit = stacks.measure.name();
    let totals = match scale {
        _ if baseline.total == stacks.total => format!("{new} {unit} in both"),
        Scale::Normalized => format!("{old} {unit} scaled to {new}"),
        Scale::Absolute => format!("from {old} to {new} {unit}"),
    };
    let gone = match percent(baseline.gone, baseline.total) {
        _ if baseline.gone == 0 => String::new(),
        gone => format!("; {gone} of the old total is not shown"),
    };
    format!("red: more in the frame itself than before, blue: less; {totals}{gone}")
}

/// Width in pixels of the picture without frames.
const MIN_WIDTH: usize = 100;

/// Buffer with a limited size.
struct LimitedBuffer(Vec<u8>);

impl Write for LimitedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > MAX_TEXT.saturating_sub(self.0.len()) {
            let what = "the flame graph has too many frames";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writer that removes the document type at the start, which some XML readers would fetch from the network, and makes the edges
/// of frames thin. The edges drawn by `inferno` are as wide as narrow frames, and would hide their colour.
struct WithoutDoctype<'a> {
    out: &'a mut dyn Write,
    /// Output so far, up to the end of the style element; it contains nothing from the dump.
    start: Option<Vec<u8>>,
}

impl<'a> WithoutDoctype<'a> {
    fn new(out: &'a mut dyn Write) -> Self {
        Self { out, start: Some(Vec::new()) }
    }

    fn finish(mut self) -> io::Result<()> {
        if let Some(start) = self.start.take() {
            self.out.write_all(&start)?;
        }
        self.out.flush()
    }
}

impl Write for WithoutDoctype<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(start) = &mut self.start else { return self.out.write(bytes) };
        start.extend_from_slice(bytes);
        let text = String::from_utf8_lossy(start);
        if text.contains("</style>") {
            let text = text.replace("stroke-width:1;", "stroke-width:0.3;");
            let text = match text.split_once("<!DOCTYPE") {
                Some((before, after)) => {
                    format!("{before}{}", after.split_once('>').map_or("", |(_, after)| after))
                }
                None => text,
            };
            self.out.write_all(text.as_bytes())?;
            self.start = None;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
