#!/usr/bin/env python3
"""Whole-process times and memory of hprof-cli, as ratios to a bare experiment on the same dump in the same run.

usage: ratio.py --cli PATH --walk PATH [--dominators PATH] [--slurp PATH] [--threads N] [--memory-runs N] DUMP [RUNS]

benches/ratio.sh builds the programs and calls this script. Seconds alone say more of the machine than of the program; the ratio of
two programs that read the same bytes, run in turn, says something of the program.

How it measures
  order    one round runs every command once, in turn (A B C, A B C, ...); RUNS rounds. The dump is read once beforehand, so it is in
           the page cache if it fits.
  cold     `histo DUMP --format csv` with --index-dir at a new, empty directory: the index is built and written.
  warm     the same again with that directory: the answer comes from the index. Both must print the same bytes.
  time     wall clock from before posix_spawn to after wait4: the whole process, its loading included. "an empty process" is what
           of it belongs to starting one.
  RSS      the largest ru_maxrss of the timed runs. It counts the pages of the mapped dump, which the kernel can take back at any time,
           and starts at the size of this script.
  anon     peak of RssAnon + RssShmem in /proc/PID/status, sampled every millisecond, in runs of their own (sampling costs time): a
           lower bound, short peaks can slip through. Linux only.
Only the standard library is used.
"""
import argparse
import filecmp
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time


def fail(message):
    sys.exit(f"ratio.py: {message}")


class Command:
    """One row of the table."""

    def __init__(self, name, argv, environment=None, fresh_index=False, label=None):
        self.name = name
        self.argv = argv
        self.environment = {**os.environ, **(environment or {})}
        self.fresh_index = fresh_index
        self.label = label or name
        self.seconds = []
        self.rss_kib = 0
        self.anon_kib = None


def anonymous_kib(pid):
    total = 0
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
        for line in status:
            if line.startswith(("RssAnon:", "RssShmem:")):
                total += int(line.split()[1])
    return total


def spawn(command, out, err):
    actions = [(os.POSIX_SPAWN_OPEN, 1, out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), (os.POSIX_SPAWN_OPEN, 2, err, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)]
    return os.posix_spawn(command.argv[0], command.argv, command.environment, file_actions=actions)


def check(command, status, err):
    if status == 0:
        return
    with open(err, encoding="utf-8", errors="replace") as text:
        tail = text.read()[-2000:]
    how = f"exit code {os.WEXITSTATUS(status)}" if os.WIFEXITED(status) else f"signal {os.WTERMSIG(status)}"
    fail(f"{how} of: {' '.join(command.argv)}\n{tail}")


