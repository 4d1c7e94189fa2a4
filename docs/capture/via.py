#!/usr/bin/env python3
"""`jvms` and `dump` with `--via`, in containers that have next to nothing, over ssh, and killed at random moments.

Usage, as root: via.py PROGRAM STATIC_HELPER GLIBC_HELPER JAVA_HOME... (javac is taken from the path). Needs podman, runc,
busybox-static, openssh-server and openssh-client (Debian). Exits with 1 if a check fails.
"""
import collections, json, os, random, re, shutil, signal, subprocess, sys, tempfile, threading, time

PROGRAM, STATIC, GLIBC = map(os.path.abspath, sys.argv[1:4])
HOMES = [os.path.realpath(home) for home in sys.argv[4:]]
HERE = os.path.dirname(os.path.abspath(__file__))
WORK = tempfile.mkdtemp(prefix='via-', dir='/var/tmp')
PODMAN = ['podman', '--runtime', 'runc']
KILLS = int(os.environ.get('KILLS', '40'))
failed, started = [], []
random.seed(36)


def check(name, is_right, detail=''):
    print(f'  {"ok  " if is_right else "FAIL"} {name}' + (f': {detail}' if detail and not is_right else ''), flush=True)
    if not is_right:
        failed.append((name, detail))


def libraries(paths):
    """Libraries that programs need, and the loader."""
    found = {'/lib64/ld-linux-x86-64.so.2'}
    for path in paths:
        out = subprocess.run(['ldd', path], capture_output=True, text=True).stdout
        found |= {word for word in out.split() if word.startswith('/') and '.so' in word}
    return found


def root(name, home, tools):
    """A root file system with a JDK, its libraries, the program Held, and these tools only."""
    top = os.path.join(WORK, name)
    for path in ('bin', 'tmp', 'proc', 'dev', 'sys', 'etc', 'app', 'run', 'lib64', 'var/tmp'):
        os.makedirs(f'{top}/{path}', exist_ok=True)
    shutil.copytree(home, f'{top}/jdk', symlinks=False, ignore_dangling_symlinks=True,
                    ignore=lambda _, names: [n for n in names if n in ('src.zip', 'jmods', 'demo', 'man', 'legal')])
    subprocess.run(['javac', '--release', '11', '-d', f'{top}/app', f'{HERE}/Held.java'], check=True, capture_output=True)
    needed = [f'{path}/{file}' for path, _, files in os.walk(f'{top}/jdk/lib') for file in files if '.so' in file]
    for tool, source in tools.items():
        shutil.copy(source, f'{top}/bin/{tool}')
        needed.append(source)
    for path in libraries([*needed, f'{top}/jdk/bin/java']):
        if path.startswith(top) or path.startswith(home):
            continue
        os.makedirs(f'{top}{os.path.dirname(path)}', exist_ok=True)
        shutil.copy(os.path.realpath(path), f'{top}{path}')
    return top


