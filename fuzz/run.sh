#!/usr/bin/env bash
# Runs the fuzz targets, as many at once as there are processors, the others in turn. It can be interrupted and started again:
# corpora, finds and sums are kept. At the end corpora are minimized, and a table says what ran and what was found.
#
# usage: fuzz/run.sh HOURS [TARGET...]   HOURS of time, for example 0.5 or 72; without TARGET all of them
#        fuzz/run.sh table               the table of what ran until now
#        fuzz/run.sh keep [TARGET...]    takes over into tests/corpus what reaches code that nothing there reaches
#
# Needs cargo-fuzz (cargo install cargo-fuzz), and nightly Rust or RUSTC_BOOTSTRAP=1.
#
# FUZZ_DIR   where corpora, finds and logs are [fuzz/work]
# FUZZ_JOBS  targets at once [processors]
# FUZZ_SLICE seconds of a target's turn [600]
# FUZZ_NICE  niceness of targets [19]
#
# Exit code: 0 no finds, 1 finds (FUZZ_DIR/finds), 2 it could not run.
set -euo pipefail

TARGETS=(reader index text flight oql pages sql agent listen)
# Of one input: seconds, MiB of the process, MiB of one allocation.
TIME=25 RSS_MIB=2048 MALLOC_MIB=1024
# Of one target: MiB of its corpus, inputs that broke it. Then it runs no more.
CORPUS_MIB=512 MAX_FINDS=20
# Of one target, what `keep` adds at most: inputs, bytes of all, bytes of one.
KEEP=200 KEEP_BYTES=200000 KEEP_ONE=20000

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
dir=${FUZZ_DIR:-$root/fuzz/work}
jobs=${FUZZ_JOBS:-$(nproc)}
slice=${FUZZ_SLICE:-600}
niceness=${FUZZ_NICE:-19}

die() { printf 'fuzz/run.sh: %s\n' "$1" >&2; exit 2; }
usage() { sed -n '2,/^# Exit/ { s/^# \{0,1\}//; p }' "${BASH_SOURCE[0]}" >&2; exit 2; }
number() { [[ $1 =~ ^[0-9]+$ && $1 -gt 0 ]] || die "$2 is a number above 0, not '$1'"; }

# Inputs that a target starts from: its own, and those of targets that read the same.
seeds() {
  case $1 in
    pages) echo "$root/tests/corpus/pages" "$root/tests/corpus/reader" ;;
    listen) echo "$root/tests/corpus/listen" "$root/tests/corpus/reader" "$root/tests/corpus/text" ;;
    *) echo "$root/tests/corpus/$1" ;;
  esac
}

max_len() { case $1 in oql | sql | agent) echo 20000 ;; *) echo 100000 ;; esac; }

build() {
  command -v cargo-fuzz >/dev/null || die 'cargo-fuzz not found: cargo install cargo-fuzz'
  local cargo=(cargo)
  if [[ -z ${RUSTC_BOOTSTRAP:-} ]] && ! rustc --version | grep -q nightly; then
    rustc +nightly --version >/dev/null 2>&1 || die 'nightly Rust not found: rustup toolchain install nightly, or set RUSTC_BOOTSTRAP=1'
    cargo=(cargo +nightly)
  fi
  local target=${CARGO_TARGET_DIR:-$root/fuzz/target} host
  host=$(rustc -vV | sed -n 's/^host: //p')
  # Without a sanitizer: all but a few files have no unsafe code, and it is twice as fast.
  (cd "$root" && "${cargo[@]}" fuzz build --sanitizer none) || die 'the targets do not compile'
  mkdir -p "$dir/bin"
  # Copies: whoever compiles anew meanwhile does not change what runs.
  for name in "${TARGETS[@]}"; do cp -f "$target/$host/release/$name" "$dir/bin/"; done
}

# Sums of a target, kept from one run to the next: seconds, runs, edges (with the first corpus, now), features.
load() {
  seconds=0 runs=0 first=0 edges=0 features=0 of=
  # shellcheck source=/dev/null
  [[ ! -f $dir/sums/$1 ]] || . "$dir/sums/$1"
}
save() {
  printf 'seconds=%s runs=%s first=%s edges=%s features=%s of=%s\n' \
    "$seconds" "$runs" "$first" "$edges" "$features" "$of" >"$dir/sums/$1"
}

finds() { find "$dir/finds/$1" -type f ! -name '*.log' 2>/dev/null | wc -l; }

