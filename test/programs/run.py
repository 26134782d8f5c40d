#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Program tests: unmodified RDMA programs on uroce, over memif and over a veth pair."""

import argparse
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from harness.process import exit_on_signals  # noqa: E402
from harness.report import CheckFailed, Report  # noqa: E402
from harness.tools import UROCE_RUN  # noqa: E402
from programs.share.attached_engines import AttachedEnginesTest  # noqa: E402
from programs.hosts.beside import BesideTest  # noqa: E402
from programs.share.call_by_call import CallByCallTest  # noqa: E402
from programs.run.cancelled import CancelledTest  # noqa: E402
from programs.cm.connections import ConnectionsTest  # noqa: E402
from programs.share.crowds import CrowdsTest  # noqa: E402
from programs.tools.ctl import CtlTest  # noqa: E402
from programs.run.engine_ports import EnginePortsTest  # noqa: E402
from programs.hosts.early_drop import EarlyDropTest  # noqa: E402
from programs.hosts.ethernet import EthernetTest  # noqa: E402
from programs.run.memif_engines import ForeignTest, MemifEnginesTest  # noqa: E402
from programs.hosts.migration import MigrationTest  # noqa: E402
from programs.run.others import OthersTest  # noqa: E402
from programs.share.operate import OperateTest  # noqa: E402
from programs.hosts.guests import GuestsTest  # noqa: E402
from programs.isolated.fuzz import FuzzTest  # noqa: E402
from programs.run.impaired import ImpairedTest  # noqa: E402
from programs.run.inside import InsideTest  # noqa: E402
from programs.isolated.isolated import IsolatedTest  # noqa: E402
from programs.tools.local import LocalTest  # noqa: E402
from programs.run.port_queues import PortQueuesTest  # noqa: E402
from programs.run.pyverbs import PyverbsTest  # noqa: E402
from programs.cm.rdmacm_shared import run_rdmacm, run_rdmacm_shared  # noqa: E402
from programs.cm.rsockets import run_rsockets  # noqa: E402
from programs.share.share import ShareTest  # noqa: E402
from programs.tools.testroce import TestroceTest  # noqa: E402
from programs.tools.testroce_threads import TestroceThreadsTest  # noqa: E402
from programs.tools.uroce_run import UroceRunTest, huge_files  # noqa: E402
from programs.run.ucx import UcxTest  # noqa: E402
from programs.tools.views import ViewsTest  # noqa: E402
from programs.hosts.vhost import VhostTest  # noqa: E402
from programs.run.wires import MemifWire, VethWire, WireTest, WithoutTest  # noqa: E402


def run_wires(report, work_dir, rng):
    """Remove abandoned files first: a killed process leaves huge pages behind, which nothing else frees."""
    before = huge_files()
    memif = MemifWire(work_dir)
    veth = VethWire(work_dir)
    for wire in (memif, veth):
        WireTest(report, wire, rng).run_all()
    EnginePortsTest(report, veth, rng).run_all()
    MemifEnginesTest(report, memif, rng).run_all()
    WithoutTest(report, memif, rng).run_all()
    ForeignTest(report, memif, rng).run_all()

    def no_leak():
        left = huge_files() - before
        if left:
            raise CheckFailed("files that no process maps are left", sorted(left))
    report.check("no huge pages left behind", no_leak)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="TEXT", help="run the checks whose name contains this")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32),
                        help="chooses the moments at which a side is killed")
    parser.add_argument("--starts", type=int,
                        help="number of programs to start one after the other, to see that all of them start and leave nothing "
                             "behind (by default 40 on one uroced and 100 with --local; by hand 1000)")
    parser.add_argument("--every-call", action="store_true",
                        help="kill programs at every system call of their start and end, not at some (by hand)")
    options = parser.parse_args()
    exit_on_signals()
    if os.geteuid() != 0:
        sys.exit("programs: needs root (network namespaces); run: sudo make test")
    report = Report(options.only)
    if not os.access(UROCE_RUN, os.X_OK):
        report.fail("uroce-run", f"{UROCE_RUN} does not exist; run: make")
        return report.summary()
    print(f"seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="uroce-programs-") as work_dir:
        UroceRunTest(report, work_dir).run_all()
        LocalTest(report, options.starts).run_all()
        ViewsTest(report, work_dir).run_all()
        UcxTest(report, work_dir).run_all()
        OthersTest(report, work_dir).run_all()
        InsideTest(report).run_all()
        EthernetTest(report, work_dir).run_all()
        EarlyDropTest(report, work_dir).run_all()
        PyverbsTest(report, work_dir).run_all()
        run_rdmacm(report, work_dir)
        ConnectionsTest(report, work_dir).run_all()
        run_rsockets(report, work_dir)
        run_rdmacm_shared(report, work_dir)
        ShareTest(report, work_dir, random.Random(options.seed)).run_all()
        AttachedEnginesTest(report, work_dir, random.Random(options.seed)).run_all()
        CallByCallTest(report, work_dir, random.Random(options.seed), options.every_call).run_all()
        OperateTest(report, work_dir, random.Random(options.seed), options.starts or 40).run_all()
        MigrationTest(report, work_dir).run_all()
        CrowdsTest(report, work_dir).run_all()
        CancelledTest(report, work_dir).run_all()
        CtlTest(report, work_dir).run_all()
        IsolatedTest(report, work_dir, random.Random(options.seed)).run_all()
        FuzzTest(report, work_dir, random.Random(options.seed)).run_all()
        TestroceTest(report, work_dir).run_all()
        TestroceThreadsTest(report, work_dir).run_all()
        ImpairedTest(report, work_dir).run_all()
        GuestsTest(report, work_dir).run_all()
        BesideTest(report, work_dir).run_all()
        VhostTest(report, work_dir).run_all()
        PortQueuesTest(report, work_dir).run_all()
        run_wires(report, work_dir, random.Random(options.seed))
        return report.summary()


if __name__ == "__main__":
    sys.exit(main())
