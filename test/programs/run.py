#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Program tests: unmodified RDMA programs on uroce, over memif and over a veth pair, alone and as programs of an uroced."""

import argparse
import os
import random
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from harness import lanes, tried, world  # noqa: E402
from harness.lanes import Group  # noqa: E402
from harness.process import exit_on_signals  # noqa: E402
from harness.report import CannotRun, CheckFailed  # noqa: E402
from harness.tools import UROCE_RUN  # noqa: E402
from programs.attack.attack import AttackTest  # noqa: E402
from programs.cm.connections import ConnectionsTest  # noqa: E402
from programs.cm.rdmacm_shared import run_rdmacm, run_rdmacm_shared  # noqa: E402
from programs.cm.rsockets import run_rsockets  # noqa: E402
from programs.hosts.beside import BesideTest  # noqa: E402
from programs.hosts.bond import BondTest  # noqa: E402
from programs.hosts.early_drop import EarlyDropTest  # noqa: E402
from programs.hosts.ethernet import EthernetTest  # noqa: E402
from programs.hosts.guests import GuestsTest  # noqa: E402
from programs.hosts.limits import LimitsTest  # noqa: E402
from programs.hosts.migration import MigrationTest  # noqa: E402
from programs.hosts.udp import UdpTest  # noqa: E402
from programs.hosts.vhost import VhostTest  # noqa: E402
from programs.isolated.fuzz import FuzzTest  # noqa: E402
from programs.isolated.isolated import IsolatedTest  # noqa: E402
from programs.isolated.tenants import TenantsTest  # noqa: E402
from programs.run.cancelled import CancelledTest  # noqa: E402
from programs.run.engine_ports import EnginePortsTest  # noqa: E402
from programs.run.impaired import ImpairedTest  # noqa: E402
from programs.run.inside import InsideTest  # noqa: E402
from programs.run.memif_engines import ForeignTest, MemifEnginesTest  # noqa: E402
from programs.run.others import OthersTest  # noqa: E402
from programs.run.port_queues import PortQueuesTest  # noqa: E402
from programs.run.pyverbs import PyverbsTest  # noqa: E402
from programs.run.ucx import UcxTest  # noqa: E402
from programs.run.wires import MemifWire, VethWire, WireTest, WithoutTest  # noqa: E402
from programs.share.attached_engines import AttachedEnginesTest  # noqa: E402
from programs.share.call_by_call import CallByCallTest  # noqa: E402
from programs.share.crowds import CrowdsTest  # noqa: E402
from programs.share.operate import OperateTest  # noqa: E402
from programs.share.replaced import ReplacedTest  # noqa: E402
from programs.share.restart import RestartTest  # noqa: E402
from programs.share.restart_waits import RestartWaitsTest  # noqa: E402
from programs.share.share import ShareTest  # noqa: E402
from programs.tools.ci import CiTest  # noqa: E402
from programs.tools.ctl import CtlTest  # noqa: E402
from programs.tools.local import LocalTest  # noqa: E402
from programs.tools.more_options import MoreOptionsTest  # noqa: E402
from programs.tools.testroce import TestroceTest  # noqa: E402
from programs.tools.testroce_threads import TestroceThreadsTest  # noqa: E402
from programs.tools.uroce_run import UroceRunTest, huge_files  # noqa: E402
from programs.tools.views import ViewsTest  # noqa: E402


HUGE_PAGES = 64  # as the checks of captures need


