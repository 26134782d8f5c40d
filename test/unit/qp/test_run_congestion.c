/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/qp/run.c between two queue pairs with congestion control: marks, notifications, and
 * what they do to requests and responses. */
#include <errno.h>
#include <stdint.h>

#include "../../../lib/qp/qp_internal.h"
#include "qp_rig.h"
#include "test.h"
#include "wire/headers.h"

#define LINK_MBPS      1000
#define CC_NOTIFY_NS   UINT64_C(50000) /* the defaults */
#define DCQCN_MIN_KBPS 10000

TEST_FIXTURE(qp_rig_set_up, qp_rig_tear_down);

static struct cc_paths paths;

static void connect(enum cc_kind kind, enum ibv_qp_type type)
{
	rig.cc = (struct cc_attr){.kind = kind, .link_mbps = LINK_MBPS, .paths = &paths};
	end_recreate(A, type, NULL);
	end_recreate(B, type, NULL);
	rig_connect();
}

static struct packet notification(const struct end *from)
{
	static const uint8_t src_mac[6] = {2};
	const struct end *to = from == A ? B : A;
	struct packet packet = {.opcode = OPCODE_CNP,
				.op = opcode_info(OPCODE_CNP),
				.becn = true,
				.src_mac = src_mac,
				.vlan_id = -1};

	memcpy(packet.sgid, from->gid, sizeof(packet.sgid));
	memcpy(packet.dgid, to->gid, sizeof(packet.dgid));
	return packet;
}

static void slow_down(struct end *end)
{
	const struct packet packet = notification(end == A ? B : A);

	qp_receive(end->qp, &packet, rig.now_ns);
}

/* B may send very little. */
static void slow_down_much(void)
{
	for (int i = 0; i < 8; i++) {
		slow_down(B);
		rig.now_ns += CC_NOTIFY_NS;
	}
}

/* B owes A the 32 responses of a READ. */
static void ask_for_responses(void)
{
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_READ, 0, 32 * MTU, 0), 0);
	end_run(A, 9);
	end_deliver(A);
}

static uint8_t ecn_of(const struct end *end, unsigned int i)
{
	return catcher_at(&end->catcher, i)->tclass & ECN_MASK;
}

TEST(qp_run__packets_are_ecn_capable_with_dcqcn_only)
{
	for (int kind = CC_NONE; kind < CC_KINDS; kind++) {
		connect((enum cc_kind)kind, IBV_QPT_RC);
		assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
		end_run(A, 9);
		assert_int_equal(ecn_of(A, 0), kind == CC_DCQCN ? ECN_CAPABLE : ECN_NOT_CAPABLE);
		rig_run();
		end_sent(A, 1, IBV_WC_SUCCESS);
	}
}

/* A17.9.3: the notification names the peer's queue pair, and has BECN. */
TEST(qp_receive__a_marked_packet_causes_a_notification)
{
	const struct packet *packet;

	connect(CC_DCQCN, IBV_QPT_RC);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 2 * MTU, 0), 0);
	end_run(A, 1);
	/* The first packet needs no acknowledgement. */
	assert_true(end_deliver_marked(A));
	assert_false(end_run(B, 9));
	assert_int_equal(B->catcher.count, 1);
	packet = catcher_at(&B->catcher, 0);
	assert_int_equal(packet->opcode, OPCODE_CNP);
	assert_true(packet->becn);
	assert_false(packet->fecn || packet->ack_req || packet->solicited || packet->migrated);
	assert_int_equal(packet->dest_qpn, FIXTURE_QPN);
	assert_int_equal(packet->psn.v, 0);
	assert_int_equal(packet->pkey, WIRE_PKEY_DEFAULT);
	assert_int_equal(ecn_of(B, 0), ECN_NOT_CAPABLE);
	assert_int_equal(rig_counter(COUNTER_np_ecn_marked_roce_packets), 1);
	assert_int_equal(rig_counter(COUNTER_np_cnp_sent), 1);
	end_deliver(B);
	assert_int_equal(rig_counter(COUNTER_rp_cnp_handled), 1);
	assert_int_equal(A->qp->pacer.rate_kbps, 1000 * LINK_MBPS / 2);
	rig_run();
	end_time_out(A);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
}

