#!/usr/bin/env python3
"""Measures `hprof-cli browse` in a terminal of 80x24: time to the first screen, time of each key, memory.

    docs/browse/measure.py PROGRAM DUMP [KEYS]

PROGRAM is hprof-cli with the feature `browse`; DUMP should have its index, beside it or in $HPROF_CLI_INDEX_DIR (run
`PROGRAM index DUMP` before). KEYS is the number of keys for each kind of view, 200 unless given. Only the standard library of
Python is needed.

start      from exec, each time in a new process: first to the first screen, rows to the first one with lines, settled to the one
           with the answer, which is that of `overview`. The first start after `index` is separate: it finds what the others read
           from the index
first      from a key to the first change of the screen
settled    from a key to the last change: no question is open, and nothing has changed for 30 ms after it
no change  keys that left the screen as it was, such as Down on the last line; their times do not count
memory     highest resident memory (VmHWM) of the browser and of the processes that answer, and that of the same commands in a
           shell (ru_maxrss). Both contain pages of the mapped dump and index, which the kernel can drop.
"""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unicodedata

COLUMNS, LINES = 80, 24
QUIET = 0.03
# A key that has changed nothing until then changes nothing.
PATIENCE = 0.5
LONGEST = 600
STARTS = 10

KEYS = {"Enter": "\r", "Back": "\x7f", "Esc": "\x1b", "Up": "\x1b[A", "Down": "\x1b[B", "Right": "\x1b[C", "Left": "\x1b[D"}
KEYS |= {"PgUp": "\x1b[5~", "PgDn": "\x1b[6~", "Home": "\x1b[H", "End": "\x1b[F"}

# Kind of view, keys that lead to it, keys that are measured in turn, and the command that shows the same in a shell; None for
# that of the title.
VIEWS = [
    ("object", ["h", "Enter", "Enter"], ["Down", "Down", "PgDn", "r", "Back", "D", "Back", "p", "Back", "Up"], None),
    ("tree", ["d"], ["Right", "Down", "Right", "Down", "PgDn", "Left", "Up", "Left", "PgUp", "Down"], ["dominators"]),
    ("histogram", ["h"], ["Down", "PgDn", "End", "Up", "PgUp", "Home", "Down", "Down", "Enter", "Back"], ["histo"]),
    ("filter", ["h", "/"], ["S", "t", "r", "i", "Back", "Back", "Back", "Back", "["] + ["Back"], ["histo"]),
]


class Screen:
    """What a terminal shows: only the sequences that the browser writes."""

    def __init__(self):
        self.cells = [[" "] * COLUMNS for _ in range(LINES)]
        self.x = self.y = 0
        self.rest = ""
        self.bytes = b""

    def feed(self, data):
        self.bytes += data
        try:
            text, self.bytes = self.bytes.decode(), b""
        except UnicodeDecodeError as error:
            text, self.bytes = self.bytes[: error.start].decode(), self.bytes[error.start :]
        text = self.rest + text
        at = 0
        self.rest = ""
        while at < len(text):
            c = text[at]
            if c == "\x1b":
                end = sequence_end(text, at)
                if end is None:
                    self.rest = text[at:]
                    return
                self.escape(text[at:end])
                at = end
                continue
            at += 1
            if c == "\n":
                self.y = min(self.y + 1, LINES - 1)
            elif c == "\r":
                self.x = 0
            elif c >= " ":
                self.put(c)

    def put(self, c):
        width = 0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        if width and self.x < COLUMNS and self.y < LINES:
            self.cells[self.y][self.x] = c
            if width == 2 and self.x + 1 < COLUMNS:
                self.cells[self.y][self.x + 1] = ""
            self.x += width

    def escape(self, sequence):
        if sequence.endswith("H") and sequence.startswith("\x1b["):
            numbers = [int(number or 1) for number in (sequence[2:-1] or "1;1").split(";")]
            self.y, self.x = numbers[0] - 1, numbers[1] - 1
        elif sequence == "\x1b[2J":
            self.cells = [[" "] * COLUMNS for _ in range(LINES)]

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.cells)


def sequence_end(text, at):
    """The end of an escape sequence; None if it is not complete."""
    if at + 1 >= len(text):
        return None
    if text[at + 1] == "]":
        bell = text.find("\x07", at)
        return None if bell < 0 else bell + 1
    if text[at + 1] != "[":
        return at + 2
    for end in range(at + 2, len(text)):
        if "@" <= text[end] <= "~":
            return end + 1
    return None


