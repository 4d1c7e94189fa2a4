import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.*;
import java.util.*;

/** Memory of known size outside of the heap: direct buffers, a mapped file, threads. MIB of each buffer kind, THREADS. */
public class Planted {
    static final List<ByteBuffer> pool = new ArrayList<>();
    static MappedByteBuffer mapped;

    public static void main(String[] args) throws Exception {
        int mib = Integer.parseInt(args[0]);
        int threads = Integer.parseInt(args[1]);
        for (int i = 0; i < mib; i++) pool.add(ByteBuffer.allocateDirect(1 << 20));
        Path file = Paths.get("planted.dat");
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.READ,
                StandardOpenOption.WRITE)) {
            mapped = channel.map(FileChannel.MapMode.READ_WRITE, 0, (long) mib << 20);
        }
        for (int at = 0; at < mapped.capacity(); at += 4096) mapped.put(at, (byte) 1);
        for (int i = 0; i < threads; i++) {
            Thread thread = new Thread(() -> {
                try {
                    Thread.sleep(3_600_000);
                } catch (InterruptedException e) {
                    // ends
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
        System.out.println("READY");
        while (System.in.read() >= 0) { }
    }
}
