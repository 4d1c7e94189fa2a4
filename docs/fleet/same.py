#!/usr/bin/env python3
"""Compares what SQL over exported tables says with what commands say of the same dumps.

usage: same.py DUMP... [--program hprof-cli] [--work DIR] [--engines duckdb,spark] [--objects 1000]

`histo`, `dominators --all`, `strings --duplicates`, `roots`, `threads`, the counts of `info`, and `refs` of random objects,
as many as --objects over all dumps. An engine that is not installed is skipped, and named. The exit code is 1 if anything
differs.
"""
import argparse
import collections
import importlib.util
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "examples"))
import fleet  # noqa: E402

COMMANDS = {
    "info": [], "histo": ["--top", "0"], "dominators": ["--all"], "strings": ["--duplicates", "--top", "0"],
    "roots": ["--top", "0"], "threads": ["--top", "0"],
}

TABLES = ["classes", "objects", "refs", "roots", "strings", "threads"]

SQL = {
    "histo": "SELECT dump, class_object, class, instances, shallow_bytes FROM classes WHERE instances > 0",
    "dominators": "SELECT dump, object, class, shallow_bytes, retained_bytes, dominator FROM objects WHERE is_reachable",
    "strings": "SELECT s.dump, s.text, max(s.length), count(*) FROM strings s JOIN objects o ON o.dump = s.dump AND o.object = s.object "
               "WHERE s.text IS NOT NULL GROUP BY s.dump, s.text HAVING count(*) > 1",
    "roots": "SELECT dump, object, kind, thread, frame_number, count(*) FROM roots GROUP BY dump, object, kind, thread, frame_number",
    "threads": "SELECT dump, object, name, state, retained_bytes FROM threads",
    "info": "SELECT dump, kind, count(*), sum(shallow_bytes) FROM objects GROUP BY dump, kind",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dumps", type=pathlib.Path, nargs="+")
    parser.add_argument("--program", default="hprof-cli")
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--engines", default="duckdb,spark")
    parser.add_argument("--objects", type=int, default=1000)
    arguments = parser.parse_args()
    work = arguments.work or pathlib.Path(tempfile.mkdtemp())
    work.mkdir(parents=True, exist_ok=True)
    lake, index = work / "lake", work / "index"
    shutil.rmtree(lake, ignore_errors=True)
    environment = {**os.environ, "HPROF_CLI_INDEX_DIR": str(index)}

    def run(*words: str) -> dict:
        answer = subprocess.run([arguments.program, *words], capture_output=True, env=environment)
        if answer.returncode not in (0, 1, 3):
            sys.exit(f"{words}: {answer.returncode} {answer.stderr.decode()}")
        return json.loads(answer.stdout)

    exported = run("export", *map(str, arguments.dumps), "--output-dir", str(lake), "--strings", "text", "--tables", ",".join(TABLES), "--report", "json")
    names = {dump["name"]: path for dump, path in zip(exported["dumps"], arguments.dumps)}

    def expect(name: str) -> dict:
        """What the commands say, as a bag of rows each."""
        path = str(names[name])
        told = {command: run(command, path, *more, "--format", "json")["rows"] for command, more in COMMANDS.items()}
        number = lambda text: None if text in (None, "root") else int(text, 16)  # noqa: E731
        rows = {
            "histo": [(number(row["class_object"]), row["class"], row["instances"], row["shallow_bytes"])
                      for row in told["histo"] if row["instances"]],
            "dominators": [(number(row["object"]), row["class"], row["shallow_bytes"], row["retained_bytes"], number(row["dominator"]))
                           for row in told["dominators"]],
            "strings": [(None if row["is_truncated"] else row["text"], row["length"], row["strings"]) for row in told["strings"]],
            "roots": [(number(row["object"]), row["kind"], number(row["thread"]), row["frame_number"], row["times"]) for row in told["roots"]],
            "threads": [(number(row["object"]), row["name"], row["state"], row["retained_bytes"]) for row in told["threads"]],
            "info": [(kind, told["info"][0]["objects"][plural])
                     for kind, plural in [("instance", "instances"), ("object_array", "object_arrays"),
                                          ("primitive_array", "primitive_arrays"), ("class", "classes")]
                     if told["info"][0]["objects"][plural]],
        }
        answer = {command: collections.Counter(of) for command, of in rows.items()}
        answer["cut"] = {row["length"] for row in told["strings"] if row["is_truncated"]}
        answer["bytes"] = told["info"][0]["shallow_bytes"]
        some = sorted(row[0] for row in rows["dominators"])
        some = random.Random(name).sample(some, min(len(some), -(-arguments.objects // len(names))))
        answer["refs"] = collections.Counter()
        for one in some:
            for row in run("refs", path, hex(one), "--top", "0", "--format", "json")["rows"]:
                answer["refs"][one, number(row["object"]), row["reference"]] += 1
        answer["some"] = some
        return answer

    with ThreadPoolExecutor(2) as pool:
        expected = dict(zip(names, pool.map(expect, names)))
    print(f"{len(names)} dumps, {sum(len(one['some']) for one in expected.values())} random objects")
    equal = different = 0

    def same(what: str, found, wanted) -> None:
        nonlocal equal, different
        if found == wanted:
            equal += 1
            return
        different += 1
        print(f"DIFFERENT {what}")
        if isinstance(found, collections.Counter):
            print(f"  only in SQL: {list((found - wanted).items())[:4]}\n  only in the command: {list((wanted - found).items())[:4]}")
        else:
            print(f"  SQL {found}, command {wanted}")

    for engine_name in arguments.engines.split(","):
        module = {"duckdb": "duckdb", "spark": "pyspark"}[engine_name]
        if importlib.util.find_spec(module) is None:
            print(f"NOT RUN: {engine_name} (no Python module {module})")
            continue
        engine = fleet.DuckDb(str(lake), TABLES) if engine_name == "duckdb" else fleet.Spark(str(lake), TABLES, "local[2]")
        for command, sql in SQL.items():
            found: dict = collections.defaultdict(collections.Counter)
            sizes: collections.Counter = collections.Counter()
            for dump, *row in engine.run(sql)[1]:
                if command == "info":
                    sizes[dump] += row.pop()
                # What commands cut is compared by length.
                if command == "strings" and row[1] in expected[dump]["cut"] and tuple(row) not in expected[dump][command]:
                    row[0] = None
                found[dump][tuple(row)] += 1
            for name, wanted in expected.items():
                same(f"{engine_name} {command} {name}", found[name], wanted[command])
                if command == "info":
                    same(f"{engine_name} bytes {name}", sizes[name], wanted["bytes"])
        for name, wanted in expected.items():
            if not wanted["some"]:
                continue
            some = ", ".join(map(str, wanted["some"]))
            found = collections.Counter(engine.run(
                f"SELECT referrer, target, reference FROM refs WHERE dump = '{name}' AND referrer IN ({some})")[1])
            same(f"{engine_name} refs {name}", found, wanted["refs"])
    print(f"{equal} equal, {different} different")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