# Runs a target with these options of libFuzzer and directories, with bounds; what it writes goes to its log.
bounded() {
  local name=$1 code=0
  shift
  # A process that is killed leaves its files.
  local memory=/dev/shm
  [[ -d $memory ]] || memory=${TMPDIR:-/tmp}
  local place
  place=$(mktemp -d "$memory/hprof-cli-fuzz.XXXXXX")
  # Of what libFuzzer cannot see in comparisons.
  local words=$root/fuzz/dictionaries/$name
  if [[ -f $words ]]; then set -- -dict="$words" "$@"; fi
  HPROF_CLI_FUZZ_DIR=$place TMPDIR=$place nice -n "$niceness" "$dir/bin/$name" -max_len="$(max_len "$name")" -timeout="$TIME" \
    -rss_limit_mb="$RSS_MIB" -malloc_limit_mb="$MALLOC_MIB" -close_fd_mask=1 "$@" >"$dir/log/$name" 2>&1 || code=$?
  rm -rf "$place"
  return "$code"
}

# Adds what a log says to the sums.
account() {
  local name=$1 took=$2 log=$dir/log/$1 more start end
  load "$name"
  more=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
  # A process that was killed has no final numbers.
  more=${more:-$(sed -n 's/^#\([0-9]*\).*/\1/p' "$log" | tail -n 1)}
  start=$(sed -n 's/^#.*INITED cov: \([0-9]*\).*/\1/p' "$log" | head -n 1)
  end=$(sed -n 's/^#.* cov: \([0-9]*\) ft: \([0-9]*\).*/\1 \2/p' "$log" | tail -n 1)
  local now
  now=$(cksum <"$dir/bin/$name" | cut -d ' ' -f 1)
  # Edges of another build are others.
  if [[ $of != "$now" ]]; then first=0 edges=0 features=0 of=$now; fi
  seconds=$((seconds + took)) runs=$((runs + ${more:-0}))
  if ((first == 0)); then first=${start:-0}; fi
  # shellcheck disable=SC2086
  set -- ${end:-0 0}
  if (($1 > edges)); then edges=$1; fi
  if (($2 > features)); then features=$2; fi
  save "$name"
}

# One turn of a target.
turn() {
  local name=$1 until=$((SECONDS + $2)) begin code
  while ((SECONDS < until)) && (($(finds "$name") < MAX_FINDS)); do
    begin=$SECONDS code=0
    # shellcheck disable=SC2046
    bounded "$name" -max_total_time=$((until - SECONDS)) -print_final_stats=1 -artifact_prefix="$dir/finds/$name/" \
      "$dir/corpus/$name" $(seeds "$name") || code=$?
    account "$name" $((SECONDS - begin))
    # The second is what libFuzzer returns after a signal.
    ((code != 0 && code != 72)) || break
    local find
    find=$(sed -n 's/.*Test unit written to //p' "$dir/log/$name" | tail -n 1)
    if [[ -z $find ]]; then
      printf '%s: ended with code %d and without a find: %s\n' "$name" "$code" "$dir/log/$name" >&2
      break
    fi
    # An input that the target starts from breaks it: it would do so again.
    local is_old=
    [[ ! -f $find.log ]] || is_old=1
    cp "$dir/log/$name" "$find.log"
    printf '%s: find: %s\n' "$name" "$find" >&2
    [[ -z $is_old ]] || break
  done
  # Inputs are added as long as there is anything new; what they take is bounded.
  if (($(du -sm "$dir/corpus/$name" | cut -f 1) > CORPUS_MIB)); then minimize "$name"; fi
}

# Replaces a corpus by the part of it that reaches the same.
minimize() {
  local name=$1 corpus=$dir/corpus/$1
  rm -rf "$corpus.min" && mkdir "$corpus.min"
  # shellcheck disable=SC2046
  if bounded "$name" -merge=1 "$corpus.min" "$corpus" $(seeds "$name"); then
    rm -rf "$corpus" && mv "$corpus.min" "$corpus"
  else
    printf '%s: its corpus could not be minimized: %s\n' "$name" "$dir/log/$name" >&2
    rm -rf "$corpus.min"
  fi
}

table() {
  printf '%-8s %9s %12s %17s %9s %14s %6s\n' target minutes runs 'edges first, now' features 'corpus, KiB' finds
  local name all=0
  for name in "$@"; do
    load "$name"
    printf '%-8s %9s %12s %8s %8s %9s %6s %7s %6s\n' "$name" "$(awk "BEGIN { printf \"%.1f\", $seconds / 60 }")" "$runs" "$first" \
      "$edges" "$features" "$(find "$dir/corpus/$name" -type f | wc -l)" \
      "$(find "$dir/corpus/$name" -type f -printf '%s\n' | awk '{ sum += $1 } END { printf "%d", sum / 1024 }')" "$(finds "$name")"
    all=$((all + $(finds "$name")))
  done
  ((all == 0)) || { printf '%d finds: %s\n' "$all" "$dir/finds"; return 1; }
}

