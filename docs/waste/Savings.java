import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.*;

/**
 * Wastes a few megabytes in each of many ways, and mends one of them on request: `java Savings wasteful`, `java Savings duplicate_strings`.
 * What the JVM's own histogram then says less is what `hprof-cli waste` must have promised (see prove.sh).
 *
 * A mended program keeps the same information wherever it had any. Arrays that only hold the results stay as they are, so that nothing
 * but the waste goes away.
 */
public class Savings {
    static String mode;
    static boolean mended(String kind) { return mode.equals(kind); }

    // One static field for each kind: that is also the field which the report names.
    static Object[] cities, thumbnails, pages, buffers, attributes, tags, orders, registry, events, payloads, slots, cells, trades, customers, plugins;

    static void duplicateStrings() {
        byte[] text = String.join("", Collections.nCopies(10, "Amsterdam ")).getBytes(StandardCharsets.ISO_8859_1);
        cities = new Object[20_000];
        for (int i = 0; i < cities.length; i++) {
            String city = new String(text, StandardCharsets.ISO_8859_1);
            cities[i] = mended("duplicate_strings") ? city.intern() : city;
        }
    }

    static void duplicateArrays() {
        thumbnails = new Object[3_000];
        byte[] shared = null;
        for (int i = 0; i < thumbnails.length; i++) {
            byte[] image = new byte[1_000];
            for (int k = 0; k < image.length; k++) image[k] = (byte) (k * 7);
            thumbnails[i] = shared != null && mended("duplicate_arrays") ? shared : (shared = image);
        }
    }

    static void constantArrays() {
        pages = new Object[1_000];
        for (int i = 0; i < pages.length; i++) {
            int[] page = new int[1_000];
            Arrays.fill(page, i);                       // all different, so that none is a duplicate
            pages[i] = mended("constant_arrays") ? mode : page;
        }
    }

    static void unusedArrayEnds() {
        buffers = new Object[4_000];
        for (int i = 0; i < buffers.length; i++) {
            if (i % 2 == 0) {                           // of a class that knows how much it uses
                StringBuilder b = new StringBuilder(1_000).append("request ").append(i);
                if (mended("unused_array_ends")) b.trimToSize();
                buffers[i] = b;
            } else {                                    // zeros at the end
                byte[] b = new byte[1_000];
                for (int k = 0; k < 100; k++) b[k] = (byte) (i + k | 1);
                buffers[i] = mended("unused_array_ends") ? Arrays.copyOf(b, 100) : b;
            }
        }
    }

    static void emptyCollections() {
        attributes = new Object[20_000];
        for (int i = 0; i < attributes.length; i++) {
            Map<String, String> m = new HashMap<>();
            m.put("k", "v");
            m.clear();                                  // keeps its table
            attributes[i] = mended("empty_collections") ? Collections.emptyMap() : m;
        }
    }

    static void singleElementCollections() {
        tags = new Object[20_000];
        for (int i = 0; i < tags.length; i++) {
            Set<Object> s = new HashSet<>();
            s.add(mode);
            tags[i] = mended("single_element_collections") ? mode : s;
        }
    }

    static void sparseCollections() {
        orders = new Object[4_000];
        for (int i = 0; i < orders.length; i++) {
            if (i % 4 != 0) {
                ArrayList<Object> l = new ArrayList<>(200);
                for (int k = 0; k < 10; k++) l.add(mode);
                if (mended("sparse_collections")) l.trimToSize();
                orders[i] = l;
            } else {
                Map<Object, Object> m = new HashMap<>(mended("sparse_collections") ? 4 : 512);
                for (int k = 0; k < 3; k++) m.put(k, mode);
                orders[i] = m;
            }
        }
    }

    /** Equal hash codes make a HashMap put tree nodes into one bucket. */
    static class Key implements Comparable<Key> {
        final int no;
        Key(int no) { this.no = no; }
        @Override public int hashCode() { return mended("colliding_maps") ? no : 7; }
        @Override public boolean equals(Object o) { return o == this; }
        @Override public int compareTo(Key k) { return Integer.compare(no, k.no); }
    }

    static void collidingMaps() {
        Key[] keys = new Key[40];
        for (int k = 0; k < keys.length; k++) keys[k] = new Key(k);
        registry = new Object[2_500];
        for (int i = 0; i < registry.length; i++) {
            Map<Object, Object> m = new HashMap<>(64);
            for (Key k : keys) m.put(k, mode);
            registry[i] = m;
        }
    }

