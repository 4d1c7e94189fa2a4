package com.acme;

import com.sun.management.HotSpotDiagnosticMXBean;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadPoolExecutor;

/** A service whose heap holds exactly what its arguments say, NAME=COUNT each, and dumps it. See make_dumps.py. */
public class Shop {
    static final Map<Long, Session> SESSIONS = new ConcurrentHashMap<>();
    static final List<Entry> LEAK = new ArrayList<>();
    static final List<String> TEXTS = new ArrayList<>();
    static final List<Object> PLUGINS = new ArrayList<>();
    static final List<Object> EMPTY = new ArrayList<>();
    static byte[] buffer;
    static Node chain;

    /** Grows with the release. */
    static class Session {
        final long id;
        final Account account = new Account();

        Session(long id) {
            this.id = id;
        }
    }

    /** Leaks in one pod. */
    static class Entry {
        final byte[] bytes = new byte[64];
    }

    /** A deep chain. */
    static class Node {
        Node next;
    }

    /** Is dropped at once, and stays in a dump with unreachable objects. */
    static class Garbage {
        long a, b;
    }

    /** Loads a class of its own, as a web application does. */
    static class PluginLoader extends ClassLoader {
        Object plugin() throws Exception {
            try (InputStream in = Shop.class.getResourceAsStream("Plugin.class")) {
                byte[] bytes = in.readAllBytes();
                var plugin = defineClass("com.acme.Plugin", bytes, 0, bytes.length).getDeclaredConstructor();
                // Another loader's package is not this one.
                plugin.setAccessible(true);
                return plugin.newInstance();
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Integer> count = new ConcurrentHashMap<>();
        for (int i = 1; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=");
            count.put(pair[0], Integer.valueOf(pair[1]));
        }
        for (long id = 0; id < count.get("sessions"); id++) SESSIONS.put(id, new Session(id));
        for (int i = 0; i < count.get("leak"); i++) LEAK.add(new Entry());
        for (int i = 0; i < count.get("texts"); i++) TEXTS.add(new String("the same text in every pod".toCharArray()));
        for (int i = 0; i < count.get("loaders"); i++) PLUGINS.add(new PluginLoader().plugin());
        for (int i = 0; i < count.get("empty"); i++) EMPTY.add(new java.util.LinkedHashMap<>());
        if (count.get("buffer") > 0) buffer = new byte[count.get("buffer")];
        for (int i = 0; i < count.get("chain"); i++) {
            Node node = new Node();
            node.next = chain;
            chain = node;
        }
        if (count.get("threads") > 0) {
            ((ThreadPoolExecutor) Executors.newFixedThreadPool(count.get("threads"))).prestartAllCoreThreads();
        }
        for (int i = 0; i < count.get("garbage"); i++) new Garbage();
        ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class)
                .dumpHeap(arguments[0], count.get("garbage") == 0);
        System.exit(0);
    }
}

/** Is loaded by loaders of its own. */
class Plugin {
    final int[] settings = new int[100];
    Plugin() { }
}
