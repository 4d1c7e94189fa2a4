import java.nio.ByteBuffer;
import java.util.*;

/** Direct buffers that are kept, and threads that wait. */
public class Memory {
    static final List<ByteBuffer> KEPT = new ArrayList<>();

    public static void main(String[] a) throws Exception {
        for (int turn = 0; turn < Integer.parseInt(a[0]); turn++) {
            KEPT.add(ByteBuffer.allocateDirect(1 << 20));
            if (turn % 10 == 0) {
                Thread t = new Thread(() -> { try { Thread.sleep(60_000); } catch (InterruptedException e) { } }, "waits");
                t.setDaemon(true);
                t.start();
                System.gc();
            }
            Thread.sleep(100);
        }
    }
}
