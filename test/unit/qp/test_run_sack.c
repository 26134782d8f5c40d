/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/qp/run.c with selective acknowledgements: between which queue pairs they are used,
 * and when they are not. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "qp_rig.h"
#include "test.h"
#include "transport/sack.h"
#include "wire/headers.h"

#define PACKETS 8u
#define BYTES	(PACKETS * MTU)

static int set_up(void **state)
{
	qp_rig_set_up(state);
	assert_int_equal(ooo_pool_create(64, &rig.ooo), 0);
	rig.sack = SACK_ALWAYS;
	end_recreate(A, IBV_QPT_RC, NULL);
	end_recreate(B, IBV_QPT_RC, NULL);
	return 0;
}

TEST_FIXTURE(set_up, qp_rig_tear_down);

/* Make a selective acknowledgement that reports the packet behind the expected one. */
static struct packet forge(const struct end *from, uint32_t psn)
{
	static const uint8_t bitmap[4] = {1};
	const struct packet_fields fields = {.opcode = OPCODE_SACK,
					     .psn = psn,
					     .capability = BTH_SACK_RESPONSE,
					     .serial = 1,
					     .payload = bitmap,
					     .len = sizeof(bitmap)};
	struct packet packet = *fixture_packet(&rig.fixture, &fields);

	memcpy(packet.sgid, from->gid, sizeof(packet.sgid));
	memcpy(packet.dgid, from == A ? B->gid : A->gid, sizeof(packet.dgid));
	return packet;
}

