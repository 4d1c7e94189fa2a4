#!/usr/bin/env python3
"""Compares what hprof-cli says of recordings with what the JDK's own tool says of them.

usage: docs/jfr/check.py [--jdk HOME] [--cli PROGRAM] FILE.jfr...

Compared are: events of each type, their number and bytes (`jfr summary`); and from `jfr print --json`, which lists every
event: samples by innermost frame and by whole stack, allocated bytes and samples by class and by class and stack, waits by
class and stack with their durations, threads that were started, and figures about memory over time. Exit code: 0 all equal, 1
something differs.
"""

import argparse
import collections
import json
import re
import subprocess
import sys

SAMPLES = {"execution": "jdk.ExecutionSample", "native": "jdk.NativeMethodSample", "cpu-time": "jdk.CPUTimeSample"}
WAITS = {"enter": "jdk.JavaMonitorEnter", "wait": "jdk.JavaMonitorWait", "park": "jdk.ThreadPark"}
MEMORY = [
    ("resident_set", "jdk.ResidentSetSize", "size"),
    ("resident_set_peak", "jdk.ResidentSetSize", "peak"),
    ("native_reserved", "jdk.NativeMemoryUsageTotal", "reserved"),
    ("native_committed", "jdk.NativeMemoryUsageTotal", "committed"),
    ("native_reserved_by_category", "jdk.NativeMemoryUsage", "reserved"),
    ("native_committed_by_category", "jdk.NativeMemoryUsage", "committed"),
    ("direct_buffers", "jdk.DirectBufferStatistics", "count"),
    ("direct_capacity", "jdk.DirectBufferStatistics", "totalCapacity"),
    ("direct_used", "jdk.DirectBufferStatistics", "memoryUsed"),
    ("threads", "jdk.JavaThreadStatistics", "activeCount"),
    ("daemon_threads", "jdk.JavaThreadStatistics", "daemonCount"),
    ("threads_peak", "jdk.JavaThreadStatistics", "peakCount"),
    ("container_used", "jdk.ContainerMemoryUsage", "memoryUsage"),
    ("container_swap_used", "jdk.ContainerMemoryUsage", "swapMemoryUsage"),
    ("container_failures", "jdk.ContainerMemoryUsage", "memoryFailCount"),
    *(
        (f"{name}_{part}", "jdk.MetaspaceSummary", f"{space}.{part}")
        for name, space in (("metaspace", "metaspace"), ("data_space", "dataSpace"), ("class_space", "classSpace"))
        for part in ("used", "committed", "reserved")
    ),
]
PRIMITIVES = dict(zip("ZBCSIJFD", "boolean byte char short int long float double".split()))


def run(*words, allowed=(0,)):
    done = subprocess.run(words, capture_output=True, check=False)
    if done.returncode not in allowed:
        sys.exit(f"{' '.join(words)}: exit code {done.returncode}: {(done.stderr or done.stdout).decode().strip()}")
    return done.stdout.decode()


def java_name(name):
    """The name of a class as Java spells it, from the JVM's form."""
    depth = len(name) - len(name.lstrip("["))
    name = name[depth:]
    if depth:
        name = PRIMITIVES.get(name, name.removeprefix("L").removesuffix(";"))
    hidden = re.search(r"/0x[0-9a-f]+$", name)
    head, tail = (name[: hidden.start()], hidden.group()) if hidden else (name, "")
    return head.replace("/", ".") + tail + "[]" * depth


def class_of(value):
    return java_name(value["name"]) if value else ""


def stack_of(values):
    trace = values.get("stackTrace")
    if not trace:
        return ()
    frames = []
    for frame in trace["frames"]:
        method = frame["method"]
        line = frame["lineNumber"] if frame["lineNumber"] > 0 else None
        name = class_of(method["type"])
        frames.append((f"{name}.{method['name']}" if name else method["name"], line))
    return tuple(frames)


