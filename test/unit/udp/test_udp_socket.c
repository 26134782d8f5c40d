/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/udp: what a UDP socket sends and receives, seen by a packet socket at the other end
 * of the cable. */
#include <errno.h>
#include <arpa/inet.h>
#include <net/if.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "base/tuning.h"
#include "eal/runtime.h"
#include "frames.h"
#include "netdev/mute.h"
#include "netns.h"
#include "psock/psock.h"
#include "psock/udp_frame.h"
#include "test.h"
#include "udp/udp_socket.h"
#include "wire/headers.h"

#define MBUFS	 256
#define ROOM	 4480
#define MAX	 40
#define DEADLINE 30000	   /* ms */
#define WINDOW	 (1 << 20) /* bytes that one queue pair has in flight */

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1}, gateway[6] = {2, 0, 0, 0, 0, 9};

static bool have_network;
static struct rte_mempool *pool;
static struct udp_socket *udp;
static struct psock *cable;
static uint8_t sent[MAX][FRAME_MAX];
static uint32_t lens[MAX];

static int group_set_up(TEST_STATE)
{
	const struct runtime_config config = {.memory_bytes = 4 << 20};

	have_network = netns_enter() &&
		       netns_run("ip link set left address 02:00:00:00:00:01 && "
				 "ip addr add 10.0.0.1/24 dev left && "
				 "ip -6 addr add fd00::1/64 dev left nodad && "
				 "ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev left && "
				 "ip -6 neigh add fd00::2 lladdr 02:00:00:00:00:02 dev left");
	if (!have_network)
		return 0;
	if (runtime_start(&config) != 0)
		return -1;
	pool = rte_pktmbuf_pool_create("udp", MBUFS, 0, 0, ROOM + RTE_PKTMBUF_HEADROOM,
				       SOCKET_ID_ANY);
	return pool ? 0 : -1;
}

TEST_GROUP(group_set_up, NULL);

static int set_up(TEST_STATE)
{
	if (!have_network)
		return 0;
	assert_int_equal(udp_open(&udp, pool, mac, gateway, if_nametoindex("left")), 0);
	assert_int_equal(psock_open(&cable, pool), 0);
	assert_int_equal(mute_packet_socket(psock_fd(cable)), 0);
	assert_int_equal(psock_start(cable, if_nametoindex("right")), 0);
	return 0;
}

static int tear_down(TEST_STATE)
{
	if (!have_network)
		return 0;
	udp_close(udp);
	psock_close(cable);
	tuning.runs = true;
	/* Nothing keeps a buffer. */
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
	return 0;
}

TEST_FIXTURE(set_up, tear_down);

static struct rte_mbuf *mbuf_of(uint32_t i)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);

	assert_non_null(mbuf);
	mbuf->port = RTE_MBUF_PORT_INVALID;
	memcpy(rte_pktmbuf_append(mbuf, (uint16_t)lens[i]), sent[i], lens[i]);
	return mbuf;
}

/* Make `n` frames like the first, the last of them shorter. Identifications grow by `step`. */
static void make_frames(struct frame frame, uint32_t n, uint16_t step, struct rte_mbuf **mbufs)
{
	for (uint32_t i = 0; i < n; i++) {
		frame.psn = i;
		frame.fill = (uint8_t)i;
		if (i + 1 == n)
			frame.len -= 4;
		lens[i] = frame_make(&frame, sent[i]);
		mbufs[i] = mbuf_of(i);
		frame.id = (uint16_t)(frame.id + step);
	}
}

static void send_frames(const struct frame *frame, uint32_t n)
{
	struct rte_mbuf *mbufs[MAX];

	make_frames(*frame, n, 1, mbufs);
	assert_int_equal(udp_tx_burst(udp, mbufs, (uint16_t)n), n);
}

static void send_back(const struct frame *frame, uint32_t n, uint16_t step)
{
	struct rte_mbuf *mbufs[MAX];

	make_frames(*frame, n, step, mbufs);
	assert_int_equal(psock_tx_burst(cable, mbufs, (uint16_t)n), n);
}