TEST(qp_receive__at_most_one_notification_in_50_us)
{
	connect(CC_DCQCN, IBV_QPT_RC);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 10 * MTU, 0), 0);
	for (int i = 0; i < 10; i++) {
		end_run(A, 1);
		end_deliver_marked(A);
		end_run(B, 9);
		catcher_clear(&B->catcher);
		rig.now_ns += 20000;
	}
	assert_int_equal(rig_counter(COUNTER_np_ecn_marked_roce_packets), 10);
	/* Packets leave at 0, 60, 120 and 180 us. */
	assert_int_equal(rig_counter(COUNTER_np_cnp_sent), 4);
}

/* A full port delays it; it is not lost. */
TEST(qp_run__a_notification_is_within_the_budget)
{
	connect(CC_DCQCN, IBV_QPT_RC);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_READ, 8 * MTU, 4 * MTU, 0), 0);
	end_run(A, 9);
	assert_true(end_deliver_marked(A));
	assert_true(end_run(B, 2));
	assert_int_equal(B->catcher.count, 2);
	assert_int_equal(catcher_at(&B->catcher, 0)->opcode, OPCODE_CNP);
}

TEST(qp_run__a_notification_waits_for_room)
{
	connect(CC_DCQCN, IBV_QPT_RC);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 2 * MTU, 0), 0);
	end_run(A, 1);
	end_deliver_marked(A);
	B->catcher.room = 0;
	assert_true(end_run(B, 9));
	B->catcher.room = 100;
	assert_false(end_run(B, 9));
	assert_int_equal(B->catcher.count, 1);
	catcher_clear(&B->catcher);
	end_run(B, 9);
	assert_int_equal(B->catcher.count, 0);
}

TEST(qp_receive__no_notification_for_acknowledgements_or_without_dcqcn)
{
	for (int kind = CC_NONE; kind < CC_KINDS; kind++) {
		connect((enum cc_kind)kind, IBV_QPT_RC);
		assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
		end_run(A, 9);
		if (kind == CC_DCQCN)
			end_deliver(A);
		else
			end_deliver_marked(A);
		end_run(B, 9);
		end_deliver_marked(B);
		end_run(A, 9);
		end_sent(A, 1, IBV_WC_SUCCESS);
		assert_int_equal(A->catcher.count, 0);
		assert_int_equal(rig_counter(COUNTER_np_cnp_sent), 0);
	}
}

/* A requester whose READ responses are marked notifies the responder. */
TEST(qp_receive__marked_responses_cause_a_notification)
{
	connect(CC_DCQCN, IBV_QPT_RC);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_READ, 0, 4 * MTU, 0), 0);
	end_run(A, 9);
	end_deliver(A);
	end_run(B, 9);
	end_deliver_marked(B);
	end_run(A, 9);
	assert_int_equal(catcher_at(&A->catcher, 0)->opcode, OPCODE_CNP);
	assert_int_equal(catcher_at(&A->catcher, 0)->dest_qpn, FIXTURE_PEER_QPN);
	end_sent(A, 1, IBV_WC_SUCCESS);
}

/* Whoever else sends marked packets causes nothing. */
TEST(qp_receive__marked_packets_of_others_cause_no_notification)
{
	struct packet packet;

	connect(CC_DCQCN, IBV_QPT_RC);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(A, 9);
	packet = *catcher_at(&A->catcher, 0);
	packet.tclass |= ECN_EXPERIENCED;
	packet.sgid[15] ^= 1;
	qp_receive(B->qp, &packet, rig.now_ns);
	packet.sgid[15] ^= 1;
	assert_int_equal(end_modify(B, IBV_QPS_ERR), 0);
	qp_receive(B->qp, &packet, rig.now_ns);
	assert_int_equal(rig_counter(COUNTER_np_ecn_marked_roce_packets), 0);
}

