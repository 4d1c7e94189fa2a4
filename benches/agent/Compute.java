/**
 * A computing load: many small methods and loops, no allocation to speak of. A matrix, a sieve, a recursion, and an interpreter of
 * a little machine. Arguments: rounds, threads.
 */
public class Compute {
    static volatile long sink;

    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]);
        Thread[] threads = new Thread[Integer.parseInt(args[1])];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> run(rounds), "worker " + i);
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    static void run(int rounds) {
        double[] a = new double[120 * 120];
        double[] b = new double[120 * 120];
        double[] c = new double[120 * 120];
        boolean[] composite = new boolean[200_000];
        int[] program = {1, 7, 2, 3, 3, 5, 4, 0, 1, 9, 2, 11, 0, 0};
        long sum = 0;
        for (int round = 0; round < rounds; round++) {
            multiply(a, b, c, 120, round);
            sum += (long) c[round % c.length] + sieve(composite) + fibonacci(24) + interpret(program, 300_000);
        }
        sink = sum;
    }

    static void multiply(double[] a, double[] b, double[] c, int n, int round) {
        a[round % a.length] = round;
        b[round * 7 % b.length] = 1;
        for (int row = 0; row < n; row++) {
            for (int column = 0; column < n; column++) {
                c[row * n + column] = dot(a, b, n, row, column);
            }
        }
    }

    static double dot(double[] a, double[] b, int n, int row, int column) {
        double sum = 0;
        for (int i = 0; i < n; i++) {
            sum += a[row * n + i] * b[i * n + column];
        }
        return sum;
    }

    static int sieve(boolean[] composite) {
        java.util.Arrays.fill(composite, false);
        int primes = 0;
        for (int i = 2; i < composite.length; i++) {
            if (!composite[i]) {
                primes++;
                strike(composite, i);
            }
        }
        return primes;
    }

    static void strike(boolean[] composite, int prime) {
        for (long i = (long) prime * prime; i < composite.length; i += prime) {
            composite[(int) i] = true;
        }
    }

    static int fibonacci(int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    }

    static int interpret(int[] program, int steps) {
        int at = 0;
        int value = 1;
        for (int i = 0; i < steps; i++) {
            value = step(program[at], program[at + 1], value);
            at = next(at, program.length);
        }
        return value;
    }

    static int step(int operation, int argument, int value) {
        switch (operation) {
            case 1:
                return add(value, argument);
            case 2:
                return multiply(value, argument);
            case 3:
                return value ^ argument;
            case 4:
                return value >>> 1;
            default:
                return value;
        }
    }

    static int add(int a, int b) {
        return a + b;
    }

    static int multiply(int a, int b) {
        return a * b;
    }

    static int next(int at, int length) {
        return at + 2 < length ? at + 2 : 0;
    }
}