static void wait_for(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	assert_int_equal(poll(&pfd, 1, DEADLINE), 1);
}

/* Receive all of `n` packets. */
static void receive(struct rte_mbuf **mbufs, uint16_t n, uint16_t burst)
{
	uint16_t received = 0;

	while (received < n) {
		const uint16_t more = udp_rx_burst(udp, mbufs + received,
						   RTE_MIN(burst, (uint16_t)(n - received)));

		if (more == 0 && !udp_holds(udp))
			wait_for(udp_fd(udp));
		received = (uint16_t)(received + more);
	}
}

static const struct frame kinds[] = {
	{.id = 0xfff8, .source_port = 0xc123, .len = 4096},
	{.ipv6 = true, .source_port = 0xffff, .len = 4096},
	{.id = 1, .source_port = WIRE_UDP_PORT, .tclass = ECN_CAPABLE, .len = 8},
	{.ipv6 = true, .source_port = 0xc000, .tclass = 8 << DSCP_SHIFT, .len = 8},
};

/* What the kernel has chosen, and what is not known yet, is no difference. */
static void blank(uint8_t *frame, const struct udp_frame *layout)
{
	struct rte_ipv4_hdr *ip = (void *)(frame + layout->l3_off);

	memset(frame, 0, 12);
	memset(frame + layout->l4_off, 0, 2);
	memset(frame + layout->l4_off + 6, 0, 2);
	if (!layout->ipv6)
		ip->packet_id = ip->hdr_checksum = 0;
	else
		memset(frame + layout->l3_off + 1, 0, 3); /* the flow label */
}

static void assert_is_sent(uint8_t *frame, uint32_t len, uint32_t i, bool blanked)
{
	struct udp_frame layout;

	assert_int_equal(len, lens[i]);
	assert_true(frame_is_right(frame, len));
	assert_true(udp_frame_find(frame, len, &layout));
	if (blanked) {
		len -= WIRE_ICRC_LEN;
		blank(frame, &layout);
		blank(sent[i], &layout);
	}
	assert_memory_equal(frame + 12, sent[i] + 12, len - 12);
}

/* The ICRC is right for the headers that the kernel has written. */
static void assert_arrive(uint32_t n)
{
	struct rte_mbuf *mbufs[MAX];

	for (uint32_t i = 0; i < n;) {
		uint16_t received = psock_rx_burst(cable, mbufs, MAX);

		if (received == 0)
			wait_for(psock_fd(cable));
		for (uint16_t j = 0; j < received; j++, i++) {
			assert_true(i < n);
			assert_is_sent(rte_pktmbuf_mtod(mbufs[j], uint8_t *), mbufs[j]->data_len, i,
				       true);
			rte_pktmbuf_free(mbufs[j]);
		}
	}
}

TEST(udp_tx_burst__the_icrc_is_that_of_the_kernels_headers)
{
	if (!have_network)
		skip();
	for (int runs = 0; runs <= 1; runs++) {
		tuning.runs = runs;
		for (size_t i = 0; i < RTE_DIM(kinds); i++) {
			for (uint32_t n = 1; n <= 16; n += 15) {
				send_frames(&kinds[i], n);
				assert_arrive(n);
			}
		}
	}
	assert_int_equal(udp_counts(udp)->refused_packets, 0);
}

/* More of them than the socket remembers, with lengths and identifications by turns. */
TEST(udp_tx_burst__the_icrc_is_that_of_each_source_port)
{
	if (!have_network)
		skip();
	for (uint32_t i = 0; i < 3000; i++) {
		const struct frame frame = {.id = (uint16_t)(i % 3),
					    .source_port = (uint16_t)(0xc000 + i % 700),
					    .len = i % 5 == 0 ? 8 : 64};

		send_frames(&frame, 1);
		assert_arrive(1);
	}
}

