package io.acme;

/** G1 with large remembered sets: a graph whose references all cross regions, rewritten at random for ever-changing cards. Args: MiB of nodes, rounds. */
public class RemSets {
    static Object[][] nodes;
    public static void main(String[] a) throws Exception {
        int n = Integer.parseInt(a[0]) * 1024 * 1024 / 272;
        long p = pss(); nodes = new Object[n][];
        java.util.SplittableRandom r = new java.util.SplittableRandom(3);
        for (int i = 0; i < n; i++) nodes[i] = new Object[64];
        System.gc();
        for (int k = 0; k < Integer.parseInt(a[1]); k++) {
            for (int i = 0; i < n; i++) { Object[] x = nodes[i]; for (int j = 0; j < 64; j++) x[j] = nodes[r.nextInt(n)]; }
        }
        ready(p, "\"heap\": " + (n * 272L + 16 + 4L * n), "\"nodes\": " + n + ", \"measured\": \"heap exact; GC structures: see NMT GC in nmt-summary.txt and the PSS delta\", \"holder\": \"io.acme.RemSets.nodes\"");
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
