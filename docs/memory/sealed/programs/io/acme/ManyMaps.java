package io.acme;

/** Many small mapped files, as of a Lucene index. Args: files, KiB each. */
public class ManyMaps {
    static final java.util.List<java.nio.MappedByteBuffer> segments = new java.util.ArrayList<>();
    public static void main(String[] a) throws Exception {
        int n = Integer.parseInt(a[0]), each = Integer.parseInt(a[1]) << 10;
        java.nio.file.Path d = java.nio.file.Paths.get(System.getProperty("acme.dir", "/tmp"), "index-" + ProcessHandle.current().pid());
        java.nio.file.Files.createDirectories(d);
        byte[] b = new byte[each]; java.util.Arrays.fill(b, (byte) 9);
        long p = pss(), s = 0;
        for (int i = 0; i < n; i++) {
            java.nio.file.Path f = d.resolve("_" + Integer.toString(i, 36) + ".cfs");
            java.nio.file.Files.write(f, b);
            try (java.nio.channels.FileChannel c = java.nio.channels.FileChannel.open(f)) {
                java.nio.MappedByteBuffer m = c.map(java.nio.channels.FileChannel.MapMode.READ_ONLY, 0, each);
                for (int k = 0; k < each; k += 4096) s += m.get(k);
                segments.add(m);
            }
        }
        ready(p, "\"mapped\": " + (long) n * each, "\"files\": " + n + ", \"sum\": " + s + ", \"holder\": \"io.acme.ManyMaps.segments\"");
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
