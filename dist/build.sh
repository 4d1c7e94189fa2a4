#!/usr/bin/env bash
# Builds the packages of a release for x86-64 Linux into OUT_DIR (default: packages/ in cargo's target directory):
# a tarball, a .deb, an OCI image, SBOMs and SHA256SUMS. docs/releasing.md says what it needs.
#
# Made so that the same commit gives the same bytes in any directory, with the same tools: build-info.txt lists them.
# HPROF_CLI_COMMIT and SOURCE_DATE_EPOCH (seconds) take the place of git's commit and its date.
set -euo pipefail
export LC_ALL=C TZ=UTC
umask 022

name=hprof-cli
target=x86_64-unknown-linux-gnu
glibc=2.17 # what the agent's library may need: that of CentOS 7; Debian 11 has 2.31
helper_glibc=2.34 # what the second helper may need: since then, the C library is one file

say() { printf '==> %s\n' "$*" >&2; }
fail() { printf 'dist/build.sh: %s\n' "$*" >&2; exit 2; }

case ${1-} in
  -*) fail "usage: dist/build.sh [OUT_DIR]" ;;
esac
caller=$PWD
cd "$(dirname "$0")/.."
source=$(pwd -P)

# --- Tools ---

missing=0
need() { # COMMAND HOW_TO_INSTALL
  command -v "$1" >/dev/null && return
  printf 'dist/build.sh: %s is missing: %s\n' "$1" "$2" >&2
  missing=1
}
need cargo "https://rustup.rs"
need cargo-deb "cargo install --locked cargo-deb"
need cargo-zigbuild "cargo install --locked cargo-zigbuild"
need cargo-about "cargo install --locked cargo-about --features cli"
need cargo-cyclonedx "cargo install --locked cargo-cyclonedx"
need cc "apt-get install build-essential"
need readelf "apt-get install binutils"
need buildah "apt-get install buildah"
need git "apt-get install git"
command -v zig >/dev/null || python3 -m ziglang version >/dev/null 2>&1 || need zig "pip install ziglang"
[ $missing = 0 ] || exit 2

# --- What is built ---

commit=${HPROF_CLI_COMMIT-}
if [ -z "$commit" ]; then
  commit=$(git rev-parse --verify HEAD) || fail "this is no git checkout: set HPROF_CLI_COMMIT"
  [ -z "$(git status --porcelain --untracked-files=no)" ] || commit+=-modified
fi
export HPROF_CLI_COMMIT=$commit
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || true)}
[ -n "$epoch" ] || fail "this is no git checkout: set SOURCE_DATE_EPOCH"
unset SOURCE_DATE_EPOCH # no compiler needs it, and with another date all C code would be compiled again
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)

target_dir=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR=$target_dir
cargo_home=$(realpath -m "${CARGO_HOME:-$HOME/.cargo}")
built=$target_dir/$target/dist
out=$(cd "$caller" && realpath -m "${1:-$target_dir/packages}")
mkdir -p "$out"
[ -z "$(ls -A "$out")" ] || fail "$out is not empty"
work=$(mktemp -d "$out/.work.XXXXXX")
cleanup() {
  find "$source" -name "$name.sbom.json" -not -path "$target_dir/*" -delete
  rm -rf "$work"
}
trap cleanup EXIT

say "crates of Cargo.lock"
cargo fetch --locked --target $target

# --- The same bytes in any directory ---

