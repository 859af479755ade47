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
    local target version sha256 archive releases temporary actual suffix=.tar.gz
    case $RUNNER_OS-$RUNNER_ARCH in
        Linux-X64) target=x86_64-unknown-linux-musl ;;
        Linux-ARM64) target=aarch64-unknown-linux-musl ;;
        macOS-X64) target=x86_64-apple-darwin ;;
        macOS-ARM64) target=aarch64-apple-darwin ;;
        Windows-X64) target=x86_64-pc-windows-msvc ;;
        *) fail "there is no rehearse for $RUNNER_OS $RUNNER_ARCH; use another runner" ;;
    esac
    if [ "$RUNNER_OS" = Windows ]; then suffix=.zip; fi
    version=${INPUT_VERSION#v}
    if [ -z "$version" ]; then
        version=$(sed -n "s/^[0-9a-f]*  rehearse-\(.*\)-$target\\$suffix\$/\1/p" "$here/checksums.txt" | tail -n 1)
        [ -n "$version" ] || fail "this version of the action knows no release; set \`version\` and \`sha256\`, or \`binary\`"
    fi
    [[ $version =~ ^[0-9A-Za-z.+-]+$ ]] || fail "\`version\` is \"$version\", but must be like 1.2.3"
    archive=rehearse-$version-$target$suffix
    sha256=${INPUT_SHA256:-$(awk -v name="$archive" '$2 == name { print $1 }' "$here/checksums.txt")}
    [ -n "$sha256" ] || fail "this version of the action has no checksum of $archive; set \`sha256\` to it"
    [[ $sha256 =~ ^[0-9a-f]{64}$ ]] || fail "\`sha256\` must be 64 hexadecimal digits in lower case"

    # The checksum is in the path: what is in the cache was checked against the same one.
    folder=$RUNNER_TOOL_CACHE/rehearse/$version/$sha256
    if [ ! -x "$folder/$program" ]; then
        releases=${INPUT_RELEASES:-$(awk -F '"' '/^repository = / { print $2; exit }' "$here/../Cargo.toml")/releases/download}
        temporary=$(mktemp -d "$RUNNER_TEMP/rehearse.XXXXXX")
        curl --fail --silent --show-error --location --retry 3 --output "$temporary/$archive" "$releases/v$version/$archive" ||
            fail "$releases/v$version/$archive cannot be downloaded; does this version have a release?"
        actual=$(checksum "$temporary/$archive")
        [ "$actual" = "$sha256" ] || fail "$archive has the checksum $actual, but must have $sha256; it was not installed"
        if [ "$suffix" = .zip ]; then
            unzip -q "$temporary/$archive" -d "$temporary"
        else
            tar -xzf "$temporary/$archive" -C "$temporary"
        fi
        mkdir -p "${folder%/*}"
        mv "$temporary/${archive%"$suffix"}" "$folder"
    fi
}

program=rehearse
if [ "$RUNNER_OS" = Windows ]; then program=rehearse.exe; fi
if [ -n "$INPUT_BINARY" ]; then
    [ -f "$INPUT_BINARY" ] && [ -x "$INPUT_BINARY" ] || fail "\`binary\` is \"$INPUT_BINARY\", but no program is there"
    folder=$(cd "$(dirname -- "$INPUT_BINARY")" && pwd)
    binary=$folder/$(basename -- "$INPUT_BINARY")
else
    install
    binary=$folder/$program
fi
"$binary" --version
output binary "$binary"
# The PATH of Windows has no paths of bash.
if command -v cygpath > /dev/null; then folder=$(cygpath --windows "$folder"); fi
printf '%s\n' "$folder" >> "$GITHUB_PATH"
