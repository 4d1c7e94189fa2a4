import java.util.concurrent.CountDownLatch;

/** System.exit of many threads at once, with hooks that allocate. Exit code 5. */
public class ManyExits {
    static volatile Object sink;

    public static void main(String[] args) throws Exception {
        CountDownLatch go = new CountDownLatch(1);
        for (int i = 0; i < 4; i++) {
            Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                for (int n = 0; n < 1000; n++) {
                    sink = new int[n];
                }
                new Thread(() -> sink = "late").start();
            }));
        }
        for (int i = 0; i < 40; i++) {
            new Thread(() -> {
                try {
                    go.await();
                } catch (InterruptedException interrupted) {
                    return;
                }
                System.exit(5);
            }).start();
        }
        Thread.sleep(Long.parseLong(args[0]) / 4);
        go.countDown();
        while (true) {
            sink = new byte[100];
        }
    }
}
