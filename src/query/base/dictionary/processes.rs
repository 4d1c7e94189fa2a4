//! Names of facts about running JVMs and the dumps that are taken of them.

names! {
    PID: Integer, "process ID";
    NAMESPACE_PID: Integer, "process ID in the process's own PID namespace, as in a container";
    USER: Text, "name of the process's effective user, or its number if this system has no name for it";
    VM_KIND: Text, "virtual machine: `HotSpot`, `OpenJ9` or `native image`";
    MAIN_CLASS: Text, "main class, `MODULE/CLASS` or JAR file; for a native image its program";
    JAVA_VERSION: Text, "version of the JDK";
    COLLECTOR: Text, "garbage collector: `Serial`, `Parallel`, `G1`, `ZGC`, `Shenandoah` or `Epsilon`";
    HEAP_USED_BYTES: Integer, "bytes of the heap that are used, including garbage: for `jvms` as the JVM published them last, for some collectors at the last collection; for `dump` now";
    HEAP_MAX_BYTES: Integer, "maximum size of the heap";
    UPTIME_MS: Integer, "time since the process started, in milliseconds";
    CONTAINER: Text, "ID of the process's container, from its control groups";
    IS_PUBLISHING: Boolean, "whether the JVM publishes counters; with `-XX:-UsePerfData` it does not, and some facts are unknown";
    IS_COLLECTED: Boolean, "whether the JVM collects garbage first, so that the dump contains only reachable objects";
    IS_REDACTED: Boolean, "whether values are replaced on the way, as by `redact`";
    TRANSFER: Text, "how the bytes get from the JVM to the file: `file` (the JVM writes beside it), `file and compress` (the same, then compressed), `copy` (the JVM writes in its own /tmp), `fifo` (through this process, without a disk)";
    DUMP_ESTIMATE_BYTES: Integer, "estimated length of the dump before compression";
    DUMP_DIR: Text, "directory in which the JVM writes, as this process sees it";
    SPACE_NEEDED_BYTES: Integer, "bytes that the JVM needs there; twice the estimate since JDK 22, which merges segments";
    SPACE_FREE_BYTES: Integer, "bytes free there";
    STANDSTILL_ESTIMATE_MS: Integer, "estimated time for which the program's threads stand still, in milliseconds";
    SENT_BYTES: Integer, "bytes of the compressed dump that came over the connection of `--via`";
    STANDSTILL_MS: Integer, "time for which the program's threads stood still, in milliseconds";
    IS_STANDSTILL_MEASURED: Boolean, "whether the JVM measured that time (its safepoints); otherwise it is the time that the whole command took, an upper bound";
}
