import java.util.ArrayList;
import java.util.List;

/** OutOfMemoryError, caught a few times and then not. Run with a small heap. Exit code 1. */
public class OutOfMemory {
    public static void main(String[] args) {
        for (int i = 0; i < 3; i++) {
            try {
                fill();
            } catch (OutOfMemoryError expected) {
                // Again.
            }
        }
        fill();
    }

    static void fill() {
        List<Object> all = new ArrayList<>();
        while (true) {
            all.add(new Object[] {new int[2000], "x"});
        }
    }
}
