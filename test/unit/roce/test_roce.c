/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of libroce by its public header alone: two devices that exchange frames in memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <roce/roce.h>

#include "test.h"

#define BYTES	  20000
#define FRAMES	  256
#define PSN	  0xffff00u
#define SECOND_NS UINT64_C(1000000000)
#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define TOS_AT 15 /* of an IPv4 header, in an untagged frame */
#define ID_AT  18

struct frame {
	size_t len;
	uint8_t bytes[ROCE_FRAME_MAX];
};

/* One device, and the frames that it has sent. */
static struct end {
	struct roce *roce;
	struct roce_qp *qp;
	uint8_t memory[BYTES];
	uint32_t key;
	struct frame *frames;
	uint32_t sent;
	uint32_t room; /* frames that it may send */
	struct roce_qp *event_qp;
	int event; /* the last one; -1: none */
} ends[2];

static uint64_t now_ns;

static uint8_t *next_frame(void *user)
{
	struct end *end = user;

	return end->sent < end->room ? end->frames[end->sent].bytes : NULL;
}

static void send_frame(void *user, uint8_t *frame, size_t len)
{
	struct end *end = user;

	assert_ptr_equal(frame, end->frames[end->sent].bytes);
	end->frames[end->sent++].len = len;
}

static void note_event(void *user, struct roce_qp *qp, enum ibv_event_type type)
{
	struct end *end = user;

	end->event_qp = qp;
	end->event = (int)type;
}

static const struct roce_host host = {.frame = next_frame, .send = send_frame, .event = note_event};

static struct roce_config config_of(uint8_t number)
{
	struct roce_config config = {
		.mac = {2, 0, 0, 0, 0, number}, .mtu_bytes = 1500, .completions = 64};
	const uint8_t gid[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = number};

	memcpy(config.gid, gid, sizeof(gid));
	return config;
}

static int move_to(struct roce_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	const struct roce_hop hop = {.mac = {2, 0, 0, 0, 0, 9}, .udp_sport = 4791};

	return roce_qp_modify(qp, attr, IBV_QP_STATE | mask, &hop);
}

