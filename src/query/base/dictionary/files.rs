//! Names of facts about dumps, files, indexes and results.

names! {
    // Answers.
    TOTAL: Any, "sums over all rows, including rows that are not shown";
    MATCHING: Record, "sums over the matching rows, including rows omitted by `--top`";
    ROWS: Integer, "number of rows, including rows omitted by `--top`";
    LEFT_OUT: Integer, "number of matching rows omitted by `--top`";
    COLUMNS: Texts, "names of the columns, in order";
    CELL: Any, "a column of the query, named as written";

    // Dumps.
    DUMP: Text, "path of the dump as given, or its name in an export";
    DUMPS: Records, "the dumps, in the order given or compared";
    PATH: Text, "path of the file, as given; of a control group, its path below the root";
    FILE: Text, "path or name of the file; bytes that are not UTF-8 are replaced by U+FFFD";
    DUMP_CONTENTS as "contents": Text, "what is left of the elements of primitive arrays: `complete`, `limited` to the first ones of each array, or `removed` from all byte[] and char[]; inferred, as no record states it";
    WRITER: Text, "program that wrote the dump: `hotspot`, `serviceability_agent` (`jhsdb jmap`), `jvmpi`, `android`, `native_image`, `agent` (HPROF), `text` for a text report, or `unknown`";
    FORMAT: Text, "name and version of the file format; `hprof` (binary) or `text` if only that is known";
    ID_BYTES: Integer, "size of an object ID";
    FILE_BYTES: Integer, "length of the file on disk; of a control group, its page cache, with shared memory";
    FILES: Integer, "number of files";
    DUMP_BYTES: Integer, "length of the unpacked dump";
    COMPRESSION: Text, "how the file is compressed: `gzip`, `zstd`, `tar`, `tar in gzip`, `tar in zstd` or `zip`";
    CREATED: Time, "creation time: RFC 3339, UTC; in text reports, local time without a time zone";
    CREATED_MS: Integer, "`created` in milliseconds since 1970";
    HEAP_DUMPS: Integer, "number of heap dumps in the file";
    HEAP_DUMP: Integer, "number of the heap dump that was read, from 1 (`--heap-dump`)";
    HEAP_DUMP_LIST: Records, "the heap dumps, at most 1,000";
    OFFSET: Integer, "offset in bytes from the start of the unpacked dump";
    RECORD_BYTES: Integer, "total length of the sub-records";
    SEGMENTS: Integer, "number of heap dump records, excluding empty ones";
    RECORD_COUNT: Integer, "number of complete records";
    RECORDS: Record, "number of records in the file by kind: `strings` (STRING IN UTF8), `load_classes`, `unload_classes`, `stack_frames`, `stack_traces`, `start_threads`, `end_threads`, `alloc_sites`, `cpu_samples`, `heap_summaries`, `control_settings`, and `heap_segments` of the heap dump that was read, excluding empty ones. Strings, frames and traces with the same ID or serial number count once";
    OBJECTS_BY_KIND as "objects": Record, "number of objects by kind: `instances`, `object_arrays`, `primitive_arrays`, `classes`, and their `total`";
    OBJECT_ARRAYS: Integer, "number of arrays of references";
    PRIMITIVE_ARRAYS: Integer, "number of primitive arrays";
    CLASS_OBJECTS: Integer, "number of class objects";
    IS_DAMAGED: Boolean, "whether part of the dump is missing or unreadable";
    PROBLEMS: Records, "problems and oddities of the file, damage first. Kinds: `file_cut`, `compressed_file_cut`, `unknown_record`, `damaged_record`, `unknown_sub_record`, `damaged_sub_record`, `no_record_follows`, `text_mode`, `more_places`, `no_end_record`, `length_wrapped`, `length_open`, `empty_segments`, `repeated_objects`, `repeated_classes`, `missing_classes`, `unnamed_classes`, `odd_instances`, `cut_arrays`, `threads_assumed`, `no_heap_dump` or `cut_sub_record`";
    PROBLEM_COUNT: Integer, "number of problems and oddities";
    DAMAGE_COUNT: Integer, "number of problems that are damage";
    JVM: Record, "the JVM that was dumped";
    JVM_TEXT: Text, "name, version and vendor of the JVM in one line";
    JVM_NAME: Text, "java.vm.name";
    JVM_VENDOR: Text, "java.vendor or java.vm.vendor";
    JVM_VERSION: Text, "java.runtime.version, java.version or java.vm.version";
    PROPERTIES: Record, "system properties that identify the JVM and the program; others are omitted because they may be secret";
    LABELS: Text, "labels of the dump as a JSON object";
    HEAPS: Texts, "names of Android's heaps (`app`, `zygote`, `image`)";
    IS_ALLOCATION_TRACE_DUMPED: Boolean, "whether objects have allocation traces";
    IS_BOOT_LOADER_ASSUMED: Boolean, "whether all classes of the boot loader are treated as GC roots because the dump contains no sticky class roots";
    ATTACHED: Records, "the dumps attached with `--attach`";

    // The object layout.
    LAYOUT: Record, "object layout from which sizes are computed";
    REFERENCE_BYTES: Integer, "size of a reference in an object: 4 or 8";
    HEADER_BYTES: Integer, "size of an object's header: 8, 12 or 16";
    ARRAY_BASE_BYTES: Integer, "offset of an array's first element, for elements of up to 4 bytes";
    ALIGNMENT_BYTES: Integer, "alignment: sizes are rounded up to a multiple of it; 1 if they are not rounded";
    WORD_BYTES: Integer, "size of a machine word: 4 or 8";
    PACKING: Text, "packing of fields: `classic` (JDK 14 and older) or `dense` (JDK 15 and later)";
    LAYOUT_SOURCE: Text, "source of the layout: `distances` between objects, `stated_sizes` in the dump, `given` with `--layout`, or `assumed` if there is no evidence";
    IS_SIZE_STATED: Boolean, "whether class dumps state the sizes of instances";
    EVIDENCE: Record, "evidence for the layout";
    CLASSES_EXACT: Integer, "measured classes whose size agrees with the layout";
    CLASSES_REFUTING: Integer, "measured classes that are smaller than in the layout";
    ARRAYS: Integer, "measured combinations of kind and length of short arrays";
    ARRAYS_EXACT: Integer, "measured combinations whose size agrees with the layout";
    ARRAYS_REFUTING: Integer, "measured combinations that are smaller than in the layout";
    CLASSES_BY_SIZE_SOURCE: Record, "classes with instances by the source of their size: `model` (only the layout), `confirmed` (the layout and a distance), `observed` (only a distance), `stated` (the dump)";

    // Amounts read.
    ACCOUNT: Record, "amounts that were read and that are missing; these cover the entire file, whereas `problems` lists only the first of many damaged regions";
    READ_BYTES: Integer, "bytes of the unpacked dump that were read";
    EXPECTED_BYTES: Integer, "minimum length of the dump according to its last record; equal to its length if no bytes are missing at the end";
    SKIPPED_BYTES: Integer, "bytes that could not be read";
    LOST_RECORDS: Integer, "damaged regions at the top level of the file, each with one or more records";
    LOST_PLACES: Integer, "damaged regions in the heap dump, each with one or more sub-records";
    UNDUMPED_CLASSES: Integer, "classes that records or objects refer to and for which there is no class dump";
    OBJECTS_WITHOUT_CLASS: Integer, "instances of classes without a class dump; their fields are unknown";
    ODD_INSTANCES: Integer, "instances with more or fewer bytes than their class declares";
    EMPTY_SEGMENTS: Integer, "heap dump records without sub-records";
    CUT_ARRAYS: Integer, "arrays of the maximum length that HotSpot dumps; HotSpot may have truncated them";
    DANGLING_REFERENCES: Record, "dangling references; complete HotSpot dumps also contain some, because HotSpot omits objects of its CDS archive";
    RETAINED_SIZES: Text, "accuracy of retained sizes: `exact`; `lower_bounds`: only elements of primitive arrays are missing; `of_what_is_there`: objects, references or GC roots are missing, so the true size is larger for objects that held a missing object, and smaller for objects that shared an object with a missing one";
    RECOVERED_FILE as "output": Text, "the recovered dump";
    RECOVERED_BYTES as "output_bytes": Integer, "length of the recovered dump";
    REDACTED_FILE as "redacted": Text, "the redacted dump";
    REDACTED_BYTES as "redacted_bytes": Integer, "length of the redacted dump";
    MANIFEST_FILE as "manifest": Text, "the manifest, written beside the redacted dump";
    IS_EQUAL as "equal": Boolean, "whether both dumps give the same result; of a search, whether nothing was found";
    DIFFERENCES: Integer, "number of differences; of a search, the texts that were found";
    ALLOWED: Integer, "number of differences that are expected; of a search, the texts that may stay; `allowed_because` has the reason";
    ALLOWED_BECAUSE as "allowed_because": Text, "why these differences are expected, or why these texts may stay";
    KEPT_NUMBERS: Records, "numbers that are not replaced, without zeros, by class and field (docs/redact.md)";
    KEPT_FIELD: Text, "field, declared by the class, whose numbers are not replaced";
    NUMBERS: Integer, "number of values";
    IS_BOOLEAN: Boolean, "whether the values are booleans";
    NEEDED_BY: Text, "commands that need these numbers";
    NEEDED_FOR: Text, "results that are computed from these numbers";
    UNNAMED_CLASSES: Integer, "classes whose names are lost; each is named `unnamed.ClassN` and keeps its fields";
    CLASSES_NAMED: Integer, "classes whose names come from the dump of `--names`";
    MEANS: Text, "effect on the results, for people";
    IS_READABLE: Boolean, "whether the file could be read";

    // The index.
    INDEX_DIR: Text, "directory of the index";
    STAGE: Text, "`unpacked` (compressed dumps only), `summary`, `objects`, `references`, `referrers`, `dominators`, `places`, in this order; `all` with `--remove`";
    INDEX_BYTES: Integer, "size of the stage's file, for `unpacked` including the unpacked dump; 0 if it is missing; with `--remove`, the bytes freed";
    IS_FITTING: Boolean, "whether memory and disk space are sufficient, as far as this can be determined; true if the index exists";
    IS_BUILT: Boolean, "whether the index is complete";
    IS_COUNTED: Boolean, "whether the objects were counted rather than estimated from samples";
    TIME_LEAST_MS: Integer, "lower estimate of the time to build the index";
    TIME_MOST_MS: Integer, "upper estimate of the time to build the index";
    MEMORY_LEAST_BYTES: Integer, "minimum private memory; with less, the index is not built";
    MEMORY_BEST_BYTES: Integer, "private memory with which no scratch files are needed";
    MEMORY_AVAILABLE_BYTES: Integer, "available memory";
    MEMORY_LIMIT: Text, "what limits the available memory: `--memory`, `free memory`, `the control group's limit`, `ulimit -d`, `ulimit -v`";
    DISK_FREE_BYTES: Integer, "free space on the disk of `index_dir`";
    INDEX_LEAST_BYTES: Integer, "lower estimate of the size of the index";
    INDEX_MOST_BYTES: Integer, "upper estimate of the size of the index";
    SCRATCH_LEAST_BYTES: Integer, "lower estimate of the size of the scratch files";
    SCRATCH_MOST_BYTES: Integer, "upper estimate of the size of the scratch files";

    // Exports, the agent, received recordings.
    TABLE: Text, "name of the table";
    TO: Text, "output directory, as given";
    ERROR: Text, "why the dump was not exported";
    CONNECTION: Integer, "number of the agent's connection, from 1";
    PEER: Text, "address and port of the agent";
    INCOMPLETE_REASON: Text, "why the recording is incomplete";
    LIBRARY: Text, "path of the agent's library";
    AGENTPATH: Text, "argument of `java` that loads the agent";
    JAVA_TOOL_OPTIONS: Text, "value of the environment variable JAVA_TOOL_OPTIONS that loads the agent";
    JCMD: Text, "command that loads the agent into the JVM with process ID `PID`";
    USAGE: Text, "options of the agent, as printed by its option `help`";
}
