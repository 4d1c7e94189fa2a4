import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Holds about as many MiB as the first argument says, of its own classes, prints READY, then a number every 10 ms. */
public class Held {
  static final class Order { final long id; final String sku; Order next; Order(long id, String sku) { this.id = id; this.sku = sku; } }
  static final class Customer { final Map<Long, Order> orders = new HashMap<>(); final byte[] photo = new byte[200]; }
  static final List<Customer> CUSTOMERS = new ArrayList<>();

  public static void main(String[] args) throws Exception {
    long mebibytes = Long.parseLong(args[0]);
    for (long at = 0; at < mebibytes * 1000; at++) {
      Customer customer = new Customer();
      for (long id = 0; id < 6; id++) customer.orders.put(id, new Order(id, "sku-" + id % 7 + at % 100));
      CUSTOMERS.add(customer);
    }
    System.out.println("READY");
    for (int at = 0; ; at++) {
      Thread.sleep(10);
      if (args.length > 1) System.out.println(at);
    }
  }
}

/** The same under a name of its own. */
class HeldByName {
  public static void main(String[] args) throws Exception { Held.main(args); }
}
