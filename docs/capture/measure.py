#!/usr/bin/env python3
"""What dumps cost and contain, by JDK, collector and way: the tables of docs/capture.md.

Usage: measure.py PROGRAM MEBIBYTES PAIRS JAVA... (paths of `java`; javac and jcmd are taken from the path). Without pairs, only
the ways are measured.

For each JDK and collector: the program's own classes in the dump against GC.class_histogram of the same moment; the time in
safepoints, from the JVM's log, for `dump` and for `jcmd GC.heap_dump`, in pairs; for each way the disk that is used where
the JVM writes, and the modes of all files that appear, from inotify.
"""
import ctypes, json, os, re, shutil, statistics, struct, subprocess, sys, tempfile, threading, time

PROGRAM, MEBIBYTES, PAIRS, JAVAS = os.path.abspath(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:]
HERE = os.path.dirname(os.path.abspath(__file__))
WORK = tempfile.mkdtemp(prefix='measure-', dir='/var/tmp')
CLASSES, OUT = os.path.join(WORK, 'classes'), os.path.join(WORK, 'out')
LIBC = ctypes.CDLL(None, use_errno=True)


class Jvm:
    def __init__(self, java, options):
        self.log = os.path.join(WORK, 'safepoints')
        if os.path.exists(self.log):
            os.remove(self.log)
        command = [java, '-Xmx4g', *options, f'-Xlog:safepoint:file={self.log}', '-cp', CLASSES, 'Held', MEBIBYTES]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        assert self.process.stdout.readline().startswith('READY')

    def safepoints(self):
        """Sum of all safepoints in seconds."""
        log = open(self.log).read()
        # JDK 11 has another line.
        seconds = re.findall(r'threads were stopped: ([\d.]+) seconds', log)
        return sum(map(float, seconds)) + sum(int(time) for time in re.findall(r'Total: *(\d+) ns', log)) / 1e9

    def jcmd(self, *command):
        return subprocess.run(['jcmd', str(self.pid), *command], capture_output=True, text=True, check=True).stdout

    def end(self):
        self.process.kill()
        self.process.wait()


class Watch:
    """Files that appear below directories: names, modes, and the largest number of bytes at once."""

    def __init__(self, *roots):
        self.roots, self.seen, self.peak, self.over = roots, {}, 0, False
        self.fd = LIBC.inotify_init1(os.O_NONBLOCK)
        self.watched = {}
        for root in roots:
            self.add(root)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def add(self, path):
        # IN_CREATE, IN_MOVED_TO, IN_ATTRIB, IN_MODIFY
        number = LIBC.inotify_add_watch(self.fd, path.encode(), 0x100 | 0x80 | 0x4 | 0x2)
        if number >= 0:
            self.watched[number] = path

    def look(self, path):
        try:
            there = os.lstat(path)
        except OSError:
            return
        self.seen.setdefault(re.sub(r'[0-9a-f]{16}', 'X', os.path.relpath(path, WORK)), set()).add(oct(there.st_mode & 0o777))
        if os.path.isdir(path):
            self.add(path)
            for name in os.listdir(path):
                self.look(os.path.join(path, name))

    def size(self):
        total = 0
        for root in self.roots:
            for entry in os.listdir(root):
                if entry.startswith('.hprof-cli-dump'):
                    try:
                        total += sum(os.lstat(os.path.join(root, entry, name)).st_blocks * 512 for name in os.listdir(os.path.join(root, entry)))
                    except OSError:
                        pass
        self.peak = max(self.peak, total)

    def run(self):
        while not self.over:
            try:
                events = os.read(self.fd, 1 << 16)
            except BlockingIOError:
                events = b''
                time.sleep(0.002)
            at = 0
            while at < len(events):
                number, _, _, length = struct.unpack_from('iIII', events, at)
                name = events[at + 16:at + 16 + length].rstrip(b'\0').decode()
                at += 16 + length
                path = os.path.join(self.watched.get(number, ''), name)
                if '.hprof-cli' in path or path.startswith(OUT):
                    self.look(path)
            self.size()

    def end(self):
        self.over = True
        self.thread.join()
        os.close(self.fd)


def classes(histogram):
    found = {}
    for line in histogram.splitlines():
        words = line.split()
        if len(words) >= 4 and words[0].endswith(':') and words[1].isdigit():
            count, size = found.get(words[3], (0, 0))
            found[words[3]] = (count + int(words[1]), size + int(words[2]))
    return found


def in_dump(path):
    rows = json.loads(subprocess.run([PROGRAM, 'histo', path, '--top', '0', '--format', 'json', '--index-dir', os.path.join(WORK, 'index')], capture_output=True, check=True).stdout)['rows']
    found = {}
    for row in rows:
        name = {'boolean': '[Z', 'byte': '[B', 'char': '[C', 'short': '[S', 'int': '[I', 'long': '[J', 'float': '[F', 'double': '[D'}.get(row['class'].removesuffix('[]'), row['class']) if row['class'].count('[]') == 1 else row['class']
        count, size = found.get(name, (0, 0))
        found[name] = (count + row['instances'], size + row['shallow_bytes'])
    return found


