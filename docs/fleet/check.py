#!/usr/bin/env python3
"""Runs the questions of docs/fleet.md over the dumps of make_dumps.py, and checks the answers.

usage: check.py DUMPS [--program hprof-cli] [--work DIR] [--engines duckdb,spark]

Exports all dumps, four of them truncated and one file that is none; asks both engines; compares their answers with each
other, with what make_dumps.py planted (truth.json), and with what commands say of each dump in JSON, added up here. An
engine that is not installed is skipped, and named. The exit code is 1 if anything differs.
"""
import argparse
import collections
import importlib.util
import json
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "examples"))
import fleet  # noqa: E402

COMMANDS = {
    "info": [], "histo": ["--top", "0"], "leaks": [], "waste": ["--top", "0"], "loaders": ["--top", "0"],
    "threads": ["--top", "0"], "strings": ["--top", "0"],
}


class Checks:
    """Counts what is equal, and prints what is not."""

    def __init__(self) -> None:
        self.equal = self.different = 0

    def same(self, what: str, found: object, expected: object) -> None:
        """Compares two values; floating-point numbers up to rounding."""
        if close(found, expected):
            self.equal += 1
            return
        self.different += 1
        print(f"DIFFERENT {what}\n  found    {str(found)[:600]}\n  expected {str(expected)[:600]}")