# Flags of the caller would take the place of those in .cargo/config.toml and of these.
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CFLAGS TARGET_CFLAGS CARGO_BUILD_RUSTFLAGS CARGO_BUILD_TARGET
remap=("$source=/source")
for registry in "$cargo_home"/registry/src/*/; do
  [ -d "$registry" ] && remap+=("${registry%/}=/crates")
done
remap+=("$target_dir=/target") # last: of several that match, the compiler takes the last
rust_flags=
c_flags=
for pair in "${remap[@]}"; do
  rust_flags+=", \"--remap-path-prefix=$pair\""
  c_flags+=" '-ffile-prefix-map=$pair'"
done
export CC_SHELL_ESCAPED_FLAGS=1 CFLAGS_x86_64_unknown_linux_gnu="$c_flags"

# --- Program and library ---

say "the program, static, with all features"
# Through --config, flags are added to those of .cargo/config.toml (x86-64-v2).
# `strip` of the profile is lost for packages that have an entry of their own in it: here it is the linker's last word.
cargo rustc --locked --profile dist --target $target --bin $name --features parquet \
  --config "target.$target.rustflags=[\"-Ctarget-feature=+crt-static\"$rust_flags]" -- -Cstrip=symbols
program=$built/$name
! readelf -SW "$program" | grep -q '\.symtab' || fail "the program is not stripped"
if readelf -lW "$program" | grep -q INTERP || readelf -dW "$program" | grep -q NEEDED; then
  fail "the program is not static"
fi
"$program" --version --verbose >"$work/version"
cat "$work/version" >&2
grep -qx "target: x86_64-linux-gnu (x86-64-v2, static)" "$work/version" || fail "the target is not x86-64-v2"
grep -qx "features: serve, sql, parquet" "$work/version" || fail "a feature is missing"

say "the agent's library, against glibc $glibc"
CARGO_TARGET_DIR=$target_dir/agent cargo zigbuild --locked --profile dist --target $target.$glibc -p hprof-agent --lib \
  --config "target.$target.rustflags=[${rust_flags#, }]"
library=$target_dir/agent/$target/dist/libhprof_agent.so
needs=$(readelf -VW "$library" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
[ "$(printf '%s\n' "$needs" "GLIBC_$glibc" | sort -V | tail -n 1)" = "GLIBC_$glibc" ] ||
  fail "the agent's library needs $needs"
say "the helper of --via: static, and against glibc $helper_glibc"
cargo rustc --locked --profile helper --target $target -p hprof-helper --bin hprof-helper \
  --config "target.$target.rustflags=[\"-Ctarget-feature=+crt-static\"$rust_flags]" -- -Cstrip=symbols
helper=$target_dir/$target/helper/hprof-helper
! readelf -lW "$helper" | grep -q INTERP || fail "the helper is not static"
CARGO_TARGET_DIR=$target_dir/agent cargo zigbuild --locked --profile helper --target $target.$helper_glibc -p hprof-helper \
  --config "target.$target.rustflags=[${rust_flags#, }]"
dynamic_helper=$target_dir/agent/$target/helper/hprof-helper
[ "$(readelf -dW "$dynamic_helper" | grep NEEDED | grep -o '\[.*\]')" = "[libc.so.6]" ] || fail "the helper needs more than libc.so.6"
for file in "$helper" "$dynamic_helper"; do
  [ "$(stat -c %s "$file")" -le 2000000 ] || fail "$file has more than 2 MB"
done

for file in "$program" "$library" "$helper" "$dynamic_helper"; do
  for path in "$source" "$target_dir" "$cargo_home"; do
    ! grep -aqF "$path/" "$file" || fail "$file contains the path $path"
  done
done

# --- What is installed, as below /usr/local ---

export SOURCE_DATE_EPOCH=$epoch

say "man pages, completions, licences"
package=$built/package
manuals=$built/package-man # compressed, for the .deb
rm -rf "$package" "$manuals"
doc=$package/share/doc/$name
mkdir -p "$package"/share/{man/man1,bash-completion/completions,zsh/site-functions,fish/vendor_completions.d} "$doc"
install -D -m 755 "$program" "$package/bin/$name"
install -D -m 644 "$library" "$package/lib/$name/libhprof_agent.so"
install -D -m 755 "$helper" "$package/lib/$name/hprof-helper"
install -D -m 755 "$dynamic_helper" "$package/lib/$name/hprof-helper-glibc"
"$program" man --output-dir "$package/share/man/man1"
cp -r "$package/share/man/man1" "$manuals"
gzip -9n "$manuals"/*
"$program" completions bash >"$package/share/bash-completion/completions/$name"
"$program" completions zsh >"$package/share/zsh/site-functions/_$name"
"$program" completions fish >"$package/share/fish/vendor_completions.d/$name.fish"
install -m 644 README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$doc"

about() { cargo about generate --locked --offline -c dist/about.toml "$@" dist/about.hbs; }
notices() { # of the crates that have one
  cargo tree --locked --offline --target $target -e normal --features parquet --prefix none --format '{p}' |
    awk '{ sub(/^v/, "", $2); print $1 "-" $2 }' | sort -u | while read -r crate; do
    for file in "$cargo_home"/registry/src/*/"$crate"/NOTICE*; do
      [ ! -f "$file" ] || { printf '%s, %s:\n\n' "$crate" "${file##*/}"; cat "$file"; echo; }
    done
  done
}
line=$(printf '=%.0s' {1..80})
{
  cat dist/licenses/libraries.txt
  printf '%s\nThe program\n' "$line"
  about --features parquet
  printf '%s\nThe agent\n' "$line"
  about -m agent/Cargo.toml
  printf '%s\nThe helper\n' "$line"
  about -m helper/Cargo.toml
  printf '%s\nNotices\n\n' "$line"
  notices
  printf '%s\nGNU Lesser General Public License 2.1\n\n' "$line"
  cat dist/licenses/LGPL-2.1.txt
} >"$doc/THIRD-PARTY-LICENSES.txt"
find "$package" "$manuals" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +

