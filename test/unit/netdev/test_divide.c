/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/netdev/divide.c: real frames over a cable between two interfaces, and two sockets
 * that divide them. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netdev/divide.h"
#include "netns.h"
#include "test.h"

#define FRAME_LEN 128
#define SHIFT	  14
#define BLOCK	  (5u << SHIFT) /* of the program */
#define OTHER	  (9u << SHIFT) /* of nobody */
#define ROUNDS	  100
#define BURST	  50
#define BUFFER	  (4 << 20)

static bool have_network;
static int sender = -1, owner = -1, program = -1;

/* Make a socket that receives nothing before it has a filter of divide.c: the kernel sends frames
 * of its own over the new interfaces. */
static int packet_socket(const char *ifname)
{
	const struct sock_filter none[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
	const struct sock_fprog program_of_none = {1, (struct sock_filter *)(uintptr_t)none};
	const struct sockaddr_ll addr = {.sll_family = AF_PACKET,
					 .sll_protocol = htons(ETH_P_ALL),
					 .sll_ifindex = (int)if_nametoindex(ifname)};
	const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	const int bytes = BUFFER;

	if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program_of_none,
				   sizeof(program_of_none)) != 0 ||
			bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) != 0 ||
			setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) != 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

static struct divide_blocks blocks_of(uint32_t first, uint32_t count)
{
	struct divide_blocks blocks = {.shift = SHIFT, .count = count};

	for (uint32_t i = 0; i < count; i++)
		blocks.first[i] = first + (i << SHIFT);
	return blocks;
}

static int group_set_up(TEST_STATE)
{
	have_network = netns_enter();
	if (!have_network)
		return 0;
	sender = packet_socket("right");
	owner = packet_socket("left");
	program = packet_socket("left");
	return sender < 0 || owner < 0 || program < 0 ||
	       divide_only(program, &(struct divide_part){.first = BLOCK, .shift = SHIFT}) != 0;
}

TEST_GROUP(group_set_up, NULL);

static int set_up(TEST_STATE)
{
	const struct divide_blocks blocks = blocks_of(BLOCK, 1);

	return have_network ? divide_all_but(owner, &blocks) : 0;
}

TEST_FIXTURE(set_up, NULL);

/* Receive until the marker. Returns how often the frame came, and nothing else comes. */
static int count(int fd, const uint8_t *frame, const uint8_t *marker)
{
	uint8_t got[FRAME_LEN];
	int times = 0;

	for (;;) {
		struct pollfd pfd = {.fd = fd, .events = POLLIN};

		assert_int_equal(poll(&pfd, 1, 5000), 1);
		assert_int_equal(recv(fd, got, sizeof(got), 0), FRAME_LEN);
		if (memcmp(got, marker, FRAME_LEN) == 0)
			return times;
		assert_memory_equal(got, frame, FRAME_LEN);
		times++;
	}
}

static void put_qpn(uint8_t *frame, uint32_t qpn)
{
	frame[0] = (uint8_t)(qpn >> 16);
	frame[1] = (uint8_t)(qpn >> 8);
	frame[2] = (uint8_t)qpn;
}

/* RoCE over IPv4 to a queue pair, with a header of that many words. */
static void make_ipv4(uint8_t frame[FRAME_LEN], uint8_t words, uint32_t qpn)
{
	memset(frame, 0, FRAME_LEN);
	frame[12] = 0x08;
	frame[14] = 0x40 | words;
	frame[23] = 17;
	frame[14 + 4 * words + 2] = 4791 >> 8;
	frame[14 + 4 * words + 3] = 4791 & 0xff;
	frame[14 + 4 * words + 8 + 4] = 0xff; /* congestion bits, beside the number */
	put_qpn(frame + 14 + 4 * words + 8 + 5, qpn);
}

static void make_ipv6(uint8_t frame[FRAME_LEN], uint32_t qpn)
{
	memset(frame, 0, FRAME_LEN);
	frame[12] = 0x86;
	frame[13] = 0xdd;
	frame[14] = 0x60;
	frame[20] = 17;
	frame[56] = 4791 >> 8;
	frame[57] = 4791 & 0xff;
	frame[66] = 0xff;
	put_qpn(frame + 67, qpn);
}

enum taker { NOBODY, OWNER, PROGRAM };

/* Return who gets a frame. Markers that pass follow it, so no timeout is needed. */
static enum taker taker_of(const uint8_t *frame)
{
	uint8_t answer[FRAME_LEN] = {[12] = 0x08, 0x06, [21] = 2, [100] = 0x5a};
	uint8_t marker[FRAME_LEN];
	int of_owner, of_program;

