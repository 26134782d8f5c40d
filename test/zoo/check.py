#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run the wrong programs of the zoo under uroce-run --explain or --check=error, and look for the reason; and their right
twins, which must get no complaint: check.py UROCE_RUN ZOO [CASE ...]."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

PORT = ("--port", "net_null0", "--ip", "10.0.0.1/24")
SECONDS = 60
CHECK_STATUS = 66
THREADS = 8  # most programs wait
WHO = r"queue pair 0x\w+"
PEER = rf"[0-9a-f.:]+ {WHO}"
ID = r"10\.0\.0\.1:\d+"

# What is said of each wrong program, in this order.
REASONS = {
    "beyond_the_end": (rf"{WHO} refuses a request of {PEER}, PSN (?P<psn>0x\w+): remote access error \(IBV_EVENT_QP_ACCESS_ERR\): "
                       r"the access to 4096 bytes at 0x\w+ ends 12 bytes behind the end of the region 0x\w+ \(4096 bytes at 0x\w+\); the region was created by: "
                       r"zoo_set_up\(\).*; the queue pair was created by: make\(\).*\n",
                       rf"WRITE of 4096 bytes \(wr_id 7\) by {WHO} to {PEER}: remote access error: .* PSN (?P<psn>0x\w+)"),
    "before_the_beginning": (r"begins 8 bytes before the region 0x\w+", "READ of 4096 bytes.*: remote access error"),
    "unknown_key": ("no region and no window that this queue pair may use has the rkey 0x", "remote access error"),
    "deregistered": ("no region and no window that this queue pair may use has the rkey 0x", "remote access error"),
    "without_remote_write": (r"the region 0x\w+ \(4096 bytes at 0x\w+\) lacks IBV_ACCESS_REMOTE_WRITE", "remote access error"),
    "other_domain": (r"the region 0x\w+ is of another protection domain than the queue pair", "remote access error"),
    "local_key": (rf"WRITE of 4096 bytes \(wr_id 7\) by {WHO} to {PEER}: local protection error: no region has the lkey 0x0",),
    "local_key_of_the_second": (r"WRITE of 4096 bytes \(wr_id 9\).*: local protection error: no region has the lkey 0x0",),
    "two_mistakes": ("refuses a request .* ends 12 bytes behind", r"WRITE .* remote access error: the peer refused it"),
    "own_receive_request": (f"{WHO}: a receive request of it: local protection error: no region has the lkey 0x0",
                            "SEND .*: remote operation error: the peer refused it"),
    "read_on_uc": ("READ .*: local QP operation error: a UC queue pair has no READ and no atomic",),
    "read_into_constant": (r"READ of 4096 bytes.*: local protection error: the region .* lacks IBV_ACCESS_LOCAL_WRITE",),
    "queue_pair_right": (r"remote invalid request error \(IBV_EVENT_QP_REQ_ERR\): the queue pair's qp_access_flags lack IBV_ACCESS_REMOTE_READ",
                         "READ .*: remote invalid request error"),
    "short_receive": (r"the message is longer than the receive request \(wr_id 8\), which has room for 2048 bytes",
                      "SEND .*: remote invalid request error"),
    "no_receive": (r"SEND .*: RNR retry counter exceeded: the peer was not ready at 2 attempts \(rnr_retry\)",),
    "nobody_there": (r"transport retry counter exceeded: no answer came in 1\.0 ms \(timeout\), 2 times in a row .* perhaps none ever",),
    "peer_destroyed": (r"transport retry counter exceeded: no answer came in 1\.0 ms \(timeout\), 2 times in a row",),
    "different_mtu": (r"a packet has 1024 bytes of payload, and the queue pair's path_mtu is 512 bytes: both sides need the same",
                      "SEND .*: remote invalid request error"),
    "atomic_alignment": (r"the address 0x\w+ is no multiple of 8", "fetch and add .*: remote invalid request error"),
    "no_reads_allowed": ("READ .*: local QP operation error: the queue pair's max_rd_atomic is 0",),
    "more_reads_than_agreed": ("more READs and atomics are outstanding than the queue pair's max_dest_rd_atomic of 1",
                               "READ .*: remote invalid request error"),
    "missing_attribute": (r"ibv_modify_qp: INIT -> RTR: IBV_QP_MIN_RNR_TIMER is missing from the mask \(IBTA 11\.2\.5\.2\)",),
    "attribute_in_vain": ("ibv_modify_qp: RESET -> INIT: IBV_QP_TIMEOUT is in the mask, and this transition does not take it",),
    "skipped_state": ("ibv_modify_qp: no transition leads from INIT to RTS",),
    "port_number": ("ibv_modify_qp: port_num is 2; it must be 1",),
    "gid_index": ("ibv_modify_qp: the device has no GID at sgid_index 100",),
    "no_grh": ("ibv_modify_qp: is_global is 0, port_num 1 and sgid_index 0; they must be 1, 1 and below",),
    "retry_count": ("ibv_modify_qp: retry_cnt is 8; it must be at most 7",),
    "full_queue": ("ibv_post_send: the queue is full: it has room for 16 work requests",),
    "too_early": ("ibv_post_send: the queue pair is in RTR; it sends in RTS",),
    "too_many_entries": ("ibv_post_send: num_sge is 4; it must be 0 to 2",),
    "long_inline": (r"ibv_post_send: 4096 bytes are more than \d+, the queue pair's max_inline_data",),
    "long_datagram": ("SEND of 4096 bytes .*: local length error: a datagram has at most 1024 bytes",),
    "remote_write_alone": ("ibv_reg_mr: IBV_ACCESS_REMOTE_WRITE and IBV_ACCESS_REMOTE_ATOMIC need IBV_ACCESS_LOCAL_WRITE",),
    "unmapped_memory": (r"ibv_reg_mr: not all of 8192 bytes at 0x\w+ are mapped for writing",),
    "too_long_queue": (r"ibv_create_qp: max_send_wr is 4194304; the device has \d+",),
    "queue_missing": (r"ibv_create_qp: recv_cq is NULL or of another context",),
    "domain_in_use": ("ibv_dealloc_pd: other objects still use it",),
    "destroyed_twice": ("ibv_destroy_qp: there is no such object, or not any more",),
    # two threads say it, in any order
    "full_completion_queue": (rf"(?s)(?=.*{WHO}: its completion queue is full \(IBV_EVENT_QP_FATAL\))"
                              r"(?=.*IBV_EVENT_CQ_ERR of completion queue \d+: it was full with 4 completions)",),
    "queue_that_nothing_receives": ("ibv_create_srq: max_wr is 0 and max_sge 1; max_wr must be 1 to",),
    "bind_without_queue_room": (r"ibv_bind_mw: the queue is full: it has room for 16 work requests",),
    "low_shared_queue": (r"IBV_EVENT_SRQ_LIMIT_REACHED of shared receive queue \d+: .* 1 are now",),
    "window_without_right": (r"binding of a window \(wr_id 7\) by queue pair 0x\w+: memory management operation error: the region "
                             r"0x\w+ lacks IBV_ACCESS_MW_BIND",),
    # what waits in vain
    "no_receive_for_ever": (rf"SEND of 4096 bytes \(wr_id 7\) by {WHO} to {PEER} waits for \d\.\d s: the peer has no receive request",),
    "nobody_there_for_ever": (rf"WRITE of 4096 bytes \(wr_id 7\) by {WHO} to .* waits for .* the peer does not answer; timeout is 0",),
    "drained": (r"WRITE .* waits for .* s: the queue pair is in SQD",),
    "slow_rate": (r"WRITE .* waits for .* s: its rate does not let it leave \(rate_limit 1 kbps",),
    "nothing_signaled": (rf"{WHO}: none of its last 16 send requests has IBV_SEND_SIGNALED",),
    "never_armed": (r"a thread has slept in ibv_get_cq_event for 2 s, and no completion queue of its channel is armed .* holds 1 comp",),
    "polled_too_few": (r"completion queue \d+ has held 1 completions for 2 s, and is armed",),
    "not_acknowledged": (r"ibv_destroy_cq of number 0x\w+ waits for events that the program has taken, and has not acknowledged",),
    "event_not_acknowledged": (rf"rdma_destroy_id: the id {ID} -> {ID} has events that the program has taken, and has not acknowledged",),
    "no_listener": (rf"RDMA_CM_EVENT_REJECTED of the id {ID} -> 10\.0\.0\.1:7471: the peer has sent a REJ: no program listens on this "
                    r"port there \(REJ 8, invalid service id; IBTA 12\.6\.7\)\n",),
    "listener_on_other_port": ("RDMA_CM_EVENT_REJECTED .*: no program listens on this port there",),
    "rejected": (rf"RDMA_CM_EVENT_REJECTED of the id {ID} -> {ID}: .*its program has rejected the request .*\(REJ 28, consumer defined",),
    "same_queue_pair": (r"RDMA_CM_EVENT_REJECTED .* a connection with the same queue pair number.*\(REJ 10, stale connection",),
    "no_service": (r"RDMA_CM_EVENT_UNREACHABLE .* SIDR_REP: no program listens on this port there \(status 1; IBTA 12\.11\.2\)",),
    "peer_disconnects": (rf"RDMA_CM_EVENT_DISCONNECTED of the id 10\.0\.0\.1:7471 -> {ID}: the peer has sent a DREQ",),
    "no_such_host": (r"RDMA_CM_EVENT_ADDR_ERROR .* -> 10\.0\.0\.77:7471: no host has answered to ARP within 50 ms",),
    "no_such_network": (r"RDMA_CM_EVENT_ADDR_ERROR .* -> 192\.0\.2\.1:7471: no device has a route to this address",),
    "foreign_address": ("rdma_bind_addr: no device has the address",),
    "port_in_use": ("rdma_bind_addr: another id .* has port 7471",),
    "too_early_connect": (rf"rdma_connect: the id {ID} -> {ID} is in the state ADDR_RESOLVED; it must be in ROUTE_RESOLVED",),
    "too_much_private_data": (r"rdma_connect: 57 bytes of private data are more than the 56 that a REQ has room for",),
    "too_much_private_data_in_accept": (r"rdma_accept: 197 bytes of private data are more than the 196 that a REP has room for",),
    "too_many_reads": (r"rdma_connect: responder_resources is 0 and initiator_depth 200; the device has at most",),
    "accepted_twice": (r"rdma_accept: the id .* is in the state CONNECTING; it must be in REQUESTED",),
    "no_queue_pair": (r"rdma_connect: the id has no queue pair \(rdma_create_qp\)",),
    "queue_pair_before_device": (r"rdma_create_qp: the id \w+, which has no address, is in the state IDLE; it must be in a state with a "
                                 "device",),
    "queue_pair_of_other_type": ("rdma_create_qp: qp_type must be IBV_QPT_UD for ids of RDMA_PS_UDP",),
    "too_long_queue_of_id": (r"rdma_create_qp: max_send_sge is 4096; the device has \d+\n",),
    "nothing_to_disconnect": ("rdma_disconnect: the id has no connection",),
    "no_group": (r"rdma_join_multicast: the address is not of a group \(224\.0\.0\.0/4, ff00::/8\)",),
    "unknown_name": (r"rdma_getaddrinfo: getaddrinfo\(3\): ",),
    "no_listener_of_endpoint": (r"rdma_connect: RDMA_CM_EVENT_REJECTED .*: no program listens on this port there",),
}

