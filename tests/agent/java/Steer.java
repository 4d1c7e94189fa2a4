import java.io.*;

/** Two threads are busy, and objects are allocated as lines of the input say, until it ends. */
public class Steer {
  static class Kept { }
  static class Dropped { }
  static class Still { long a, b; }
  static final Object[] keep = new Object[1 << 16];
  static int kept;
  static volatile Object sink;
  static volatile boolean ended;

  static void one() { while (!ended) { sink = null; } }
  static void two() { while (!ended) { sink = null; } }
  static void keep(int n) { for (int i = 0; i < n; i++) keep[kept++] = new Kept(); }
  static void still(int n) { for (int i = 0; i < n; i++) keep[kept++] = new Still(); }
  static void drop(int n) { for (int i = 0; i < n; i++) sink = new Dropped(); sink = null; }

  static void start(String name, Runnable run) {
    Thread t = new Thread(run, name);
    t.setDaemon(true); t.start();
  }
  public static void main(String[] args) throws Exception {
    if (args.length > 0) { start("one", Steer::one); start("two", Steer::two); }
    System.out.println("READY");
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = in.readLine()) != null; ) {
      String[] words = line.split(" ");
      int n = Integer.parseInt(words[1]);
      if (words[0].equals("keep")) keep(n); else if (words[0].equals("still")) still(n); else drop(n);
      System.out.println("DONE " + line);
    }
    ended = true;
  }
}
