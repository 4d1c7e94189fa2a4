/** Three threads wait, one after another, for a monitor that main holds; then it waits for the end of its input in it. */
public class Contend {
  static class Door { }
  static class Bell { }
  static final Door door = new Door();
  static final Bell bell = new Bell();
  static void enter() {
    // On one line: the interpreter is behind the instruction that enters the monitor already.
    synchronized (door) { door.notifyAll(); } // ENTER
  }
  static void ring() {
    synchronized (bell) {
      try { bell.wait(); } catch (InterruptedException e) { }
    }
  }
  static Thread blocked(String name) throws Exception {
    Thread t = new Thread(Contend::enter, name);
    t.start();
    while (t.getState() != Thread.State.BLOCKED) Thread.sleep(1);
    return t;
  }
  public static void main(String[] args) throws Exception {
    int rounds = Integer.parseInt(args[0]); long lost = 0;
    for (int i = 0; i < rounds; i++) {
      Thread t; long before;
      synchronized (door) {
        t = blocked("round-" + i);
        before = System.nanoTime();
        Thread.sleep(100);
        lost += System.nanoTime() - before;
      }
      t.join();
    }
    System.out.println("lost " + lost);
    Thread ringer = new Thread(Contend::ring, "ringer");
    ringer.setDaemon(true); ringer.start();
    while (ringer.getState() != Thread.State.WAITING) Thread.sleep(1);
    if (args.length < 2) return;
    synchronized (door) {
      blocked("first in line"); blocked("second in line");
      System.out.println("READY");
      while (System.in.read() >= 0) { }
    }
  }
}
