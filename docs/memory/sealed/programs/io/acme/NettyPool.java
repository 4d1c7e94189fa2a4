package io.acme;

/** A Netty-like pool: chunks by Unsafe.allocateMemory wrapped in cleaner-less direct buffers (Bits and the BufferPool bean never hear of them). Args: chunks, MiB each. */
public class NettyPool {
    public static void main(String[] a) throws Exception {
        int n = Integer.parseInt(a[0]), each = Integer.parseInt(a[1]) << 20;
        sun.misc.Unsafe u = unsafe();
        Class<?> c = Class.forName("java.nio.DirectByteBuffer");
        java.lang.reflect.Constructor<?> k;
        boolean lng = false;
        try { k = c.getDeclaredConstructor(long.class, int.class); } catch (NoSuchMethodException e) { k = c.getDeclaredConstructor(long.class, long.class); lng = true; }
        k.setAccessible(true);
        long p = pss();
        for (int i = 0; i < n; i++) {
            long at = u.allocateMemory(each);
            u.setMemory(at, each, (byte) 1);
            PooledArena.chunks.add((java.nio.ByteBuffer) (lng ? k.newInstance(at, (long) each) : k.newInstance(at, each)));
        }
        ready(p, "\"malloc_seen_by_nmt\": " + (long) n * each, "\"buffers\": " + n + ", \"buffer_pool_bean_bytes\": 0, \"holder\": \"io.acme.PooledArena.chunks (DirectByteBuffer without cleaner)\"");
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
class PooledArena { static final java.util.List<java.nio.ByteBuffer> chunks = new java.util.ArrayList<>(); }
