//! Commands, queries and pages of other tools, and the lines that answer the same here.
//!
//! A name is compared without leading hyphens and packages, in lower case, with `-` and `.` as `_`. In a line, words such as
//! `DUMP` are replaced by what the user gave; a part in braces is omitted unless the user gave everything in it.

/// A command of another tool.
pub(super) struct Habit {
    /// Names of the command.
    pub(super) names: &'static [&'static str],
    /// Line for a heap dump.
    pub(super) line: &'static str,
    /// Line for a recording of Flight Recorder, if it differs.
    pub(super) of_recording: Option<&'static str>,
    /// Line for a running JVM, if another one than: make a dump, and ask it.
    pub(super) of_process: Option<&'static str>,
    /// What the line does not do.
    pub(super) remark: &'static str,
}

impl Habit {
    const fn recording(self, line: &'static str) -> Self {
        Self { of_recording: Some(line), ..self }
    }

    const fn process(self, line: &'static str) -> Self {
        Self { of_process: Some(line), ..self }
    }

    const fn remark(self, remark: &'static str) -> Self {
        Self { remark, ..self }
    }
}

pub(super) const fn habit(names: &'static [&'static str], line: &'static str) -> Habit {
    Habit { names, line, of_recording: None, of_process: None, remark: "" }
}

/// The tools themselves, and commands with subcommands: a later word may decide.
pub(super) const TOOLS: &[Habit] = &[
    habit(&["jhat", "hat"], "serve DUMP"),
    habit(&["jmap"], "histo DUMP").process("dump PID"),
    habit(&["jcmd", "jps", "jstat", "jvmstat"], "jvms"),
    habit(&["jhsdb", "clhsdb", "hsdb"], "overview DUMP").process("jvms"),
    habit(&["jinfo"], "info DUMP").process("jvms"),
    habit(&["jstack"], "threads DUMP --stack"),
    habit(&["jfr", "jmc"], "overview DUMP").recording("summary DUMP"),
    habit(&["view"], "overview DUMP").recording("summary DUMP").remark("no command has this view"),
    habit(&["jfrconv", "jfr2flame"], "flamegraph DUMP {-o OUT}"),
    habit(&["asprof", "profiler_sh"], "flamegraph REC.jfr {-o OUT}")
        .process("flamegraph REC.jfr {-o OUT}")
        .remark("a running JVM cannot be profiled, but a recording can be drawn"),
    habit(
        &["parseheapdump_sh", "parseheapdump_bat", "parseheapdump", "memoryanalyzer", "mat"],
        "overview DUMP",
    ),
    habit(&["hprof_slurp", "slurp"], "histo DUMP"),
    habit(&["hprof_analyzer"], "dominators DUMP"),
    habit(&["shark_cli", "shark"], "leaks DUMP"),
    habit(&["visualvm", "jvisualvm"], "serve DUMP --open"),
];

/// Systems of the JDK with many commands, of which only some are in [`NAMES`].
pub(super) const FAMILIES: &[&str] =
    &["gc_", "vm_", "thread_", "compiler_", "jfr_", "jvmti_", "managementagent_", "system_"];

