import java.lang.ref.WeakReference;
import java.util.*;

/**
 * A small heap that shows how a JVM lays out objects: every primitive type in every company, gaps that a superclass leaves,
 * arrays of every type and of every length up to 40, a few references of each kind. Then waits to be dumped.
 * A dump of it is a tenth of HeapZoo's: made for running on many JVMs with many flags.
 */
public class Layouts {
  static class Empty {}
  static class OneByte { byte b = 1; }
  static class ByteInt extends OneByte { int i = 2; byte c = 3; }
  static class LongShortRef extends ByteInt { long l = 4; short s = 5; Object o = this; }
  static class Mixed extends LongShortRef { boolean z = true; char ch = 'x'; float f = 1.5f; double d = 2.5; Object p = "p"; byte last = 6; }
  static class OneLong { long l = 7; }
  static class LongByte extends OneLong { byte b = 8; }
  static class LongByteRef extends LongByte { Object r = "r"; }
  static class OneInt { int i = 9; }
  static class IntLong extends OneInt { long l = 10; }
  static class IntLongInt extends IntLong { int j = 11; }
  static class OneRef { Object r = "one"; }
  static class RefLong extends OneRef { long l = 12; }
  static class RefRefShort extends OneRef { Object s; short t = 13; }
  static class Shorts { short a = 14, b = 15, c = 16; }
  static class ShortsChars extends Shorts { char x = 'a', y = 'b', z = 'c'; boolean end = true; }
  static class ThreeBytes { byte a = 17, b = 18, c = 19; }
  static class ThreeBytesInt extends ThreeBytes { int i = 20; }
  static class ThreeBytesDouble extends ThreeBytes { double d = 21; }
  static class Deep1 { boolean a; } static class Deep2 extends Deep1 { boolean b; } static class Deep3 extends Deep2 { boolean c; }
  static class Deep4 extends Deep3 { boolean d; } static class Deep5 extends Deep4 { boolean e; } static class Deep6 extends Deep5 { long f; }
  enum Color { RED, GREEN, BLUE }

  static final List<Object> KEEP = new ArrayList<Object>();
  static Object garbage;

  public static void main(String[] args) throws Exception {
    for (int i = 0; i < 20; i++) {
      Collections.addAll(KEEP, new Empty(), new OneByte(), new ByteInt(), new LongShortRef(), new Mixed(), new OneLong(), new LongByte(), new LongByteRef(), new OneInt(), new IntLong(),
          new IntLongInt(), new OneRef(), new RefLong(), new RefRefShort(), new Shorts(), new ShortsChars(), new ThreeBytes(), new ThreeBytesInt(), new ThreeBytesDouble(),
          new Deep1(), new Deep2(), new Deep3(), new Deep4(), new Deep5(), new Deep6(), Color.values()[i % 3], new WeakReference<Object>(KEEP), new HashMap<String, Integer>(Collections.singletonMap("key " + i, i)));
    }
    for (int n = 0; n <= 40; n++) {
      Collections.addAll(KEEP, new boolean[n], new char[n], new float[n], new double[n], new byte[n], new short[n], new int[n], new long[n], new Object[n], new String[n][], new Color[n]);
    }
    for (int i = 0; i < 10; i++) { Object[] pair = new Object[2]; pair[0] = pair; pair[1] = new Mixed(); garbage = pair; }
    garbage = null;
    Thread waiting = new Thread("waiting") { public void run() { byte[] onlyOnMyStack = new byte[4321]; try { Thread.sleep(600000); } catch (InterruptedException e) { } System.out.println(onlyOnMyStack.length); } };
    waiting.setDaemon(true); waiting.start(); Thread.sleep(100);
    System.out.println("READY"); System.out.flush(); Thread.sleep(600000);
  }
}
