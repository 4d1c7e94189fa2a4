#!/usr/bin/env python3
"""Make from a segmented heap dump one with a single HEAP DUMP record, as JDK 6 to 8 and other tools write them.

usage: giant.py [--zero-length] IN.hprof OUT.hprof

The output is "JAVA PROFILE 1.0.1": the records in front of the heap and between its segments first, then one record 0x0C with the
bodies of all segments, then what followed the heap. HEAP DUMP END (0x2C), which 1.0.1 does not know, is left out. The length of the
record is u4, so that of a heap over 4 GiB is written modulo 2^32, as those writers do. With --zero-length it is written as 0 ("up to
the end of the file": a writer that died before it came back to patch it), and the record is the last of the file.

Objects, roots and classes are those of the input, in the same order. Streams: needs as much disk as the input, and no memory.
"""
import argparse
import os
import struct
import sys

HEAP_DUMP, HEAP_DUMP_SEGMENT, HEAP_DUMP_END = 0x0C, 0x1C, 0x2C
CHUNK = 1 << 20


def fail(message):
    sys.exit(f"giant.py: {message}")


def header(file):
    """(id size, milliseconds, offset of the first record)"""
    start = file.read(64)
    end = start.find(b"\0")
    if not start.startswith(b"JAVA PROFILE 1.0") or end < 0 or len(start) < end + 13:
        fail("not an uncompressed HPROF dump")
    return (*struct.unpack_from(">IQ", start, end + 1), end + 13)


def records(file, position, size):
    """(tag, time, offset of the body, length) of every top-level record"""
    while position < size:
        file.seek(position)
        head = file.read(9)
        if len(head) < 9:
            fail(f"the dump is cut in a record header (at offset {position:#x})")
        tag, time, length = struct.unpack(">BII", head)
        if position + 9 + length > size:
            fail(f"record {tag:#04x} of {length} bytes reaches past the end of the file (at offset {position:#x})")
        yield tag, time, position + 9, length
        position += 9 + length


def copy(source, target, offset, length):
    source.seek(offset)
    while length:
        block = source.read(min(CHUNK, length))
        if not block:
            fail(f"the dump shrank while it was read (at offset {source.tell():#x})")
        target.write(block)
        length -= len(block)


def merge_adjacent(ranges):
    """ranges that follow each other in the file, as one: fewer copies"""
    merged = []
    for offset, length in ranges:
        if merged and merged[-1][0] + merged[-1][1] == offset:
            merged[-1] = (merged[-1][0], merged[-1][1] + length)
        else:
            merged.append((offset, length))
    return merged


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage="giant.py [--zero-length] IN.hprof OUT.hprof")
    parser.add_argument("--zero-length", action="store_true", help="write 0 as the length of the heap record")
    parser.add_argument("input", metavar="IN.hprof")
    parser.add_argument("output", metavar="OUT.hprof")
    options = parser.parse_args()
    if os.path.exists(options.output) and os.path.samefile(options.input, options.output):
        fail("the output is the input")

    with open(options.input, "rb") as source:
        id_bytes, milliseconds, first = header(source)
        before, heap, after, heap_time, ended = [], [], [], 0, False
        for tag, time, body, length in records(source, first, os.fstat(source.fileno()).st_size):
            if tag in (HEAP_DUMP, HEAP_DUMP_SEGMENT):
                if ended or (tag == HEAP_DUMP and heap):
                    fail("the file holds more than one heap dump")
                ended = tag == HEAP_DUMP
                heap_time = time if not heap else heap_time
                heap.append((body, length))
                before += after
                after = []
            elif tag == HEAP_DUMP_END:
                ended = True
            else:
                (after if heap else before).append((body - 9, length + 9))
        if not heap:
            fail("the file holds no heap dump")
        if options.zero_length:
            before, after = before + after, []
        heap_bytes = sum(length for _, length in heap)
        stated = 0 if options.zero_length else heap_bytes % 2**32
        with open(options.output, "wb") as target:
            target.write(b"JAVA PROFILE 1.0.1\0" + struct.pack(">IQ", id_bytes, milliseconds))
            for offset, length in merge_adjacent(before):
                copy(source, target, offset, length)
            record = target.tell()
            target.write(struct.pack(">BII", HEAP_DUMP, heap_time, stated))
            for offset, length in heap:
                copy(source, target, offset, length)
            for offset, length in merge_adjacent(after):
                copy(source, target, offset, length)
    print(f"{options.output}: one HEAP DUMP record at {record:#x} made of {len(heap)}, {heap_bytes} bytes, stated length {stated}", file=sys.stderr)


if __name__ == "__main__":
    main()