static void connect_to(struct end *end, const struct end *peer, uint8_t peer_number)
{
	const struct roce_config config = config_of(peer_number);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.qp_access_flags = ACCESS,
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = roce_qp_number(peer->qp),
		.rq_psn = PSN,
		.sq_psn = PSN,
		.max_rd_atomic = 2,
		.max_dest_rd_atomic = 2,
		.timeout = 14,
		.retry_cnt = 1,
		.ah_attr = {.is_global = 1, .port_num = 1},
	};

	memcpy(attr.ah_attr.grh.dgid.raw, config.gid, sizeof(config.gid));
	assert_int_equal(
		move_to(end->qp, &attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(move_to(end->qp, &attr,
				 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
			 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(move_to(end->qp, &attr,
				 IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
			 0);
}

static const struct roce_qp_init qp_init = {
	.type = IBV_QPT_RC,
	.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
	.signal_all = true,
};

static int set_up(TEST_STATE)
{
	now_ns = SECOND_NS;
	for (uint8_t i = 0; i < 2; i++) {
		const struct roce_config config = config_of(i);
		struct end *end = &ends[i];

		*end = (struct end){.room = FRAMES, .event = -1};
		end->frames = calloc(FRAMES, sizeof(struct frame));
		assert_non_null(end->frames);
		assert_int_equal(roce_create(&config, &host, end, &end->roce), 0);
		assert_int_equal(roce_register(end->roce, end->memory, BYTES, ACCESS, &end->key),
				 0);
		assert_int_equal(roce_qp_create(end->roce, &qp_init, &end->qp), 0);
	}
	connect_to(&ends[0], &ends[1], 1);
	connect_to(&ends[1], &ends[0], 0);
	return 0;
}

static int tear_down(TEST_STATE)
{
	for (int i = 0; i < 2; i++) {
		roce_qp_destroy(ends[i].qp);
		assert_int_equal(roce_deregister(ends[i].roce, ends[i].key), 0);
		assert_int_equal(roce_destroy(ends[i].roce), 0);
		free(ends[i].frames);
	}
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

/* Take what a device has sent to the other one; without ROCE_SUMS_GOOD it checks all of it. */
static void deliver(struct end *from, struct end *to)
{
	for (uint32_t i = 0; i < from->sent; i++)
		assert_true(roce_receive(to->roce, from->frames[i].bytes, from->frames[i].len, 0,
					 now_ns));
	from->sent = 0;
}

/* Run both until neither sends any more. */
static void settle(void)
{
	do {
		for (int i = 0; i < 2; i++) {
			while (roce_run(ends[i].roce, now_ns))
				deliver(&ends[i], &ends[!i]);
			deliver(&ends[i], &ends[!i]);
		}
	} while (roce_run(ends[0].roce, now_ns) || ends[0].sent > 0);
}

static void post(enum ibv_wr_opcode opcode, uint32_t length)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)ends[0].memory, .length = length, .lkey = ends[0].key};
	struct ibv_send_wr wr = {
		.wr_id = 7,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.wr.rdma = {.remote_addr = (uintptr_t)ends[1].memory, .rkey = ends[1].key},
	};
	struct ibv_send_wr *bad;

	assert_int_equal(roce_post_send(ends[0].qp, &wr, &bad), 0);
}

static void expect_done(struct end *end, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	assert_int_equal(roce_poll(end->roce, 1, &wc), 1);
	assert_int_equal(wc.status, status);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(wc.qp_num, roce_qp_number(end->qp));
}

static void fill(struct end *end)
{
	for (uint32_t i = 0; i < BYTES; i++)
		end->memory[i] = (uint8_t)(i * 7 + 1);
}

TEST(roce_run__a_write_arrives)
{
	fill(&ends[0]);
	post(IBV_WR_RDMA_WRITE, BYTES);
	settle();
	expect_done(&ends[0], IBV_WC_SUCCESS);
	assert_memory_equal(ends[0].memory, ends[1].memory, BYTES);
	assert_int_equal(roce_deadline_ns(ends[0].roce), UINT64_MAX);
}

TEST(roce_run__a_read_fetches)
{
	fill(&ends[1]);
	post(IBV_WR_RDMA_READ, BYTES);
	settle();
	expect_done(&ends[0], IBV_WC_SUCCESS);
	assert_memory_equal(ends[0].memory, ends[1].memory, BYTES);
}

TEST(roce_post_recv__a_send_takes_it)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)ends[1].memory, .length = BYTES, .lkey = ends[1].key};
	struct ibv_recv_wr wr = {.wr_id = 7, .sg_list = &sge, .num_sge = 1}, *bad;

	fill(&ends[0]);
	assert_int_equal(roce_post_recv(ends[1].qp, &wr, &bad), 0);
	post(IBV_WR_SEND, 100);
	settle();
	expect_done(&ends[0], IBV_WC_SUCCESS);
	expect_done(&ends[1], IBV_WC_SUCCESS);
	assert_memory_equal(ends[0].memory, ends[1].memory, 100);
}

TEST(roce_run__true_while_the_host_has_no_room)
{
	ends[0].room = 3;
	post(IBV_WR_RDMA_WRITE, BYTES);
	assert_true(roce_run(ends[0].roce, now_ns));
	assert_int_equal(ends[0].sent, 3);
	assert_true(roce_run(ends[0].roce, now_ns));
	assert_int_equal(ends[0].sent, 3);
	settle();
	expect_done(&ends[0], IBV_WC_SUCCESS);
}