	make_ipv4(marker, 5, BLOCK);
	marker[100] = 0x5b;
	assert_int_equal(send(sender, frame, FRAME_LEN, 0), FRAME_LEN);
	assert_int_equal(send(sender, answer, FRAME_LEN, 0), FRAME_LEN);
	assert_int_equal(send(sender, marker, FRAME_LEN, 0), FRAME_LEN);
	of_owner = count(owner, frame, answer);
	of_program = count(program, frame, marker);
	assert_in_range(of_owner + of_program, 0, 1);
	return of_owner ? OWNER : of_program ? PROGRAM : NOBODY;
}

TEST(divide__gives_each_queue_pair_to_one)
{
	const uint32_t qpns[] = {0,	1,    BLOCK - 1,	BLOCK + (1u << SHIFT),
				 OTHER, 0x17, BLOCK | 1u << 23, 0xffffff};
	uint8_t frame[FRAME_LEN];

	if (!have_network)
		skip();
	for (size_t i = 0; i < sizeof(qpns) / sizeof(qpns[0]); i++) {
		make_ipv4(frame, 5, qpns[i]);
		assert_int_equal(taker_of(frame), OWNER);
		make_ipv6(frame, qpns[i]);
		assert_int_equal(taker_of(frame), OWNER);
	}
	for (uint32_t qpn = BLOCK; qpn < BLOCK + (1u << SHIFT); qpn += (1u << SHIFT) - 1) {
		make_ipv4(frame, 5, qpn);
		assert_int_equal(taker_of(frame), PROGRAM);
		make_ipv6(frame, qpn);
		assert_int_equal(taker_of(frame), PROGRAM);
	}
}

/* The number is elsewhere behind options, so the owner reads it. */
TEST(divide__leaves_options_to_the_owner)
{
	uint8_t frame[FRAME_LEN];

	if (!have_network)
		skip();
	for (uint8_t words = 6; words <= 15; words++) {
		make_ipv4(frame, words, BLOCK);
		assert_int_equal(taker_of(frame), OWNER);
		/* Write the number where it would stand without options. */
		put_qpn(frame + 47, BLOCK);
		if (words > 8)
			assert_int_equal(taker_of(frame), OWNER);
	}
}

TEST(divide__leaves_address_resolution_to_the_owner)
{
	uint8_t frame[FRAME_LEN] = {[12] = 0x08, 0x06, [21] = 2};

	if (!have_network)
		skip();
	assert_int_equal(taker_of(frame), OWNER);
	make_ipv6(frame, BLOCK);
	frame[20] = 58;
	frame[54] = 136;
	assert_int_equal(taker_of(frame), OWNER);
}

TEST(divide__gives_nobody_what_is_the_kernels)
{
	uint8_t frame[FRAME_LEN];

	if (!have_network)
		skip();
	make_ipv4(frame, 5, BLOCK);
	frame[37]++; /* another UDP port */
	assert_int_equal(taker_of(frame), NOBODY);
	make_ipv4(frame, 5, BLOCK);
	frame[23] = 6; /* TCP */
	assert_int_equal(taker_of(frame), NOBODY);
	make_ipv4(frame, 5, BLOCK);
	frame[20] = 0x20; /* a fragment */
	assert_int_equal(taker_of(frame), NOBODY);
	make_ipv6(frame, BLOCK);
	frame[20] = 44; /* a fragment */
	assert_int_equal(taker_of(frame), NOBODY);
}

/* A packet without a BTH has no queue pair number. */
TEST(divide__gives_nobody_what_is_too_short)
{
	uint8_t frame[FRAME_LEN], marker[FRAME_LEN] = {[12] = 0x08, 0x06, [21] = 2, [100] = 0x5c};

	if (!have_network)
		skip();
	make_ipv6(frame, BLOCK);
	assert_int_equal(send(sender, frame, 62, 0), 62);
	assert_int_equal(send(sender, marker, FRAME_LEN, 0), FRAME_LEN);
	assert_int_equal(count(owner, frame, marker), 0);
	assert_int_equal(recv(program, frame, sizeof(frame), MSG_DONTWAIT), -1);
}

