/** Monitors that many threads want, wait for and notify. Exit code 0. */
public class Contend {
    static final Object[] LOCKS = {new Object(), new StringBuilder(), Contend.class};
    static long count;

    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000;
        Thread[] threads = new Thread[12];
        for (int i = 0; i < threads.length; i++) {
            int mine = i;
            threads[i] = new Thread(() -> run(mine, end));
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    static void run(int mine, long end) {
        try {
            for (int i = mine; System.nanoTime() < end; i++) {
                Object lock = LOCKS[i % LOCKS.length];
                synchronized (lock) {
                    count++;
                    if (i % 7 == 0) {
                        lock.wait(1);
                    } else if (i % 5 == 0) {
                        lock.notifyAll();
                        Thread.sleep(1);
                    }
                }
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
