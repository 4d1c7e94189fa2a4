#!/usr/bin/env bash
# Run a Java program that prints READY, dump its heap, and leave beside OUT.hprof what the JVM itself says of the same heap.
#
# usage: heap-dump.sh OUT "DUMP OPTIONS" PROGRAM.java "ARGUMENTS" [JVM options...]
#
#   heap-dump.sh big ""     java/BigHeap.java 20 -Xmx6g                           0.9 GB, 19 million objects
#   heap-dump.sh zoo "-all" java/HeapZoo.java 1 -Xmx256m -XX:-UseCompressedOops   unreachable objects included
#   heap-dump.sh gz  "-gz=1" java/Layouts.java "" -Xmx256m                        OUT.hprof is gzip
#
# gives OUT.hprof
#       OUT.class_histogram.txt   jcmd PID GC.class_histogram: the truth for instance counts and shallow sizes
#       OUT.threads.txt           jcmd PID Thread.print
#       OUT.flags.txt             jcmd PID VM.flags
#
# environment: JAVA_HOME  the JDK (javac, java, jcmd); those on PATH without it
#              JRE        another runtime to run the program in, where that one has neither javac nor jcmd
#              RELEASE    javac --release, for a JRE older than the JDK
set -euo pipefail
if [ $# -lt 4 ]; then sed -n '2,/^set/{/^#/p}' "$0" >&2; exit 2; fi
out=$1; dump_options=$2; source=$3; arguments=$4; shift 4
bin=${JAVA_HOME:+$JAVA_HOME/bin/}
java=${JRE:+$JRE/bin/java}; java=${java:-${bin}java}
case $out in /*) ;; *) out=$PWD/$out ;; esac
pid=
classes=$(mktemp -d)
log=$(mktemp)
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || true; rm -rf "$classes" "$log"' EXIT

"${bin}javac" -nowarn ${RELEASE:+--release "$RELEASE"} -d "$classes" "$source" 2>"$log" || { cat "$log" >&2; exit 1; }
# An empty environment: a heap dump holds the environment of its process.
# shellcheck disable=SC2086 # the arguments are words
env -i PATH="$PATH" LANG=C.UTF-8 "$java" "$@" -cp "$classes" "$(basename "$source" .java)" $arguments >"$log" 2>&1 &
pid=$!
until grep -q READY "$log"; do
  kill -0 "$pid" 2>/dev/null || { cat "$log" >&2; exit 1; }
  sleep 0.2
done
sleep 0.5
rm -f "$out.hprof"
"${bin}jcmd" "$pid" GC.class_histogram >"$out.class_histogram.txt"
# shellcheck disable=SC2086 # the options are words
"${bin}jcmd" "$pid" GC.heap_dump $dump_options "$out.hprof"
"${bin}jcmd" "$pid" Thread.print >"$out.threads.txt"
"${bin}jcmd" "$pid" VM.flags >"$out.flags.txt"
