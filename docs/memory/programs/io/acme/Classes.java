package io.acme;

/** Generated classes from hand-written class bytes. Args: count, classes a loader (0: all in one). */
public class Classes {
    static final java.util.List<ClassLoader> loaders = new java.util.ArrayList<>();
    public static void main(String[] a) throws Exception {
        int n = Integer.parseInt(a[0]), per = Integer.parseInt(a[1]);
        byte[][] code = {new byte[64]};
        for (int k = 0; k < 60; k += 4) { code[0][k] = 0x1a; code[0][k + 1] = 0x04; code[0][k + 2] = 0x60; code[0][k + 3] = 0x3b; }
        code[0][60] = 0x1a; code[0][61] = 0x04; code[0][62] = 0x60; code[0][63] = (byte) 0xac;
        long[] m0 = pool("Metaspace"), c0 = pool("Compressed Class");
        long p = pss();
        L l = null;
        for (int i = 0; i < n; i++) {
            if (l == null || per > 0 && i % per == 0) loaders.add(l = new L());
            String name = "io.acme.gen.G" + i;
            l.def(name, classBytes(name.replace('.', '/'), 12, "g" + i % 97 + "_", code, 0));
            Class.forName(name, true, l);
        }
        long[] m1 = pool("Metaspace"), c1 = pool("Compressed Class");
        ready(p, "\"classes\": " + (m1[1] - m0[1]), "\"class_count\": " + n + ", \"loaders\": " + loaders.size()
            + ", \"metaspace_used_delta\": " + (m1[0] - m0[0]) + ", \"metaspace_committed_total\": " + m1[1] + ", \"class_space_used_delta\": " + (c1[0] - c0[0])
            + ", \"class_space_committed_total\": " + c1[1] + ", \"measured\": \"pool Metaspace (class space included) committed, delta\", \"holder\": \"io.acme.Classes.loaders\"");
    }
    static long[] pool(String prefix) { // used, committed of the memory pools whose name starts with prefix
        long u = 0, c = 0;
        for (java.lang.management.MemoryPoolMXBean b : java.lang.management.ManagementFactory.getMemoryPoolMXBeans())
            if (b.getName().startsWith(prefix)) { u += b.getUsage().getUsed(); c += b.getUsage().getCommitted(); }
        return new long[] {u, c};
    }
    /** A version-49 class (no StackMapTable needed) written by hand: methods name0..nameN-1 (I)I with the given code. */
    static byte[] classBytes(String name, int methods, String mname, byte[][] code, int ifaceless) throws Exception {
        java.io.ByteArrayOutputStream bo = new java.io.ByteArrayOutputStream();
        java.io.DataOutputStream o = new java.io.DataOutputStream(bo);
        o.writeInt(0xCAFEBABE); o.writeShort(0); o.writeShort(49);
        int cp = 10 + methods;
        o.writeShort(cp + 1);
        u(o, name); o.writeByte(7); o.writeShort(1);             // 1,2 this
        u(o, "java/lang/Object"); o.writeByte(7); o.writeShort(3); // 3,4 super
        u(o, "Code"); u(o, "(I)I");                              // 5,6
        u(o, "h"); o.writeByte(12); o.writeShort(7); o.writeShort(6); // 7, 8 name-and-type h(I)I
        o.writeByte(10); o.writeShort(2); o.writeShort(8);        // 9 Methodref this.h
        u(o, "f");                                               // 10
        for (int i = 0; i < methods; i++) u(o, mname + i);       // 11..
        o.writeShort(0x21); o.writeShort(2); o.writeShort(4); o.writeShort(0); o.writeShort(0);
        o.writeShort(methods + 1);
        m(o, 7, new byte[] {0x1a, 0x04, 0x60, (byte) 0xac});     // h: iload_0 iconst_1 iadd ireturn
        for (int i = 0; i < methods; i++) m(o, 11 + i, code[i % code.length]);
        o.writeShort(0);
        return bo.toByteArray();
    }
    static void u(java.io.DataOutputStream o, String s) throws Exception { o.writeByte(1); o.writeUTF(s); }
    static void m(java.io.DataOutputStream o, int name, byte[] c) throws Exception {
        o.writeShort(9); o.writeShort(name); o.writeShort(6); o.writeShort(1);
        o.writeShort(5); o.writeInt(12 + c.length); o.writeShort(4); o.writeShort(1);
        o.writeInt(c.length); o.write(c); o.writeShort(0); o.writeShort(0);
    }
    static final class L extends ClassLoader {
        L() { super(L.class.getClassLoader()); }
        Class<?> def(String n, byte[] b) { return defineClass(n, b, 0, b.length); }
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
