/** Exceptions that nobody catches, in threads and in main. Exit code 1. */
public class Uncaught {
    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 500_000;
        while (System.nanoTime() < end) {
            Thread thread = new Thread(() -> {
                throw new IllegalStateException("as it should be");
            });
            thread.setUncaughtExceptionHandler((t, e) -> e.getStackTrace());
            thread.start();
            thread.join();
        }
        throw new IllegalStateException("as it should be");
    }
}