TEST(divide_only__cannot_be_changed)
{
	const struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, 0xffff)};
	const struct sock_fprog fprog = {1, (struct sock_filter *)(uintptr_t)all};
	const int off = 0;
	uint8_t frame[FRAME_LEN];

	if (!have_network)
		skip();
	assert_int_equal(setsockopt(program, SOL_SOCKET, SO_ATTACH_FILTER, &fprog, sizeof(fprog)),
			 -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(setsockopt(program, SOL_SOCKET, SO_DETACH_FILTER, &off, sizeof(off)), -1);
	assert_int_equal(setsockopt(program, SOL_SOCKET, SO_LOCK_FILTER, &off, sizeof(off)), -1);
	assert_int_equal(
		divide_only(program, &(struct divide_part){.first = OTHER, .shift = SHIFT}),
		-EPERM);
	make_ipv4(frame, 5, OTHER);
	assert_int_equal(taker_of(frame), OWNER);
}

/* A further engine of the program has a socket of its own. */
TEST(divide_only__a_share_of_the_block)
{
	const struct divide_part part = {.first = BLOCK, .shift = SHIFT, .share = 2, .count = 3};
	uint8_t frame[FRAME_LEN], got[FRAME_LEN];
	int fd;

	if (!have_network)
		skip();
	fd = packet_socket("left");
	assert_true(fd >= 0);
	assert_int_equal(divide_only(fd, &part), 0);
	for (uint32_t qpn = BLOCK - 3; qpn < BLOCK + (1u << SHIFT) + 3; qpn++) {
		const bool inside = qpn >= BLOCK && qpn < BLOCK + (1u << SHIFT);

		make_ipv4(frame, 5, qpn);
		assert_int_equal(send(sender, frame, FRAME_LEN, 0), FRAME_LEN);
		if (inside && qpn % 3 == 2) {
			assert_int_equal(recv(fd, got, sizeof(got), 0), FRAME_LEN);
			assert_memory_equal(got, frame, FRAME_LEN);
		}
	}
	make_ipv6(frame, BLOCK / 3 * 3 + 5);
	assert_int_equal(send(sender, frame, FRAME_LEN, 0), FRAME_LEN);
	assert_int_equal(recv(fd, got, sizeof(got), 0), FRAME_LEN);
	assert_memory_equal(got, frame, FRAME_LEN);
	/* The other sockets are as before. */
	while (recv(program, got, sizeof(got), MSG_DONTWAIT) > 0)
		;
	while (recv(owner, got, sizeof(got), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(recv(fd, got, sizeof(got), MSG_DONTWAIT), -1);
	close(fd);
}

TEST(divide_all_but__takes_as_many_blocks_as_it_says)
{
	struct divide_blocks blocks = blocks_of(BLOCK, DIVIDE_BLOCKS_MAX);
	uint8_t frame[FRAME_LEN];

	if (!have_network)
		skip();
	assert_int_equal(divide_all_but(owner, &blocks), 0);
	make_ipv4(frame, 5, BLOCK);
	assert_int_equal(taker_of(frame), PROGRAM);
	make_ipv4(frame, 5, BLOCK + ((DIVIDE_BLOCKS_MAX - 1) << SHIFT));
	assert_int_equal(taker_of(frame), NOBODY);
	make_ipv4(frame, 5, BLOCK + (DIVIDE_BLOCKS_MAX << SHIFT));
	assert_int_equal(taker_of(frame), OWNER);
	blocks.count++;
	assert_int_equal(divide_all_but(owner, &blocks), -ENOSPC);
}

/* Other programs come and go. Returns how often the filter was replaced. */
static void *replace(void *arg)
{
	bool *stop = arg;
	uintptr_t times = 0;

	while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		const struct divide_blocks blocks = blocks_of(BLOCK, 1 + (uint32_t)(times++ % 4));

		if (divide_all_but(owner, &blocks) != 0)
			return NULL;
	}
	return (void *)times;
}

/* A replaced filter loses no packet and duplicates none. The receivers are never farther behind
 * than the kernel queues. */
TEST(divide_all_but__replaces_a_filter_in_one_step)
{
	uint8_t answer[FRAME_LEN] = {[12] = 0x08, 0x06, [21] = 2, [100] = 0x5d};
	uint8_t to_program[FRAME_LEN], to_owner[FRAME_LEN], marker[FRAME_LEN];
	pthread_t thread;
	bool stop = false;
	void *times;

	if (!have_network)
		skip();
	make_ipv4(to_program, 5, BLOCK + 3);
	make_ipv4(to_owner, 5, 3);
	make_ipv4(marker, 5, BLOCK + 4);
	assert_int_equal(pthread_create(&thread, NULL, replace, &stop), 0);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < BURST; i++) {
			assert_int_equal(send(sender, to_program, FRAME_LEN, 0), FRAME_LEN);
			assert_int_equal(send(sender, to_owner, FRAME_LEN, 0), FRAME_LEN);
		}
		assert_int_equal(send(sender, answer, FRAME_LEN, 0), FRAME_LEN);
		assert_int_equal(send(sender, marker, FRAME_LEN, 0), FRAME_LEN);
		assert_int_equal(count(owner, to_owner, answer), BURST);
		assert_int_equal(count(program, to_program, marker), BURST);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, &times);
	assert_true((uintptr_t)times > 4);
	/* Neither socket received the other's packets. */
	assert_int_equal(recv(owner, marker, FRAME_LEN, MSG_DONTWAIT), -1);
	assert_int_equal(recv(program, marker, FRAME_LEN, MSG_DONTWAIT), -1);
}

