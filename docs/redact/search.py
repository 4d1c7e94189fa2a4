#!/usr/bin/env python3
"""Searches a dump and its redacted copy for planted texts and numbers, without reading the format.

usage: search.py IN OUT PLANTED [--strings N]

PLANTED has lines `text TEXT`, `number NUMBER`, `bits NUMBER` (64 elements of a boolean[], the lowest bit first) and, for names that
stay, `stays TEXT`. A text is searched as UTF-8, Latin-1, UTF-16 of both byte orders, and
reversed; whole, and each part of 8 characters. A number as 4 and 8 bytes of both byte orders, as a double, as an
unsigned number of arbitrary length (BigInteger's magnitude), and in digits.
With --strings N: lines of N or more printable characters (as `strings -n N`, also of UTF-16) that are in both files.

The exit code is 1 if anything planted is in OUT.
"""
import mmap
import re
import struct
import sys


def forms_of_text(text):
    parts = {text, text[::-1]} | {text[at:at + 8] for at in range(len(text) - 7)}
    for part in parts:
        for encoding in ("utf-8", "latin-1", "utf-16-le", "utf-16-be"):
            try:
                yield part.encode(encoding), f"{encoding} {part!r}"
            except UnicodeEncodeError:
                pass


def forms_of_number(text):
    yield from forms_of_text(text)
    number = float(text) if "." in text else int(text)
    for order in "<>":
        yield struct.pack(order + "d", number), f"double {order}"
        if isinstance(number, int):
            if number < 1 << 64:
                yield struct.pack(order + "Q", number), f"8 bytes {order}"
            if number < 1 << 32:
                yield struct.pack(order + "I", number), f"4 bytes {order}"
    if isinstance(number, int):
        yield number.to_bytes((number.bit_length() + 7) // 8, "big"), "magnitude"


def forms_of_bits(text):
    yield bytes(int(text) >> at & 1 for at in range(64)), "boolean[]"


FORMS = {"text": forms_of_text, "number": forms_of_number, "bits": forms_of_bits}


def strings(data, least):
    yield from re.findall(rb"[\x20-\x7e]{%d,}" % least, data)
    for pattern in (rb"(?:[\x20-\x7e]\0){%d,}", rb"(?:\0[\x20-\x7e]){%d,}"):
        yield from (found.replace(b"\0", b"") for found in re.findall(pattern % least, data))


def main():
    before_path, after_path, planted_path = sys.argv[1:4]
    with open(before_path, "rb") as file:
        before = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    with open(after_path, "rb") as file:
        after = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    planted = found_before = left = 0
    with open(planted_path, encoding="utf-8") as file:
        for line in file:
            kind, _, what = line.rstrip("\n").partition(" ")
            if kind == "stays":
                verdict = "stays" if after.find(what.encode()) >= 0 else "is gone"
                print(f"{verdict}, as a name: {what!r}")
            if kind not in FORMS:
                continue
            planted += 1
            forms = set(FORMS[kind](what))
            is_there = any(before.find(form) >= 0 for form, _ in forms)
            found_before += is_there
            hits = [name for form, name in forms if after.find(form) >= 0]
            # Parts that many texts share are counted with each of them.
            if hits:
                left += 1
                print(f"left: {what!r}: {len(hits)} forms, for example {sorted(hits)[0]}")
            if not is_there:
                print(f"not in IN: {what!r}")
    print(f"{planted} planted, {found_before} in IN, {left} in OUT")
    if "--strings" in sys.argv:
        least = int(sys.argv[sys.argv.index("--strings") + 1])
        ours, theirs = set(strings(before, least)), set(strings(after, least))
        both = sorted(ours & theirs)
        print(f"strings -n {least}: {len(ours)} different in IN, {len(theirs)} in OUT, {len(both)} in both")
        for text in both:
            sys.stdout.write("both: " + text.decode("ascii") + "\n")
    sys.exit(left > 0)


main()
