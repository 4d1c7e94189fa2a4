import java.nio.file.Files;
import java.nio.file.Path;

/** Loads and links, and so verifies, all classes whose names are in a file; prints those that fail, with the reason. */
public final class LoadAll {
    public static void main(String[] args) throws Exception {
        ClassLoader loader = ClassLoader.getSystemClassLoader();
        int linked = 0;
        for (String name : Files.readAllLines(Path.of(args[0]))) {
            try {
                // Reading its constructors links a class without initializing it.
                Class.forName(name, false, loader).getDeclaredConstructors();
                linked++;
            } catch (NoClassDefFoundError missing) {
                // The JVM orders methods by address, so the one of several that is missing first is not deterministic.
                System.out.println(name + " NoClassDefFoundError");
            } catch (Throwable failed) {
                System.out.println(name + " " + failed.toString().lines().findFirst().get());
            }
        }
        System.out.println("linked " + linked);
    }
}
