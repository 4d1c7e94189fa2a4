#!/usr/bin/env python3
"""Every way in which `dump` and `jvms` may fail: message, exit code, what is left behind, and whether the JVM goes on.

Usage, as root: hostile.py PROGRAM JAVA... (paths of `java`; javac is taken from the path). Exits with 1 if a check fails.
Nothing else may dump JVMs meanwhile: its directories in /tmp would count as left behind.
"""
import json, os, re, shutil, signal, socket, subprocess, sys, tempfile, time

PROGRAM, JAVAS = os.path.abspath(sys.argv[1]), sys.argv[2:]
HERE = os.path.dirname(os.path.abspath(__file__))
# Not below /tmp, which one case hides; nor below another directory that others may change.
WORK = tempfile.mkdtemp(prefix='hostile-', dir='/srv')
os.chmod(WORK, 0o755)
CLASSES = os.path.join(WORK, 'classes')
USER = 12345
failed = []


def check(name, is_right, detail=''):
    print(f'  {"ok  " if is_right else "FAIL"} {name}' + (f': {detail}' if detail and not is_right else ''), flush=True)
    if not is_right:
        failed.append((name, detail))


STARTED = []


class Jvm:
    """A JVM that holds some MiB; `prefix` starts it, such as unshare."""

    def __init__(self, java, options=(), mebibytes=10, prefix=(), cwd=None, name='Held'):
        command = [*prefix, java, '-Xmx1g', *options, '-cp', CLASSES, name, str(mebibytes)]
        self.cwd = cwd or tempfile.mkdtemp(prefix='cwd-', dir=WORK)
        if not cwd:
            os.chmod(self.cwd, 0o777)
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.cwd, text=True)
        STARTED.append(self.process)
        self.said = []
        while not (line := self.process.stdout.readline()).startswith('READY'):
            self.said.append(line)
            assert line, self.said
        self.pid = self.find()

    def find(self):
        pid = self.process.pid
        while True:
            if os.path.basename(os.readlink(f'/proc/{pid}/exe')) == 'java':
                return pid
            children = open(f'/proc/{pid}/task/{pid}/children').read().split()
            pid = int(children[0])

    def lives(self):
        try:
            status = open(f'/proc/{self.pid}/status').read()
        except FileNotFoundError:
            return False
        return 'State:\tZ' not in status

    def left(self):
        """Files of ours that are left where the JVM is."""
        found = []
        for place in (f'/proc/{self.pid}/root/tmp', self.cwd):
            if os.path.isdir(place):
                found += [f'{place}/{name}' for name in os.listdir(place) if name.startswith(('.hprof-cli', '.attach_pid'))]
        return found

    def end(self):
        for pid in {self.pid, self.process.pid}:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()


def cli(*arguments, user=None, cwd=None, start=False):
    prefix = ['setpriv', f'--reuid={user}', f'--regid={user}', '--clear-groups'] if user else []
    command = [*prefix, PROGRAM, *map(str, arguments)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=cwd or WORK)
    if start:
        return child
    out, err = child.communicate(timeout=120)
    return child.returncode, out, err.decode()


def healthy(path):
    """Whether `doctor` finds nothing; then nothing of the dump is kept, except the dump itself."""
    index = os.path.join(WORK, 'index')
    done = subprocess.run([PROGRAM, 'doctor', path, '--index-dir', index], capture_output=True)
    shutil.rmtree(index, ignore_errors=True)
    return done.returncode == 0


def settle():
    """The guard may take a moment."""
    time.sleep(0.5)


def stays(out):
    """What of ours is in the directory of the destination."""
    return [name for name in os.listdir(os.path.dirname(out)) if name.startswith('.hprof-cli')]


def new_out(name='heap.hprof'):
    return os.path.join(tempfile.mkdtemp(prefix='out-', dir=WORK), name)


def dump(jvm, *options, name='heap.hprof', expect=0, says=None, is_kept=False, **more):
    out = new_out(name)
    code, _, err = cli('dump', jvm.pid, '-o', out, '--yes', '--no-overview', *options, **more)
    label = ' '.join(options)
    check(f'exit code {expect} {label}', code == expect, f'{code}: {err}')
    if says:
        check(f'says {says!r}', re.search(says, err), err)
    if expect == 0:
        check('healthy', healthy(out), err)
        check('mode 0600, owner', (os.stat(out).st_mode & 0o777, os.stat(out).st_uid) == (0o600, os.geteuid()))
    else:
        check('no file', not os.path.exists(out))
    settle()
    check('nothing left', not jvm.left() and not stays(out), str(jvm.left() + stays(out)))
    print('      ' + ' | '.join(line for line in err.strip().splitlines() if ': plan: ' not in line), flush=True)
    if expect == 0 and not is_kept:
        os.remove(out)
    return out