    static void linkedLists() {
        events = new Object[1_000];
        for (int i = 0; i < events.length; i++) {
            List<Object> l = new LinkedList<>(Collections.nCopies(120, mode));
            events[i] = mended("linked_lists") ? new ArrayList<>(l) : l;
        }
    }

    static final byte[] NO_BYTES = {};

    static void zeroLengthArrays() {
        payloads = new Object[150_000];
        for (int i = 0; i < payloads.length; i++) payloads[i] = mended("zero_length_arrays") ? NO_BYTES : new byte[0];
    }

    static void emptyAndSingleElementArrays() {
        slots = new Object[3_000];
        for (int i = 0; i < slots.length; i++) slots[i] = mended("empty_arrays") ? mode : new Object[250];
        cells = new Object[40_000];
        for (int i = 0; i < cells.length; i++) {
            Object[] a = new Object[12];
            a[i % a.length] = mode;
            cells[i] = mended("single_element_arrays") ? mode : a;
        }
    }

    /** Two long fields: an instance with one would grow by 8 bytes and not by 4, because sizes are multiples of 8. */
    static class BoxedTrade {
        final Integer quantity;
        final Long price, fee;
        BoxedTrade(int q) { quantity = q; price = q * 3L; fee = q * 5L; }
    }

    static class Trade {
        final int quantity;
        final long price, fee;
        Trade(int q) { quantity = q; price = q * 3L; fee = q * 5L; }
    }

    static void boxedNumbers() {
        trades = new Object[50_000];
        for (int i = 0; i < trades.length; i++) trades[i] = mended("boxed_numbers") ? new Trade(1_000 + i) : new BoxedTrade(1_000 + i);
    }

    static class Customer {
        final int no;
        final Object name;
        Object fax, pager, telex;           // null
        int points;                         // zero
        long version = 1, limit = 5_000;    // equal
        Customer(int no, Object name) { this.no = no; this.name = name; }
    }

    static class LeanCustomer {
        final int no;
        final Object name;
        LeanCustomer(int no, Object name) { this.no = no; this.name = name; }
    }

    static void constantFields() {
        customers = new Object[100_000];
        for (int i = 0; i < customers.length; i++) {
            Object name = i % 2 == 0 ? mode : "Customer";
            customers[i] = mended("constant_fields") ? new LeanCustomer(i, name) : new Customer(i, name);
        }
    }

    /** The first one stops the Finalizer thread, the others wait. */
    static class Socket {
        final byte[] buffer = new byte[128];
        @Override protected void finalize() throws Throwable { Thread.sleep(Long.MAX_VALUE); }
    }

    static class ClosedSocket { final byte[] buffer = new byte[128]; }

    static void finalizable() throws Exception {
        int n = 15_000;
        for (int i = 0; i < n; i++) if (mended("finalizable")) new ClosedSocket(); else new Socket();
        System.gc();
        while (ManagementFactory.getMemoryMXBean().getObjectPendingFinalizationCount() < n - 1 && !mended("finalizable")) Thread.sleep(20);
    }

    public static class Plugin { static final byte[] CACHE = new byte[500_000]; }

    static class PluginLoader extends ClassLoader {
        @Override protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.endsWith("$Plugin") || mended("duplicate_classes")) return super.loadClass(name, resolve);
            try (InputStream in = Savings.class.getResourceAsStream("Savings$Plugin.class")) {
                ByteArrayOutputStream out = new ByteArrayOutputStream();
                for (int b; (b = in.read()) >= 0; ) out.write(b);
                return defineClass(name, out.toByteArray(), 0, out.size());
            } catch (java.io.IOException e) { throw new ClassNotFoundException(name, e); }
        }
    }

    static void duplicateClasses() throws Exception {
        plugins = new Object[9];
        for (int i = 0; i < plugins.length; i++) plugins[i] = Class.forName("Savings$Plugin", true, new PluginLoader()).getDeclaredConstructor().newInstance();
    }

    static Object last;

    /** Garbage that no collection has freed yet: the JVM and a dump of all objects see it, the others do not. */
    static void unreachable() {
        for (int i = 0; i < 4_000; i++) last = new byte[1_000];
    }

    public static void main(String[] args) throws Exception {
        mode = args[0];
        duplicateStrings(); duplicateArrays(); constantArrays(); unusedArrayEnds();
        emptyCollections(); singleElementCollections(); sparseCollections(); collidingMaps(); linkedLists();
        zeroLengthArrays(); emptyAndSingleElementArrays(); boxedNumbers(); constantFields();
        duplicateClasses(); finalizable(); unreachable();
        System.out.println("READY");
        Thread.sleep(Long.MAX_VALUE);
    }
}
