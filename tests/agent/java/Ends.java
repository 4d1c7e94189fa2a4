/** Ends in the way that its argument says. */
public class Ends {
  static Object kept;
  static class Stopping { static { if (kept != null) System.exit(9); } static void touch() { } }
  public static void main(String[] args) throws Exception {
    kept = new int[10];
    switch (args[0]) {
      case "exit": System.exit(7); break;
      case "throw": throw new IllegalStateException("on purpose");
      case "halt": Runtime.getRuntime().halt(5); break;
      case "initialiser": Stopping.touch(); break;
      case "hook": Runtime.getRuntime().addShutdownHook(new Thread(() -> kept = new long[1000])); System.exit(3); break;
      case "wait": System.out.println("READY"); while (System.in.read() >= 0) { } break;
      case "many":
        Object[] all = new Object[Integer.parseInt(args[1])]; kept = all;
        for (int i = 0; i < all.length; i++) all[i] = new Object();
        System.out.println("READY"); while (System.in.read() >= 0) { } break;
      default: break;
    }
  }
}
