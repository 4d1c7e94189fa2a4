package io.acme;

/** zlib memory of Deflaters never ended: malloc inside libzip/libz, which NMT does not see. Args: MiB. */
public class Deflaters {
    static final java.util.List<java.util.zip.Deflater> open = new java.util.ArrayList<>();
    public static void main(String[] a) throws Exception {
        int n = (int) ((Long.parseLong(a[0]) << 20) / PER_DEFLATER);
        long p = pss();
        long b = plantDeflaters(open, n);
        ready(p, "\"malloc_outside\": " + b, "\"deflaters\": " + n + ", \"holder\": \"io.acme.Deflaters.open\"");
    }
    /** n Deflaters, each fed until window, prev, head and pending are all touched; returns nominal zlib bytes. */
    static long plantDeflaters(java.util.List<java.util.zip.Deflater> out, int n) {
        byte[] in = new byte[256 << 10], buf = new byte[192 << 10];
        new java.util.Random(1).nextBytes(in);
        for (int i = 0; i < n; i++) {
            java.util.zip.Deflater d = new java.util.zip.Deflater(6, true);
            d.setInput(in);
            d.deflate(buf, 0, buf.length); // more than two windows of noise go through; never end()ed
            out.add(d);
        }
        return n * PER_DEFLATER;
    }
    /** zlib at windowBits 15, memLevel 8: window 64K + prev 64K + head 64K + pending 64K + state about 6K. */
    static final long PER_DEFLATER = 4 * 65536L + 6 * 1024;
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
