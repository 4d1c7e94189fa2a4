package io.acme;

/** A mapped file far larger than what is resident: one run of pages in its middle is written. Args: GiB, touched MiB. */
public class SparseMap {
    static final java.util.List<java.nio.MappedByteBuffer> maps = new java.util.ArrayList<>();
    public static void main(String[] a) throws Exception {
        int gib = Integer.parseInt(a[0]); int pages = Integer.parseInt(a[1]) * 256;
        java.nio.file.Path f = java.nio.file.Paths.get(System.getProperty("acme.dir", "/tmp"), "cold-" + ProcessHandle.current().pid() + ".db");
        try (java.io.RandomAccessFile r = new java.io.RandomAccessFile(f.toFile(), "rw")) {
            r.setLength((long) gib << 30);
            long p = pss();
            for (int g = 0; g < gib; g++) maps.add(r.getChannel().map(java.nio.channels.FileChannel.MapMode.READ_WRITE, (long) g << 30, 1 << 30));
            java.nio.MappedByteBuffer hot = maps.get(maps.size() / 2); // one run: scattered writes would bring whole large folios in
            for (int i = 0; i < pages; i++) hot.put((256 << 20) + i * 4096, (byte) 1);
            ready(p, "\"mapped\": " + pages * 4096L, "\"planted_committed\": {\"mapped\": " + ((long) gib << 30) + "}, \"file\": \"" + f + "\", \"holder\": \"io.acme.SparseMap.maps\"");
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