/* The kernel splits runs. Their identifications count up. */
TEST(udp_tx_burst__a_run_that_the_kernel_splits)
{
	if (!have_network || !netns_run("ip link set left gso_max_size 1000"))
		skip();
	for (size_t i = 0; i < RTE_DIM(kinds); i++) {
		send_frames(&kinds[i], 15);
		assert_arrive(15);
	}
	netns_run("ip link set left gso_max_size 65536");
}

/* One destination whose packets the kernel refuses is no reason to send all others one by one. */
TEST(udp_tx_burst__a_run_that_the_kernel_refuses)
{
	struct frame frame = kinds[0];
	struct rte_mbuf *mbufs[MAX];

	if (!have_network)
		skip();
	make_frames(frame, 4, 1, mbufs);
	for (uint32_t i = 0; i < 4; i++) /* the source is no address of this host */
		rte_pktmbuf_mtod(mbufs[i], uint8_t *)[14 + 15] = 77;
	assert_int_equal(udp_tx_burst(udp, mbufs, 4), 4);
	assert_int_equal(udp_counts(udp)->refused_packets, 4);
	send_frames(&frame, 15);
	assert_arrive(15);
}

TEST(udp_tx_burst__refuses_what_the_kernel_does_not_send)
{
	const struct frame frame = {.len = 8};
	struct rte_mbuf *mbufs[3];

	if (!have_network)
		skip();
	make_frames(frame, 3, 1, mbufs);
	/* no IP packet; no route: another address of the sender */
	rte_pktmbuf_mtod(mbufs[0], uint8_t *)[13] = 6;
	rte_pktmbuf_mtod(mbufs[1], uint8_t *)[14 + 15] = 77;
	assert_int_equal(udp_tx_burst(udp, mbufs, 3), 3);
	assert_int_equal(udp_counts(udp)->refused_packets, 2);
	assert_int_equal(udp_counts(udp)->refused_bytes, lens[0] + lens[1]);
	sent[0][0] = 0;
	memcpy(sent[0], sent[2], lens[2]);
	lens[0] = lens[2];
	assert_arrive(1);
}

/* What the kernel keeps for a slow interface is not divided among senders any more. */
TEST(udp_tx_burst__keeps_little_for_a_slow_interface)
{
	uint32_t bytes = 0;
	uint16_t taken;

	if (!have_network ||
	    !netns_run("tc qdisc add dev left root tbf rate 8kbit burst 10kb limit 32mb"))
		skip();
	do {
		struct rte_mbuf *mbufs[MAX];

		make_frames(kinds[0], MAX, 1, mbufs);
		taken = udp_tx_burst(udp, mbufs, MAX);
		rte_pktmbuf_free_bulk(mbufs + taken, MAX - taken);
		bytes += taken * kinds[0].len;
		assert_true(bytes < WINDOW);
	} while (taken == MAX);
	assert_true(netns_run("tc qdisc del dev left root"));
}

/* Any identification is found, also if it is not what the kernel of the sender would write. */
TEST(udp_rx_burst__finds_the_identification)
{
	static const uint16_t steps[] = {0, 1, 0x1234, 0xffff};
	struct rte_mbuf *mbufs[MAX];

	if (!have_network)
		skip();
	for (size_t i = 0; i < RTE_DIM(kinds); i++) {
		for (size_t step = 0; step < RTE_DIM(steps); step++) {
			struct frame frame = kinds[i];

			frame.back = true;
			send_back(&frame, 15, steps[step]);
			receive(mbufs, 15, step % 2 ? MAX : 4);
			for (uint32_t j = 0; j < 15; j++) {
				uint8_t *at = rte_pktmbuf_mtod(mbufs[j], uint8_t *);

				assert_int_equal(mbufs[j]->port, UDP_VERIFIED);
				assert_int_equal(mbufs[j]->pkt_len, mbufs[j]->data_len);
				assert_memory_equal(at, mac, 6);
				assert_memory_equal(at + 6, gateway, 6);
				memset(sent[j] + (frame.ipv6 ? 60 : 40), 0, 2);
				assert_is_sent(at, mbufs[j]->data_len, j, false);
				rte_pktmbuf_free(mbufs[j]);
			}
		}
	}
	assert_int_equal(udp_counts(udp)->dropped, 0);
}