TEST(qp_receive__unreliable_connections_notify_too)
{
	connect(CC_DCQCN, IBV_QPT_UC);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(A, 9);
	assert_true(end_deliver_marked(A));
	end_run(B, 9);
	assert_int_equal(catcher_at(&B->catcher, 0)->opcode, OPCODE_CNP);
	end_deliver(B);
	assert_int_equal(A->qp->pacer.rate_kbps, 1000 * LINK_MBPS / 2);
	end_sent(A, 1, IBV_WC_SUCCESS);
}

/* A notification counts only if it comes from the peer's address to ours, in our VLAN, with BECN.
 */
TEST(qp_receive__a_notification_must_be_of_the_peer)
{
	struct packet packet;

	connect(CC_DCQCN, IBV_QPT_RC);
	packet = notification(B);
	packet.sgid[15] ^= 1;
	assert_false(qp_receive(A->qp, &packet, rig.now_ns));
	packet = notification(B);
	packet.dgid[15] ^= 1;
	qp_receive(A->qp, &packet, rig.now_ns);
	packet = notification(B);
	packet.vlan_id = 5;
	qp_receive(A->qp, &packet, rig.now_ns);
	assert_int_equal(rig_counter(COUNTER_rx_wrong_qpn), 3);
	packet = notification(B);
	packet.becn = false;
	qp_receive(A->qp, &packet, rig.now_ns);
	assert_int_equal(rig_counter(COUNTER_rp_cnp_ignored), 1);
	assert_int_equal(A->qp->pacer.rate_kbps, 0);
	assert_int_equal(rig_counter(COUNTER_rp_cnp_handled), 0);
	slow_down(A);
	assert_int_equal(rig_counter(COUNTER_rp_cnp_handled), 1);
	/* The next notification would be too early. */
	slow_down(A);
	assert_int_equal(rig_counter(COUNTER_rp_cnp_ignored), 2);
}

TEST(qp_receive__a_notification_is_ignored_without_dcqcn)
{
	static const enum cc_kind kinds[] = {CC_NONE, CC_SWIFT};

	for (unsigned int i = 0; i < 2; i++) {
		connect(kinds[i], IBV_QPT_RC);
		slow_down(A);
		assert_int_equal(rig_counter(COUNTER_rp_cnp_ignored), i + 1);
		assert_int_equal(rig_counter(COUNTER_rx_wrong_opcode), 0);
		assert_false(A->qp->unusual & QP_SLOWED);
	}
	end_modify(A, IBV_QPS_ERR);
	slow_down(A);
	assert_int_equal(rig_counter(COUNTER_rx_qp_state), 1);
}

/* Requests leave no faster than the rate; nothing is lost, and the queue pair becomes free. */
TEST(qp_run__requests_are_slowed_down)
{
	unsigned int polls = 0;

	connect(CC_DCQCN, IBV_QPT_RC);
	for (int i = 0; i < 8; i++) {
		slow_down(A);
		rig.now_ns += CC_NOTIFY_NS;
	}
	assert_in_range(A->qp->pacer.rate_kbps, DCQCN_MIN_KBPS, 1000 * LINK_MBPS / 100);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 32 * MTU, 0), 0);
	do {
		rig_run();
		if (qp_deadline_ns(A->qp) == UINT64_MAX)
			break;
		end_time_out(A);
	} while (++polls < 1000);
	assert_in_range(polls, 10, 999);
	end_sent(A, 1, IBV_WC_SUCCESS);
	assert_memory_equal(B->memory.bytes, A->memory.bytes, 32 * MTU);
	rig.now_ns += UINT64_C(10000000000);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	rig_run();
	end_sent(A, 2, IBV_WC_SUCCESS);
	assert_int_equal(A->qp->pacer.rate_kbps, 0);
	assert_int_equal(A->qp->unusual, 0);
}

