#!/usr/bin/env python3
"""Attacks on root's `dump` by the user of the JVM: each tries to have root read, write, chown or remove what is not his.

Usage, as root: doors.py PROGRAM JAVA... (paths of `java`; javac is taken from the path). Prints a line for each, and exits with 1
if an attack got through. ONLY=WORD runs those with that word in their name, PORTION=1 those that `cargo test` runs. Nothing else may
dump JVMs meanwhile. Where there is no root, no user namespace or no strace, it prints NOT RUN.

Each attack has root's files as its victim: their content, owner, mode and names have to be the same afterwards, nothing of ours
may be in them, and the program has to end. A dump may fail: the JVM is the attacker's.
"""
import ctypes, glob, hashlib, json, os, re, shutil, signal, stat, subprocess, sys, tempfile, textwrap, threading, time

USER = 12346
LIBC = ctypes.CDLL(None, use_errno=True)
HERE = os.path.dirname(os.path.abspath(__file__))
rows, started = [], []

FAKE = r'''
# A process that looks like a JVM, and answers as its arguments say: MODE LIBJVM VICTIM OUT.
import ctypes, mmap, os, signal, socket, struct, sys, threading, time
mode, libjvm, victim, out = sys.argv[1:5]
pid = os.getpid()
L = ctypes.CDLL(None, use_errno=True)
library = open(libjvm, 'rb')
lib = mmap.mmap(library.fileno(), 4096, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE)
def say(*words): print(*words, flush=True)
def mount(what, where): say('mount', where, L.mount(what.encode(), where.encode(), None, 4096, None), ctypes.get_errno())
def ours(place):
    try: return [f'{place}/{name}' for name in os.listdir(place) if name.startswith('.hprof-cli')]
    except OSError: return []
def when(find, then, seconds=25):
    """Does something as soon as something is there."""
    def wait():
        end = time.time() + seconds
        while time.time() < end:
            found = find()
            if found:
                try: then(found[0]); say('done', found[0])
                except OSError as error: say('failed', error)
                return
    threading.Thread(target=wait, daemon=True).start()
def swap(by_link):
    def then(path):
        os.rename(path, os.path.join(os.path.dirname(path), 'away'))
        os.symlink(victim, path) if by_link else os.rename(victim, path)
    return then
def fill(path):
    os.mkdir(path + '/mine'); open(path + '/mine/file', 'w').write('mine'); open(path + '/heap.hprof.p0x', 'w').write('mine')
def counters():
    def entry(name, value, kind):
        name = name.encode() + b'\0'; name = name.ljust((len(name) + 7) // 8 * 8, b'\0')
        value = struct.pack('<q', value) if kind == 'J' else value.encode() + b'\0'
        length = (20 + len(name) + len(value) + 7) // 8 * 8
        head = struct.pack('<III4sI', length, 20, 0 if kind == 'J' else len(value), kind.encode() + b'\0\1\1', 20 + len(name))
        return (head + name + value).ljust(length, b'\0')
    entries = [entry('sun.rt.javaCommand', 'fake.Main', 'B'), entry('sun.rt.jvmCapabilities', '1111', 'B')]
    return (b'\xca\xfe\xc0\xc0' + bytes([1, 2, 0, 1]) + b'\0' * 16 + struct.pack('<II', 32, len(entries)) + b''.join(entries)).ljust(8192, b'\0')
tmp = '/tmp'
place = f'/tmp/hsperfdata_u{os.getuid()}'
os.makedirs(place, exist_ok=True)
perf = f'{place}/{pid}'
open(perf, 'wb').write(counters())
counted = open(perf, 'r+b')
keep = mmap.mmap(counted.fileno(), 4096, flags=mmap.MAP_SHARED)
if mode == 'perf-link': os.remove(perf); os.symlink(victim + '/file', perf)
if mode == 'perf-fifo': os.remove(perf); os.mkfifo(perf)
if mode == 'perf-dir': os.rename(place, place + f'.{pid}'); os.symlink(victim, place)
signal.signal(signal.SIGQUIT, lambda *_: None)
path = f'/tmp/.java_pid{pid}'
for old in (path,):
    try: os.remove(old)
    except OSError: pass
os.umask(0o77)
if mode == 'socket-link': os.symlink(victim + '/socket', path)
elif mode == 'socket-fifo': os.mkfifo(path)
if mode in ('trigger-link', 'trigger-fifo', 'trigger-dir'):
    trigger = f'/tmp/.attach_pid{pid}'
    {'trigger-link': lambda: os.symlink(victim + '/made', trigger), 'trigger-fifo': lambda: os.mkfifo(trigger), 'trigger-dir': lambda: os.mkdir(trigger)}[mode]()
server = socket.socket(socket.AF_UNIX)
if mode.startswith(('socket-', 'trigger-')):
    server = None
else:
    server.bind(path); os.chmod(path, 0o600); server.listen(8)
if mode == 'swap-rename': when(lambda: ours(out), swap(False))
if mode == 'swap-link': when(lambda: ours(out), swap(True))
if mode == 'parent-link':
    def then(_): os.rename(out, out + '.away'); os.symlink(victim, out)
    when(lambda: ours(out), then)
if mode == 'output-link': when(lambda: ours(out), lambda _: os.symlink(victim + '/file', out + '/heap.hprof'))
if mode.startswith('mount-private'): when(lambda: ours(tmp), lambda found: mount(victim, found))
if mode == 'mount-parent': when(lambda: ours(tmp), lambda _: mount(victim, '/tmp'))
if mode == 'fill': when(lambda: ours(tmp), fill)
if mode == 'tmp-link':
    os.rename(out, out); os.makedirs(out + '/root', exist_ok=True)
if mode in ('kill-door', 'stop-door'):
    def doors():
        found = []
        for name in os.listdir('/proc'):
            if name.isdigit():
                try:
                    if b'__in-place' in open(f'/proc/{name}/cmdline', 'rb').read() and os.stat(f'/proc/{name}').st_uid in (0, os.getuid()): found.append(int(name))
                except OSError: pass
        return found
    def then(_):
        for door in doors():
            for what in ('mem', 'fd', 'environ', 'root'):
                try: say('opened', what, os.listdir(f'/proc/{door}/{what}') if what == 'fd' else open(f'/proc/{door}/{what}', 'rb').read(1))
                except OSError as error: say('refused', what, error)
            say('ptrace', L.ptrace(16, door, 0, 0), ctypes.get_errno())
            try: os.kill(door, signal.SIGKILL if mode == 'kill-door' else signal.SIGSTOP); say('signalled', door)
            except OSError as error: say('not signalled', error)
    when(lambda: ours(tmp), then)
def answer(connection):
    connection.settimeout(2)
    words = b''
    try:
        while words.count(b'\0') < 5:
            more = connection.recv(4096)
            if not more: break
            words += more
    except OSError: pass
    connection.settimeout(None)
    say(mode, words)
    if b'VM.version' in words or b'getversion' in words:
        connection.sendall(b'0\nOpenJDK 64-Bit Server VM version 17\nJDK 17.0.15\n'); connection.close(); return
    if b'help GC' in words:
        if mode == 'mount-tmp': mount(victim, '/tmp')
        if mode == 'help-never': time.sleep(3600)
        overwrite = b'' if mode.endswith('-inside') or mode.startswith('file-') else b' -overwrite'
        connection.sendall(b'0\nGC.heap_dump\n' + overwrite + b' -all\n'); connection.close(); return
    if b'dumpheap' in words or b'GC.heap_dump' in words:
        target = [word for word in words.split(b'\0') if b'/' in word][0].split()[-1].decode()
        said = lambda length: connection.sendall(b'0\nHeap dump file created [%d bytes in 0.1 secs]\n' % length)
        try:
            if mode == 'dump-never': time.sleep(3600)
            if mode == 'dump-endless':
                connection.sendall(b'1\n')
                while True: connection.sendall(b'x' * 65536)
            if mode == 'dump-error': connection.sendall(b'1\n' + b'E' * (16 << 20)); connection.close(); return
            if mode == 'file-link': os.symlink(victim + '/file', target); said(os.stat(victim + '/file').st_size)
            elif mode == 'file-hard':
                try: os.link(victim + '/file', target)
                except OSError as error: say('link', error); home = os.path.dirname(victim); open(home + '/own', 'w').write('own'); os.link(home + '/own', target)
                said(os.stat(target).st_size)
            elif mode == 'file-dir': os.makedirs(target + '/sub'); open(target + '/sub/file', 'w').write('mine'); said(4096)
            elif mode == 'file-fifo': os.mkfifo(target); said(10)
            elif mode == 'file-socket': socket.socket(socket.AF_UNIX).bind(target); said(0)
            elif mode == 'file-changes':
                open(target, 'w').write('0123456789'); said(10); os.remove(target); os.symlink(victim + '/file', target)
            elif mode == 'fifo-replaced':
                os.rename(target, target + 'x'); os.symlink(victim + '/file', target); time.sleep(1); said(7)
            else:
                handle = open(target, 'wb'); time.sleep(1.5); handle.write(b'JAVA PROFILE 1.0.2\0\0\0\0\x08' + b'\0' * 8); handle.close(); said(31)
        except OSError as error: say('OSError', error); said(1)
        connection.close(); return
    connection.sendall(b'0\n'); connection.close()
say('READY')
threading.Timer(100, lambda: os._exit(0)).start()
while server is None: time.sleep(1)
while True:
    connection, _ = server.accept()
    threading.Thread(target=answer, args=(connection,), daemon=True).start()
'''


