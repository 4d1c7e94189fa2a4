#!/usr/bin/env python3
"""Starts and stops JVMs with the agent at random moments, with random options, and looks at what is left.

usage: stress.py --jdk HOME [--jdk HOME...] --agent LIBRARY --hprof HPROF-CLI [--rounds N] [--seed N] [--jobs N] [--out DIR]

A round is a program of stress/*.java, a garbage collector, interpreter or compilers, options of the agent, and something that
happens meanwhile: SIGQUIT in a storm, SIGTERM, SIGKILL, an agent that is loaded late, told dump and stop and then records again,
a full disk, a listener that is slow, closes, or resets the connection. In some rounds the JVM verifies its heap before and after
each collection. A round fails if

- the JVM crashes (an hs_err file, a core, an unexpected signal) or hangs (--limit; stacks of all threads are kept then),
- its exit code is not the one of the program or of the signal,
- a panic of the agent, or a warning of -Xcheck:jni, is in the output,
- a file that has its name is not whole (`hprof-cli doctor`), or a program that ended by itself left none.

Exit code 0 if no round failed. The files of failed rounds stay in --out. With the same seed a round is the same but for time.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent / "stress"
# Exit codes without the agent, which `baseline` verifies.
PROGRAMS = {
    "Allocate": 0, "Loaders": 0, "ManyThreads": 0, "VirtualThreads": 0, "InitExit": 7, "ManyExits": 5, "Halt": 9,
    "OutOfMemory": 1, "Overflow": 1, "Uncaught": 1, "Deadlock": 0, "Contend": 0, "Fork": 3,
}
COLLECTORS = ["Serial", "Parallel", "G1", "Z", "Shenandoah"]
# The JVM looks at each reference before and after each collection, and stops at one to what is dead.
VERIFY = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+VerifyBeforeGC", "-XX:+VerifyAfterGC"]
# Exit code of -XX:+ExitOnOutOfMemoryError, which ends the process without VMDeath.
EXIT_ON_OUT_OF_MEMORY = 3
WARNINGS = re.compile(rb"panicked|WARNING in native method|FATAL ERROR in native method|WARNING: JNI|not a JNI|"
                      rb"exceeds capacity|pending exception", re.I)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jdk", action="append", required=True, help="a JDK's home; may be repeated")
    parser.add_argument("--agent", required=True, help="libhprof_agent.so")
    parser.add_argument("--hprof", required=True, help="hprof-cli")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first round")
    parser.add_argument("--jobs", type=int, default=2, help="rounds at the same time")
    parser.add_argument("--limit", type=float, default=90, help="seconds after which a JVM hangs")
    parser.add_argument("--out", default="stress-out", help="a new directory, for files")
    return parser.parse_args()


def release(jdk):
    text = (pathlib.Path(jdk) / "release").read_text()
    return int(re.search(r'JAVA_VERSION="(\d+)', text).group(1))


def build(jdks, out):
    """Compiles the programs, per JDK. Of runtimes without a compiler another JDK that is given compiles them."""
    classes = {}
    compilers = [jdk for jdk in jdks if (pathlib.Path(jdk) / "bin/javac").exists()]
    for jdk in jdks:
        compiler = jdk if jdk in compilers else max(compilers, key=release)
        target = out / f"classes-{release(jdk)}"
        sources = [str(HERE / f"{name}.java") for name in PROGRAMS if name != "VirtualThreads" or release(jdk) >= 21]
        subprocess.run([f"{compiler}/bin/javac", "--release", str(release(jdk)), "-d", str(target), *sources], check=True)
        classes[jdk] = target
    return classes


def baseline(jdk, classes):
    """The exit codes without the agent are those that are expected."""
    for name, expected in PROGRAMS.items():
        if name == "VirtualThreads" and release(jdk) < 21:
            continue
        code = subprocess.run([f"{jdk}/bin/java", "-Xmx64m", "-cp", str(classes[jdk]), name, "200"], timeout=120,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
        if code != expected:
            sys.exit(f"{name} ends with {code} without the agent, expected {expected}: {jdk}")


class Listener:
    """The other end of net=: drains, is slow, takes nothing, closes or resets. Sends commands now and then."""

    def __init__(self, rng, path):
        self.how = rng.choice(["drain", "drain", "drain", "slow", "stuck", "close", "reset"])
        self.commands = rng.choice(["none", "none", "valid", "garbage"])
        self.after = rng.choice([0, 100, 10_000, 500_000])
        self.rng, self.path, self.ended = rng, path, False
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.socket.settimeout(1)
        self.port = self.socket.getsockname()[1]
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def send(self, connection):
        serial = 0
        while not self.stop.wait(self.rng.random() * 0.3):
            serial += 1
            if self.commands == "valid":
                tag, body = self.rng.choice([
                    (1, b""), (2, b""), (3, struct.pack(">Hf", self.rng.randrange(8), 0.0)), (4, b""), (6, b""),
                    (7, struct.pack(">Hf", 0, 0.01)), (8, struct.pack(">H", 1)), (8, struct.pack(">H", 2)),
                    (8, struct.pack(">HQ", self.rng.choice([3, 4]), self.rng.choice([0, 4096]))), (8, struct.pack(">H", 5)),
                    (8, struct.pack(">HH", 6, self.rng.choice([0, 3, 500])))])
                data = struct.pack(">BII", tag, serial, len(body)) + body
            else:
                # Without 0x05, EXIT THE VM, which would be obeyed.
                data = bytes(self.rng.choice([0, 1, 2, 3, 8, 9, 0x7f, 0xff]) for _ in range(self.rng.randint(1, 40)))
            try:
                connection.sendall(data)
            except OSError:
                return

    def run(self):
        while not self.stop.is_set():
            try:
                connection, _ = self.socket.accept()
                break
            except OSError:
                continue
        else:
            return
        if self.commands != "none":
            threading.Thread(target=self.send, args=[connection], daemon=True).start()
        got = 0
        with connection, open(self.path, "wb") as file:
            connection.settimeout(1)
            while not self.stop.is_set():
                if self.how == "stuck":
                    time.sleep(0.2)
                    continue
                if self.how in ("close", "reset") and got >= self.after:
                    if self.how == "reset":
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return
                try:
                    data = connection.recv(8192 if self.how == "slow" else 1 << 20)
                except TimeoutError:
                    continue
                except OSError:
                    return
                if not data:
                    self.ended = True
                    return
                got += len(data)
                file.write(data)
                if self.how == "slow":
                    time.sleep(0.002)

    def close(self):
        if self.how in ("drain", "slow"):
            self.thread.join(20)
        self.stop.set()
        self.thread.join(5)
        self.socket.close()


class Round:
    """One JVM."""

    def __init__(self, number, args, classes):
        self.rng = rng = random.Random(f"{args.seed}/{number}")
        self.number, self.args = number, args
        self.directory = pathlib.Path(args.out).resolve() / f"{number:04}"
        self.directory.mkdir(parents=True)
        self.failures, self.listener, self.mounted = [], None, False
        self.jdk = rng.choice(args.jdk)
        names = [name for name in PROGRAMS if name != "VirtualThreads" or release(self.jdk) >= 21]
        self.program = rng.choice(names)
        self.act = rng.choice(["none", "none", "quit", "quit", "term", "kill", "attach", "attach", "attach-kill"])
        self.full = rng.random() < 0.1
        self.classes = classes[self.jdk]
        self.options = self.random_options()
        self.expected = PROGRAMS[self.program]
        self.command = self.random_command()

    def random_options(self):
        rng, options = self.rng, []

        def maybe(chance, text):
            if rng.random() < chance:
                options.append(text())
        heap = rng.choice([None, None, "dump", "sites", "all", "all"])
        cpu = rng.choice([None, None, "samples", "samples", "times", "old"])
        binary = rng.random() < 0.5 and cpu not in ("times", "old")
        monitor = not binary and rng.random() < 0.4
        self.binary = binary
        options += [f"heap={heap}"] if heap else []
        options += [f"cpu={cpu}"] if cpu else []
        options += ["monitor=y"] if monitor else []
        options += ["format=b"] if binary else []
        net = not self.full and rng.random() < 0.25
        if not net and binary and heap in ("dump", "all"):
            maybe(0.2, lambda: "dump=" + rng.choice(["jvm", "agent"]))
        maybe(0.6, lambda: f"depth={rng.choice([0, 1, 2, 4, 16, 64, 4096])}")
        maybe(0.5, lambda: f"interval={rng.choice([1, 2, 10, 100, 100000])}")
        maybe(0.4, lambda: f"cutoff={rng.choice([0, 0.0001, 0.1, 1])}")
        maybe(0.5, lambda: f"sample={rng.choice([0, 1, 512, 65536, 524288, 2147483647])}")
        maybe(0.3, lambda: f"filter={rng.choice(['java.util', 'java', 'Allocate:Contend', 'jdk:sun', 'no.such'])}")
        for name, chance in [("lineno", 0.3), ("thread", 0.4), ("force", 0.2), ("verbose", 0.2), ("msa", 0.1)]:
            maybe(chance, lambda: f"{name}={rng.choice('yn')}")
        self.on_exit = rng.random() < 0.85
        maybe(1, lambda: "doe=" + ("y" if self.on_exit else "n"))
        self.file = None
        if net:
            self.listener = Listener(random.Random(rng.random()), self.directory / "received")
            options.append(f"net=127.0.0.1:{self.listener.port}")
        else:
            self.file = self.directory / "files" / "recording"
            options.append(f"file={self.file}")
        rng.shuffle(options)
        return ",".join(options)

    def random_command(self):
        rng = self.rng
        # JDK 11 has ZGC as an experiment.
        unlock = ["-XX:+UnlockExperimentalVMOptions"] if release(self.jdk) < 17 else []
        command = [f"{self.jdk}/bin/java", *unlock, f"-XX:+Use{rng.choice(COLLECTORS)}GC"]
        self.millis = rng.choice([100, 300, 1000, 2000])
        command += rng.choice([[], [], [], ["-Xint"], ["-Xcomp"]])
        self.checked = rng.random() < 0.3
        command += ["-Xcheck:jni"] if self.checked else []
        command += VERIFY if rng.random() < 0.4 else []
        if self.program == "OutOfMemory":
            command.append("-Xmx48m")
            if rng.random() < 0.3:
                command.append("-XX:+ExitOnOutOfMemoryError")
                self.expected = EXIT_ON_OUT_OF_MEMORY
        elif self.program == "Overflow":
            # HotSpot's heap walk undoes escape analysis of each frame, in time that is quadratic in the depth of the stack.
            command += ["-Xmx400m", "-Xss300k"]
        else:
            command.append("-Xmx400m")
        if self.act.startswith("attach") and release(self.jdk) >= 21:
            command.append("-XX:+EnableDynamicAgentLoading")
        if not self.act.startswith("attach"):
            command.append(f"-agentpath:{self.args.agent}={self.options}")
        return command + ["-XX:-CreateCoredumpOnCrash", "-cp", str(self.classes), self.program, str(self.millis)]

    def prepare(self):
        (self.directory / "files").mkdir()
        if self.full and self.file:
            self.mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.rng.choice([8, 200, 2000])}k", "none",
                                           str(self.directory / "files")], stderr=subprocess.DEVNULL).returncode == 0
            # Who is not root has no full disk.

    def run(self):
        self.prepare()
        out = open(self.directory / "stdout", "wb"), open(self.directory / "stderr", "wb")
        start = time.monotonic()
        process = subprocess.Popen(self.command, cwd=self.directory, stdout=out[0], stderr=out[1])
        acting = threading.Thread(target=self.acting, args=[process])
        acting.start()
        try:
            self.code = process.wait(self.args.limit)
        except subprocess.TimeoutExpired:
            self.hang(process)
            process.kill()
            self.code = process.wait()
        self.seconds = time.monotonic() - start
        acting.join()
        if self.listener:
            self.listener.close()
        for file in out:
            file.close()
        self.look()
        if self.mounted:
            subprocess.run(["umount", str(self.directory / "files")], check=False)
        return self

    def hang(self, process):
        self.failures.append("hang")
        for name, command in [
                ("jstack", [f"{self.jdk}/bin/jstack", str(process.pid)]),
                ("gdb", ["gdb", "-p", str(process.pid), "-batch", "-ex", "thread apply all bt 30"])]:
            with open(self.directory / f"hang.{name}", "wb") as file:
                try:
                    subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, timeout=60, check=False)
                except (OSError, subprocess.TimeoutExpired) as error:
                    file.write(str(error).encode())

    def handles_quit(self, process):
        """Waits until the JVM handles SIGQUIT: before, it would end by it, with or without an agent."""
        while process.poll() is None:
            try:
                status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            except OSError:
                return False
            caught = re.search(r"SigCgt:\s*(\w+)", status)
            if caught and int(caught.group(1), 16) >> (signal.SIGQUIT - 1) & 1:
                return True
            time.sleep(0.005)
        return False

    def acting(self, process):
        rng = self.rng
        moment = rng.random() * (self.millis / 1000 + 0.5)
        if self.act == "quit" and self.handles_quit(process):
            time.sleep(moment / 2)
            for _ in range(rng.choice([1, 5, 50])):
                if process.poll() is None:
                    process.send_signal(signal.SIGQUIT)
                time.sleep(rng.choice([0, 0.001, 0.05]))
        elif self.act in ("term", "kill"):
            time.sleep(moment)
            process.send_signal(signal.SIGTERM if self.act == "term" else signal.SIGKILL)
        elif self.act.startswith("attach") and self.handles_quit(process):
            time.sleep(moment / 2)
            self.load(process, self.options)
            again = self.again()
            for word in rng.choice([["dump", "stop"], ["dump"], ["stop"], ["stop", "dump", "stop"], ["heap=sites", "stop"], [],
                                    ["stop", again, "stop"], ["stop", again], ["stop", again, "stop", again, "dump", "stop"]]):
                time.sleep(rng.random() * 0.3)
                if self.act == "attach-kill" and rng.random() < 0.3:
                    process.kill()
                self.load(process, word)
            if self.act == "attach-kill":
                time.sleep(rng.random() * 0.3)
                process.kill()

    def again(self):
        """Options of one more recording in the same JVM."""
        options = [option for option in self.options.split(",") if not option.startswith(("file=", "net=", "heap=", "dump="))]
        heap = self.rng.choice(["sites", "all"] if self.binary else ["dump", "sites", "all"])
        return ",".join([*options, f"heap={heap}", f"file={self.directory / 'files' / 'again'}"])

    def load(self, process, options):
        if process.poll() is not None:
            return
        command = [f"{self.jdk}/bin/jcmd", str(process.pid), "JVMTI.agent_load", self.args.agent, f'"{options}"']
        with open(self.directory / "jcmd", "ab") as file:
            try:
                subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, timeout=self.args.limit, check=False)
            except subprocess.TimeoutExpired:
                self.failures.append("jcmd hangs")

    def look(self):
        expected = {self.expected}
        if self.act == "term":
            # As a signal before the JVM handles it, else as an exit code.
            expected |= {143, -signal.SIGTERM}
            if b"Error occurred during initialization of VM" in (self.directory / "stdout").read_bytes():
                # An exit while the JVM starts is not always one to it ("Bad level"), with or without an agent.
                expected.add(1)
        if self.act in ("kill", "attach-kill"):
            expected.add(-signal.SIGKILL)
        text = (self.directory / "stdout").read_bytes() + (self.directory / "stderr").read_bytes()
        # A disk that is full at the start ends it with a message.
        refused = self.code == 1 and b"HPROF: cannot" in text and b"agent library failed" in text and self.listener is not None
        if self.code not in expected and "hang" not in self.failures and not refused:
            self.failures.append(f"exit code {self.code}, expected {sorted(expected)}")
        for pattern in ("hs_err*", "core*"):
            if list(self.directory.glob(pattern)):
                self.failures.append(f"{pattern} is there")
        warnings = sorted({line for line in text.splitlines() if WARNINGS.search(line)})
        self.failures += [line.decode(errors="replace") for line in warnings[:3]]
        self.said = [line.decode(errors="replace") for line in text.splitlines() if line.startswith(b"HPROF:")]
        self.look_at_files()

    def look_at_files(self):
        whole = []
        for file in sorted((self.directory / "files").iterdir()):
            if not file.name.endswith(".partial"):
                whole.append(file)
        if self.listener and self.listener.ended and self.listener.how == "drain" and self.code == self.expected \
                and not self.act.startswith("attach") and (self.on_exit or "cpu=old" not in self.options):
            whole.append(self.directory / "received")
        for file in whole:
            self.doctor(file)
        if self.file and not self.full and not self.act.startswith("attach") and self.code == self.expected \
                and self.code != EXIT_ON_OUT_OF_MEMORY and not whole and (self.on_exit or "cpu=old" not in self.options):
            self.failures.append("no file")

    def doctor(self, file):
        try:
            result = subprocess.run(
                [self.args.hprof, "doctor", "--quick", "--index-dir", str(self.directory / "index"), str(file)],
                capture_output=True, timeout=120, check=False)
        except subprocess.TimeoutExpired:
            self.failures.append("doctor hangs")
            return
        if result.returncode != 0:
            said = (result.stdout + result.stderr).decode(errors="replace").strip()
            self.failures.append(f"doctor of {file.name}: {result.returncode}: {said[:600]}")

    def __str__(self):
        flags = " ".join(word for word in self.command[1:-4] if not word.startswith("-agentpath"))
        net = f" net:{self.listener.how}/{self.listener.commands}" if self.listener else ""
        return (f"{self.number:4} JDK {release(self.jdk)} {self.program} {self.millis} ms, {self.act}"
                f"{' full' if self.full else ''}{net}, {flags}, {self.options}")


def main():
    args = parse()
    out = pathlib.Path(args.out)
    out.mkdir(parents=True)
    args.agent = str(pathlib.Path(args.agent).resolve())
    args.hprof = str(pathlib.Path(args.hprof).resolve())
    classes = build(args.jdk, out.resolve())
    for jdk in args.jdk:
        baseline(jdk, classes)
    failed, said, acts = 0, collections.Counter(), collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        numbers = range(args.first, args.first + args.rounds)
        for done in pool.map(lambda number: Round(number, args, classes).run(), numbers):
            acts[done.act] += 1
            said.update(re.sub(r"\d+|/\S+", "N", line) for line in set(done.said))
            print(f"{'FAIL' if done.failures else 'ok  '} {done.seconds:5.1f} s, exit code {done.code:4} {done}", flush=True)
            for failure in done.failures:
                print(f"     {failure}", flush=True)
            if done.failures:
                failed += 1
            else:
                shutil.rmtree(done.directory, ignore_errors=True)
    print(f"{args.rounds} rounds, {failed} failed; {dict(acts)}")
    for line, count in said.most_common():
        print(f"{count:5} {line[:200]}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
