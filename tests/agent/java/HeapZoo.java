// Provenance: written for this project, as a program for which the agent of JDK 8 and this one record the same.
import java.lang.ref.*;
import java.lang.reflect.*;
import java.nio.ByteBuffer;
import java.util.*;
import java.util.concurrent.*;

/** Fills a heap with one of everything that a heap-dump reader must cope with, then waits. */
public class HeapZoo {
  // --- field layouts: gaps, inheritance, every primitive type ---
  static class A { byte b; }
  static class B extends A { int i; byte c; }
  static class C extends B { long l; short s; Object o; }
  static class D extends C { boolean z; char ch; float f; double d; Object p; byte last; }
  static class Empty {}
  static class OneRef { Object r; OneRef(Object r) { this.r = r; } }
  enum Color { RED, GREEN, BLUE }
  // --- a leak: a static cache of sessions, each holding a buffer and attributes ---
  static class Session { final String id; final byte[] buffer = new byte[512]; final Map<String, Object> attributes = new HashMap<>(); final long created = System.nanoTime();
    Session(String id) { this.id = id; attributes.put("user", "user-" + (id.hashCode() % 100)); attributes.put("locale", new String("en_US")); } }
  static final Map<String, Session> SESSION_CACHE = new ConcurrentHashMap<>();
  // --- long chain: no recursion survives this ---
  static class Link { Link next; int v; Link(Link n, int v) { next = n; this.v = v; } }
  static Link chain;
  static Object[] shared = new Object[4];
  static List<Object> keep = new ArrayList<>();
  static ThreadLocal<byte[]> LOCAL = new ThreadLocal<>();
  static class Finalizable { byte[] data = new byte[64]; protected void finalize() {} }
  static class Loader extends ClassLoader { Class<?> def(String n, byte[] b) { return defineClass(n, b, 0, b.length); } }
  static byte[] bytesOf(Class<?> c) throws Exception { try (java.io.InputStream in = c.getResourceAsStream("/" + c.getName().replace('.', '/') + ".class")) { java.io.ByteArrayOutputStream o = new java.io.ByteArrayOutputStream(); byte[] buf = new byte[4096]; int k; while ((k = in.read(buf)) > 0) o.write(buf, 0, k); return o.toByteArray(); } }

