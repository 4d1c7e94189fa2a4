package io.acme;

/** Four at once. Args: direct MiB, heap MiB, threads, deflater MiB. */
public class Mix {
    static final java.util.List<java.nio.ByteBuffer> buffers = new java.util.ArrayList<>();
    static byte[][] cache;
    static final java.util.List<java.util.zip.Deflater> open = new java.util.ArrayList<>();
    public static void main(String[] a) throws Exception {
        int direct = Integer.parseInt(a[0]), heap = Integer.parseInt(a[1]), threads = Integer.parseInt(a[2]), defl = Integer.parseInt(a[3]);
        long p = pss();
        for (int i = 0; i < direct; i++) {
            java.nio.ByteBuffer b = java.nio.ByteBuffer.allocateDirect(1 << 20);
            for (int k = 0; k < 1 << 20; k += 4096) b.put(k, (byte) 1);
            buffers.add(b);
        }
        cache = new byte[heap * 16][];
        for (int i = 0; i < cache.length; i++) { cache[i] = new byte[65536 - 16]; java.util.Arrays.fill(cache[i], (byte) i); }
        long p1 = pss();
        java.util.concurrent.CountDownLatch up = new java.util.concurrent.CountDownLatch(threads);
        for (int i = 0; i < threads; i++) diver("acme-mix-" + i, 512 << 10, up).start();
        up.await(); Thread.sleep(200);
        long stacks = pss() - p1;
        long z = plantDeflaters(open, (int) (((long) defl << 20) / PER_DEFLATER));
        ready(p, "\"direct\": " + ((long) direct << 20) + ", \"heap\": " + ((long) heap << 20) + ", \"stacks\": " + stacks + ", \"malloc_outside\": " + z,
            "\"threads\": " + threads + ", \"reserved_bytes\": " + threads * (512L << 10) + ", \"holder\": \"direct: io.acme.Mix.buffers, heap: io.acme.Mix.cache, zlib: io.acme.Mix.open\", \"measured\": \"stacks: PSS delta; the rest exact\"");
    }
    static int sink;
    static int dive(int n, long a, long b) { return n + dive(n + 1, b, a ^ n) + (int) (a + b); }
    static Thread diver(String name, long stackBytes, java.util.concurrent.CountDownLatch up) {
        Thread t = new Thread(null, () -> {
            try { sink += dive(0, 1, 2); } catch (StackOverflowError e) { } // every usable page of the stack touched
            up.countDown();
            while (true) java.util.concurrent.locks.LockSupport.park();
        }, name, stackBytes);
        t.setDaemon(true);
        return t;
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
