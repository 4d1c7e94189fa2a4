//! The commands whose output has a page of its own, with their options and paths.

/// A page that shows the output of one command.
#[derive(Debug)]
pub(crate) struct Listing {
    /// Path of the page, and of its entry in the navigation.
    pub(crate) path: &'static str,
    pub(crate) title: &'static str,
    /// Description of the page in a sentence.
    pub(crate) about: &'static str,
    pub(crate) command: &'static str,
    /// Options that the form offers.
    pub(crate) options: &'static [&'static str],
    /// URL parameter for the argument after the dump, and its description.
    pub(crate) argument: Option<(&'static str, &'static str)>,
    /// Default number of rows.
    pub(crate) top: Option<&'static str>,
}

/// All pages that show the output of one command.
pub(crate) const LISTINGS: &[Listing] = &[
    Listing {
        path: "histo",
        title: "Histogram",
        about: "Instances and bytes by class, package or class loader.",
        command: "histo",
        options: &["group-by", "sort", "live", "unreachable", "retained", "retained-by", "heap", "top"],
        argument: Some(("pattern", "Class pattern")),
        top: Some("100"),
    },
    Listing {
        path: "classes",
        title: "Classes",
        about: "All loaded classes; as a tree, below their superclasses.",
        command: "classes",
        options: &["tree", "depth", "sort", "top"],
        argument: Some(("pattern", "Class pattern")),
        top: Some("200"),
    },
    Listing {
        path: "instances",
        title: "Instances",
        about: "The objects of a class, largest retained size first.",
        command: "instances",
        options: &["subclasses", "where", "sort", "live", "heap", "top"],
        argument: Some(("class", "Class")),
        top: Some("50"),
    },
    Listing {
        path: "refs",
        title: "References",
        about: "The references or referrers of an object, or of all objects of a class; or all that is reachable from it.",
        command: "refs",
        options: &["incoming", "outgoing", "reachable", "group-by", "top"],
        argument: Some(("of", "Object or class")),
        top: Some("100"),
    },
    Listing {
        path: "paths",
        title: "Paths to GC roots",
        about: "The shortest paths of references that keep an object alive.",
        command: "paths-to-root",
        options: &[
            "paths",
            "budget",
            "exclude",
            "all-references",
            "exclude-field",
            "exclude-roots",
            "depth",
            "top",
        ],
        argument: Some(("of", "Object or class")),
        top: None,
    },
    Listing {
        path: "retained",
        title: "Retained set",
        about: "The retained size of these objects together.",
        command: "retained",
        options: &[],
        argument: Some(("of", "Object or class")),
        top: None,
    },
    Listing {
        path: "roots",
        title: "GC roots",
        about: "GC roots by kind, and the objects of one kind.",
        command: "roots",
        options: &["kind", "thread", "top"],
        argument: None,
        top: Some("100"),
    },
    Listing {
        path: "threads",
        title: "Threads",
        about: "Threads, with their stacks and what the locals retain.",
        command: "threads",
        options: &[
            "thread", "state", "group", "group-of", "locks", "stack", "locals", "virtual", "platform",
            "sort", "depth", "top",
        ],
        argument: None,
        top: Some("100"),
    },
    Listing {
        path: "loaders",
        title: "Class loaders",
        about: "Class loaders and their retained sizes; classes that several of them define.",
        command: "loaders",
        options: &["details", "duplicates", "sort", "top"],
        argument: None,
        top: Some("100"),
    },
    Listing {
        path: "memory",
        title: "Memory of the process",
        about: "Where the memory of the process is; of a dump alone, what it says about memory outside of the heap.",
        command: "memory",
        options: &[],
        argument: None,
        top: None,
    },
    Listing {
        path: "strings",
        title: "Strings",
        about: "The strings of the heap, or only duplicates.",
        command: "strings",
        options: &["duplicates", "pattern", "min-length", "max-length", "live", "sort", "max-chars", "top"],
        argument: None,
        top: Some("50"),
    },
    Listing {
        path: "waste",
        title: "Waste",
        about: "Wasted memory, and the fields that reference it.",
        command: "waste",
        options: &["kind", "group-by", "explain", "top"],
        argument: None,
        top: None,
    },
    Listing {
        path: "info",
        title: "Info",
        about: "The contents of the file: format, JVM, layout, records.",
        command: "info",
        options: &[],
        argument: None,
        top: None,
    },
    Listing {
        path: "doctor",
        title: "Doctor",
        about: "Damage in the dump, and its effect on answers.",
        command: "doctor",
        options: &[],
        argument: None,
        top: None,
    },
    Listing {
        path: "recording",
        title: "Recording",
        about: "What a profiler recorded.",
        command: "summary",
        options: &[],
        argument: None,
        top: None,
    },
    Listing {
        path: "sites",
        title: "Allocation sites",
        about: "Allocation sites: SITES.",
        command: "sites",
        options: &["sort", "stack", "depth", "method", "trace", "cutoff", "top"],
        argument: Some(("pattern", "Class pattern")),
        top: Some("50"),
    },
    Listing {
        path: "traces",
        title: "Stack traces",
        about: "The recorded stack traces: TRACE.",
        command: "traces",
        options: &["class", "method", "thread", "depth", "top"],
        argument: Some(("trace", "Serial number")),
        top: Some("50"),
    },
    Listing {
        path: "cpu",
        title: "CPU samples",
        about: "CPU usage by samples: CPU SAMPLES.",
        command: "cpu",
        options: &["group-by", "sort", "stack", "depth", "class", "method", "cutoff", "top"],
        argument: None,
        top: Some("50"),
    },
    Listing {
        path: "cputime",
        title: "CPU time",
        about: "Measured CPU time by method: CPU TIME.",
        command: "cputime",
        options: &["calls", "sort", "stack", "depth", "class", "method", "cutoff", "top"],
        argument: None,
        top: Some("50"),
    },
    Listing {
        path: "monitors",
        title: "Monitors",
        about: "Monitors that threads waited for.",
        command: "monitors",
        options: &["dumps", "waits", "sort", "stack", "depth", "monitor", "method", "cutoff", "top"],
        argument: None,
        top: Some("50"),
    },
];

/// Options that the page of the dominator tree accepts.
const OF_TREE: &[&str] = &["of", "group-by", "min-retained", "depth"];

/// Returns where a command's output is available: the path, the URL parameter for the argument after the dump, and the
/// URL parameters that are options.
pub(crate) fn place(command: &str) -> Option<(&'static str, Option<&'static str>, &'static [&'static str])> {
    match command {
        "dominators" => return Some(("dominators", None, OF_TREE)),
        "oql" => return Some(("oql", Some("q"), &["live"])),
        "sql" => return Some(("sql", Some("q"), &[])),
        _ => {}
    }
    let listing = LISTINGS.iter().find(|listing| listing.command == command)?;
    Some((listing.path, listing.argument.map(|(parameter, _)| parameter), listing.options))
}

impl Listing {
    /// Returns the page at a path.
    pub(crate) fn for_path(path: &str) -> Option<&'static Self> {
        LISTINGS.iter().find(|listing| listing.path == path)
    }
}