/* They are left to the device, which counts wrong ICRCs. */
TEST(udp_rx_burst__verifies_nothing_that_no_identification_explains)
{
	struct frame frame = {.back = true, .len = 64};
	struct rte_mbuf *mbufs[MAX];

	if (!have_network)
		skip();
	make_frames(frame, 4, 1, mbufs);
	*rte_pktmbuf_mtod_offset(mbufs[0], uint8_t *, lens[0] - 9) ^= 0x10; /* payload */
	*rte_pktmbuf_mtod_offset(mbufs[1], uint8_t *, lens[1] - 1) ^= 0x01; /* ICRC */
	*rte_pktmbuf_mtod_offset(mbufs[2], uint8_t *, 51) ^= 0x80;	    /* PSN */
	assert_int_equal(psock_tx_burst(cable, mbufs, 4), 4);
	receive(mbufs, 4, MAX);
	for (uint32_t i = 0; i < 4; i++) {
		const uint8_t *at = rte_pktmbuf_mtod(mbufs[i], uint8_t *);

		assert_int_equal(mbufs[i]->port == UDP_VERIFIED, i == 3);
		assert_int_equal(frame_is_right(at, mbufs[i]->data_len), i == 3);
		rte_pktmbuf_free(mbufs[i]);
	}
}

/* Adapters and Soft-RoCE send none, also over IPv6. */
TEST(udp_rx_burst__needs_no_udp_checksum)
{
	struct frame frame = {.back = true, .len = 64};
	struct rte_mbuf *mbuf;

	if (!have_network)
		skip();
	for (int ipv6 = 0; ipv6 <= 1; ipv6++) {
		frame.ipv6 = ipv6;
		make_frames(frame, 1, 0, &mbuf);
		memset(rte_pktmbuf_mtod_offset(mbuf, uint8_t *, ipv6 ? 60 : 40), 0, 2);
		assert_int_equal(psock_tx_burst(cable, &mbuf, 1), 1);
		receive(&mbuf, 1, 1);
		assert_is_sent(rte_pktmbuf_mtod(mbuf, uint8_t *), mbuf->data_len, 0, true);
		rte_pktmbuf_free(mbuf);
	}
}

/* The program has closed all descriptors, and opened its own. */
TEST(udp_socket__leaves_the_programs_own_socket_alone)
{
	const struct frame frame = {.len = 64};
	const int fd = have_network ? udp_fd(udp) : -1;
	const uint8_t data = 1;
	struct rte_mbuf *mbuf;
	int pair[2];

	if (!have_network)
		skip();
	assert_int_equal(udp_rx_burst(udp, &mbuf, 1), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	assert_int_equal(send(pair[1], &data, sizeof(data), 0), sizeof(data));
	assert_int_equal(dup2(pair[0], fd), fd);
	usleep(1000); /* a check holds for 5 us */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(udp_rx_burst(udp, &mbuf, 1), 0);
		make_frames(frame, 1, 0, &mbuf);
		assert_int_equal(udp_tx_burst(udp, &mbuf, 1), 1);
	}
	assert_int_equal(udp_counts(udp)->refused_packets, 2);
	udp_stop(udp);
	/* Nothing was taken from it, sent by it, nor was it closed. */
	assert_int_equal(recv(fd, sent[0], sizeof(sent[0]), MSG_DONTWAIT), sizeof(data));
	assert_int_equal(recv(pair[1], sent[0], sizeof(sent[0]), MSG_DONTWAIT), -1);
	close(fd);
	close(pair[0]);
	close(pair[1]);
}

