#!/usr/bin/env python3
"""What the agent costs: see agent.sh."""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent / "agent"
LOADS = {"Alloc": ["100000", "2"], "Compute": ["300", "2"]}
VARIANTS = {
    "none": None,
    "heap=sites,sample=524288": "heap=sites,sample=524288",
    "heap=sites": "heap=sites",
    "cpu=samples": "cpu=samples",
    "cpu=times": "cpu=times",
    "JFR profile": "jfr",
}


def run(java, classes, load, arguments, agent, directory):
    """Seconds, and the highest VmHWM in KiB."""
    command = [java, "-Xmx1g", "-XX:+UseG1GC"]
    if agent == "jfr":
        command.append(f"-XX:StartFlightRecording=settings=profile,filename={directory}/out.jfr")
    elif agent:
        command.append(f"-agentpath:{agent},file={directory}/out.txt")
    start = time.monotonic()
    process = subprocess.Popen(command + ["-cp", classes, load, *arguments], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, cwd=directory)
    peak = 0

    def watch():
        nonlocal peak
        while process.poll() is None:
            try:
                found = re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{process.pid}/status").read_text())
            except OSError:
                return
            peak = max(peak, int(found.group(1)) if found else 0)
            time.sleep(0.05)
    watching = threading.Thread(target=watch)
    watching.start()
    code = process.wait()
    seconds = time.monotonic() - start
    watching.join()
    if code != 0:
        sys.exit(f"{' '.join(command)}: exit code {code}")
    return seconds, peak


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("jdks", nargs="+")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", help="a load")
    parser.add_argument("--part", type=float, default=1, help="part of the loads' sizes, for shorter runs")
    args = parser.parse_args()
    library = os.path.abspath(args.library)
    for jdk in args.jdks:
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run([f"{jdk}/bin/javac", "--release", "17", "-d", directory, *map(str, sorted(HERE.glob("*.java")))],
                           check=True)
            for load, arguments in LOADS.items():
                if args.only not in (None, load):
                    continue
                arguments = [str(round(int(arguments[0]) * args.part)), *arguments[1:]]
                found = {name: [] for name in VARIANTS}
                ratios = {name: [] for name in VARIANTS}
                for _ in range(args.runs):
                    for name, options in VARIANTS.items():
                        # Each in a pair with a run without agent just before.
                        alone = run(f"{jdk}/bin/java", directory, load, arguments, None, directory)
                        agent = f"{library}={options}" if options not in (None, "jfr") else options
                        with_it = run(f"{jdk}/bin/java", directory, load, arguments, agent, directory)
                        found[name].append(with_it)
                        ratios[name].append(with_it[0] / alone[0])
                print(f"{load} {' '.join(arguments)}, {jdk}, {args.runs} pairs")
                for name, results in found.items():
                    seconds = [seconds for seconds, _ in results]
                    peak = statistics.median(peak for _, peak in results) / 1024
                    ratio = ratios[name]
                    print(f"| {name} | {statistics.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f}) | "
                          f"{statistics.median(ratio):.3f} ({min(ratio):.3f} to {max(ratio):.3f}) | {peak:.0f} MiB |", flush=True)


if __name__ == "__main__":
    main()