def take(jvm, *options, to='heap.hprof', watch=()):
    path = os.path.join(OUT, to)
    if os.path.exists(path):
        os.remove(path)
    before = jvm.safepoints()
    watcher = Watch(OUT, *watch) if watch is not None else None
    answer = subprocess.run([PROGRAM, 'dump', str(jvm.pid), '-o', path, '--yes', '--no-overview', '--format', 'json', *options], capture_output=True, text=True)
    if watcher:
        watcher.end()
    assert answer.returncode == 0, answer.stderr
    time.sleep(0.3)
    return path, jvm.safepoints() - before, json.loads(answer.stdout)['rows'][0], watcher


def main():
    os.makedirs(CLASSES)
    os.makedirs(OUT)
    subprocess.run(['javac', '-nowarn', '--release', '11', '-d', CLASSES, os.path.join(HERE, 'Held.java')], check=True)
    traces = {}
    print('| JDK | collector | own classes | others that differ | dump MB | `dump` s | `jcmd` s | ratio | told s |\n|---|---|---|---|---|---|---|---|---|')
    ways = ['| JDK | way | transfer | disk where the JVM writes, MB | file MB | standstill s |\n|---|---|---|---|---|---|']
    for java in JAVAS:
        version = re.search(r'version "([^"]+)"', subprocess.run([java, '-version'], capture_output=True, text=True).stderr)[1]
        for collector in ['G1', 'Serial', 'Parallel', 'Z'][:4 if PAIRS else 1]:
            if version.startswith('11') and collector == 'Z':
                continue
            jvm = Jvm(java, [f'-XX:+Use{collector}GC'])
            own = classes(jvm.jcmd('GC.class_histogram'))
            path, first, row, _ = take(jvm, watch=None)
            found = in_dump(path)
            mine = [name for name in own if name.startswith('Held')]
            right = [name for name in mine if own[name] == found.get(name)]
            others = [name for name in own if not name.startswith('Held') and '/0x' not in name and name in found and own[name] != found[name]]
            ours, theirs, told = [], [], []
            for pair in range(PAIRS):
                for kind in ('ours', 'theirs') if pair % 2 else ('theirs', 'ours'):
                    if kind == 'ours':
                        _, stood, row, _ = take(jvm, watch=None)
                        ours.append(stood)
                        told.append(row['standstill_ms'] / 1000)
                    else:
                        other = os.path.join(OUT, 'jcmd.hprof')
                        before = jvm.safepoints()
                        jvm.jcmd('GC.heap_dump', other)
                        time.sleep(0.3)
                        theirs.append(jvm.safepoints() - before)
                        os.remove(other)
            if PAIRS:
                a, b = statistics.median(ours), statistics.median(theirs)
                print(f'| {version} | {collector} | {len(right)} of {len(mine)} equal | {", ".join(others) or "none"} | {row["dump_bytes"] / 1e6:.0f} | {a:.2f} | {b:.2f} | {a / b:.2f} | {statistics.median(told):.2f} |', flush=True)
            if collector == 'G1':
                for name, options, to in [('file', [], 'a.hprof'), ('--gzip', ['--gzip'], 'a.hprof.gz'), ('--zstd', ['--zstd'], 'a.hprof.zst')]:
                    runs = [take(jvm, *options, to=to, watch=['/tmp']) for _ in range(3)]
                    peak = max(run[3].peak for run in runs)
                    stood = statistics.median(run[1] for run in runs)
                    ways.append(f'| {version} | {name} | {runs[0][2]["transfer"]} | {peak / 1e6:.0f} | {runs[0][2]["file_bytes"] / 1e6:.0f} | {stood:.2f} |')
                    for seen, modes in runs[0][3].seen.items():
                        traces.setdefault(f'{version} {name}', {})[seen] = ' '.join(sorted(modes))
                before = jvm.safepoints()
                child = subprocess.Popen([PROGRAM, 'dump', str(jvm.pid), '-o', '-', '--yes'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                watcher = Watch(OUT, '/tmp')
                total = len(child.stdout.read(20 << 20))
                time.sleep(5)
                while block := child.stdout.read(1 << 20):
                    total += len(block)
                watcher.end()
                assert child.wait() == 0
                time.sleep(0.3)
                ways.append(f'| {version} | to stdout, whose reader stops for 5 s after 20 MB | {"fifo" if watcher.peak == 0 else "copy"} | {watcher.peak / 1e6:.0f} | {total / 1e6:.0f} | {jvm.safepoints() - before:.2f} |')
            jvm.end()
    print('\n' + '\n'.join(ways) + '\n')
    for name, files in traces.items():
        print(name)
        for file, modes in sorted(files.items()):
            print(f'  {modes}  {file}')
    shutil.rmtree(WORK)


main()
