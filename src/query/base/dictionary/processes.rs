//! Names of facts about running JVMs and the dumps that are taken of them.

names! {
    PID: Integer, "process ID";
    NAMESPACE_PID: Integer, "process ID in its own PID namespace, as in a container";
    USER: Text, "name of the process's effective user, or its number if it has no name here";
    VM_KIND: Text, "virtual machine: `HotSpot`, `OpenJ9` or `native image`";
    MAIN_CLASS: Text, "main class, `MODULE/CLASS` or JAR file; for a native image its program";
    JAVA_VERSION: Text, "version of the JDK";
    COLLECTOR: Text, "garbage collector: `Serial`, `Parallel`, `G1`, `ZGC`, `Shenandoah` or `Epsilon`";
    HEAP_USED_BYTES: Integer, "used bytes of the heap, with garbage: in `jvms` as last published, by some collectors at the last collection; in `dump` now";
    HEAP_MAX_BYTES: Integer, "maximum size of the heap";
    UPTIME_MS: Integer, "time since the process started";
    CONTAINER: Text, "ID of the process's container, from its control groups";
    IS_PUBLISHING: Boolean, "whether the JVM publishes counters; with `-XX:-UsePerfData` some facts are unknown";
    IS_COLLECTED: Boolean, "whether the JVM collects garbage first: the dump contains only reachable objects";
    IS_REDACTED: Boolean, "whether values are replaced on the way, as by `redact`";
    TRANSFER: Text, "`file` (the JVM writes beside it), `file and compress` (the same, then compressed), `copy` (the JVM writes in its own /tmp), `fifo` (through this process, without a disk)";
    DUMP_ESTIMATE_BYTES: Integer, "estimated length of the dump before compression";
    DUMP_DIR: Text, "directory in which the JVM writes, as this process sees it";
    SPACE_NEEDED_BYTES: Integer, "bytes that the JVM needs there; twice the estimate since JDK 22, which merges segments";
    SPACE_FREE_BYTES: Integer, "bytes free there";
    STANDSTILL_ESTIMATE_MS: Integer, "estimated time for which the program's threads stand still";
    SENT_BYTES: Integer, "bytes of the compressed dump that came over the connection of `--via`";
    STANDSTILL_MS: Integer, "time for which the program's threads stood still";
    IS_STANDSTILL_MEASURED: Boolean, "whether the JVM measured that (its safepoints); otherwise it is the time of the whole command, an upper bound";
}
