/** System.exit in the static initialiser of the main class. Exit code 7. */
public class InitExit {
    static {
        Object[] kept = new Object[1000];
        for (int i = 0; i < kept.length; i++) {
            kept[i] = new int[i];
        }
        System.exit(7);
    }

    public static void main(String[] args) {
        throw new AssertionError("not reached");
    }
}
