#!/usr/bin/env python3
"""An independent check of `hprof-cli diff OLD NEW --group-by place`: the places of docs/diff.md, computed again from both dumps, slowly and plainly.

    check.py [--index-dir DIR] [--min-change N]... [--verbose] HPROF_CLI OLD NEW

It shares no code with the library. Dominators and sizes are those of `hprof-cli dominators --all` (checked elsewhere, against Eclipse MAT).
Every row is compared: place, objects and retained bytes; and which places are shown. Each difference is printed; exit code 1 if there are any.

Where docs/diff.md leaves a choice, a comment marked READING says which was made.
"""
import argparse, csv, gzip, json, os, re, struct, subprocess, sys, tempfile
from collections import Counter, defaultdict

sys.setrecursionlimit(100_000)
WIDTH = {4: 1, 5: 2, 6: 4, 7: 8, 8: 1, 9: 2, 10: 4, 11: 8}
PRIMITIVE = {4: "boolean", 5: "char", 6: "float", 7: "double", 8: "byte", 9: "short", 10: "int", 11: "long"}
LETTER = {"Z": "boolean", "C": "char", "F": "float", "D": "double", "B": "byte", "S": "short", "I": "int", "J": "long"}
REFERENCE = 2
ROOT = {0xff: "unknown", 1: "JNI global", 2: "JNI local", 3: "Java frame", 4: "native stack", 5: "sticky class", 6: "thread block", 7: "monitor used",
        8: "thread object", 0x89: "interned string", 0x8a: "finalizing", 0x8b: "debugger", 0x8c: "reference cleanup", 0x8d: "VM internal", 0x8e: "JNI monitor"}
STACK = {2, 3, 4, 6}                    # what a thread's stack holds
WHILE_RUNNING = STACK | {7, 0x8e}       # a root only while a method runs
TOP = -1                                # the root above all GC roots
MAX_DEPTH = 64


# ------------------------------------------------------------------------------------------------------------------- names

def general(name):
    "a class name without the numbers of generated classes"
    n = re.sub(r"[/+]0x[0-9a-fA-F]+", "*", name)            # hidden classes
    n = re.sub(r"/\d+", "*", n)                             # anonymous classes of the VM, JDK 8
    n = re.sub(r"\$\$Lambda(\$?\d+)?\*?", "$$Lambda*", n)
    n = re.sub(r"\$Proxy\d+", "$Proxy*", n)
    n = re.sub(r"\bjdk\.proxy\d+\.", "jdk.proxy*.", n)
    n = re.sub(r"CGLIB\$\$[0-9a-f]+", "CGLIB$$*", n)
    n = re.sub(r"(Generated(?:Serialization)?(?:Constructor|Method)Accessor)\d+", r"\1*", n)
    return n


def is_jdk(name):
    n = name.rstrip("[]")
    return n in WIDTHS or n.startswith(("java.", "javax.", "jdk.", "sun.", "com.sun."))
WIDTHS = set(PRIMITIVE.values())


# ---------------------------------------------------------------------------------------------------------------- the dump

class Class:
    def __init__(self, id, super, loader, statics, fields):
        self.id, self.super, self.loader, self.statics, self.fields = id, super, loader, statics, fields
        self.raw = "?"