/* A packet that waits for room in the port, and not for its time, needs another engine poll. */
TEST(qp_run__slowed_down_with_more_to_send)
{
	connect(CC_DCQCN, IBV_QPT_RC);
	slow_down(A);
	rig.now_ns += CC_NOTIFY_NS;
	assert_true(A->qp->unusual & QP_SLOWED);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, MTU, 0), 0);
	A->catcher.room = 0;
	assert_true(end_run(A, 9));
	A->catcher.room = 100;
	assert_false(end_run(A, 9));
	assert_int_equal(A->catcher.count, 1);
}

/* A responder that is slowed down holds READ responses back, with a timer of its own. */
TEST(qp_run__responses_are_slowed_down)
{
	unsigned int polls = 0, sent;

	connect(CC_DCQCN, IBV_QPT_RC);
	slow_down_much();
	ask_for_responses();
	assert_false(end_run(B, 64));
	sent = B->catcher.count;
	assert_in_range(sent, 1, 8);
	assert_in_range(qp_deadline_ns(B->qp), rig.now_ns + 1, rig.now_ns + 1000000);
	/* Each counts with its headers. */
	assert_int_equal(
		B->qp->pacer.paid_ns,
		rig.now_ns + sent * pacer_time_ns(PACKET_HDR_MAX + MTU, B->qp->pacer.rate_kbps));
	assert_int_equal(B->qp->pacer.cc->dcqcn.bytes, sent * (PACKET_HDR_MAX + MTU));
	end_deliver(B);
	/* The notification is not due yet. */
	assert_false(end_run(B, 64));
	assert_int_equal(B->catcher.count, 0);
	while (qp_deadline_ns(B->qp) != UINT64_MAX && ++polls < 1000) {
		end_time_out(B);
		end_run(B, 64);
		end_deliver(B);
	}
	assert_in_range(polls, 5, 999);
	end_sent(A, 1, IBV_WC_SUCCESS);
	assert_memory_equal(A->memory.bytes, B->memory.bytes, 32 * MTU);
}

/* Engine polls in which nothing is held change nothing. */
TEST(qp_run__responses_are_slowed_down_after_a_pause)
{
	connect(CC_DCQCN, IBV_QPT_RC);
	slow_down_much();
	assert_false(end_run(B, 64));
	ask_for_responses();
	assert_false(end_run(B, 64));
	assert_in_range(B->catcher.count, 1, 8);
}

/* A request that waits for its acknowledgement has a timer, too: the earlier one counts. */
TEST(qp_run__held_responses_beside_a_request_have_their_timer)
{
	connect(CC_DCQCN, IBV_QPT_RC);
	slow_down_much();
	assert_int_equal(end_send(B, 2, IBV_WR_RDMA_WRITE, 40 * MTU, 8, 40 * MTU), 0);
	end_run(B, 64);
	assert_int_equal(B->catcher.count, 1);
	ask_for_responses();
	end_run(B, 64);
	assert_in_range(qp_deadline_ns(B->qp), rig.now_ns + 1, rig.now_ns + TIMEOUT_NS - 1);
}

/* In ERR no response is owed any more, and nothing would ever move a deadline that is left. A local
 * request does not wait for the pacer, so it fails while responses are held. */
TEST(qp_run__held_responses_are_no_deadline_after_an_error)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = FIXTURE_NOBODY};
	struct ibv_send_wr *bad;

	connect(CC_DCQCN, IBV_QPT_RC);
	slow_down_much();
	ask_for_responses();
	assert_int_equal(qp_post_send(B->qp, &wr, &bad), 0);
	end_run(B, 64);
	assert_true(B->catcher.count < 32);
	assert_int_equal(qp_state(B->qp), IBV_QPS_ERR);
	assert_true(qp_deadline_ns(B->qp) == UINT64_MAX);
}

