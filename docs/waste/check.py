#!/usr/bin/env python3
"""An independent check of `hprof-cli waste`: the kinds of docs/waste.md, computed again from the dump, slowly and plainly.

    check.py DUMP [--sizes FILE] [--header 8 --array-base 12] [--classic] > oracle.json
    check.py DUMP ... --compare FILE      FILE: hprof-cli waste DUMP --format json

It shares no code with the library. It reads dumps of HotSpot with compressed references (JDK 8 to 25; `--header 8 --array-base 12`
for compact object headers). A dump says nothing of the fields that the JVM injects into a few classes (java.lang.Class, ClassLoader,
Thread, ...) nor of @Contended, so sizes of their instances can be given: `hprof-cli dominators DUMP --all --format csv > FILE`.

Where docs/waste.md leaves a choice, a comment marked READING says which was made.
"""
import argparse, csv, gzip, json, math, re, struct, sys
from collections import Counter, defaultdict
from fractions import Fraction

SIZE = {2: 8, 4: 1, 5: 2, 6: 4, 7: 8, 8: 1, 9: 2, 10: 4, 11: 8}            # bytes in the dump; references: 8
CODE = {2: "Q", 4: "B", 5: "H", 6: "I", 7: "Q", 8: "b", 9: "h", 10: "i", 11: "q"}    # float and double as bits
PRIMITIVE = {4: "Z", 5: "C", 6: "F", 7: "D", 8: "B", 9: "S", 10: "I", 11: "J"}
REFERENCE, CHAR, BYTE = 2, 5, 8
KINDS = """duplicate_strings duplicate_arrays constant_arrays unused_array_ends empty_collections single_element_collections
    sparse_collections colliding_maps linked_lists zero_length_arrays empty_arrays single_element_arrays boxed_numbers
    constant_fields finalizable duplicate_classes unreachable""".split()


