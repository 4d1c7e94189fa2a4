#!/usr/bin/env python3
"""Tells texts of a redacted dump by what remains of them: equality, frequency, length and the class of each byte.

usage: adversary.py IN OUT WORDS [REFERENCE]

Reads arrays of bytes at the same places of IN and OUT (their structure is the same), so that each guess can be judged;
the guesses themselves use OUT, the dictionary WORDS (one word a line) and REFERENCE, a dump of another run of the
program or of another program on the same JDK, which whoever attacks can make.

  dictionary  a text of OUT is told if exactly one word has its length and classes of bytes
  frequency   texts of OUT and of REFERENCE of the same length and classes are sorted by number of copies, and paired
              by rank; told if the pair is right. `unique`: only the ranks whose number of copies is the same in both,
              and no other text's
"""
import collections
import struct
import sys


def arrays(path):
    """Yields all byte[] of a dump, in order: a walk of records of its own."""
    with open(path, "rb") as file:
        data = file.read()
    at = data.index(b"\0") + 1
    w = struct.unpack_from(">I", data, at)[0]
    at += 12
    sizes = {2: w, 4: 1, 5: 2, 6: 4, 7: 8, 8: 1, 9: 2, 10: 4, 11: 8}
    roots = {0xFF: w, 1: 2 * w, 2: w + 8, 3: w + 8, 4: w + 4, 5: w, 6: w + 4, 7: w, 8: w + 8}
    while at + 9 <= len(data):
        tag, _, length = struct.unpack_from(">BII", data, at)
        at += 9
        end = at + length
        if tag not in (0x0C, 0x1C):
            at = end
            continue
        while at < end:
            sub = data[at]
            at += 1
            if sub in roots:
                at += roots[sub]
            elif sub == 0x21:
                at += 2 * w + 8 + struct.unpack_from(">I", data, at + 2 * w + 4)[0]
            elif sub == 0x22:
                at += 2 * w + 8 + w * struct.unpack_from(">I", data, at + w + 4)[0]
            elif sub == 0x23:
                count, kind = struct.unpack_from(">IB", data, at + w + 4)
                at += w + 9
                if kind == 8:
                    yield data[at:at + count]
                at += count * sizes[kind]
            elif sub == 0x20:
                at += 7 * w + 8
                for value_first in (True, False, None):
                    count = struct.unpack_from(">H", data, at)[0]
                    at += 2
                    for _ in range(count):
                        if value_first is None:
                            at += w + 1
                        else:
                            at += 2 if value_first else w
                            at += 1 + sizes[data[at]]
            else:
                sys.exit(f"unknown sub-record {sub:#x} at {at - 1}")


def form(text):
    return bytes((byte > 0) + (byte > 127) for byte in text)


def by_form(counts):
    groups = collections.defaultdict(list)
    for text, copies in counts.items():
        groups[form(text)].append((copies, text))
    for group in groups.values():
        group.sort(key=lambda row: (-row[0], row[1]))
    return groups


def main():
    before_path, after_path, words_path, *reference = sys.argv[1:]
    truth, counts, kept = {}, collections.Counter(), 0
    names = set()
    for before, after in zip(arrays(before_path), arrays(after_path), strict=True):
        if not 0 < len(before) <= 64:
            continue
        if before == after:
            names.add(before)
            continue
        truth[after] = before
        counts[after] += 1
    print(f"{len(truth)} different texts of up to 64 bytes in {sum(counts.values())} arrays; {len(names)} names that stay")
    with open(words_path, "rb") as file:
        words = set(file.read().split())
    is_word = {text for text, before in truth.items() if before in words}
    print(f"dictionary of {len(words)} words: {len(is_word)} of the texts are in it")
    forms = collections.defaultdict(list)
    for word in words:
        forms[form(word)].append(word)
    told = sum(forms[form(text)] == [before] for text, before in truth.items())
    print(f"dictionary: {told} told by length and classes")
    candidates = sorted(len(forms[form(text)]) for text in is_word)
    if candidates:
        print(f"  candidates for a text that is a word: median {candidates[len(candidates) // 2]}, least {candidates[0]}")
    for path in reference:
        known = by_form(collections.Counter(text for text in arrays(path) if 0 < len(text) <= 64 and text not in names))
        right = unique = unique_wrong = 0
        for shape, group in by_form(counts).items():
            other = known.get(shape, [])
            right += sum(truth[text] == guess for (_, text), (_, guess) in zip(group, other))
            for copies, text in group:
                same = [guess for count, guess in other if count == copies]
                if len(same) == 1 and sum(count == copies for count, _ in group) == 1:
                    unique += truth[text] == same[0]
                    unique_wrong += truth[text] != same[0]
        print(f"frequency, {path}: {right} told by rank; by a number of copies of their own {unique} right, {unique_wrong} wrong")


main()
