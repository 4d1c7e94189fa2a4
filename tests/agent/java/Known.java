import java.lang.reflect.Array;
import java.util.function.IntSupplier;

/** Allocates known numbers of objects in every way that Java has, keeps all of them, and waits for nothing. */
public class Known {
  static class Small { int a; }
  static class Wide { long a, b, c, d; Object o; }
  static class Copied implements Cloneable { long x; Object copy() throws Exception { return clone(); } }
  static class Made { public Made() { } }
  static class Outer { final Small inner = new Small(); }
  static Object[] keep;
  static int kept;

  static void keep(Object o) { keep[kept++] = o; }

  static void small(int n) {
    for (int i = 0; i < n; i++)
      keep(new Small()); // SMALL
  }
  static void wide(int n) { for (int i = 0; i < n; i++) keep(new Wide()); }
  static void nested(int n) { for (int i = 0; i < n; i++) keep(new Outer()); }
  static void primitives(int n) {
    for (int i = 0; i < n; i++) {
      keep(new boolean[3]); keep(new byte[5]); keep(new char[7]); keep(new short[9]);
      keep(new int[11]); keep(new long[13]); keep(new float[15]); keep(new double[17]);
    }
  }
  static void objects(int n) { for (int i = 0; i < n; i++) { keep(new Small[4]); keep(new Object[6]); } }
  static void large(int n) { for (int i = 0; i < n; i++) keep(new long[20000]); }
  static void multi(int n) { for (int i = 0; i < n; i++) keep(new int[3][4]); }
  static void jagged(int n) { for (int i = 0; i < n; i++) keep(new Small[2][3][]); }
  static void reflected(int n) throws Exception {
    for (int i = 0; i < n; i++) keep(Made.class.getConstructor().newInstance());
  }
  static void arrays(int n) { for (int i = 0; i < n; i++) keep(Array.newInstance(Wide.class, 5)); }
  static void cloned(int n) throws Exception {
    Copied one = new Copied();
    for (int i = 0; i < n; i++) keep(one.copy());
  }
  static void copies(int n) { short[] one = new short[100]; for (int i = 0; i < n; i++) keep(one.clone()); }
  static void lambdas(int n) {
    for (int i = 0; i < n; i++) { int j = i; IntSupplier s = () -> j; keep(s); }
  }
  static void boxed(int n) { for (int i = 0; i < n; i++) { Long l = i + 1000L; keep(l); } }
  static char[] characters() { return "of own characters".toCharArray(); }
  static void strings(int n) {
    char[] own = characters();
    for (int i = 0; i < n; i++) keep(new String(own));
  }

  public static void main(String[] args) throws Exception {
    int n = Integer.parseInt(args[0]);
    keep = new Object[n * 32];
    small(n); wide(n); nested(n); primitives(n); objects(n); large(n / 20); multi(n); jagged(n); reflected(n);
    arrays(n); cloned(n); copies(n); lambdas(n); boxed(n); strings(n);
    System.out.println("kept " + kept);
  }
}