class Dump:
    by_loader = False

    def __init__(self, path, cli, index_dir):
        self.path = path
        with open(path, "rb") as f: d = f.read()
        if d[:2] == b"\x1f\x8b": d = gzip.decompress(d)
        elif d[:4] == b"\x28\xb5\x2f\xfd": d = subprocess.run(["zstd", "-dcq", path], stdout=subprocess.PIPE, check=True).stdout
        p = d.index(0) + 1
        self.data, self.w = d, struct.unpack_from(">I", d, p)[0]
        p += 12
        self.strings, self.class_names, self.classes, self.records = {}, {}, {}, {}
        self.root_kinds = defaultdict(set)
        self.threads, self.locals, pending = {}, set(), []
        while p + 9 <= len(d):
            tag, _, length = struct.unpack_from(">BII", d, p); p += 9
            if tag == 1: self.strings[self.id(p)] = d[p + self.w:p + length].decode("utf-8", "backslashreplace")
            elif tag == 2: self.class_names[self.id(p + 4)] = self.id(p + 8 + self.w)
            elif tag in (0x0c, 0x1c): self.segment(p, p + length, pending)
            p += length
        self.thread_ids = set(self.threads.values())
        # stack_of[thread]: what its stack holds; of no known thread: a root like others
        self.stack_of = defaultdict(set)
        for kind, serial, o in pending:
            if serial in self.threads: self.stack_of[self.threads[serial]].add(o)
        for c in self.classes.values():
            c.raw = self.strings.get(self.class_names.get(c.id), "?")
            c.statics = [(self.strings.get(n, "?"), v) for n, v in c.statics]
            c.fields = [(self.strings.get(n, "?"), t) for n, t in c.fields]
        for c in self.classes.values(): c.name = self.readable(c.raw)
        self.prepare_classes()
        self.loader_names = {}
        self.dominators(cli, index_dir)

    def id(self, p): return int.from_bytes(self.data[p:p + self.w], "big")
    def u4(self, p): return int.from_bytes(self.data[p:p + 4], "big")
    def u2(self, p): return int.from_bytes(self.data[p:p + 2], "big")
    def width(self, t): return self.w if t == REFERENCE else WIDTH[t]

    def segment(self, p, end, pending):
        d, w = self.data, self.w
        while p < end:
            tag = d[p]; p += 1
            if tag in ROOT:
                o = self.id(p); self.root_kinds[o].add(tag)
                if tag in STACK: pending.append((tag, self.u4(p + w), o))
                if tag == 8: self.threads[self.u4(p + w)] = o
                p += w + {1: w, 2: 8, 3: 8, 4: 4, 6: 4, 8: 8, 0x8e: 8}.get(tag, 0)
            elif tag == 0x20: p = self.class_dump(p)
            elif tag == 0x21: n = self.u4(p + 2 * w + 4); self.records[self.id(p)] = ("i", self.id(p + w + 4), n, p + 2 * w + 8); p += 2 * w + 8 + n
            elif tag == 0x22: n = self.u4(p + w + 4); self.records[self.id(p)] = ("o", self.id(p + w + 8), n, p + 2 * w + 8); p += 2 * w + 8 + n * w
            elif tag == 0x23: n = self.u4(p + w + 4); t = d[p + w + 8]; self.records[self.id(p)] = ("p", t, n, p + w + 9); p += w + 9 + n * WIDTH[t]
            else: raise SystemExit(f"{self.path}: heap record {tag:#x} at offset {p - 1:#x}")

    def class_dump(self, p):
        d, w, c = self.data, self.w, self.id(p)
        super, loader = self.id(p + w + 4), self.id(p + 2 * w + 4)
        p += 7 * w + 8
        n = self.u2(p); p += 2
        for _ in range(n): p += 3 + self.width(d[p + 2])
        statics = []; n = self.u2(p); p += 2
        for _ in range(n):
            if d[p + w] == REFERENCE: statics.append((self.id(p), self.id(p + w + 1)))
            p += w + 1 + self.width(d[p + w])
        fields = []; n = self.u2(p); p += 2
        for _ in range(n): fields.append((self.id(p), d[p + w])); p += w + 1
        if c not in self.classes:
            self.classes[c] = Class(c, super, loader, statics, fields)
            self.records[c] = ("c", c, 0, p)
        return p

    def readable(self, raw):
        dims = len(raw) - len(raw.lstrip("["))
        n = raw[dims:]
        if dims: n = LETTER.get(n) or (n[1:-1] if n.startswith("L") else n)
        n = re.sub(r"/(?=0x[0-9a-fA-F]+$|\d+$)", "\0", n).replace("/", ".").replace("\0", "/")
        return general(n) + "[]" * dims

    def prepare_classes(self):
        for c in self.classes.values():
            c.lineage = []; k = c
            while k: c.lineage.append(k); k = self.classes.get(k.super)
            c.names = [k.name for k in c.lineage]
            c.layout = []; at = 0                           # (declaring class, field, type, offset), in the order of the record
            for k in c.lineage:
                for n, t in k.fields: c.layout.append((k, n, t, at)); at += self.width(t)
            c.refs = [e for e in c.layout if e[2] == REFERENCE]
        for c in self.classes.values():
            c.is_thread = "java.lang.Thread" in c.names
            c.is_enum = "java.lang.Enum" in c.names
            c.collection = collection_kind(c)

    def dominators(self, cli, index_dir):
        with tempfile.TemporaryFile("w+") as f:
            subprocess.run([cli, "dominators", self.path, "--all", "--format", "csv", "-q", *index_dir], stdout=f, check=True)
            f.seek(0)
            self.shallow, self.retained, self.idom = {}, {}, {}
            for row in csv.DictReader(f):                   # in preorder
                o = int(row["object"], 16)
                self.shallow[o], self.retained[o] = int(row["shallow_bytes"]), int(row["retained_bytes"])
                self.idom[o] = TOP if row["dominator"] == "root" else int(row["dominator"], 16)
        self.reachable = sum(self.shallow.values())

    # what an object is and holds
    def class_of(self, o):
        r = self.records.get(o)
        return self.classes.get(r[1]) if r and r[0] in "io" else None

    def kind(self, o): return self.records[o][0] if o in self.records else "?"

    def fields(self, o):
        "(declaring class, field, object): references of an instance's fields, or of static fields of a class object, in the order of the record"
        k, c, n, p = self.records[o]
        if k == "i":
            c = self.classes.get(c)
            return [(e[0], e[1], self.id(p + e[3])) for e in c.refs] if c else []
        if k == "c": return [(self.classes[c], n, v) for n, v in self.classes[c].statics]
        return []

    def elements(self, o):
        k, c, n, p = self.records[o]
        return struct.unpack_from(f">{n}{'Q' if self.w == 8 else 'I'}", self.data, p) if k == "o" else ()

    def get(self, o, field):
        if self.kind(o) != "i" or not self.class_of(o): return None
        p = self.records[o][3]
        for _, n, t, at in self.class_of(o).layout:
            if n == field:
                q = p + at
                if t == REFERENCE: return self.id(q) or None
                if t in (6, 7): return struct.unpack_from(">f" if t == 6 else ">d", self.data, q)[0]
                if t == 4: return bool(self.data[q])
                return int.from_bytes(self.data[q:q + WIDTH[t]], "big", signed=t != 5)
        return None

    def text(self, o):
        "the text of a java.lang.String"
        if o not in self.records or not self.class_of(o) or self.class_of(o).name != "java.lang.String": return None
        a = self.get(o, "value")
        if a not in self.records: return None
        _, t, n, p = self.records[a]
        b = self.data[p:p + n * WIDTH[t]]
        if t == 8: return b.decode("latin-1") if not self.get(o, "coder") else b.decode("utf-16-le", "replace")
        start, count = self.get(o, "offset"), self.get(o, "count")
        s = b.decode("utf-16-be", "replace")
        return s[start:start + count] if count is not None and start is not None else s

    def thread_name(self, o):
        n = self.get(o, "name")
        if n in self.records and self.kind(n) == "p":               # JDK 6 and 7: char[]
            _, t, k, p = self.records[n]; s = self.data[p:p + 2 * k].decode("utf-16-be", "replace")
        else: s = self.text(n) if n else None
        return re.sub(r"\d+", "*", s) if s is not None else "?"

    def loader(self, id):
        "what a class loader is known by"
        if not id: return None
        if id not in self.loader_names:
            c = self.class_of(id); n = self.get(id, "name") if id in self.records else None
            self.loader_names[id] = (c.name if c else "?", self.text(n) if n else None)
        return self.loader_names[id]

    def class_key(self, o):
        "what the class of an object is known by: (name, loader); of class objects and threads what they are"
        k, c, *_ = self.records[o]
        if k == "p": return PRIMITIVE[c] + "[]", None
        c = self.classes.get(c)
        if c is None: return "?", None
        # READING: places are merged by label, which does not have the loader
        loader = self.loader(c.loader) if self.by_loader else None
        return ("class " if k == "c" else "") + c.name, loader