static int further = -1; /* a third socket, only for shares */

static int set_up_shares(TEST_STATE)
{
	if (!have_network)
		return 0;
	further = packet_socket("left");
	return further < 0 || divide_all_but_shares(owner, 6, 3) != 0 ||
	       divide_only_share(further, 1, 3) != 0;
}

static int tear_down_shares(TEST_STATE)
{
	if (further >= 0)
		close(further);
	further = -1;
	return 0;
}

/* Return true if the share's socket gets the frame, and false if the first one does; exactly one
 * does. Nothing can follow the frame on both, so a frame to each follows. */
static bool share_gets(const uint8_t *frame)
{
	uint8_t answer[FRAME_LEN] = {[12] = 0x08, 0x06, [21] = 2, [100] = 0x5e};
	uint8_t marker[FRAME_LEN];
	int of_first, of_share;

	make_ipv4(marker, 5, 3 * 7 + 1);
	marker[100] = 0x5f;
	assert_int_equal(send(sender, frame, FRAME_LEN, 0), FRAME_LEN);
	assert_int_equal(send(sender, answer, FRAME_LEN, 0), FRAME_LEN);
	assert_int_equal(send(sender, marker, FRAME_LEN, 0), FRAME_LEN);
	of_first = count(owner, frame, answer);
	of_share = count(further, frame, marker);
	assert_in_range(of_first + of_share, 0, 1);
	assert_true(of_first + of_share == 1);
	return of_share == 1;
}

TEST(divide_only_share__takes_the_numbers_of_one_remainder, .setup = set_up_shares,
     .teardown = tear_down_shares)
{
	uint8_t frame[FRAME_LEN];

	if (!have_network)
		skip();
	for (uint32_t qpn = 3; qpn < 30; qpn++) {
		if (qpn % 3 == 2)
			continue; /* of a share that has no socket here */
		make_ipv4(frame, 5, qpn);
		assert_int_equal(share_gets(frame), qpn % 3 == 1);
		make_ipv6(frame, qpn + (3u << 20));
		assert_int_equal(share_gets(frame), qpn % 3 == 1);
	}
	/* the highest number of a queue pair */
	make_ipv4(frame, 5, 0xfffffe);
	assert_int_equal(0xfffffe % 3, 2);
	make_ipv4(frame, 5, 0xfffffd);
	assert_true(share_gets(frame));
}

/* MADs, packets to groups, options, and address resolution. */
TEST(divide_only_share__leaves_the_rest_to_the_first, .setup = set_up_shares,
     .teardown = tear_down_shares)
{
	uint8_t frame[FRAME_LEN];

	if (!have_network)
		skip();
	for (uint32_t qpn = 0; qpn <= 1; qpn++) {
		make_ipv4(frame, 5, qpn);
		assert_false(share_gets(frame));
		make_ipv6(frame, qpn);
		assert_false(share_gets(frame));
	}
	make_ipv4(frame, 5, 0xffffff);
	assert_false(share_gets(frame));
	make_ipv6(frame, 0xffffff);
	assert_false(share_gets(frame));
	make_ipv4(frame, 6, 4);
	assert_false(share_gets(frame));
	make_ipv6(frame, 4);
	frame[20] = 58;
	frame[54] = 136;
	assert_false(share_gets(frame));
}

TEST(divide_all_but_shares__refuses_what_a_filter_cannot_hold)
{
	if (!have_network)
		skip();
	assert_int_equal(divide_all_but_shares(owner, 0, 0), -EINVAL);
	assert_int_equal(divide_all_but_shares(owner, 0, DIVIDE_SHARES_MAX + 1), -EINVAL);
	assert_int_equal(divide_only_share(owner, 2, 2), -EINVAL);
	assert_int_equal(divide_all_but_shares(owner, UINT32_MAX - 1, DIVIDE_SHARES_MAX), 0);
}