/// Commands, queries and pages.
pub(super) const NAMES: &[Habit] = &[
    // Overviews.
    habit(
        &[
            "heap",
            "open",
            "load",
            "parse",
            "gc_heap_info",
            "heap_dump_overview",
            "system_overview",
            "org_eclipse_mat_api:overview",
        ],
        "overview DUMP",
    )
    .recording("summary DUMP")
    .process("jvms"),
    habit(&["hprof_conv"], "overview DUMP").remark("dumps of Android are read as they are"),
    habit(&["vm_native_memory", "native_memory"], "overview DUMP")
        .process("jvms")
        .remark("a dump has only the heap and its direct buffers"),
    habit(
        &["vm_flags", "flags", "vm_command_line", "vm_version", "vm_info", "universe", "header", "vm_uptime"],
        "info DUMP",
    )
    .recording("summary DUMP")
    .process("jvms"),
    habit(
        &["properties", "sysprops", "system_properties", "vm_system_properties"],
        "sql DUMP 'SELECT name, value FROM properties'",
    ),
    habit(&["metadata", "jfr_dump", "jfr_check", "jfr_start"], "info DUMP").recording("summary DUMP"),
    habit(&["validate", "verify", "check_heap"], "doctor DUMP"),
    habit(&["component_report", "comparison_html", "html"], "report DUMP -o report.html"),
    habit(&["component_report_top", "top_components"], "dominators DUMP --group-by loader"),
    habit(&["interactive", "tui"], "browse DUMP"),
    habit(&["oqlhelp", "oql_help"], "oql --help"),
    // Suspects.
    habit(
        &[
            "leak_suspects",
            "suspects",
            "leak",
            "leakhunter",
            "find_leaks",
            "analyze",
            "analyse",
            "analyze_hprof",
            "analyze_process",
            "reference_leak",
        ],
        "leaks DUMP",
    ),
    habit(&["leaking_bundles", "bundle_registry"], "loaders DUMP"),
    habit(&["big_drops_in_dominator_tree", "big_drops"], "places DUMP"),
    // Classes.
    habit(
        &[
            "histogram",
            "class_histogram",
            "gc_class_histogram",
            "classhisto",
            "jhisto",
            "count",
            "stat",
            "stats",
            "gc_class_stats",
        ],
        "histo DUMP",
    )
    .process("histo PID"),
    habit(&["histo"], "histo DUMP").process("histo PID"),
    habit(&["showinstancecounts"], "histo DUMP --sort instances"),
    habit(&["unreachable", "unreachable_objects", "garbage"], "histo DUMP --unreachable"),
    habit(
        &["show_retained_set", "retained_set", "customized_retained_set", "size"],
        "retained DUMP OBJECT|CLASS",
    ),
    habit(&["allclasses"], "classes DUMP"),
    habit(&["allclasseswithplatform"], "classes DUMP --top 0"),
    habit(&["vm_class_hierarchy", "class_hierarchy"], "classes DUMP --tree"),
    habit(
        &[
            "class_loaders",
            "classloaders",
            "class_loader_explorer",
            "classloaderexplorerquery",
            "classloader_stats",
            "vm_classloader_stats",
            "vm_classloaders",
            "clstats",
            "permstat",
            "vm_metaspace",
        ],
        "loaders DUMP",
    ),
    habit(&["duplicate_classes"], "loaders DUMP --duplicates"),
    // Dominators.
    habit(
        &["dominator_tree", "dominator", "tree", "top", "biggest_objects", "pie_biggest_objects"],
        "dominators DUMP",
    ),
    habit(&["show_dominator_tree"], "dominators DUMP --of OBJECT|CLASS"),
    habit(&["top_consumers", "top_consumers_html"], "dominators DUMP --group-by package"),
    habit(
        &["immediate_dominators"],
        "oql DUMP 'SELECT classof(dominatorof(o)).@name AS dominator, count(*) AS n FROM CLASS o GROUP BY dominator ORDER BY n DESC'",
    ),
    // Paths.
    habit(
        &["path", "path2gc", "path_to_gc_roots", "gc_path", "why", "merge_shortest_paths", "shortest_paths"],
        "paths-to-root DUMP OBJECT|CLASS",
    ),
    habit(&["allroots"], "paths-to-root DUMP OBJECT|CLASS --all-references"),
    habit(&["gc_roots", "gcroots", "root", "showroots", "rootset"], "roots DUMP"),
    // Threads.
    habit(&["thread", "thread_overview", "thread_dump"], "threads DUMP").recording("traces DUMP"),
    habit(&["thread_print"], "threads DUMP --stack").recording("traces DUMP"),
    habit(
        &["stacks", "locals", "thread_stack", "thread_stacks", "thread_details"],
        "threads DUMP {--thread TEXT} --stack --locals",
    ),
    // Strings.
    habit(&["find_strings", "find_string", "grep", "search", "find"], "strings DUMP {--pattern TEXT}"),
    habit(&["vm_stringtable", "stringtable", "list_strings", "liststrings", "symboltable"], "strings DUMP"),
    habit(&["duplicate_strings", "group_by_value", "dup_strings"], "strings DUMP --duplicates"),
    // Waste.
    habit(
        &[
            "wasted",
            "collections_grouped_by_size",
            "collection_fill_ratio",
            "array_fill_ratio",
            "map_collision_ratio",
            "waste_in_char_arrays",
            "duplicates",
        ],
        "waste DUMP",
    ),
    habit(
        &[
            "finalizers",
            "finalizersummary",
            "finalizerobjects",
            "finalizer_overview",
            "finalizer_queue",
            "finalizerinfo",
            "gc_finalizer_info",
        ],
        "waste DUMP --kind finalizable",
    ),
    habit(
        &["finalizer_thread", "finalizer_in_processing", "finalizer_thread_locals"],
        "threads DUMP --thread Finalizer --stack --locals",
    ),
    habit(&["primitive_arrays_with_a_constant_value"], "waste DUMP --kind constant-arrays"),
    habit(&["arrays_grouped_by_size"], "instances DUMP 'byte[]' --sort length"),
    // Objects.
    habit(&["select", "query"], "oql DUMP 'SELECT * FROM java.lang.String'"),
    habit(
        &[
            "inspect",
            "object",
            "class",
            "cat",
            "dump_object",
            "printstatics",
            "hash_entries",
            "extract_list_values",
            "hash_set_values",
        ],
        "show DUMP OBJECT|CLASS",
    ),
    habit(&["print"], "show DUMP OBJECT|CLASS").recording("convert DUMP"),
    habit(&["list_objects", "objects", "list"], "instances DUMP CLASS"),
    habit(&["allinstances"], "instances DUMP CLASS --subclasses"),
    habit(&["select_objects_by_field"], "instances DUMP CLASS --where 'FIELD = VALUE'"),
    habit(
        &["references_statistics", "phantom_references_statistics"],
        "instances DUMP java.lang.ref.PhantomReference --subclasses",
    ),
    habit(&["soft_references_statistics"], "instances DUMP java.lang.ref.SoftReference --subclasses"),
    habit(&["weak_references_statistics"], "instances DUMP java.lang.ref.WeakReference --subclasses"),
    habit(&["finalizer_references_statistics"], "instances DUMP java.lang.ref.Finalizer --subclasses"),
    habit(
        &["references", "outbound", "with_outgoing_references", "class_references"],
        "refs DUMP OBJECT|CLASS",
    ),
    habit(
        &["inbound", "referrers", "with_incoming_references", "incoming", "revptrs"],
        "refs DUMP OBJECT|CLASS --incoming",
    ),
    habit(&["refsbytype"], "refs DUMP OBJECT|CLASS --incoming --group-by class"),
    habit(&["reachablefrom", "reachables"], "refs DUMP OBJECT|CLASS --reachable"),
    // Two dumps.
    habit(
        &[
            "compare",
            "delta",
            "delta_histogram",
            "compare_tables",
            "comparetablesquery",
            "simplecomparison",
            "comparison_report",
            "baseline",
            "growth",
            "newinstances",
            "overview2",
        ],
        "diff OLD NEW",
    )
    .recording("flamegraph NEW --baseline OLD"),
    habit(
        &["leakhunter2", "find_leaks2", "suspects2", "heap_growth", "object_growth"],
        "diff OLD NEW --group-by place",
    ),
    habit(&["history", "series", "timeline"], "trend DUMP DUMP DUMP"),
    // Files.
    habit(
        &["anonymize", "sanitize", "scrub", "mask", "strip", "export_hprof", "org_eclipse_mat_hprof:export"],
        "redact DUMP -o OUT",
    ),
    habit(&["strip_hprof"], "redact DUMP -o heap-stripped.hprof"),
    habit(&["deobfuscate_hprof", "deobfuscate"], "overview DUMP")
        .remark("no command reads a mapping of ProGuard"),
    habit(&["neo4j", "parquet"], "export DUMP --output-dir DIR"),
    habit(&["repair", "restore", "salvage"], "recover DUMP -o OUT"),
    habit(&["assemble", "disassemble"], "overview DUMP")
        .recording("summary DUMP")
        .remark("no command takes recordings apart or puts them together"),
    habit(&["completion"], "completions bash"),
    // Running JVMs.
    habit(&["gc_heap_dump", "dumpheap", "heapdump", "dump_process"], "dump PID {-o OUT}")
        .process("dump PID {-o OUT}"),
    habit(&["gc_run", "gc_run_finalization"], "dump PID")
        .process("dump PID")
        .remark("no command only collects garbage; dump does it first"),
    // Recordings.
    habit(&["flame", "flame_graph", "flamegraphs"], "flamegraph DUMP {-o OUT}"),
    habit(&["collapsed", "folded"], "flamegraph DUMP --format folded {-o OUT}"),
    habit(&["hot_methods", "cpu_time_hot_methods"], "cpu DUMP --group-by method"),
    habit(&["perfanal", "cpu=samples", "cpu=old"], "cpu DUMP"),
    habit(&["cpu=times"], "cputime DUMP"),
    habit(
        &["allocation_by_site", "allocation_by_class", "allocation_by_thread", "heap=sites", "heap=all"],
        "sites DUMP",
    ),
    habit(&["heap=dump"], "overview DUMP"),
    habit(
        &["contention_by_site", "contention_by_class", "contention_by_thread", "monitor=y"],
        "monitors DUMP",
    ),
    habit(&["hprof=help"], "agent"),
];
