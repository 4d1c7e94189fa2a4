import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;

/** Threads that allocate objects of several kinds until the time is over. Exit code 0. */
public class Allocate {
    static volatile Object sink;

    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000;
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 6; i++) {
            Thread thread = new Thread(() -> run(end), "allocator " + i);
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    static void run(long end) {
        List<Object> kept = new ArrayList<>();
        while (System.nanoTime() < end) {
            for (int i = 0; i < 200; i++) {
                kept.add(deep(i % 20));
            }
            if (kept.size() > 5000) {
                kept.clear();
            }
        }
        sink = kept;
    }

    static Object deep(int depth) {
        if (depth > 0) {
            return deep(depth - 1);
        }
        HashMap<String, Object> map = new HashMap<>();
        map.put("key" + System.nanoTime(), new int[][] {new int[10], null, new int[0]});
        map.put("text", new String("x").concat("y"));
        sink = new byte[1000];
        return map;
    }
}
