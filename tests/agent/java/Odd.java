/** Threads, classes and methods with names that a report has to write so that it can be read. */
public class Odd {
  static final Object lock = new Object();
  static Object[] keep = new Object[64];
  static class Gr\u00fc\u00dfe { int zahl; }
  static class \u65e5\u672c { void \u30e1\u30bd\u30c3\u30c9(int i) { keep[i] = new Gr\u00fc\u00dfe(); } }
  static void \u017eluťou\u010dk\u00fd(int i) { keep[i] = new \u65e5\u672c(); new \u65e5\u672c().\u30e1\u30bd\u30c3\u30c9(i + 32); }
  public static void main(String[] args) throws Exception {
    String[] names = { "a \"quoted\" name", "two\nlines", "tab\tand \u001b[31mescape", "\", group=\"main\")", "\ud83d\ude00 pair",
        "lone \ud800 surrogate", "nul \0 inside", "", "TRACE 1:\n\tA.b(C.java:1)", "back\\slash", "\u202eturned" };
    Thread[] threads = new Thread[names.length];
    for (int i = 0; i < names.length; i++) {
      int at = i;
      Runnable run = () -> { synchronized (lock) { \u017eluťou\u010dk\u00fd(at); try { Thread.sleep(3); } catch (InterruptedException e) { } } };
      threads[i] = new Thread(new ThreadGroup("group \"" + names[i]), run, names[i]);
    }
    for (Thread t : threads) t.start();
    for (Thread t : threads) t.join();
    synchronized (lock) { lock.wait(5); }
    System.out.println("READY");
  }
}