TEST(qp_run__slowed_down_without_room_in_the_port)
{
	connect(CC_DCQCN, IBV_QPT_RC);
	slow_down(B);
	rig.now_ns += CC_NOTIFY_NS;
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_READ, 0, 2 * MTU, 0), 0);
	end_run(A, 9);
	end_deliver(A);
	B->catcher.room = 0;
	assert_true(end_run(B, 9));
	assert_int_equal(B->catcher.count, 0);
	B->catcher.room = 100;
	end_run(B, 9);
	assert_int_equal(B->catcher.count, 2);
}

TEST(qp_run__slowed_down_within_the_budget)
{
	connect(CC_DCQCN, IBV_QPT_RC);
	slow_down(B);
	rig.now_ns += CC_NOTIFY_NS;
	assert_true(B->qp->unusual & QP_SLOWED);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_READ, 0, 8 * MTU, 0), 0);
	end_run(A, 9);
	end_deliver(A);
	assert_true(end_run(B, 2));
	assert_int_equal(B->catcher.count, 2);
	end_run(B, 3);
	assert_int_equal(B->catcher.count, 2 + 3);
}

/* An error ends congestion control: no timer runs, and nothing is due. */
TEST(qp_modify__an_error_forgets_held_responses)
{
	connect(CC_DCQCN, IBV_QPT_RC);
	slow_down_much();
	ask_for_responses();
	end_run(B, 64);
	assert_int_equal(end_modify(B, IBV_QPS_ERR), 0);
	end_expect_error(B);
	assert_int_equal(B->qp->unusual, 0);
	assert_int_equal(end_modify(B, IBV_QPS_RESET), 0);
	assert_int_equal(B->qp->pacer.rate_kbps, 0);
	/* The next connection begins without them. */
	end_raise(B, IBV_QPS_RTS);
	assert_int_equal(qp_deadline_ns(B->qp), UINT64_MAX);
}

TEST(qp_modify__to_reset_forgets_a_notification)
{
	connect(CC_DCQCN, IBV_QPT_RC);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(A, 1);
	end_deliver_marked(A);
	assert_int_equal(end_modify(B, IBV_QPS_RESET), 0);
	assert_false(end_run(B, 9));
	assert_int_equal(B->catcher.count, 0);
}

TEST(qp_receive__a_notification_is_nothing_to_datagrams)
{
	end_recreate(A, IBV_QPT_UD, NULL);
	slow_down(A);
	assert_int_equal(rig_counter(COUNTER_rp_cnp_ignored), 1);
}

TEST(qp_receive__swift_measures_round_trips)
{
	connect(CC_SWIFT, IBV_QPT_RC);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 4 * MTU, 0), 0);
	end_run(A, 9);
	assert_true(catcher_at(&A->catcher, 0)->ack_req);
	rig.now_ns += 3000;
	end_deliver(A);
	end_run(B, 9);
	rig.now_ns += 4000;
	end_deliver(B);
	assert_int_equal(A->qp->pacer.cc->swift.rtt_ns, 7000);
	assert_int_equal(A->qp->pacer.cc->path->min_rtt_ns, 7000);
	end_sent(A, 1, IBV_WC_SUCCESS);
	/* Unreliable connections have no round trips. */
	connect(CC_SWIFT, IBV_QPT_UC);
	assert_null(A->qp->pacer.cc);
}

/* The acknowledgement may be lost. */
TEST(qp_receive__swift_measures_by_selective_acknowledgements)
{
	assert_int_equal(ooo_pool_create(64, &rig.ooo), 0);
	rig.sack = SACK_ALWAYS;
	connect(CC_SWIFT, IBV_QPT_RC);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	rig_run();
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 4 * MTU, 0), 0);
	end_run(A, 9);
	rig.now_ns += 3000;
	rig.lose[0] = 2;
	end_deliver(A);
	end_run(B, 9);
	rig.now_ns += 4000;
	for (unsigned int i = 0; i < B->catcher.count; i++)
		if (catcher_at(&B->catcher, i)->opcode == OPCODE_SACK)
			qp_receive(A->qp, catcher_at(&B->catcher, i), rig.now_ns);
	catcher_clear(&B->catcher);
	assert_int_equal(A->qp->pacer.cc->swift.rtt_ns, 7000);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
	end_sent(A, 2, IBV_WC_SUCCESS);
}

