# SPDX-License-Identifier: BSD-3-Clause
"""The release archive, the packages that Debian's tools build from it, and what is in them."""

import glob
import os
import re
import shutil
import subprocess
import tarfile

from harness.report import CheckFailed

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD_SECONDS = 1500
COMMANDS = {"usr/bin/uroce-run", "usr/bin/uroce-ctl", "usr/bin/testroce", "usr/sbin/uroced"}
PRIVATE = r"usr/lib/[^/]+/uroce/(libibverbs\.so(\.1)?|librdmacm\.so(\.1)?|liburoce-attached\.so|liburoce\.so\.0|rsocket/librspreload\.so|view/liburoce-view\.so)"
EXPECTED = COMMANDS | {
    "etc/uroce/uroce.conf", "usr/lib/sysusers.d/uroce.conf", "usr/lib/tmpfiles.d/uroce.conf",
    *(f"lib/systemd/system/uroced{name}" for name in (".service", ".socket", "@.service", "@.socket")),
    *(f"usr/share/man/man{page[-1]}/{page}.gz" for page in ("uroce-run.1", "uroce-ctl.1", "testroce.1", "uroced.8",
                                                            "uroce.conf.5")),
    *(f"usr/share/bash-completion/completions/{os.path.basename(command)}" for command in COMMANDS),
    "usr/share/uroce/ci/start", "usr/share/uroce/container/Containerfile",
    *(f"usr/share/uroce/systemd/{name}.conf" for name in ("on-uroce", "own-user", "no-network")), "usr/share/doc/uroce/copyright",
    *(f"usr/share/doc/uroce/examples/{name}" for name in ("uroce.conf.example", "uroce-rules.yml", "uroce-dashboard.json")),
}
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
SOURCES = r"(app|config|test|doc/man)/"  # the package has the manual pages elsewhere
PAGES = 30
EXPECTED_ROCE = {"libroce0": {"usr/lib/x86_64-linux-gnu/libroce.so.0"},
                 "libroce-dev": {"usr/include/roce/roce.h", "usr/share/doc/libroce-dev/examples/roce_over_udp.c"}}
EXPECTED_DEV = {"usr/include/uroce/port.h", "usr/include/uroce/primary.h", "usr/include/uroce/verbs.h"}


def tell(argv, directory=TOP, seconds=600, **options):
    """Run a command of the machine; return its output, or fail with its last lines."""
    try:
        done = subprocess.run(argv, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=seconds, check=False, **options)
    except subprocess.TimeoutExpired as late:
        raise CheckFailed(f"hangs (after {seconds} s): {' '.join(argv)}") from late
    if done.returncode:
        raise CheckFailed(f"exit {done.returncode}: {' '.join(argv)}", done.stdout.splitlines()[-40:])
    return done.stdout


def version():
    """Return the version in meson.build."""
    with open(os.path.join(TOP, "meson.build"), encoding="utf-8") as file:
        return re.search(r"version: '([^']+)'", file.read())[1]


