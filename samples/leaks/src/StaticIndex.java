package orders;

import java.util.HashMap;
import java.util.Map;

/** Dies of OutOfMemoryError inside HashMap.put; the map is in a static field, its table a local of the dying thread as well. */
public class StaticIndex {
    static final Map<Long, Receipt> BY_NUMBER = new HashMap<>();

    public static void main(String[] args) throws InterruptedException {
        Thread thread = new Thread(StaticIndex::fill, "receipt-import");
        thread.setUncaughtExceptionHandler((t, error) -> BY_NUMBER.clear());
        thread.start();
        thread.join();
    }

    static void fill() {
        for (long number = 1;; number++) {
            BY_NUMBER.put(number, new Receipt());
        }
    }

    static class Receipt {
        final byte[] text = new byte[200];
    }
}
