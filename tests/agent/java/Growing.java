import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;

/** Leaks objects of one class at a steady rate, unless told not to, among others that come and go. */
public class Growing {
  static final class Leaked { long a, b, c, d, e, f; }
  static final class Order { byte[] body = new byte[500]; }
  static final List<Leaked> LEAK = new ArrayList<>(1 << 20);
  static Object garbage;

  public static void main(String[] args) throws Exception {
    boolean leaks = Boolean.parseBoolean(args[0]);
    ArrayDeque<Order> orders = new ArrayDeque<>();
    int turn = 0;
    long start = System.nanoTime();
    System.out.println("READY");
    while (System.in.available() == 0) {
      for (int i = 0; i < 400; i++) { orders.add(new Order()); garbage = new char[800]; }
      turn++;
      // Up to 40 MB, in waves shorter than a round.
      if (turn % 7 == 0) while (orders.size() > 1000 * (turn % 5)) orders.poll();
      long wanted = leaks ? (System.nanoTime() - start) / 100_000 : 0;
      while (LEAK.size() < wanted) LEAK.add(new Leaked());
      Thread.sleep(5);
    }
  }
}