/* Send a message of one packet, whose answer shows each end who its peer is. */
static void greet(struct end *from)
{
	assert_int_equal(end_send(from, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	rig_run();
	end_sent(from, 1, IBV_WC_SUCCESS);
}

/* Send one engine poll's packets, and return how many have this opcode. */
static unsigned int run_and_count(struct end *end, uint8_t opcode)
{
	unsigned int count = 0;

	catcher_clear(&end->catcher);
	end_run(end, 64);
	for (unsigned int i = 0; i < end->catcher.count; i++)
		count += catcher_at(&end->catcher, i)->opcode == opcode;
	return count;
}

/* Let `from` send a message whose second packet is lost, and return how many selective
 * acknowledgements the other end sends; its answers are delivered. */
static unsigned int lose_one(struct end *from)
{
	struct end *to = from == A ? B : A;
	unsigned int sacks;

	assert_int_equal(end_send(from, 2, IBV_WR_RDMA_WRITE, 0, BYTES, 0), 0);
	end_run(from, 64);
	rig.lose[from - A] = 2;
	end_deliver(from);
	sacks = run_and_count(to, OPCODE_SACK);
	end_deliver(to);
	return sacks;
}

TEST(qp_receive__a_selective_acknowledgement_between_peers_that_take_part)
{
	rig_connect();
	greet(A);
	assert_int_equal(lose_one(A), 1);
	assert_int_equal(rig_counter(COUNTER_sacks_received), 1);
	end_run(A, 64);
	assert_int_equal(A->catcher.count, 1);
	end_deliver(A);
	rig_run();
	end_sent(A, 2, IBV_WC_SUCCESS);
	assert_int_equal(rig_counter(COUNTER_retransmitted_packets), 1);
	assert_int_equal(rig_counter(COUNTER_packet_seq_err), 0);
}

/* Deliver only the selective acknowledgements that B has sent. */
static void deliver_sacks(void)
{
	for (unsigned int i = 0; i < B->catcher.count; i++)
		if (catcher_at(&B->catcher, i)->opcode == OPCODE_SACK)
			qp_receive(A->qp, catcher_at(&B->catcher, i), rig.now_ns);
	catcher_clear(&B->catcher);
}

/* It acknowledges two requests, for whose completions there is no room. */
TEST(qp_receive__a_selective_acknowledgement_may_end_the_queue_pair)
{
	end_recreate_with_small_cq(A);
	rig_connect();
	greet(A);
	for (uint64_t i = 1; i <= 4; i++)
		assert_int_equal(end_send(A, i, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(A, 64);
	rig.lose[0] = 3;
	end_deliver(A);
	end_run(B, 64);
	deliver_sacks();
	end_expect_error(A);
	end_expect_event(A, 0, IBV_EVENT_QP_FATAL);
	qp_retire(B->qp);
}

/* Let B hear that packets reach others again. Return how many packets that makes it send. */
static unsigned int hasten(void)
{
	catcher_clear(&B->catcher);
	qp_hasten(B->qp, rig.now_ns);
	end_run(B, 64);
	return B->catcher.count;
}

/* All packets were lost for a while, and A's next probe may be far away. */
TEST(qp_hasten__the_peer_sends_again_what_was_lost)
{
	rig_connect();
	greet(A);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(A, 64);
	catcher_clear(&A->catcher);
	assert_int_equal(hasten(), 1);
	assert_int_equal(catcher_at(&B->catcher, 0)->opcode, OPCODE_SACK);
	end_deliver(B);
	assert_int_equal(run_and_count(A, OPCODE_WRITE_ONLY), 1);
	end_deliver(A);
	rig_run();
	end_sent(A, 2, IBV_WC_SUCCESS);
}

TEST(qp_hasten__its_own_probe_leaves_now)
{
	rig.sack = SACK_NEVER;
	end_recreate(A, IBV_QPT_RC, NULL);
	end_recreate(B, IBV_QPT_RC, NULL);
	A->attr.timeout = 14;
	rig_connect();
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(A, 64);
	assert_true(qp_deadline_ns(A->qp) > rig.now_ns);
	qp_hasten(A->qp, rig.now_ns);
	assert_int_equal(qp_deadline_ns(A->qp), rig.now_ns);
	end_time_out(A);
	assert_int_equal(run_and_count(A, OPCODE_WRITE_ONLY), 1);
}

TEST(qp_hasten__the_peer_asks_again_for_lost_responses)
{
	rig_connect();
	greet(A);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_READ, 0, 8, 0), 0);
	end_run(A, 64);
	end_deliver(A);
	end_run(B, 64);
	assert_int_equal(hasten(), 1);
	end_deliver(B);
	assert_int_equal(run_and_count(A, OPCODE_READ_REQUEST), 1);
	end_deliver(A);
	rig_run();
	end_sent(A, 2, IBV_WC_SUCCESS);
}

/* Nothing was lost: an idle peer does nothing. A packet that comes next is as usual. */
TEST(qp_hasten__an_idle_peer_sends_nothing)
{
	rig_connect();
	greet(A);
	assert_int_equal(hasten(), 1);
	end_deliver(B);
	catcher_clear(&A->catcher);
	end_run(A, 64);
	assert_int_equal(A->catcher.count, 0);
	greet(A);
}

/* A peer that does not understand selective acknowledgements gets no packet that it did not ask
 * for. */
TEST(qp_hasten__tells_sack_capable_peers_only)
{
	rig.sack = SACK_NEVER;
	end_recreate(A, IBV_QPT_RC, NULL);
	rig_connect();
	greet(A);
	assert_int_equal(hasten(), 0);
}

/* A queue pair that is connected to itself is both ends. */
TEST(qp_receive__a_selective_acknowledgement_from_itself)
{
	struct path_attr path = {.vlan_tci = -1, .hop_limit = 64, .udp_sport = 0xc000};

	memcpy(path.sgid, A->gid, sizeof(path.sgid));
	memcpy(path.dgid, A->gid, sizeof(path.dgid));
	assert_int_equal(path_init(&A->path, &path), 0);
	memcpy(A->attr.ah_attr.grh.dgid.raw, A->gid, sizeof(A->gid));
	A->attr.dest_qp_num = FIXTURE_QPN;
	A->attr.rq_psn = A->attr.sq_psn;
	end_raise(A, IBV_QPS_RTS);
	for (uint64_t wr_id = 1; wr_id <= 2; wr_id++) {
		assert_int_equal(end_send(A, wr_id, IBV_WR_RDMA_WRITE, 0, BYTES, 0), 0);
		for (unsigned int turn = 0; turn < 8; turn++) {
			end_run(A, 64);
			for (unsigned int i = 0; i < A->catcher.count; i++) {
				if (wr_id == 1 || turn > 0 || i != 1)
					qp_receive(A->qp, catcher_at(&A->catcher, i), rig.now_ns);
			}
			catcher_clear(&A->catcher);
		}
		/* It writes to the other end's memory, with its key. */
		end_sent(A, wr_id, IBV_WC_SUCCESS);
	}
	assert_int_equal(rig_counter(COUNTER_sacks_sent), rig_counter(COUNTER_sacks_received));
	assert_true(rig_counter(COUNTER_sacks_sent) > 0);
	assert_int_equal(rig_counter(COUNTER_retransmitted_packets), 1);
	assert_int_equal(qp_deadline_ns(A->qp), UINT64_MAX);
}

TEST(qp_receive__a_selective_acknowledgement_is_for_reliable_senders_only)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_UC, IBV_QPT_UD};
	const struct packet packet = forge(B, 100);

	for (size_t i = 0; i < RTE_DIM(types); i++) {
		end_recreate(A, types[i], NULL);
		for (int to = IBV_QPS_INIT; to <= IBV_QPS_RTS; to++) {
			if (types[i] == IBV_QPT_UC)
				end_raise(A, IBV_QPS_RTS);
			qp_receive(A->qp, &packet, rig.now_ns);
			if (types[i] == IBV_QPT_UC)
				assert_int_equal(end_modify(A, IBV_QPS_RESET), 0);
		}
		assert_int_equal(rig_counter(COUNTER_rx_wrong_opcode), 3 * (i + 1));
	}
	end_recreate(A, IBV_QPT_XRC_RECV, NULL);
	end_raise(A, IBV_QPS_RTS);
	qp_receive(A->qp, &packet, rig.now_ns);
	assert_int_equal(rig_counter(COUNTER_rx_wrong_opcode), 3 * RTE_DIM(types) + 1);
	assert_int_equal(rig_counter(COUNTER_sacks_received), 0);
}

