import java.nio.ByteBuffer;
import java.util.*;
import java.util.zip.*;

/** Native memory: inflaters that are closed, and direct buffers of which one of four is kept. */
public class Native {
    static final List<ByteBuffer> KEPT = new ArrayList<>();

    static void kept() { KEPT.add(ByteBuffer.allocateDirect(64 << 10)); }

    static void dropped() { ByteBuffer.allocateDirect(32 << 10); }

    static void closed() { new Inflater().end(); new Deflater().end(); }

    public static void main(String[] a) throws Exception {
        for (int turn = 0; turn < Integer.parseInt(a[0]); turn++) {
            kept();
            for (int i = 0; i < 3; i++) dropped();
            closed();
            if (turn % 50 == 0) System.gc();
            Thread.sleep(5);
        }
        System.out.println(KEPT.size());
    }
}
