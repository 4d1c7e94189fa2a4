//! The sections of a report, and the queries that each of them runs.

use clap::ValueEnum;

use super::About;
use crate::cli::pages::ask::CommandQuery;

/// A section. The variants are in the order in which a report has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Section {
    /// Verdict and biggest objects
    Overview,
    /// Leak suspects with evidence
    Suspects,
    /// Treemap of the dominator tree
    Treemap,
    /// The top of the dominator tree
    Dominators,
    /// Classes by retained size
    Histogram,
    /// Memory of the process of --process
    Memory,
    /// Growth since the dump of --baseline
    Comparison,
    /// Threads with stacks
    Threads,
    /// Class loaders
    Loaders,
    /// Wasted memory
    Waste,
    /// Duplicate strings
    Strings,
    /// JVM and system properties
    Properties,
    /// Allocation sites of a recording
    Sites,
    /// CPU samples of a recording
    Samples,
    /// Flame graph of a recording
    Flamegraph,
}

impl Section {
    /// Returns the heading of the section.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Suspects => "Leak suspects",
            Self::Treemap => "Where the memory is",
            Self::Dominators => "Dominator tree",
            Self::Histogram => "Histogram",
            Self::Memory => "Memory of the process",
            Self::Comparison => "What grew",
            Self::Threads => "Threads",
            Self::Loaders => "Class loaders",
            Self::Waste => "Waste",
            Self::Strings => "Duplicate strings",
            Self::Properties => "JVM",
            Self::Sites => "Allocation sites",
            Self::Samples => "CPU samples",
            Self::Flamegraph => "Flame graph",
        }
    }

    /// Returns the anchor of the section within the report.
    pub(super) fn anchor(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Returns whether the file contains the data for the section.
    pub(super) fn is_in(self, about: &About) -> bool {
        match self {
            Self::Sites | Self::Samples | Self::Flamegraph => about.has.recording,
            Self::Comparison => about.site.baseline.is_some() && about.has.heap,
            Self::Memory => about.site.process.is_some() && about.has.heap,
            // The section consists only of values.
            Self::Strings => about.has.heap && !about.cx.hides_values,
            _ => about.has.heap,
        }
    }

    /// Returns whether the section needs the object graph. If any does, the graph is built, and the headline can use it.
    pub(super) fn needs_graph(self) -> bool {
        !matches!(self, Self::Properties | Self::Sites | Self::Samples | Self::Flamegraph)
    }

    /// Returns the queries of the section, with the number of rows that a report shows.
    pub(super) fn queries(self, about: &About) -> Vec<CommandQuery<'_>> {
        let one = |command| about.ask(command);
        match self {
            Self::Overview => vec![one("overview")],
            Self::Suspects => vec![one("leaks")],
            Self::Treemap => vec![one("dominators").option("depth", "2").option("top", "20")],
            Self::Dominators => vec![
                one("dominators").option("depth", "4").option("top", "10").option("min-retained", "1024"),
            ],
            Self::Histogram => vec![one("histo").flag("retained").option("top", "150")],
            Self::Memory => vec![one("memory")],
            Self::Comparison => {
                let Some(old) = &about.site.baseline else { return Vec::new() };
                let diff = |by: &str| one("diff").since(old).option("group-by", by).option("top", "40");
                vec![diff("place"), diff("class")]
            }
            Self::Threads => vec![one("threads").flag("stack").option("top", "100").option("depth", "30")],
            Self::Loaders => vec![one("loaders").option("top", "50")],
            Self::Waste => vec![one("waste")],
            Self::Strings => {
                vec![one("strings").flag("duplicates").option("top", "40").option("max-chars", "120")]
            }
            Self::Properties => vec![one("info")],
            Self::Sites => vec![one("sites").option("top", "60")],
            Self::Samples => vec![one("cpu").option("top", "60")],
            Self::Flamegraph => vec![one("flamegraph")],
        }
    }
}
