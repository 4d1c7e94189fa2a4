package io.acme;

/** Live byte[] on the heap. Args: MiB, KiB an array (keep well below half a G1 region). */
public class HeapOnly {
    static byte[][] cache;
    public static void main(String[] a) throws Exception {
        long total = Long.parseLong(a[0]) << 20; int each = (Integer.parseInt(a[1]) << 10) - 16;
        int n = (int) (total / (each + 16)); cache = new byte[n][];
        long p = pss();
        for (int i = 0; i < n; i++) { cache[i] = new byte[each]; java.util.Arrays.fill(cache[i], (byte) i); }
        ready(p, "\"heap\": " + (long) n * (each + 16), "\"arrays\": " + n + ", \"holder\": \"io.acme.HeapOnly.cache\"");
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
