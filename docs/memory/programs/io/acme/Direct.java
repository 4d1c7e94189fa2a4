package io.acme;

/** Direct ByteBuffers, touched, held by the static field pool of io.acme.Gateway. Args: total MiB, KiB a buffer. */
public class Direct {
    public static void main(String[] a) throws Exception {
        long total = Long.parseLong(a[0]) << 20; int each = Integer.parseInt(a[1]) << 10;
        long p = pss(); int n = (int) (total / each);
        for (int i = 0; i < n; i++) {
            java.nio.ByteBuffer b = java.nio.ByteBuffer.allocateDirect(each);
            for (int k = 0; k < each; k += 4096) b.put(k, (byte) 1);
            Gateway.pool.add(b);
        }
        ready(p, "\"direct\": " + (long) n * each, "\"buffers\": " + n + ", \"holder\": \"io.acme.Gateway.pool\"");
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
class Gateway { static final java.util.List<java.nio.ByteBuffer> pool = new java.util.ArrayList<>(); }
