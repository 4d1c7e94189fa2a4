#!/usr/bin/env python3
"""Browses leak dumps in tmux (`apt-get install tmux`), from the start to the culprit, and checks what the terminal shows.

    docs/browse/tmux.py PROGRAM DIRECTORY [SCREENS]

PROGRAM is hprof-cli with the feature `browse`; DIRECTORY contains s1.hprof.zst to s5.hprof.zst, from samples/leaks or made
by samples/leaks/src. Their indexes go to a temporary directory. With SCREENS, the last screen of each dump is written there.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time

SIZE = (80, 24)
PATIENCE = 60

# Dump, keys, and what the screen shows after them. At most six keys lead to the culprit.
WALKS = [
    ("s1", ["l", "Enter"], ["java.util.concurrent.ConcurrentHashMap$Node[]", "Leaks", "shop.ProductService.CACHE"]),
    ("s2", ["l", "Enter"], ["gateway.RequestParser.SCRATCH"]),
    ("s3", ["l", "Enter"], ["container.EventBus", "listeners"]),
    ("s4", ["l", "Enter"], ["queue of ingest.Pipeline"]),
    ("s5", ["l", "Enter"], ["order-import-3"]),
]


class Session:
    """A program in tmux."""

    def __init__(self, command, socket):
        self.tmux = ["tmux", "-f", "/dev/null", "-L", socket]
        columns, lines = map(str, SIZE)
        self.run("new-session", "-d", "-x", columns, "-y", lines, "bash --norc")
        self.keys(command, "Enter")

    def run(self, *words):
        return subprocess.run(self.tmux + list(words), check=True, capture_output=True, text=True).stdout

    def keys(self, *keys):
        self.run("send-keys", *keys)

    def screen(self):
        return self.run("capture-pane", "-p")

    def wait(self, is_right, what):
        end = time.monotonic() + PATIENCE
        while not is_right(screen := self.screen()):
            if time.monotonic() > end:
                sys.exit(f"{what}: not shown after {PATIENCE} s:\n{screen}")
            time.sleep(0.05)
        return screen

    def jobs(self):
        """Returns the processes that the shell has started."""
        return children(self.run("display-message", "-p", "#{pane_pid}").strip())

    def starts(self, command, what):
        """Starts a browser in the shell, and returns its process."""
        self.keys("clear", "Enter")
        self.keys(command, "Enter")
        self.wait(is_ready, what)
        [browser] = self.jobs()
        return browser

    def is_restored(self, what):
        """Waits until the shell reads lines: with echo, and the cursor shown."""
        self.wait(lambda screen: screen.rstrip().endswith(("#", "$")), f"{what}: no prompt")
        self.keys("stty -a | grep -o ' icanon'; echo end$((1 + 1))", "Enter")
        self.wait(lambda screen: "end2" in screen and " icanon" in screen, f"{what}: the terminal is not restored")
        shown = self.run("display-message", "-p", "#{cursor_flag} #{alternate_on} #{mouse_any_flag}").strip()
        if shown != "1 0 0":
            sys.exit(f"{what}: cursor, alternate screen, mouse: {shown}")

    def close(self):
        subprocess.run(self.tmux + ["kill-server"], check=False, capture_output=True)


def quoted(word):
    return "'" + str(word).replace("'", "'\\''") + "'"


def is_ready(screen):
    """The menu is there, and no question is open."""
    return " q" in screen.rstrip().rsplit("\n", 1)[-1] and "Esc cancels" not in screen


def walk(program, dump, keys, expected, directory, number):
    session = Session(f"{quoted(program)} browse {quoted(dump)} --index-dir {quoted(directory)}", f"browse{os.getpid()}-{number}")
    try:
        screens = [session.wait(is_ready, dump)]
        pressed = 0
        for key in keys:
            before = screens[-1]
            started = time.monotonic()
            session.keys(key)
            screens.append(session.wait(lambda screen: is_ready(screen) and screen != before, f"{dump} {key}"))
            pressed += 1
            print(f"    {key}: {time.monotonic() - started:.2f} s")
        for text in expected:
            if not any(text in "".join(screen.split("\n")) or text in screen for screen in screens):
                sys.exit(f"{dump}: {text} was not shown:\n" + "\n".join(screens))
        assert pressed <= 6
        session.keys("C-z")
        session.wait(lambda screen: "Stopped" in screen, f"{dump}: Ctrl-Z")
        session.keys("fg", "Enter")
        session.wait(is_ready, f"{dump}: fg")
        session.keys("q")
        session.is_restored(f"{dump}: q")
        return screens[-1]
    finally:
        session.close()


def children(pid):
    """The processes that a process has started."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
        return [int(child) for child in file.read().split()]


