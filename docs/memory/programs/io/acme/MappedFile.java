package io.acme;

/** A file mapped by FileChannel.map, every page read. Args: MiB. The file is made in -Dacme.dir. */
public class MappedFile {
    static java.nio.MappedByteBuffer index;
    public static void main(String[] a) throws Exception {
        int total = Integer.parseInt(a[0]) << 20;
        java.nio.file.Path f = java.nio.file.Paths.get(System.getProperty("acme.dir", "/tmp"), "segment-" + ProcessHandle.current().pid() + ".dat");
        try (java.nio.channels.FileChannel c = java.nio.channels.FileChannel.open(f, java.nio.file.StandardOpenOption.CREATE, java.nio.file.StandardOpenOption.READ, java.nio.file.StandardOpenOption.WRITE)) {
            java.nio.ByteBuffer b = java.nio.ByteBuffer.allocate(1 << 20);
            java.util.Arrays.fill(b.array(), (byte) 7);
            for (int i = 0; i < total >> 20; i++) { b.clear(); c.write(b, (long) i << 20); }
            long p = pss();
            index = c.map(java.nio.channels.FileChannel.MapMode.READ_ONLY, 0, total);
            long s = 0;
            for (int k = 0; k < total; k += 4096) s += index.get(k);
            if (s == 0) throw new Error();
            ready(p, "\"mapped\": " + total, "\"file\": \"" + f + "\", \"holder\": \"io.acme.MappedFile.index\"");
        }
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
