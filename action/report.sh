#!/usr/bin/env bash
# Makes the other reports, the summary and the annotations from the JSON report.
# shellcheck source=action/lib.sh
. "$(dirname "$0")/lib.sh"

json=$FOLDER/report.json
if [ ! -s "$json" ]; then
    {
        printf '### rehearse could not run\n\nIt ended with exit code %s and without a report:\n\n' "$EXIT_CODE"
        # Indented text is code in Markdown, whatever is in it.
        tail -c 60000 "$FOLDER/log.txt" | sed 's/^/    /'
    } >> "$GITHUB_STEP_SUMMARY"
    error "rehearse could not run (exit code $EXIT_CODE); the log of this step says why"
    printf '%s\n' verdict=cannot-run passed=0 failed=0 incomplete=0 skipped=0 >> "$GITHUB_OUTPUT"
    exit
fi

output report-json "$json"
# Writes report.$3 in the format $2, and sets the output $1 if there is such a report.
make() {
    local file=$FOLDER/report.$3
    if "$REHEARSE" report "$json" --part --format "$2" --output "$file" > "$RUNNER_TEMP/rehearse.txt" 2>&1; then
        output "$1" "$file"
    else
        printf 'There is no report in the format %s:\n' "$2"
        show "$RUNNER_TEMP/rehearse.txt"
    fi
}
make report-html html html
make report-junit junit xml
make report-sarif sarif sarif
make report-markdown md md
show "$FOLDER/report.md"
cat "$FOLDER/report.md" >> "$GITHUB_STEP_SUMMARY"
"$REHEARSE" report "$json" --part --format github-output >> "$GITHUB_OUTPUT"
# These are commands to the runner.
"$REHEARSE" report "$json" --part --format github