# What --check finds in each program that does no harm here.
FINDINGS = {
    "region_left": (r"check: leak: at ibv_close_device 1 memory region is left of uroce0, which ibv_dereg_mr must end; the first was created by: "
                    r"region_left\(\) .*\n", r"leak: at ibv_close_device 1 memory region is left .*zoo_set_up\(\)",
                    "leak: .* 1 protection domain is left"),
    "queue_pairs_left": (r"check: leak: at the end of the process uroce0 is open, which ibv_close_device must close; it was created by: "
                         r"zoo_set_up\(\) .*\n", r"leak: at the end of the process 1 queue pair is left .*make\(\)",
                         "leak: .* 1 memory region is left", "leak: .* 1 completion queue is left"),
    "send_buffer_changed": (rf"check: changed-buffer: {WHO}: the program has changed byte 17 of the buffers of a send request \(wr_id 7\) .* "
                            r"\(ibv_post_send\(3\)\); the queue pair was created by: make\(\) .*\n",),
    "unsignaled_buffer_changed": ("changed-buffer: .* has changed byte 0 of the buffers of a send request",),
    "receive_buffer_changed": (r"changed-buffer: .* has changed byte 100 of the buffers of a receive request \(wr_id 8\)",),
    "message_overwritten": (rf"overwritten-message: {WHO}: the message of the receive request with wr_id 8 was overwritten before",),
    "region_ended_in_use": (rf"deregistered-in-use: {WHO}: the region 0x\w+ \(4096 bytes at 0x\w+\) is deregistered or moved while a receive request "
                            r"\(wr_id 8\) .*; the region was created by: connect_local\(\)",),
    "never_signaled": (rf"nothing-signaled: {WHO}: none of its last 17 send requests .* room for 16 \(max_send_wr\)",),
    "armed_too_late": (r"lost-wake-up: ibv_get_cq_event: completion queue \d+ held completions when it was armed .*; the queue was created by: make\(\)",),
    "acknowledged_too_late": (r"unacknowledged-events: ibv_destroy_cq of number 0x\w+ waits for events that the program has taken",),
    # it gets no line, but a value that it does not expect
    "opcode_of_failure": ("zoo: the opcode of a failure: ",),
    "small_completion_queue": (r"small-completion-queue: .* has 4 entries \(cqe\), and 5 requests are posted",),
}