def groups(options):
    """Return all groups of checks: the long ones first, so that no lane is left with one at the end."""
    def plain(name, test, **more):
        return Group(name, lambda report, work_dir: test(report, work_dir).run_all(), **more)

    def drawn(name, test, *args, **more):
        """Return a group that draws numbers, from the same seed in each."""
        return Group(name, lambda report, work_dir: test(report, work_dir, random.Random(options.seed), *args).run_all(), **more)

    def wired(name, test, make_wire):
        """Return a group of one kind of link. A killed process leaves huge pages behind: some process removes them."""
        def run(report, work_dir):
            test(report, make_wire(work_dir), random.Random(options.seed)).run_all()
            report.check(f"{name}: no huge pages left behind", expect_no_huge_files)
        return Group(name, run)

    return [
        wired("memif", WireTest, MemifWire),
        drawn("share", ShareTest),
        wired("veth", WireTest, VethWire),
        drawn("isolated", IsolatedTest),
        plain("tenants", TenantsTest),
        Group("rdmacm shared", run_rdmacm_shared),
        Group("rdmacm", run_rdmacm),
        drawn("attack", AttackTest),
        drawn("operate", OperateTest, options.starts or (40 if options.all else 10)),
        wired("memif engines", MemifEnginesTest, MemifWire),
        wired("veth engines", EnginePortsTest, VethWire),
        drawn("attached engines", AttachedEnginesTest),
        drawn("call by call", CallByCallTest, options.every_call),
        plain("impaired", ImpairedTest),
        plain("testroce", TestroceTest),
        plain("testroce threads", TestroceThreadsTest),
        Group("rsockets", run_rsockets),
        wired("without", WithoutTest, MemifWire),
        wired("foreign", ForeignTest, MemifWire),
        plain("pyverbs", PyverbsTest),
        plain("port queues", PortQueuesTest),
        plain("guests", GuestsTest),
        plain("ucx", UcxTest),
        plain("others", OthersTest),
        plain("views", ViewsTest),
        plain("ctl", CtlTest),
        plain("uroce-run", UroceRunTest),
        plain("options", MoreOptionsTest),
        plain("ci", CiTest),
        plain("connections", ConnectionsTest),
        plain("limits", LimitsTest),
        plain("migration", MigrationTest),
        plain("early drop", EarlyDropTest),
        plain("ethernet", EthernetTest),
        plain("beside", BesideTest),
        plain("udp", UdpTest),
        plain("bond", BondTest),
        plain("vhost", VhostTest),
        plain("cancelled", CancelledTest),
        Group("local", lambda report, _: LocalTest(report, options.starts).run_all()),
        Group("inside", lambda report, _: InsideTest(report).run_all()),
        drawn("fuzz", FuzzTest, alone=True, needs_root="it has fuzzers of several users"),
        plain("restart", RestartTest, alone=True),
        plain("restart", ReplacedTest, alone=True),
        plain("restart", RestartWaitsTest, alone=True),
        plain("crowds", CrowdsTest, alone=True),
        Group("local crowds", lambda report, _: LocalTest(report, options.starts).run_crowds(), alone=True),
        # The last group, because it looks at what all others have tried.
        Group("manual pages", lambda report, _: report.check("options: each one of the manual pages is tried", expect_all_tried,
                                                             options), alone=True),
    ]


def expect_no_huge_files():
    left = huge_files()
    if left:
        raise CheckFailed("files that no process maps are left", sorted(left))


def expect_all_tried(options):
    if options.only or options.group:
        raise CannotRun("only some checks were chosen")
    with open("/proc/meminfo", encoding="ascii") as file:
        pages = int(next(line.split()[1] for line in file if line.startswith("HugePages_Total")))
    if not world.is_roots() or not shutil.which("tshark") or pages < HUGE_PAGES:
        raise CannotRun(f"some options are tried by root only, with tshark and {HUGE_PAGES} huge pages")
    left = tried.untried(os.path.dirname(UROCE_RUN))
    if left:
        raise CheckFailed("no check tries these", left)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    lanes.add_options(parser)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32),
                        help="chooses the moments at which a side is killed")
    parser.add_argument("--starts", type=int,
                        help="number of programs to start one after the other, to see that all of them start and leave nothing "
                             "behind (10 on one uroced and 20 with --local; with --all 40 and 100; by hand 1000)")
    parser.add_argument("--every-call", action="store_true",
                        help="kill programs at every system call of their start and end, not at some (by hand)")
    options = parser.parse_args()
    exit_on_signals()
    world.set_environment()
    if not options.groups and not os.access(UROCE_RUN, os.X_OK):
        sys.exit(f"{UROCE_RUN} does not exist; run: make")
    print(f"seed {options.seed}")
    with tempfile.TemporaryFile() as log:
        tried.log_to(log)
        return lanes.run(groups(options), options)


if __name__ == "__main__":
    sys.exit(main())
