//! Names of facts about running JVMs and the dumps that are taken of them.

names! {
    PID: Integer, "process ID";
    NAMESPACE_PID: Integer, "process ID in the process's own PID namespace, for example in its container";
    USER: Text, "name of the process's effective user, or its numeric ID if the name is unknown";
    VM_KIND: Text, "virtual machine: `HotSpot`, `OpenJ9` or `native image`";
    MAIN_CLASS: Text, "main class, `MODULE/CLASS` or JAR file; of a native image, its program";
    JAVA_VERSION: Text, "version of the JDK";
    COLLECTOR: Text, "garbage collector: `Serial`, `Parallel`, `G1`, `ZGC`, `Shenandoah` or `Epsilon`";
    HEAP_USED_BYTES: Integer, "used bytes of the heap, including garbage; in `jvms` as last published, by some collectors only at a collection; in `dump` the current value";
    HEAP_MAX_BYTES: Integer, "maximum size of the heap";
    UPTIME_MS: Integer, "time since the process started";
    CONTAINER: Text, "container ID of the process, from its control groups";
    IS_PUBLISHING: Boolean, "whether the JVM publishes counters; with `-XX:-UsePerfData`, some values are unknown";
    IS_COLLECTED: Boolean, "whether the JVM collects garbage first, so that the dump contains only reachable objects";
    IS_REDACTED: Boolean, "whether values are replaced while the dump is written, as by `redact`";
    TRANSFER: Text, "how the dump is transferred: `file` (the JVM writes a file next to the destination), `file and compress` (the same; the file is then compressed), `copy` (the JVM writes a file in its own /tmp, which is then copied), `fifo` (the JVM writes to this process through a FIFO, without using a disk)";
    DUMP_ESTIMATE_BYTES: Integer, "estimated size of the dump before compression";
    DUMP_DIR: Text, "directory to which the JVM writes, as this process sees it";
    SPACE_NEEDED_BYTES: Integer, "disk space that the JVM needs in `dump_dir`; since JDK 22, twice the estimate, because the JVM merges segments";
    SPACE_FREE_BYTES: Integer, "free disk space in `dump_dir`";
    STANDSTILL_ESTIMATE_MS: Integer, "estimated time for which the program's threads are stopped";
    SENT_BYTES: Integer, "bytes of the compressed dump that were received over the connection of `--via`";
    STANDSTILL_MS: Integer, "time for which the program's threads were stopped";
    IS_STANDSTILL_MEASURED: Boolean, "whether `standstill_ms` was measured by the JVM (its safepoints); otherwise it is the duration of the whole command, an upper bound";

    // Memory of a process.
    RESIDENT_BYTES: Integer, "bytes in memory now; a page that several processes share counts in part (PSS)";
    PROCESS_BYTES: Integer, "resident bytes of the process (PSS)";
    UNEXPLAINED_BYTES: Integer, "resident bytes of the process that no source names";
    SWAP_BYTES: Integer, "bytes in swap";
    HUGETLB_BYTES: Integer, "bytes of huge pages of hugetlbfs, which resident bytes do not contain";
    IS_TRACKING: Boolean, "whether there is an account of Native Memory Tracking";
    ADVICE_LINES: Texts, "advice by rules that the lines state, for people";
    CGROUP: Record, "control group of the process, or the one above it whose limit is the lowest";
    CURRENT_BYTES: Integer, "bytes that count for the limit";
    HIGH_BYTES: Integer, "bytes from which the kernel slows the processes down (memory.high)";
    ANON_BYTES: Integer, "anonymous memory";
    SHMEM_BYTES: Integer, "shared memory and tmpfs, part of the page cache";
    RECLAIMABLE_BYTES: Integer, "page cache that the kernel can drop without writing it";
    KERNEL_BYTES: Integer, "memory of the kernel for the processes";
    KERNEL_STACK_BYTES: Integer, "kernel stacks of threads, part of `kernel_bytes`";
    PAGE_TABLE_BYTES: Integer, "page tables, part of `kernel_bytes`";
    SLAB_BYTES: Integer, "slabs, part of `kernel_bytes`";
    OTHER_PROCESSES_BYTES: Integer, "anonymous memory of other processes in the control group";
    OOM_KILLS: Integer, "number of processes that the kernel ended for lack of memory";
    LIMIT_HITS: Integer, "number of times that the limit was reached";
    PROCESSES: Integer, "number of processes in the control group";
}
