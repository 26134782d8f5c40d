#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes build-bundle/uroce-VERSION-ARCHITECTURE.tar.gz of what was built there.
#
# usage: config/bundle/make.sh [ARCHITECTURE]
# ARCHITECTURE: if it is not this machine's
set -eu
cd "$(dirname "$0")/../.."

build="build-bundle"
name=uroce-$(meson introspect --projectinfo $build | python3 -c 'import json, sys; print(json.load(sys.stdin)["version"])')-${1:-$(uname -m)}
dir=$build/$name
rm -rf $build/uroce-*
DESTDIR=$PWD/$dir meson install -C $build --no-rebuild --quiet --strip --tags runtime,man,bundle

# Programs that use dlopen(3) ask for the names without a version.
for library in libibverbs librdmacm; do
	ln -s $library.so.1 "$dir/lib/uroce/$library.so"
done
for program in uroce-run uroced uroce-ctl testroce; do
	ln -s bin/$program "$dir/$program"
done

# The licences of what is linked in.
mkdir -p "$dir/share/doc/uroce/licenses"
cp LICENSE "$dir"
for package in libdpdk-dev libjson-c-dev libbsd-dev; do
	cp /usr/share/doc/$package/copyright "$dir/share/doc/uroce/licenses/$package"
done
tar --create --sort=name --owner=0 --group=0 --numeric-owner --directory $build "$name" | gzip -9n >"$dir.tar.gz"
rm -rf "$dir"
echo "$dir.tar.gz"
