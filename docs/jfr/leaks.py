#!/usr/bin/env python3
"""Runs programs with a known leak under Flight Recorder, and checks that hprof-cli names the line that leaks first.

usage: docs/jfr/leaks.py --jdk HOME [--jdk HOME...] [--cli PROGRAM] [--seconds N] [--kinds KIND,...] [--keep DIRECTORY]

Each kind of Leaking.java runs in each JDK three times, in an empty environment: without jdk.OldObjectSample, with it as
in settings=profile (no chains), and with chains (cutoff=infinity). After N seconds (60) the recording and the heap are dumped,
and `leaks --recording` must name the line marked LEAK first. Printed are share and number of samples of the first line, sampled
objects that stayed alive, by what it is sure, and how much more was allocated than by the line that leaks. Exit code: 0 all named, 1 some not.
"""

import argparse
import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
KINDS = ["map", "list", "local", "cache"]
OLD = {
    "none": ",jdk.OldObjectSample#enabled=false",
    "profile": "",
    "chains": ",jdk.OldObjectSample#enabled=true,jdk.OldObjectSample#stackTrace=true,jdk.OldObjectSample#cutoff=infinity",
}


def run(words, **options):
    return subprocess.run(words, check=False, capture_output=True, text=True, **options)


def leaking_line(kind):
    """Line of the source that is marked."""
    for number, line in enumerate((HERE / "Leaking.java").read_text().splitlines(), 1):
        if line.endswith(f"// LEAK {kind}"):
            return number
    sys.exit(f"no line of {kind} is marked")


def record(jdk, classes, kind, old, seconds, out):
    """Runs the program, and dumps recording and heap to OUT.jfr and OUT.hprof."""
    settings = f"-XX:StartFlightRecording=settings=profile{OLD[old]}"
    words = [f"{jdk}/bin/java", "-Xmx1g", settings, "-cp", classes, "Leaking", kind, str(seconds)]
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    program = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    try:
        for line in program.stdout:
            if "READY" in line:
                break
        else:
            sys.exit(f"{kind}: the program ended early")
        chains = ["path-to-gc-roots=true"] if old == "chains" else []
        for command in (["JFR.dump", f"filename={out}.jfr", *chains], ["GC.heap_dump", f"{out}.hprof"]):
            done = run([f"{jdk}/bin/jcmd", str(program.pid), *command])
            if done.returncode:
                sys.exit(f"{command}: {done.stdout}{done.stderr}")
    finally:
        program.kill()
        program.wait()


def check(cli, kind, out, directory):
    """Returns whether the line is named first, and the figures."""
    words = [cli, "leaks", f"{out}.hprof", "--recording", f"{out}.jfr", "--format", "json", "--index-dir", directory]
    document = json.loads(run(words).stdout)
    wanted = leaking_line(kind)
    row = document["rows"][0]
    samples, lines = row["recorded_allocation"], row["allocated_in"]
    if not lines:
        return False, f"no line: {samples}"
    found = re.search(r"\(line (\d+)\)$", lines[0]["frame"])
    is_named = found is not None and int(found.group(1)) == wanted and lines[0]["frame"] in row["sentence"]
    sites = json.loads(run([cli, "sites", f"{out}.jfr", "--format", "json"]).stdout)
    everything = sum(site["allocated_bytes"] for site in sites["rows"])
    leak = next((line for line in lines if line["frame"].endswith(f"(line {wanted})")), None)
    of = everything / max(1, leak["weight_bytes"]) if leak else 0
    first = lines[0]
    return is_named, (
        f"{first['frame']} {first['percent']}% {first['samples']} of {samples['samples']} samples, "
        f"alive {first['old_objects']} of {samples['old_objects']}, held alike {first['held_alike_objects']}, "
        f"{samples['sure']}, all allocation {of:.0f} x, same process {document['recording']['same_process']}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jdk", action="append", required=True)
    parser.add_argument("--cli", default="hprof-cli")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--keep")
    options = parser.parse_args()
    directory = options.keep or tempfile.mkdtemp()
    os.makedirs(directory, exist_ok=True)
    failures = 0
    for number, jdk in enumerate(options.jdk):
        classes = f"{directory}/classes{number}"
        built = run([f"{jdk}/bin/javac", "-nowarn", "-d", classes, str(HERE / "Leaking.java")])
        if built.returncode:
            sys.exit(built.stderr)
        for kind in options.kinds.split(","):
            for old in OLD:
                out = f"{directory}/{kind}-{number}-{old}"
                if not (os.path.exists(f"{out}.jfr") and os.path.exists(f"{out}.hprof")):
                    record(jdk, classes, kind, old, options.seconds, out)
                is_named, text = check(options.cli, kind, out, directory)
                failures += not is_named
                print(f"{'ok  ' if is_named else 'FAIL'} {os.path.basename(jdk)} {kind} {old}: {text}", flush=True)
                if not options.keep:
                    for end in (".jfr", ".hprof"):
                        os.remove(out + end)
                for index in glob.glob(f"{out}.hprof*.index"):
                    shutil.rmtree(index)
    if not options.keep:
        shutil.rmtree(directory)
    return 1 if failures else 0


if __name__ == "__main__":
    start = time.monotonic()
    code = main()
    print(f"{time.monotonic() - start:.0f} s")
    sys.exit(code)
