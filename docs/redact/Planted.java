import java.io.File;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.LongBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.BitSet;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.UUID;
import java.util.Vector;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicStampedReference;
import java.util.concurrent.atomic.DoubleAdder;
import java.util.concurrent.atomic.LongAccumulator;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.AbstractQueuedSynchronizer;

/**
 * Texts and numbers in the places where programs have them. `planted.txt` lists what `search.py` searches for.
 *
 * <p>Texts are made at run time from two halves, so that no constant contains them, except where that is meant.
 */
public class Planted {
  enum Level { GOLD_QUARTZ_TIER, SILVER }

  static final String LITERAL = "literal-Wombat-71-qzv";
  static final long CARD_CONSTANT = 4929_1234_5678_9017L;
  static final List<Object> HELD = new ArrayList<>();

  static class Account {
    final long card = Long.parseLong("5500005555" + "555559");
    final Long boxed = Long.valueOf("3714496353" + "98431");
    final BigInteger big = new BigInteger("90210442177" + "30091835");
    final double amount = Double.parseDouble("73591.26" + "48");
    final int pin = Integer.parseInt("8305" + "1964");
    final int[] pins = {Integer.parseInt("7402" + "9183"), 5, 6};
    final long[] cards = {1, Long.parseLong("6011000990" + "139424"), 3};
    final Level level = Level.GOLD_QUARTZ_TIER;
  }

  /** A synchronizer of the program. */
  static class Gate extends AbstractQueuedSynchronizer {
    Gate(int state) {
      setState(state);
    }
  }

  /** Numbers in counters, synchronizers, buffers and bits. */
  static void numbers() throws Exception {
    HELD.add(new AtomicInteger(Integer.parseInt("2138" + "926501")));
    HELD.add(new AtomicLong(Long.parseLong("45391488034" + "36402")));
    LongAdder adder = new LongAdder();
    adder.add(Long.parseLong("45391488034" + "36403"));
    HELD.add(adder);
    HELD.add(new LongAccumulator(Long::max, Long.parseLong("45391488034" + "36404")));
    DoubleAdder sum = new DoubleAdder();
    sum.add(Double.parseDouble("84105.73" + "05"));
    HELD.add(sum);
    HELD.add(new Semaphore(Integer.parseInt("2138" + "926506")));
    HELD.add(new CountDownLatch(Integer.parseInt("2138" + "926507")));
    HELD.add(new Gate(Integer.parseInt("2138" + "926508")));
    HELD.add(new Vector<>(1, Integer.parseInt("2138" + "926509")));
    HELD.add(new AtomicIntegerArray(new int[] {Integer.parseInt("2138" + "926510"), 7}));
    HELD.add(new AtomicLongArray(new long[] {Long.parseLong("45391488034" + "36411")}));
    HELD.add(OptionalInt.of(Integer.parseInt("2138" + "926512")));
    HELD.add(OptionalLong.of(Long.parseLong("45391488034" + "36413")));
    HELD.add(new UUID(Long.parseLong("45391488034" + "36414"), 1));
    HELD.add(new Date(Long.parseLong("45391488034" + "36415")));
    HELD.add(BitSet.valueOf(new long[] {Long.parseLong("45391488034" + "36416")}));
    HELD.add(Duration.ofSeconds(Long.parseLong("45391488034" + "36419")));
    HELD.add(new BigDecimal(Long.parseLong("45391488034" + "36420")));
    HELD.add(new AtomicStampedReference<>("x", Integer.parseInt("2138" + "926521")));
    HELD.add(LongBuffer.wrap(new long[] {Long.parseLong("45391488034" + "36422")}));
    long card = Long.parseLong("45391488034" + "36423");
    boolean[] bits = new boolean[64];
    for (int at = 0; at < 64; at++) {
      bits[at] = (card >> at & 1) == 1;
    }
    HELD.add(bits);
  }

  static String text(String where) {
    return new StringBuilder("planted-").append(where).append("-Okapi-").append(where.length()).toString();
  }

  public static void main(String[] arguments) throws Exception {
    numbers();
    HELD.add(LITERAL);
    HELD.add(text("string"));
    HELD.add(text("zażółć-unicode"));
    HELD.add(text("latin-éàü"));
    HELD.add(text("interned").intern());
    HELD.add(new StringBuilder(500).append(text("builder")));
    StringBuilder cut = new StringBuilder(text("builder-that-was-cut"));
    cut.setLength(3);
    HELD.add(cut);
    HELD.add(new StringBuffer(text("buffer")));
    HELD.add(text("chars").toCharArray());
    HELD.add(text("utf8-bytes").getBytes(StandardCharsets.UTF_8));
    HELD.add(text("utf16-big").getBytes(StandardCharsets.UTF_16BE));
    HELD.add(text("utf16-little").getBytes(StandardCharsets.UTF_16LE));
    HELD.add(ByteBuffer.allocate(200).put(7, (byte) 1).put(text("heap-buffer").getBytes(StandardCharsets.UTF_8)));
    HELD.add(CharBuffer.wrap(text("char-buffer").toCharArray()));
    HELD.add(Base64.getEncoder().encodeToString(text("base64").getBytes(StandardCharsets.UTF_8)));
    HELD.add(new File("/home/" + text("path") + "/key.pem"));
    HELD.add(new File("/home/" + text("nio-path")).toPath());
    HELD.add(("a line before\n" + text("line") + "\na line after\n").repeat(400));
    Map<String, Object> map = new HashMap<>();
    map.put(text("key"), text("value"));
    HELD.add(map);
    HELD.add(new Account());
    HELD.add(new IllegalStateException(text("message")));
    System.setProperty("planted.property", text("property"));
    System.setProperty(text("property-name"), "x");
    ThreadLocal<String> local = new ThreadLocal<>();
    local.set(text("thread-local"));
    HELD.add(local);
    Thread thread = new Thread(new ThreadGroup(text("group")), Planted::sleep, text("thread"));
    thread.setDaemon(true);
    thread.start();
    System.out.println("READY");
    System.out.flush();
    sleep();
  }

  static void sleep() {
    try {
      Thread.sleep(3_600_000);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
