/** Runtime.halt while other threads allocate. Exit code 9. */
public class Halt {
    static volatile Object sink;

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 4; i++) {
            new Thread(() -> {
                while (true) {
                    sink = new long[] {1, 2, 3};
                }
            }).start();
        }
        Thread.sleep(Long.parseLong(args[0]) / 2);
        Runtime.getRuntime().halt(9);
    }
}
