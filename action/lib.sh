# shellcheck shell=bash
# What the steps of the action share.
set -euo pipefail

# Text that cannot be guessed.
token() {
    od -An -N16 -tx1 /dev/urandom | tr -d ' \n'
}

# Sets the output $1 of the step to $2, whatever lines that has.
output() {
    local end
    end=$(token)
    printf '%s<<%s\n%s\n%s\n' "$1" "$end" "$2" "$end" >> "$GITHUB_OUTPUT"
}

# Copies a file to the log of the step. The runner obeys no command in it.
show() {
    local end
    [ -s "$1" ] || return 0
    end=$(token)
    printf '::stop-commands::%s\n' "$end"
    cat "$1"
    printf '\n::%s::\n' "$end"
}

# Shows an error as an annotation.
error() {
    local text=$1
    text=${text//\%/%25}
    text=${text//$'\r'/%0D}
    printf '::error::%s\n' "${text//$'\n'/%0A}"
}

fail() {
    error "$1"
    exit 1
}
