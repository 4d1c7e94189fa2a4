#!/usr/bin/env python3
"""run.py NAME JDK GC [small|big] [nmt|nonmt] [--cgroup DIR] [--log]

Starts one of the programs of programs.json (or sealed/programs.json), waits until it has planted what it
plants ("READY"), prints its PID and then one line of JSON: the truth.  run.py --stop PID ends it.

JDK is a java home, or a name N for which LEDGER_JDK_N is set or jdks.json has a home.  GC: G1, Z, Serial, Parallel.
Python 3, standard library only; Linux."""
import json, os, re, shutil, signal, subprocess, sys, time
HERE = os.path.dirname(os.path.abspath(__file__))
# Ignored by git.
RUN = os.environ.get("LEDGER_RUN", os.path.join(HERE, "..", "..", "target", "planted"))
GC = {"G1": "-XX:+UseG1GC", "Z": "-XX:+UseZGC", "Serial": "-XX:+UseSerialGC", "Parallel": "-XX:+UseParallelGC"}

def home(jdk):
    if os.path.isdir(jdk):
        return os.path.abspath(jdk)
    h = os.environ.get("LEDGER_JDK_" + jdk)
    if not h:
        p = os.path.join(HERE, "jdks.json")
        h = json.load(open(p)).get(jdk) if os.path.exists(p) else None
    if not h:
        sys.exit("run.py: no JDK %s (give a home, or set LEDGER_JDK_%s)" % (jdk, jdk))
    return h

def version(h):
    out = subprocess.run([os.path.join(h, "bin", "java"), "-version"], stderr=subprocess.PIPE, env={}).stderr.decode()
    return int(re.search(r'version "(\d+)', out).group(1))

def programs():
    """name -> (folder of sources, entry)"""
    all_ = {}
    for sub in (".", "sealed"):
        p = os.path.join(HERE, sub, "programs.json")
        if os.path.exists(p):
            for k, v in json.load(open(p)).items():
                all_[k] = (os.path.join(HERE, sub, "programs"), v)
    return all_

