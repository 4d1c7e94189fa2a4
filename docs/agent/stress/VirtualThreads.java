import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;

/** Virtual threads that allocate, park, and contend for a monitor. JDK 21 and later. Exit code 0. */
public class VirtualThreads {
    static final AtomicLong SUM = new AtomicLong();
    static final Object LOCK = new Object();

    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000;
        while (System.nanoTime() < end) {
            try (ExecutorService executor = Executors.newVirtualThreadPerTaskExecutor()) {
                for (int i = 0; i < 2000; i++) {
                    executor.submit(VirtualThreads::work);
                }
            }
        }
    }

    static Object work() throws InterruptedException {
        byte[] bytes = new byte[2000];
        Thread.sleep(1);
        synchronized (LOCK) {
            SUM.addAndGet(bytes.length);
        }
        Thread.yield();
        return new Object[] {bytes, "done" + SUM.get()};
    }
}
