/** Runs a rewritten class, and prints the counts. This class is not rewritten. */
public final class Start {
    public static void main(String[] args) throws Exception {
        Runnable program = (Runnable) Class.forName(args[0]).getConstructor().newInstance();
        program.run();
        Calls.calls.forEach((name, count) -> System.out.println("call " + name + " " + count));
        TestTracker.entries.forEach((number, count) -> System.out.println("enter " + number + " " + count));
        TestTracker.wrong.forEach(wrong -> System.out.println("wrong " + wrong));
        TestTracker.stack.forEach(number -> System.out.println("left " + number));
        System.out.println("missed " + TestTracker.missed);
    }
}
