/** Objects of which a known part dies: every third is kept, and of another class all but the last. */
public class Dies {
  static class Kept { long id; Kept(long id) { this.id = id; } }
  static class Last { Object data = new int[8]; }
  static class Gone { int[] data = new int[100]; }
  static Kept[] kept;
  static Last last;
  static volatile Gone gone;

  static void third(int n) {
    kept = new Kept[n];
    for (int i = 0; i < n; i++) {
      Kept k = new Kept(i); // KEPT
      kept[i - i % 3] = k;
    }
  }
  static void last(int n) { for (int i = 0; i < n; i++) last = new Last(); }
  static void gone(int n) { for (int i = 0; i < n; i++) gone = new Gone(); gone = null; }

  public static void main(String[] args) throws Exception {
    int n = Integer.parseInt(args[0]);
    third(n); last(n); gone(n);
    System.out.println("READY");
    if (args.length > 1) while (System.in.read() >= 0) { }
  }
}
