#!/usr/bin/env bash
# Runs rehearse, and sets the outputs `exit-code` and `folder`. Only wrong inputs fail this step.
# shellcheck source=action/lib.sh
. "$(dirname "$0")/lib.sh"

case $INPUT_COMMAND in
    run | check | diff | fuzz | bench) ;;
    *) fail "\`command\` is \"$INPUT_COMMAND\", but must be run, check, diff, fuzz or bench" ;;
esac
case $INPUT_FAIL_ON in
    failed | incomplete | never) ;;
    *) fail "\`fail-on\` is \"$INPUT_FAIL_ON\", but must be failed, incomplete or never" ;;
esac
mkdir -p -- "$INPUT_REPORT"
folder=$(cd -- "$INPUT_REPORT" && pwd)
# Of an earlier step.
rm -f "$folder"/report.{json,html,xml,sarif,md}

words=("$INPUT_COMMAND")
report=(--format json --output "$folder/report.json")
while IFS= read -r word; do
    word=${word%$'\r'}
    if [ "$word" = -- ]; then
        # What follows is the command line of a client.
        words+=(${report[@]+"${report[@]}"})
        report=()
    fi
    [ -z "$word" ] || words+=("$word")
done <<< "$INPUT_ARGS"
words+=(${report[@]+"${report[@]}"})

# A server may print anything, so this is not the log of the step. Nor does it see the files that the runner reads.
exit_code=0
(
    unset GITHUB_ENV GITHUB_OUTPUT GITHUB_PATH GITHUB_STATE GITHUB_STEP_SUMMARY
    exec "$REHEARSE" "${words[@]}"
) > "$folder/log.txt" 2>&1 < /dev/null || exit_code=$?
show "$folder/log.txt"
printf 'exit code %s\n' "$exit_code"
output exit-code "$exit_code"
output folder "$folder"
