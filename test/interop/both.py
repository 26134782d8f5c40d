# SPDX-License-Identifier: BSD-3-Clause
"""uroce-run --also-system: one program has rxe's device of the kernel and uroce's at the same time."""

from harness.report import CheckFailed
from overlay import GUEST_EVERY_DEVICE, GUEST_UROCE_RUN

SECONDS = 120
RUN = f"{GUEST_UROCE_RUN} --also-system --local --"
# One line, as the guest takes commands: the client tries again until the server listens.
PAIR = "{run} sh -c '{server} & server=$!; until {client}; do sleep 0.2; kill -0 $server || exit 9; done; wait $server'"
# The GID of index 1 is that of an IPv4 address, on rxe of eth0's.
PINGPONG = "ibv_rc_pingpong -c -d {device} -g 1 -n 100 -s 4096 -p {port}"
RPING = "rping {end} -a 198.18.0.1 -C 10 -v"


class BothTest:
    """All in the guest, which has a kernel with rxe, and uroce beside it."""

    def __init__(self, report, guest):
        self._report = report
        self._guest = guest

    def run_all(self):
        self._check("the list begins with uroce's device", self._lists)
        self._check("a program sends over both at the same time", self._every_device)
        for port, device in enumerate(("uroce0", "rxe0"), 19900):
            self._check(f"ibv_rc_pingpong on {device}", self._ping_pong, device, port)
        self._check("connections are uroce's", self._rping)

    def _check(self, name, function, *args):
        self._report.check(f"also-system: {name}", function, *args)

    def _run(self, command):
        status, output = self._guest.run(command, SECONDS)
        if status:
            raise CheckFailed(f"exit {status}", output.splitlines())
        return output

    def _ping_pong(self, device, port):
        program = PINGPONG.format(device=device, port=port)
        output = self._run(PAIR.format(run=RUN, server=program, client=f"{program} 127.0.0.1"))
        if output.count("819200 bytes in") != 2 or "invalid data" in output:
            raise CheckFailed("not both ends have all", output.splitlines())

    def _rping(self):
        output = self._run(PAIR.format(run=RUN, server=RPING.format(end="-s"), client=RPING.format(end="-c")))
        if output.count("ping data: rdma-ping-9:") != 2:
            raise CheckFailed("not both ends have all", output.splitlines())

    def _lists(self):
        names = self._run(f"{RUN} ibv_devinfo -l").split("found:")[-1].split()
        if names != ["uroce0", "rxe0"]:
            raise CheckFailed("other devices", [str(names)])
        output = self._run(f"{RUN} ibv_devinfo")
        if output.count("PORT_ACTIVE") != 2:
            raise CheckFailed("not both are active", output.splitlines())

    def _every_device(self):
        output = self._run(f"{RUN} {GUEST_EVERY_DEVICE}")
        if output.split("\n")[:2] != ["uroce0: 100000 bytes", "rxe0: 100000 bytes"]:
            raise CheckFailed("not both have sent", output.splitlines())