def as_user(*command, namespace=False):
    """A command of the attacker; in user and mount namespaces of his own, where he is root."""
    wrap = ['unshare', '-Urm'] if namespace else []
    return ['setpriv', f'--reuid={USER}', f'--regid={USER}', '--clear-groups', *wrap, *command]


def snapshot(top):
    """Names, owners, modes and contents of a tree."""
    found = {}
    for path, names, files in os.walk(top):
        for name in ['.', *names, *files]:
            full = os.path.join(path, name)
            there = os.lstat(full)
            text = b''
            if stat.S_ISREG(there.st_mode):
                text = open(full, 'rb').read()
            if stat.S_ISLNK(there.st_mode):
                text = os.readlink(full).encode()
            found[os.path.relpath(full, top)] = (there.st_uid, there.st_gid, there.st_mode, hashlib.sha256(text).hexdigest())
    return found


class Stage:
    """Root's files, the attacker's directory, and his JVM."""

    def __init__(self, mode, namespace=False, place='home', sticky=False, java=None):
        self.mode = mode
        # Only root may change what is above it.
        self.top = tempfile.mkdtemp(prefix='doors-', dir='/srv')
        os.chmod(self.top, 0o755)
        self.home = os.path.join(self.top, 'home')
        os.mkdir(self.home)
        os.chown(self.home, USER, USER)
        self.shared = os.path.join(self.top, 'shared')
        os.mkdir(self.shared)
        os.chmod(self.shared, 0o1777 if sticky else 0o777)
        self.own = os.path.join(self.top, 'own')
        os.mkdir(self.own, 0o755)
        self.out = {'home': self.home, 'shared': self.shared, 'own': self.own}[place]
        # In the attacker's home, so that he can rename it.
        self.victim = os.path.join(self.home, 'victim')
        os.mkdir(self.victim, 0o755)
        for name in ('file', 'heap.hprof', 'shadow'):
            open(os.path.join(self.victim, name), 'w').write(f'precious {name}')
        os.chmod(os.path.join(self.victim, 'shadow'), 0o600)
        self.before = snapshot(self.victim)
        self.ids = {name: os.lstat(os.path.join(self.victim, name)).st_ino for name in ('', 'file')}
        fake = os.path.join(self.top, 'fake.py')
        open(fake, 'w').write(FAKE)
        self.log = open(os.path.join(self.top, 'log'), 'w+')
        command = [java, '-Xmx200m', '-cp', CLASSES, 'Held', '5'] if java else ['/usr/bin/python3', fake, mode, LIBJVM, self.victim, self.out]
        self.process = subprocess.Popen(as_user(*command, namespace=namespace), stdout=self.log, stderr=self.log, cwd=self.home)
        started.append(self.process)
        for _ in range(600):
            if 'READY' in open(self.log.name).read():
                break
            time.sleep(0.05)
        self.pid = self.find(os.path.basename(command[0]))

    def find(self, name):
        pid = self.process.pid
        while name not in os.readlink(f'/proc/{pid}/exe') and not os.path.basename(os.readlink(f'/proc/{pid}/exe')).startswith('python'):
            pid = int(open(f'/proc/{pid}/task/{pid}/children').read().split()[0])
        return pid

    def dump(self, *options, name='heap.hprof', limit=60, strace=None, wait=True):
        trace = ['strace', '-f', '-qq', '-e', 'trace=%file,%creds,setns,chroot', '-o', strace] if strace else []
        command = [*trace, PROGRAM, 'dump', str(self.pid), '--yes', '--no-overview', '-o', os.path.join(self.out, name), *options]
        environment = {**os.environ, 'HPROF_CLI_INDEX_DIR': os.path.join(self.own, 'index')}
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd='/', env=environment)
        if not wait:
            return child
        return self.ended(child, limit)

    def ended(self, child, limit):
        try:
            _, err = child.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            child.kill()
            _, err = child.communicate()
            return 'HUNG', err.decode(errors='replace')
        return child.returncode, err.decode(errors='replace')

    def said(self):
        return open(self.log.name).read()

    def harm(self):
        """What happened to root's files."""
        found = [os.path.join(path, name) for path, names, _ in os.walk(self.home) for name in names if os.lstat(os.path.join(path, name)).st_ino == self.ids['']]
        if not found:
            return 'the directory is gone'
        after = snapshot(found[0])
        if after != self.before:
            return str({name: (self.before.get(name), after.get(name)) for name in {*after, *self.before} if self.before.get(name) != after.get(name)})
        return None

    def left(self):
        """What of ours is left in the attacker's places."""
        found = []
        for place in ('/tmp', self.home, self.shared, self.own):
            for name in os.listdir(place):
                if not name.startswith(('.hprof-cli', '.attach_pid')):
                    continue
                try:
                    there = os.lstat(f'{place}/{name}')
                except FileNotFoundError:
                    continue
                # Other tests dump JVMs of root.
                is_others = place == '/tmp' and 'PORTION' in os.environ and there.st_uid != USER
                if there.st_mtime > START and not is_others:
                    found.append(f'{place}/{name}')
        return found

    def end(self):
        for pid in {self.pid, self.process.pid}:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        left = self.left()
        for path in left:
            shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) and not os.path.islink(path) else os.remove(path)
        for path in glob.glob(f'/tmp/hsperfdata_u{USER}*'):
            os.remove(path) if os.path.islink(path) else shutil.rmtree(path, ignore_errors=True)
        shutil.rmtree(self.top, ignore_errors=True)


