#!/usr/bin/env bash
# Tries the packages that dist/build.sh wrote to PACKAGES, in bare systems: Debian 11, 12 and 13 (debootstrap, minbase), and
# the image by podman. Prints one line a result; the exit code is 1 if one failed. Needs root. See docs/releasing.md.
#
# The systems are kept below ROOTS for the next run. --java installs a JRE in each, and loads the agent.
# DEBIAN_MIRROR names another mirror than debootstrap's default.
set -euo pipefail
export LC_ALL=C

fail() { printf 'dist/try.sh: %s\n' "$*" >&2; exit 2; }
java=no
[ "${1-}" != --java ] || { java=yes; shift; }
[ $# = 2 ] || fail "usage: dist/try.sh [--java] PACKAGES ROOTS"
packages=$(realpath "$1")
roots=$(realpath -m "$2")
sample=$(realpath "$(dirname "$0")/../samples/jdk/jdk17.hprof.zst")
[ "$(id -u)" = 0 ] || fail "it needs root, for chroot"
command -v debootstrap >/dev/null || fail "debootstrap is missing: apt-get install debootstrap"
tarball=$(ls "$packages"/hprof-cli-*.tar.gz)
deb=$(ls "$packages"/*.deb)
image=$(ls "$packages"/*.oci.tar)
mkdir -p "$roots"
work=$(mktemp -d)

mounted=
cleanup() {
  [ -z "$mounted" ] || umount "$mounted"
  rm -rf "$work"
}
trap cleanup EXIT

failed=0
# SYSTEM WHAT COMMAND...: runs it; the first line of its output is the result.
try() {
  local system=$1 what=$2 result=ok
  shift 2
  "$@" >"$work/out" 2>&1 || result=FAILED
  printf '%-6s  %-9s %-28s %s\n' "$result" "$system" "$what" "$(grep -m 1 . "$work/out")"
  [ $result = ok ] || { failed=1; sed 's/^/        /' "$work/out"; }
}
# What has to be the same; prints it.
same() { printf '%s\n' "$2"; [ "$1" = "$2" ] || { printf 'expected: %s\n' "$1"; return 1; }; }
static() {
  local said
  said=$(in_root ldd "$1" 2>&1) || true
  printf '%s\n' "$said"
  grep -qE 'statically linked|not a dynamic executable' <<<"$said"
}
loads() { # with the C library of the system
  local said
  said=$(in_root ldd "$1")
  ! grep 'not found' <<<"$said" || return 1
  in_root ldd --version
}
in_root() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"; }
files() { (cd "$root" && ls "$@"); }
helper_answers() {
  local said
  said=$(in_root hprof-cli dump 999999999 --via 'env A=1' 2>&1) || true
  printf '%s\n' "$said"
  grep -q 'there is no process 999999999' <<<"$said"
}
agent_path() { same "$1" "$(in_root "$2" agent --path)"; }
recorded() { # LIBRARY: a JVM with the agent writes a report
  in_root sh -c "cd /tmp && rm -f r.txt && java -agentpath:$1=heap=sites,file=/tmp/r.txt -version" || return 1
  in_root hprof-cli sites /tmp/r.txt --top 1 >"$work/sites" || return 1
  in_root java -version 2>&1 | head -n 1
}

for system in bullseye bookworm trixie; do
  root=$roots/$system
  if [ ! -x "$root/usr/bin/dpkg" ]; then
    debootstrap --variant=minbase "$system" "$root" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} >"$work/debootstrap" ||
      { tail "$work/debootstrap" >&2; fail "debootstrap of $system failed"; }
  fi
  rm -rf "$root"/opt/hprof-cli "$root"/tmp/*
  mkdir -p "$root/opt/hprof-cli"
  cp "$sample" "$root/tmp/heap.hprof.zst"
  mount -t proc proc "$root/proc"
  mounted=$root/proc

  tar -xzf "$tarball" -C "$root/opt/hprof-cli" --strip-components=1
  at=/opt/hprof-cli
  try $system "tarball: static" static $at/bin/hprof-cli
  try $system "tarball: overview" in_root $at/bin/hprof-cli overview --quiet /tmp/heap.hprof.zst
  try $system "tarball: agent" agent_path $at/lib/hprof-cli/libhprof_agent.so $at/bin/hprof-cli
  try $system "tarball: library loads" loads $at/lib/hprof-cli/libhprof_agent.so

  cp "$deb" "$root/tmp/hprof-cli.deb"
  try $system ".deb: install" in_root dpkg -i /tmp/hprof-cli.deb
  try $system ".deb: version" in_root hprof-cli --version --verbose
  try $system ".deb: overview" in_root hprof-cli overview --quiet /tmp/heap.hprof.zst
  try $system ".deb: helper" helper_answers
  try $system ".deb: agent" agent_path /usr/lib/hprof-cli/libhprof_agent.so hprof-cli
  try $system ".deb: man pages" files usr/share/man/man1/hprof-cli.1.gz usr/share/man/man1/hprof-cli-histo.1.gz
  try $system ".deb: completions, licences" files usr/share/bash-completion/completions/hprof-cli \
    usr/share/zsh/vendor-completions/_hprof-cli usr/share/fish/vendor_completions.d/hprof-cli.fish \
    usr/share/doc/hprof-cli/copyright usr/share/doc/hprof-cli/THIRD-PARTY-LICENSES.txt
  if [ $java = yes ]; then
    in_root sh -c 'command -v java' >/dev/null || {
      cp /etc/resolv.conf "$root/etc/resolv.conf"
      in_root sh -c 'apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        default-jre-headless' >"$work/apt" 2>&1 || tail -n 3 "$work/apt" >&2
    }
    try $system "agent in a JVM" recorded /usr/lib/hprof-cli/libhprof_agent.so
  fi
  try $system ".deb: purge" in_root dpkg --purge hprof-cli
  umount "$mounted"
  mounted=
done

# The image, in storage of its own.
if command -v podman >/dev/null; then
  storage=(--root "$work/storage" --runroot "$work/run" --storage-driver vfs --cgroup-manager cgroupfs)
  # The crun of Debian 12 refuses systems with both versions of control groups.
  ! command -v runc >/dev/null || storage+=(--runtime runc)
  name=$(podman "${storage[@]}" load -q -i "$image" | sed 's/.*: //')
  run() {
    podman "${storage[@]}" run --rm --network none --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 \
      -v "$sample:/heap.hprof.zst:ro" "$name" "$@"
  }
  try podman "image: version" run --version --verbose
  try podman "image: overview" run overview --quiet /heap.hprof.zst
else
  printf 'NOT RUN podman    image: apt-get install podman\n'
fi
exit $failed