TEST(qp_run__of_the_connected_types_the_reliable_ones_take_part)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_XRC_SEND, IBV_QPT_UC};

	for (size_t i = 0; i < RTE_DIM(types); i++) {
		end_recreate(A, types[i], NULL);
		end_raise(A, IBV_QPS_RTS);
		assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
		end_run(A, 64);
		assert_int_equal(catcher_at(&A->catcher, 0)->capability,
				 types[i] == IBV_QPT_UC ? 0 : BTH_SACK_REQUEST);
		catcher_clear(&A->catcher);
	}
}

TEST(qp_receive__a_selective_acknowledgement_is_taken_from_rts_on)
{
	const struct packet packet = forge(B, 101);
	unsigned int dropped = 0;

	for (int to = IBV_QPS_RESET; to <= IBV_QPS_RTR; to++) {
		if (to > IBV_QPS_RESET)
			assert_int_equal(end_modify(A, (enum ibv_qp_state)to), 0);
		qp_receive(A->qp, &packet, rig.now_ns);
		assert_int_equal(rig_counter(COUNTER_rx_qp_state), ++dropped);
	}
	/* It is not the first request of the peer. */
	assert_int_equal(A->events, 0);
	assert_int_equal(end_modify(A, IBV_QPS_RTS), 0);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, BYTES, 0), 0);
	end_run(A, 64);
	catcher_clear(&A->catcher);
	qp_receive(A->qp, &packet, rig.now_ns);
	assert_int_equal(rig_counter(COUNTER_sacks_received), 1);
	assert_int_equal(end_modify(A, IBV_QPS_ERR), 0);
	qp_receive(A->qp, &packet, rig.now_ns);
	assert_int_equal(rig_counter(COUNTER_rx_qp_state), ++dropped);
	end_run(A, 64);
	end_sent(A, 1, IBV_WC_WR_FLUSH_ERR);
}

TEST(qp_receive__a_selective_acknowledgement_comes_from_the_peer_only)
{
	struct packet packet = forge(B, 101);

	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, BYTES, 0), 0);
	end_run(A, 64);
	packet.sgid[15] ^= 1;
	qp_receive(A->qp, &packet, rig.now_ns);
	packet.sgid[15] ^= 1;
	packet.vlan_id = 5;
	qp_receive(A->qp, &packet, rig.now_ns);
	assert_int_equal(rig_counter(COUNTER_rx_wrong_qpn), 2);
	assert_int_equal(rig_counter(COUNTER_sacks_received), 0);
	end_deliver(A);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
	assert_int_equal(rig_counter(COUNTER_retransmitted_packets), 0);
}

/* Replace B by another peer at the same address, which does not take part, and reconnect A. */
static void reconnect_to_another(void)
{
	assert_int_equal(end_modify(A, IBV_QPS_RESET), 0);
	rig.sack = SACK_NEVER;
	end_recreate(B, IBV_QPT_RC, NULL);
	rig_connect();
}

