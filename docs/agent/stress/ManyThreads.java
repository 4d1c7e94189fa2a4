import java.util.concurrent.CountDownLatch;

/** 10,000 platform threads at once. Exit code 0. */
public class ManyThreads {
    public static void main(String[] args) throws Exception {
        int count = 10_000;
        CountDownLatch started = new CountDownLatch(count);
        CountDownLatch end = new CountDownLatch(1);
        for (int i = 0; i < count; i++) {
            Thread thread = new Thread(null, () -> {
                Object mine = new Object();
                started.countDown();
                try {
                    end.await();
                } catch (InterruptedException interrupted) {
                    mine = null;
                }
            }, "t" + i, 128 * 1024);
            thread.start();
        }
        started.await();
        Thread.sleep(Long.parseLong(args[0]) / 4);
        end.countDown();
    }
}