def attack(title, mode, options=(), may_be_left=False, says=None, expect=None, prepare=None, limit=60, **more):
    stage = Stage(mode, **more)
    try:
        if prepare:
            prepare(stage)
        start = time.time()
        code, err = stage.dump(*options, limit=limit)
        took = time.time() - start
        time.sleep(1.2)
        harm, left = stage.harm(), stage.left()
        # His own, made before.
        left = [path for path in left if not (mode.startswith('trigger-') and '.attach_pid' in path)]
        last = [line for line in err.strip().splitlines() if ': plan: ' not in line][-2:]
        why = []
        if harm:
            why.append(f'HARM: {harm}')
        if code == 'HUNG' or (expect is not None and code != expect):
            why.append(f'exit code {code}')
        if left and not may_be_left:
            why.append(f'left: {left}')
        if left and may_be_left and 'cannot remove' not in err:
            why.append(f'left without a word: {left}')
        if says and not re.search(says, err):
            why.append(f'does not say {says!r}: {err[-500:]}')
        log = stage.said()
        if re.search('^opened |^ptrace 0', log, re.M):
            why.append('the child could be looked into: ' + log)
        rows.append((title, code, f'{took:.1f}', ' | '.join(last)[:150], why))
        print(('ok   ' if not why else 'FAIL ') + f'{title}: {code}, {took:.1f} s: ' + ' | '.join(last)[:220] + ('' if not why else ' ' + '; '.join(why) + '\n' + log), flush=True)
    finally:
        stage.end()


