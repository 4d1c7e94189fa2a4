/** Daemon threads that are deadlocked, wait, sleep or spin when main returns. Exit code 0. */
public class Deadlock {
    static volatile long spun;

    public static void main(String[] args) throws Exception {
        Object a = new Object();
        Object b = new Object();
        daemon(() -> both(a, b));
        daemon(() -> both(b, a));
        daemon(() -> {
            while (true) {
                spun++;
            }
        });
        daemon(() -> {
            synchronized (Deadlock.class) {
                try {
                    Deadlock.class.wait();
                } catch (InterruptedException interrupted) {
                    return;
                }
            }
        });
        Thread.sleep(Long.parseLong(args[0]) / 2);
    }

    static void daemon(Runnable run) {
        Thread thread = new Thread(run);
        thread.setDaemon(true);
        thread.start();
    }

    static void both(Object first, Object second) {
        synchronized (first) {
            try {
                Thread.sleep(20);
            } catch (InterruptedException interrupted) {
                return;
            }
            synchronized (second) {
                spun = 0;
            }
        }
    }
}
