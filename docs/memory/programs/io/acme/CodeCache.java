package io.acme;

/** Many compiled methods. Args: methods, calls a method (C1's time grows faster than the calls). To be run with -Xcomp -XX:CompileCommand=compileonly,io.acme.code.*::c* (see programs.json). */
public class CodeCache {
    static final java.util.List<Class<?>> keep = new java.util.ArrayList<>();
    public static void main(String[] a) throws Exception {
        int n = Integer.parseInt(a[0]);
        java.util.Random r = new java.util.Random(5);
        byte[][] code = new byte[7][];
        for (int v = 0; v < code.length; v++) {
            java.io.ByteArrayOutputStream o = new java.io.ByteArrayOutputStream();
            for (int k = 0; k < Integer.parseInt(a[1]); k++) { // x = h(x) ^ s
                o.write(0x1a); o.write(0xb8); o.write(0); o.write(9); o.write(0x11); o.write(r.nextInt(128)); o.write(r.nextInt(256)); o.write(0x82); o.write(0x3b);
            }
            o.write(0x1a); o.write(0xac);
            code[v] = o.toByteArray();
        }
        long[] c0 = pool("CodeHeap"), d0 = pool("CodeCache");
        long p = pss(); L l = new L(); int x = 0;
        for (int i = 0; i < n; i += 20) {
            String name = "io.acme.code.C" + i / 20;
            Class<?> c = l.def(name, classBytes(name.replace('.', '/'), 20, "c", code, 0));
            keep.add(c);
            for (int k = 0; k < 20; k++) x += (Integer) c.getMethod("c" + k, int.class).invoke(null, k);
        }
        long[] c1 = pool("CodeHeap"), d1 = pool("CodeCache");
        ready(p, "\"code\": " + (c1[0] + d1[0] - c0[0] - d0[0]), "\"methods\": " + n + ", \"sum\": " + x + ", \"code_used_total\": " + (c1[0] + d1[0]) + ", \"code_committed_total\": " + (c1[1] + d1[1])
            + ", \"measured\": \"pools CodeHeap used, delta\"");
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
