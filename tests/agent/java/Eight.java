/** Threads that allocate at three sites, the third in several depths of a recursion. */
public class Eight {
  static class First { int a; }
  static class Second { long a, b; }
  static class Third { Object next; Third(Object next) { this.next = next; } }
  final Object[] keep;
  int kept;
  Eight(int n) { keep = new Object[n * 3]; }

  void first() {
    keep[kept++] = new First(); // FIRST
  }
  void second() {
    keep[kept++] = new Second(); // SECOND
  }
  void third(int depth) {
    if (depth > 0)
      third(depth - 1); // RECURSION
    else
      keep[kept++] = new Third(this); // THIRD
  }
  void all(int n) {
    for (int i = 0; i < n; i++) {
      first();
      second();
      third(i % 4); // CALL
    }
  }
  static Eight[] every;

  public static void main(String[] args) throws Exception {
    int threads = Integer.parseInt(args[0]), n = Integer.parseInt(args[1]);
    every = new Eight[threads];
    Thread[] all = new Thread[threads];
    for (int i = 0; i < threads; i++) {
      Eight eight = every[i] = new Eight(n);
      all[i] = new Thread(() -> eight.all(n), "allocator-" + i);
    }
    for (Thread t : all) t.start();
    for (Thread t : all) t.join();
  }
}
