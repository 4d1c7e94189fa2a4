#!/usr/bin/env bash
# How far hprof-cli is from the least work, on the machine and the dump at hand: whole-process times as ratios.
#
# usage: benches/ratio.sh DUMP [RUNS] [--dominators] [--threads N] [--memory-runs N]
#
# Builds hprof-cli and the bare experiments (benches/limit) with optimisation, runs them in turn on DUMP (uncompressed; 8-byte ids and
# HotSpot segments, which is what the experiments read), and prints times, memory and ratios. How it measures: benches/ratio.py --help.
#   --dominators   also `hprof-cli index`, cold, against the bare dominator tree
#   --threads N    threads of hprof-cli and of the experiments
#
# environment: HPROF_CLI    a hprof-cli to measure instead of building this one
#              HPROF_LIMIT  a folder with `walk` and `dominators` instead of building benches/limit
#              HPROF_SLURP  hprof-slurp, if it is not on PATH; measured when there is one
# A dump to measure with: samples/heap-dump.sh big "" samples/java/BigHeap.java 20 -Xmx6g
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
usage() { sed -n '2,/^set/{/^#/p}' "${BASH_SOURCE[0]}" >&2; exit 2; }

dominators=0
arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage ;;
    --dominators) dominators=1 ;;
    --threads | --memory-runs) [ $# -ge 2 ] || usage; arguments+=("$1" "$2"); shift ;;
    -*) usage ;;
    *) arguments+=("$1") ;;
  esac
  shift
done
[ ${#arguments[@]} -gt 0 ] || usage
command -v python3 >/dev/null || { echo 'ratio.sh: python3 not found' >&2; exit 2; }

# build MANIFEST: builds it, and prints the folder of its binaries.
build() {
  cargo build --release --locked --quiet --manifest-path "$1" >&2
  cargo metadata --format-version 1 --no-deps --locked --manifest-path "$1" |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"] + "/release")'
}

cli=${HPROF_CLI:-}
if [ -z "$cli" ]; then cli=$(build "$here/../Cargo.toml")/hprof-cli; fi
limit=${HPROF_LIMIT:-}
if [ -z "$limit" ]; then limit=$(build "$here/limit/Cargo.toml"); fi
programs=(--cli "$cli" --walk "$limit/walk")
if [ "$dominators" = 1 ]; then programs+=(--dominators "$limit/dominators"); fi
slurp=${HPROF_SLURP:-$(command -v hprof-slurp || true)}
if [ -n "$slurp" ]; then programs+=(--slurp "$slurp"); fi
exec python3 "$here/ratio.py" "${programs[@]}" "${arguments[@]}"
