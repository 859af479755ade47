#!/usr/bin/env bash
# Finds or installs rehearse, and sets the output `binary`. A released version stays in the tool cache of the runner.
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=action/lib.sh
. "$here/lib.sh"

checksum() {
    if command -v sha256sum > /dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

# Sets `folder` to the folder with the released binary.
install() {
    local target version sha256 archive releases temporary actual
    case $RUNNER_OS-$RUNNER_ARCH in
        Linux-X64) target=x86_64-unknown-linux-musl ;;
        Linux-ARM64) target=aarch64-unknown-linux-musl ;;
        macOS-X64) target=x86_64-apple-darwin ;;
        macOS-ARM64) target=aarch64-apple-darwin ;;
        *) fail "rehearse does not run on $RUNNER_OS $RUNNER_ARCH; use a Linux or macOS runner" ;;
    esac
    version=${INPUT_VERSION#v}
    if [ -z "$version" ]; then
        version=$(sed -n "s/^[0-9a-f]*  rehearse-\(.*\)-$target\.tar\.gz\$/\1/p" "$here/checksums.txt" | tail -n 1)
        [ -n "$version" ] || fail "this version of the action knows no release; set \`version\` and \`sha256\`, or \`binary\`"
    fi
    [[ $version =~ ^[0-9A-Za-z.+-]+$ ]] || fail "\`version\` is \"$version\", but must be like 1.2.3"
    archive=rehearse-$version-$target.tar.gz
    sha256=${INPUT_SHA256:-$(awk -v name="$archive" '$2 == name { print $1 }' "$here/checksums.txt")}
    [ -n "$sha256" ] || fail "this version of the action has no checksum of $archive; set \`sha256\` to it"
    [[ $sha256 =~ ^[0-9a-f]{64}$ ]] || fail "\`sha256\` must be 64 hexadecimal digits in lower case"

    # The checksum is in the path: what is in the cache was checked against the same one.
    folder=$RUNNER_TOOL_CACHE/rehearse/$version/$sha256
    if [ ! -x "$folder/rehearse" ]; then
        releases=${INPUT_RELEASES:-$(awk -F '"' '/^repository = / { print $2; exit }' "$here/../Cargo.toml")/releases/download}
        temporary=$(mktemp -d "$RUNNER_TEMP/rehearse.XXXXXX")
        curl --fail --silent --show-error --location --retry 3 --output "$temporary/$archive" "$releases/v$version/$archive" ||
            fail "$releases/v$version/$archive cannot be downloaded; does this version have a release?"
        actual=$(checksum "$temporary/$archive")
        [ "$actual" = "$sha256" ] || fail "$archive has the checksum $actual, but must have $sha256; it was not installed"
        tar -xzf "$temporary/$archive" -C "$temporary"
        mkdir -p "${folder%/*}"
        mv "$temporary/${archive%.tar.gz}" "$folder"
    fi
}

if [ -n "$INPUT_BINARY" ]; then
    [ -f "$INPUT_BINARY" ] && [ -x "$INPUT_BINARY" ] || fail "\`binary\` is \"$INPUT_BINARY\", but no program is there"
    folder=$(cd "$(dirname -- "$INPUT_BINARY")" && pwd)
    binary=$folder/$(basename -- "$INPUT_BINARY")
else
    install
    binary=$folder/rehearse
fi
"$binary" --version
output binary "$binary"
printf '%s\n' "$folder" >> "$GITHUB_PATH"
