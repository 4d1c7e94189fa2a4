import java.nio.file.Files;
import java.nio.file.Path;

/** Loads and links, and so verifies, all classes whose names are in a file; prints those that fail, and why. */
public final class LoadAll {
    public static void main(String[] args) throws Exception {
        ClassLoader loader = ClassLoader.getSystemClassLoader();
        int linked = 0;
        for (String name : Files.readAllLines(Path.of(args[0]))) {
            try {
                // Reading its constructors links a class, and does not initialize it.
                Class.forName(name, false, loader).getDeclaredConstructors();
                linked++;
            } catch (NoClassDefFoundError missing) {
                // Which of several is missing first depends on addresses in the JVM: it orders methods by them.
                System.out.println(name + " NoClassDefFoundError");
            } catch (Throwable failed) {
                System.out.println(name + " " + failed.toString().lines().findFirst().get());
            }
        }
        System.out.println("linked " + linked);
    }
}
