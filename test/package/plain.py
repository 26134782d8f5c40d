# SPDX-License-Identifier: BSD-3-Clause
"""`meson install` in a clean Debian: the programs find their library below the prefix by themselves."""

import re

from debs import tell
from harness.report import CheckFailed
from installed import PAIR


class PlainTest:
    """The build tree of the tests, installed below /usr/local."""

    def __init__(self, report, place, debs):
        self._report = report
        self._place = place
        self._debs = debs

    def run_all(self):
        depends = tell(["dpkg-deb", "--field", self._debs.file("uroce"), "Depends"]).strip()
        self._place.add_user()
        self._place.install("perftest ibverbs-utils")
        self._place.run(f"apt-get satisfy -y --no-install-recommends '{depends}'", network=True, seconds=600)
        self._report.check("package: meson install", self._install)

    def _install(self):
        place = self._place
        tell(["meson", "install", "-C", "build", "--no-rebuild", "--quiet", "--destdir", f"/proc/{place.pid}/root"])
        output = place.run("uroce-run --version; uroced --version; uroce-ctl --version; testroce --version; "
                           "uroce-run --local -- ldd /usr/bin/ib_write_bw", user=True)
        if not re.search(r"libibverbs\.so\.1 => /usr/local/lib/[^/]+/uroce/libibverbs\.so\.1", output):
            raise CheckFailed("another library", output.splitlines())
        place.run(f"uroce-run --local -- sh -c '{PAIR}; cat /sys/class/infiniband/uroce0/node_type'", user=True)
        dynamic = tell(["sh", "-c", f"readelf --dynamic /proc/{place.pid}/root/usr/local/bin/* "
                        f"/proc/{place.pid}/root/usr/local/sbin/* /proc/{place.pid}/root/usr/local/lib/*/uroce/*.so.1"])
        if re.search(r"\((RPATH|RUNPATH)\)", dynamic):
            raise CheckFailed("search paths of the build are left", dynamic.splitlines())
        place.run("grep -q ExecStart=/usr/local/sbin/uroced /usr/local/lib/systemd/system/uroced@.service")
