#!/bin/sh
# Does `hprof-cli waste` promise what the JVM then saves? Runs Savings once wasteful and once for each kind with just that kind mended.
# The promise is the kind's wasted_bytes in the wasteful dump less those in the mended one; the proof is the difference of the totals of
# the JVM's own GC.class_histogram. Exit code 1 if one is off by more than 1 percent.
#
#   prove.sh [KIND...]          JDK: $JAVA_HOME or PATH. Program: $HPROF_CLI or hprof-cli; CHECK=1 asks check.py instead.
#   JAVA_OPTIONS, CHECK_OPTIONS are passed on: compact object headers are JAVA_OPTIONS=-XX:+UseCompactObjectHeaders and, for
#   check.py, CHECK_OPTIONS="--header 8 --array-base 12".
# shellcheck disable=SC2086     # options are words
set -eu
here=$(cd "$(dirname "$0")" && pwd)
bin=${JAVA_HOME:+$JAVA_HOME/bin/}
kinds=${*:-duplicate_strings duplicate_arrays constant_arrays unused_array_ends empty_collections single_element_collections
    sparse_collections colliding_maps linked_lists zero_length_arrays empty_arrays single_element_arrays boxed_numbers constant_fields
    finalizable duplicate_classes unreachable}
dir=$(mktemp -d)
pid=
trap 'test -z "$pid" || kill "$pid" 2>/dev/null; rm -rf "$dir"' EXIT
trap 'exit 2' INT TERM

# snapshot NAME [-all]: the JVM's totals and the report. Without -all both collect garbage first, so they see the same objects.
snapshot() {
    "${bin}jcmd" "$pid" GC.class_histogram ${2-} >"$dir/$1.histogram"
    "${bin}jcmd" "$pid" GC.heap_dump ${2-} "$dir/dump.hprof" >/dev/null
    if test -n "${CHECK-}"; then python3 "$here/check.py" "$dir/dump.hprof" ${CHECK_OPTIONS-} >"$dir/$1.json"
    else "${HPROF_CLI:-hprof-cli}" waste "$dir/dump.hprof" --format json >"$dir/$1.json"
    fi
    rm -rf "$dir"/dump.hprof*
}

"${bin}javac" -nowarn -d "$dir/classes" "$here/Savings.java" 2>"$dir/javac.log" || { cat "$dir/javac.log" >&2; exit 2; }

for mode in wasteful $kinds; do
    test $mode != unreachable || continue       # needs no run of its own, see below
    "${bin}java" -XX:+UseSerialGC -Xmx256m ${JAVA_OPTIONS-} -cp "$dir/classes" Savings $mode >"$dir/$mode.out" 2>&1 &
    pid=$!
    until grep -qs READY "$dir/$mode.out"; do
        kill -0 "$pid" 2>/dev/null || { cat "$dir/$mode.out" >&2; exit 2; }
        sleep 0.2
    done
    # What the garbage collection of the second snapshot frees is what the first should have called unreachable.
    case $mode/$kinds in wasteful/*unreachable*) snapshot unreachable -all ;; esac
    snapshot $mode
    kill "$pid"; wait "$pid" || true; pid=
done

python3 - "$dir" $kinds <<'END'
import json, re, sys
dir, kinds = sys.argv[1], sys.argv[2:]

def waste(mode, kind):
    with open(f"{dir}/{mode}.json") as f: return next((r["wasted_bytes"] for r in json.load(f)["rows"] if r["kind"] == kind), 0)

def total(mode):
    with open(f"{dir}/{mode}.histogram") as f: return int(re.search(r"^Total\s+\d+\s+(\d+)", f.read(), re.M)[1])

failed = 0
print(f"{'kind':28}{'promised':>12}{'JVM saves':>12}{'percent':>10}")
for kind in kinds:
    before, after = ("unreachable", "wasteful") if kind == "unreachable" else ("wasteful", kind)
    promised, saved = waste(before, kind) - waste(after, kind), total(before) - total(after)
    percent = 100 * promised / saved if saved else 0
    bad = abs(percent - 100) > 1
    failed |= bad
    print(f"{kind:28}{promised:12,}{saved:12,}{percent:10.2f}{'  off by more than 1 percent' if bad else ''}")
sys.exit(failed)
END