# ------------------------------------------------------------------------------------------------------------- collections

# READING: a collection of the JDK is an instance of a class of java.util (and java.util.concurrent) that is a Collection or a Map by its
# superclass (AbstractCollection, AbstractMap, Dictionary), or one of those below, which extend nothing; or of a subclass of these. A class
# nested in a collection's class is a collection only if it is one of Collections, ImmutableCollections or Arrays. ThreadLocalMap is one.
ALSO = {"java.util.concurrent.CopyOnWriteArrayList": "list", "java.lang.ThreadLocal$ThreadLocalMap": "map"}
WRAPPED = {"m", "c", "map", "list", "ss", "sm", "ns", "nm", "s", "al", "q", "set", "deque"}
SIMPLE = {"java.util.AbstractCollection", "java.util.AbstractMap", "java.util.AbstractList", "java.util.AbstractSet", "java.util.AbstractQueue",
          "java.util.AbstractSequentialList", "java.util.Dictionary", "java.lang.Object"}
NUMBERS = {"java.lang." + n for n in "Byte Short Integer Long Float Double".split()} | {"java.math.BigInteger", "java.math.BigDecimal"}
NUMBERS -= {"java.math.BigInteger", "java.math.BigDecimal"}     # READING: numbers are the boxes


def collection_kind(c):
    "None, 'map', 'set' or 'list'"
    for k in c.names:
        if k in ALSO: return ALSO[k]
        if not k.startswith("java.util.") or k in SIMPLE: continue
        outer = k.rsplit("$", 1)[0] if "$" in k else None
        if outer and outer.rsplit(".", 1)[1].split("$")[0] not in ("Collections", "ImmutableCollections", "Arrays") and k != "java.util.concurrent.ConcurrentHashMap$KeySetView": continue
        if outer and outer not in ("java.util.Collections", "java.util.ImmutableCollections", "java.util.Arrays", "java.util.concurrent.ConcurrentHashMap"): continue
        short = k.rsplit("$", 1)[-1].rsplit(".", 1)[-1]
        if outer == "java.util.Collections" and re.match(r"(Unmodifiable|Synchronized|Checked)\w*(Collection|Set|List|Map|Queue)$", short):
            return "map" if short.endswith("Map") else "set" if short.endswith("Set") else "list"
        above = c.names[c.names.index(k):]
        if "java.util.AbstractMap" in above or "java.util.Dictionary" in above: return "map"
        if "java.util.AbstractSet" in above or short.endswith("Set") or short == "KeySetView": return "set"
        if "java.util.AbstractCollection" in above: return "list"
    return None


# ------------------------------------------------------------------------------------------------------------------- places

