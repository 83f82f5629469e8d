#!/usr/bin/env bash
# clang-tidy on the source files that changed since TOKENSTONE_TIDY_BASE (a commit; the state of a day ago unless given).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
base=${TOKENSTONE_TIDY_BASE:-$(git rev-list -1 --before='24 hours ago' HEAD)}
if [ -n "$base" ]; then
  files=$(git diff --name-only --diff-filter=d "$base" -- 'src/*.cc')
else
  files=$(git ls-files 'src/*.cc')
fi
[ -n "$files" ] || { echo "nothing changed"; exit 0; }
[ -f build/release/compile_commands.json ] || cmake --preset release >/dev/null
# Kernel files are intrinsics of one instruction set each, tests are judged by whether they fail: both are left out.
printf '%s\n' $files | grep -v -e '^src/kernels/' -e '_test\.cc$' | xargs -r -P "$(nproc)" -n 4 clang-tidy-19 -p build/release --quiet