class Browser:
    """A browser in a terminal."""

    def __init__(self, program, dump):
        self.screen = Screen()
        self.started = time.monotonic()
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
            os.environ["TERM"] = "xterm-256color"
            os.execv(program, [program, "browse", dump])
        # Time to the first lines.
        self.rows = None
        # Highest resident memory by process, in KiB.
        self.memory = {}

    def read(self, seconds):
        """Reads what comes in this time; returns whether something came."""
        if not select.select([self.terminal], [], [], max(seconds, 0))[0]:
            return False
        try:
            data = os.read(self.terminal, 1 << 16)
        except OSError:
            sys.exit("the browser has ended:\n" + self.screen.text())
        self.screen.feed(data)
        return True

    def is_ready(self):
        lines = self.screen.text().split("\n")
        return lines[-1].endswith(" q") and lines[1] != "" and "Esc cancels" not in lines[-2]

    def settle(self, since, before):
        """Waits until the screen has changed and stays; returns the times of its first and last change."""
        first = last = None
        shown = before
        while True:
            now = time.monotonic()
            if now - since > LONGEST:
                sys.exit(f"not settled after {LONGEST} s:\n" + self.screen.text())
            if last is None and now - since > PATIENCE and self.is_ready():
                return None, None
            if last is not None and now - last >= QUIET and self.is_ready():
                return first - since, last - since
            # Waiting, not asking again and again: there may be no more processors than the browser uses.
            is_quiet = last is None or now - last >= QUIET
            if self.read(QUIET if is_quiet else last + QUIET - now):
                text = self.screen.text()
                if text != shown:
                    shown, last = text, time.monotonic()
                    first = first or last
                    if self.rows is None and text.split("\n")[1] != "":
                        self.rows = last - since

    def key(self, key):
        before = self.screen.text()
        since = time.monotonic()
        os.write(self.terminal, KEYS.get(key, key).encode())
        return self.settle(since, before)

    def watch(self):
        """Notes the memory of the processes."""
        pids = [self.pid]
        with open(f"/proc/{self.pid}/task/{self.pid}/children", encoding="utf-8") as file:
            pids += [int(pid) for pid in file.read().split()]
        for pid in pids:
            try:
                with open(f"/proc/{pid}/status", encoding="utf-8") as file:
                    facts = dict(line.split(":", 1) for line in file)
                self.memory[pid] = max(self.memory.get(pid, 0), int(facts["VmHWM"].split()[0]))
            except (OSError, KeyError):
                # It has ended.
                continue

    def close(self):
        self.watch()
        os.kill(self.pid, signal.SIGTERM)
        while True:
            try:
                if not os.read(self.terminal, 1 << 16):
                    break
            except OSError:
                break
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


def part(times, share):
    return sorted(times)[min(int(len(times) * share), len(times) - 1)]


def spread(times):
    if not times:
        return "none"
    values = [part(times, 0.5), part(times, 0.99), max(times)]
    return "  ".join(f"{1000 * value:8.1f}" for value in values)


def in_a_shell(program, words, dump):
    """Highest resident memory of a command, in KiB."""
    process = subprocess.Popen(
        [program, words[0], dump] + words[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 3):
        sys.exit(f"{words}: exit code {process.returncode}")
    return used.ru_maxrss


def mib(kib):
    return f"{kib / 1024:.1f} MiB"


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    program, dump = os.path.abspath(sys.argv[1]), sys.argv[2]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 200
    drawn, rows, starts, shell = [], [], [], []
    for number in range(STARTS + 1):
        browser = Browser(program, dump)
        first, settled = browser.settle(browser.started, browser.screen.text())
        browser.close()
        if number == 0:
            before = (first, browser.rows, settled)
            continue
        drawn.append(first)
        rows.append(browser.rows)
        starts.append(settled)
        since = time.monotonic()
        memory = in_a_shell(program, ["overview"], dump)
        shell.append(time.monotonic() - since)
    print("milliseconds        keys      p50       p99       max")
    print(f"start      first   {len(drawn):5}  {spread(drawn)}")
    print(f"{'':10} rows    {len(rows):5}  {spread(rows)}")
    print(f"{'':10} settled {len(starts):5}  {spread(starts)}")
    print(f"{'':10} the first one: " + ", ".join(f"{1000 * value:.1f}" for value in before))
    print(f"overview in a shell{len(shell):5}  {spread(shell)}  memory: {mib(memory)}")
    for name, way, keys, command in VIEWS:
        browser = Browser(program, dump)
        browser.settle(browser.started, browser.screen.text())
        for key in way:
            browser.key(key)
        browser.watch()
        if command is None:
            command = ["show", re.search(r"show (0x[0-9a-f]+)", browser.screen.text()).group(1), "--incoming"]
        first, settled, unchanged, slowest = [], [], 0, (0, "")
        for number in range(count * 3):
            if len(settled) == count:
                break
            key = keys[number % len(keys)]
            times = browser.key(key)
            if times[0] is None:
                unchanged += 1
            else:
                first.append(times[0])
                settled.append(times[1])
                slowest = max(slowest, (times[1], key))
            browser.watch()
        browser.close()
        print(f"{name:10} first   {len(first):5}  {spread(first)}")
        print(f"{'':10} settled {len(settled):5}  {spread(settled)}  slowest: {slowest[1]}; no change: {unchanged}")
        own = browser.memory.pop(browser.pid)
        answering = max(browser.memory.values(), default=0)
        shell = mib(in_a_shell(program, command, dump))
        print(f"{'':10} memory: browser {mib(own)}, answering {mib(answering)}; {command[0]} in a shell {shell}")


main()