class Place:
    __slots__ = "parent", "field", "key", "label", "declared", "children", "objects", "retained", "depth", "maps", "names", "path", "example", "nesting", "total"

    def __init__(self, parent, field, key, label, declared):
        self.parent, self.field, self.key, self.label, self.declared = parent, field, key, label, declared
        # field: None or its label; label: of the class; declared: the name of the class (object) that declares field, None if none does
        self.children, self.objects, self.retained = {}, [0, 0], [0, 0]
        self.depth = parent.depth + 1 if parent else 0
        self.maps = ([], [])            # per dump: (told apart?, keys) of the maps at the place
        self.path = (parent.path + ((field, key),)) if parent else ()
        self.example = [None, None]; self.total = [0, 0]
        self.nesting = False            # objects are nested in their like through it

    def jdk(self):
        "READING: a label of the JDK's classes only: both the class and the class that declares the field"
        name = self.key[0].removeprefix("class ")
        return is_jdk(name) and (self.declared is None or is_jdk(self.declared))

    def labels(self):
        chain = []; p = self
        while p.parent: chain.append(p); p = p.parent
        chain.reverse(); out = []
        for i, p in enumerate(chain):
            if p.field: out.append(p.field)
            after = chain[i + 1] if i + 1 < len(chain) else None
            name = p.key[0].removeprefix("class ")
            own = after is not None and after.field is not None and after.declared == name
            if own and p.label.startswith("class ") and after.field.startswith("static "): continue
            if own and not p.label.startswith(("class ", "thread ")) and not after.field.startswith("static "): continue
            out.append(p.label)
        return out

    def delta(self): return self.retained[1] - self.retained[0]
    def more(self): return self.objects[1] - self.objects[0]


class Holder:
    "what is known of an object's collection: the collection itself, the outermost one with it, whether entries are told apart"
    __slots__ = "inner", "outer", "apart", "kind"
    def __init__(self, inner, outer, kind): self.inner, self.outer, self.kind, self.apart = inner, outer, kind, False