def case(name):
    print(name, flush=True)


def run(java):
    version = subprocess.run([java, '-version'], capture_output=True, text=True).stderr.splitlines()[0]
    print(f'== {version}', flush=True)

    case('plain, compressed, to stdout')
    jvm = Jvm(java)
    dump(jvm)
    dump(jvm, '--gzip', name='heap.hprof.gz')
    dump(jvm, '--zstd', '--all', name='heap.hprof.zst')
    out = new_out()
    code, bytes_, err = cli('dump', jvm.pid, '-o', '-', '--yes')
    open(out, 'wb').write(bytes_)
    check('to stdout', code == 0 and healthy(out), err)
    code, bytes_, err = cli('dump', jvm.pid, '--dry-run', '--format', 'json')
    check('dry run', code == 0 and json.loads(bytes_)['rows'][0]['pid'] == jvm.pid, err)
    code, _, err = cli('dump', jvm.pid, '-o', out, '--yes', '--no-overview')
    check('an existing file stays', code == 2 and 'already exists' in err and open(out, 'rb').read(12) == b'JAVA PROFILE', err)
    code, _, err = cli('dump', jvm.pid, '-o', out)
    check('nobody to ask', code == 2 and 'already exists' in err, err)
    code, _, err = cli('dump', jvm.pid, '-o', out, '--force')
    check('nobody to ask', code == 2 and '--yes' in err, err)
    code, _, err = cli('dump', jvm.pid, '-o', out, '--force', '--yes', '--no-overview')
    check('--force replaces', code == 0 and healthy(out), err)

    case('a stale socket')
    jvm.end()
    jvm = Jvm(java)
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(f'/tmp/.java_pid{jvm.pid}')
    stale.close()
    os.chmod(f'/tmp/.java_pid{jvm.pid}', 0o600)
    dump(jvm)

    case('a file in place of the socket')
    os.remove(f'/tmp/.java_pid{jvm.pid}')
    open(f'/tmp/.java_pid{jvm.pid}', 'w').close()
    dump(jvm, expect=2, says='not a socket that only')
    os.remove(f'/tmp/.java_pid{jvm.pid}')
    dump(jvm)

    case('no permission: another user, a directory that cannot be written')
    dump(jvm, expect=2, says='belongs to user 0', user=USER)
    small = os.path.join(WORK, 'small')
    os.makedirs(small, exist_ok=True)
    subprocess.run(['mount', '-t', 'tmpfs', '-o', 'ro', 'none', small], check=True)
    code, _, err = cli('dump', jvm.pid, '-o', f'{small}/heap.hprof', '--yes')
    check('cannot write', code == 2 and 'Read-only' in err, err)
    print('      ' + err.strip().splitlines()[-1])
    subprocess.run(['umount', small])

    case('no space: tmpfs of 20 MB')
    subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=20m', 'none', small], check=True)
    big = Jvm(java, mebibytes=100)
    code, _, err = cli('dump', big.pid, '-o', f'{small}/heap.hprof', '--yes')
    check('refused before it starts', code == 2 and 'free, but the dump needs' in err and not os.listdir(small), err)
    print('      ' + ' | '.join(line for line in err.strip().splitlines() if ': plan: ' not in line))
    # The estimate fits, but the disk fills up meanwhile: what passes through a FIFO, or is compressed, is not estimated.
    code, _, err = cli('dump', big.pid, '-o', f'{small}/heap.hprof.gz', '--gzip', '--yes')
    settle()
    check('full while compressing', code == 2 and not os.listdir(small), f'{code} {err} {os.listdir(small)}')
    print('      ' + ' | '.join(line for line in err.strip().splitlines() if ': plan: ' not in line))
    check('the JVM goes on', big.lives() and not big.left(), str(big.left()))
    dump(big)
    subprocess.run(['umount', small])

    case('stopped by SIGSTOP')
    os.kill(jvm.pid, signal.SIGSTOP)
    time.sleep(0.1)
    dump(jvm, expect=2, says='is stopped')
    os.kill(jvm.pid, signal.SIGCONT)
    dump(jvm)

    case('dies while dumping')
    dying = Jvm(java, mebibytes=300)
    out = new_out()
    child = cli('dump', dying.pid, '-o', out, '--yes', start=True)
    while not stays(out) and child.poll() is None:
        time.sleep(0.005)
    time.sleep(0.1)
    dying.end()
    _, err = child.communicate(timeout=60)
    settle()
    check('said', child.returncode == 2 and b'ended' in err and not os.listdir(os.path.dirname(out)), f'{child.returncode} {err} {os.listdir(os.path.dirname(out))}')
    print('      ' + ' | '.join(line for line in err.decode().strip().splitlines() if ': plan: ' not in line))

    case('^C and SIGKILL at random moments')
    for kind, options, name in ((signal.SIGINT, (), 'a.hprof'), (signal.SIGKILL, (), 'a.hprof'), (signal.SIGKILL, ('--zstd',), 'a.hprof.zst'), (signal.SIGINT, ('--gzip',), 'a.hprof.gz')):
        left, whole = [], 0
        for at in range(12):
            out = new_out(name)
            child = cli('dump', big.pid, '-o', out, '--yes', '--no-overview', *options, start=True)
            time.sleep(0.03 + at * 0.09)
            child.send_signal(kind)
            _, err = child.communicate()
            settle()
            if os.path.exists(out):
                whole += 1
                check('whole', healthy(out))
                os.remove(out)
            left += big.left() + stays(out)
        check(f'{kind.name} {options} x 12: {whole} were whole, nothing left', not left, str(left))
        check('the JVM goes on', big.lives())
        dump(big)
    big.end()

    case('no JVM: a wrong process ID, a program, a thread')
    code, _, err = cli('dump', 4194304, '--yes')
    check('no process', code == 2 and 'there is no process' in err, err)
    sleep = subprocess.Popen(['sleep', '60'])
    code, _, err = cli('dump', sleep.pid, '--yes')
    check('sleep is no JVM', code == 2 and 'is not a JVM' in err and sleep.poll() is None, err)
    sleep.kill()
    thread = max(int(name) for name in os.listdir(f'/proc/{jvm.pid}/task'))
    code, _, err = cli('dump', thread, '--yes')
    check('a thread', code == 2 and f'thread of process {jvm.pid}' in err, err)
    code, _, err = cli('dump', 'NoSuchProgram', '--yes')
    check('no such name', code == 2 and 'no running JVM' in err, err)

    case('by name, and ambiguous')
    # Others may be running; NAME is unique.
    named = Jvm(java, name='HeldByName')
    code, _, err = cli('dump', 'HeldByN', '--yes', '--no-overview', '-o', new_out())
    check('by name', code == 0, err)
    second = Jvm(java)
    code, _, err = cli('dump', 'Held', '--yes')
    check('ambiguous', code == 2 and str(second.pid) in err and str(jvm.pid) in err, err)
    second.end()
    named.end()
    jvm.end()

    case('-XX:+DisableAttachMechanism, with and without counters')
    for more in ((), ('-XX:-UsePerfData',)):
        disabled = Jvm(java, ['-XX:+DisableAttachMechanism', *more])
        dump(disabled, expect=2, says='DisableAttachMechanism')
        check('it goes on', disabled.lives())
        disabled.end()

    case('-Xrs')
    quiet = Jvm(java, ['-Xrs'])
    # It opens its socket when it starts, and needs no signal.
    dump(quiet)
    os.remove(f'/tmp/.java_pid{quiet.pid}')
    dump(quiet, expect=2, says='does not handle SIGQUIT')
    check('it goes on', quiet.lives())
    quiet.end()

    case('-XX:-UsePerfData')
    bare = Jvm(java, ['-XX:-UsePerfData', '-XX:+UseSerialGC'])
    code, bytes_, err = cli('jvms', '--format', 'json')
    row = next(row for row in json.loads(bytes_)['rows'] if row['pid'] == bare.pid)
    check('jvms', row['main_class'] == 'Held' and row['heap_used_bytes'] is None and row['heap_max_bytes'] == 1 << 30 and not row['is_publishing'], str(row))
    dump(bare, says='at most')
    bare.end()

    case('a process of another user, from root')
    other = Jvm(java, prefix=['setpriv', f'--reuid={USER}', f'--regid={USER}', '--clear-groups'])
    dump(other)
    dump(other, '--zstd', name='heap.hprof.zst')
    # A directory that the other user cannot reach.
    secret = os.path.join(WORK, 'secret')
    os.makedirs(secret, exist_ok=True)
    os.chmod(secret, 0o700)
    out = f'{secret}/heap.hprof'
    code, _, err = cli('dump', other.pid, '-o', out, '--yes', '--force', '--no-overview')
    check('into a directory it cannot reach', code == 0 and healthy(out), err)
    check('nothing left', not other.left(), str(other.left()))
    other.end()

    if java.startswith('/tmp/'):
        return print('NOT RUN: namespaces: their /tmp hides this JDK')
    case('PID, mount and user namespaces, with a /tmp of its own')
    inside = 'mount -t tmpfs none /tmp && exec "$@"'
    for prefix in ([], ['setpriv', f'--reuid={USER}', f'--regid={USER}', '--clear-groups']):
        unshare = ['unshare', '--user', '--map-root-user', '--pid', '--mount', '--fork', '--mount-proc', 'sh', '-c', inside, 'sh']
        contained = Jvm(java, prefix=[*prefix, *unshare], cwd='/')
        code, bytes_, err = cli('jvms', '--format', 'json')
        row = next(row for row in json.loads(bytes_)['rows'] if row['pid'] == contained.pid)
        check('jvms', row['namespace_pid'] < 10 and row['main_class'] == 'Held' and row['is_publishing'], str(row))
        dump(contained)
        dump(contained, '--zstd', name='heap.hprof.zst')
        if prefix:
            user_out = os.path.join(WORK, f'user-{contained.pid}')
            os.makedirs(user_out)
            os.chown(user_out, USER, USER)
            code, _, err = cli('dump', contained.pid, '-o', f'{user_out}/heap.hprof', '--yes', '--no-overview', user=USER)
            check('by that user itself', code == 0 and healthy(f'{user_out}/heap.hprof'), err)
        # Dies while dumping: nothing can be removed through its root any more, but nothing is left there either.
        contained.end()


