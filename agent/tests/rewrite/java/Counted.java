import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;

/** Uses a little of java.base and prints what the tracker counted. */
public final class Counted {
    public static void main(String[] args) throws Exception {
        Class<?> tracker = Class.forName("java.lang.HprofTracker");
        int[] entries = (int[]) tracker.getField("entries").get(null);
        int[] exits = (int[]) tracker.getField("exits").get(null);
        var pool = Executors.newFixedThreadPool(4);
        List<Future<String>> results = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            int n = i;
            results.add(pool.submit(() -> String.format("%d %s", n, List.of(n, 2.5, "x").stream()
                    .map(Object::toString).collect(Collectors.joining("+")))));
        }
        for (Future<String> result : results) {
            System.out.println(result.get());
        }
        pool.shutdown();
        pool.awaitTermination(1, java.util.concurrent.TimeUnit.MINUTES);
        long entered = 0;
        long left = 0;
        for (int i = 0; i < entries.length; i++) {
            entered += entries[i];
            left += exits[i];
        }
        System.out.println("entered " + entered);
        System.out.println("left " + left);
    }
}