def ends(program, dump, directory, number):
    """Signals, sizes, a question that is cancelled, and a process that answers no more."""
    command = f"{quoted(program)} browse {quoted(dump)} --index-dir {quoted(directory)}"
    session = Session(command, f"browse{os.getpid()}-{number}")
    try:
        session.wait(is_ready, "start")
        [browser] = session.jobs()
        for size in [(40, 12), (200, 60), (20, 5), (80, 24)]:
            session.run("resize-window", "-x", str(size[0]), "-y", str(size[1]))
            session.wait(lambda screen: len(screen.rstrip("\n").split("\n")) <= size[1] and "s1" in screen, f"{size}")
        session.wait(is_ready, "80x24")
        # A query that would take a day.
        session.keys(":", "sql SELECT count(*) FROM objects a, objects b, objects c", "Enter")
        session.wait(lambda screen: "Esc cancels" in screen, "a long query")
        time.sleep(1)
        [worker] = children(browser)
        started = time.monotonic()
        session.keys("Escape")
        session.wait(lambda screen: "cancelled" in screen, "Esc")
        while os.path.exists(f"/proc/{worker}"):
            if time.monotonic() - started > PATIENCE:
                sys.exit("Esc: the question still runs")
            time.sleep(0.01)
        print(f"    Esc: the question has ended after {time.monotonic() - started:.2f} s")
        session.keys("h")
        session.wait(lambda screen: is_ready(screen) and "byte[]" in screen, "h after Esc")
        # The process that answers is killed: the next question gets another.
        [worker] = children(browser)
        os.kill(worker, signal.SIGKILL)
        session.keys("t")
        session.wait(lambda screen: is_ready(screen) and "main" in screen, "t after a process was killed")
        # It is killed before it has read the question.
        [worker] = children(browser)
        os.kill(worker, signal.SIGSTOP)
        is_stopped(worker, "SIGSTOP")
        session.keys("w")
        session.wait(lambda screen: "Esc cancels" in screen, "w while a process is stopped")
        os.kill(worker, signal.SIGKILL)
        session.wait(lambda screen: is_ready(screen) and "waste" in screen, "w after a process was killed")
        [worker] = children(browser)
        os.kill(browser, signal.SIGTERM)
        session.is_restored("SIGTERM")
        is_gone(worker, "SIGTERM: the process that answers")
        for number in (signal.SIGVTALRM, signal.SIGPROF, signal.SIGRTMIN + 1):
            browser = session.starts(command, f"before signal {number}")
            os.kill(browser, number)
            session.is_restored(f"signal {number}")
        # A browser that is stopped, and ended by the shell: it is in the background then.
        browser = session.starts(command, "again")
        session.keys("C-z")
        session.wait(lambda screen: "Stopped" in screen, "Ctrl-Z")
        session.keys("kill %1", "Enter")
        is_gone(browser, "kill of a stopped browser: it")
        session.is_restored("kill of a stopped browser")
        # One in the background stops as it may not take the terminal, and is ended by the shell too.
        browser = session.starts(command, "before bg")
        session.keys("C-z")
        session.wait(lambda screen: "Stopped" in screen, "Ctrl-Z before bg")
        session.keys("bg", "Enter")
        time.sleep(0.5)
        is_stopped(browser, "bg")
        session.keys("kill %1", "Enter")
        is_gone(browser, "kill of a browser after bg: it")
        session.is_restored("kill of a browser after bg")
        session.keys("clear", "Enter")
        session.keys(f"{command} &", "Enter")
        session.wait(lambda screen: "[1]" in screen, "&")
        [browser] = session.jobs()
        is_stopped(browser, "&")
        session.keys("kill %1", "Enter")
        is_gone(browser, "kill of a browser that was started in the background: it")
        session.is_restored("kill of a browser that was started in the background")
        # The terminal is closed.
        browser = session.starts(command, "a third time")
        [worker] = children(browser)
        session.run("kill-pane")
        is_gone(browser, "a closed terminal: the browser")
        is_gone(worker, "a closed terminal: the process that answers")
    finally:
        session.close()


def is_stopped(pid, what):
    """Waits until a process is stopped."""
    started = time.monotonic()
    while True:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            if file.read().rsplit(")", 1)[1].split()[0] == "T":
                return
        if time.monotonic() - started > PATIENCE:
            sys.exit(f"{what}: not stopped")
        time.sleep(0.01)


def is_gone(pid, what):
    """Waits until a process has ended."""
    started = time.monotonic()
    while os.path.exists(f"/proc/{pid}"):
        if time.monotonic() - started > PATIENCE:
            sys.exit(f"{what} still runs")
        time.sleep(0.01)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    program, directory = os.path.abspath(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory() as indexes:
        walked = 0
        for number, (name, keys, expected) in enumerate(WALKS):
            dump = os.path.join(os.path.abspath(directory), f"{name}.hprof.zst")
            if not os.path.exists(dump):
                print(f"{name}: not there")
                continue
            walked += 1
            print(f"{name}: {len(keys)} keys")
            screen = walk(program, dump, keys, expected, indexes, number)
            if len(sys.argv) > 3:
                with open(os.path.join(sys.argv[3], f"{name}.txt"), "w", encoding="utf-8") as file:
                    file.write(screen)
        if walked < 4:
            sys.exit(f"{directory}: only {walked} of s1, s3, s4 and s5 were walked")
        print("ends")
        ends(program, os.path.join(os.path.abspath(directory), "s1.hprof.zst"), indexes, len(WALKS))


main()