def classes(folder, h):
    out = os.path.join(RUN, "classes", os.path.basename(os.path.dirname(folder)))
    src = [os.path.join(folder, "io/acme", f) for f in sorted(os.listdir(os.path.join(folder, "io/acme"))) if f.endswith(".java")]
    stamp = os.path.join(out, ".stamp")
    if not os.path.exists(stamp) or any(os.path.getmtime(s) > os.path.getmtime(stamp) for s in src):
        javac = os.path.join(h, "bin", "javac")
        if not os.path.exists(javac):
            javac = shutil.which("javac") or sys.exit("run.py: no javac")
        os.makedirs(out, exist_ok=True)
        r = subprocess.run([javac, "-nowarn", "--release", "11", "-d", out] + src, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if r.returncode:
            sys.exit(r.stdout.decode())
        open(stamp, "w").close()
    return out

def stacks(pid, prefixes=("acme-", "json-parser")):
    """Resident and size of the stacks of the planted threads: each mapping that holds a stack pointer of one."""
    sps = []
    for t in os.listdir("/proc/%d/task" % pid):
        try:
            b = "/proc/%d/task/%s/" % (pid, t)
            if open(b + "comm").read().startswith(prefixes):
                f = open(b + "syscall").read().split()
                if len(f) > 2:
                    sps.append(int(f[-2], 16))
        except OSError:
            pass
    sps.sort()
    import bisect
    n = pss = size = 0; hit = False
    for l in open("/proc/%d/smaps" % pid):
        m = re.match(r"([0-9a-f]+)-([0-9a-f]+) ", l)
        if m:
            lo, hi = int(m[1], 16), int(m[2], 16)
            k = bisect.bisect_left(sps, hi) - bisect.bisect_left(sps, lo)
            hit = k > 0
            if hit:
                n += k; size += hi - lo
        elif hit and l.startswith("Pss:"):
            pss += int(l.split()[1]) << 10
    return {"threads_seen": n, "pss": pss, "size": size}

def start(name, jdk, gc, size="big", nmt=True, cgroup=None, timeout=240):
    """-> (pid, truth)"""
    folder, e = programs()[name]
    h = home(jdk)
    cp = classes(folder, h)
    os.makedirs(RUN, exist_ok=True)
    work = os.path.join(RUN, "%s-%s-%s-%s-%d" % (name, os.path.basename(jdk.rstrip("/")), gc, size, os.getpid()))
    os.makedirs(work, exist_ok=True)
    flags = [GC[gc]] + e.get("flags", []) + e.get(size + "_flags", []) + e.get("gc_flags", {}).get(gc, [])
    if "gc" in e and gc not in e["gc"]:
        flags = [f for f in flags if not f.startswith("-XX:G1")]
    if nmt:
        flags.append("-XX:NativeMemoryTracking=summary")
    cmd = [os.path.join(h, "bin", "java")] + flags + ["-Dacme.dir=" + work, "-cp", cp, "io.acme." + name] + e[size]
    log = os.path.join(work, "log")
    def pre():
        os.setsid()
        os.nice(5)
        if cgroup:
            with open(os.path.join(cgroup, "cgroup.procs"), "w") as f:
                f.write(str(os.getpid()))
    p = subprocess.Popen(cmd, stdin=subprocess.DEVNULL, stdout=open(log, "wb"), stderr=subprocess.STDOUT,
                         env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}, cwd=work, preexec_fn=pre)
    start_time = open("/proc/%d/stat" % p.pid).read().rsplit(")", 1)[1].split()[19]
    json.dump({"pid": p.pid, "start": start_time, "work": work}, open(os.path.join(RUN, "%d.json" % p.pid), "w"))
    t0 = time.time()
    while time.time() - t0 < timeout:
        text = open(log, errors="replace").read()
        if "\nREADY\n" in text or text.startswith("READY\n"):
            truth = json.loads(re.search(r"^TRUTH (.*)$", text, re.M).group(1))
            truth.update(name=name, jdk=version(h), gc=gc, size=size, nmt=nmt, flags=flags, args=e[size])
            time.sleep(0.5)
            if "stacks" in truth["planted"]:
                st = stacks(p.pid)
                truth["stacks_pss_delta_bytes"] = truth["planted"]["stacks"]
                truth["planted"]["stacks"] = st["pss"]
                truth["stack_mappings"] = st
                truth["measured"] = "stacks: PSS of the mappings that hold a planted thread's stack pointer (/proc/PID/task/TID/syscall)"
            return p.pid, truth
        if p.poll() is not None:
            stop(p.pid, keep_log=True)
            sys.exit("run.py: %s ended with %s before READY:\n%s" % (" ".join(cmd), p.returncode, text[-3000:]))
        time.sleep(0.1)
    stop(p.pid)
    sys.exit("run.py: %s not READY in %d s" % (name, timeout))

def stop(pid, keep_log=False):
    """Ends only a process that start() began (its pid and start time are on record)."""
    rec = os.path.join(RUN, "%d.json" % pid)
    if not os.path.exists(rec):
        sys.exit("stop: %d was not started here" % pid)
    r = json.load(open(rec))
    def alive():
        try:
            s = open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()
            return s[19] == r["start"] and s[0] != "Z"
        except OSError:
            return False
    for sig, wait in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        if not alive():
            break
        os.kill(pid, sig)
        t = time.time()
        while alive() and time.time() - t < wait:
            time.sleep(0.05)
    try:
        os.waitpid(pid, os.WNOHANG)
    except OSError:
        pass
    if not keep_log:
        shutil.rmtree(r["work"], ignore_errors=True)
    os.remove(rec)

if __name__ == "__main__":
    a = sys.argv[1:]
    if a[:1] == ["--stop"]:
        stop(int(a[1]))
    elif len(a) < 3:
        sys.exit(__doc__)
    else:
        cg = None
        if "--cgroup" in a:
            i = a.index("--cgroup"); cg = a[i + 1]; del a[i:i + 2]
        pid, truth = start(a[0], a[1], a[2], "small" if "small" in a[3:] else "big", "nonmt" not in a[3:], cg)
        print(pid)
        print(json.dumps(truth))