TEST(qp_modify__to_reset_forgets_that_the_peer_understands)
{
	rig_connect();
	greet(B);
	assert_int_equal(lose_one(B), 1);
	rig_run();
	end_sent(B, 2, IBV_WC_SUCCESS);
	reconnect_to_another();
	/* The new peer must never get what it does not understand, not even for its first packet.
	 */
	assert_int_equal(end_send(B, 3, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(B, 64);
	catcher_clear(&B->catcher);
	assert_int_equal(lose_one(B), 0);
	assert_int_equal(rig_counter(COUNTER_packet_seq_err), 1);
	rig_run();
	end_sent(B, 3, IBV_WC_SUCCESS);
	end_sent(B, 2, IBV_WC_SUCCESS);
}

TEST(qp_modify__to_reset_forgets_that_the_peer_is_sack_capable)
{
	struct packet packet = forge(B, 102);

	/* Capability bits would show that the new peer is SACK-capable, too. */
	packet.ack_byte = 0;
	rig_connect();
	greet(A);
	assert_int_equal(lose_one(A), 1);
	rig_run();
	end_sent(A, 2, IBV_WC_SUCCESS);
	reconnect_to_another();
	greet(A);
	/* The forged SACK acknowledges, as any answer with its PSN does, but shows no loss. */
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, BYTES, 0), 0);
	end_run(A, 64);
	qp_receive(A->qp, &packet, rig.now_ns);
	end_deliver(A);
	rig_run();
	end_sent(A, 2, IBV_WC_SUCCESS);
	assert_int_equal(rig_counter(COUNTER_retransmitted_packets), 1);
}

/* Connect two queue pairs that do not know each other. */
static void connect_strangers(enum sack_use a, enum sack_use b)
{
	rig.sack = a;
	end_recreate(A, IBV_QPT_RC, NULL);
	rig.sack = b;
	end_recreate(B, IBV_QPT_RC, NULL);
	rig_connect();
}

/* Send a short message, and return the capability bits of its packet. */
static uint8_t bits_of_request(struct end *from)
{
	uint8_t bits;

	assert_int_equal(end_send(from, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(from, 64);
	bits = catcher_at(&from->catcher, 0)->capability;
	end_deliver(from);
	rig_run();
	end_sent(from, 1, IBV_WC_SUCCESS);
	return bits;
}

/* Send a request of A, and let the introduction behind its answer get lost. */
static void lose_introduction(enum ibv_wr_opcode opcode)
{
	assert_int_equal(end_send(A, 1, opcode, 0, 8, 0), 0);
	end_run(A, 64);
	end_deliver(A);
	end_run(B, 64);
	assert_int_equal(B->catcher.count, 2);
	rig.lose[1] = 2;
	end_deliver(B);
	end_sent(A, 1, IBV_WC_SUCCESS);
}

TEST(qp_run__strangers_take_part_after_the_first_answer)
{
	connect_strangers(SACK_INTRODUCED, SACK_INTRODUCED);
	assert_int_equal(bits_of_request(A), 0);
	assert_int_equal(bits_of_request(A), BTH_SACK_REQUEST);
	/* It was about this direction alone. */
	assert_int_equal(bits_of_request(B), 0);
	assert_int_equal(lose_one(A), 1);
	rig_run();
	end_sent(A, 2, IBV_WC_SUCCESS);
}

TEST(qp_run__one_introduction_is_enough_for_two_messages)
{
	connect_strangers(SACK_INTRODUCED, SACK_INTRODUCED);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
	end_sent(A, 2, IBV_WC_SUCCESS);
	assert_int_equal(bits_of_request(A), BTH_SACK_REQUEST);
}

/* Congestion control lets one answer leave at a time. */
TEST(qp_run__introduces_itself_with_any_budget)
{
	connect_strangers(SACK_INTRODUCED, SACK_INTRODUCED);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(A, 64);
	end_deliver(A);
	end_run(B, 1);
	assert_int_equal(B->catcher.count, 2);
	end_deliver(B);
	end_sent(A, 1, IBV_WC_SUCCESS);
	assert_int_equal(bits_of_request(A), BTH_SACK_REQUEST);
}

/* Soft-RoCE takes an old acknowledgement between two responses for the end of a READ. */
TEST(qp_run__does_not_introduce_itself_between_responses)
{
	connect_strangers(SACK_INTRODUCED, SACK_INTRODUCED);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	assert_int_equal(end_send(A, 2, IBV_WR_RDMA_READ, 0, 3 * MTU, 0), 0);
	end_run(A, 64);
	end_deliver(A);
	for (unsigned int i = 0; i < 3; i++) {
		end_run(B, 1);
		assert_int_equal(B->catcher.count, i < 2 ? 1 : 2);
		end_deliver(B);
	}
	end_sent(A, 1, IBV_WC_SUCCESS);
	end_sent(A, 2, IBV_WC_SUCCESS);
	assert_int_equal(bits_of_request(A), BTH_SACK_REQUEST);
}

TEST(qp_run__a_gap_repeats_the_introduction)
{
	connect_strangers(SACK_INTRODUCED, SACK_INTRODUCED);
	lose_introduction(IBV_WR_RDMA_WRITE);
	assert_int_equal(bits_of_request(A), 0);
	assert_int_equal(lose_one(A), 0);
	rig_run();
	end_sent(A, 2, IBV_WC_SUCCESS);
	assert_int_equal(bits_of_request(A), BTH_SACK_REQUEST);
}

/* Where answers get lost, there is no gap. */
TEST(qp_run__a_request_that_comes_twice_repeats_the_introduction)
{
	connect_strangers(SACK_INTRODUCED, SACK_INTRODUCED);
	lose_introduction(IBV_WR_RDMA_READ);
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_READ, 0, 8, 0), 0);
	end_run(A, 64);
	end_deliver(A);
	end_run(B, 64);
	assert_int_equal(B->catcher.count, 1);
	catcher_clear(&B->catcher);
	rig.now_ns = qp_deadline_ns(A->qp);
	qp_timeout(A->qp, rig.now_ns, &A->catcher.sink);
	rig_run();
	end_sent(A, 1, IBV_WC_SUCCESS);
	assert_int_equal(bits_of_request(A), BTH_SACK_REQUEST);
}