/* Another user's socket sends from an address of this host. */
TEST(udp_rx_burst__drops_what_comes_from_this_host)
{
	const struct sockaddr_in to = {.sin_family = AF_INET,
				       .sin_port = rte_cpu_to_be_16(WIRE_UDP_PORT),
				       .sin_addr.s_addr = inet_addr("10.0.0.1")};
	const struct frame frame = {.back = true, .len = 64};
	struct rte_mbuf *mbuf;
	int fd;

	if (!have_network)
		skip();
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(sendto(fd, sent[0], 64, 0, (const struct sockaddr *)&to, sizeof(to)), 64);
	close(fd);
	send_back(&frame, 1, 0);
	receive(&mbuf, 1, 1);
	assert_is_sent(rte_pktmbuf_mtod(mbuf, uint8_t *), mbuf->data_len, 0, true);
	rte_pktmbuf_free(mbuf);
}

TEST(udp_rx_burst__counts_what_it_drops)
{
	const struct frame frame = {.back = true, .len = 64};
	struct rte_mbuf *mbufs[4];
	struct udp_frame layout;

	if (!have_network)
		skip();
	make_frames(frame, 4, 0, mbufs);
	for (uint32_t i = 0; i < 3; i++) {
		uint8_t *at = rte_pktmbuf_mtod(mbufs[i], uint8_t *);

		assert_true(udp_frame_find(at, lens[i], &layout));
		udp_frame_set(at, &layout, 0, 0);
		rte_pktmbuf_trim(mbufs[i], (uint16_t)(lens[i] - layout.len));
	}
	assert_int_equal(psock_tx_burst(cable, mbufs, 4), 4);
	wait_for(udp_fd(udp));
	for (uint32_t i = 0; udp_counts(udp)->dropped < 3; i++) {
		assert_int_equal(udp_counts(udp)->dropped, i);
		assert_int_equal(udp_rx_burst(udp, mbufs, 1), 0);
	}
	receive(mbufs, 1, 1);
	assert_is_sent(rte_pktmbuf_mtod(mbufs[0], uint8_t *), mbufs[0]->data_len, 3, true);
	rte_pktmbuf_free(mbufs[0]);
}

TEST(udp_rx_burst__keeps_what_a_burst_has_no_room_for)
{
	const struct frame frame = {.back = true, .len = 64};
	struct rte_mbuf *mbufs[MAX];

	if (!have_network)
		skip();
	assert_false(udp_holds(udp));
	send_back(&frame, 8, 0);
	receive(mbufs, 8, 1);
	for (uint32_t i = 0; i < 8; i++)
		assert_is_sent(rte_pktmbuf_mtod(mbufs[i], uint8_t *), mbufs[i]->data_len, i, true);
	rte_pktmbuf_free_bulk(mbufs, 8);
	assert_int_equal(udp_rx_burst(udp, mbufs, MAX), 0);
	assert_false(udp_holds(udp));
}

TEST(udp_rx_burst__waits_for_buffers)
{
	const struct frame frame = {.back = true, .len = 64};
	struct rte_mbuf *mbufs[2], *taken[MBUFS + 1];
	uint32_t n = 0;

	if (!have_network)
		skip();
	send_back(&frame, 1, 0);
	wait_for(udp_fd(udp));
	while ((taken[n] = rte_pktmbuf_alloc(pool)) != NULL)
		n++;
	assert_int_equal(udp_rx_burst(udp, mbufs, 2), 0);
	assert_true(udp_holds(udp));
	rte_pktmbuf_free_bulk(taken, n);
	assert_int_equal(udp_rx_burst(udp, mbufs, 2), 1);
	rte_pktmbuf_free(mbufs[0]);
}

TEST(udp_open__one_socket_has_the_port)
{
	struct udp_socket *second;

	if (!have_network)
		skip();
	assert_int_equal(udp_open(&second, pool, mac, gateway, 1), -EADDRINUSE);
	udp_stop(udp);
	assert_int_equal(udp_fd(udp), -1);
	assert_false(udp_holds(udp));
	assert_int_equal(udp_open(&second, pool, mac, gateway, 1), 0);
	udp_close(second);
}
