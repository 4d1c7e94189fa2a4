import java.util.*;

/** Sessions that a cache never lets go. */
public class Leak {
  static class Session { final byte[] buffer; Session() {
    buffer = new byte[8192]; // BUFFER
  } }
  static final Map<Integer, Session> CACHE = new HashMap<>();
  static void remember(int n) {
    for (int i = 0; i < n; i++)
      CACHE.put(i, new Session()); // SESSION
  }
  public static void main(String[] args) throws Exception { remember(2000); }
}