def killed_at_every_step(java):
    """SIGKILL at many moments: nothing of ours stays, and no file of root's changes."""
    stage = Stage('plain', java=java)
    try:
        left, harm = [], None
        for at in range(20):
            name = f'killed-{at}.hprof' + ('.zst' if at % 2 else '')
            child = stage.dump(*(['--zstd'] if at % 2 else []), name=name, wait=False)
            time.sleep(0.01 + at * 0.02)
            child.send_signal(signal.SIGKILL)
            child.communicate()
            time.sleep(1.2)
            left += stage.left()
            harm = harm or stage.harm()
        why = [f'left: {left}'] * bool(left) + [f'HARM {harm}'] * bool(harm)
        rows.append(('kill -9 at 20 moments', '', '', '', why))
        print(('ok   ' if not why else 'FAIL ') + 'kill -9 at 20 moments ' + '; '.join(why), flush=True)
    finally:
        stage.end()


def traced(java, options, place, namespace):
    """No call with effective user 0 names a path in a place of the user."""
    stage = Stage('plain', java=java, place=place, namespace=namespace)
    try:
        trace = os.path.join(stage.top, 'trace')
        code, err = stage.dump(*options, name='out.hprof' + ('.zst' if options else ''), strace=trace)
        user_of, wrong = {}, []
        first = None
        for line in open(trace, errors='replace'):
            pid, call = line.split(None, 1)
            first = first or pid
            if match := re.match(r'setresuid\((\d+), (\d+)', call):
                user_of[pid] = int(match[2])
            elif re.match(r'(chroot|setns|execve|getresuid|getuid|geteuid|access\("/etc|readlink)', call):
                continue
            elif user_of.get(pid, 0) == 0:
                named = re.findall(r'"([^"]*)"', call)
                is_theirs = lambda path: path.startswith(('/tmp', stage.home, stage.shared)) or re.match(r'/proc/\d+/(root|cwd)/', path) or '.hprof-cli-dump' in path or path in ('tmp', 'heap.hprof') or '.java_pid' in path or 'hsperfdata' in path or '.attach_pid' in path
                theirs = [path for path in named if is_theirs(path)]
                # The directory that root makes in its own place is named there, and nowhere else.
                if place == 'own':
                    theirs = [path for path in theirs if not re.fullmatch(r'\.hprof-cli-dump-[0-9a-f]{16}', path)]
                if theirs:
                    wrong.append(line.strip())
        child = [pid for pid, user in user_of.items() if user == USER]
        why = [] if code == 0 else [f'exit code {code}: {err[-300:]}']
        why += [f'{len(wrong)} calls: ' + '\n'.join(wrong[:8])] * bool(wrong)
        why += ['no child became the user'] * (not child)
        title = f'strace: {os.path.basename(os.path.dirname(os.path.dirname(java)))}, output in {place}, {" ".join(options) or "plain"}{", namespace" if namespace else ""}'
        rows.append((title, code, '', '', why))
        print(('ok   ' if not why else 'FAIL ') + title + ' ' + '; '.join(why), flush=True)
    finally:
        stage.end()


