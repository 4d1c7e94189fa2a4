package io.acme;

/** Direct buffers made and freed by several threads, every so often a small one kept: glibc's arenas cannot shrink. Args: MiB at the peak, threads. */
public class Fragmented {
    static final java.util.List<java.nio.ByteBuffer> kept = java.util.Collections.synchronizedList(new java.util.ArrayList<>());
    public static void main(String[] a) throws Exception {
        long total = Long.parseLong(a[0]) << 20; int nt = Integer.parseInt(a[1]);
        sun.misc.Unsafe u = unsafe();
        java.lang.reflect.Method inv = sun.misc.Unsafe.class.getMethod("invokeCleaner", java.nio.ByteBuffer.class);
        long p = pss(); long[] peak = new long[1];
        java.util.concurrent.CyclicBarrier full = new java.util.concurrent.CyclicBarrier(nt, () -> { try { peak[0] = pss(); } catch (Exception e) { } });
        java.util.concurrent.CountDownLatch up = new java.util.concurrent.CountDownLatch(nt);
        java.util.concurrent.atomic.AtomicLong keptBytes = new java.util.concurrent.atomic.AtomicLong();
        for (int t = 0; t < nt; t++) {
            Thread th = new Thread(() -> {
                try {
                    java.util.List<java.nio.ByteBuffer> big = new java.util.ArrayList<>();
                    for (long got = 0; got < total / nt; got += 49152) {
                        java.nio.ByteBuffer b = java.nio.ByteBuffer.allocateDirect(48000);
                        for (int k = 0; k < 48000; k += 4000) b.put(k, (byte) 1);
                        big.add(b);
                        java.nio.ByteBuffer s = java.nio.ByteBuffer.allocateDirect(128);
                        kept.add(s); keptBytes.addAndGet(128);
                    }
                    full.await();
                    for (java.nio.ByteBuffer b : big) inv.invoke(u, b);
                } catch (Exception e) { e.printStackTrace(); }
                up.countDown();
                while (true) java.util.concurrent.locks.LockSupport.park();
            }, "acme-io-" + t);
            th.setDaemon(true); th.start();
        }
        up.await();
        long left = pss() - p;
        ready(p, "\"direct\": " + keptBytes + ", \"malloc_outside\": " + (left - keptBytes.get()), "\"peak_direct_bytes\": " + total + ", \"peak_pss_bytes\": " + peak[0]
            + ", \"measured\": \"malloc_outside: freed memory that glibc keeps (PSS delta less the kept buffers; includes a little heap and stacks)\", \"holder\": \"nobody: free chunks in glibc arenas; kept: io.acme.Fragmented.kept\"");
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
