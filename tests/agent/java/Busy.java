// Provenance: written for this project, as a program for which the agent of JDK 8 and this one record the same.
import java.util.*;
/** Burns CPU in a few methods, allocates at a few sites, and makes threads contend: something for every HPROF report. */
public class Busy {
  static final Object lock = new Object();
  static volatile long sink;
  static List<byte[]> retained = new ArrayList<byte[]>();
  static long primes(int n) { long c = 0; for (int i = 2; i < n; i++) { boolean p = true; for (int j = 2; (long) j * j <= i; j++) if (i % j == 0) { p = false; break; } if (p) c++; } return c; }
  static long hash(int n) { long h = 0; for (int i = 0; i < n; i++) h = h * 31 + String.valueOf(i).hashCode(); return h; }
  static double trig(int n) { double s = 0; for (int i = 1; i < n; i++) s += Math.sin(i) / Math.sqrt(i); return s; }
  static int ackermann(int m, int n) { return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1)); }
  static void allocateSmall(int n) { for (int i = 0; i < n; i++) retained.add(new byte[64]); }
  static void allocateLarge(int n) { for (int i = 0; i < n; i++) retained.add(new byte[100000]); }
  static void churn(int n) { for (int i = 0; i < n; i++) sink += new int[16].length; }
  static void contend() { for (int i = 0; i < 20; i++) synchronized (lock) { try { Thread.sleep(10); } catch (InterruptedException e) { } } }
  public static void main(String[] args) throws Exception {
    int k = args.length > 0 ? Integer.parseInt(args[0]) : 1;
    Thread[] ts = new Thread[3];
    for (int i = 0; i < 3; i++) { ts[i] = new Thread("contender-" + i) { public void run() { contend(); } }; ts[i].start(); }
    for (int r = 0; r < k; r++) { sink += primes(300000); sink += hash(200000); sink += (long) trig(500000); sink += ackermann(2, 500); churn(20000); }
    allocateSmall(1000); allocateLarge(20);
    for (Thread t : ts) t.join();
    System.out.println("done " + retained.size());
  }
}
