import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.function.Function;
import java.util.function.IntUnaryOperator;
import java.util.function.Supplier;

/** Every kind of code that a compiler generates. Each method in this source counts its calls. */
public final class Constructs implements Runnable {
    private static final int[] TABLE = new int[4];

    static {
        Calls.here();
        TABLE[3] = 7;
    }

    private int field;

    public Constructs() {
        Calls.here();
    }

    @Override
    public void run() {
        Calls.here();
        expect(loopAtStart(5), 15);
        expect(nested(6), 12);
        expect(finallyReturns(3), 103);
        expect(finallyReturns(-3), 97);
        for (int i = -2; i < 70; i++) {
            expect(table(i), i >= 0 && i < 8 ? i * i : -1);
            expect(paddedTable(i, 1), i >= 0 && i < 4 ? i + 1 : 1);
            expect(lookup(i * 1000), i >= 0 && i < 5 ? i : -1);
        }
        expect(text("one") + text("two") + text("neither"), 3);
        expect((int) wide(3L, 2.5), 5);
        expect((int) floating(2f), 3);
        expect(guarded(4), 5);
        expect(locked(4), 9);
        expectThrown(() -> thrower(1), "thrown 1");
        expectThrown(() -> rethrower(2), "rethrown thrown 2");
        expectThrown(() -> unguarded(3), "thrown 3");
        expectThrown(() -> lockedThrower(4), "thrown 4");
        expectThrown(() -> new Failing(1), "after 1");
        expectThrown(() -> new Failing(-1), "before -1");
        expectThrown(() -> failInside(), "after 9");
        expectThrown(() -> new Outer.Inner(), "after 5");
        expect(new Failing(0).value, 0);
        expect(caught(), 2);
        expect(lambdas(3), 3 + 4 + 6);
        expect(this.<Integer>generic(List.of(3, 1, 2), Comparator.naturalOrder()), 1);
        expect(new Point(3, 4).sum(), 7);
        expectThrown(() -> new Point(-1, 0), "negative");
        expect(new Point(1, 2).equals(new Point(1, 2)) ? 1 : 0, 1);
        expect(new Point(1, 2).toString().length(), 15);
        expect(Shape.square(3), 9);
        expect(((Shape) () -> 4).twice(), 8);
        expect(Color.GREEN.next().ordinal(), 2);
        expect(matched("abc") + matched(5) + matched(null), 8);
        expect(conditional(1, null) + conditional(2, "ab"), 3);
        expect(recursive(10), 55);
        expect(new Bridge().compareTo(new Bridge()), 0);
        expect(((Comparable<Bridge>) new Bridge()).compareTo(null), 0);
        expect(varied(1, 2, 3), 6);
        expect(newInBranch(true).length() + newInBranch(false).length(), 5);
        expect(manyLocals(), 300);
        noReturn(3);
        expect(field, 3);
        expect(closed().size(), 2);
    }

    static void expect(int found, int expected) {
        Calls.here();
        if (found != expected) {
            throw new AssertionError(found + " is not " + expected);
        }
    }

    static void expectThrown(Runnable body, String message) {
        Calls.here();
        try {
            body.run();
        } catch (RuntimeException thrown) {
            if (!message.equals(thrown.getMessage())) {
                throw new AssertionError(thrown);
            }
            return;
        }
        throw new AssertionError("not thrown: " + message);
    }

    /** The branch back leads to the first instruction, except for the count, which is in the condition. */
    static int loopAtStart(int n) {
        while (n + Calls.here() > 0) {
            n = n - 1;
            if (n == 0) {
                return spin(5) + 15;
            }
            Calls.calls.merge("Constructs.loopAtStart", -1, Integer::sum);
        }
        return -1;
    }

    /** A loop at offset 0. Does not count its calls. */
    static int spin(int n) {
        while (n > 0) {
            n--;
        }
        return n;
    }

    static int nested(int n) {
        Calls.here();
        int found = 0;
        outer:
        for (int i = 0; ; i++) {
            for (int j = 0; j < i; j++) {
                if (i * j > n) {
                    break outer;
                }
                if (j == 2) {
                    continue outer;
                }
                found += j + 1;
            }
        }
        do {
            found++;
        } while (found % 4 != 0);
        return found;
    }

    int finallyReturns(int n) {
        Calls.here();
        int result = 100;
        try {
            if (n < 0) {
                throw new IllegalArgumentException();
            }
            result += n;
            return result;
        } catch (IllegalArgumentException negative) {
            result += n;
            return result;
        } finally {
            field++;
            try {
                field += Integer.parseInt("x");
            } catch (NumberFormatException expected) {
                field--;
            } finally {
                field = 0;
            }
        }
    }

    static int table(int n) {
        Calls.here();
        switch (n) {
            case 0: return 0;
            case 1: return 1;
            case 2: return 4;
            case 3: return 9;
            case 4: return 16;
            case 5: return 25;
            case 6: return 36;
            case 7: return 49;
            default: return -1;
        }
    }

    static int paddedTable(int n, int m) {
        int result = Calls.here() + m;
        switch (n) {
            case 0: break;
            case 1: result += 1; break;
            case 2: result += 1;
            case 3:
                switch (n) {
                    case 2: result++; break;
                    case 3: result += 3; break;
                    case 4: return -5;
                }
        }
        return result;
    }

    static int lookup(int n) {
        Calls.here();
        switch (n) {
            case 0: return 0;
            case 1000: return 1;
            case 2000: return 2;
            case 3000: return 3;
            case 4000: return 4;
        }
        return -1;
    }

    static int text(String s) {
        Calls.here();
        switch (s) {
            case "one": return 1;
            case "two": return 2;
            default: return 0;
        }
    }

