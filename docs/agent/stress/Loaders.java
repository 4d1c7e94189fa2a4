import java.io.InputStream;
import java.lang.reflect.Proxy;

/** Classes of loaders of their own, which are unloaded again; proxies and lambdas. Exit code 0. */
public class Loaders {
    public static class Loaded implements Runnable {
        static final Object[] HELD = new Object[100];
        final Runnable lambda = () -> HELD[1] = "loaded".repeat(3);

        public void run() {
            for (int i = 0; i < HELD.length; i++) {
                HELD[i] = new int[i];
            }
            lambda.run();
        }
    }

    static class Own extends ClassLoader {
        final byte[] bytes;

        Own(byte[] bytes) {
            super(Loaders.class.getClassLoader());
            this.bytes = bytes;
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.equals("Loaders$Loaded")) {
                return super.loadClass(name, resolve);
            }
            Class<?> known = findLoadedClass(name);
            return known != null ? known : defineClass(name, bytes, 0, bytes.length);
        }
    }

    public static void main(String[] args) throws Exception {
        byte[] bytes;
        try (InputStream in = Loaders.class.getResourceAsStream("Loaders$Loaded.class")) {
            bytes = in.readAllBytes();
        }
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000;
        Thread[] threads = new Thread[3];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> load(bytes, end));
            threads[i].start();
        }
        while (System.nanoTime() < end) {
            Thread.sleep(50);
            System.gc();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    static void load(byte[] bytes, long end) {
        while (System.nanoTime() < end) {
            try {
                ClassLoader loader = new Own(bytes);
                ((Runnable) loader.loadClass("Loaders$Loaded").getConstructor().newInstance()).run();
                Proxy.newProxyInstance(loader, new Class<?>[] {Runnable.class}, (p, m, a) -> null).hashCode();
            } catch (NullPointerException expected) {
                // hashCode of the proxy is null.
            } catch (ReflectiveOperationException error) {
                throw new IllegalStateException(error);
            }
        }
    }
}