/* An adapter gets a few acknowledgements of what it has acknowledged before, and no bit. */
TEST(qp_run__introduces_itself_four_times_at_most)
{
	unsigned int introductions = 0;

	connect_strangers(SACK_NEVER, SACK_INTRODUCED);
	lose_introduction(IBV_WR_RDMA_WRITE);
	for (int i = 0; i < 2 * SACK_INTRODUCTIONS_MAX; i++) {
		assert_int_equal(end_send(A, 2, IBV_WR_RDMA_WRITE, 0, BYTES, 0), 0);
		end_run(A, 64);
		rig.lose[0] = 2;
		end_deliver(A);
		end_run(B, 64);
		for (unsigned int k = 0; k < B->catcher.count; k++) {
			const struct packet *packet = catcher_at(&B->catcher, k);

			assert_int_equal(packet->opcode, OPCODE_ACKNOWLEDGE);
			assert_int_equal(packet->capability, 0);
			introductions += packet->syndrome == (AETH_ACK | AETH_CREDIT_NONE);
		}
		end_deliver(B);
		rig_run();
		end_sent(A, 2, IBV_WC_SUCCESS);
		assert_int_equal(bits_of_request(A), 0);
	}
	assert_int_equal(introductions, SACK_INTRODUCTIONS_MAX - 1);
}

