/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/psock/psock.c, receive.c and send.c: RoCE over a cable between two interfaces. */
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <rte_mbuf.h>

#include "base/tuning.h"
#include "eal/runtime.h"
#include "open_fds.h"
#include "frames.h"
#include "netdev/mute.h"
#include "netns.h"
#include "psock/psock.h"
#include "test.h"

#define MBUFS	 256
#define ROOM	 4480
#define MAX	 40
#define DEADLINE 30000 /* ms */

#define RING_FRAMES 480 /* that the kernel keeps for a socket at a time */

static bool have_network, have_runs;
static uint16_t mark = RTE_MBUF_PORT_INVALID; /* of what is sent */
static struct rte_mempool *pool;
static struct psock *left, *right;
static uint8_t sent[MAX][FRAME_MAX];
static uint32_t lens[MAX];

static struct psock *open_on(const char *ifname)
{
	struct psock *psock;

	assert_int_equal(psock_open(&psock, pool), 0);
	assert_int_equal(mute_packet_socket(psock_fd(psock)), 0);
	assert_int_equal(psock_start(psock, if_nametoindex(ifname)), 0);
	return psock;
}

static int set_up(TEST_STATE)
{
	if (!have_network)
		return 0;
	netns_run("ip link set left gso_max_size 65536");
	left = open_on("left");
	right = open_on("right");
	return 0;
}

static int tear_down(TEST_STATE)
{
	if (!have_network)
		return 0;
	psock_close(left);
	psock_close(right);
	tuning.runs = true;
	mark = RTE_MBUF_PORT_INVALID;
	/* Nothing keeps a buffer. */
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

/* Frames that the interface has counted as sent. */
static unsigned long left_has_sent(void)
{
	unsigned long count = 0;
	FILE *file = popen("ip -s -o link show left | sed 's/.*TX: *[^\\\\]*\\\\ *[0-9]* "
			   "*\\([0-9]*\\).*/\\1/'",
			   "r");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu", &count), 1);
	pclose(file);
	return count;
}

static struct rte_mbuf *mbuf_of(uint32_t i)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);

	assert_non_null(mbuf);
	mbuf->port = mark;
	memcpy(rte_pktmbuf_append(mbuf, (uint16_t)lens[i]), sent[i], lens[i]);
	return mbuf;
}

/* Send `n` like the first, the last of them shorter. */
static void send_frames(struct frame frame, uint32_t n)
{
	struct rte_mbuf *mbufs[MAX];

	for (uint32_t i = 0; i < n; i++) {
		frame.psn = i;
		frame.fill = (uint8_t)i;
		if (i + 1 == n)
			frame.len -= 4;
		lens[i] = frame_make(&frame, sent[i]);
		mbufs[i] = mbuf_of(i);
		frame.id++;
	}
	assert_int_equal(psock_tx_burst(left, mbufs, (uint16_t)n), n);
}

/* The next ones that come, which is waited for. */
static uint16_t receive(struct rte_mbuf **mbufs, uint16_t n)
{
	struct pollfd pfd = {.fd = psock_fd(right), .events = POLLIN};
	uint16_t received = psock_rx_burst(right, mbufs, n);

	if (received == 0) {
		assert_int_equal(poll(&pfd, 1, DEADLINE), 1);
		received = psock_rx_burst(right, mbufs, n);
	}
	return received;
}

/* A checksum that was left out is no difference. */
static void assert_is_sent(const struct rte_mbuf *mbuf, uint32_t i, uint32_t sum_at)
{
	uint8_t *at = rte_pktmbuf_mtod(mbuf, uint8_t *);

	assert_int_equal(mbuf->data_len, lens[i]);
	assert_int_equal(mbuf->pkt_len, lens[i]);
	assert_true(frame_is_right(at, lens[i]));
	memset(at + sum_at, 0, 2);
	memset(sent[i] + sum_at, 0, 2);
	assert_memory_equal(at, sent[i], lens[i]);
}

