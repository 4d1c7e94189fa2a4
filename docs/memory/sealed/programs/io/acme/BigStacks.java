package io.acme;

/** A few threads that once recursed through very large stacks and now idle. Args: threads, stack MiB. */
public class BigStacks {
    public static void main(String[] a) throws Exception {
        int n = Integer.parseInt(a[0]); long stack = Long.parseLong(a[1]) << 20;
        long p = pss();
        java.util.concurrent.CountDownLatch up = new java.util.concurrent.CountDownLatch(n);
        for (int i = 0; i < n; i++) diver("json-parser-" + i, stack, up).start();
        up.await(); Thread.sleep(300);
        long d = pss() - p;
        ready(p, "\"stacks\": " + d, "\"threads\": " + n + ", \"reserved_bytes\": " + n * stack + ", \"measured\": \"PSS delta\"");
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