class Debs:
    """The packages, built in a work directory."""

    def __init__(self, work_dir):
        self._dir = os.path.join(work_dir, "debs")
        self.source = os.path.join(self._dir, f"uroce-{version()}")
        self.later = os.path.join(self._dir, "later")
        shutil.rmtree(self._dir, ignore_errors=True)
        os.makedirs(self.later)

    def file(self, package, directory=None):
        """Return the file of a package."""
        found = glob.glob(os.path.join(directory or self._dir, f"{package}_*.deb"))
        if len(found) != 1:
            raise CheckFailed(f"{len(found)} files of {package}", found)
        return found[0]

    def unpack_archive(self):
        """The archive of `meson dist` has each file of the checkout, and no other."""
        listed = subprocess.run(["git", "ls-files"], cwd=TOP, capture_output=True, text=True, check=False)
        if listed.returncode:
            raise CheckFailed("this is no checkout of git", listed.stderr.splitlines())
        tell(["meson", "dist", "-C", "build", "--no-tests", "--formats", "gztar", "--allow-dirty"])
        archive = os.path.join(TOP, "build", "meson-dist", f"uroce-{version()}.tar.gz")
        with tarfile.open(archive) as file:
            file.extractall(self._dir, filter="data") if hasattr(tarfile, "data_filter") else file.extractall(self._dir)
        found = {os.path.relpath(os.path.join(at, name), self.source)
                 for at, _, names in os.walk(self.source) for name in names}
        committed = set(tell(["git", "ls-tree", "-r", "--name-only", "HEAD"]).splitlines())
        if found != committed:
            raise CheckFailed("the archive differs from the commit", sorted(found ^ committed)[:20])

    def build(self, command):
        """Debian's tools build the packages by this command, with the version of meson.build."""
        with open(os.path.join(self.source, "debian", "changelog"), encoding="utf-8") as file:
            head = file.readline()
        if not head.startswith(f"uroce ({version()}) "):
            raise CheckFailed(f"debian/changelog has another version than {version()}", [head.strip()])
        tell(command.split(), self.source, BUILD_SECONDS,
             env={**os.environ, "DEB_BUILD_OPTIONS": f"nocheck parallel={os.cpu_count()}"})
        self.file("uroce")
        for package in ("liburoce-dev", *EXPECTED_ROCE):
            self.file(package)

    def build_later(self):
        """Make the same package with a later version, to upgrade to. Its library says so."""
        tree = os.path.join(self.later, "tree")
        tell(["dpkg-deb", "--raw-extract", self.file("uroce"), tree])
        control = os.path.join(tree, "DEBIAN", "control")
        with open(control, encoding="utf-8") as file:
            text = file.read()
        with open(control, "w", encoding="utf-8") as file:
            file.write(text.replace(f"Version: {version()}\n", f"Version: {version()}+later\n"))
        tell(["dpkg-deb", "--root-owner-group", "--build", tree, self.later])
        shutil.rmtree(tree)

    def lint(self):
        """lintian finds neither errors nor warnings."""
        changes = glob.glob(os.path.join(self._dir, "*.changes"))
        tell(["lintian", "--allow-root", "--fail-on", "error,warning", "--suppress-tags", "bad-distribution-in-changes-file",
              *changes])

    def _files(self, package):
        """Return the files and links of a package: {path: first column of its listing}."""
        listing = tell(["dpkg-deb", "--contents", self.file(package)])
        rows = [line.split(None, 5) for line in listing.splitlines()]
        return {row[5].split(" -> ")[0].removeprefix("./"): row[0] for row in rows if not row[0].startswith("d")}

    def contents(self):
        """Everything is where it belongs, and nothing has the place of a file of another package."""
        files, dev = self._files("uroce"), self._files("liburoce-dev")
        missing = sorted((EXPECTED - set(files)) | (EXPECTED_DEV - set(dev)))
        if missing:
            raise CheckFailed("files are missing", missing)
        libraries = [path for path in files if re.search(r"\.so(\.|$)", path)]
        wrong = [path for path in libraries if not re.fullmatch(PRIVATE, path)]
        if wrong or len(libraries) != 8:
            raise CheckFailed("libraries where others find them", libraries)
        self._links()
        special = [path for path, mode in files.items() if "s" in mode[1:]]
        if special:
            raise CheckFailed("files with more rights than their user's", special)

    def _links(self):
        """Each page that an installed page links is installed. Other files that they link are in the sources alone."""
        tree = os.path.join(self._dir, "pages")
        tell(["dpkg-deb", "--extract", self.file("uroce"), tree])
        top = os.path.join(tree, "usr", "share", "doc", "uroce")
        pages = glob.glob(os.path.join(top, "**", "*.md"), recursive=True)
        broken = []
        for page in pages:
            with open(page, encoding="utf-8") as file:
                targets = [os.path.join(os.path.dirname(page), target) for target in LINK.findall(file.read())]
            broken += [f"{page}: {target}" for target in targets
                       if not os.path.exists(target) and not re.match(SOURCES, os.path.relpath(target, top))]
        shutil.rmtree(tree)
        if broken or len(pages) < PAGES:
            raise CheckFailed(f"{len(pages)} pages, with broken links", broken)

    def no_search_path(self):
        """Programs and libraries name no directory to search, and no path of the build."""
        tree = os.path.join(self._dir, "tree")
        tell(["dpkg-deb", "--extract", self.file("uroce"), tree])
        for at, _, names in os.walk(tree):
            for name in names:
                path = os.path.join(at, name)
                if os.path.islink(path) or not open(path, "rb").read(4) == b"\x7fELF":
                    continue
                dynamic = tell(["readelf", "--dynamic", path])
                if re.search(r"\((RPATH|RUNPATH)\)", dynamic):
                    raise CheckFailed(f"{name} has a search path", dynamic.splitlines())
                with open(path, "rb") as file:
                    if self.source.encode() in file.read():
                        raise CheckFailed(f"{name} names the directory that it was built in")
        shutil.rmtree(tree)
