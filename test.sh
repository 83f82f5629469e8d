#!/usr/bin/env bash
# Builds and runs all tests.
#   ./test.sh                   the release build
#   ./test.sh --preset asan     with AddressSanitizer and UndefinedBehaviorSanitizer (or tsan, dev)
#   ./test.sh --json FILE       also writes the project's checks (docs/checks.md) to FILE
#   ./test.sh --only PATTERN    only the test programs whose name matches
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

preset=release json= only=.
while [ $# -gt 0 ]; do
  case $1 in
    --preset) preset=${2:?--preset needs a name}; shift 2 ;;
    --json) json=${2:?--json needs a file}; shift 2 ;;
    --only) only=${2:?--only needs a pattern}; shift 2 ;;
    *) echo "unknown argument $1; see the head of test.sh" >&2; exit 1 ;;
  esac
done

scripts/install-packages.sh
[ -f "build/$preset/build.ninja" ] || cmake --preset "$preset" >/dev/null
cmake --build --preset "$preset"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TOKENSTONE_CHECKS_FILE=$work/checks.jsonl
export TOKENSTONE_BINARY=$PWD/build/$preset/tokenstone
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=0} UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
: >"$TOKENSTONE_CHECKS_FILE"

passed=0 failed=0 skipped=0
for program in $(find "build/$preset/src" "build/$preset/tests" -type f -name '*_tests' -perm -u+x | sort); do
  name=$(basename "$program")
  [[ $name =~ $only ]] || continue
  started=$(date +%s)
  status=0
  "$program" --gtest_brief=1 --gtest_output="json:$work/$name.json" >"$work/$name.log" 2>&1 || status=$?
  counts=$(sed -n 's/^  "\(tests\|failures\|disabled\|errors\)": \([0-9]*\),*$/\1=\2/p' "$work/$name.json" 2>/dev/null | tr '\n' ' ' || true)
  tests=$(sed -n 's/.*tests=\([0-9]*\).*/\1/p' <<<"$counts"); failures=$(sed -n 's/.*failures=\([0-9]*\).*/\1/p' <<<"$counts")
  skips=$(grep -c '"result": "SKIPPED"' "$work/$name.json" 2>/dev/null || true)
  tests=${tests:-0} failures=${failures:-0} skips=${skips:-0}
  # A program that crashed wrote no result: that is one failure more than it could say.
  if [ "$status" -ne 0 ] && [ "$failures" -eq 0 ]; then failures=1; tests=$((tests + 1)); fi
  passed=$((passed + tests - failures - skips)) failed=$((failed + failures)) skipped=$((skipped + skips))
  printf '%-28s %5d passed %3d failed %3d skipped %4d s\n' "$name" $((tests - failures - skips)) "$failures" "$skips" $(($(date +%s) - started))
  if [ "$failures" -gt 0 ]; then cat "$work/$name.log"; fi
  grep -h -A1 ': Skipped$' "$work/$name.log" | grep -v -e ': Skipped$' -e '^--$' | sort | uniq -c | sed 's/^/    skipped:/' || true
done

if [ -n "$json" ]; then
  { printf '{"checks": [\n'; paste -sd, "$TOKENSTONE_CHECKS_FILE" | sed 's/},{/},\n{/g'; printf ']}\n'; } >"$json"
fi
bad_checks=$(grep '"pass":false' "$TOKENSTONE_CHECKS_FILE" | grep -c '"skipped":null' || true)
echo "$skipped skipped, $bad_checks of $(wc -l <"$TOKENSTONE_CHECKS_FILE") checks missed"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ] || exit 1
[ "$bad_checks" -eq 0 ] || exit 2