TEST(roce_deadline_ns__a_lost_packet_is_sent_again_then)
{
	uint64_t deadline_ns;

	fill(&ends[0]);
	post(IBV_WR_RDMA_WRITE, 100);
	roce_run(ends[0].roce, now_ns);
	assert_int_equal(ends[0].sent, 1);
	ends[0].sent = 0;
	deadline_ns = roce_deadline_ns(ends[0].roce);
	assert_true(deadline_ns > now_ns && deadline_ns < now_ns + SECOND_NS);
	now_ns = deadline_ns - 1;
	roce_run(ends[0].roce, now_ns);
	assert_int_equal(ends[0].sent, 0);
	now_ns = deadline_ns;
	settle();
	expect_done(&ends[0], IBV_WC_SUCCESS);
	assert_memory_equal(ends[0].memory, ends[1].memory, 100);
}

TEST(roce_run__the_retries_of_a_silent_peer_run_out)
{
	post(IBV_WR_RDMA_WRITE, 100);
	roce_run(ends[0].roce, now_ns);
	for (int i = 0; i < 20 && roce_deadline_ns(ends[0].roce) != UINT64_MAX; i++) {
		now_ns = roce_deadline_ns(ends[0].roce);
		roce_run(ends[0].roce, now_ns);
	}
	expect_done(&ends[0], IBV_WC_RETRY_EXC_ERR);
}

TEST(roce_deregister__the_peer_is_refused)
{
	const uint32_t key = ends[1].key;
	uint8_t other[8] = {0};

	assert_int_equal(roce_deregister(ends[1].roce, key), 0);
	assert_int_equal(roce_deregister(ends[1].roce, key), -EINVAL);
	assert_int_equal(roce_register(ends[1].roce, other, sizeof(other), ACCESS, &ends[1].key),
			 0);
	assert_int_not_equal(ends[1].key, key);
	post(IBV_WR_RDMA_WRITE, 100); /* longer than the region, and not in it */
	settle();
	expect_done(&ends[0], IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ends[1].event, IBV_EVENT_QP_ACCESS_ERR);
	assert_ptr_equal(ends[1].event_qp, ends[1].qp);
}

TEST(roce_receive__a_changed_byte_is_dropped)
{
	fill(&ends[0]);
	post(IBV_WR_RDMA_WRITE, 100);
	roce_run(ends[0].roce, now_ns);
	ends[0].frames[0].bytes[80] ^= 1;
	deliver(&ends[0], &ends[1]);
	ends[0].frames[0].bytes[80] ^= 1;
	for (int i = 0; i < 100; i++)
		assert_int_equal(ends[1].memory[i], 0);
}

TEST(roce_receive__any_identification_if_it_is_unknown)
{
	struct frame *const frame = &ends[0].frames[0];

	fill(&ends[0]);
	post(IBV_WR_RDMA_WRITE, 100);
	roce_run(ends[0].roce, now_ns);
	frame->bytes[ID_AT] ^= 0x12;
	frame->bytes[ID_AT + 1] ^= 0x34;
	roce_receive(ends[1].roce, frame->bytes, frame->len, ROCE_SUMS_GOOD, now_ns);
	assert_int_equal(ends[1].memory[0], 0);
	roce_receive(ends[1].roce, frame->bytes, frame->len, ROCE_SUMS_GOOD | ROCE_ID_UNKNOWN,
		     now_ns);
	assert_memory_equal(ends[0].memory, ends[1].memory, 100);
	assert_int_equal(frame->bytes[ID_AT] | frame->bytes[ID_AT + 1], 0);
}