class Container:
    """A JVM in a container whose root is read-only; its /tmp has 16 MB."""

    def __init__(self, top, mebibytes=100, options=(), tmpfs='/tmp:size=16m'):
        self.name = f'hprof-via-{len(started)}'
        started.append(self.name)
        subprocess.run([*PODMAN, 'rm', '-f', self.name], capture_output=True)
        command = [*PODMAN, 'run', '-d', '--name', self.name, '--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=1024:1024',
                   '--network', 'none', '--read-only', '--tmpfs', tmpfs, *options, '--rootfs', top,
                   '/jdk/bin/java', '-Xmx512m', '-cp', '/app', 'Held', str(mebibytes)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        while 'READY' not in subprocess.run([*PODMAN, 'logs', self.name], capture_output=True, text=True).stdout:
            time.sleep(0.2)
        inspect = subprocess.run([*PODMAN, 'inspect', self.name, '--format', '{{.State.Pid}}'], capture_output=True, text=True)
        self.pid = int(inspect.stdout)
        self.via = f'{" ".join(PODMAN)} exec -i {self.name}'

    def lives(self):
        return os.path.exists(f'/proc/{self.pid}')

    def used(self):
        there = os.statvfs(f'/proc/{self.pid}/root/tmp')
        return (there.f_blocks - there.f_bfree) * there.f_frsize

    def left(self):
        found = []
        for place in ('tmp', 'var/tmp', 'run', 'dev/shm'):
            path = f'/proc/{self.pid}/root/{place}'
            if os.path.isdir(path):
                found += [f'{place}/{n}' for n in os.listdir(path) if n.startswith(('.hprof', '.attach_pid'))]
        return found

    def processes(self, is_dead=False):
        """Processes in it beside the JVM; or those that have ended, for which the JVM, as their parent, does not wait."""
        own = os.readlink(f'/proc/{self.pid}/ns/pid')
        found = []
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                state = re.search(r'State:\s+(\S)', open(f'/proc/{pid}/status').read())[1]
                if os.readlink(f'/proc/{pid}/ns/pid') == own and int(pid) != self.pid and (state == 'Z') == is_dead:
                    found.append(int(pid))
            except OSError:
                pass
        return found

    def end(self):
        subprocess.run([*PODMAN, 'rm', '-f', self.name], capture_output=True)


class Watch(threading.Thread):
    """Most bytes used in the container's /tmp, and most memory of a process of ours in it."""

    def __init__(self, container):
        super().__init__(daemon=True)
        self.container, self.before, self.most, self.memory, self.is_on = container, container.used(), 0, 0, True
        self.start()

    def run(self):
        while self.is_on:
            try:
                self.most = max(self.most, self.container.used() - self.before)
            except OSError:
                pass
            for pid in self.container.processes():
                try:
                    status = open(f'/proc/{pid}/status').read()
                    peak = re.search(r'VmHWM:\s+(\d+)', status)
                    self.memory = max(self.memory, int(peak[1]) if peak else 0)
                except OSError:
                    pass
            time.sleep(0.005)

    def end(self):
        self.is_on = False
        self.join()
        return self


def cli(*arguments, helper=None, path=None, start=False):
    environment = {'PATH': (f'{path}:' if path else '') + os.environ['PATH'], 'HOME': WORK}
    if helper:
        environment['HPROF_CLI_HELPER'] = helper
    child = subprocess.Popen([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             stdin=subprocess.DEVNULL, cwd=WORK, env=environment)
    if start:
        return child
    out, err = child.communicate(timeout=120)
    return child.returncode, out.decode(errors='replace'), err.decode(errors='replace')


def new_out(name):
    return os.path.join(tempfile.mkdtemp(prefix='out-', dir=WORK), name)


def healthy(path):
    index = os.path.join(WORK, 'index')
    done = subprocess.run([PROGRAM, 'doctor', path, '--index-dir', index], capture_output=True)
    rows = subprocess.run([PROGRAM, 'histo', path, '--top', '0', '--format', 'json', '--index-dir', index], capture_output=True)
    shutil.rmtree(index, ignore_errors=True)
    classes = {row['class']: (row['instances'], row['shallow_bytes']) for row in json.loads(rows.stdout)['rows']}
    return done.returncode == 0, classes


def dump(container, via, *options, helper, name='heap.hprof', path=None, target='Held'):
    out = new_out(name)
    watch = Watch(container)
    code, _, err = cli('dump', target, '--via', via, '-o', out, '--yes', '--no-overview', *options, helper=helper, path=path)
    watch.end()
    check(f'exit code 0 {" ".join(options)}', code == 0, err)
    if code:
        return
    is_healthy, classes = healthy(out)
    check('healthy, with the program\'s objects', is_healthy and classes.get('Held$Order', (0, 0))[0] > 0, str(classes)[:200])
    check('mode 0600', os.stat(out).st_mode & 0o777 == 0o600)
    time.sleep(0.3)
    check('nothing left, the JVM goes on', not container.left() and container.lives(), str(container.left()))
    check('no process left', not container.processes(), str(container.processes()))
    said = err.strip().splitlines()[-1]
    print(f'      {said.split(": ", 2)[-1]}', flush=True)
    print(f'      file {os.path.getsize(out) / 1e6:.0f} MB, disk there {watch.most / 1e6:.1f} MB, memory of a helper at most '
          f'{watch.memory / 1024:.1f} MiB', flush=True)
    check('the disk there is used for the helper only', watch.most < 12e6, str(watch.most))
    return out


def refused(name, says, *arguments, code=2, **more):
    got, _, err = cli(*arguments, **more)
    check(name, got == code and re.search(says, err), f'{got}: {err}')
    print('      ' + ' | '.join(err.strip().splitlines()[:3]), flush=True)


def case(name):
    print(name, flush=True)


def few(home):
    """Containers with `sh` and `cat` only, or less."""
    case('sh and cat only: podman exec, its loader starts the helper')
    top = root('few', home, {'sh': '/bin/sh', 'cat': '/bin/cat'})
    container = Container(top)
    segments = int(re.search(r'JAVA_VERSION="(\d+)', open(f'{home}/release').read())[1]) >= 22
    code, out, err = cli('jvms', '--via', container.via, '--format', 'json', helper=GLIBC)
    rows = json.loads(out)['rows'] if code == 0 else []
    check('jvms', [row['main_class'] for row in rows] == ['Held'] and rows[0]['namespace_pid'] == 1, err)
    if segments:
        refused('too little space is told before', r'writes the dump in segments', 'dump', 'Held', '--via', container.via, '-o',
                new_out('heap.hprof'), '--yes', helper=GLIBC)
        container.end()
        container = Container(top, tmpfs='/tmp:size=900m')
        code, _, err = cli('dump', 'Held', '--via', container.via, '-o', new_out('heap.hprof'), '--yes', '--no-overview', helper=GLIBC)
        check('with space it works', code == 0, err)
        time.sleep(0.3)
        check('nothing left', not container.left(), str(container.left()))
        refused('tty', r'does not start a shell|the input device is not a TTY|ended before', 'jvms', '--via',
                container.via.replace('-i', '-it'), helper=GLIBC)
        container.end()
        return
    dump(container, container.via, helper=GLIBC)
    dump(container, container.via, '--zstd', '--all', helper=GLIBC, name='heap.hprof.zst')
    dump(container, container.via, '--gzip', helper=GLIBC, name='heap.hprof.gz')
    refused('a static helper does not fit', r'needs chmod', 'jvms', '--via', container.via, helper=STATIC)
    refused('-t', r'does not start a shell|ended before', 'jvms', '--via', container.via.replace('-i', '-it'), helper=GLIBC)
    refused('without -i', r'does not start a shell|ended before', 'jvms', '--via', container.via.replace(' -i', ''), helper=GLIBC)

    case('a stand-in for kubectl')
    tools = os.path.join(WORK, 'tools')
    os.makedirs(tools, exist_ok=True)
    with open(f'{tools}/kubectl', 'w') as script:
        script.write(f'#!/bin/sh\n[ "$1 $2" = "exec -i" ] && [ "$4" = -- ] || exit 9\npod=$3; shift 4\n'
                     f'exec {" ".join(PODMAN)} exec -i "$pod" "$@"\n')
    os.chmod(f'{tools}/kubectl', 0o755)
    dump(container, f'kubectl exec -i {container.name} --', helper=GLIBC, path=tools)

    case('no directory is executable')
    noexec = Container(top, tmpfs='/tmp:size=16m,noexec', options=('--read-only-tmpfs=false',))
    refused('refused', r'no usable directory for the helper', 'jvms', '--via', noexec.via, helper=GLIBC)
    check('nothing left', not noexec.left(), str(noexec.left()))
    noexec.end()

    case(f'killed at {KILLS} moments')
    kinds = collections.Counter()
    dead_before = len(container.processes(is_dead=True))
    for at in range(KILLS):
        out = new_out('heap.hprof')
        child = cli('dump', 'Held', '--via', container.via, '-o', out, '--yes', '--no-overview', helper=GLIBC, start=True)
        time.sleep(random.random() * 1.6)
        kind = random.choice(('SIGKILL', 'SIGINT', 'SIGTERM', 'all there by SIGTERM', 'all there by SIGKILL'))
        if kind.startswith('all'):
            for pid in container.processes():
                try:
                    os.kill(pid, getattr(signal, kind.split()[-1]))
                except OSError:
                    pass
        else:
            child.send_signal(getattr(signal, kind))
        child.communicate()
        is_whole = child.returncode == 0
        kinds[f'{kind}, {"complete" if is_whole else "interrupted"}'] += 1
        # It may be killed when the file has its name already.
        if os.path.exists(out) and not healthy(out)[0] or is_whole and not os.path.exists(out):
            check(f'{kind}: a file only if complete', False, f'{child.returncode}')
        # The guard, the shell and `podman exec` take a moment.
        for _ in range(50):
            if not container.left() and not container.processes():
                break
            time.sleep(0.1)
        left = container.left()
        # The helper's file stays, without contents, if the place has no `rm`, as here, and the helper was not yet started.
        empty = [name for name in left if '.hprof-cli-helper' in name]
        for name in empty:
            size = os.path.getsize(f'/proc/{container.pid}/root/{name}')
            kinds['empty file of a helper left' if size == 0 else 'part of a helper left'] += 1
            os.remove(f'/proc/{container.pid}/root/{name}')
        left = [name for name in left if name not in empty]
        if left and kind == 'all there by SIGKILL':
            # The guard was killed, too.
            kinds[f'left, {kind}'] += 1
            for name in left:
                path = f'/proc/{container.pid}/root/{name}'
                shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
        elif left:
            check(f'{kind}: nothing left', False, str(left))
        dead = container.processes(is_dead=True)
        if len(dead) > dead_before:
            kinds[f'{kind}: zombie'] += len(dead) - dead_before
            dead_before = len(dead)
        if container.processes() or not container.lives():
            check(f'{kind}: no process left, the JVM goes on', False, str(container.processes()))
    print(f'      {dict(kinds)}', flush=True)
    check('the JVM still gives a dump', dump(container, container.via, helper=GLIBC) is not None)

    case('a connection that stalls: the JVM goes on after half a minute')
    child = cli('dump', 'Held', '--via', container.via, '-o', new_out('heap.hprof'), '--yes', '--no-overview', helper=GLIBC, start=True)
    while not os.path.isdir(f'/proc/{container.pid}/root/tmp') or not any(
            name.startswith('.hprof-cli-dump') for name in os.listdir(f'/proc/{container.pid}/root/tmp')):
        time.sleep(0.005)
    child.send_signal(signal.SIGSTOP)
    begun = time.time()
    while container.left() and time.time() - begun < 90:
        time.sleep(0.1)
    stalled = time.time() - begun
    check('nothing left, no process left', not container.left() and not container.processes() and stalled < 60, str(container.left()))
    print(f'      removed after {stalled:.0f} s', flush=True)
    child.send_signal(signal.SIGCONT)
    _, err = child.communicate()
    check('said', child.returncode == 2 or stalled < 5, f'{child.returncode} {err}')
    print(f'      {err.decode().strip().splitlines()[-1]}', flush=True)
    check('the JVM still gives a dump', dump(container, container.via, helper=GLIBC) is not None)

    case('a root without any tool: from the host, by its process ID')
    bare = Container(root('bare', home, {}))
    refused('no sh there', r'ended before', 'jvms', '--via', bare.via, helper=STATIC)
    out = new_out('heap.hprof')
    code, _, err = cli('dump', bare.pid, '-o', out, '--yes', '--no-overview')
    check('dumped', code == 0 and healthy(out)[0], err)
    check('nothing left', not bare.left(), str(bare.left()))
    print(f'      {err.strip().splitlines()[-1]}')
    shutil.copy(STATIC, f'{WORK}/bare/bin/hprof-helper')
    out = new_out('heap.hprof')
    code, _, err = cli('dump', 'Held', '--via', bare.via, '--via-program', '/bin/hprof-helper', '-o', out, '--yes', '--no-overview')
    check('--via-program', code == 0 and healthy(out)[0], err)
    bare.end()
    container.end()

    case('busybox: chmod and rm, a static helper')
    box = Container(root('box', home, dict.fromkeys(('sh', 'cat', 'chmod', 'rm', 'uname'), '/bin/busybox')))
    dump(box, box.via, helper=STATIC)
    box.end()


def secure_shell(home):
    case('ssh to this machine')
    top = os.path.join(WORK, 'ssh')
    os.makedirs(top)
    os.makedirs('/run/sshd', exist_ok=True)
    for name in ('host', 'user'):
        subprocess.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', f'{top}/{name}'], check=True)
    shutil.copy(f'{top}/user.pub', f'{top}/authorized')
    os.chmod(top, 0o700)
    config = f'Port 2222\nListenAddress 127.0.0.1\nHostKey {top}/host\nAuthorizedKeysFile {top}/authorized\nStrictModes no\n' \
             f'PermitRootLogin yes\nUsePAM no\nPidFile none\n'
    with open(f'{top}/config', 'w') as file:
        file.write(config)
    daemon = subprocess.Popen(['/usr/sbin/sshd', '-D', '-f', f'{top}/config', '-E', f'{top}/log'])
    classes = os.path.join(WORK, 'classes')
    subprocess.run(['javac', '--release', '11', '-d', classes, f'{HERE}/Held.java'], check=True, capture_output=True)
    java = subprocess.Popen([f'{home}/bin/java', '-Xmx512m', '-cp', classes, 'Held', '100'], stdout=subprocess.PIPE, env={})
    java.stdout.readline()
    helpers = lambda: {name for name in os.listdir('/tmp') if name.startswith('.hprof-cli-helper')}
    before = helpers()
    try:
        via = f'ssh -p 2222 -i {top}/user -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR root@127.0.0.1'
        for options in ((), ('--zstd',)):
            out = new_out('heap.hprof')
            code, _, err = cli('dump', java.pid, '--via', via, '-o', out, '--yes', '--no-overview', *options, helper=STATIC)
            check(f'dumped {" ".join(options)}', code == 0 and healthy(out)[0], err)
            print(f'      {err.strip().splitlines()[-1]}', flush=True)
        refused('another host', r'ended before', 'jvms', '--via', via.replace('127.0.0.1', '127.0.0.2'), helper=STATIC)
        left = helpers() - before
        check('nothing left', not left, str(left))
    finally:
        java.kill()
        daemon.kill()


try:
    for home in HOMES:
        print('== ' + open(f'{home}/release').read().split('JAVA_VERSION="')[1].split('"')[0], flush=True)
        few(home)
        secure_shell(home)
        for name in ('few', 'bare', 'box', 'ssh'):
            shutil.rmtree(f'{WORK}/{name}', ignore_errors=True)
finally:
    for name in started:
        subprocess.run([*PODMAN, 'rm', '-f', name], capture_output=True)
    shutil.rmtree(WORK, ignore_errors=True)
print(f'{len(failed)} failed: {[name for name, _ in failed]}')
sys.exit(bool(failed))
