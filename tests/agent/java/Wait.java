/** Keeps objects of own classes, makes garbage of some, and waits for the end of its input. */
public class Wait {
  static class Leaf { int value; Leaf(int value) { this.value = value; } }
  static class Every {
    boolean z = true; byte b = -7; char c = '\u20ac'; short s = -12345; int i = 0x12345678; long l = 0x123456789abcdefL;
    float f = 1.5f; double d = -0.25; Object o = "text of Every"; static int count = 41; static Object held = new Leaf(77);
  }
  static boolean[] booleans = { true, false, true };
  static byte[] bytes = { -128, 0, 127 };
  static char[] chars = { 'a', '\u20ac' };
  static short[] shorts = { -32768, 32767 };
  static int[] ints = { -2147483648, 2147483647, 3 };
  static long[] longs = { -9223372036854775808L, 9223372036854775807L };
  static float[] floats = { 1.5f, -2.25f };
  static double[] doubles = { 3.25, -1e300 };
  static Leaf[] leaves = new Leaf[100];
  static Every every = new Every();
  static Object[] keep = new Object[3000];

  static void fill() {
    for (int i = 0; i < leaves.length; i++) leaves[i] = new Leaf(i); // LEAVES
    for (int i = 0; i < keep.length; i++) keep[i] = new long[i % 7]; // LONGS
    for (int i = 0; i < keep.length; i += 2) keep[i] = "number " + i;
  }
  public static void main(String[] args) throws Exception {
    fill();
    System.out.println("READY");
    while (System.in.read() >= 0) { }
  }
}
