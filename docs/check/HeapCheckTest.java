import static org.junit.jupiter.api.Assertions.assertEquals;

import com.sun.management.HotSpotDiagnosticMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Dumps the heap of the JVM that runs the tests, and checks it by heap-rules.toml. hprof-cli has to be in PATH. */
class HeapCheckTest {
    @Test
    void heapKeepsToTheRules(@TempDir Path directory) throws IOException, InterruptedException {
        // Use what is tested here, and let go of it: a rule says what has to be gone then.
        Path dump = directory.resolve("heap.hprof");
        HotSpotDiagnosticMXBean diagnostics = ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
        // Only what is reachable: the JVM collects garbage first.
        diagnostics.dumpHeap(dump.toString(), true);

        String rules = System.getProperty("heap.rules", "heap-rules.toml");
        Process check = new ProcessBuilder("hprof-cli", "check", dump.toString(), "--rules", rules, "--quiet")
                .redirectErrorStream(true)
                .start();
        String answer = new String(check.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, check.waitFor(), answer);
    }
}
