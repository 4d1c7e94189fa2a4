package io.acme;

/** Healthy: a small HTTP server that has served some requests. Args: requests. */
public class Http {
    public static void main(String[] a) throws Exception {
        int n = Integer.parseInt(a[0]);
        long p = pss();
        com.sun.net.httpserver.HttpServer s = com.sun.net.httpserver.HttpServer.create(new java.net.InetSocketAddress("127.0.0.1", 0), 0);
        s.setExecutor(java.util.concurrent.Executors.newFixedThreadPool(8));
        s.createContext("/", x -> {
            byte[] b = ("{\"path\": \"" + x.getRequestURI() + "\"}").getBytes("UTF-8");
            x.sendResponseHeaders(200, b.length);
            x.getResponseBody().write(b);
            x.close();
        });
        s.start();
        for (int i = 0; i < n; i++)
            try (java.io.InputStream in = new java.net.URL("http://127.0.0.1:" + s.getAddress().getPort() + "/item/" + i).openStream()) { while (in.read() >= 0) { } }
        ready(p, "", "\"healthy\": true, \"requests\": " + n);
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