  public static void main(String[] args) throws Exception {
    int scale = args.length > 0 ? Integer.parseInt(args[0]) : 1;
    Random rnd = new Random(42);
    for (int i = 0; i < 2000 * scale; i++) SESSION_CACHE.put("session-" + i, new Session("session-" + i));
    for (int i = 0; i < 100000 * scale; i++) chain = new Link(chain, i);
    for (int i = 0; i < 500 * scale; i++) { D d = new D(); d.o = keep; d.p = Color.values()[i % 3]; d.l = i; d.d = i * 0.5; keep.add(d); keep.add(new C()); keep.add(new B()); keep.add(new A()); keep.add(new Empty()); }
    // diamond and cycle
    OneRef top = new OneRef(null), left = new OneRef(null), right = new OneRef(null), bottom = new OneRef("diamond bottom");
    Object[] d = { left, right }; top.r = d; left.r = bottom; right.r = bottom; shared[0] = top;
    OneRef x = new OneRef(null), y = new OneRef(x); x.r = y; shared[1] = x;
    // reference kinds
    ReferenceQueue<Object> q = new ReferenceQueue<>();
    keep.add(new SoftReference<Object>(new byte[1000])); keep.add(new WeakReference<Object>(keep)); keep.add(new PhantomReference<Object>(new Object(), q)); keep.add(new WeakHashMap<Object, Object>(Collections.singletonMap(keep, "weak value")));
    for (int i = 0; i < 50; i++) keep.add(new Finalizable());
    // strings: duplicates, Latin-1, UTF-16, empty, control and supplementary characters
    for (int i = 0; i < 1000 * scale; i++) keep.add(new String("duplicate string number " + (i % 10)));
    keep.add("Grüße"); keep.add("日本語テキスト"); keep.add("emoji \uD83D\uDE00 pair"); keep.add(""); keep.add("tab\tnewline\nquote\"back\\slash\u0000nul"); keep.add("lone surrogate \uD800 here");
    // collections: empty, sparse, full
    for (int i = 0; i < 300 * scale; i++) { keep.add(new ArrayList<Object>()); keep.add(new HashMap<Object, Object>(64)); keep.add(new LinkedList<Object>(Arrays.<Object>asList(1, 2, 3))); TreeMap<String, Integer> t = new TreeMap<>(); for (int j = 0; j < 5; j++) t.put("k" + j, j * 1000 + i); keep.add(t); keep.add(new ArrayDeque<Object>(100)); keep.add(new LinkedHashMap<Object, Object>(Collections.singletonMap("a", 1))); }
    // arrays of every type, empty, nested, large
    keep.add(new boolean[] { true, false }); keep.add(new char[] { 'a', '\u20ac' }); keep.add(new float[] { 1.5f, Float.NaN, Float.NEGATIVE_INFINITY }); keep.add(new double[] { Math.PI, Double.MIN_VALUE, -0.0 }); keep.add(new byte[] { -128, 127 }); keep.add(new short[] { -32768 }); keep.add(new int[] { Integer.MIN_VALUE }); keep.add(new long[] { Long.MIN_VALUE, Long.MAX_VALUE });
    keep.add(new int[0]); keep.add(new Object[0]); keep.add(new String[2][3][4]); keep.add(new int[10][]); keep.add(new byte[1 << 20]); keep.add(new long[1 << 16]); keep.add(new Color[] { Color.RED, null });
    Object[] self = new Object[1]; self[0] = self; keep.add(self);
    keep.add(ByteBuffer.allocateDirect(4096)); keep.add(new java.math.BigInteger(256, rnd)); keep.add(Optional.of("opt")); keep.add(UUID.randomUUID()); keep.add(new Date()); keep.add(Thread.currentThread());
    // the same class from several loaders
    byte[] leaf = bytesOf(Empty.class);
    for (int i = 0; i < 5; i++) { Class<?> k = new Loader().def(Empty.class.getName(), leaf); Constructor<?> ctor = k.getDeclaredConstructor(); ctor.setAccessible(true); keep.add(ctor.newInstance()); keep.add(k); }
    // lambdas, proxies, anonymous classes
    Runnable r1 = () -> System.out.println(keep.size()); keep.add(r1); keep.add(new Object() { int hidden = 7; }); keep.add(Proxy.newProxyInstance(HeapZoo.class.getClassLoader(), new Class<?>[] { Runnable.class }, (p, m, a) -> null));
    // threads: waiting, sleeping, blocked, with locals and thread-locals
    final CountDownLatch ready = new CountDownLatch(4); final Object monitor = new Object();
    Thread holder = new Thread(() -> { synchronized (monitor) { LOCAL.set(new byte[10000]); ready.countDown(); sleep(); } }, "monitor-holder"); holder.setDaemon(true); holder.start(); Thread.sleep(100);
    Thread blocked = new Thread(() -> { ready.countDown(); synchronized (monitor) { System.out.println("never"); } }, "blocked \"quoted\""); blocked.setDaemon(true); blocked.start();
    Thread deep = new Thread(() -> recurse(50, new long[100]), "deep-stack"); deep.setDaemon(true); deep.start(); ready.countDown();
    Thread local = new Thread(() -> { byte[] onlyOnMyStack = new byte[54321]; LOCAL.set(new byte[20000]); ready.countDown(); sleep(); System.out.println(onlyOnMyStack.length); }, "local-owner"); local.setDaemon(true); local.start();
    ready.await();
    try { Method m = Thread.class.getMethod("startVirtualThread", Runnable.class); for (int i = 0; i < 20; i++) { final int n = i; m.invoke(null, (Runnable) () -> { byte[] inVirtual = new byte[1234]; sleep(); System.out.println(inVirtual.length + n); }); } Thread.sleep(300); } catch (NoSuchMethodException e) { /* before 21 */ }
    // garbage: unreachable objects, kept only by each other
    for (int i = 0; i < 1000 * scale; i++) { OneRef g = new OneRef(new byte[100]); g.r = new OneRef(g); }
    System.out.println("READY"); System.out.flush(); Thread.sleep(args.length > 1 ? Long.parseLong(args[1]) : 600000);
  }
  static void sleep() { try { Thread.sleep(600000); } catch (InterruptedException e) { } }
  static void recurse(int n, long[] carried) { byte[] frame = new byte[n]; if (n == 0) sleep(); else recurse(n - 1, carried); if (frame.length > 1000) System.out.println(frame[0]); }
}