static void receive_frames(const struct frame *like, uint32_t n, uint16_t burst)
{
	const uint32_t sum_at = 14u + (like->tagged ? 4 : 0) + (like->ipv6 ? 40 : 20) + 6;
	struct rte_mbuf *mbufs[MAX];

	for (uint32_t i = 0; i < n;) {
		const uint16_t received = receive(mbufs, burst);

		for (uint16_t j = 0; j < received; j++, i++) {
			assert_true(i < n);
			assert_is_sent(mbufs[j], i, sum_at);
			rte_pktmbuf_free(mbufs[j]);
		}
	}
	assert_int_equal(psock_rx_burst(right, mbufs, burst), 0);
}

/* The long ones come first. */
#define LONG_KINDS 4
static const struct frame kinds[] = {
	{.id = 0xfff8, .len = 4096},   {.ipv6 = true, .len = 4096},
	{.tagged = true, .len = 4096}, {.ipv6 = true, .tagged = true, .len = 4096},
	{.id = 1, .len = 8},	       {.ipv6 = true, .len = 8},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* 15 frames of each of the first kinds, which would be a run. */
static void assert_leave_one_by_one(size_t of_kinds)
{
	for (size_t i = 0; i < of_kinds; i++) {
		const unsigned long before = left_has_sent();

		send_frames(kinds[i], 15);
		receive_frames(&kinds[i], 15, MAX);
		assert_true(left_has_sent() - before >= 15);
	}
}

static int group_set_up(TEST_STATE)
{
	const struct runtime_config config = {.memory_bytes = 4 << 20};
	unsigned long before;

	have_network = netns_enter();
	if (!have_network)
		return 0;
	if (runtime_start(&config) != 0)
		return -1;
	pool = rte_pktmbuf_pool_create("psock", MBUFS, 0, 0, ROOM + RTE_PKTMBUF_HEADROOM,
				       SOCKET_ID_ANY);
	if (!pool)
		return -1;
	/* Linux before 6.2 takes none. */
	set_up(state);
	before = left_has_sent();
	send_frames(kinds[0], 15);
	receive_frames(&kinds[0], 15, MAX);
	have_runs = left_has_sent() - before < 15;
	return tear_down(state);
}

TEST_GROUP(group_set_up, NULL);

TEST(psock_tx_burst__sends_a_run_in_one_piece)
{
	if (!have_runs)
		skip();
	for (size_t i = 0; i < KINDS; i++) {
		const unsigned long before = left_has_sent();

		send_frames(kinds[i], 15);
		receive_frames(&kinds[i], 15, MAX);
		/* The kernel may have said something itself, but not that often. */
		assert_in_range(left_has_sent() - before, 1, 9);
	}
}

/* On this path the kernel fills in fields that the ICRC covers. */
TEST(psock_tx_burst__is_understood_where_the_kernel_parts_runs)
{
	if (!have_network || !netns_run("ip link set left gso_max_size 1000"))
		skip();
	assert_leave_one_by_one(LONG_KINDS);
}

TEST(psock_tx_burst__sends_one_by_one_what_is_no_run)
{
	if (!have_network)
		skip();
	tuning.runs = false;
	assert_leave_one_by_one(KINDS);
}

TEST(psock_tx_burst__sends_one_by_one_what_is_marked)
{
	if (!have_network)
		skip();
	mark = PSOCK_ALONE;
	assert_leave_one_by_one(KINDS);
}

/* Alone, and two in a run that is still short: in one place, and with the longest in pieces. */
TEST(psock_tx_burst__sends_few_at_once)
{
	if (!have_network)
		skip();
	for (size_t i = 0; i < KINDS; i++) {
		for (uint32_t n = 1; n <= 2; n++) {
			send_frames(kinds[i], n);
			receive_frames(&kinds[i], n, MAX);
		}
	}
}

TEST(psock_tx_burst__loses_what_the_interface_does_not_take)
{
	struct pollfd pfd = {.events = POLLIN};
	struct rte_mbuf *mbufs[MAX];
	uint64_t packets, bytes, before_packets, before_bytes;
	int tries = 0, received = 0;

	if (!have_network)
		skip();
	pfd.fd = psock_fd(right);
	assert_true(netns_run("ip link set left down"));
	psock_refused(left, &before_packets, &before_bytes);
	send_frames(kinds[0], 15);
	psock_refused(left, &packets, &bytes);
	assert_int_equal(packets - before_packets, 15);
	assert_true(bytes - before_bytes > packets - before_packets);
	assert_true(netns_run("ip link set left up"));
	/* The kernel takes a moment to bring the link up. */
	do
		send_frames(kinds[0], 15);
	while (poll(&pfd, 1, DEADLINE / 100) == 0 && ++tries < 100);
	/* Frames of earlier tries may arrive too. */
	while (received < 15) {
		const uint16_t n = receive(mbufs, MAX);

		rte_pktmbuf_free_bulk(mbufs, n);
		received += n;
	}
}

TEST(psock_rx_burst__keeps_what_a_burst_has_no_room_for)
{
	struct rte_mbuf *mbuf;

	if (!have_runs)
		skip();
	send_frames(kinds[0], 14);
	assert_int_equal(receive(&mbuf, 1), 1);
	rte_pktmbuf_free(mbuf);
	assert_true(psock_holds(right));
	for (int i = 0; i < 13; i++) {
		assert_int_equal(psock_rx_burst(right, &mbuf, 1), 1);
		rte_pktmbuf_free(mbuf);
	}
	assert_false(psock_holds(right));
	send_frames(kinds[0], 14);
	receive_frames(&kinds[0], 14, 3);
}

/* Over IPv4, the ICRC of one packet shows how the identifications count. IPv6 has no
 * identifications. */
TEST(psock_rx_burst__says_what_it_has_verified)
{
	struct rte_mbuf *mbufs[MAX];

	if (!have_runs)
		skip();
	for (size_t i = 0; i < KINDS; i++) {
		send_frames(kinds[i], 3);
		assert_int_equal(receive(mbufs, MAX), 3);
		for (int j = 0; j < 3; j++)
			assert_int_equal(mbufs[j]->port == PSOCK_VERIFIED,
					 j == 1 && !kinds[i].ipv6);
		rte_pktmbuf_free_bulk(mbufs, 3);
	}
}

/* A kernel joins packets of one flow, whatever their queue pairs are. */
TEST(psock_rx_burst__marks_strays_of_a_run)
{
	uint8_t run[FRAME_RUN_MAX];
	struct rte_mbuf *mbufs[MAX];

	if (!have_runs)
		skip();
	for (size_t i = 0; i < LONG_KINDS; i++) {
		struct frame second = kinds[i];
		uint32_t len;

		second.id++;
		second.qpn = 8;
		len = frame_make_run(&kinds[i], &second, run);
		for (int strict = 0; strict <= 1; strict++) {
			psock_expect(right, 7, strict ? 0 : 4);
			assert_int_equal(send(psock_fd(left), run, len, 0), len);
			assert_int_equal(receive(mbufs, MAX), 2);
			assert_true(mbufs[0]->port != PSOCK_STRAY);
			assert_int_equal(mbufs[1]->port == PSOCK_STRAY, strict);
			rte_pktmbuf_free_bulk(mbufs, 2);
		}
	}
}

/* The sender mixes an engine's queue pair with another one's, with a management one, a group. */
TEST(psock_rx_burst__marks_strays_of_a_share)
{
	static const struct {
		uint32_t qpn;
		bool stray;
	} seconds[] = {{9, false}, {8, true}, {1, true}, {0xffffff, true}, {10, true}};
	uint8_t run[FRAME_RUN_MAX];
	struct rte_mbuf *mbufs[MAX];

	if (!have_runs)
		skip();
	psock_expect_share(right, 1, 2);
	for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
		struct frame second = kinds[0];
		uint32_t len;

		second.id++;
		second.qpn = seconds[i].qpn;
		len = frame_make_run(&kinds[0], &second, run);
		assert_int_equal(send(psock_fd(left), run, len, 0), len);
		assert_int_equal(receive(mbufs, MAX), 2);
		assert_true(mbufs[0]->port != PSOCK_STRAY);
		assert_int_equal(mbufs[1]->port == PSOCK_STRAY, seconds[i].stray);
		rte_pktmbuf_free_bulk(mbufs, 2);
	}
}