TEST(roce_receive__an_unknown_identification_makes_nothing_else_right)
{
	struct frame *const frame = &ends[0].frames[0];

	fill(&ends[0]);
	post(IBV_WR_RDMA_WRITE, 100);
	roce_run(ends[0].roce, now_ns);
	for (size_t at = ID_AT + 8; at < frame->len; at++) {
		struct frame bad = *frame;

		bad.bytes[at] ^= 0x81;
		/* The UDP checksum and bits beside the BECN are not covered. */
		if (at == 40 || at == 41 || at == 46)
			continue;
		roce_receive(ends[1].roce, bad.bytes, bad.len, ROCE_SUMS_GOOD | ROCE_ID_UNKNOWN,
			     now_ns);
		assert_int_equal(ends[1].memory[0], 0);
	}
	/* Frames of every length, the last byte of which ends the memory. */
	for (size_t len = 0; len < frame->len; len++) {
		uint8_t *bytes = malloc(len ? len : 1);

		assert_non_null(bytes);
		memcpy(bytes, frame->bytes, len);
		roce_receive(ends[1].roce, bytes, len, ROCE_SUMS_GOOD | ROCE_ID_UNKNOWN, now_ns);
		free(bytes);
	}
	assert_int_equal(ends[1].memory[0], 0);
}

TEST(roce_receive__other_frames_are_not_taken)
{
	uint8_t arp[60] = {[12] = 0x08, [13] = 0x06};

	assert_false(roce_receive(ends[0].roce, arp, sizeof(arp), 0, now_ns));
	assert_false(roce_receive(ends[0].roce, arp, sizeof(arp), ROCE_ID_UNKNOWN, now_ns));
}

TEST(roce_qp_destroy__with_work_in_flight)
{
	struct roce_qp *qp;
	struct ibv_wc wc;

	post(IBV_WR_RDMA_WRITE, BYTES);
	roce_run(ends[0].roce, now_ns);
	qp = ends[0].qp;
	assert_int_equal(roce_qp_create(ends[0].roce, &qp_init, &ends[0].qp), 0);
	assert_int_not_equal(roce_qp_number(ends[0].qp), roce_qp_number(qp));
	roce_qp_destroy(qp);
	settle();
	assert_int_equal(roce_poll(ends[0].roce, 1, &wc), 0);
}

TEST(roce_create__checks_the_configuration)
{
	struct roce_config config = config_of(3);
	struct roce *roce;

	config.mtu_bytes = 300;
	assert_int_equal(roce_create(&config, &host, NULL, &roce), -EINVAL);
	config = config_of(3);
	config.completions = 0;
	assert_int_equal(roce_create(&config, &host, NULL, &roce), -EINVAL);
	config = config_of(3);
	config.cc = "fast";
	assert_int_equal(roce_create(&config, &host, NULL, &roce), -EINVAL);
	config = config_of(3);
	memset(config.gid, 0, sizeof(config.gid));
	assert_int_equal(roce_create(&config, &host, NULL, &roce), -EINVAL);
	config = config_of(3);
	config.cc = "swift";
	assert_int_equal(roce_create(&config, &host, NULL, &roce), 0);
	assert_int_equal(roce_destroy(roce), 0);
}

TEST(roce_destroy__not_while_something_is_left)
{
	const struct roce_config config = config_of(3);
	struct roce_qp *qp;
	struct roce *roce;
	uint8_t byte;
	uint32_t key;

	assert_int_equal(roce_create(&config, &host, NULL, &roce), 0);
	assert_int_equal(roce_register(roce, &byte, 1, ACCESS, &key), 0);
	assert_int_equal(roce_destroy(roce), -EBUSY);
	assert_int_equal(roce_deregister(roce, key), 0);
	assert_int_equal(roce_qp_create(roce, &qp_init, &qp), 0);
	assert_int_equal(roce_destroy(roce), -EBUSY);
	roce_qp_destroy(qp);
	assert_int_equal(roce_destroy(roce), 0);
}

TEST(roce_qp_create__checks_type_and_sizes)
{
	struct roce_qp_init init = qp_init;
	struct roce_qp *qp;

	init.type = IBV_QPT_UD;
	assert_int_equal(roce_qp_create(ends[0].roce, &init, &qp), -EOPNOTSUPP);
	init = qp_init;
	init.cap.max_send_wr = 1 << 20;
	assert_int_equal(roce_qp_create(ends[0].roce, &init, &qp), -EINVAL);
}

