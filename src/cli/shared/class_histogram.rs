//! Class histograms in the place of a dump: texts of `jmap -histo` and `jcmd PID GC.class_histogram`, and running JVMs.

use hprof_index::Error;
use hprof_input::file::TextFile;
use hprof_input::text_events::NoSuchRun;
use hprof_query::recordings::class_histograms::{self, ClassHistogram, OtherLines};
use hprof_query::recordings::profile::text::{MalformedLine, TextError};
use hprof_report::json::DumpHeader;
use hprof_report::number::group_digits;

use super::args::Input;
use super::context::RunContext;
use super::output::timestamp;
use super::session::AnswerSource;
use super::spool;

/// Maximum number of histograms of one process or file that are compared. Of more, every second one is left out.
const MAX_ROUNDS: usize = 1000;

/// A class histogram, and where it comes from.
pub(crate) struct CountedHistogram {
    pub(crate) histogram: ClassHistogram,
    path: String,
    file_bytes: Option<u64>,
    is_damaged: bool,
}

impl CountedHistogram {
    /// Creates the histogram of a process.
    pub(crate) fn of_process(histogram: ClassHistogram, path: String) -> Self {
        Self { is_damaged: histogram.is_damaged(), histogram, path, file_bytes: None }
    }

    /// Removes the classes: its description remains.
    pub(crate) fn without_classes(mut self) -> Self {
        self.histogram.heap.classes = Vec::new();
        self
    }

    /// Returns the path of the file, or the process.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the names of its classes.
    pub(crate) fn class_names(&self) -> impl Iterator<Item = &str> {
        self.histogram.heap.classes.iter().map(|class| class.name.as_str())
    }

    /// Returns an error if an option was given that needs objects.
    pub(crate) fn ensure_unneeded(&self, options: &[(&str, bool)]) -> anyhow::Result<()> {
        match options.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(needs_objects(option, &self.path)),
            None => Ok(()),
        }
    }

    /// Prints a warning if rows are missing.
    fn warn(&self, cx: &RunContext) {
        if !self.is_damaged {
            return;
        }
        let reason = match self.histogram.total {
            None => "its last line, `Total`, is missing: it is truncated".to_owned(),
            Some((_, bytes)) => format!(
                "rows are missing or damaged: they have {} bytes, the line `Total` says {}",
                group_digits(self.histogram.heap_bytes()),
                group_digits(bytes)
            ),
        };
        cx.emit("warning", &format!("{}: class histogram: {reason}", self.path));
    }
}

/// Returns the error for an option that needs a dump.
pub(crate) fn needs_objects(option: &str, path: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "{option} needs a heap dump, and {path} is a class histogram, which has counts and bytes by class, and no objects; \
         omit {option}, or make a dump: `hprof-cli dump PID`"
    )
}

impl AnswerSource for CountedHistogram {
    fn header(&self) -> DumpHeader<'_> {
        DumpHeader {
            path: self.path.as_str().into(),
            file_bytes: self.file_bytes,
            format: Some("class histogram"),
            created: timestamp(self.histogram.facts.created_ms).map(Into::into),
            is_damaged: Some(self.is_damaged()),
            ..DumpHeader::default()
        }
    }

    fn is_damaged(&self) -> bool {
        self.is_damaged
    }
}

/// Class histograms of a file.
struct HistogramFile {
    file: TextFile,
    path: String,
}

impl HistogramFile {
    /// Opens the file; `None` if it contains no class histograms.
    fn open(input: &Input) -> anyhow::Result<Option<Self>> {
        let Some(file) = TextFile::open_class_histogram(input.path()).map_err(Error::from)? else {
            return Ok(None);
        };
        let path = spool::original_path(input.path()).to_string_lossy().into_owned();
        anyhow::ensure!(
            input.heap_dump().is_none(),
            "{path} is a class histogram, which contains no heap dumps; omit --heap-dump"
        );
        Ok(Some(Self { file, path }))
    }

    /// Reads all histograms, and passes each to `take` with its number, from 1. Returns their number.
    fn visit(
        &self,
        cx: &RunContext,
        input: &Input,
        mut take: impl FnMut(u32, ClassHistogram),
    ) -> anyhow::Result<u32> {
        let (mut count, path) = (0, &self.path);
        let failed = |error| anyhow::anyhow!("cannot read {path}: {error}");
        let mut reader = self.file.reader().map_err(failed)?;
        let others = class_histograms::visit(&mut *reader, |number, histogram| {
            count = number;
            take(number, histogram);
        });
        if !input.quiet {
            about_others(cx, path, &others.map_err(failed)?);
        }
        anyhow::ensure!(count > 0, "{path}: the class histogram has no rows: it is truncated");
        Ok(count)
    }

