package io.acme;

/** A heap that was large, was collected and has been given back: committed is far below max and below its peak. Args: peak MiB, live MiB, seconds to wait. */
public class Uncommit {
    static byte[][] live;
    public static void main(String[] a) throws Exception {
        int peak = Integer.parseInt(a[0]), keep = Integer.parseInt(a[1]);
        live = new byte[peak * 16][];
        for (int i = 0; i < live.length; i++) { live[i] = new byte[65536 - 16]; java.util.Arrays.fill(live[i], (byte) i); }
        long p = pss(), c = Runtime.getRuntime().totalMemory();
        live = java.util.Arrays.copyOf(live, keep * 16);
        System.gc(); System.gc();
        Thread.sleep(Integer.parseInt(a[2]) * 1000L);
        ready(p, "\"heap\": " + ((long) keep << 20), "\"peak_committed_bytes\": " + c + ", \"peak_pss_bytes\": " + p + ", \"holder\": \"io.acme.Uncommit.live\"");
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