/* The window limits what is in flight, and an acknowledgement opens it. */
TEST(qp_run__swift_limits_packets_in_flight)
{
	connect(CC_SWIFT, IBV_QPT_RC);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 20 * MTU, 0), 0);
	assert_false(end_run(A, 64));
	assert_int_equal(A->catcher.count, (int)SWIFT_CWND_FIRST);
	end_deliver(A);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
}

static int change(struct end *end, enum cc_kind kind)
{
	const struct cc_attr attr = {.kind = kind, .link_mbps = LINK_MBPS, .paths = &paths};

	return qp_change_cc(end->qp, &attr);
}

static enum cc_kind shown(const struct end *end)
{
	struct qp_view view;

	qp_look(end->qp, &view);
	return view.cc;
}

TEST(qp_change_cc__not_for_every_type)
{
	end_recreate(A, IBV_QPT_UD, NULL);
	assert_int_equal(change(A, CC_DCQCN), -EOPNOTSUPP);
	assert_int_equal(change(A, CC_SWIFT), -EOPNOTSUPP);
	assert_int_equal(change(A, CC_NONE), 0);
	connect(CC_NONE, IBV_QPT_UC);
	assert_int_equal(change(A, CC_SWIFT), -EOPNOTSUPP);
	assert_int_equal(shown(A), CC_NONE);
	assert_int_equal(change(A, CC_DCQCN), 0);
	assert_int_equal(shown(A), CC_DCQCN);
}

TEST(qp_change_cc__looks_at_packets_from_then_on)
{
	connect(CC_NONE, IBV_QPT_RC);
	for (int kind = CC_DCQCN; kind >= CC_NONE; kind -= CC_DCQCN) {
		assert_int_equal(change(B, (enum cc_kind)kind), 0);
		assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
		end_run(A, 1);
		assert_true(end_deliver_marked(A));
		end_run(B, 9);
		assert_int_equal(catcher_at(&B->catcher, 0)->opcode,
				 kind == CC_DCQCN ? OPCODE_CNP : OPCODE_ACKNOWLEDGE);
		rig_run();
		end_sent(A, 1, IBV_WC_SUCCESS);
	}
}

/* Every change, in the middle of a message of which packets are in flight in both directions. */
TEST(qp_change_cc__loses_nothing)
{
	for (int from = 0; from < CC_KINDS; from++) {
		for (int to = 0; to < CC_KINDS; to++) {
			connect((enum cc_kind)from, IBV_QPT_RC);
			assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 48 * MTU, 0), 0);
			assert_int_equal(
				end_send(B, 2, IBV_WR_RDMA_WRITE, 48 * MTU, 8 * MTU, 48 * MTU), 0);
			end_run(A, 5);
			assert_int_equal(change(A, (enum cc_kind)to), 0);
			assert_int_equal(shown(A), to);
			end_run(A, 2);
			assert_int_equal(ecn_of(A, 6),
					 to == CC_DCQCN ? ECN_CAPABLE : ECN_NOT_CAPABLE);
			rig_run();
			while (qp_deadline_ns(A->qp) != UINT64_MAX) {
				end_time_out(A);
				rig_run();
			}
			end_sent(A, 1, IBV_WC_SUCCESS);
			end_sent(B, 2, IBV_WC_SUCCESS);
			assert_memory_equal(B->memory.bytes, A->memory.bytes, 56 * MTU);
			assert_int_equal(rig_counter(COUNTER_local_ack_timeout_err), 0);
		}
	}
}