    fn histogram(&self, histogram: ClassHistogram) -> CountedHistogram {
        let (path, file_bytes) = (self.path.clone(), Some(self.file.file_bytes()));
        CountedHistogram { is_damaged: histogram.is_damaged(), histogram, path, file_bytes }
    }
}

/// Reads one histogram of a file, the given one from 1 or the last; `None` if the file contains none.
pub(crate) fn read(
    cx: &RunContext,
    input: &Input,
    run: Option<u32>,
) -> anyhow::Result<Option<CountedHistogram>> {
    let Some(file) = HistogramFile::open(input)? else { return Ok(None) };
    let mut found = None;
    let count = file.visit(cx, input, |number, histogram| {
        if run.is_none_or(|run| run == number) {
            found = Some(histogram);
        }
    })?;
    let path = &file.path;
    let wrong = |error| anyhow::Error::from(TextError::from(error)).context(format!("cannot read {path}"));
    NoSuchRun::check(run, count).map_err(wrong)?;
    if count > 1 && run.is_none() && !input.quiet {
        cx.emit(
            "note",
            &format!(
                "{path} contains {count} class histograms; this is the last one (--run N selects another)"
            ),
        );
    }
    let counted = file.histogram(found.unwrap_or_default());
    counted.warn(cx);
    Ok(Some(counted))
}

/// Reads all histograms of a file; `None` if the file contains none.
pub(crate) fn read_all(cx: &RunContext, input: &Input) -> anyhow::Result<Option<Vec<CountedHistogram>>> {
    let Some(file) = HistogramFile::open(input)? else { return Ok(None) };
    let mut thinned = ThinnedItems::default();
    file.visit(cx, input, |_, histogram| thinned.push(file.histogram(histogram)))?;
    let all = thinned.into_items();
    all.iter().for_each(|counted| counted.warn(cx));
    Ok(Some(all))
}

fn about_others(cx: &RunContext, path: &str, others: &OtherLines) {
    let Some(MalformedLine { line, text, .. }) = &others.first else { return };
    let count = match others.count {
        1 => "1 line is".to_owned(),
        count => format!("{} lines are", group_digits(count)),
    };
    cx.emit(
        "note",
        &format!("{path}: {count} not part of a class histogram, the first is line {line}: {text:?}"),
    );
}

/// The first and the last of any number of items, and up to `MAX_ROUNDS` between them at equal distances.
pub(crate) struct ThinnedItems<T> {
    items: Vec<T>,
    /// The last item, if it is between the distances.
    last: Option<T>,
    distance: usize,
    count: usize,
}

impl<T> Default for ThinnedItems<T> {
    fn default() -> Self {
        Self { items: Vec::new(), last: None, distance: 1, count: 0 }
    }
}

impl<T> ThinnedItems<T> {
    /// Adds an item.
    pub(crate) fn push(&mut self, item: T) {
        if self.count.is_multiple_of(self.distance) {
            self.items.push(item);
            self.last = None;
        } else {
            self.last = Some(item);
        }
        self.count += 1;
        if self.items.len() > MAX_ROUNDS {
            self.distance = self.distance.saturating_mul(2);
            let mut is_kept = false;
            self.items.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
        }
    }

    /// Returns references to the items.
    pub(crate) fn items(&self) -> Vec<&T> {
        self.items.iter().chain(&self.last).collect()
    }

    /// Returns the items.
    pub(crate) fn into_items(self) -> Vec<T> {
        self.items.into_iter().chain(self.last).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_items_the_first_and_the_last_are_kept() {
        for count in [0, 1, 2, MAX_ROUNDS, MAX_ROUNDS + 1, MAX_ROUNDS + 2, 5 * MAX_ROUNDS + 3] {
            let mut thinned = ThinnedItems::default();
            (0..count).for_each(|item| thinned.push(item));
            let items = thinned.into_items();
            assert_eq!(
                (items.first(), items.last()),
                ((count > 0).then_some(&0), count.checked_sub(1).as_ref())
            );
            assert!(items.len() <= MAX_ROUNDS + 1 && items.len() >= count.min(MAX_ROUNDS / 2), "{count}");
            let distances: Vec<usize> = items.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let (_, inner) = distances.split_last().unwrap_or((&0, &[]));
            assert!(inner.windows(2).all(|pair| pair[0] == pair[1]), "{count}");
        }
    }
}
