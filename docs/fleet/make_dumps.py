#!/usr/bin/env python3
"""Makes the dumps of a small fleet whose contents are known: three services, two releases, 50 pods.

usage: make_dumps.py DIR

Needs java and javac. Each dump comes from a JVM that runs Shop.java with the counts of its pod; truth.json says what these
are, which dumps were truncated afterwards, and which file is no dump at all. Nothing in truth.json was read from a dump.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
PODS = {"cart": 8, "search": 8, "pay": 9}
RELEASES = ["41", "42"]
# The pod that leaks, and those whose dumps lose their ends: on the way from a pod, dumps do.
LEAKING = "cart-42-5"
TRUNCATED = ["cart-41-2", "search-42-7", "pay-41-0", "pay-42-8"]
# Release 42 has a field and a class more.
ACCOUNT = "package com.acme; class Account {{ long balance; String currency = \"CHF\"; {more} }}"
COUPON = "Coupon coupon = Coupon.NONE; } class Coupon { static final Coupon NONE = new Coupon();"


def pod(service: str, release: str, number: int) -> dict:
    """What a pod holds."""
    is_new = release == "42"
    name = f"{service}-{release}-{number}"
    return {
        "name": name,
        "service": service,
        "release": release,
        "counts": {
            # A service's sessions grow with the release, and differ a little by pod.
            "sessions": {"cart": 2000, "search": 300, "pay": 800}[service] * (2 if is_new and service == "cart" else 1) + number,
            "leak": 30_000 if name == LEAKING else 0,
            "texts": 100 + 10 * number,
            "loaders": 5 if service == "search" else 0,
            "empty": 400 if service == "pay" else 0,
            "buffer": 1_500_000 + number if service == "pay" else 0,
            "chain": 500 + number if service == "search" else 0,
            "threads": {"cart": 4, "search": 8, "pay": 2}[service],
            "garbage": 700 + number if service == "pay" else 0,
        },
        # pay runs with larger references.
        "jvm": ["-XX:-UseCompressedOops"] if service == "pay" else [],
        "is_truncated": name in TRUNCATED,
    }


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    to = pathlib.Path(sys.argv[1])
    to.mkdir(parents=True, exist_ok=True)
    pods = [pod(service, release, number) for service, count in PODS.items() for release in RELEASES for number in range(count)]
    with tempfile.TemporaryDirectory() as scratch:
        classes = {}
        for release in RELEASES:
            account = pathlib.Path(scratch, f"r{release}", "Account.java")
            classes[release] = str(account.parent / "classes")
            account.parent.mkdir()
            account.write_text(ACCOUNT.format(more=COUPON if release == "42" else ""))
            subprocess.run(["javac", "-nowarn", "-d", classes[release], str(HERE / "Shop.java"), str(account)], check=True)

        def run(one: dict) -> None:
            file = to / (one["name"] + ".hprof")
            file.unlink(missing_ok=True)
            counts = [f"{name}={count}" for name, count in one["counts"].items()]
            # An empty environment: a heap dump holds the environment of its process.
            java = ["env", "-i", shutil.which("java"), "-Xms96m", "-Xmx96m", "-Xmn64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *one["jvm"]]
            subprocess.run([*java, "-cp", classes[one["release"]], "com.acme.Shop", str(file), *counts],
                           check=True, stdout=subprocess.DEVNULL)
            if one["is_truncated"]:
                with open(file, "r+b") as dump:
                    dump.truncate(file.stat().st_size * 9 // 10)

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(run, pods))
    (to / "broken.hprof").write_bytes(b"this is no heap dump\n")
    truth = {"pods": pods, "leaking": LEAKING, "broken": "broken.hprof", "text": "the same text in every pod"}
    (to / "truth.json").write_text(json.dumps(truth, indent=1))
    size = sum(file.stat().st_size for file in to.glob("*.hprof"))
    print(f"{len(pods)} dumps, {size:,} bytes, in {to}")


if __name__ == "__main__":
    main()