/* Whoever knows which PSNs are in flight can forge any answer; who does not, no introduction. */
TEST(qp_receive__believes_an_introduction_about_what_is_in_flight)
{
	static const struct {
		int psns;     /* from the oldest in flight to the PSN that it is about */
		uint32_t msn; /* changed by this */
		uint8_t syndrome;
		bool believed;
	} cases[] = {
		{0, 0, AETH_ACK | AETH_CREDIT_NONE, true},
		{1, 0, AETH_ACK | AETH_CREDIT_NONE, true},
		{2, 0, AETH_ACK | AETH_CREDIT_NONE, false},
		/* Others that came in the same poll are acknowledged, too. */
		{-LOSS_WINDOW_MAX, 0, AETH_ACK | AETH_CREDIT_NONE, true},
		{-LOSS_WINDOW_MAX - 1, 0, AETH_ACK | AETH_CREDIT_NONE, false},
		{0, 1, AETH_ACK | AETH_CREDIT_NONE, false},
		{0, 0, AETH_NAK | NAK_PSN_SEQUENCE, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct psn about = psn_add(psn_make(101), cases[i].psns);
		struct packet packet = forge(B, psn_add(about, -SACK_INTRODUCTION_PSNS).v);

		connect_strangers(SACK_INTRODUCED, SACK_NEVER);
		greet(A);
		assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
		end_run(A, 64);
		packet.opcode = OPCODE_RC | OPCODE_ACKNOWLEDGE;
		packet.op = opcode_info(packet.opcode);
		packet.syndrome = cases[i].syndrome;
		packet.msn = sack_introduction_msn(about, packet.dest_qpn) ^ cases[i].msn;
		packet.ack_byte = 0;
		qp_receive(A->qp, &packet, rig.now_ns);
		end_deliver(A);
		rig_run();
		end_sent(A, 1, IBV_WC_SUCCESS);
		assert_int_equal(bits_of_request(A), cases[i].believed ? BTH_SACK_REQUEST : 0);
	}
}

TEST(qp_receive__an_introduction_is_nothing_to_one_that_never_takes_part)
{
	connect_strangers(SACK_NEVER, SACK_INTRODUCED);
	greet(A);
	assert_int_equal(bits_of_request(A), 0);
}

TEST(qp_modify__to_reset_forgets_an_introduction)
{
	connect_strangers(SACK_INTRODUCED, SACK_INTRODUCED);
	greet(A);
	assert_int_equal(bits_of_request(A), BTH_SACK_REQUEST);
	assert_int_equal(end_modify(A, IBV_QPS_RESET), 0);
	assert_int_equal(end_modify(B, IBV_QPS_RESET), 0);
	rig_connect();
	assert_int_equal(bits_of_request(A), 0);
}

/* A queue pair that keeps no packets never takes part. */
TEST(qp_create__sack_needs_a_pool)
{
	struct ooo_pool *const pool = rig.ooo;

	rig.ooo = NULL;
	end_recreate(A, IBV_QPT_RC, NULL);
	rig.ooo = pool;
	rig_connect();
	assert_int_equal(bits_of_request(A), 0);
}

TEST(qp_receive__one_that_does_not_take_part_sets_no_capability_bits)
{
	rig.sack = SACK_NEVER;
	end_recreate(A, IBV_QPT_RC, NULL);
	rig_connect();
	assert_int_equal(end_send(A, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(A, 64);
	assert_int_equal(catcher_at(&A->catcher, 0)->capability, 0);
	end_deliver(A);
	end_run(B, 64);
	assert_int_equal(catcher_at(&B->catcher, 0)->capability, 0);
	end_deliver(B);
	end_sent(A, 1, IBV_WC_SUCCESS);
	/* Nor does it answer one. */
	assert_int_equal(end_send(B, 2, IBV_WR_RDMA_WRITE, 0, BYTES, 0), 0);
	end_run(B, 64);
	assert_int_equal(catcher_at(&B->catcher, 0)->capability, BTH_SACK_REQUEST);
	rig.lose[1] = 2;
	end_deliver(B);
	assert_int_equal(run_and_count(A, OPCODE_SACK), 0);
	assert_int_equal(A->catcher.count, 1);
	assert_int_equal(catcher_at(&A->catcher, 0)->capability, 0);
	/* It drops one that is forged. */
	{
		const struct packet packet = forge(B, 101);

		assert_int_equal(end_send(A, 3, IBV_WR_RDMA_WRITE, 0, BYTES, 0), 0);
		end_run(A, 64);
		qp_receive(A->qp, &packet, rig.now_ns);
		assert_int_equal(rig_counter(COUNTER_sacks_received), 0);
	}
	rig_run();
	end_sent(A, 3, IBV_WC_SUCCESS);
	end_sent(B, 2, IBV_WC_SUCCESS);
}

/* A queue pair that keeps no packets cannot take part. */
TEST(qp_create__without_a_pool_there_are_no_selective_acknowledgements)
{
	struct ooo_pool *pool = rig.ooo;

	rig.ooo = NULL;
	end_recreate(B, IBV_QPT_RC, NULL);
	rig.ooo = pool;
	rig_connect();
	assert_int_equal(end_send(B, 1, IBV_WR_RDMA_WRITE, 0, 8, 0), 0);
	end_run(B, 64);
	assert_int_equal(catcher_at(&B->catcher, 0)->capability, 0);
	catcher_clear(&B->catcher);
	greet(A);
	assert_int_equal(lose_one(A), 0);
	rig_run();
	end_sent(A, 2, IBV_WC_SUCCESS);
}
