#!/bin/sh
# The main job, on a small Llama and two fine-tunes of it: each fine-tune goes
# in as its exact difference to the base, the two are blended, the blend is
# written back onto the base, and a fine-tune comes out again to the last bit.
#
#   BALLAST=path/to/ballast examples/demo.sh
set -eu

models=$(cd "$(dirname "$0")/llama" && pwd)
program=${BALLAST:-$(command -v ballast || true)}
if [ -z "$program" ]; then
    echo "no ballast: give BALLAST=, or run scripts/demo" >&2
    exit 1
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/ballast-demo-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
cd "$work"
cp -R "$models/base" "$models/ft-small" "$models/ft-large" .
chmod -R u+w .
unset BALLAST_ROOT BALLAST_TENANT BALLAST_BACKEND BALLAST_DB

# Show a command as one would type it, then run it.
ballast() {
    line='$ ballast'
    for word in "$@"; do
        case $word in
        *' '*) line="$line \"$word\"" ;;
        *) line="$line $word" ;;
        esac
    done
    printf '%s\n' "$line"
    "$program" "$@"
    echo
}

bytes_in() {
    find "$@" -type f -exec cat {} + | wc -c | tr -d ' '
}

# True if every file of $1 is in $2 with the same bytes.
same_files() {
    for file in "$1"/*; do
        cmp -s "$file" "$2/${file##*/}" || return 1
    done
}

# The tensors side by side, for folders that cut the same model into other
# files: apply keeps the shards of the base.
same_tensors() {
    for folder in "$1" "$2"; do
        "$program" --root ./compare --tenant t commit "$folder" \
            -m "to compare" --ref "${folder##*/}" >/dev/null || return 1
    done
    "$program" --root ./compare --tenant t diff "${1##*/}" "${2##*/}" \
        --exit-code >/dev/null
}

ballast --tenant acme delta ./ft-small --base ./base -m "support, run 41" \
    --ref support
ballast --tenant acme delta ./ft-large --base ./base -m "finance, run 7" \
    --ref finance
ballast --tenant acme merge support@0.6 finance@0.4 --method linear \
    -m blend --ref main
ballast --tenant acme apply main --base ./base -o ./blend
ballast --tenant acme log main
ballast --tenant acme diff support finance
ballast --tenant acme stats
ballast --tenant acme apply support --base ./base -o ./ft-small-again

if same_files ./ft-small ./ft-small-again; then
    echo "ft-small-again is ft-small, byte for byte in every file"
elif same_tensors ./ft-small ./ft-small-again; then
    echo "ft-small-again is ft-small, bit for bit in every tensor" \
        "(in the base's shards)"
else
    echo "ft-small-again is NOT ft-small" >&2
    exit 1
fi

folders=$(bytes_in ft-small ft-large)
cache=$(bytes_in .ballast/cache)
store=$(($(bytes_in .ballast) - cache))
echo
echo "the two fine-tunes as folders   $folders bytes"
echo "the store, with the blend       $store bytes"
echo "  and the blend as it resolved  $cache bytes, a cache (--no-cache)"
echo "saved                           $((folders - store)) bytes," \
    "$((100 - 100 * store / folders)) %"