def run(uroce_run, zoo, case, *args):
    option = "--check=error" if case in FINDINGS else "--explain"
    try:
        result = subprocess.run([uroce_run, option, *PORT, "--", zoo, case, *args], stdin=subprocess.DEVNULL, capture_output=True,
                                text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired as expired:
        return "time", str(expired.stderr)
    return result.returncode, result.stderr


def faults(uroce_run, zoo, case):
    """Yield what is wrong with what was said."""
    status, said = run(uroce_run, zoo, case)
    if status != (1 if case == "opcode_of_failure" else CHECK_STATUS if case in FINDINGS else 0):
        yield f"{case}: exit {status}: {said}"
    at, psns = 0, set()
    for reason in FINDINGS.get(case) or REASONS[case]:
        found = re.compile(reason).search(said, at)
        if not found:
            yield f"{case}: '{reason}' is not said: {said}"
            break
        at = found.end()
        psns |= set(found.groupdict().values())
    if len(psns) > 1:
        yield f"{case}: both sides name the PSN, and not the same: {said}"
    status, said = run(uroce_run, zoo, case, "right")
    if status or "uroce: " in said:
        yield f"{case}: the right twin ends with {status} and is told: {said}"


def main():
    uroce_run, zoo, *cases = sys.argv[1:]
    known = subprocess.run([zoo], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    wrong = [f"{case}: only one of zoo.c and check.py has it" for case in set(known) ^ (set(REASONS) | set(FINDINGS))]
    with ThreadPoolExecutor(THREADS) as pool:
        for found in pool.map(lambda case: list(faults(uroce_run, zoo, case)), cases or known):
            wrong += found
    print("\n".join(wrong) or f"{len(cases or known)} wrong programs, each with its right twin")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