# --- Packages ---

# TAR NAME FOLDER FILE...: the same bytes for the same files.
archive() {
  local file=$1 folder=$2
  shift 2
  tar --create --file "$file" --directory "$folder" --format=gnu --sort=name --owner=0 --group=0 --numeric-owner \
    --mtime="@$SOURCE_DATE_EPOCH" "$@"
}

say "tarball"
full=$name-$version-$target
cp -a "$package" "$work/$full"
archive "$work/$full.tar" "$work" "$full"
gzip -9n <"$work/$full.tar" >"$out/$full.tar.gz"

say ".deb"
cargo deb --locked --offline --no-build --no-strip --no-dbgsym --target $target --profile dist -o "$out/"

say "image"
rootfs=$work/image/rootfs
mkdir -p "$rootfs/usr/bin" "$rootfs/usr/lib" "$rootfs/usr/share/doc" "$rootfs/tmp"
chmod 1777 "$rootfs/tmp"
cp -a "$package/bin/$name" "$rootfs/usr/bin"
cp -a "$package/lib/$name" "$rootfs/usr/lib"
cp -a "$doc" "$rootfs/usr/share/doc"
storage=(--storage-driver vfs --root "$work/storage" --runroot "$work/run")
image=localhost/$name:$version
buildah "${storage[@]}" build --isolation chroot --timestamp "$SOURCE_DATE_EPOCH" --identity-label=false \
  --label "org.opencontainers.image.title=$name" --label "org.opencontainers.image.version=$version" \
  --label "org.opencontainers.image.revision=$commit" --label "org.opencontainers.image.licenses=MIT OR Apache-2.0" \
  --format oci --file dist/Containerfile --tag "$image" "$work/image" >&2
buildah "${storage[@]}" push "$image" "oci:$work/oci:$image" >&2
archive "$out/$name-$version-x86_64.oci.tar" "$work/oci" blobs index.json oci-layout

say "SBOM"
# It writes a file beside each Cargo.toml of the workspace; those are removed at the end.
cargo cyclonedx --format json --spec-version 1.5 --features parquet --target $target --no-build-deps \
  --override-filename "$name.sbom" --quiet
sbom() { sed "s#file://$source#file:///source#g" "$1/$name.sbom.json" >"$out/$2-$version.cdx.json"; }
sbom . $name
sbom agent libhprof_agent
sbom helper hprof-helper

{
  printf 'commit %s\nSOURCE_DATE_EPOCH %s\n' "$commit" "$SOURCE_DATE_EPOCH"
  rustc -vV
  cc --version | head -n 1
  ld --version | head -n 1
  getconf GNU_LIBC_VERSION
  printf 'zig '; if command -v zig >/dev/null; then zig version; else python3 -m ziglang version; fi
  cargo-zigbuild --version
  cargo-deb --version
  cargo about --version
  cargo cyclonedx --version
  buildah --version
  tar --version | head -n 1
  gzip --version | head -n 1
} >"$out/build-info.txt"

cd "$out"
find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum >"$work/sums"
mv "$work/sums" SHA256SUMS
say "in $out:"
cat SHA256SUMS
