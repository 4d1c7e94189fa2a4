import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.net.*;

/**
 * Spends processor time in three methods and says how much in each, by its own clock, while one thread sleeps and another waits
 * in a system call.
 */
public class Work {
  static volatile double sink;
  static final ThreadMXBean CLOCK = ManagementFactory.getThreadMXBean();

  static void sines(int n) { double s = 0; for (int i = 1; i < n; i++) s += Math.sin(i); sink += s; }
  static void roots(int n) { double s = 0; for (int i = 1; i < n; i++) s += Math.cbrt(i); sink += s; }
  static void powers(int n) { double s = 0; for (int i = 1; i < n; i++) s += Math.pow(i, 0.7); sink += s; }
  static void sleeper() { try { Thread.sleep(100000); } catch (InterruptedException e) { } }
  static void reader(Socket s) { try (InputStream in = s.getInputStream()) { in.read(); } catch (Exception e) { } }

  public static void main(String[] args) throws Exception {
    long millis = Long.parseLong(args[0]);
    int[] weights = { 6, 3, 1 };
    Thread sleeping = new Thread(Work::sleeper, "sleeper");
    sleeping.setDaemon(true); sleeping.start();
    ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
    Socket client = new Socket(server.getInetAddress(), server.getLocalPort()), accepted = server.accept();
    Thread reading = new Thread(() -> reader(client), "reader");
    reading.setDaemon(true); reading.start();
    long[] spent = new long[3];
    long start = CLOCK.getCurrentThreadCpuTime();
    while (CLOCK.getCurrentThreadCpuTime() - start < millis * 1_000_000) {
      for (int which = 0; which < 3; which++) {
        long before = CLOCK.getCurrentThreadCpuTime(), end = before + weights[which] * 15_000_000L;
        // Long enough that reading the clock costs nothing.
        do {
          if (which == 0) sines(100_000); else if (which == 1) roots(100_000); else powers(50_000);
        } while (CLOCK.getCurrentThreadCpuTime() < end);
        spent[which] += CLOCK.getCurrentThreadCpuTime() - before;
      }
    }
    System.out.println("spent sines " + spent[0] + " roots " + spent[1] + " powers " + spent[2]);
  }
}