def nanos(duration):
    """Nanoseconds of an ISO 8601 duration."""
    found = re.fullmatch(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?", duration)
    hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return round((hours * 3600 + minutes * 60 + seconds) * 1e9)


def jdk_summary(jfr, file):
    counts = {}
    for line in run(jfr, "summary", file).splitlines():
        words = line.split()
        if len(words) == 3 and words[1].isdigit() and words[2].isdigit() and words[1] != "0":
            # As JDK 17 spells it.
            counts[words[0].replace("jdk.CheckPoint", "jdk.Checkpoint")] = (int(words[1]), int(words[2]))
    return counts


def jdk_events(jfr, file):
    # Without a limit on the depth of stacks.
    text = run(jfr, "print", "--json", "--stack-depth", "100000", file)
    events = collections.defaultdict(list)
    for event in json.loads(text)["recording"]["events"]:
        events[event["type"]].append(event["values"])
    return events


class Checker:
    def __init__(self, cli, jfr, file):
        self.cli, self.jfr, self.file = cli, jfr, file
        self.is_equal = True

    def ask(self, command, *options):
        # 1: no rows; 3: the file is damaged.
        return json.loads(run(self.cli, command, self.file, "--format", "json", "--quiet", *options, allowed=(0, 1, 3)))

    def compare(self, what, ours, theirs):
        differs = [key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)]
        print(f"  {'differs' if differs else 'equal':8}{what}: {len(theirs)} rows")
        for key in differs[:3]:
            print(f"    {key}\n      hprof-cli: {ours.get(key)}\n      jfr:       {theirs.get(key)}")
        self.is_equal &= not differs

    def stack(self, row):
        name = lambda frame: f"{frame['class']}.{frame['method']}" if frame["class"] else frame["method"]
        return tuple((name(frame), frame["line"]) for frame in row["frames"])

    def check(self):
        print(self.file)
        summary = self.ask("summary")["rows"][0]["flight"]
        ours = {row["event"]: (row["events"], row["event_bytes"]) for row in summary["event_types"]}
        self.compare("events by type", ours, jdk_summary(self.jfr, self.file))
        events = jdk_events(self.jfr, self.file)
        for kind, event in SAMPLES.items():
            if not events[event]:
                continue
            stacks = collections.Counter(stack_of(values) for values in events[event])
            rows = self.ask("cpu", "--event", kind, "--stack", "--depth", "0")["rows"]
            self.compare(f"{event} by stack", {self.stack(row): row["samples"] for row in rows}, stacks)
            tops = collections.Counter(stack[0][0] if stack else None for stack in stacks.elements())
            rows = self.ask("cpu", "--event", kind, "--group-by", "method")["rows"]
            ours = {row["method"]: row["self_samples"] for row in rows if row["self_samples"]}
            self.compare(f"{event} by innermost frame", ours, tops)
        self.sites(events)
        self.memory(events)
        for kind, event in WAITS.items():
            if events[event]:
                self.waits(kind, event, events[event])
        # Of the last threads, the recording may lack the names.
        threads = [values["thread"] for values in events["jdk.ThreadStart"] if values["thread"]]
        started = collections.Counter(thread["javaThreadId"] for thread in threads)
        rows = self.ask("threads", "--started")["rows"]
        self.compare("threads started", collections.Counter(row["thread_serial"] for row in rows), started)
        return self.is_equal

    def sites(self, events):
        samples = [(values, values["weight"]) for values in events["jdk.ObjectAllocationSample"]]
        if not samples:
            samples = [(values, values["tlabSize"]) for values in events["jdk.ObjectAllocationInNewTLAB"]]
            samples += [(values, values["allocationSize"]) for values in events["jdk.ObjectAllocationOutsideTLAB"]]
        sites, classes = {}, {}
        for values, weight in samples:
            name = class_of(values["objectClass"])
            for sums, key in [(sites, (name, stack_of(values))), (classes, name)]:
                count, total = sums.get(key, (0, 0))
                sums[key] = (count + 1, total + weight)
        rows = self.ask("sites", "--stack", "--depth", "0")["rows"]
        ours = {(row["class"], self.stack(row)): (row["samples"], row["allocated_bytes"]) for row in rows}
        self.compare("allocation by site", ours, sites)
        ours = {}
        for row in rows:
            count, total = ours.get(row["class"], (0, 0))
            ours[row["class"]] = (count + row["samples"], total + row["allocated_bytes"])
        self.compare("allocation by class", ours, classes)

    def memory(self, events):
        """Number of samples, and first, last and highest value of each figure."""
        theirs = collections.defaultdict(list)
        for name, event, field in MEMORY:
            for values in events[event]:
                value = values
                for part in field.split("."):
                    value = value[part]
                if value >= 0:
                    theirs[name, values.get("type")].append((values["startTime"], value))
        theirs = {key: sorted(samples, key=lambda sample: sample[0]) for key, samples in theirs.items()}
        values = lambda samples: (len(samples), samples[0][1], samples[-1][1], max(value for _, value in samples))
        keys = ("samples", "first_value", "last_value", "highest_value")
        rows = self.ask("summary")["rows"][0]["memory_over_time"]
        names = {name for name, _, _ in MEMORY}
        ours = {
            (row["figure"], row["category"]): tuple(row[key] for key in keys) for row in rows if row["figure"] in names
        }
        self.compare("memory over time", ours, {key: values(samples) for key, samples in theirs.items()})

    def waits(self, kind, event, all_values):
        theirs = {}
        for values in all_values:
            name = class_of(values.get("monitorClass") or values.get("parkedClass"))
            key = (name or None, stack_of(values))
            count, total = theirs.get(key, (0, 0))
            theirs[key] = (count + 1, total + nanos(values["duration"]))
        theirs = {key: (count, round(total / 1e6)) for key, (count, total) in theirs.items()}
        rows = self.ask("monitors", "--event", kind, "--stack", "--depth", "0")["rows"]
        ours = {(row["monitor"], self.stack(row)): (row["count"], row["self_ms"]) for row in rows}
        self.compare(f"{event} by class and stack", ours, theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jdk", help="home of the JDK whose jfr is asked [default: the one on the path]")
    parser.add_argument("--cli", default="hprof-cli", help="the program [default: hprof-cli]")
    parser.add_argument("files", nargs="+", metavar="FILE.jfr")
    args = parser.parse_args()
    jfr = f"{args.jdk}/bin/jfr" if args.jdk else "jfr"
    equal = [Checker(args.cli, jfr, file).check() for file in args.files]
    sys.exit(0 if all(equal) else 1)


if __name__ == "__main__":
    main()
