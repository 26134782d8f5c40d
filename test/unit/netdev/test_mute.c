/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/netdev/mute.c: real frames over a cable between two interfaces. */
#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stdint.h>
#include <string.h>

#include "netdev/mute.h"
#include "netns.h"
#include "test.h"

#define FRAME_LEN 128
#define NOBODY	  65534

static bool have_network;
static int sender = -1, filtered = -1;

static int packet_socket(const char *ifname, uint16_t protocol)
{
	const struct sockaddr_ll addr = {.sll_family = AF_PACKET,
					 .sll_protocol = htons(protocol),
					 .sll_ifindex = (int)if_nametoindex(ifname)};
	const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static int group_set_up(TEST_STATE)
{
	have_network = netns_enter();
	if (!have_network)
		return 0;
	sender = packet_socket("right", ETH_P_ALL);
	filtered = packet_socket("left", ETH_P_ALL);
	return sender < 0 || filtered < 0 || mute_packet_socket(filtered) != 0;
}

TEST_GROUP(group_set_up, NULL);

static void drain(int fd)
{
	uint8_t frame[FRAME_LEN];

	while (recv(fd, frame, sizeof(frame), MSG_DONTWAIT) >= 0)
		;
}

/* Return true if the filter lets a frame through. A marker that passes is sent behind it, so no
 * timeout is needed. */
static bool passes(const uint8_t *frame)
{
	uint8_t marker[FRAME_LEN] = {[12] = 0x08, 0x06, [21] = 2, [100] = 0x5a};
	uint8_t got[FRAME_LEN];
	bool passed = false;

	drain(filtered);
	assert_int_equal(send(sender, frame, FRAME_LEN, 0), FRAME_LEN);
	assert_int_equal(send(sender, marker, FRAME_LEN, 0), FRAME_LEN);
	for (;;) {
		struct pollfd pfd = {.fd = filtered, .events = POLLIN};

		assert_int_equal(poll(&pfd, 1, 5000), 1);
		assert_int_equal(recv(filtered, got, sizeof(got), 0), FRAME_LEN);
		if (memcmp(got, marker, FRAME_LEN) == 0)
			return passed;
		passed |= memcmp(got, frame, FRAME_LEN) == 0;
	}
}

/* IPv4 to a UDP port, with a header of that many words. */
static void make_ipv4(uint8_t frame[FRAME_LEN], uint8_t words, uint16_t port)
{
	memset(frame, 0, FRAME_LEN);
	frame[12] = 0x08;
	frame[14] = 0x40 | words;
	frame[20] = 0x40; /* do not fragment */
	frame[23] = 17;
	frame[14 + 4 * words + 2] = (uint8_t)(port >> 8);
	frame[14 + 4 * words + 3] = (uint8_t)port;
}

static void make_ipv6(uint8_t frame[FRAME_LEN], uint8_t next)
{
	memset(frame, 0, FRAME_LEN);
	frame[12] = 0x86;
	frame[13] = 0xdd;
	frame[14] = 0x60;
	frame[20] = next;
}

TEST(mute_packet_socket__passes_roce_over_ipv4)
{
	uint8_t frame[FRAME_LEN];

	if (!have_network)
		skip();
	make_ipv4(frame, 5, 4791);
	assert_true(passes(frame));
	make_ipv4(frame, 8, 4791);
	assert_true(passes(frame));
	make_ipv4(frame, 5, 4790);
	assert_false(passes(frame));
	make_ipv4(frame, 5, 4791);
	frame[23] = 6; /* TCP */
	assert_false(passes(frame));
}

TEST(mute_packet_socket__drops_fragments)
{
	uint8_t frame[FRAME_LEN];

	if (!have_network)
		skip();
	make_ipv4(frame, 5, 4791);
	frame[21] = 1;
	assert_false(passes(frame));
	make_ipv4(frame, 5, 4791);
	frame[20] = 0x20;
	assert_false(passes(frame));
}

TEST(mute_packet_socket__passes_roce_and_advertisements_over_ipv6)
{
	uint8_t frame[FRAME_LEN];

	if (!have_network)
		skip();
	make_ipv6(frame, 17);
	frame[56] = 4791 >> 8;
	frame[57] = 4791 & 0xff;
	assert_true(passes(frame));
	frame[57]++;
	assert_false(passes(frame));
	make_ipv6(frame, 58);
	frame[54] = 136;
	assert_true(passes(frame));
	frame[54] = 135; /* solicitations are the kernel's to answer */
	assert_false(passes(frame));
	make_ipv6(frame, 6);
	assert_false(passes(frame));
}

TEST(mute_packet_socket__drops_arp_requests_and_others)
{
	uint8_t frame[FRAME_LEN] = {[12] = 0x08, 0x06, [21] = 1};

	if (!have_network)
		skip();
	assert_false(passes(frame));
	frame[12] = 0x88;
	frame[13] = 0xcc;
	assert_false(passes(frame));
}

TEST(mute_packet_socket__drops_what_this_host_sends)
{
	uint8_t frame[FRAME_LEN], other[FRAME_LEN];
	const int local = have_network ? packet_socket("left", 0) : -1;

	if (!have_network)
		skip();
	make_ipv4(frame, 5, 4791);
	make_ipv4(other, 6, 4791);
	drain(filtered);
	assert_int_equal(send(local, frame, FRAME_LEN, 0), FRAME_LEN);
	/* A tap sees outgoing frames at once: what is there now, and nothing else, is the other
	 * one. */
	assert_true(passes(other));
	assert_int_equal(send(local, frame, FRAME_LEN, 0), FRAME_LEN);
	assert_int_equal(recv(filtered, other, sizeof(other), MSG_DONTWAIT), -1);
	close(local);
}

/* The kernel answers a datagram to a closed port with an error, which a connected socket reads. */
static bool is_refused(const char *ip)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(4791)};
	const int fd = socket(AF_INET, SOCK_DGRAM, 0);
	bool refused;
	char c = 0;

	inet_pton(AF_INET, ip, &addr.sin_addr);
	assert_int_equal(connect(fd, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(send(fd, &c, 1, 0), 1);
	refused = recv(fd, &c, 1, MSG_DONTWAIT) < 0 && errno == ECONNREFUSED;
	close(fd);
	return refused;
}

TEST(mute_kernel__keeps_the_kernel_from_answering)
{
	int fd, second;

	if (!have_network)
		skip();
	/* On one host, a datagram to an own address arrives through lo, and the answer comes before
	 * send() returns. */
	assert_true(is_refused("127.0.0.1"));
	fd = mute_kernel("lo");
	assert_true(fd >= 0);
	assert_false(is_refused("127.0.0.1"));
	/* A second program on the same interface does the same. */
	second = mute_kernel("lo");
	assert_true(second >= 0);
	close(fd);
	assert_false(is_refused("127.0.0.1"));
	close(second);
	assert_true(is_refused("127.0.0.1"));
}

/* Another user tries to bind beside the socket, in every way. */
static bool others_can_bind(void)
{
	struct sockaddr_in6 addr = {.sin6_family = AF_INET6, .sin6_port = htons(4791)};
	static const int options[] = {0, SO_REUSEADDR, SO_REUSEPORT};
	const int on = 1;
	pid_t child;
	int status;

	child = fork();
	if (child == 0) {
		if (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
			_exit(2);
		for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
			for (int any = 0; any < 2; any++) {
				const int fd = socket(AF_INET6, SOCK_DGRAM, 0);

				if (options[i])
					setsockopt(fd, SOL_SOCKET, options[i], &on, sizeof(on));
				inet_pton(AF_INET6, any ? "::" : "::ffff:127.0.0.1",
					  &addr.sin6_addr);
				if (bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0)
					_exit(1);
			}
		}
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return WEXITSTATUS(status) == 1;
}

/* Whoever binds to one of the host's addresses would receive its RoCE packets. */
TEST(mute_kernel__lets_no_other_user_bind)
{
	int fd;

	if (!have_network || geteuid() != 0)
		skip();
	assert_true(others_can_bind());
	fd = mute_kernel("lo");
	assert_true(fd >= 0);
	assert_false(others_can_bind());
	close(fd);
}

TEST(mute_kernel__names_who_has_the_port)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(4791)};
	int fd, held, saved, fds[2];
	char text[512], pid[32];
	ssize_t len;

	if (!have_network)
		skip();
	held = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(bind(held, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(pipe(fds), 0);
	fflush(stderr);
	saved = dup(STDERR_FILENO);
	dup2(fds[1], STDERR_FILENO);
	fd = mute_kernel("lo");
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(fds[1]);
	len = read(fds[0], text, sizeof(text) - 1);
	close(fds[0]);
	close(held);
	assert_int_equal(fd, -EADDRINUSE);
	assert_true(len > 0);
	text[len] = '\0';
	snprintf(pid, sizeof(pid), "process %d (", getpid());
	assert_non_null(strstr(text, pid));
}

TEST(mute_kernel__refuses_an_interface_that_is_not_there)
{
	if (!have_network)
		skip();
	assert_int_equal(mute_kernel("nosuchdev"), -ENODEV);
}
