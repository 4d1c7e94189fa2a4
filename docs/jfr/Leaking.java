import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Programs with a known leak beneath other allocation: {@code Leaking KIND SECONDS [BYTES THAT STAY A SECOND]}; for leaks.py.
 *
 * <p>The line that leaks is marked {@code LEAK}; objects of the same class become garbage at the lines marked {@code GARBAGE}.
 */
public class Leaking {
  /** 64 bytes, with or without compressed references. */
  static class Order {
    final long id, price, quantity, created, changed, account;

    Order(long id) {
      this.id = price = quantity = created = changed = account = id;
    }
  }

  static class Ledger {
    static final Map<Long, Order> OPEN = new HashMap<>();

    static void add(Order order) {
      OPEN.put(order.id, order);
    }
  }

  /** A map that is never cleared; quotes are garbage of the same class. */
  static class Intake {
    static void accept(long id) {
      Order order = new Order(id); // LEAK map
      Ledger.add(order);
    }
  }

  static class Pricing {
    static long quote(long id) {
      Order order = new Order(id); // GARBAGE map
      sink = order;
      return order.price;
    }
  }

  /** Listeners that are never removed. */
  static class Bus {
    final List<Subscription> subscriptions = new ArrayList<>();

    void subscribe(long id) {
      subscriptions.add(new Subscription(id)); // LEAK list
    }
  }

  static class Subscription extends Order {
    Subscription(long id) {
      super(id);
    }
  }

  /** Buffers of a thread of a pool; others of the same class, which are larger, are garbage. */
  static class Scratch {
    static final ThreadLocal<List<byte[]>> BUFFERS = ThreadLocal.withInitial(ArrayList::new);

    static void keep() {
      BUFFERS.get().add(new byte[1000]); // LEAK local
    }

    static int checksum(long id) {
      byte[] buffer = new byte[3000]; // GARBAGE local
      buffer[(int) (id % buffer.length)] = 1;
      sink = buffer;
      return buffer[7];
    }
  }

  /** A cache without a bound: the class that holds it also makes the garbage. */
  static class SessionCache {
    static final SessionCache INSTANCE = new SessionCache();
    private final Map<String, Session> sessions = new ConcurrentHashMap<>();

    Session load(String key, long id) {
      return sessions.computeIfAbsent(key, absent -> new Session(id)); // LEAK cache
    }

    boolean probe(String key, long id) {
      Session session = new Session(id); // GARBAGE cache
      sink = session;
      return sessions.containsKey(key) && session.id > 0;
    }
  }

  static class Session extends Order {
    final long[] marks = new long[4];

    Session(long id) {
      super(id);
    }
  }

  static volatile Object sink;
  static final Bus BUS = new Bus();

  /** Other work: characters, lists, boxes. */
  static void other(long id) {
    List<Object> list = new ArrayList<>();
    for (int i = 0; i < 40; i++) {
      list.add(new StringBuilder(100).append(id).append(i));
    }
    sink = list;
  }

  static void leak(String kind, long id) {
    switch (kind) {
      case "map" -> Intake.accept(id);
      case "list" -> BUS.subscribe(id);
      case "local" -> Scratch.keep();
      case "cache" -> SessionCache.INSTANCE.load("session " + id, id);
      default -> throw new IllegalArgumentException(kind);
    }
  }

  static void garbage(String kind, long id) {
    switch (kind) {
      case "map" -> Pricing.quote(id);
      case "local" -> Scratch.checksum(id);
      case "cache" -> SessionCache.INSTANCE.probe("session " + id, id);
      default -> { }
    }
  }

  static void run(String kind, int seconds, long bytesPerSecond) {
    // Bytes that one object keeps alive, and the number of garbage objects for each.
    int bytes = kind.equals("local") ? 1016 : kind.equals("cache") ? 220 : 110;
    long perSecond = bytesPerSecond / bytes;
    long start = System.nanoTime();
    long id = 0;
    while (System.nanoTime() - start < seconds * 1_000_000_000L) {
      long due = (System.nanoTime() - start) / 1000 * perSecond / 1_000_000;
      for (; id < due; id++) {
        leak(kind, id);
        for (int i = 0; i < 5; i++) {
          garbage(kind, id);
        }
        if (id % (6000 / bytes + 1) == 0) {
          for (int i = 0; i < 12; i++) {
            other(id);
          }
        }
      }
      try {
        Thread.sleep(2);
      } catch (InterruptedException interrupted) {
        return;
      }
    }
  }

  public static void main(String[] arguments) throws Exception {
    String kind = arguments[0];
    int seconds = Integer.parseInt(arguments[1]);
    long bytes = arguments.length > 2 ? Long.parseLong(arguments[2]) : 6_000_000;
    Thread worker = new Thread(() -> {
      run(kind, seconds, bytes);
      System.out.println("READY");
      System.out.flush();
      try {
        Thread.sleep(600_000);
      } catch (InterruptedException interrupted) {
        // The end.
      }
    }, "worker-1");
    worker.start();
    worker.join();
  }
}
