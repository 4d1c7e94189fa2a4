/** Calls methods known numbers of times: in loops, by recursion, through exceptions, in threads; one of them sleeps. */
public class Calls {
  static int sink;
  static class Own { Own() { sink++; } }
  static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
  static void leaf() { sink++; }
  static void middle() { leaf(); leaf(); }
  static void thrower(int i) { if (i % 2 == 0) throw new IllegalStateException(); leaf(); }
  static void passer(int i) { thrower(i); }
  static void catcher(int i) { try { passer(i); } catch (IllegalStateException e) { sink--; } }
  static synchronized void locked() { sink++; }
  static void sleeper() throws Exception { Thread.sleep(220); }
  static void idle() throws Exception { sleeper(); }
  static long wide(long a, double b, Object... c) { return a + (long) b + c.length; }
  static void threaded() { for (int i = 0; i < 500; i++) locked(); }

  public static void main(String[] args) throws Exception {
    fib(15);
    for (int i = 0; i < 1000; i++) middle();
    for (int i = 0; i < 300; i++) catcher(i);
    for (int i = 0; i < 250; i++) { new Own(); wide(i, i, args); }
    Thread[] threads = new Thread[4];
    for (int i = 0; i < 4; i++) { threads[i] = new Thread(Calls::threaded); threads[i].start(); }
    for (Thread t : threads) t.join();
    idle();
  }
}