def run_timed(command, out, err):
    start = time.perf_counter()
    pid = spawn(command, out, err)
    _, status, usage = os.wait4(pid, 0)
    seconds = time.perf_counter() - start
    check(command, status, err)
    command.seconds.append(seconds)
    command.rss_kib = max(command.rss_kib, usage.ru_maxrss if sys.platform != "darwin" else usage.ru_maxrss // 1024)


def run_sampled(command, out, err):
    pid = spawn(command, out, err)
    peak = 0
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        try:
            peak = max(peak, anonymous_kib(pid))
        except (FileNotFoundError, ProcessLookupError):
            pass
        time.sleep(0.001)
    check(command, status, err)
    command.anon_kib = max(command.anon_kib or 0, peak)


def renew(directory):
    shutil.rmtree(directory, ignore_errors=True)
    os.mkdir(directory)


def bytes_in(directory):
    return sum(os.path.getsize(os.path.join(where, name)) for where, _, names in os.walk(directory) for name in names)


def into_page_cache(path):
    buffer = bytearray(1 << 20)
    with open(path, "rb", buffering=0) as file:
        head = file.read(16)
        while file.readinto(buffer):
            pass
    if not head.startswith(b"JAVA PROFILE"):
        fail(f"{path}: not an uncompressed HPROF dump (unpack it first: the bare experiment reads no .zst or .gz)")


def slurp_input(program):
    """hprof-slurp took the dump as -i before 0.10, and takes it as an argument since."""
    text = subprocess.run([program, "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout
    return ["-i"] if b"-i," in text else []


def seconds(value):
    return f"{value * 1000:9.2f} ms" if value < 0.1 else f"{value:9.3f} s "


def mebibytes(kib):
    return f"{kib / 1024:8.1f} MiB" if kib is not None else f"{'-':>12}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("--cli", required=True, help="the hprof-cli to measure")
    parser.add_argument("--walk", required=True, help="benches/limit's walk")
    parser.add_argument("--dominators", help="benches/limit's dominators: measures cold `hprof-cli index` against it too")
    parser.add_argument("--slurp", help="hprof-slurp, for comparison")
    parser.add_argument("--threads", type=int, help="threads of hprof-cli and of the bare experiment (default: their own choice)")
    parser.add_argument("--memory-runs", type=int, default=3, help="runs to sample the memory in (default: 3; 0: none)")
    parser.add_argument("dump", metavar="DUMP")
    parser.add_argument("runs", metavar="RUNS", nargs="?", type=int, default=7)
    options = parser.parse_args()
    if options.runs < 1:
        fail("RUNS must be at least 1")
    programs = {}
    for name in ("cli", "walk", "dominators", "slurp"):
        path = getattr(options, name)
        programs[name] = shutil.which(path) if path else None
        if path and not programs[name]:
            fail(f"{path}: no such program")
    dump = os.path.abspath(options.dump)
    if not os.path.isfile(dump):
        fail(f"{dump}: no such file")
    into_page_cache(dump)

    work = tempfile.mkdtemp(prefix="hprof-ratio-")
    try:
        measure(options, programs, dump, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def measure(options, programs, dump, work):
    index = os.path.join(work, "index")
    index_all = os.path.join(work, "index-all")
    threads = ["--threads", str(options.threads)] if options.threads else []
    rayon = {"RAYON_NUM_THREADS": str(options.threads)} if options.threads else {}
    histo = [programs["cli"], "histo", dump, "--format", "csv", "--index-dir", index, *threads]
    commands = [
        Command("empty", [shutil.which("true") or "/bin/true"], label="an empty process"),
        Command("walk", [programs["walk"], dump], rayon, label="limit walk"),
        Command("cold", histo, fresh_index=index, label="hprof-cli histo, cold"),
        Command("warm", histo, label="hprof-cli histo, warm"),
        Command("info", [programs["cli"], "info", dump, "--index-dir", index, *threads], label="hprof-cli info, warm"),
    ]
    if programs["slurp"]:
        commands.append(Command("slurp", [programs["slurp"], *slurp_input(programs["slurp"]), dump], label="hprof-slurp"))
    if programs["dominators"]:
        commands.append(Command("dominators", [programs["dominators"], dump], rayon, label="limit dominators"))
        commands.append(Command("index", [programs["cli"], "index", dump, "--index-dir", index_all, *threads], fresh_index=index_all, label="hprof-cli index, cold"))
    by_name = {command.name: command for command in commands}

    def one_round(run):
        for command in commands:
            if command.fresh_index:
                renew(command.fresh_index)
            run(command, os.path.join(work, command.name + ".out"), os.path.join(work, command.name + ".err"))

    for _ in range(options.runs):
        one_round(run_timed)
    same_answer = filecmp.cmp(os.path.join(work, "cold.out"), os.path.join(work, "warm.out"), shallow=False)
    sampled = sys.platform == "linux" and options.memory_runs > 0
    if sampled:
        for _ in range(options.memory_runs):
            one_round(run_sampled)

    print(f"{dump}: {os.path.getsize(dump):,} bytes; {options.runs} runs, {os.cpu_count()} processors" + (f", {options.threads} threads" if options.threads else ""))
    print()
    print(f"{'':24}{'min':>11} {'median':>11} {'max':>11} {'RSS':>12} {'anon':>12}")
    for command in commands:
        median = statistics.median(command.seconds)
        print(f"{command.label:24}{seconds(min(command.seconds))}{seconds(median)}{seconds(max(command.seconds))} {mebibytes(command.rss_kib)} {mebibytes(command.anon_kib)}")
    print()
    print(f"{'':42}{'of medians':>11} {'median of pairs':>16} {'min':>8} {'max':>8}")

    def ratio(over, under):
        over, under = by_name.get(over), by_name.get(under)
        if over and under:
            pairs = [a / b for a, b in zip(over.seconds, under.seconds)]
            of_medians = statistics.median(over.seconds) / statistics.median(under.seconds)
            print(f"{over.label + ' / ' + under.label:42}{of_medians:11.3f} {statistics.median(pairs):16.3f} {min(pairs):8.3f} {max(pairs):8.3f}")

    ratio("cold", "walk")
    ratio("warm", "walk")
    ratio("slurp", "walk")
    ratio("cold", "slurp")
    ratio("index", "dominators")
    print()
    print(f"warm histo: {statistics.median(by_name['warm'].seconds) * 1000:.2f} ms, of which an empty process takes {statistics.median(by_name['empty'].seconds) * 1000:.2f} ms")
    print(f"cold and warm answers: {'identical' if same_answer else 'DIFFERENT'}, {os.path.getsize(os.path.join(work, 'warm.out')):,} bytes")
    print(f"index written by a cold histo: {bytes_in(index):,} bytes" + (f"; by index: {bytes_in(index_all):,} bytes" if programs["dominators"] else ""))
    if sampled:
        print(f"anon: peak of RssAnon + RssShmem, sampled every 1 ms in {options.memory_runs} runs of their own")
    if not same_answer:
        sys.exit(1)


if __name__ == "__main__":
    main()
