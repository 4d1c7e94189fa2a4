#!/usr/bin/env bash
# What the agent costs: wall time and peak memory of an allocating and a computing program (benches/agent/), as ratios.
#
# usage: benches/agent.sh LIBRARY JDK-HOME... [--runs N] [--only Alloc|Compute] [--part P]
#
# Each run with the agent, or with JFR, comes right after one without: the ratio is the median of these pairs, with the least and
# the highest in parentheses. The pair "none" is the noise. Memory is VmHWM, read every 50 ms.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,/^set/{/^#/p}' "${BASH_SOURCE[0]}" >&2; exit 2; }
exec python3 "$(dirname "${BASH_SOURCE[0]}")/agent.py" "$@"