/* Send a RoCE frame that is longer than a buffer. */
static void send_too_long(void)
{
	uint8_t packet[sizeof(struct virtio_net_hdr) + ROOM + 100] = {0};

	frame_make(&kinds[0], packet + sizeof(struct virtio_net_hdr));
	assert_int_equal(send(psock_fd(left), packet, sizeof(packet), 0), sizeof(packet));
}

/* A burst ends after as many dropped frames as it may return: a peer cannot prolong it. */
TEST(psock_rx_burst__counts_what_it_drops)
{
	struct pollfd pfd = {.events = POLLIN};
	struct rte_mbuf *mbuf;
	uint16_t received = 0;

	if (!have_network)
		skip();
	pfd.fd = psock_fd(right);
	for (int i = 0; i < 3; i++)
		send_too_long();
	send_frames(kinds[0], 1);
	while (received == 0) {
		const uint64_t before = psock_dropped(right);

		assert_int_equal(poll(&pfd, 1, DEADLINE), 1);
		received = psock_rx_burst(right, &mbuf, 1);
		assert_in_range(psock_dropped(right) - before, 0, 1);
	}
	rte_pktmbuf_free(mbuf);
	assert_int_equal(psock_dropped(right), 3);
}

TEST(psock_rx_burst__waits_for_buffers)
{
	struct rte_mbuf *taken[MBUFS], *mbuf;
	unsigned int count;

	if (!have_network)
		skip();
	send_frames(kinds[0], 15);
	count = rte_mempool_avail_count(pool);
	assert_int_equal(rte_pktmbuf_alloc_bulk(pool, taken, count), 0);
	assert_int_equal(receive(&mbuf, 1), 0);
	rte_pktmbuf_free_bulk(taken, count);
	receive_frames(&kinds[0], 15, MAX);
}