/* Congestion control that allows two packets, and one after a loss. */
static struct {
	struct roce_cc *cc;
	uint32_t starts, polls, sent_bytes, answers, losses;
	uint64_t rtt_ns;
} seen;

struct two {
	struct roce_cc cc;
	uint64_t mark; /* zero in a new connection */
};

static void two_start(struct roce_cc *cc)
{
	assert_int_equal(((struct two *)cc)->mark, 0);
	((struct two *)cc)->mark = 1;
	assert_int_equal(cc->window_pkts, UINT32_MAX);
	assert_int_equal(cc->timer_ns, UINT64_MAX);
	seen.cc = cc;
	seen.starts++;
	cc->window_pkts = 2;
}

static void two_poll(struct roce_cc *cc, uint64_t at_ns)
{
	assert_ptr_equal(cc, seen.cc);
	assert_int_equal(at_ns, now_ns);
	seen.polls++;
}

static void two_sent(struct roce_cc *cc, uint32_t bytes, uint32_t psns, uint64_t at_ns)
{
	assert_ptr_equal(cc, seen.cc);
	assert_int_equal(psns, 1);
	assert_int_equal(at_ns, now_ns);
	seen.sent_bytes += bytes;
}

static void two_answered(struct roce_cc *cc, uint64_t rtt_ns, uint32_t psns, uint64_t at_ns)
{
	(void)cc;
	(void)psns;
	assert_int_equal(at_ns, now_ns);
	seen.answers++;
	seen.rtt_ns = rtt_ns;
}

static void two_lost(struct roce_cc *cc, uint64_t at_ns)
{
	(void)at_ns;
	seen.losses++;
	cc->window_pkts = 0;
}

static const struct roce_cc_ops two = {
	.bytes = sizeof(struct two),
	.times = true,
	.start = two_start,
	.poll = two_poll,
	.sent = two_sent,
	.answered = two_answered,
	.lost = two_lost,
};

/* Give both queue pairs this congestion control; NULL: none. */
static void control(const struct roce_cc_ops *ops, const struct roce_cc_ops *peer_ops)
{
	struct roce_qp_init init = qp_init;

	memset(&seen, 0, sizeof(seen));
	init.cc = ops;
	for (int i = 0; i < 2; i++)
		roce_qp_destroy(ends[i].qp);
	assert_int_equal(roce_qp_create(ends[0].roce, &init, &ends[0].qp), 0);
	init.cc = peer_ops;
	assert_int_equal(roce_qp_create(ends[1].roce, &init, &ends[1].qp), 0);
	connect_to(&ends[0], &ends[1], 1);
	connect_to(&ends[1], &ends[0], 0);
}

TEST(roce_cc_ops__the_window_counts)
{
	control(&two, NULL);
	fill(&ends[0]);
	post(IBV_WR_RDMA_WRITE, BYTES);
	assert_false(roce_run(ends[0].roce, now_ns));
	assert_int_equal(ends[0].sent, 2);
	assert_true(seen.starts > 0 && seen.polls > 0);
	assert_true(seen.sent_bytes >= 2048);
	deliver(&ends[0], &ends[1]);
	now_ns += 5000;
	settle();
	expect_done(&ends[0], IBV_WC_SUCCESS);
	assert_memory_equal(ends[0].memory, ends[1].memory, BYTES);
	assert_true(seen.answers > 0);
	assert_int_equal(seen.losses, 0);
}

TEST(roce_cc_ops__round_trips_are_told)
{
	control(&two, NULL);
	post(IBV_WR_RDMA_WRITE, 100);
	roce_run(ends[0].roce, now_ns);
	deliver(&ends[0], &ends[1]);
	now_ns += 5000;
	settle();
	assert_int_equal(seen.answers, 1);
	assert_int_equal(seen.rtt_ns, 5000);
}