    static double wide(long a, double b) {
        Calls.here();
        return a > 2 ? plus(a, b) - 0.5 : b;
    }

    static double plus(long a, double b) {
        Calls.here();
        return a + b;
    }

    static float floating(float a) {
        Calls.here();
        return a + 1.5f;
    }

    synchronized int guarded(int n) {
        Calls.here();
        return n + 1;
    }

    int locked(int n) {
        Calls.here();
        synchronized (this) {
            if (n > 3) {
                synchronized (TABLE) {
                    return n + 5;
                }
            }
        }
        return n;
    }

    static int thrower(int n) {
        Calls.here();
        throw new IllegalStateException("thrown " + n);
    }

    static int rethrower(int n) {
        Calls.here();
        try {
            return thrower(n);
        } catch (IllegalStateException thrown) {
            throw new RuntimeException("rethrown " + thrown.getMessage(), thrown);
        }
    }

    static int unguarded(int n) {
        Calls.here();
        return 1 + thrower(n);
    }

    synchronized int lockedThrower(int n) {
        Calls.here();
        synchronized (TABLE) {
            return 1 + thrower(n);
        }
    }

    static int caught() {
        Calls.here();
        int count = 0;
        for (int i = 0; i < 4; i++) {
            try {
                if (i % 2 == 0) {
                    thrower(i);
                }
                TABLE[i + 4 * (i % 2)]++;
            } catch (IllegalStateException | ArrayIndexOutOfBoundsException e) {
                if (e instanceof IllegalStateException) {
                    count++;
                }
            }
        }
        return count;
    }

    static void failInside() {
        Calls.here();
        try {
            new Failing(8);
        } catch (IllegalStateException e) {
            new Failing(9);
        }
    }

    static class Base {
        final int value;

        Base(int value) {
            Calls.here();
            this.value = value;
        }
    }

    static class Failing extends Base {
        Failing(int n) {
            super(n + Calls.here() + check(n));
            if (n > 0) {
                try {
                    thrower(n);
                } catch (IllegalStateException e) {
                    throw new IllegalStateException("after " + n, e);
                } finally {
                    TABLE[0]++;
                }
            }
            if (n == 0) {
                return;
            }
            TABLE[1]++;
        }

        static int check(int n) {
            Calls.here();
            if (n < 0) {
                throw new IllegalStateException("before " + n);
            }
            return 0;
        }
    }

    static class Outer {
        final Failing failing;

        Outer(boolean fails) {
            Calls.here();
            failing = fails ? new Failing(5) : null;
        }

        static class Inner extends Outer {
            Inner() {
                super(Calls.here() == 0);
            }
        }
    }

    static int lambdas(int n) {
        Calls.here();
        IntUnaryOperator plus = i -> {
            Calls.here();
            return i + 1;
        };
        Supplier<Function<Integer, Integer>> nested = () -> {
            Calls.here();
            return i -> {
                Calls.here();
                return i * 2 + n - n;
            };
        };
        IntUnaryOperator reference = Constructs::identity;
        return reference.applyAsInt(n) + plus.applyAsInt(n) + nested.get().apply(n);
    }

    static int identity(int n) {
        Calls.here();
        return n;
    }

    <T> T generic(List<T> values, Comparator<? super T> order) {
        Calls.here();
        List<T> sorted = new ArrayList<>(values);
        sorted.sort(order);
        for (T value : sorted) {
            return value;
        }
        return null;
    }

    record Point(int x, int y) {
        Point {
            Calls.here();
            if (x < 0) {
                throw new IllegalArgumentException("negative");
            }
        }

        int sum() {
            Calls.here();
            return x() + y();
        }
    }

    interface Shape {
        int size();

        static int square(int n) {
            Calls.here();
            return n * n;
        }

        default int twice() {
            Calls.here();
            return hidden() * 2;
        }

        private int hidden() {
            Calls.here();
            return size();
        }
    }

    enum Color {
        RED, GREEN, BLUE {
            @Override
            Color next() {
                Calls.here();
                return RED;
            }
        };

        Color next() {
            Calls.here();
            return values()[ordinal() + 1];
        }
    }

    static int matched(Object o) {
        Calls.here();
        if (o instanceof String s && s.length() > 2) {
            return s.length();
        } else if (o instanceof Integer i) {
            return i;
        }
        return 0;
    }

    static int conditional(int n, String s) {
        Calls.here();
        return n > 1 && s != null || s == null && n < 0 ? s.length() : s == null ? n : -n;
    }

    static int recursive(int n) {
        Calls.here();
        return n == 0 ? 0 : n + recursive(n - 1);
    }

    static class Bridge implements Comparable<Bridge> {
        @Override
        public int compareTo(Bridge other) {
            Calls.here();
            return 0;
        }
    }

    static int varied(int... values) {
        Calls.here();
        return Arrays.stream(values).sum();
    }

    /** Frames with uninitialized objects. */
    static String newInBranch(boolean first) {
        Calls.here();
        return new String(first ? new String(new char[] {'a', first ? 'b' : 'c'}) : new String(first ? "" : "abc"));
    }

    /** Instructions with `wide`. */
    static int manyLocals() {
        Calls.here();
        LOCALS
        wideLocal += 290;
        return wideLocal;
    }

    void noReturn(int n) {
        Calls.here();
        field = n;
    }

    static List<String> closed() {
        Calls.here();
        List<String> log = new ArrayList<>();
        try (AutoCloseable a = () -> log.add("closed"); AutoCloseable b = null) {
            log.add("open");
        } catch (Exception e) {
            throw new AssertionError(e);
        }
        return log;
    }
}