def close(a: object, b: object) -> bool:
    """Whether two values are equal, numbers up to rounding."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(close(x, y) for x, y in zip(a, b))
    if isinstance(a, bool) or isinstance(b, bool) or a is None or b is None or isinstance(a, (str, dict, set)):
        return a == b
    return math.isclose(float(a), float(b), rel_tol=1e-9, abs_tol=1e-9)


class Fleet:
    """The dumps, and what the commands say of each."""

    def __init__(self, program: str, dumps: pathlib.Path, index: pathlib.Path) -> None:
        self.truth = json.loads((dumps / "truth.json").read_text())
        self.pods = {pod["name"]: pod for pod in self.truth["pods"]}
        self.whole = {name: pod for name, pod in self.pods.items() if not pod["is_truncated"]}
        environment = {**os.environ, "HPROF_CLI_INDEX_DIR": str(index)}

        def ask(one: tuple[str, str]) -> tuple[tuple[str, str], list]:
            name, command = one
            arguments = [program, command, str(dumps / f"{name}.hprof"), *COMMANDS[command], "--format", "json"]
            answer = subprocess.run(arguments, capture_output=True, env=environment)
            # 1: nothing found; 3: damaged.
            if answer.returncode not in (0, 1, 3):
                sys.exit(f"{arguments}: {answer.returncode} {answer.stderr.decode()}")
            return one, json.loads(answer.stdout)["rows"]

        with ThreadPoolExecutor(2) as pool:
            self.told = dict(pool.map(ask, [(name, command) for name in self.pods for command in COMMANDS]))

    def rows(self, command: str, only_whole: bool = False):
        """Dumps with what a command says of each."""
        for name in self.whole if only_whole else self.pods:
            yield name, self.told[name, command]

    def info(self, name: str) -> dict:
        """What `info` says of a dump."""
        return self.told[name, "info"][0]

    def reachable(self, name: str) -> int:
        """Its reachable bytes."""
        return self.info(name)["reachable"]["shallow_bytes"]

    def groups(self, only_whole: bool = True) -> dict:
        """Names of dumps by service and release."""
        groups = collections.defaultdict(list)
        for name, pod in sorted((self.whole if only_whole else self.pods).items()):
            groups[pod["service"], pod["release"]].append(name)
        return groups

    def sizes(self, name: str) -> dict:
        """Instances and bytes by class."""
        sizes = collections.defaultdict(lambda: (0, 0))
        for row in self.told[name, "histo"]:
            count, size = sizes[row["class"]]
            sizes[row["class"]] = (count + row["instances"], size + row["shallow_bytes"])
        return sizes

    def count(self, name: str, of: str) -> int:
        """What was planted in a pod."""
        return self.pods[name]["counts"][of]


def top(rows: list, key, limit: int) -> list:
    """The first rows in an order."""
    return sorted(rows, key=key)[:limit]


def expected(f: Fleet) -> dict:
    """What answers have to be, by question: rows, or a function that takes the rows and returns found and expected."""
    whole, groups = f.whole, f.groups()
    answers: dict = {}
    rows = []
    for (service, release), names in sorted(f.groups(False).items()):
        sizes = [f.reachable(name) for name in names]
        damaged = sum(f.pods[name]["is_truncated"] for name in names)
        rows.append((service, release, len(names), damaged, min(sizes), max(sizes)))
    answers[1] = rows
    truncated = sorted(name for name, pod in f.pods.items() if pod["is_truncated"])
    answers[2] = lambda rows: ([row[0] for row in rows], truncated)
    wide = collections.Counter(8 if pod["jvm"] else 4 for pod in f.pods.values())

    def layouts(rows: list) -> tuple:
        found = collections.Counter()
        for row in rows:
            found[row[2]] += row[5]
        return dict(found), dict(wide)

    answers[3] = layouts
    rows = []
    for service in ("cart", "pay", "search"):
        before = None
        names = [name for name in whole if whole[name]["service"] == service]
        for name in sorted(names, key=lambda name: (f.info(name)["created"], name)):
            size = f.reachable(name)
            rows.append((service, name, f.info(name)["created"], size, None if before is None else size - before))
            before = size
    answers[4] = rows
    mean = statistics.fmean
    answers[5] = [
        (*group, len(names), mean(f.info(name)["reachable"]["objects"] for name in names), mean(map(f.reachable, names)))
        for group, names in sorted(groups.items())
    ]
    means = {}
    for release in ("41", "42"):
        names = groups["cart", release]
        sums = collections.defaultdict(lambda: [0, 0])
        for name in names:
            for of, (count, size) in f.sizes(name).items():
                sums[of][0] += count
                sums[of][1] += size
        means[release] = {of: (count / len(names), size / len(names)) for of, (count, size) in sums.items()}
    grown = []
    for of, (count, size) in means["42"].items():
        count_before, size_before = means["41"].get(of, (0.0, 0.0))
        if size > size_before:
            grown.append((of, count_before, count, size - size_before))
    answers[6] = top(grown, lambda row: (-row[3], row[0]), 20)
    # Release 42 brought a class; only the pod that leaks has loaded what it leaks.
    rows = [(service, "com.acme.Coupon", 1, "42") for service in ("cart", "pay", "search")]
    answers[7] = sorted([*rows, ("cart", "com.acme.Shop$Entry", 1, "42")])
    new = sum(pod["release"] == "42" for pod in whole.values())
    answers[8] = [("com.acme.Account", "coupon", "object", new, len(whole), "42")]
    leaking = f.truth["leaking"]
    usual = statistics.median(map(f.reachable, groups["cart", "42"]))
    answers[9] = [(leaking, f.reachable(leaking), usual, f.reachable(leaking) / usual)]
    rows = []
    for group, names in sorted(groups.items()):
        sizes = {name: f.sizes(name) for name in names}
        best = []
        for of in {of for size in sizes.values() for of in size}:
            total = sum(size[of][1] for size in sizes.values() if of in size)
            for name in names:
                if of in sizes[name]:
                    size = sizes[name][of][1]
                    best.append((-(size - (total - size) / (len(names) - 1)), name, of))
        extra, name, of = min(best)
        rows.append((*group, name, of, -extra))
    answers[10] = rows

    def growth(rows: list) -> tuple:
        paths = [row[0] for row in rows]
        held = [any(path.startswith(f"static {field} of com.acme.Shop") for path in paths) for field in ("SESSIONS", "LEAK")]
        return held, [True, True]

    answers[12] = growth
    suspects = []
    for name, found in f.rows("leaks"):
        for rank, row in enumerate(found, 1):
            owner = row["owner"] or {}
            suspects.append((name, row["class"], row["verdict"], row["objects"], row["retained_bytes"], row["retained_percent"],
                             owner.get("class"), owner.get("field"), rank))
    answers[13] = [row[:-1] for row in top(suspects, lambda row: (-row[5], row[0], row[8]), 50)]
    by_owner = collections.defaultdict(list)
    for name, _, verdict, _, size, _, owner, field, _ in suspects:
        if owner:
            by_owner[f.pods[name]["service"], owner, field, verdict].append((name, size))
    dumps = collections.Counter(pod["service"] for pod in f.pods.values())
    rows = [(*key, len({name for name, _ in of}), dumps[key[0]], max(size for _, size in of)) for key, of in by_owner.items()]
    answers[14] = sorted(rows, key=lambda row: (row[4], *row[:4]))
    copies, in_dumps, saved = collections.Counter(), collections.Counter(), collections.Counter()
    for name, found in f.rows("strings"):
        texts = collections.Counter(row["label"] for row in found)
        copies.update(texts)
        in_dumps.update(texts.keys())
        if name in whole:
            saved[whole[name]["service"]] += sum(count - 1 for count in texts.values())
    often = sorted((-count, -in_dumps[text], text) for text, count in copies.items() if count > in_dumps[text])[:20]
    often = sorted((count, len(text), -number) for count, number, text in often)
    # Only hashes are exported: texts are compared by copies, length and dumps.
    answers[15] = lambda rows: (
        sorted((-row[2], row[1], row[3]) for row in rows)[:15],
        [(count, length, number) for count, length, number in often][:15],
    )
    whole_of = collections.Counter(pod["service"] for pod in whole.values())
    answers[16] = lambda rows: (
        [row[:2] for row in rows], [(service, saved[service] / whole_of[service]) for service in sorted(saved)]
    )
    kinds, fields = collections.defaultdict(lambda: [0, 0, 0]), collections.defaultdict(lambda: [0, 0, 0])
    for _, found in f.rows("waste"):
        for row in found:
            for sums, values in [(kinds[row["kind"]], (1, row["objects"], row["added_bytes"]))]:
                sums[:] = [a + b for a, b in zip(sums, values)]
            in_dump = collections.defaultdict(lambda: [0, 0])
            for field in row["fields"]:
                if field["field"] is not None:
                    of = in_dump[row["kind"], field["field"]]
                    of[:] = [of[0] + field["objects"], of[1] + field["wasted_bytes"]]
            for key, (count, size) in in_dump.items():
                fields[key][:] = [a + b for a, b in zip(fields[key], (1, count, size))]
    answers[17] = sorted(((kind, *sums) for kind, sums in kinds.items()), key=lambda row: (-row[3], row[0]))
    answers[18] = top([(*key, *sums) for key, sums in fields.items()], lambda row: (-row[4], row[0], row[1]), 20)
    packages = collections.defaultdict(lambda: [0, 0])
    for name in f.pods:
        for of, (count, size) in f.sizes(name).items():
            # Names of hidden classes go on with a slash or a plus sign.
            package = re.split("[/+]", of.replace("[]", ""))[0].rpartition(".")[0]
            packages[package][:] = [packages[package][0] + count, packages[package][1] + size]
    answers[19] = top([(of, *sums) for of, sums in packages.items()], lambda row: (-row[2], row[0]), 20)
    answers[20] = lambda rows: (rows[0][0], leaking)
    buffers = {(name, f.count(name, "buffer")) for name in f.pods if f.count(name, "buffer")}
    certain = {(name, length) for name, length in buffers if name in whole}

    def arrays(rows: list) -> tuple:
        # Dumps with garbage may have other arrays, to which nothing refers.
        planted = [row for row in rows if (row[0], row[2]) in buffers]
        of_whole = {(row[4], row[5]) for row in planted if row[0] in whole}
        return (certain <= {(row[0], row[2]) for row in planted}, of_whole), (True, {("buffer", "java.lang.Class")})

    answers[21] = arrays
    plant = lambda of: sum(f.count(name, of) for name in whole)  # noqa: E731
    new_sessions = sum(f.count(name, "sessions") for name in whole if whole[name]["release"] == "42")
    chains = sum(max(f.count(name, "chain") - 1, 0) for name in whole)
    planted = {
        ("com.acme.Account", "currency"): plant("sessions"), ("com.acme.Shop$Session", "account"): plant("sessions"),
        ("com.acme.Account", "coupon"): new_sessions, ("com.acme.Shop$Entry", "bytes"): plant("leak"),
        ("com.acme.Shop$Node", "next"): chains, ("com.acme.Plugin", "settings"): plant("loaders"),
    }
    answers[22] = lambda rows: ({row[:2]: row[2] for row in rows if row[:2] in planted}, planted)
    answers[23] = lambda rows: (
        {row[1] for row in rows if row[0] == "com.acme.Shop"} >= {"LEAK", "buffer", "SESSIONS"}, True
    )
    roots = collections.Counter()
    for name in whole:
        for kind, count in f.info(name)["gc_roots"].items():
            roots[whole[name]["service"], kind] += count
    answers[24] = [(*key, count / whole_of[key[0]]) for key, count in sorted(roots.items())]
    longest = max((f.count(name, "chain"), name) for name in whole)

    def deepest(rows: list) -> tuple:
        row = next(row for row in rows if row[0] == "search")
        return (row[1], row[2], longest[0] <= row[3] + 1 <= longest[0] + 5), (longest[1], "com.acme.Shop$Node", True)

    answers[25] = deepest
    with_garbage = [name for name in whole if f.count(name, "garbage")]
    answers[26] = lambda rows: (
        [row[1:3] for row in rows if row[0] == "com.acme.Shop$Garbage"], [(plant("garbage"), len(with_garbage))]
    )
    workers = {service: next(pod["counts"]["threads"] for pod in whole.values() if pod["service"] == service) for service in whole_of}
    answers[27] = lambda rows: (
        [(row[0], *row[2:]) for row in rows if row[1] == "pool-1-thread-"],
        [(service, whole_of[service], count, count) for service, count in sorted(workers.items())],
    )
    waits, wait_dumps, held = collections.Counter(), collections.defaultdict(set), collections.defaultdict(list)
    for name, found in f.rows("threads"):
        for thread in found:
            frames = thread["frames"]
            first = frames[0] if frames else None
            if thread["state"] and first and first["class"] and first["method"]:
                key = (thread["state"], first["class"], first["method"])
                waits[key] += 1
                wait_dumps[key].add(name)
            for local in [local for frame in frames for local in frame["locals"]] + thread["locals"]:
                if local["class"] and local["retained_bytes"] is not None:
                    held[local["class"]].append((name, local["retained_bytes"]))
    rows = [(*key, count, len(wait_dumps[key])) for key, count in waits.items()]
    answers[28] = top(rows, lambda row: (-row[3], *row[:3]), 20)
    rows = [(of, len(all_of), len({name for name, _ in all_of}), max(size for _, size in all_of)) for of, all_of in held.items()]
    answers[29] = top(rows, lambda row: (-row[3], row[0]), 20)
    with_loaders = {name: [row for row in f.told[name, "loaders"] if row["loader_group"] is not None] for name in whole if f.count(name, "loaders")}
    largest = max(row["retained_bytes"] for rows in with_loaders.values() for row in rows)
    answers[30] = [("search", "com.acme.Shop$PluginLoader", 5, 1, largest)]
    return answers


def export(program: str, dumps: pathlib.Path, lake: pathlib.Path, index: pathlib.Path, f: dict, checks: Checks) -> None:
    """Exports the dumps with their labels: a call for each service and release, as a fleet does."""
    shutil.rmtree(lake, ignore_errors=True)
    groups = collections.defaultdict(list)
    for pod in f["pods"]:
        groups[pod["service"], pod["release"]].append(pod)
    for (service, release), pods in groups.items():
        files = [str(dumps / f"{pod['name']}.hprof") for pod in pods]
        # One that is no dump, in the middle: the others are exported.
        broken = [str(dumps / f["broken"])] if (service, release) == ("cart", "41") else []
        arguments = [program, "export", *files[:1], *broken, *files[1:], "--output-dir", str(lake), "--index-dir", str(index),
                     "--label", f"service={service}", "--label", f"release={release}", "--report", "json"]
        run = subprocess.run(arguments, capture_output=True)
        code = 2 if broken else 3 if any(pod["is_truncated"] for pod in pods) else 0
        checks.same(f"exit code of export {service} {release} {run.stderr.decode()[-300:]}", run.returncode, code)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dumps", type=pathlib.Path)
    parser.add_argument("--program", default="hprof-cli")
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--engines", default="duckdb,spark")
    arguments = parser.parse_args()
    work = arguments.work or pathlib.Path(tempfile.mkdtemp())
    work.mkdir(parents=True, exist_ok=True)
    checks = Checks()
    lake, index = work / "lake", work / "index"
    truth = json.loads((arguments.dumps / "truth.json").read_text())
    export(arguments.program, arguments.dumps, lake, index, truth, checks)
    checks.same("dumps in the lake", len(list((lake / "dumps").glob("dump=*"))), len(truth["pods"]))
    told = Fleet(arguments.program, arguments.dumps, index)
    right = expected(told)
    views, questions = fleet.questions()
    answers: dict = {}
    for name in arguments.engines.split(","):
        module, make = {"duckdb": ("duckdb", fleet.DuckDb), "spark": ("pyspark", fleet.Spark)}[name]
        if importlib.util.find_spec(module) is None:
            print(f"NOT RUN: {name} (no Python module {module})")
            continue
        engine = make(str(lake), fleet.TABLES) if name == "duckdb" else make(str(lake), fleet.TABLES, "local[2]")
        for view in views:
            engine.run(view)
        for number, (title, sql) in questions.items():
            try:
                rows = engine.run(sql)[1]
            except Exception as error:  # noqa: BLE001 - the next question may be answered
                checks.same(f"{name} {number}. {title}", f"{error}"[:500], "an answer")
                continue
            answers[name, number] = rows
            wanted = right.get(number)
            if callable(wanted):
                checks.same(f"{name} {number}. {title}", *wanted(rows))
            elif wanted is not None:
                checks.same(f"{name} {number}. {title}", rows, wanted)
        # Sessions at their place, by what was planted.
        sessions = "SELECT p.dump, sum(p.objects) FROM places p JOIN whole w ON w.dump = p.dump " \
            "WHERE p.class = 'com.acme.Shop$Session' AND NOT p.is_class_object GROUP BY p.dump ORDER BY p.dump"
        planted = [(pod, told.count(pod, "sessions")) for pod in sorted(told.whole)]
        checks.same(f"{name}: sessions in places", engine.run(sessions)[1], planted)
    for number, (title, _) in questions.items():
        if ("duckdb", number) in answers and ("spark", number) in answers:
            checks.same(f"duckdb and spark: {number}. {title}", answers["spark", number], answers["duckdb", number])
    print(f"{checks.equal} equal, {checks.different} different; without planted truth: "
          f"{', '.join(str(number) for number in questions if number not in right) or 'none'}")
    return 1 if checks.different else 0


if __name__ == "__main__":
    sys.exit(main())
