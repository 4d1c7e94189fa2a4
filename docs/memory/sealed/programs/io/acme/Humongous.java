package io.acme;

/** G1: arrays a little over half a region each take a whole region (committed is about twice live); also a little over one region takes two. Args: arrays, KiB each. */
public class Humongous {
    static byte[][] frames;
    public static void main(String[] a) throws Exception {
        int n = Integer.parseInt(a[0]), each = (Integer.parseInt(a[1]) << 10) + 64;
        long p = pss(); frames = new byte[n][];
        for (int i = 0; i < n; i++) { frames[i] = new byte[each]; java.util.Arrays.fill(frames[i], (byte) i); }
        ready(p, "\"heap\": " + (long) n * each, "\"arrays\": " + n + ", \"holder\": \"io.acme.Humongous.frames\"");
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
