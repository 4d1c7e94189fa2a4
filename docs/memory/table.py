#!/usr/bin/env python3
"""table.py --jdk 17=/path/to/home --jdk 25=/path/to/home [--gc G1] [--gc Z] [--case NAME]... [--small] [--mode nmt|nonmt|both]
            [--sealed] [--raw FOLDER] [--out FILE]

For every case: starts a program that has planted a known amount of memory (run.py, in this folder), asks the ledger
(the command in the environment variable HPROF_CLI: `$HPROF_CLI memory PID --format json`, then once more for its first
line, the sentence) and prints a Markdown table of what was planted and what the ledger said.  One JVM runs at a time.
Python 3, standard library only; Linux."""
import argparse, json, os, re, shlex, subprocess, sys, time
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import run
MIB = 1 << 20

# planted kind -> the ledger's row kinds that should hold it (matched on a row's kind, lower case, words joined by spaces)
ROWS = {
    "heap": r"\bheap\b",
    "direct": r"direct",
    "mapped": r"\bmapped\b|mapped files?",
    "stacks": r"stack",
    "classes": r"metaspace|class space|^class(es)?$",
    "code": r"code( cache)?",
    "malloc_seen_by_nmt": r"direct|unsafe",
    "malloc_outside": r"unexplained",
}

def norm(kind):
    return re.sub(r"[^a-z0-9]+", " ", str(kind).lower()).strip()

def said(kind, j):
    """-> (bytes, names of the rows) that the ledger gives for a planted kind."""
    total, names = 0, []
    for r in j.get("rows", []):
        k = norm(r.get("kind"))
        if re.search(ROWS[kind], k) and not (kind == "heap" and re.search("off heap|native heap", k)) and not (kind == "malloc_outside" and "unexplained" in k):
            total += r.get("resident_bytes") or 0
            names.append(str(r.get("kind")))
    if kind == "malloc_outside":
        total += j.get("unexplained_bytes") or 0
        names.append("unexplained")
    return total, names

def cli(pid, *more):
    p = subprocess.run(shlex.split(os.environ["HPROF_CLI"]) + ["memory", str(pid)] + list(more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=180)
    if p.returncode:
        raise RuntimeError("exit %d: %s" % (p.returncode, p.stderr.decode(errors="replace").strip().splitlines()[-1:] or ""))
    return p.stdout.decode(errors="replace")

def pss(pid):
    for l in open("/proc/%d/smaps_rollup" % pid):
        if l.startswith("Pss:"):
            return int(l.split()[1]) << 10

def cell(s):
    return str(s).replace("|", "\\|").replace("\n", " ")

def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--jdk", action="append", required=True, metavar="N=HOME")
    ap.add_argument("--gc", action="append"); ap.add_argument("--case", action="append"); ap.add_argument("--small", action="store_true")
    ap.add_argument("--sealed", action="store_true"); ap.add_argument("--mode", default="both", choices=("nmt", "nonmt", "both"))
    ap.add_argument("--raw", help="keep each JSON reply and truth here"); ap.add_argument("--out")
    a = ap.parse_args()
    if not os.environ.get("HPROF_CLI"):
        sys.exit("table.py: set HPROF_CLI")
    jdks = [j.split("=", 1) if "=" in j else [j, j] for j in a.jdk]
    main_names = list(json.load(open(os.path.join(HERE, "programs.json"))))
    progs = run.programs()
    names = a.case or [n for n in progs if (n in main_names) != a.sealed]
    out = open(a.out, "w") if a.out else sys.stdout
    def put(s):
        out.write(s + "\n"); out.flush()
    put("| Case | JDK | GC | NMT | Process MiB | Unexplained | Rows + unexplained vs process | Planted MiB → ledger MiB (of planted) | Took | The sentence |")
    put("|---|---|---|---|---:|---:|---:|---|---:|---|")
    for name in names:
        for label, home in jdks:
            for gc in a.gc or ["G1", "Z"]:
                if gc not in progs[name][1].get("gc", [gc]):
                    continue
                for mode in ("nmt", "nonmt") if a.mode == "both" else (a.mode,):
                    head = [name, label, gc, "on" if mode == "nmt" else "off"]
                    try:
                        pid, truth = run.start(name, home, gc, "small" if a.small else "big", mode == "nmt")
                    except SystemExit as e:
                        put("| " + " | ".join(map(cell, head + ["", "", "", "did not start: " + str(e)[-120:], "", ""])) + " |")
                        continue
                    try:
                        before = pss(pid)
                        t = time.time()
                        j = json.loads(cli(pid, "--format", "json"))
                        took = time.time() - t
                        sentence = (cli(pid).splitlines() or [""])[0]
                        proc = j["process_bytes"]; un = j["unexplained_bytes"]
                        rows = sum(r.get("resident_bytes") or 0 for r in j["rows"] if "unexplained" not in norm(r.get("kind")))
                        parts = []
                        for k, v in truth["planted"].items():
                            got, rn = said(k, j)
                            parts.append("%s %.0f → %.0f (%s)" % (k, v / MIB, got / MIB, "%.0f%%" % (100 * got / v) if v else "–") + ("" if rn else " no such row"))
                            h = [str(r["holder"]) for r in j["rows"] if r.get("holder") and r.get("kind") in rn]
                            if h: parts[-1] += " held by " + ", ".join(h)
                        put("| " + " | ".join(map(cell, head + ["%.0f%s" % (proc / MIB, "" if abs(proc - before) < 8 * MIB else " (kernel said %.0f before)" % (before / MIB)), "%.1f%%" % (100 * un / proc),
                            "%+.1f%%" % (100 * (rows + un - proc) / proc), "; ".join(parts) or "healthy: nothing planted", "%.1f s" % took, sentence])) + " |")
                        if a.raw:
                            os.makedirs(a.raw, exist_ok=True)
                            json.dump({"truth": truth, "ledger": j, "sentence": sentence, "pss_before": before}, open(os.path.join(a.raw, "-".join(head) + ".json"), "w"), indent=1)
                    except Exception as e:
                        put("| " + " | ".join(map(cell, head + ["", "", "", "the ledger failed: %s" % e, "", ""])) + " |")
                    finally:
                        run.stop(pid)
if __name__ == "__main__":
    main()
