import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;

/** Does what the lines of its input say, says so, and ends with its input. */
public class Again {
  static class Leaf { int value; Leaf(int value) { this.value = value; } }
  static class Timed { static int run(int value) { return value + 1; } }
  static List<Leaf> kept = new ArrayList<>(10000);
  static volatile Object garbage;
  static int sum;

  static void first() { for (int i = 0; i < 1000; i++) kept.add(new Leaf(i)); }
  static void second() { for (int i = 0; i < 500; i++) kept.add(new Leaf(i)); }
  static void warm() { for (int i = 0; i < 64; i++) garbage = new byte[1 << 20]; }
  static void timed() { for (int i = 0; i < 10; i++) sum = Timed.run(sum); }

  public static void main(String[] args) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    System.out.println("READY");
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      switch (line) {
        case "first": first(); break;
        case "second": second(); break;
        case "warm": warm(); break;
        case "timed": timed(); break;
        default: throw new IllegalArgumentException(line);
      }
      System.out.println("DONE " + line);
    }
  }
}
