import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Tracker for rewritten classes. Constructors have odd numbers. Single-threaded. */
public final class TestTracker {
    static final ArrayDeque<Integer> stack = new ArrayDeque<>();
    static final Map<Integer, Integer> entries = new TreeMap<>();
    static final List<String> wrong = new ArrayList<>();
    static int missed;

    public static void enter(int number) {
        stack.push(number);
        entries.merge(number, 1, Integer::sum);
    }

    public static void exit(int number) {
        while (!stack.isEmpty()) {
            int top = stack.pop();
            if (top == number) {
                return;
            }
            if (top % 2 == 0) {
                wrong.add("exit of " + number + " in " + top);
            }
            missed++;
        }
        wrong.add("exit of " + number + " without an entry");
    }
}
