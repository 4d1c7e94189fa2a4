import java.util.*;
import java.util.concurrent.locks.LockSupport;

/** One of each event that a recording of Flight Recorder is asked for, with known shares: for samples/flight. */
public class Flight {
    static final Object lock = new Object();
    static volatile long sink;
    static volatile Object last;
    static final List<Object> kept = new ArrayList<>();

    static final class Order {
        final byte[] payload = new byte[1000];
    }

    /** Three quarters of the allocated bytes, none of which stay. */
    static void garbage() {
        for (int i = 0; i < 3000; i++) last = new byte[1000];
    }

    /** A quarter of the allocated bytes, all of which stay. */
    static void orders() {
        for (int i = 0; i < 1000; i++) kept.add(new Order());
    }

    static long three(int n) {
        long hash = 7;
        for (int i = 0; i < 3 * n; i++) hash = hash * 31 + (hash >>> 7);
        return hash;
    }

    static long one(int n) {
        long hash = 7;
        for (int i = 0; i < n; i++) hash = hash * 33 + (hash >>> 5);
        return hash;
    }

    static void enter() {
        synchronized (lock) {
            sink++;
        }
    }

    static void await() throws InterruptedException {
        synchronized (kept) {
            kept.wait(60);
        }
    }

    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]);
        Thread contender = new Thread(Flight::enter, "contender");
        synchronized (lock) {
            contender.start();
            Thread.sleep(100);
        }
        contender.join();
        await();
        LockSupport.parkNanos(lock, 50_000_000);
        for (int round = 0; round < rounds; round++) {
            garbage();
            orders();
            sink += three(2_000_000);
            sink += one(2_000_000);
            if (kept.size() > 20_000) kept.subList(0, 10_000).clear();
        }
        System.out.println("done " + kept.size());
    }
}