def main():
    global PROGRAM, CLASSES, LIBJVM, START
    if os.geteuid() != 0:
        print('NOT RUN: it takes root')
        return 0
    if subprocess.run(as_user('true', namespace=True), capture_output=True).returncode != 0:
        print('NOT RUN: no user namespaces')
        return 0
    PROGRAM, javas = os.path.abspath(sys.argv[1]), sys.argv[2:]
    START = time.time() - 1
    CLASSES = tempfile.mkdtemp(prefix='doors-classes-', dir='/srv')
    os.chmod(CLASSES, 0o755)
    subprocess.run(['javac', '-nowarn', '--release', '11', '-d', CLASSES, os.path.join(HERE, 'Held.java')], check=True)
    LIBJVM = glob.glob(os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(javas[0]))), 'lib/server/libjvm.so'))[0]
    only = os.environ.get('ONLY')
    # What `cargo test` runs.
    portion = ('mount-private', 'mount-tmp', 'swap-rename', 'output-link', 'file-link', 'trigger-link') if os.environ.get('PORTION') else ()
    cases = [
        ('mounted over the private directory', 'mount-private', dict(options=['--zstd'], namespace=True, place='own', may_be_left=True)),
        ('the same, a JVM without FIFOs', 'mount-private-inside', dict(options=['--zstd'], namespace=True, place='own', may_be_left=True)),
        ('mounted over /tmp before the directory is made', 'mount-tmp', dict(options=['--zstd'], namespace=True, place='own', expect=2)),
        ('mounted over /tmp while it is dumped', 'mount-parent', dict(options=['--zstd'], namespace=True, place='own')),
        ('files and directories put into the private directory', 'fill', dict(options=['--zstd'], place='own', may_be_left=True, says='cannot remove')),
        ('private directory renamed, root\'s in its place', 'swap-rename', dict(may_be_left=True)),
        ('private directory renamed, a link in its place', 'swap-link', dict(may_be_left=True)),
        ('the same in a directory of all, not sticky', 'swap-link', dict(place='shared', may_be_left=True)),
        ('directory of the output replaced by a link', 'parent-link', dict(options=['--zstd'])),
        ('a link has the name of the output meanwhile', 'output-link', dict(options=['--zstd'])),
        ('the name of the output is a link', 'plain', dict(prepare=lambda s: os.symlink(s.victim + '/file', s.out + '/heap.hprof'), expect=2)),
        ('the same with --force', 'plain', dict(options=['--force'], prepare=lambda s: os.symlink(s.victim + '/file', s.out + '/heap.hprof'), expect=2)),
        ('the name of the output is a FIFO', 'plain', dict(prepare=lambda s: os.mkfifo(s.out + '/heap.hprof'), expect=2)),
        ('--force in a sticky directory, the file is another\'s', 'plain', dict(options=['--force'], place='shared', sticky=True, prepare=lambda s: open(s.shared + '/heap.hprof', 'w').write('root'), expect=2)),
        ('the dump is a link', 'file-link', dict(options=['--zstd'], place='own', expect=2)),
        ('the dump is another name of a file', 'file-hard', dict(options=['--zstd'], place='own', expect=2)),
        ('the dump is a directory', 'file-dir', dict(options=['--zstd'], place='own', expect=2, may_be_left=True)),
        ('the dump is a FIFO', 'file-fifo', dict(options=['--zstd'], place='own', expect=2)),
        ('the dump is a socket', 'file-socket', dict(options=['--zstd'], place='own', expect=2)),
        ('the dump becomes a link', 'file-changes', dict(options=['--zstd'], place='own')),
        ('the FIFO is replaced', 'fifo-replaced', dict(options=['--zstd'], place='own', may_be_left=True)),
        ('the counters are a link', 'perf-link', dict(options=['--zstd'], place='own')),
        ('the counters are a FIFO', 'perf-fifo', dict(options=['--zstd'], place='own')),
        ('the directory of the counters is a link', 'perf-dir', dict(options=['--zstd'], place='own')),
        ('the socket is a link', 'socket-link', dict(options=['--zstd'], place='own', expect=2)),
        ('the socket is a FIFO', 'socket-fifo', dict(options=['--zstd'], place='own', expect=2)),
        ('the trigger is a link', 'trigger-link', dict(options=['--zstd'], place='own', expect=2, may_be_left=False, prepare=None)),
        ('the trigger is a FIFO', 'trigger-fifo', dict(options=['--zstd'], place='own', expect=2)),
        ('the trigger is a directory', 'trigger-dir', dict(options=['--zstd'], place='own', expect=2)),
        ('the child is looked into, traced and killed', 'kill-door', dict(options=['--zstd'], place='own', may_be_left=True)),
        ('the child is stopped', 'stop-door', dict(options=['--zstd'], place='own', may_be_left=True, limit=150)),
        ('`help` is never answered', 'help-never', dict(options=['--zstd', '--timeout', '35s'], place='own', expect=2, says='waiting: process .* has not answered `help')),
        ('the dump is never answered', 'dump-never', dict(options=['--zstd', '--timeout', '35s'], place='own', expect=2, says='waiting: process .* has not answered `GC.heap_dump`')),
        ('an answer without end', 'dump-endless', dict(options=['--zstd', '--timeout', '5s'], place='own', expect=2)),
        ('an error of 16 MiB', 'dump-error', dict(options=['--zstd'], place='own', expect=2, says='more bytes')),
    ]
    try:
        for title, mode, more in cases:
            if (not only or only in mode or only in title) and (not portion or mode in portion):
                attack(title, mode, **more)
        for java in javas if not portion else ():
            if not only or only in 'killed':
                killed_at_every_step(java)
            if not only or only in 'strace':
                if not shutil.which('strace'):
                    print('NOT RUN: strace')
                    continue
                for options, place, namespace in ((['--zstd'], 'own', False), ([], 'own', False), ([], 'home', False), (['--zstd'], 'home', False), (['--zstd'], 'own', True)):
                    traced(java, options, place, namespace)
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
        shutil.rmtree(CLASSES, ignore_errors=True)
    failed = [row for row in rows if row[4]]
    print(f'{len(rows)} attacks, {len(failed)} got through')
    return 1 if failed else 0


sys.exit(main())