class Places:
    def __init__(self, dumps):
        self.dumps = dumps
        self.trees = [self.adopt(d) for d in dumps]
        self.told, self.notes = {}, Counter()   # told: path of a place -> keys that are told
        self.known = [dict(), dict()]       # cache: entries of a map
        self.rounds = 0
        while True:
            self.rounds += 1
            self.build()
            if not self.decide(): break

    # stacks
    def adopt(self, d):
        "(dominator of each object with those that stacks hold taken to their holders, preorder, retained sizes)"
        # class objects are at the top, whatever dominates them
        idom = {o: TOP if d.kind(o) == "c" else p for o, p in d.idom.items()}; children = defaultdict(list)
        for o, p in idom.items(): children[p].append(o)
        # READING: objects that are roots only while a method runs, and that no field of their dominator holds
        def by_stack(o):
            p = d.idom[o]
            if p == TOP: return True
            c = d.class_of(p)
            return bool(c and c.is_thread) and not any(t == o for _, _, t in d.fields(p))
        wanted = {o for o in d.idom if d.root_kinds.get(o) and d.root_kinds[o] <= WHILE_RUNNING and d.kind(o) != "c" and by_stack(o)}
        wanted = {o for o in wanted if not (d.class_of(o) and d.class_of(o).is_thread)}
        d.adopted = {}
        if wanted:
            referrers = defaultdict(dict)                   # object -> {referrer: whether weakly only}
            for r in idom:
                if r not in d.records: continue
                k = d.kind(r)
                if k == "o":
                    for t in d.elements(r):
                        if t in wanted: referrers[t][r] = False
                else:
                    for c, n, t in d.fields(r):
                        if t in wanted:
                            weak = c.name == "java.lang.ref.Reference" and n == "referent"
                            referrers[t][r] = referrers[t].get(r, True) and weak
            def within(x, o, up):
                while x != TOP:
                    if x == o: return True
                    x = up[x]
                return False
            new = dict(idom)
            for o in sorted(wanted, key=lambda o: (-d.retained[o], o)):
                # READING: threads do not count as referrers by whatever they refer, nor do those that refer weakly only (Reference.referent)
                others = [r for r, weak in referrers[o].items() if not weak and not (d.class_of(r) and d.class_of(r).is_thread) and not within(r, o, d.idom)]
                if len(others) != 1: d.adopted[o] = (None, others); continue
                if within(others[0], o, new): d.adopted[o] = (None, others); continue
                new[o] = others[0]; d.adopted[o] = (others[0], others)
            idom = new; children = defaultdict(list)
            for o, p in idom.items(): children[p].append(o)
        order, stack = [], list(reversed(children[TOP]))
        while stack:
            o = stack.pop(); order.append(o); stack.extend(reversed(children.get(o, ())))
        retained, size = dict(d.shallow), dict.fromkeys(order, 1)
        for o in reversed(order):
            if idom[o] != TOP: retained[idom[o]] += retained[o]; size[idom[o]] += size[o]
        return idom, order, retained, size

    # keys
    def key_name(self, d, o):
        "the name of a key: text, number or constant of an enum; None for another object"
        c = d.class_of(o) if o in d.records else None
        if c is None or d.kind(o) != "i": return None
        if c.name == "java.lang.String": return d.text(o)
        if c.name in NUMBERS: v = d.get(o, "value"); return str(v)
        if c.is_enum: n = d.get(o, "name"); return d.text(n) if n else None
        return None

    def entries(self, i, d, o):
        """(key, value, node or None) of the entries of the map o: None if it is no map that can be read.
        Plainly: all nodes reached from its table, head or root through objects of classes nested in its class"""
        if o in self.known[i]: return self.known[i][o]
        c = d.class_of(o); found = []; name = lambda x: (d.class_of(x).name if x in d.records and d.class_of(x) else "")
        inner = o; seen = set()
        while True:                 # to the map that a wrapper stands on
            seen.add(inner)
            nxt = next((t for k, n, t in d.fields(inner) if n in WRAPPED and t in d.records and d.class_of(t) and d.class_of(t).collection and t not in seen), None)
            if nxt is None or (d.get(inner, "table") is not None): break
            inner = nxt
        c = d.class_of(inner); bases = [k for k in c.names if k not in SIMPLE]
        if "java.util.IdentityHashMap" in bases or "java.util.ImmutableCollections$MapN" in bases:
            t = d.get(inner, "table"); e = d.elements(t) if t in d.records else ()
            found = [(e[j], e[j + 1], (t, j + 1)) for j in range(0, len(e) - 1, 2) if e[j]]
        elif "java.util.EnumMap" in bases:
            t, u = d.get(inner, "vals"), d.get(inner, "keyUniverse")
            ve, ue = (d.elements(x) if x in d.records else () for x in (t, u))
            found = [(k, v, (t, j)) for j, (k, v) in enumerate(zip(ue, ve)) if v]
        elif "java.util.ImmutableCollections$Map1" in bases:
            found = [(d.get(inner, "k0"), d.get(inner, "v0"), None)]
        else:
            stack = [inner]; seen = {inner}
            while stack:
                x = stack.pop()
                if x != inner and d.kind(x) == "i":
                    names = [n for _, n, _ in d.fields(x)]
                    k = d.get(x, "key" if "key" in names else "k" if "k" in names else "referent")
                    v = d.get(x, "val" if "val" in names else "value")
                    if k and ("val" in names or "value" in names): found.append((k, v, x))
                for t in (d.elements(x) if d.kind(x) == "o" else [t for _, n, t in d.fields(x) if n not in ("keySet", "values", "entrySet", "descendingMap", "navigableKeySet")]):
                    if t in d.records and t not in seen and self.nested(d, t, bases): seen.add(t); stack.append(t)
        self.known[i][o] = found
        return found

    def nested(self, d, o, bases):
        "an instance of a class nested in one of bases, or an array of these"
        c = d.class_of(o)
        if c is None: return False
        n = c.name.rstrip("[]")
        return any(n.startswith(b + "$") for b in bases)

    # the places of all objects
    def build(self):
        self.root = Place(None, None, ("", None), "", None)
        self.place_of, self.count = ({}, {}), 0
        for i, d in enumerate(self.dumps): self.place_all(i, d)

    def place_all(self, i, d):
        idom, order, retained, size = self.trees[i]
        place, holder, covered = self.place_of[i], {}, {}
        for index, o in enumerate(order):
            p = idom[o]; c = d.class_of(o); kind = d.kind(o)
            parent = self.root if p == TOP else place[p]
            h = holder.get(p)
            if h is not None and self.is_part(d, o, p, h):
                place[o] = parent
                if c is not None and c.collection and p == h.inner and self.wraps(d, p, o): nh = Holder(o, h.outer, h.kind); nh.apart = h.apart; holder[o] = nh
                else: holder[o] = h
                continue
            field, declared = self.field(i, d, o, p, h)
            key = d.class_key(o)
            if c is not None and c.is_thread and d.thread_name(o): label = f'thread "{d.thread_name(o)}"'; key = (label, None)
            else: label = key[0]
            at = self.enter(parent, field, declared, key, label, p != TOP and kind != "c" and not (c and c.is_thread) and d.class_key(p) == key == parent.key)
            place[o] = at
            at.objects[i] += 1
            if at.example[i] is None: at.example[i] = o
            # what objects of a place retain counts once: not if another one of the place dominates it
            if index >= covered.get(id(at), 0): at.retained[i] += retained[o]; covered[id(at)] = index + size[o]
            if c is not None and c.collection and kind == "i":
                nh = Holder(o, o, c.collection); holder[o] = nh
                if c.collection == "map":
                    e = self.entries(i, d, o)
                    names = None
                    if len(e) <= 64 and retained[o] * 10_000 >= d.reachable:
                        names = [n if n is None or len(n) <= 64 else n[:64] + "…" for n in (self.key_name(d, k) for k, v, _ in e)]
                    at.maps[i].append(names); at.total[i] += len(e)
                    if names is not None:
                        nh.apart = {}
                        for (k, v, n), name in zip(e, names):
                            if name is not None and name in self.told.get(at.path, names): nh.apart[n] = name

    def is_part(self, d, o, p, h):
        c = d.class_of(o); inner = d.class_of(h.inner)
        if c is None or d.kind(o) == "c": return False
        # READING: nested in the collection's class or in one of java.util that it extends, not in a subclass elsewhere (java.security.Provider)
        bases = [k for k in inner.names if k not in SIMPLE and k.startswith(("java.util.", "java.lang.ThreadLocal$"))]
        if self.nested(d, o, bases): return True
        if p == h.inner:
            if d.kind(o) == "o" and any(t == o and is_jdk(k.name) for k, _, t in d.fields(p)): return True
            if c.collection and self.wraps(d, p, o): return True
        return False

    def wraps(self, d, p, o):
        return any(t == o and n in WRAPPED and k.name.startswith("java.util.") for k, n, t in d.fields(p))

    def field(self, i, d, o, p, h):
        "as via; '' of a value of a map whose key is not told, which has no label and is at another place than what is in an array"
        label, declared = self.via(i, d, o, p, h)
        c = d.class_of(o)
        is_value = label is None and h is not None and h.kind == "map" and d.kind(o) != "c" and not (c and c.is_thread)
        return ("", None) if is_value else (label, declared)

    def via(self, i, d, o, p, h):
        "(label, name of the class that declares it) of the field by which p refers to o"
        if p == TOP:
            c = d.class_of(o)
            if d.kind(o) == "c" or c is not None and c.is_thread: return None, None
            kinds = d.root_kinds.get(o, set()) - WHILE_RUNNING
            # READING: of several kinds the one with the lowest tag
            return (ROOT[min(kinds)], None) if kinds else (None, None)
        if h is not None and p != h.inner:                      # below a node or table of a collection
            if h.kind != "map": return None, None
            if d.kind(p) == "o":
                inner = d.class_of(h.inner).names
                j = next((j for j, t in enumerate(d.elements(p)) if t == o), None)
                if j is None: return None, None
                if "java.util.IdentityHashMap" in inner or "java.util.ImmutableCollections$MapN" in inner:
                    if j % 2 == 0: return "key", None
                    return (f"{{{h.apart[(p, j)]}}}", None) if h.apart and (p, j) in h.apart else (None, None)
                if h.apart and (p, j) in h.apart: return f"{{{h.apart[(p, j)]}}}", None
                if "java.util.EnumMap" in inner and d.get(h.inner, "keyUniverse") == p: return "key", None
                return None, None
            for k, n, t in d.fields(p):
                if t != o: continue
                if n in ("key", "k", "referent"): return "key", None
                if n in ("val", "value") and h.apart and p in h.apart: return f"{{{h.apart[p]}}}", None
                return None, None
            return None, None
        if d.kind(p) in "ic":
            for k, n, t in d.fields(p):
                if t == o:
                    if d.kind(p) == "c": return f"static {n} of {k.name}", k.name
                    return f"{k.name}.{n}", k.name
        c = d.class_of(p)
        if c is not None and c.is_thread and o in d.stack_of.get(p, ()): return "local variable", None
        return None, None

    def enter(self, parent, field, declared, key, label, chain):
        "the place of an object whose dominator is at parent, and of its own class or not"
        # chains: of its own class, immediately. READING: not for class objects and threads, which have labels of their own, and not if the
        # dominator is a part of a collection (an Object[] in an ArrayList's)
        if chain: return parent
        new = Place(parent, field, key, label, declared)
        if new.jdk():
            up = parent                                         # with nothing but such labels between
            while up.parent is not None and up.jdk():
                if (up.field, up.key) == (field, key): self.notes["JDK label again"] += 1; return self.again(parent, up)
                up = up.parent
        else:
            up = parent
            while up.parent is not None:
                if (up.field, up.key) == (field, key): self.notes["label again"] += 1; return self.again(parent, up)
                up = up.parent
        if new.depth > MAX_DEPTH: self.notes["too deep"] += 1; return parent
        at = parent.children.setdefault((field, key), new)
        return at

    def again(self, low, up):
        while low is not up: low.nesting = True; low = low.parent
        return up

    # keys that tell something
    def decide(self):
        """which keys of places are told, from the top down: whether places have to be computed again. Below a place that loses keys
        nothing is decided before"""
        changed = False
        def walk(place):
            nonlocal changed
            if (place.maps[0] or place.maps[1]) and place.path not in self.told:
                keys = {c.field for c in place.children.values() if self.is_key(c)}
                told = self.telling(place)
                self.told[place.path] = {k[1:-1] for k in told}
                if told != keys: changed = True; return
            for c in place.children.values(): walk(c)
        walk(self.root)
        return changed

    @staticmethod
    def is_key(place): return place.field is not None and place.field.startswith("{") and place.declared is None

    def telling(self, place):
        dumps = range(len(self.dumps)); zero = lambda: [0 for _ in dumps]
        keys, objects, others = defaultdict(zero), defaultdict(zero), zero()
        for c in place.children.values():
            for i in dumps:
                if self.is_key(c): keys[c.field][i] += c.retained[i]; objects[c.field][i] += c.objects[i]
                elif c.field == "": others[i] += c.retained[i]
        if not keys or len(keys) > 64: return set()
        for i, d in enumerate(self.dumps):
            whole = others[i] + sum(k[i] for k in keys.values())
            if others[i] >= max(d.reachable // 10_000, 1) and 100 * others[i] > 30 * whole: return set()
        there = [i for i in dumps if any(o[i] for o in objects.values())]
        if 2 * sum(all(o[i] for i in there) for o in objects.values()) < len(keys): return set()
        number = lambda m: "*" if re.search(r"[0-9]", m.group()) else m.group()
        if len(keys) <= 8 and 2 * len({re.sub(r"[0-9a-fA-F]+", number, k) for k in keys}) > len(keys): return set(keys)
        # what changed; both dumps count
        weight = {k: max(b) - min(b) for k, b in keys.items()}; whole = sum(weight.values())
        heaviest, total = set(), 0
        for k in sorted(keys, key=lambda k: (-weight[k], k)):
            if not weight[k] or 100 * total >= 70 * whole: break
            heaviest.add(k); total += weight[k]
        return heaviest if len(heaviest) <= 3 and 3 * len(heaviest) <= len(keys) else set()

    def all(self):
        stack = [self.root]
        while stack:
            p = stack.pop()
            if p.parent: yield p
            stack.extend(p.children.values())


# ------------------------------------------------------------------------------------------------------------ what grew

def what_grew(root, least, heavier=True):
    def below(p):
        "the deepest place with at least 70 percent of p's change, or the units that have a multiple of its objects; READING: step by step, by the heaviest child"
        at, change = p, p.delta(); sign = 1 if change > 0 else -1
        unit = None
        while True:
            name = at.key[0]
            if unit is None and abs(at.more()) >= 10 and name != "?" and not name.startswith("class ") and not name.endswith("[]") and not is_jdk(name): unit = at
            fit = [c for c in at.children.values() if not c.nesting and c.delta() * sign > 0 and 10 * c.delta() * sign >= 7 * change * sign]
            if not fit: return unit if unit and abs(at.more()) >= 2 * abs(unit.more()) else at
            at = max(fit, key=lambda c: c.delta() * sign)
    def walk(p):
        "(what is shown of a place, what of it counts: growth and shrinkage)"
        d = p.delta(); parts = [(c, *walk(c)) for c in p.children.values()]
        parts = [(c, shown, g, s) for c, shown, g, s in parts if shown]
        grown, shrunk = sum(x[2] for x in parts), sum(x[3] for x in parts)
        every = [x for _, shown, _, _ in parts for x in shown]
        if not p.parent: return every, grown, shrunk
        if p.nesting: return every, grown, shrunk
        own = (max(d, 0), max(-d, 0))
        hidden = grown if d >= 0 else max(grown, shrunk)
        if 10 * abs(d) < 7 * hidden: return every, grown, shrunk
        if abs(d) >= least and (d > 0 and p.more() >= 2 or d < 0 and p.more() <= -2): return [below(p)], *own
        if parts and 10 * abs(d - grown + shrunk) <= 3 * max(abs(d), grown + shrunk):
            if heavier:
                keys = [x for x in parts if x[0].field == "key"]; values = [x for x in parts if x[0].field != "key" and x[0].declared is None]
                if keys and values:
                    k, v = (sum(g + s for _, _, g, s in x) for x in (keys, values))
                    drop = keys if k <= v else values
                    every = [x for part in parts if part not in drop for x in part[1]]
            return every, *own
        if abs(d) >= least: return [p], *own
        return every, grown, shrunk
    return walk(root)[0]


def map_above(place):
    "what the outermost map above grew by of which the place is in values whose keys are not told"
    found = None
    while place.parent:
        if place.field == "": found = place.parent.delta()
        place = place.parent
    return found


# -------------------------------------------------------------------------------------------------------------- comparing

def main():
    a = argparse.ArgumentParser()
    a.add_argument("cli"); a.add_argument("old"); a.add_argument("new")
    a.add_argument("--index-dir"); a.add_argument("--min-change", action="append", help="1 and the default if not given")
    a.add_argument("--verbose", action="store_true", help="all differences, not only the first 40 of a kind")
    a.add_argument("--by-loader", action="store_true", help="another reading of Places: classes of one name in loaders that differ are apart")
    a.add_argument("--both", action="store_true", help="another reading of What grew: keys and values are both followed")
    a.add_argument("--dump-places", help="write all places to this file")
    a = a.parse_args()
    index_dir = ["--index-dir", a.index_dir] if a.index_dir else []
    Dump.by_loader = a.by_loader
    dumps = [Dump(p, a.cli, index_dir) for p in (a.old, a.new)]
    places = Places(dumps)
    every = list(places.all())
    by_labels = defaultdict(list)
    for p in every: by_labels[tuple(p.labels())].append(p)
    bad = 0
    def complain(kind, lines):
        nonlocal bad
        if not lines: return
        bad += len(lines)
        print(f"{kind}: {len(lines)}")
        for l in lines if a.verbose else lines[:40]: print("   ", l if a.verbose or len(l) < 500 else l[:500] + "...")
        if not a.verbose and len(lines) > 40: print("    ...")
    if a.dump_places:
        with open(a.dump_places, "w") as f:
            for p in sorted(every, key=lambda p: p.labels()): print(p.objects, p.retained, " -> ".join(p.labels()), file=f)
    top = [sum(p.retained[i] for p in places.root.children.values()) for i in (0, 1)]
    reach = [d.reachable for d in dumps]
    if top != reach: complain("top-level places do not add up to the reachable bytes", [f"{top} {reach}"])
    for p in every:
        for i in (0, 1):
            if sum(c.retained[i] for c in p.children.values() if not c.nesting) > p.retained[i]: complain("children retain more than the place", [f"{p.labels()} {i}"])
    rows_compared = 0
    for least in a.min_change or ["1", None]:
        option = ["--min-change", least] if least else []
        r = subprocess.run([a.cli, "diff", a.old, a.new, "--group-by", "place", "--format", "json", "-q", *option, *index_dir], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if r.returncode not in (0, 1): raise SystemExit(r.stderr.decode())
        answer = json.loads(r.stdout); rows, total = answer["rows"], answer["total"]
        title = f"min-change {least or 'default'}"
        if [total["reachable_bytes_old"], total["reachable_bytes_new"], total["reachable_bytes_delta"]] != [*reach, reach[1] - reach[0]]: complain(f"{title}: total", [f"{total} {reach}"])
        bytes_ = total["min_change_bytes"]
        if not least and bytes_ not in (max(reach) // 1000, -(-max(reach) // 1000), round(max(reach) / 1000)): complain(f"{title}: min_change_bytes", [f"{bytes_} {max(reach)}"])
        grown = sum(r["retained_bytes_delta"] for r in rows if r["retained_bytes_delta"] > 0)
        # READING: "all growth that is shown" is what the rows with growth add up to
        all_grown = max(grown, reach[1] - reach[0] - sum(r["retained_bytes_delta"] for r in rows if r["retained_bytes_delta"] < 0))
        wrong, unknown, figures = [], [], []
        if total["grown_bytes"] != grown: wrong.append(f"grown_bytes {total['grown_bytes']}, rows add up to {grown}")
        if total["all_grown_bytes"] != all_grown: wrong.append(f"all_grown_bytes {total['all_grown_bytes']}, not {all_grown}")
        for r in rows:
            rows_compared += 1
            t = tuple(r["place"]); text = " -> ".join(t)
            for k in ("objects", "retained_bytes"):
                if r[k + "_delta"] != r[k + "_new"] - r[k + "_old"]: wrong.append(f"{k}_delta of {text}")
            share = None if r.get("growth_percent") is None else r["growth_percent"] / 100
            expect = r["retained_bytes_delta"] / all_grown if grown else None
            # shares of what shrank: see the report
            if expect is not None and (share is None) != (r["retained_bytes_delta"] < 0) and not (share is not None and abs(share - expect) < 0.0001): wrong.append(f"share {share} of {text}")
            elif share is not None and expect is not None and abs(share - expect) > 0.0001: wrong.append(f"share {share}, not {expect:.4f}: {text}")
            status = "new" if not r["objects_old"] else "gone" if not r["objects_new"] else "changed"
            if r["status"] != status: wrong.append(f"status {r['status']} of {text}")
            theirs = (r["objects_old"], r["objects_new"], r["retained_bytes_old"], r["retained_bytes_new"])
            mine = by_labels.get(t)
            if not mine: unknown.append(f"{text}  {theirs}")
            else:
                ours = [(*p.objects, *p.retained) for p in mine]
                above = {map_above(p) for p in mine}
                if r["map_retained_bytes_delta"] not in above: figures.append(f"{text}  map: hprof-cli {r['map_retained_bytes_delta']}, check.py {above}")
                if theirs not in ours: figures.append(f"{text}  hprof-cli {theirs}, check.py {ours if len(ours) > 1 else ours[0]}")
        deltas = [r["retained_bytes_delta"] for r in rows]
        if deltas != sorted(deltas, reverse=True): wrong.append("not sorted by change")
        theirs = Counter(tuple(r["place"]) for r in rows)
        known = {t for t in theirs if t in by_labels}
        for t in known:                         # by labels, for those with labels left out by the places of one's own
            for p in by_labels[t]:
                up = p.parent
                while up is not None and up.parent is not None:
                    if tuple(up.labels()) in theirs and len(by_labels[tuple(up.labels())]) == 1 and len(by_labels[t]) == 1: wrong.append(f"{t} is in {up.labels()}")
                    up = up.parent
        shown = Counter(tuple(p.labels()) for p in what_grew(places.root, bytes_, not a.both))
        f = lambda t: f"{' -> '.join(t)}  {[(*p.objects, *p.retained) for p in by_labels.get(t, [])]}"
        complain(f"{title}: wrong", wrong)
        complain(f"{title}: places of hprof-cli that check.py does not know", unknown)
        complain(f"{title}: other figures", figures)
        missing, extra = list((shown - theirs).elements()), [t for t in (theirs - shown).elements() if t in by_labels]
        complain(f"{title}: not shown by hprof-cli", [f(t) for t in missing])
        complain(f"{title}: shown by hprof-cli, not by check.py", [f(t) for t in extra])
        print(f"{title} ({bytes_:,} bytes): {len(rows)} rows, check.py shows {sum(shown.values())}")
    same = [t for t, ps in by_labels.items() if len(ps) > 1]
    print(f"{os.path.basename(a.old)} {os.path.basename(a.new)}: {len(every)} places ({len(same)} lists of labels twice), {places.rounds} rounds, "
          f"adopted {[sum(1 for h, _ in d.adopted.values() if h) for d in dumps]}, {dict(places.notes)}; {rows_compared} rows compared, {bad} differences")
    return 1 if bad else 0


if __name__ == "__main__": sys.exit(main())
