#!/usr/bin/env bash
# Fails the job if the result of the run is to fail it.
# shellcheck source=action/lib.sh
. "$(dirname "$0")/lib.sh"

[ "$INPUT_FAIL_ON" != never ] || exit 0
[ "$EXIT_CODE" = 0 ] || exit "$EXIT_CODE"
if [ "$INPUT_FAIL_ON" = incomplete ] && [ "${INCOMPLETE:-0}" != 0 ]; then
    fail "$INCOMPLETE were not tested; the report says why"
fi
