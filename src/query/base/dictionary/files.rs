//! Names of facts about dumps, files, indexes and results.

names! {
    // Answers.
    TOTAL: Any, "sums over all rows, also those that are left out";
    MATCHING: Record, "sums over the matching rows, also those that `--top` leaves out";
    ROWS: Integer, "number of rows, also those that `--top` leaves out";
    LEFT_OUT: Integer, "number of matching rows that `--top` leaves out";
    COLUMNS: Texts, "names of the columns, in order";
    CELL: Any, "a column of the query, named as written";

    // Dumps.
    DUMP: Text, "the dump, as given, or its name in an export";
    DUMPS: Records, "the dumps, in the order in which they were given or are compared";
    PATH: Text, "path of the file, as given";
    FILE: Text, "path or name of the file; bytes that are not UTF-8 are replaced by U+FFFD";
    FORMAT: Text, "name and version of the file's format; `hprof` (binary) or `text` where only that is known";
    ID_BYTES: Integer, "bytes of an identifier";
    FILE_BYTES: Integer, "length of the file on disk";
    FILES: Integer, "number of files";
    DUMP_BYTES: Integer, "length of the unpacked dump";
    COMPRESSION: Text, "how the file is compressed: `gzip`, `zstd`, `tar`, `tar in gzip`, `tar in zstd` or `zip`";
    CREATED: Time, "creation time: RFC 3339, UTC; in texts local time without a zone";
    CREATED_MS: Integer, "`created` in milliseconds since 1970";
    HEAP_DUMPS: Integer, "number of heap dumps in the file";
    HEAP_DUMP: Integer, "number of the heap dump that was read, from 1 (`--heap-dump`)";
    HEAP_DUMP_LIST: Records, "the heap dumps, 1,000 at most";
    OFFSET: Integer, "offset in bytes from the start of the unpacked dump";
    RECORD_BYTES: Integer, "bytes of all sub-records";
    SEGMENTS: Integer, "number of heap dump records, without empty ones";
    RECORD_COUNT: Integer, "number of whole records";
    RECORDS: Record, "number of records of the file by kind: `strings` (STRING IN UTF8), `load_classes`, `unload_classes`, `stack_frames`, `stack_traces`, `start_threads`, `end_threads`, `alloc_sites`, `cpu_samples`, `heap_summaries`, `control_settings`, and `heap_segments` of the heap dump that was read, without empty ones. Strings, frames and traces count each ID or serial number once";
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
    PROPERTIES: Record, "those that identify the JVM and the program; others may be secret";
    LABELS: Text, "labels of the dump as a JSON object";
    HEAPS: Texts, "names of Android's heaps (`app`, `zygote`, `image`)";
    IS_ALLOCATION_TRACE_DUMPED: Boolean, "whether objects carry allocation traces";
    IS_BOOT_LOADER_ASSUMED: Boolean, "whether the boot loader's classes were taken as roots, because the dump names no sticky class";
    ATTACHED: Records, "the dumps of `--attach`";

    // The object layout.
    LAYOUT: Record, "the object layout with which sizes are computed";
    REFERENCE_BYTES: Integer, "bytes of a reference in an object: 4 or 8";
    HEADER_BYTES: Integer, "bytes of an object's header: 8, 12 or 16";
    ARRAY_BASE_BYTES: Integer, "offset of an array's first element, for elements of up to 4 bytes";
    ALIGNMENT_BYTES: Integer, "sizes are rounded up to a multiple of this; 1 where they are not rounded";
    WORD_BYTES: Integer, "bytes of a machine word: 4 or 8";
    PACKING: Text, "`classic` (JDK 14 and older) or `dense` (JDK 15 and later)";
    LAYOUT_SOURCE: Text, "`distances` between objects, `stated_sizes` of the dump, `assumed` for lack of both, `given` by `--layout`";
    IS_SIZE_STATED: Boolean, "whether class dumps state the sizes of instances";
    EVIDENCE: Record, "evidence for the layout";
    CLASSES_EXACT: Integer, "measured classes that have the size of the layout";
    CLASSES_REFUTING: Integer, "measured classes that are smaller";
    ARRAYS: Integer, "measured kinds and lengths of short arrays";
    ARRAYS_EXACT: Integer, "measured arrays that have the size of the layout";
    ARRAYS_REFUTING: Integer, "measured arrays that are smaller";
    CLASSES_BY_SIZE_SOURCE: Record, "classes with instances by the source of their size: `model` (the layout alone), `confirmed` (by a distance), `observed` (a distance alone), `stated` (by the dump)";

    // Amounts read.
    ACCOUNT: Record, "what was read and what is missing: complete, whereas `problems` lists only the first of many damaged regions";
    READ_BYTES: Integer, "bytes of the unpacked dump that were read";
    EXPECTED_BYTES: Integer, "minimum length of the dump by its last record; its length if nothing is missing there";
    SKIPPED_BYTES: Integer, "bytes that could not be read";
    LOST_RECORDS: Integer, "damaged regions at the top level of the file, with one or more records each";
    LOST_PLACES: Integer, "damaged regions in the heap dump, with one or more sub-records each";
    UNDUMPED_CLASSES: Integer, "classes that records or objects name, without a class dump";
    OBJECTS_WITHOUT_CLASS: Integer, "instances of such classes: their fields are unknown";
    ODD_INSTANCES: Integer, "instances with more or fewer bytes than their class declares";
    EMPTY_SEGMENTS: Integer, "heap dump records without a sub-record";
    CUT_ARRAYS: Integer, "arrays as long as HotSpot can dump them: it may have truncated them";
    DANGLING_REFERENCES: Record, "dangling references; whole dumps of HotSpot have some, as it leaves out objects of its archive";
    RETAINED_SIZES: Text, "`exact`; `lower_bounds`, if only elements of primitive arrays are missing; `of_what_is_there`, if objects, references or roots are missing: objects that held a lost object retain more in truth, those that shared an object with a lost one less";
    RECOVERED_FILE as "output": Text, "the recovered dump";
    RECOVERED_BYTES as "output_bytes": Integer, "length of the recovered dump";
    REDACTED_FILE as "redacted": Text, "the redacted dump";
    REDACTED_BYTES as "redacted_bytes": Integer, "length of the redacted dump";
    MANIFEST_FILE as "manifest": Text, "the manifest beside the redacted dump";
    IS_EQUAL as "equal": Boolean, "whether both dumps have the same result; for a search, whether nothing was found";
    DIFFERENCES: Integer, "number of differences, or of texts that were found";
    ALLOWED: Integer, "number of texts found that may stay, and of expected differences, as `allowed_because` says";
    ALLOWED_BECAUSE as "allowed_because": Text, "why these may stay or differ";
    KEPT_NUMBERS: Records, "numbers that stay, without zeros, by class and field (docs/redact.md)";
    KEPT_FIELD: Text, "field whose numbers stay, which the class declares";
    NUMBERS: Integer, "number of values";
    IS_BOOLEAN: Boolean, "whether the values are booleans";
    NEEDED_BY: Text, "commands whose answers need them";
    NEEDED_FOR: Text, "what the answers say by them";
    UNNAMED_CLASSES: Integer, "classes whose names are lost: each is named `unnamed.ClassN` with its fields";
    CLASSES_NAMED: Integer, "classes whose names are from the dump of `--names`";
    MEANS: Text, "consequence for the results, for people";
    IS_READABLE: Boolean, "whether it could be read";

    // The index.
    INDEX_DIR: Text, "directory of the index";
    STAGE: Text, "`unpacked` (compressed dumps only), `summary`, `objects`, `references`, `referrers`, `dominators`, `places`, in this order; `all` with `--remove`";
    INDEX_BYTES: Integer, "length of the stage's file, for `unpacked` with the unpacked dump; 0 if it is missing; with `--remove` the bytes freed";
    IS_FITTING: Boolean, "whether memory and disk space suffice, as far as is known; true if the index exists";
    IS_BUILT: Boolean, "whether the index is complete";
    IS_COUNTED: Boolean, "whether the objects were counted, not estimated from samples";
    TIME_LEAST_MS: Integer, "shortest time that it may take";
    TIME_MOST_MS: Integer, "longest time that it may take";
    MEMORY_LEAST_BYTES: Integer, "minimum private memory: with less, building is refused";
    MEMORY_BEST_BYTES: Integer, "private memory without need of scratch files";
    MEMORY_AVAILABLE_BYTES: Integer, "available memory";
    MEMORY_LIMIT: Text, "source of that limit: `--memory`, `free memory`, `the control group's limit`, `ulimit -d`, `ulimit -v`";
    DISK_FREE_BYTES: Integer, "free space on the disk of `index_dir`";
    INDEX_LEAST_BYTES: Integer, "smallest size of the index";
    INDEX_MOST_BYTES: Integer, "largest size of the index";
    SCRATCH_LEAST_BYTES: Integer, "smallest size of the scratch files";
    SCRATCH_MOST_BYTES: Integer, "largest size of the scratch files";

    // Exports, the agent, received recordings.
    TABLE: Text, "name of the table";
    TO: Text, "the directory, as given";
    ERROR: Text, "why it failed";
    CONNECTION: Integer, "number of the connection, from 1";
    PEER: Text, "address and port from which it connected";
    INCOMPLETE_REASON: Text, "why it is not complete";
    LIBRARY: Text, "path of the agent's library";
    AGENTPATH: Text, "an argument of `java` that loads it";
    JAVA_TOOL_OPTIONS: Text, "the same as a value of the variable JAVA_TOOL_OPTIONS";
    JCMD: Text, "a command that loads it into the JVM with process ID `PID`";
    USAGE: Text, "options of the agent, as it prints them for `help`";
}
