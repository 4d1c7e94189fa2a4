/** StackOverflowError in several threads, caught, and in main at last not. Exit code 1. */
public class Overflow {
    static Object last;

    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 500_000;
        Thread[] threads = new Thread[3];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> {
                while (System.nanoTime() < end) {
                    try {
                        recurse(0);
                    } catch (StackOverflowError expected) {
                        last = expected;
                    }
                }
            });
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        recurse(0);
    }

    static int recurse(int depth) {
        Integer boxed = depth + 1000;
        return recurse(boxed) + boxed;
    }
}
