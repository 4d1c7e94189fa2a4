/** Starts other processes while threads allocate. Exit code 3. */
public class Fork {
    static volatile Object sink;

    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000;
        Thread thread = new Thread(() -> {
            while (true) {
                sink = new byte[500];
            }
        });
        thread.setDaemon(true);
        thread.start();
        do {
            int code = new ProcessBuilder("true").inheritIO().start().waitFor();
            if (code != 0) {
                throw new IllegalStateException("exit code " + code);
            }
        } while (System.nanoTime() < end);
        System.exit(3);
    }
}
