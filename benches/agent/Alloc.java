import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * An allocation-heavy load: threads that take orders apart, group them and write them as text, 30 frames deep. Most objects die
 * young, one order in 64 is kept for a while. Arguments: orders per thread, threads.
 */
public class Alloc {
    record Line(String item, long cents, int count) {}

    record Order(long number, String customer, List<Line> lines) {}

    static volatile Object sink;

    public static void main(String[] args) throws Exception {
        int orders = Integer.parseInt(args[0]);
        Thread[] threads = new Thread[Integer.parseInt(args[1])];
        for (int i = 0; i < threads.length; i++) {
            long seed = i + 1;
            threads[i] = new Thread(() -> run(seed, orders), "worker " + i);
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    static void run(long seed, int orders) {
        Order[] kept = new Order[4096];
        long random = seed;
        long checksum = 0;
        for (int i = 0; i < orders; i++) {
            random = random * 6364136223846793005L + 1442695040888963407L;
            Order order = descend(20, random, i);
            if ((i & 63) == 0) {
                kept[(i >> 6) & 4095] = order;
            }
            checksum += text(order).length() + totals(order).size() + compute(random);
        }
        sink = kept.length + checksum;
    }

    /** The stack of a program in a framework. */
    static Order descend(int depth, long random, int number) {
        return depth == 0 ? order(random, number) : descend(depth - 1, random, number);
    }

    static Order order(long random, int number) {
        int count = (int) (random >>> 61) + 2;
        List<Line> lines = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            lines.add(new Line("item-" + ((random >>> i * 3) & 255), (random >>> 20) & 0xffff, i + 1));
        }
        return new Order(number, "customer " + (random >>> 50), lines);
    }

    static Map<String, Long> totals(Order order) {
        Map<String, Long> totals = new HashMap<>();
        for (Line line : order.lines()) {
            totals.merge(line.item(), line.cents() * line.count(), Long::sum);
        }
        return new TreeMap<>(totals);
    }

    static String text(Order order) {
        StringBuilder text = new StringBuilder();
        text.append(order.number()).append(' ').append(order.customer());
        order.lines().stream().map(line -> line.item() + " " + line.cents()).forEach(text::append);
        return text.toString();
    }

    /** What a program does with its objects: so that it allocates 100 to 300 MB/s, not as much as it can. */
    static long compute(long value) {
        long mixed = value;
        for (int i = 0; i < 2000; i++) {
            mixed ^= mixed >>> 33;
            mixed *= 0xff51afd7ed558ccdL;
        }
        return mixed & 1;
    }
}