/* Requests and responses that were held leave at once. */
TEST(qp_change_cc__sets_what_is_held_free)
{
	connect(CC_DCQCN, IBV_QPT_RC);
	for (int i = 0; i < 8; i++) {
		slow_down(A);
		slow_down(B);
		rig.now_ns += CC_NOTIFY_NS;
	}
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_READ, 0, 32 * MTU, 0), 0);
	assert_int_equal(end_send(B, 2, IBV_WR_RDMA_WRITE, 32 * MTU, 32 * MTU, 32 * MTU), 0);
	rig_run();
	assert_true(qp_deadline_ns(B->qp) < rig.now_ns + 1000000);
	assert_int_equal(change(B, CC_NONE), 0);
	assert_int_equal(B->qp->unusual, 0);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
	end_sent(B, 2, IBV_WC_SUCCESS);
	assert_memory_equal(A->memory.bytes, B->memory.bytes, 64 * MTU);
}

/* The timer of responses that were held would be nobody's. */
TEST(qp_change_cc__ends_the_timer_of_held_responses)
{
	connect(CC_DCQCN, IBV_QPT_RC);
	slow_down_much();
	ask_for_responses();
	end_run(B, 64);
	assert_true(qp_deadline_ns(B->qp) != UINT64_MAX);
	assert_int_equal(change(B, CC_NONE), 0);
	assert_int_equal(qp_deadline_ns(B->qp), UINT64_MAX);
}

/* The application chose these bits; congestion control gives them back. */
TEST(qp_change_cc__keeps_the_applications_traffic_class)
{
	connect(CC_NONE, IBV_QPT_RC);
	A->qp->attr.ah_attr.grh.traffic_class = 0xb9;
	assert_int_equal(change(A, CC_DCQCN), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(A, 9);
	assert_int_equal(ecn_of(A, 0), ECN_CAPABLE);
	assert_int_equal(change(A, CC_SWIFT), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(A, 9);
	assert_int_equal(ecn_of(A, 1), 1);
}

TEST(qp_change_cc__before_there_is_a_peer)
{
	connect(CC_NONE, IBV_QPT_RC);
	assert_int_equal(end_modify(A, IBV_QPS_RESET), 0);
	assert_int_equal(change(A, CC_SWIFT), 0);
	assert_null(A->qp->pacer.cc->path);
	assert_int_equal(change(A, CC_DCQCN), 0);
	assert_int_equal(end_modify(B, IBV_QPS_RESET), 0);
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(A, 9);
	assert_int_equal(ecn_of(A, 0), ECN_CAPABLE);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
}

/* The DSCP of notifications is a parameter. */
TEST(qp_run__notifications_have_their_class)
{
	static struct cc_params params;

	params = cc_params_normal;
	params.cnp_dscp = 48;
	connect(CC_DCQCN, IBV_QPT_RC);
	B->qp->pacer.cc->params = &params;
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(A, 1);
	end_deliver_marked(A);
	end_run(B, 9);
	assert_int_equal(catcher_at(&B->catcher, 0)->opcode, OPCODE_CNP);
	assert_int_equal(catcher_at(&B->catcher, 0)->tclass, 48 << DSCP_SHIFT);
}

/* However long the window makes packets wait, the peer gets one for each timeout that is counted as
 * a retry. */
TEST(qp_timeout__each_retry_sends_a_packet)
{
	A->attr.timeout = 8;
	connect(CC_SWIFT, IBV_QPT_RC);
	for (uint64_t id = 1; id <= 4; id++)
		assert_int_equal(end_send(A, id, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(A, 9);
	for (int retry = 0; retry < 3; retry++) {
		catcher_clear(&A->catcher);
		A->qp->pacer.cc->swift.cwnd = SWIFT_CWND_MIN;
		A->qp->pacer.cc->swift.rtt_ns = 100000;
		A->qp->pacer.cc->wait_ns = rig.now_ns + SWIFT_WAIT_MAX_NS;
		rig.now_ns = RTE_MAX(rig.now_ns, A->qp->loss.recovery.deadline_ns);
		qp_timeout(A->qp, rig.now_ns, &A->catcher.sink);
		end_run(A, 9);
		assert_int_equal(A->catcher.count, 1);
	}
}
