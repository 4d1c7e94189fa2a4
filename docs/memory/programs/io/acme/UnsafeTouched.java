package io.acme;

/** sun.misc.Unsafe.allocateMemory. Args: total MiB, KiB a piece, touch (1/0). */
public class UnsafeTouched {
    static long[] slabs;
    public static void main(String[] a) throws Exception { plant(a, true); }
    static void plant(String[] a, boolean touch) throws Exception {
        long total = Long.parseLong(a[0]) << 20, each = Long.parseLong(a[1]) << 10;
        int n = (int) (total / each); slabs = new long[n];
        sun.misc.Unsafe u = unsafe();
        long p = pss();
        for (int i = 0; i < n; i++) {
            slabs[i] = u.allocateMemory(each);
            if (touch) u.setMemory(slabs[i], each, (byte) 3);
        }
        ready(p, "\"malloc_seen_by_nmt\": " + (touch ? (long) n * each : 4096L * n), "\"planted_committed\": {\"malloc_seen_by_nmt\": " + (long) n * each + "}, \"touched\": " + touch + ", \"holder\": \"addresses in long[] io.acme.UnsafeTouched.slabs\"");
    }
    static sun.misc.Unsafe unsafe() throws Exception {
        java.lang.reflect.Field f = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
        f.setAccessible(true);
        return (sun.misc.Unsafe) f.get(null);
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
