#!/bin/sh
# Checks the pages of `hprof-cli serve` with the tools of others: accessibility by axe-core in Chromium, HTML by the Nu
# HTML checker.
#
#   check.sh [HPROF_CLI]      default: hprof-cli on the PATH
#
# Serves three samples, follows the links to one page of each kind, and prints what is wrong with them: the rule or message,
# the element, and on how many pages. axe sees each page 1400 and 390 pixels wide, and in dark colors, after the script
# has run. The checker sees the HTML that the server sends, and what the script made of it. Exit code 0 if nothing is wrong,
# 1 if something is, 2 if it cannot be checked.
#
# Needs chromium and chromedriver (Debian: apt-get install chromium chromium-driver), Node.js 20 with npm, Java 11 and zstd.
# axe-core and vnu-jar are installed from npm into a temporary directory, which is removed at the end; with MODULES=DIR
# they are kept there and used again. With KEEP=DIR the pages that the checker saw are kept.
set -eu
case ${1-} in -*) sed -n '2,15s/^# \{0,1\}//p' "$0" >&2; exit 2 ;; esac
hprof=$(command -v "${1:-hprof-cli}") || { echo "check.sh: no ${1:-hprof-cli}: cargo build, then name it" >&2; exit 2; }
case $hprof in /*) ;; *) hprof=$PWD/$hprof ;; esac
for tool in chromium chromedriver node npm java zstd; do
    command -v $tool >/dev/null || { echo "check.sh: $tool is missing" >&2; exit 2; }
done
here=$(CDPATH='' cd "$(dirname "$0")" && pwd)
samples=$here/../../samples
dir=$(mktemp -d)
server=
trap 'if [ -n "$server" ]; then kill "$server"; wait "$server" || :; fi 2>/dev/null; rm -rf "$dir"' EXIT
trap 'exit 2' INT TERM HUP

modules=${MODULES:-$dir/modules}
if ! [ -d "$modules/node_modules/axe-core" ] || ! [ -d "$modules/node_modules/vnu-jar" ]; then
    mkdir -p "$modules"
    # Without scripts: vnu-jar's downloads a Java that is here already.
    npm install --prefix "$modules" --ignore-scripts --no-save --no-fund --no-audit --silent axe-core@4 vnu-jar || exit 2
fi

for sample in leaks/s1 agent/all leaks/s7-t1; do
    zstd -dq "$samples/$sample.hprof.zst" -o "$dir/$(basename $sample).hprof"
done
cp "$samples/agent/busy-cpu-samples.txt" "$dir"
mkdir "$dir/pages"
(cd "$dir" && exec "$hprof" serve s1.hprof all.hprof busy-cpu-samples.txt --baseline s7-t1.hprof --port 0) \
    >"$dir/url" 2>"$dir/stderr" &
server=$!
tries=0
until [ -s "$dir/url" ]; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] && kill -0 $server 2>/dev/null || { cat "$dir/stderr" >&2; exit 2; }
    sleep 0.1
done

code=0
node "$here/check.mjs" "$(cat "$dir/url")" "$modules/node_modules" "$dir" || code=$?
if [ -n "${KEEP-}" ]; then mkdir -p "$KEEP" && cp "$dir"/pages/* "$KEEP"; fi
exit $code