TEST(roce_cc_ops__a_loss_is_told)
{
	control(&two, NULL);
	post(IBV_WR_RDMA_WRITE, BYTES);
	roce_run(ends[0].roce, now_ns);
	ends[0].sent = 0;
	for (int i = 0; i < 10 && seen.losses == 0; i++) {
		ends[0].sent = 0;
		now_ns = roce_deadline_ns(ends[0].roce);
		roce_run(ends[0].roce, now_ns);
	}
	assert_int_equal(seen.losses, 1);
	settle();
	expect_done(&ends[0], IBV_WC_SUCCESS);
}

static void slow_start(struct roce_cc *cc)
{
	cc->rate_kbps = 1000;
}

TEST(roce_cc_ops__the_rate_counts)
{
	static const struct roce_cc_ops slow = {.bytes = sizeof(struct roce_cc),
						.start = slow_start};
	uint64_t deadline_ns;

	control(&slow, NULL);
	post(IBV_WR_RDMA_WRITE, BYTES);
	roce_run(ends[0].roce, now_ns);
	assert_int_equal(ends[0].sent, 1);
	deliver(&ends[0], &ends[1]);
	roce_run(ends[1].roce, now_ns);
	deliver(&ends[1], &ends[0]);
	roce_run(ends[0].roce, now_ns);
	assert_int_equal(ends[0].sent, 0);
	deadline_ns = roce_deadline_ns(ends[0].roce);
	/* A kilobyte takes 8 ms. */
	assert_in_range(deadline_ns - now_ns, 8000000, 10000000);
	now_ns = deadline_ns;
	roce_run(ends[0].roce, now_ns);
	assert_int_equal(ends[0].sent, 1);
}

static void note_notified(struct roce_cc *cc, uint64_t at_ns)
{
	(void)cc;
	assert_int_equal(at_ns, now_ns);
	seen.answers++;
}

TEST(roce_cc_ops__a_marked_packet_is_notified)
{
	static const struct roce_cc_ops marked = {
		.bytes = sizeof(struct roce_cc), .marks = true, .notified = note_notified};
	struct frame *const frame = &ends[0].frames[0];

	control(&marked, &marked);
	post(IBV_WR_RDMA_WRITE, 100);
	roce_run(ends[0].roce, now_ns);
	assert_int_equal(frame->bytes[TOS_AT] & 3, 2);
	frame->bytes[TOS_AT] |= 3;
	roce_receive(ends[1].roce, frame->bytes, frame->len, ROCE_SUMS_GOOD, now_ns);
	roce_run(ends[1].roce, now_ns);
	deliver(&ends[1], &ends[0]);
	assert_int_equal(seen.answers, 1);
	expect_done(&ends[0], IBV_WC_SUCCESS);
}

TEST(roce_qp_create__checks_congestion_control)
{
	struct roce_cc_ops ops = two;
	struct roce_qp_init init = qp_init;
	struct roce_qp *qp;

	init.cc = &ops;
	init.type = IBV_QPT_UC;
	assert_int_equal(roce_qp_create(ends[0].roce, &init, &qp), -EOPNOTSUPP);
	ops.times = false;
	assert_int_equal(roce_qp_create(ends[0].roce, &init, &qp), 0);
	roce_qp_destroy(qp);
	ops.bytes = sizeof(struct roce_cc) - 1;
	assert_int_equal(roce_qp_create(ends[0].roce, &init, &qp), -EINVAL);
}

TEST(roce_register__checks_access)
{
	uint32_t key;

	assert_int_equal(roce_register(ends[0].roce, ends[0].memory, BYTES,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND, &key),
			 -EINVAL);
	assert_int_equal(
		roce_register(ends[0].roce, ends[0].memory, BYTES, IBV_ACCESS_REMOTE_WRITE, &key),
		-EINVAL);
}
