# SPDX-License-Identifier: BSD-3-Clause
"""The programs' options: one run of each option that doc/user/programs.md says works and that no other check runs."""

from harness.tools import PerfTest, PingPong, XrcPingPong

# On an unreliable service the program waits for ever for a lost message, so it sends no more than the queues hold.
UNRELIABLE = ["-s", "4096"]
FEW = 200


SERVICES = {"send": ("UC", "UD", "XRC"), "write": ("UC", "XRC"), "read": ("XRC",), "atomic": ("XRC",)}


def ping_pongs(complete):
    # Not -t with -e: the program then takes an empty queue after an event for an error, which verbs allow.
    for options in (["-O"], ["-o", "-P"], ["-t"], ["-N"], ["-j"], *((["-o"], ["-r", "50", "-l", "3"]) if complete else ())):
        yield PingPong(options, 500, 4096)
    for service in ("uc", "ud", "srq"):
        for options in ([], ["-e"]) if complete else (["-e"],):
            yield PingPong(options, 500, 2048, service)
    for options in ([], ["-e"], ["-o"]) if complete else (["-e"],):
        yield XrcPingPong(options)
    if complete:
        yield PingPong(["-o", "-q", "4"], 500, 16384, "srq")


def services(complete):
    """Run each verb on each service that has it; other checks run RC."""
    pairs = [(verb, service) for verb, services_of in SERVICES.items() for service in services_of]
    for number, (verb, service) in enumerate(pairs):
        for form in ("bw", "lat") if complete else (("bw", "lat")[number % 2],):
            yield PerfTest(f"ib_{verb}_{form}", ["-c", service, *(UNRELIABLE if service != "XRC" else [])], FEW)


def queues(complete):
    """Run shared receive queues, events, depths, and lists of requests."""
    yield PerfTest("ib_send_bw", ["--use-srq", "-c", "XRC", "-q", "2"], FEW)
    yield PerfTest("ib_send_lat", ["--use-srq"], FEW)
    yield PerfTest("ib_send_bw", ["-e", "-b"], FEW)
    yield PerfTest("ib_send_bw", ["-e", "-X", "0", "-c", "UD", *UNRELIABLE], FEW)
    yield PerfTest("ib_send_bw", ["-r", "32", "-t", "16", "-Q", "4"], FEW)
    yield PerfTest("ib_read_bw", ["-o", "2", "-t", "8"], FEW)
    yield PerfTest("ib_send_bw", ["-l", "8", "--recv_post_list=8"], FEW)
    yield PerfTest("ib_send_bw", ["--use_old_post_send"], FEW)
    if complete:
        yield PerfTest("ib_send_bw", ["--use-srq", "-c", "RC", "-q", "2"], FEW)
        yield PerfTest("ib_atomic_bw", ["-l", "4"], FEW)
        for service in ("RC", "UC"):
            yield PerfTest("ib_send_lat", ["-e", "-c", service], 500)


def memory(complete):
    yield PerfTest("ib_send_bw", ["-I", "64", "-s", "64", "-c", "UD", "--inline_recv=64"], FEW)
    yield PerfTest("ib_write_bw", ["--use_hugepages"], FEW)
    yield PerfTest("ib_read_bw", ["--mr_per_qp", "-q", "4"], FEW)
    for verb in ("send", "write", "read") if complete else ("write",):
        yield PerfTest(f"ib_{verb}_bw", ["--odp"], FEW)
    if complete:
        yield PerfTest("ib_write_bw", ["-I", "128", "-s", "128"], FEW)


def paths_and_reports(complete):
    yield PerfTest("ib_write_bw", ["-S", "3", "--tclass=96", "-u", "16", "-m", "1024"], FEW)
    yield PerfTest("ib_send_bw", ["--ipv6", "--report_gbits", "--reversed"], FEW)
    if complete:
        yield PerfTest("ib_send_bw", ["-D", "1", "--cpu_util"])
        yield PerfTest("ib_write_lat", ["-D", "1"])


def option_programs(complete):
    """Return all runs, for one kind of link, or those that differ from each other by more than a number or a verb."""
    for programs in (ping_pongs, services, queues, memory, paths_and_reports):
        yield from programs(complete)


def option_programs_short():
    """Return the runs that use the port in another way than a plain run, for the other kinds of links."""
    yield PingPong(["-e"], 500, 2048, "ud")
    yield XrcPingPong(["-e"])
    yield PerfTest("ib_send_bw", ["-c", "UD", *UNRELIABLE], FEW)
    yield PerfTest("ib_send_lat", ["-e"], FEW)
    yield PerfTest("ib_write_bw", ["-c", "XRC"], FEW)