def align(n, to): return -(-n // to) * to


# ---------------------------------------------------------------------------------------------------------------- the dump

class Class:
    def __init__(self, id, super, loader, statics, fields):
        self.id, self.super, self.loader, self.statics, self.fields = id, super, loader, statics, fields
        self.name = "?"
        self.all_fields = []        # (declaring class, name, type), own fields first, then those of superclasses: as in the dump


class Heap:
    """Objects are numbered 0..n-1 in the order of their IDs. kind: i instance, o object array, p primitive array, c class object."""

    def __init__(self, path):
        with open(path, "rb") as f: d = f.read()
        if d[:2] == b"\x1f\x8b": d = gzip.decompress(d)
        if not d.startswith(b"JAVA PROFILE 1.0"): raise SystemExit(f"{path}: not an HPROF dump")
        self.data, p = d, d.index(0) + 1
        if struct.unpack_from(">I", d, p)[0] != 8: raise SystemExit("only dumps with 8-byte IDs")
        p += 12
        self.strings, self.class_names, self.classes, self.records = {}, {}, {}, {}
        self.roots, self.locals, self.threads, self.sticky = [], [], {}, False
        while p + 9 <= len(d):
            tag, _, length = struct.unpack_from(">BII", d, p); p += 9
            if tag == 0x01: self.strings[self.id(p)] = d[p + 8:p + length].decode("utf-8", "backslashreplace")
            elif tag == 0x02: self.class_names[self.id(p + 4)] = self.id(p + 16)
            elif tag in (0x0c, 0x1c): self.read_segment(p, p + length)
            p += length
        self.link()

    def id(self, p): return int.from_bytes(self.data[p:p + 8], "big")
    def u4(self, p): return int.from_bytes(self.data[p:p + 4], "big")
    def u2(self, p): return int.from_bytes(self.data[p:p + 2], "big")

    def read_segment(self, p, end):
        d = self.data
        while p < end:
            tag = d[p]; p += 1
            if tag in (0xff, 0x05, 0x07): self.roots.append(self.id(p)); self.sticky |= tag == 0x05; p += 8     # unknown, sticky class, monitor
            elif tag == 0x01: self.roots.append(self.id(p)); p += 16                                            # JNI global
            elif tag in (0x02, 0x03): self.locals.append((self.u4(p + 8), self.id(p))); p += 16                 # JNI local, Java frame
            elif tag in (0x04, 0x06): self.locals.append((self.u4(p + 8), self.id(p))); p += 12                 # native stack, thread block
            elif tag == 0x08: self.roots.append(self.id(p)); self.threads[self.u4(p + 8)] = self.id(p); p += 16
            elif tag == 0x20: p = self.read_class(p)
            elif tag == 0x21: n = self.u4(p + 20); self.records[self.id(p)] = ("i", self.id(p + 12), n, p + 24); p += 24 + n
            elif tag == 0x22: n = self.u4(p + 12); self.records[self.id(p)] = ("o", self.id(p + 16), n, p + 24); p += 24 + 8 * n
            elif tag == 0x23: n = self.u4(p + 12); t = d[p + 16]; self.records[self.id(p)] = ("p", t, n, p + 17); p += 17 + SIZE[t] * n
            else: raise SystemExit(f"heap record {tag:#x} at offset {p - 1:#x}")

    def read_class(self, p):
        d, c = self.data, self.id(p)
        super, loader = self.id(p + 12), self.id(p + 20)
        p += 64                                             # id, stack trace, super, loader, signers, domain, 2 reserved, instance size
        n = self.u2(p); p += 2
        for _ in range(n): p += 3 + SIZE[d[p + 2]]          # constant pool
        statics = []; n = self.u2(p); p += 2
        for _ in range(n):
            if d[p + 8] == REFERENCE: statics.append((self.id(p), self.id(p + 9)))
            p += 9 + SIZE[d[p + 8]]
        fields = []; n = self.u2(p); p += 2
        for _ in range(n): fields.append((self.id(p), d[p + 8])); p += 9
        self.classes[c] = Class(c, super, loader, statics, fields)
        self.records[c] = ("c", c, 0, p)
        return p

    def link(self):
        for c in self.classes.values():
            c.raw_name = self.strings.get(self.class_names.get(c.id), "?")
            c.name = c.raw_name.replace("/", ".").replace(".0x", "/0x")     # hidden classes: Foo$$Lambda/0x7f...
            c.statics = [(self.strings.get(n, "?"), v) for n, v in c.statics]
            c.fields = [(self.strings.get(n, "?"), t) for n, t in c.fields]
        self.boot = {c.raw_name: c for c in self.classes.values() if not c.loader}
        for c in self.classes.values():
            k = c
            while k: c.all_fields += [(k, n, t) for n, t in k.fields]; k = self.classes.get(k.super)
            c.unpack = struct.Struct(">" + "".join(CODE[t] for *_, t in c.all_fields)).unpack_from
            c.references = [i for i, (*_, t) in enumerate(c.all_fields) if t == REFERENCE]
            c.place = {}
            for i, (_, n, _) in reversed(list(enumerate(c.all_fields))): c.place[n] = i     # a subclass's field hides the superclass's
        self.ids = sorted(self.records)
        self.number = {id: i for i, id in enumerate(self.ids)}
        rec = [self.records[id] for id in self.ids]
        self.kind, self.type, self.length, self.position = ([r[i] for r in rec] for i in range(4))
        self.n = len(self.ids)

    # what an object is and holds
    def class_of(self, o): return self.classes.get(self.type[o]) if self.kind[o] in "io" else None
    def class_name(self, o): c = self.class_of(o); return c.raw_name if c else ""
    def values(self, o): return self.class_of(o).unpack(self.data, self.position[o])
    def elements(self, o): return struct.unpack_from(f">{self.length[o]}Q", self.data, self.position[o])
    def content(self, o): p = self.position[o]; return self.data[p:p + self.length[o] * SIZE[self.type[o]]]

    def get(self, o, field):
        "a field's value; of references the object's number or None"
        c = self.class_of(o); i = c.place.get(field)
        if i is None: return None
        v = self.values(o)[i]
        return self.number.get(v) if c.all_fields[i][2] == REFERENCE else v

    def has(self, o, field): return field in self.class_of(o).place

    def static(self, class_name, field):
        c = self.boot.get(class_name)
        return next((self.number.get(v) for n, v in c.statics if n == field), None) if c else None

    def fields(self, o):
        "(declaring class, field, number of the object referred to): instance fields, or static fields of a class object"
        if self.kind[o] == "i":
            c, v = self.class_of(o), self.values(o)
            found = [(c.all_fields[i][0], c.all_fields[i][1], v[i]) for i in c.references]
        elif self.kind[o] == "c": c = self.classes[self.type[o]]; found = [(c, n, v) for n, v in c.statics]
        else: found = []
        return [(c, n, self.number[v]) for c, n, v in found if v in self.number]

    def referents(self, o):
        "what fields and elements refer to, without the references that the JVM adds (class, superclass, loader)"
        if self.kind[o] == "o": return [self.number[v] for v in self.elements(o) if v in self.number]
        return [t for *_, t in self.fields(o)]


# ----------------------------------------------------------------------------------------------------------------- the graph

class Graph:
    """Reachable objects and the dominator tree. The root above all GC roots has the number n."""

    def __init__(self, heap):
        self.heap, n = heap, heap.n
        number = heap.number
        class_class = heap.boot.get("java/lang/Class")
        primitive = {t: heap.boot.get("[" + c) for t, c in PRIMITIVE.items()}
        successors = []
        for o in range(n):
            s = heap.referents(o)
            if heap.kind[o] == "c":
                c = heap.classes[heap.type[o]]
                extra = [class_class.id if class_class else 0, c.super, c.loader]
            elif heap.kind[o] == "p": c = primitive[heap.type[o]]; extra = [c.id if c else 0]
            else: extra = [heap.type[o]]
            successors.append(s + [number[x] for x in extra if x in number])
        roots = [number[r] for r in heap.roots if r in number]
        self.locals = set()
        for serial, o in heap.locals:       # a thread keeps its locals
            if o not in number: continue
            thread = number.get(heap.threads.get(serial))
            if thread is None: roots.append(number[o])
            else: successors[thread].append(number[o])
            self.locals.add(number[o])
        if not heap.sticky: roots += [number[c.id] for c in heap.classes.values() if not c.loader]
        self.roots = set(roots)
        successors.append(sorted(self.roots))
        self.successors = successors
        self.search(n); self.dominate(); self.order_tree()
        self.referrers = [[] for _ in range(n)]         # by fields and elements, in the order of the referrers' IDs
        for o in range(n):
            if not self.reachable[o]: continue
            for t in set(heap.referents(o)): self.referrers[t].append(o)

    def search(self, root):
        "depth first, numbering objects when they are found"
        self.reachable, self.parent, self.order = [False] * (root + 1), [None] * (root + 1), []
        stack = [(root, None)]
        while stack:
            o, parent = stack.pop()
            if self.reachable[o]: continue
            self.reachable[o] = True; self.parent[o] = parent; self.order.append(o)
            for t in reversed(self.successors[o]):
                if not self.reachable[t]: stack.append((t, o))

    def dominate(self):
        """Semidominators, then nearest common ancestors ("semi-NCA"). Cooper, Harvey and Kennedy's iteration would be shorter, but every
        node of a long list refers to its class, and it climbs the list for each."""
        order = self.order; n = len(order)
        rank = {o: i for i, o in enumerate(order)}
        parent = [0] + [rank[self.parent[o]] for o in order[1:]]
        predecessors = [[] for _ in range(n)]
        for i, o in enumerate(order):
            for t in self.successors[o]: predecessors[rank[t]].append(i)
        semi = list(range(n)); label = list(range(n)); ancestor = [None] * n
        def evaluate(v):
            path = []
            while ancestor[v] is not None and ancestor[ancestor[v]] is not None: path.append(v); v = ancestor[v]
            for u in reversed(path):
                a = ancestor[u]
                if semi[label[a]] < semi[label[u]]: label[u] = label[a]
                ancestor[u] = ancestor[a]
            return label[path[0] if path else v]
        for w in range(n - 1, 0, -1):
            for v in predecessors[w]:
                s = v if v <= w else semi[evaluate(v)]
                if s < semi[w]: semi[w] = s
            ancestor[w] = parent[w]
        idom = parent[:]
        for w in range(1, n):
            while idom[w] > semi[w]: idom[w] = idom[idom[w]]
        self.idom = [None] * (self.heap.n + 1)
        for w in range(1, n): self.idom[order[w]] = order[idom[w]]

    def order_tree(self):
        "the dominator tree in preorder: what an object retains is one stretch of it"
        children = defaultdict(list)
        for o in self.order[1:]: children[self.idom[o]].append(o)
        self.tree, self.start, self.end = [], {}, {}
        stack = [(self.heap.n, False)]
        while stack:
            o, done = stack.pop()
            if done: self.end[o] = len(self.tree); continue
            self.start[o] = len(self.tree); self.tree.append(o)
            stack.append((o, True)); stack += [(c, False) for c in children[o]]

    def retained(self, o): return self.tree[self.start[o]:self.end[o]]
    def retains(self, a, b): return self.start[a] <= self.start[b] < self.end[a]


# --------------------------------------------------------------------------------------------------------------- shallow sizes

INJECTED = set("""java/lang/Class java/lang/ClassLoader java/lang/Module java/lang/Thread java/lang/invoke/MemberName java/lang/StackFrameInfo
    java/lang/invoke/ResolvedMethodName java/lang/invoke/MethodHandleNatives$CallSiteContext java/lang/InternalError
    jdk/internal/vm/StackChunk jdk/internal/vm/Continuation java/util/concurrent/ConcurrentHashMap$CounterCell
    java/util/concurrent/atomic/Striped64$Cell java/util/concurrent/ForkJoinPool java/util/concurrent/ForkJoinPool$WorkQueue
    java/util/concurrent/Exchanger$Node java/util/concurrent/SubmissionPublisher$BufferedSubscription""".split())
REFERENCES_FIRST = {"java/lang/" + n for n in """AssertionStatusDirectives Class ClassLoader ref/Reference ref/SoftReference StackTraceElement
    String Throwable Boolean Character Float Double Byte Short Integer Long""".split()}


class Sizes:
    def __init__(self, heap, header, array_base, classic, file):
        self.heap, self.header, self.array_base, self.classic = heap, header, array_base, classic
        self.given, self.given_class, self.cache = {}, {}, {}
        if file:
            with open(file, newline="") as f:
                delimiter = "\t" if "\t" in f.readline() else ","; f.seek(0)
                for row in csv.DictReader(f, delimiter=delimiter):
                    o = heap.number.get(int(row["object"], 16))
                    if o is None: continue
                    self.given[o] = int(row["shallow_bytes"])
                    if heap.kind[o] == "i": self.given_class[heap.type[o]] = self.given[o]
        self.of = [self.shallow(o) for o in range(heap.n)]

    def shallow(self, o):
        h, k = self.heap, self.heap.kind[o]
        if k == "p": return self.array(h.type[o], h.length[o])
        if k == "o": return self.array(REFERENCE, h.length[o])
        if k == "c":        # without FILE an estimate: the fields of java.lang.Class and, injected, some 28 bytes; static fields
            c = h.classes[h.type[o]]
            return self.given.get(o) or align(self.instance(h.boot["java/lang/Class"]) + 28 + 4 * len(c.statics), 8)
        c = h.classes[h.type[o]]
        if self.is_injected(c): return self.given.get(o) or self.given_class.get(c.id) or self.instance(c)
        return self.instance(c)

    def is_injected(self, c):
        while c:
            if c.raw_name in INJECTED: return True
            c = self.heap.classes.get(c.super)
        return False

    def array(self, type, length):
        element = 4 if type == REFERENCE else SIZE[type]
        return align(align(self.array_base, element) + length * element, 8)

    def instance(self, c, removed=frozenset()):
        "the size of an instance, as if the (class ID, field) in removed did not exist"
        key = c.id, removed
        if key not in self.cache:
            self.cache[key] = align((self.end_classic if self.classic else self.end_new)(c, removed), 8)
        return self.cache[key]

    def field_sizes(self, c, removed): return [4 if t == REFERENCE else SIZE[t] for n, t in c.fields if (c.id, n) not in removed]

    def end_new(self, c, removed): return self.layout(c, removed)[0]

    def layout(self, c, removed):
        "JDK 15 and later: (end, gaps). Gaps are filled, those of superclasses too; the smallest that fits"
        if c is None: return self.header, []
        end, gaps = self.layout(self.heap.classes.get(c.super), removed)
        own = [(t == REFERENCE, -s, s) for (n, t) in c.fields if (c.id, n) not in removed for s in [4 if t == REFERENCE else SIZE[t]]]
        for *_, size in sorted(own):
            fitting = [(b - a, -a, a, b) for a, b in gaps if align(a, size) + size <= b]
            if fitting:
                *_, a, b = min(fitting); gaps.remove((a, b)); at = align(a, size)
                gaps += [g for g in ((a, at), (at + size, b)) if g[0] < g[1]]
            else:
                at = align(end, size)
                if end < at: gaps.append((end, at))
                end = at + size
        return end, gaps

    def end_classic(self, c, removed):
        "up to JDK 14: superclass rounded up to 4; longs first, with something small in the gap before them"
        if c is None: return self.header
        end = align(self.end_classic(self.heap.classes.get(c.super), removed), 4)
        count = Counter((t == REFERENCE, 4 if t == REFERENCE else SIZE[t]) for n, t in c.fields if (c.id, n) not in removed)
        references = count[True, 4]
        if c.raw_name in REFERENCES_FIRST:
            end += 4 * references; references = 0
            if count[False, 8]: end = align(end, 8)
        elif count[False, 8] and align(end, 8) != end:
            gap = align(end, 8) - end; end += gap
            for size in (4, 2, 1):
                while gap >= size and count[False, size]: gap -= size; count[False, size] -= 1
            if gap >= 4 and references: references -= 1
        end += sum(size * count[False, size] for size in (8, 4, 2, 1))
        if references: end = align(end, 4) + 4 * references
        return align(end, 4)


# --------------------------------------------------------------------------------------------------------------- collections

U = "java/util/"; J = U + "concurrent/"
ARRAY_LISTS = {U + "ArrayList": ("elementData", "size"), U + "Vector": ("elementData", "elementCount"), U + "Stack": ("elementData", "elementCount"),
               U + "PriorityQueue": ("queue", "size")}
HASH_TABLES = {U + "HashMap": "size", U + "LinkedHashMap": "size", U + "WeakHashMap": "size", U + "Hashtable": "count", J + "ConcurrentHashMap": None}
# A set on a map or list is one collection with it. READING: so is Properties, which since JDK 9 is on a ConcurrentHashMap.
ON_ANOTHER = {U + "HashSet": "map", U + "LinkedHashSet": "map", U + "TreeSet": "m", J + "ConcurrentSkipListSet": "m",
              J + "CopyOnWriteArraySet": "al", U + "Collections$SetFromMap": "m", U + "Collections$SequencedSetFromMap": "m", U + "Properties": "map"}
WRAPPERS = {f"{U}Collections${w}{k}": "m" if k.endswith("Map") else "c" for w in ("Unmodifiable", "Synchronized", "Checked")
            for k in """Collection SequencedCollection Set SequencedSet SortedSet NavigableSet List RandomAccessList Queue
                        Map SequencedMap SortedMap NavigableMap""".split()}
KEY_SET = J + "ConcurrentHashMap$KeySetView"        # a set of its own (newKeySet) or a map's view: a set if it alone holds the map
IMMUTABLE = {U + "Collections$EmptyList", U + "Collections$EmptySet", U + "Collections$EmptyMap", U + "ImmutableCollections$ListN",
             U + "ImmutableCollections$SetN", U + "ImmutableCollections$MapN"}      # not counted, but a wrapper around an empty one is
# Fields that are tables of collections. READING: of subclasses and queues too, whose tables are no arrays of the program's either.
TABLES = {(U + "ArrayList", "elementData"), (U + "Vector", "elementData"), (U + "PriorityQueue", "queue"), (U + "ArrayDeque", "elements"),
          (U + "HashMap", "table"), (U + "Hashtable", "table"), (U + "WeakHashMap", "table"), (U + "IdentityHashMap", "table"), (U + "EnumMap", "vals"),
          (J + "ConcurrentHashMap", "table"), (J + "ConcurrentHashMap", "nextTable"), (J + "CopyOnWriteArrayList", "array"),
          (J + "PriorityBlockingQueue", "queue"), (J + "DelayQueue", "queue"), (J + "ArrayBlockingQueue", "items"),
          ("java/lang/ThreadLocal$ThreadLocalMap", "table")}


class Collection:
    "size, elements (object numbers), table (an array's number or None), capacity needed; of a hash map: nodes, buckets in use, its class"
    def __init__(self, size, elements, table=None, needed=None, nodes=None, buckets=None, hash_map=None):
        self.size, self.elements, self.table, self.needed = size, elements, table, needed
        self.nodes, self.buckets, self.hash_map = nodes, buckets, hash_map


def power_of_two(fits):
    c = 1
    while not fits(c): c *= 2
    return c


class Collections:
    def __init__(self, heap, graph):
        self.heap, self.graph = heap, graph
        self.found = {}             # object -> Collection, by class
        for o in range(heap.n):
            if heap.kind[o] == "i" and graph.reachable[o] and not heap.class_of(o).loader:
                c = self.read(o)
                if c: self.found[o] = c
        self.outermost = {}         # object -> Collection: wrappers, and what has none
        within = set(); outer_of = {}
        for o in range(heap.n):
            if heap.kind[o] != "i" or not graph.reachable[o] or heap.class_of(o).loader: continue
            inner, alone = self.inner(o)
            if inner is None: continue
            outer_of[o] = inner, alone
            if alone: within.add(inner)
        def resolve(o, depth=0):
            if o in self.found: return self.found[o]
            if o in outer_of and depth < 100:
                inner, alone = outer_of[o]; c = resolve(inner, depth + 1)
                if c is None: return Collection(0, []) if self.is_immutable_empty(inner) else None
                return c if alone else Collection(0, []) if c.size == 0 else None       # around a shared empty one: empty
        for o in sorted({*self.found, *outer_of} - within):
            c = resolve(o)
            if c: self.outermost[o] = c

    def inner(self, o):
        name, h = self.heap.class_name(o), self.heap
        if name in ON_ANOTHER and h.has(o, ON_ANOTHER[name]): return h.get(o, ON_ANOTHER[name]), True
        field = WRAPPERS.get(name, "map" if name == KEY_SET else None)
        if not field: return None, False
        inner = h.get(o, field)
        if inner is None: return None, False
        # READING: "alone holds" is "retains". A map's own views refer to the map, too, and do not make it shared.
        alone = self.graph.retains(o, inner)
        return (None, False) if name == KEY_SET and not alone else (inner, alone)

    def is_immutable_empty(self, o):
        h, name = self.heap, self.heap.class_name(o)
        if name not in IMMUTABLE or h.class_of(o).loader: return False
        if h.has(o, "elements"): return h.length[h.get(o, "elements")] == 0
        return not h.get(o, "size")

    def read(self, o):
        h, name = self.heap, self.heap.class_name(o)
        get, length = h.get, h.length
        items = lambda a: [h.number.get(v) for v in h.elements(a)] if a is not None else []
        if name in ARRAY_LISTS:
            table, size = (get(o, f) for f in ARRAY_LISTS[name])
            return Collection(size, items(table)[:size], table, size)
        if name == J + "CopyOnWriteArrayList": a = items(get(o, "array")); return Collection(len(a), a)
        if name == U + "ArrayDeque":
            a = get(o, "elements"); n = (get(o, "tail") - get(o, "head")) % length[a]
            return Collection(n, items(a), a, n + 1)
        if name in HASH_TABLES: return self.read_hash_table(o, name)
        if name == U + "Properties" and not h.has(o, "map"): return self.read_hash_table(o, U + "Hashtable")       # JDK 8
        if name == U + "IdentityHashMap":
            n = get(o, "size")
            return Collection(n, items(get(o, "table")), get(o, "table"), 2 * power_of_two(lambda c: c >= 4 and 2 * c >= 3 * n))
        if name == U + "EnumMap": return Collection(get(o, "size"), items(get(o, "vals")))
        if name == U + "RegularEnumSet": return Collection(bin(get(o, "elements") & (1 << 64) - 1).count("1"), [])
        if name == U + "JumboEnumSet": return Collection(get(o, "size"), [])
        if name == U + "LinkedList":
            nodes = self.chain(get(o, "first"), "next")
            return Collection(get(o, "size"), [get(x, "item") for x in nodes], nodes=nodes)
        if name == U + "TreeMap":
            elements, stack = [], [get(o, "root")]
            while stack:
                e = stack.pop()
                if e is not None: elements += [get(e, "key"), get(e, "value")]; stack += [get(e, "left"), get(e, "right")]
            return Collection(get(o, "size"), elements)
        if name == J + "ConcurrentSkipListMap":
            head = get(o, "head"); nodes = self.chain(get(head, "node"), "next")[1:] if head is not None else []
            value = "val" if nodes and h.has(nodes[0], "val") else "value"
            nodes = [x for x in nodes if get(x, value) not in (None, x)]                 # deleted ones and, in JDK 8, markers
            return Collection(len(nodes), [get(x, f) for x in nodes for f in ("key", value)])

    def chain(self, node, field):
        seen = {}
        while node is not None and node not in seen: seen[node] = True; node = self.heap.get(node, field)
        return list(seen)

    def read_hash_table(self, o, name):
        h, get = self.heap, self.heap.get
        table = get(o, "table")
        buckets = [h.number[v] for v in h.elements(table) if v in h.number] if table is not None else []
        nodes = []
        for b in buckets:
            n = h.class_name(b)
            if n.endswith("$ForwardingNode") or n.endswith("$ReservationNode"): continue
            nodes += self.chain(get(b, "first") if n.endswith("ConcurrentHashMap$TreeBin") else b, "next")
        key = "referent" if name == U + "WeakHashMap" else "key"
        elements = [get(x, f) for x in nodes for f in (key, "value" if h.has(x, "value") else "val")]
        if name == J + "ConcurrentHashMap":
            cells = get(o, "counterCells")
            size = get(o, "baseCount") + sum(get(h.number[c], "value") for c in (h.elements(cells) if cells is not None else []) if c)
            load = 0.75
        else:
            size = get(o, HASH_TABLES[name]); bits = get(o, "loadFactor")
            load = 0.75 if bits is None else struct.unpack(">f", struct.pack(">I", bits))[0]
        if name == U + "Hashtable":
            needed = int(size / load)
            while needed * load < size: needed += 1
        elif name in (J + "ConcurrentHashMap", U + "WeakHashMap"): needed = power_of_two(lambda c: size < math.ceil(c * load)) if load > 0 else None
        else: needed = power_of_two(lambda c: size <= c * load) if load > 0 else None
        return Collection(size, elements, table, needed, nodes, len(buckets), name)

    def own_objects(self, o):
        """What a collection of one element frees. READING: all that it alone holds and that is reached without passing through the key or
        the value: a lock, a queue or a cached view as well."""
        stop = {e for e in self.outermost[o].elements if e is not None}
        own, stack = {o}, [o]
        while stack:
            for t in self.heap.referents(stack.pop()):
                if t not in own and t not in stop and self.graph.retains(o, t): own.add(t); stack.append(t)
        return own


# --------------------------------------------------------------------------------------------------------------------- waste

class Kind:
    """What a kind counts and frees: bytes for each object, of which no byte twice. READING: where two that are counted free the same
    object (freed Strings with one array), the first by object ID does."""
    def __init__(self): self.counted, self.freed, self.fields, self.nothing = 0, {}, defaultdict(lambda: [0, 0]), 0

    def add(self, parts, field):
        gain = 0
        for o, bytes in parts.items():
            more = bytes - self.freed.get(o, 0)
            if more > 0: self.freed[o] = bytes; gain += more
        self.counted += 1; self.nothing += gain == 0
        if field: self.fields[field][0] += 1; self.fields[field][1] += gain

    def bytes(self): return sum(self.freed.values())


JDK = ("java.", "javax.", "jdk.", "sun.", "com.sun.", "org.ietf.jgss.", "org.w3c.dom.", "org.xml.sax.", "netscape.javascript.")
MADE_AT_RUN_TIME = re.compile(r"\$Proxy\d+$|/Generated\w*Accessor\d+$")    # one name, different classes
JDK_LOADERS = {"jdk/internal/loader/ClassLoaders$PlatformClassLoader", "jdk/internal/loader/ClassLoaders$BootClassLoader", "sun/misc/Launcher$ExtClassLoader"}


class Waste:
    def __init__(self, heap, graph, sizes):
        self.heap, self.graph, self.sizes, self.size = heap, graph, sizes, sizes.of
        self.live = [o for o in range(heap.n) if graph.reachable[o]]
        self.kinds = {k: Kind() for k in KINDS}
        self.such, self.jdk = {}, {}
        self.collections = Collections(heap, graph)
        self.string_arrays()
        for k in KINDS: getattr(self, k)()

    def instances(self, name):
        c = self.heap.boot.get(name)
        return [o for o in self.live if self.heap.kind[o] == "i" and self.heap.type[o] == c.id] if c else []

    def add(self, kind, counted, parts): self.kinds[kind].add(parts, self.field_of(counted))

    # the field that an object is attributed to
    def is_jdk(self, c):
        "READING: a class of the boot or platform loader, or of a package of the JDK"
        if c.id not in self.jdk:
            loader = self.heap.number.get(c.loader)
            self.jdk[c.id] = not c.loader or c.name.startswith(JDK) or loader is not None and self.heap.class_name(loader) in JDK_LOADERS
        return self.jdk[c.id]

    def fields_to(self, o):
        """(first static field that refers to o, or else field of a class outside the JDK; first other field). READING: "static field" is any
        class's, also what the JVM puts among them, such as <resolved_references> (string literals); of several fields of one holder
        the first in the dump."""
        if o not in self.such:
            static = own = other = None
            for holder in self.graph.referrers[o]:
                for c, name, target in self.heap.fields(holder):
                    if target != o: continue
                    field = f"{c.name}.{name}"
                    if self.heap.kind[holder] == "c": static = static or field
                    elif not self.is_jdk(c): own = own or field
                    else: other = other or field
            self.such[o] = static or own, other
        return self.such[o]

    def field_of(self, o):
        "READING: if nothing on the way up has such a field, the first field of the JDK on the way"
        referrers = self.graph.referrers[o]
        if not referrers: return None
        such, fallback = self.fields_to(o)
        x = referrers[0]
        while not such and x != self.heap.n:
            such, other = self.fields_to(x); fallback = fallback or other
            x = self.graph.idom[x]
        return such or fallback

    # strings and arrays
    def text(self, o):
        h, value = self.heap, self.heap.get(o, "value")
        if value is None: return None
        content = h.content(value)
        if h.type[value] == CHAR: text = content.decode("utf-16-be", "surrogatepass")
        else: text = content.decode("latin-1") if not h.get(o, "coder") else content[:len(content) & ~1].decode("utf-16-le", "surrogatepass")
        if h.has(o, "offset"): text = text[h.get(o, "offset"):][:h.get(o, "count")]      # JDK 6
        return text

    def string_arrays(self):
        self.strings = self.instances("java/lang/String")
        self.arrays_of_strings = {self.heap.get(s, "value") for s in self.strings} - {None}
        h = self.heap
        self.primitive = [o for o in self.live if h.kind[o] == "p"]
        self.constant = set()
        for o in self.primitive:
            if h.length[o] >= 2 and o not in self.arrays_of_strings:
                c = h.content(o); w = SIZE[h.type[o]]
                if c == c[:w] * h.length[o]: self.constant.add(o)

    def duplicate_strings(self):
        seen, freed = set(), []
        for s in self.strings:
            t = self.text(s)
            if t is None: continue
            if t in seen: freed.append(s)
            seen.add(t)
        all_freed = set(freed)
        for s in freed:
            parts = {s: self.size[s]}; a = self.heap.get(s, "value")
            # READING: a GC root or a thread's stack is a reference, too, and keeps the array
            if all_freed.issuperset(self.graph.referrers[a]) and a not in self.graph.roots and a not in self.graph.locals: parts[a] = self.size[a]
            self.add("duplicate_strings", s, parts)

    def duplicate_arrays(self):
        "READING: a String's array is neither counted nor the earlier one that stays"
        h, seen = self.heap, set()
        for o in self.primitive:
            if o in self.arrays_of_strings or not h.length[o]: continue
            key = h.type[o], h.content(o)
            if key in seen: self.add("duplicate_arrays", o, {o: self.size[o]})
            seen.add(key)

    def constant_arrays(self):
        for o in sorted(self.constant): self.add("constant_arrays", o, {o: self.size[o]})

    def unused_array_ends(self):
        """READING: subclasses inherit count and buffer and are included; of two holders of one buffer the one that uses more decides. A
        buffer of known use is counted even if it is constant, and byte[1] of a zero is not constant, so its end is unused."""
        h, used = self.heap, {}
        io = "java/io/"
        for o in self.live:
            if h.kind[o] != "i": continue
            c = h.class_of(o)
            while c:
                found = {"java/lang/AbstractStringBuilder": ("value", "count"), io + "ByteArrayOutputStream": ("buf", "count"), io + "CharArrayWriter": ("buf", "count"),
                         io + "BufferedInputStream": ("buf", "count"), io + "BufferedOutputStream": ("buf", "count"), io + "BufferedReader": ("cb", "nChars"),
                         io + "BufferedWriter": ("cb", "nextChar"), U + "BitSet": ("words", "wordsInUse")}.get(c.raw_name)
                if found:
                    a, n = h.get(o, found[0]), h.get(o, found[1])
                    if a is not None: used[a] = max(used.get(a, 0), n << (h.get(o, "coder") or 0))
                c = h.classes.get(c.super)
        for o in self.primitive:
            if o not in used:
                if h.type[o] not in (BYTE, CHAR) or o in self.arrays_of_strings or o in self.constant: continue
                w = SIZE[h.type[o]]; n = -(-len(h.content(o).rstrip(b"\0")) // w)
                if not h.length[o] or 2 * n > h.length[o]: continue
            else: n = used[o]
            if n < h.length[o]: self.add("unused_array_ends", o, {o: self.size[o] - self.sizes.array(h.type[o], n)})

    # collections
    def empty_collections(self):
        for o, c in self.collections.outermost.items():
            if c.size == 0: self.add("empty_collections", o, {x: self.size[x] for x in self.graph.retained(o)})

    def single_element_collections(self):
        for o, c in self.collections.outermost.items():
            if c.size == 1: self.add("single_element_collections", o, {x: self.size[x] for x in self.collections.own_objects(o)})

    def sparse_collections(self):
        "READING: not EnumMap, which cannot have another table"
        for o, c in self.collections.outermost.items():
            if c.size and c.table is not None and c.needed is not None and 2 * c.needed <= self.heap.length[c.table]:
                self.add("sparse_collections", o, {c.table: self.size[c.table] - self.sizes.array(REFERENCE, c.needed)})

    def colliding_maps(self):
        """READING: maps without tree nodes are counted and free nothing. ConcurrentHashMap's TreeBin is no tree node. A LinkedHashMap's plain
        node is LinkedHashMap$Entry."""
        plain = {U + "HashMap": U + "HashMap$Node", U + "LinkedHashMap": U + "LinkedHashMap$Entry", J + "ConcurrentHashMap": J + "ConcurrentHashMap$Node"}
        for o, c in self.collections.outermost.items():
            if c.buckets is None or len(c.nodes) < 8 or 2 * (len(c.nodes) - c.buckets) <= len(c.nodes): continue
            tree_nodes = [x for x in c.nodes if self.heap.class_name(x).endswith("$TreeNode")]
            parts = {x: self.size[x] - self.sizes.instance(self.heap.boot[plain[c.hash_map]]) for x in tree_nodes}
            self.add("colliding_maps", o, parts)

    def linked_lists(self):
        "READING: an ArrayList of exact capacity 0 shares its array. What is saved is taken from the nodes first, then from the list."
        array_list = self.heap.boot.get(U + "ArrayList")
        for o, c in self.collections.found.items():
            if self.heap.class_name(o) != U + "LinkedList": continue
            other = self.sizes.instance(array_list) + (self.sizes.array(REFERENCE, c.size) if c.size else 0)
            save = self.size[o] + sum(self.size[x] for x in c.nodes) - other; parts = {}
            for x in c.nodes + [o]: parts[x] = min(max(save, 0), self.size[x]); save -= parts[x]
            self.add("linked_lists", o, parts)

    def zero_length_arrays(self):
        """READING: arrays of the text "" count. Those of the JVM's own fields do not (<init_lock>, in JDK 8 init_lock). One of each type
        stays: the first by object ID of those that a static field holds, else the last. Types are array classes."""
        h, groups = self.heap, defaultdict(list)
        jvm = {t for o in self.live if h.kind[o] == "c" for _, n, t in h.fields(o) if n.startswith("<") or n == "init_lock"}
        for o in self.live:
            if h.kind[o] in "op" and not h.length[o] and o not in jvm: groups[h.kind[o], h.type[o]].append(o)
        for group in groups.values():
            static = [o for o in group if any(h.kind[r] == "c" for r in self.graph.referrers[o])]
            stays = static[0] if static else group[-1]
            for o in group:
                if o != stays: self.add("zero_length_arrays", o, {o: self.size[o]})

    def arrays_with(self, kind, wanted):
        "READING: of length 1 or more. The JVM's own are those that a static field with a name in angle brackets refers to"
        h = self.heap
        if not hasattr(self, "tables"):
            self.tables = {t for o in self.live if h.kind[o] == "c" for _, n, t in h.fields(o) if n.startswith("<")}
            for o in self.live:
                if h.kind[o] == "i" and any((c.raw_name, n) in TABLES for c, n, _ in h.class_of(o).all_fields):
                    self.tables |= {t for c, n, t in h.fields(o) if (c.raw_name, n) in TABLES}
        for o in self.live:
            if h.kind[o] == "o" and h.length[o] and o not in self.tables and sum(v != 0 for v in h.elements(o)) == wanted:
                self.add(kind, o, {o: self.size[o]})

    def empty_arrays(self): self.arrays_with("empty_arrays", 0)
    def single_element_arrays(self): self.arrays_with("single_element_arrays", 1)

    # others
    def boxed_numbers(self):
        """READING: boxes in the range of the caches (`parts`) are in the count, too; only those in the caches themselves are not. The JVM's
        archive (CDS) holds the arrays of caches that no class has taken yet: arrays that no field refers to, of just that range."""
        h, cached = self.heap, {self.heap.static("java/lang/Boolean", "TRUE"), self.heap.static("java/lang/Boolean", "FALSE")}
        for box, low in (("Byte", -128), ("Short", -128), ("Integer", -128), ("Long", -128), ("Character", 0)):
            arrays = [h.static(f"java/lang/{box}${box}Cache", field) for field in ("cache", "archivedCache")]
            for o in self.live:
                if h.kind[o] == "o" and h.length[o] >= 128 and h.class_name(o) == f"[Ljava/lang/{box};" and not any(self.fields_to(o)):
                    if [v and h.get(h.number[v], "value") for v in h.elements(o)] == list(range(low, low + h.length[o])): arrays.append(o)
            for a in arrays:
                if a is not None: cached |= {h.number.get(v) for v in h.elements(a)}
        for box, more in (("Boolean", 0), ("Byte", 0), ("Short", 0), ("Character", 0), ("Integer", 0), ("Float", 0), ("Long", 4), ("Double", 4)):
            for o in self.instances("java/lang/" + box):
                saved = self.size[o] - more * len(self.graph.referrers[o])
                if o not in cached and saved > 0: self.add("boxed_numbers", o, {o: saved})

    def constant_fields(self):
        """READING: what an instance shrinks by is that of all constant fields of its class and superclasses at once; `fields` has each
        constant field with all instances that have it and shrink, so its counts add up to more than the row's."""
        h, kind = self.heap, self.kinds["constant_fields"]
        of_class = defaultdict(list)
        for o in self.live:
            if h.kind[o] == "i": of_class[h.type[o]].append(o)
        values = defaultdict(Counter)       # (declaring class, field, type) -> value -> instances
        program = lambda c: not self.is_jdk(h.classes[c])
        for c, objects in of_class.items():
            all_fields = h.classes[c].all_fields
            wanted = [(i, (f[0].id, f[1], f[2])) for i, f in enumerate(all_fields) if program(f[0].id)]
            if not wanted: continue
            for o in objects:
                v = h.values(o)
                for i, f in wanted: values[f][v[i]] += 1
        group = {}                          # (class, field) -> 0 null, 1 zero, 2 equal
        for (c, name, type), counts in values.items():
            total = sum(counts.values()); value, most = counts.most_common(1)[0]
            if total >= 100 and 100 * most >= 99 * total:
                group[c, name] = 0 if type == REFERENCE and not value else 1 if not value else 2
        shares, having = defaultdict(Fraction), Counter()
        for c, objects in of_class.items():
            fields = sorted({(f[0].id, f[1]) for f in h.classes[c].all_fields} & group.keys())
            if not fields: continue
            before, removed = self.sizes.instance(h.classes[c]), frozenset()
            whole = before - self.sizes.instance(h.classes[c], frozenset(fields))
            if not whole: continue      # these do not shrink
            for g in range(3):
                these = [f for f in fields if group[f] == g]
                if not these: continue
                removed |= frozenset(these); after = self.sizes.instance(h.classes[c], removed)
                for f in these: shares[f] += Fraction((before - after) * len(objects), len(these)); having[f] += len(objects)
                before = after
            for o in objects: kind.add({o: whole}, None)
        for (c, name), bytes in shares.items():
            entry = kind.fields[f"{h.classes[c].name}.{name}"]
            entry[0] += having[c, name]; entry[1] += bytes
        for entry in kind.fields.values(): entry[1] = round(entry[1])

    def finalizable(self):
        "READING: those in Finalizer.queue; what a collection found last and the ReferenceHandler has not queued yet is not told by a dump"
        queue = self.heap.static("java/lang/ref/Finalizer", "queue")
        if queue is None: return
        for f in sorted(self.collections.chain(self.heap.get(queue, "head"), "next")):
            o = self.heap.get(f, "referent")
            if o is not None: self.add("finalizable", o, {x: self.size[x] for x in self.graph.retained(f)})

    def duplicate_classes(self):
        'READING: "before" is by object ID of the class objects; array classes are not defined by a loader'
        h, loaders = self.heap, {}
        for o in self.live:
            if h.kind[o] != "c": continue
            c = h.classes[h.type[o]]
            if c.raw_name.startswith("[") or c.raw_name == "?" or MADE_AT_RUN_TIME.search(c.raw_name): continue
            if loaders.setdefault(c.raw_name, c.loader) != c.loader:
                self.add("duplicate_classes", o, {x: self.size[x] for x in self.graph.retained(o)})

    def unreachable(self):
        "READING: without fields"
        for o in range(self.heap.n):
            if not self.graph.reachable[o]: self.kinds["unreachable"].add({o: self.size[o]}, None)

    def report(self):
        rows, union = [], {}
        for name in KINDS:
            k = self.kinds[name]; added = 0
            for o, bytes in k.freed.items():        # no byte twice: of an object the largest part that a kind frees
                more = bytes - union.get(o, 0)
                if more > 0: union[o] = bytes; added += more
            fields = [{"field": f, "objects": n, "wasted_bytes": b} for f, (n, b) in sorted(k.fields.items(), key=lambda e: (-e[1][1], e[0]))]
            rows.append({"kind": name, "objects": k.counted, "counted_without_bytes": k.nothing, "wasted_bytes": k.bytes(), "added_bytes": added, "fields": fields})
        return {"rows": rows, "total": {"wasted_bytes": sum(union.values())}}


def compare(ours, theirs):
    "prints every difference; the number of them"
    differences = []
    def differ(what, a, b, hint=""):
        if a != b: differences.append(f"{what}: check.py {a}, hprof-cli {b}{hint}")
    rows = {r["kind"]: r for r in theirs["rows"]}
    for kind in rows.keys() - set(KINDS): differences.append(f"{kind}: unknown kind")
    for row in ours["rows"]:
        kind = row["kind"]; other = rows.get(kind)
        if other is None:
            if row["objects"]: differences.append(f"{kind}: no row, check.py counts {row['objects']}")
            continue
        hint = f" ({row['counted_without_bytes']} of check.py's free nothing)" if row["counted_without_bytes"] else ""
        differ(f"{kind} count", row["objects"], other["objects"], hint)
        for key in ("wasted_bytes", "added_bytes"): differ(f"{kind} {key}", row[key], other[key])
        a, b = ({f["field"]: (f["objects"], f["wasted_bytes"]) for f in r.get("fields") or [] if f.get("field")} for r in (row, other))
        for field in sorted(a.keys() | b.keys()):
            x, y = a.get(field), b.get(field)
            # shares of what several fields free together may be rounded in another way
            if kind == "constant_fields" and x and y and x[0] == y[0] and abs(x[1] - y[1]) <= x[0]: continue
            differ(f"{kind} {field} (count, wasted_bytes)", x, y)
    differ("total wasted_bytes", ours["total"]["wasted_bytes"], theirs["total"]["wasted_bytes"])
    print("\n".join(differences) or "no differences")
    return len(differences)


def main():
    a = argparse.ArgumentParser(description="Computes the kinds of docs/waste.md independently of hprof-cli.")
    a.add_argument("dump")
    a.add_argument("--sizes", metavar="FILE", help="CSV of `hprof-cli dominators DUMP --all --format csv`, for classes with injected fields only")
    a.add_argument("--header", type=int, default=12); a.add_argument("--array-base", type=int, default=16)
    a.add_argument("--classic", action="store_true", help="field layout of JDK 14 and earlier (recognised up to JDK 12)")
    a.add_argument("--compare", metavar="FILE", help="JSON of `hprof-cli waste DUMP --format json`; exit code 1 on any difference")
    a = a.parse_args()
    heap = Heap(a.dump)
    string = heap.boot.get("java/lang/String")
    classic = a.classic or string is not None and "hashIsZero" not in string.place
    report = Waste(heap, Graph(heap), Sizes(heap, a.header, a.array_base, classic, a.sizes)).report()
    if not a.compare: print(json.dumps(report, indent=1)); return 0
    with open(a.compare) as f: return 1 if compare(report, json.load(f)) else 0


if __name__ == "__main__": sys.exit(main())
