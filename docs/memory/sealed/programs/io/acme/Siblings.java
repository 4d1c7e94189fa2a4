package io.acme;

/** Itself small, but three more JVMs of the same JDK run beside it: libjvm, the jimage and the CDS archive are shared, so PSS is far below RSS. Args: siblings. */
public class Siblings {
    public static void main(String[] a) throws Exception {
        if (a.length == 0) { while (System.in.read() >= 0) { } return; } // a sibling: ends when its parent does
        java.util.List<Process> kids = new java.util.ArrayList<>();
        String j = System.getProperty("java.home") + "/bin/java";
        long p = pss(); StringBuilder pids = new StringBuilder();
        for (int i = 0; i < Integer.parseInt(a[0]); i++) {
            Process k = new ProcessBuilder(j, "-Xmx64m", "-XX:+UseSerialGC", "-cp", System.getProperty("java.class.path"), "io.acme.Siblings")
                .redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
            kids.add(k); pids.append(i == 0 ? "" : ", ").append(k.pid());
        }
        Thread.sleep(3000);
        ready(p, "", "\"healthy\": true, \"sibling_pids\": [" + pids + "]");
        if (kids.isEmpty()) throw new Error();
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