/* A descriptor that is no packet socket is closed. */
TEST(psock_adopt__refuses_other_files)
{
	const unsigned int before = fds_count();
	struct psock *psock;

	if (!have_network)
		skip();
	assert_true(psock_adopt(&psock, pool, socket(AF_UNIX, SOCK_DGRAM, 0)) < 0);
	assert_int_equal(fds_count(), before);
}

/* A port that is prepared has no pool yet. */
TEST(psock_adopt__without_a_pool_at_first)
{
	struct psock *psock;

	if (!have_network)
		skip();
	assert_int_equal(psock_adopt(&psock, NULL, psock_socket()), 0);
	psock_close(psock);
	psock_close(right);
	assert_int_equal(psock_adopt(&right, NULL, psock_socket()), 0);
	psock_use_pool(right, pool);
	assert_int_equal(mute_packet_socket(psock_fd(right)), 0);
	assert_int_equal(psock_start(right, if_nametoindex("right")), 0);
	send_frames(kinds[0], 15);
	receive_frames(&kinds[0], 15, MAX);
}

/* Send more frames than the ring holds. The kernel marks in the next frame that some were lost. */
TEST(psock_missed__counts_what_the_ring_had_no_room_for)
{
	struct rte_mbuf *mbufs[MAX];
	uint64_t frames = 0, received = 0;

	if (!have_network)
		skip();
	mark = PSOCK_ALONE;
	while (frames < RING_FRAMES + MAX) {
		send_frames(kinds[0], MAX);
		frames += MAX;
	}
	assert_int_equal(psock_missed(right), 0);
	do {
		uint16_t n;

		send_frames(kinds[0], 1);
		frames++;
		for (n = receive(mbufs, MAX); n > 0; n = psock_rx_burst(right, mbufs, MAX)) {
			rte_pktmbuf_free_bulk(mbufs, n);
			received += n;
		}
	} while (received + psock_missed(right) < frames);
	assert_int_equal(received + psock_missed(right), frames);
	assert_in_range(psock_missed(right), 1, frames - RING_FRAMES);
}