# Adds to tests/corpus what reaches edges that nothing there reaches: of all sizes, if it is more than may be added.
keep() {
  local name=$1 small added file size sum=0 count=0
  small=$(mktemp -d) added=$(mktemp -d)
  find "$dir/corpus/$name" -type f -size -"$KEEP_ONE"c -exec cp -t "$small" {} +
  # Counters off: how often something is reached would add many more.
  # shellcheck disable=SC2046
  cp -r $(printf '%s/. ' $(seeds "$name")) "$added"
  (cd "$added" && find . -type f | sed 's/^/ /') >"$small.before"
  bounded "$name" -merge=1 -use_counters=0 "$added" "$small" || die "$name: $dir/log/$name"
  (cd "$added" && find . -type f -printf '%s %p\n') | grep -v -F -f "$small.before" | sort -n >"$small.new" || true
  while read -r size file; do
    ((sum + size <= KEEP_BYTES)) || break
    sum=$((sum + size)) count=$((count + 1))
    cp "$added/$file" "$root/tests/corpus/$name/$(basename "$file" | cut -c 1-12)"
  done < <(awk -v step=$((($(wc -l <"$small.new") + KEEP - 1) / KEEP)) 'step < 2 || NR % step == 1' "$small.new")
  printf '%s: %d of %d inputs added, %d bytes\n' "$name" "$count" "$(wc -l <"$small.new")" "$sum"
  rm -rf "$small" "$small.before" "$small.new" "$added"
}

main() {
  ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)) || die 'bash 5.1 or later is needed'
  (($# > 0)) || usage
  number "$jobs" FUZZ_JOBS
  number "$slice" FUZZ_SLICE
  command=$1
  shift
  chosen=("$@")
  (($# > 0)) || chosen=("${TARGETS[@]}")
  for name in "${chosen[@]}"; do
    [[ " ${TARGETS[*]} " == *" $name "* ]] || die "there is no target '$name'; there are: ${TARGETS[*]}"
    mkdir -p "$dir"/{corpus,finds}/"$name" "$dir"/{log,sums}
  done
  if [[ $command == table ]]; then table "${chosen[@]}" && exit || exit 1; fi
  # One at a time in a directory: two would count each other's runs.
  exec 9>"$dir/lock"
  flock -n 9 || die "$dir is in use by another fuzz/run.sh"
  if [[ $command == keep ]]; then
    for name in "${chosen[@]}"; do [[ -x $dir/bin/$name ]] || die "$name has not run yet"; keep "$name"; done
    exit
  fi
  [[ $command =~ ^[0-9]+(\.[0-9]+)?$ ]] || usage
  total=$(awk "BEGIN { printf \"%d\", $command * 3600 }")
  number "$total" 'HOURS in seconds'
  build
  # All targets get a turn.
  most=$((total * jobs / ${#chosen[@]}))
  slice=$((slice < most ? slice : most > 0 ? most : 1))

  declare -gA running=()
  interrupted=
  stop() { interrupted=1; for pid in "${!running[@]}"; do pkill -TERM -P "$pid" 2>/dev/null || true; done; }
  trap stop INT TERM
  end=$((SECONDS + total)) next=0
  while :; do
    while ((${#running[@]} < jobs && SECONDS < end)) && [[ -z $interrupted ]]; do
      # The next one whose turn it is; none runs twice at once.
      for ((tried = 0; tried < ${#chosen[@]}; tried++)); do
        name=${chosen[next]}
        next=$(((next + 1) % ${#chosen[@]}))
        if [[ " ${running[*]} " != *" $name "* ]] && (($(finds "$name") < MAX_FINDS)); then break; fi
        name=
      done
      [[ -n $name ]] || break
      left=$((end - SECONDS))
      turn "$name" $((slice < left ? slice : left)) 9>&- &
      running[$!]=$name
    done
    ((${#running[@]} > 0)) || break
    # A signal ends the wait, not the turn.
    wait -n "${!running[@]}" || true
    for pid in "${!running[@]}"; do kill -0 "$pid" 2>/dev/null || unset "running[$pid]"; done
  done
  for name in "${chosen[@]}"; do
    [[ -z $interrupted ]] || break
    # In the background: a signal ends the wait.
    minimize "$name" 9>&- &
    running[$!]=$name
    while kill -0 $! 2>/dev/null; do wait $! || true; done
    running=()
  done
  table "${chosen[@]}"
}

# As one command: it can be edited while it runs.
main "$@"; exit
