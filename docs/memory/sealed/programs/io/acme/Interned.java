package io.acme;

/** Many interned strings: heap for the strings, malloc (NMT: Symbol / String table) for the table's nodes. Args: thousands of strings. */
public class Interned {
    static String[] keep;
    public static void main(String[] a) throws Exception {
        int n = Integer.parseInt(a[0]) * 1000;
        long p = pss(); keep = new String[n];
        for (int i = 0; i < n; i++) keep[i] = ("order/" + i * 31L + "/line/" + i).intern();
        long bytes = 16L + 4L * n;
        for (String s : keep) bytes += 24 + (16 + s.length() + 7 & ~7);
        ready(p, "\"heap\": " + bytes + ", \"malloc_seen_by_nmt\": " + n * 32L, "\"strings\": " + n + ", \"measured\": \"heap: compressed-oops layout by hand (Z has no compressed oops: add 4 bytes a slot and 8 a String); table: at least 32 bytes a node with malloc header\", \"holder\": \"io.acme.Interned.keep\"");
    }
    // ---- the same small helper in every program ----
    static long pss() throws Exception {
        for (String l : java.nio.file.Files.readAllLines(java.nio.file.Paths.get("/proc/self/smaps_rollup")))
            if (l.startsWith("Pss:")) return Long.parseLong(l.replaceAll("[^0-9]", "")) << 10;
        return -1;
    }
    static void ready(long pssBefore, String planted, String more) throws Exception {
        long delta = pss() - pssBefore;
        System.gc();
        Runtime r = Runtime.getRuntime();
        System.out.println("TRUTH {\"planted\": {" + planted + "}, \"heap_live_bytes\": " + (r.totalMemory() - r.freeMemory())
            + ", \"heap_committed_bytes\": " + r.totalMemory() + ", \"heap_max_bytes\": " + r.maxMemory()
            + ", \"pss_delta_bytes\": " + delta + (more.isEmpty() ? "" : ", " + more) + "}");
        System.out.println("READY");
        System.out.flush();
        Thread.sleep(Long.MAX_VALUE);
    }
}
