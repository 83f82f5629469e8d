#!/usr/bin/env bash
# From a clean clone to an answer: installs what is missing, builds, starts the embedded engine, puts a realistic mixed load on
# it over HTTP and prints how it did. Nothing outside this folder is changed but missing packages.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

requests=${TOKENSTONE_REQUESTS:-1200}
model=${TOKENSTONE_MODEL:-tiny-15m}
workload=(--workload mixed --prompt-token-ids)

say() { printf '\n== %s\n' "$*"; }

say "1/4 packages"
scripts/install-packages.sh

say "2/4 build (the first time takes a few minutes; later nothing is left to do)"
[ -f build/release/build.ninja ] || cmake --preset release >/dev/null
cmake --build --preset release --target tokenstone
tokenstone=build/release/tokenstone

say "3/4 embedded engine: $model"
log=$(mktemp)
server=
finish() {
  [ -n "$server" ] && kill -TERM "$server" 2>/dev/null && wait "$server" 2>/dev/null || true
  rm -f "$log"
}
trap finish EXIT
"$tokenstone" serve "$model" --port 0 >"$log" 2>&1 &
server=$!
url=
for _ in $(seq 600); do
  url=$(sed -n 's/.*listening on \(http:[^ ]*\).*/\1/p' "$log" | head -n 1)
  [ -n "$url" ] && break
  kill -0 "$server" 2>/dev/null || { cat "$log" >&2; echo "the engine did not start" >&2; exit 4; }
  sleep 0.1
done
[ -n "$url" ] || { cat "$log" >&2; echo "the engine did not say where it listens within a minute" >&2; exit 4; }
cat "$log"

say "4/4 load: short trials find lengths and a rate that this machine can bear"
scale=0.1 rate=
for attempt in 1 2 3; do
  trial=$("$tokenstone" bench serve --base-url "$url" "${workload[@]}" --scale "$scale" --num-prompts 60 --max-concurrency 16 \
    --seed "$attempt" --no-run-dir --json - | sed -n 's/^ *"request_throughput": *\([0-9.]*\).*/\1/p' | head -n 1)
  [ -n "$trial" ] || { echo "the trial gave no throughput" >&2; exit 4; }
  # 65 % of what the trial bore leaves room for the bursts of a Poisson process.
  rate=$(awk -v t="$trial" 'BEGIN { r = 0.65 * t; if (r > 40) r = 40; printf "%.1f", r }')
  printf 'lengths x %s: bore %.1f req/s, so %s req/s will be offered\n' "$scale" "$trial" "$rate"
  # Above 65 s for the measured part the prompts are shortened instead of making people wait.
  awk -v n="$requests" -v r="$rate" 'BEGIN { exit !(n / r > 65) }' || break
  [ "$attempt" = 3 ] || scale=$(awk -v s="$scale" -v n="$requests" -v r="$rate" 'BEGIN { f = 55 * r / n; if (f < 0.3) f = 0.3; printf "%.3f", s * f }')
done
set +e
"$tokenstone" bench serve --base-url "$url" "${workload[@]}" --scale "$scale" --num-prompts "$requests" --request-rate "$rate" --seed 2
code=$?
set -e
exit $code
