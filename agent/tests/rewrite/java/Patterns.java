import java.util.List;

/** Code of recent compilers: switches over patterns. */
public final class Patterns implements Runnable {
    sealed interface Node permits Leaf, Pair {}

    record Leaf(int value) implements Node {}

    record Pair(Node left, Node right) implements Node {}

    public Patterns() {
        Calls.here();
    }

    @Override
    public void run() {
        Calls.here();
        int sum = sum(new Pair(new Pair(new Leaf(1), new Leaf(2)), new Leaf(3)));
        String kinds = List.of(kind("a"), kind(""), kind(3), kind(-3), kind(2L)).toString();
        if (sum != 6 || !kinds.equals("[text, empty, positive, number, other]") || !kind(null).equals("null")) {
            throw new AssertionError(sum + kinds);
        }
    }

    static int sum(Node node) {
        Calls.here();
        return switch (node) {
            case Leaf leaf -> leaf.value();
            case Pair(Leaf(int one), Leaf(int two)) -> one + two;
            case Pair(Node left, Node right) -> sum(left) + sum(right);
        };
    }

    static String kind(Object o) {
        Calls.here();
        return switch (o) {
            case null -> "null";
            case String s when s.isEmpty() -> "empty";
            case String s -> "text";
            case Integer i when i > 0 -> "positive";
            case Integer i -> "number";
            default -> "other";
        };
    }
}