STAND_IN = r"""
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
__attribute__((section(".svm_heap"), used)) static char image[64] = "heap";
static volatile sig_atomic_t asked;
static void ask(int number) { asked = 1; }
int main(int count, char **arguments) {
  if (count > 1) signal(SIGUSR1, ask);
  puts("READY"); fflush(stdout);
  for (;;) {
    usleep(10000);
    if (!asked) continue;
    char name[99], bytes[65536];
    snprintf(name, sizeof name, "svm-heapdump-%d-20261126T014600Z.hprof", getpid());
    int from = open(arguments[1], O_RDONLY), to = open(name, O_CREAT | O_WRONLY, 0644);
    for (ssize_t length; (length = read(from, bytes, sizeof bytes)) > 0; usleep(2000)) write(to, bytes, length);
    close(to);
    asked = 0;
  }
}
"""


def others(java):
    """Virtual machines that are not HotSpot, by stand-ins: programs with their marks, as neither was at hand."""
    case('a native image (stand-in)')
    jvm = Jvm(java)
    given = dump(jvm, is_kept=True)
    jvm.end()
    source, program = os.path.join(WORK, 'image.c'), os.path.join(WORK, 'image')
    open(source, 'w').write(STAND_IN)
    subprocess.run(['cc', '-w', '-o', program, source], check=True)
    for arguments in ([given], []):
        place = tempfile.mkdtemp(prefix='cwd-', dir=WORK)
        image = subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, cwd=place)
        image.stdout.readline()
        out = new_out()
        code, _, err = cli('dump', image.pid, '-o', out, '--yes', '--no-overview')
        if arguments:
            same = code == 0 and open(out, 'rb').read() == open(given, 'rb').read()
            check('the dump arrives, mode 0600', same and os.stat(out).st_mode & 0o777 == 0o600, err)
            check('nothing left', not os.listdir(place), str(os.listdir(place)))
        else:
            check('not built with dumps: no signal', code == 2 and '--enable-monitoring=heapdump' in err, err)
        check('it goes on', image.poll() is None)
        code, bytes_, err = cli('jvms', '--format', 'json')
        row = next(row for row in json.loads(bytes_)['rows'] if row['pid'] == image.pid)
        check('jvms', row['vm_kind'] == 'native image', str(row))
        image.kill()

    case('OpenJ9 (stand-in)')
    for name in ('libjvm.so', 'libj9vm29.so'):
        open(os.path.join(WORK, name), 'wb').write(bytes(4096))
    code = 'import mmap,sys,time; f=[open(n,"rb") for n in sys.argv[1:]]; m=[mmap.mmap(n.fileno(),0,prot=mmap.PROT_READ) for n in f]; print("READY",flush=True); time.sleep(60)'
    openj9 = subprocess.Popen([sys.executable, '-c', code, 'libjvm.so', 'libj9vm29.so'], stdout=subprocess.PIPE, cwd=WORK)
    openj9.stdout.readline()
    code, _, err = cli('dump', openj9.pid, '--yes')
    check('refused with its own words', code == 2 and 'OpenJ9' in err and 'Dump.heap' in err and openj9.poll() is None, err)
    print('      ' + err.strip().replace('\n', ' | '))
    openj9.kill()


def main():
    os.makedirs(CLASSES)
    subprocess.run(['javac', '-nowarn', '--release', '11', '-d', CLASSES, os.path.join(HERE, 'Held.java')], check=True)
    try:
        for java in JAVAS:
            run(java)
        others(JAVAS[0])
    finally:
        for process in STARTED:
            if process.poll() is None:
                process.kill()
        subprocess.run(['umount', os.path.join(WORK, 'small')], stderr=subprocess.DEVNULL)
        shutil.rmtree(WORK, ignore_errors=True)
    print(f'{len(failed)} checks failed', *failed, sep='\n')
    return 1 if failed else 0


sys.exit(main())
