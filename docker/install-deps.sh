#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The one list of what disttrain is built with, and the one way to get it.
#
#   docker/install-deps.sh                  install what is missing, say so before
#   docker/install-deps.sh --check          only say what is missing; exit 1 if something is
#   docker/install-deps.sh --libtorch-dir   print where libtorch is (or will be)
#
# Debian packages come from apt (root, or sudo); libtorch comes from three
# wheels whose sha256 stand below. They are unpacked once into
# $DISTTRAIN_CACHE (default: $XDG_CACHE_HOME/disttrain or ~/.cache/disttrain),
# beside a stamp that is written last, so an interrupted run starts again.
set -euo pipefail

# Debian 12 and Ubuntu 24.04 have all of these under the same name.
packages=(
  g++ make cmake ninja-build ccache mold git ca-certificates pkg-config python3 python3-pip
  libgrpc++-dev libgrpc-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc
  libabsl-dev libssl-dev libboost-dev libfmt-dev nlohmann-json3-dev libyaml-cpp-dev
  prometheus-cpp-dev libgtest-dev libgmock-dev
)

torch_version=2.11.0
# distribution==version  platform tag  sha256
wheels=(
  "torch==2.11.0 manylinux_2_28_x86_64 7aa2f9bbc6d4595ba72138026b2074be1233186150e9292865e04b7a63b8c67a"
  "nvidia-cuda-runtime==13.0.96 manylinux2014_x86_64 7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548"
  "nvidia-cuda-cupti==13.0.85 manylinux_2_25_x86_64 4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8"
)

cache=${DISTTRAIN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/disttrain}
# The list is part of the name: another list is another folder.
list_hash=$(printf '%s\n' "${wheels[@]}" | sha256sum | cut -c1-12)
libtorch="$cache/libtorch-$torch_version-$list_hash"

say() { printf 'install-deps: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

missing_packages() {
  local installed
  installed=$(dpkg-query -W -f '${Status} ${binary:Package}\n' "${packages[@]}" 2>/dev/null |
    awk '$1 == "install" && $3 == "installed" {sub(/:.*/, "", $4); print $4}' || true)
  local package
  for package in "${packages[@]}"; do
    grep -qxF -- "$package" <<<"$installed" || echo "$package"
  done
}

install_packages() {
  command -v dpkg-query >/dev/null ||
    die "this system has no dpkg: install the equivalents of: ${packages[*]}"
  local missing
  mapfile -t missing < <(missing_packages)
  [ "${#missing[@]}" -gt 0 ] || return 0
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
      die "these packages are missing and neither root nor sudo is at hand: ${missing[*]}"
    as_root=(sudo)
  fi
  say "will install ${#missing[@]} Debian packages: ${missing[*]}"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q update >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -q install -y --no-install-recommends "${missing[@]}" >&2
}

download() {  # distribution platform sha256 folder -> prints the wheel's path
  local distribution=$1 platform=$2 sha256=$3 folder=$4
  python3 -m pip download --quiet --disable-pip-version-check --no-deps \
    --only-binary=:all: --implementation cp --python-version 3.11 --abi cp311 --abi none \
    --platform "$platform" --dest "$folder" "$distribution" >&2 ||
    die "cannot download $distribution with pip; see the message above"
  local name=${distribution%%==*} file
  file=$(find "$folder" -name "${name//-/_}-*.whl" | head -n 1)
  [ -n "$file" ] || die "pip left no wheel of $distribution in $folder"
  echo "$sha256  $file" | sha256sum --check --status ||
    die "$file has the wrong sha256: expected $sha256, got $(sha256sum "$file" | cut -d' ' -f1)"
  echo "$file"
}

# Only libtorch's CPU half is taken: the CUDA half (450 MB) loads CUDA libraries
# that this build does not use. The wheel's protobuf 3.13 headers would shadow
# the system's, so they stay out too.
unpack() {  # wheel folder
  python3 - "$1" "$2" <<'PYTHON'
import re, sys, zipfile
wheel, folder = sys.argv[1:]
wanted = re.compile(r"torch/(lib/.*\.so[^/]*|include/(?!google/).*|share/cmake/.*|version\.py)$"
                    r"|nvidia/cu13/lib/lib(cudart|cupti)\.so\.13$"
                    r"|[^/]*\.dist-info/(.*LICENSE.*|METADATA|License.*)$")
unwanted = re.compile(r"torch/lib/libtorch_(cuda|nvshmem|python)")
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        if wanted.match(name) and not unwanted.match(name):
            archive.extract(name, folder)
PYTHON
}

install_libtorch() {
  [ ! -e "$libtorch/.complete" ] || return 0
  [ "$(uname -m)" = x86_64 ] ||
    die "the pinned libtorch wheels are for x86_64, this machine is $(uname -m): configure with -DDISTTRAIN_LIBTORCH=DIR"
  mkdir -p "$cache"
  exec 9>"$cache/.lock"
  flock 9  # two runs at once: the second waits and finds it done
  [ ! -e "$libtorch/.complete" ] || return 0
  say "will download libtorch $torch_version (3 wheels, 545 MB) into $libtorch"
  # Not local: the trap below reads it when the script ends.
  work=$(mktemp -d "$cache/unpack.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  local row file
  for row in "${wheels[@]}"; do
    # shellcheck disable=SC2086  # three words by construction
    file=$(download $row "$work/wheels")
    unpack "$file" "$work/root"
    rm -f "$file"
  done
  cp -a "$work/root/nvidia/cu13/lib/." "$work/root/torch/lib/"
  rm -rf "$libtorch" "$work/root/nvidia"
  touch "$work/root/torch/.complete"
  mv "$work/root/torch" "$libtorch"
  say "libtorch $torch_version is ready"
}

case "${1:-}" in
  "") install_packages; install_libtorch ;;
  --libtorch-dir) echo "$libtorch" ;;
  --check)
    mapfile -t missing < <(missing_packages)
    [ -e "$libtorch/.complete" ] || missing+=("libtorch-$torch_version")
    [ "${#missing[@]}" -eq 0 ] || die "missing: ${missing[*]}"
    ;;
  *) die "unknown option '$1'; known: --check, --libtorch-dir" ;;
esac
