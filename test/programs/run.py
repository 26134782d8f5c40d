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
from attached_engines import AttachedEnginesTest  # noqa: E402
from beside import BesideTest  # noqa: E402
from call_by_call import CallByCallTest  # noqa: E402
from cancelled import CancelledTest  # noqa: E402
from connections import ConnectionsTest  # noqa: E402
from crowds import CrowdsTest  # noqa: E402
from ctl import CtlTest  # noqa: E402
from engine_ports import EnginePortsTest  # noqa: E402
from early_drop import EarlyDropTest  # noqa: E402
from ethernet import EthernetTest  # noqa: E402
from memif_engines import ForeignTest, MemifEnginesTest  # noqa: E402
from migration import MigrationTest  # noqa: E402
from others import OthersTest  # noqa: E402
from operate import OperateTest  # noqa: E402
from guests import GuestsTest  # noqa: E402
from fuzz import FuzzTest  # noqa: E402
from impaired import ImpairedTest  # noqa: E402
from inside import InsideTest  # noqa: E402
from isolated import IsolatedTest  # noqa: E402
from local import LocalTest  # noqa: E402
from port_queues import PortQueuesTest  # noqa: E402
from pyverbs import PyverbsTest  # noqa: E402
from rdmacm_shared import run_rdmacm, run_rdmacm_shared  # noqa: E402
from rsockets import run_rsockets  # noqa: E402
from share import ShareTest  # noqa: E402
from testroce import TestroceTest  # noqa: E402
from testroce_threads import TestroceThreadsTest  # noqa: E402
from uroce_run import UroceRunTest, huge_files  # noqa: E402
from ucx import UcxTest  # noqa: E402
from views import ViewsTest  # noqa: E402
from vhost import VhostTest  # noqa: E402
from wires import MemifWire, VethWire, WireTest, WithoutTest  # noqa: E402


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
