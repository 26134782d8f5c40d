/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of pmd/netdev/early_drop.c: real frames over a cable between two interfaces. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/seccomp.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/tuning.h"
#include "netdev/early_drop.h"
#include "netdev/netdev.h"
#include "netns.h"
#include "skipped.h"
#include "test.h"

#define FRAME_LEN 128
#define LONG_LEN  5000 /* more than a page: the kernel may keep the headers apart */
#define ROCE	  4791
#define COMPARED  60 /* bytes of a frame behind its Ethernet header */
#define OFF_PORT4 36
#define OFF_PORT6 56

/* Sockets at the interface "left": `tap` receives frames before the eBPF program sees them, as ours
 * do, and the others those that the program has let through. */
static int sender = -1, tap = -1;
static struct {
	uint8_t type[2];
	int fd;
} kernel[] = {{{0x08, 0x00}, -1}, {{0x86, 0xdd}, -1}, {{0x88, 0xb5}, -1}};
static struct netdev left;
static struct early_drop drop = {.fd = -1};
static bool works;

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

static bool kernel_has_tcx(void)
{
	unsigned int major, minor;
	struct utsname name;

	return uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 6));
}

static int group_set_up(TEST_STATE)
{
	int rc;

	if (!netns_enter())
		return 0;
	rc = early_drop_start(&drop, if_nametoindex("left"));
	if (rc == -EPERM || !kernel_has_tcx()) {
		skipped_for("no eBPF program may be attached here: run the tests as root, on Linux "
			    "6.6 or later");
		return 0;
	}
	works = true;
	sender = packet_socket("right", 0);
	tap = packet_socket("left", ETH_P_ALL);
	for (size_t i = 0; i < RTE_DIM(kernel); i++) {
		const uint8_t *type = kernel[i].type;

		kernel[i].fd = packet_socket("left", (uint16_t)(type[0] << 8 | type[1]));
		if (kernel[i].fd < 0)
			return 1;
	}
	if (rc != 0)
		printf("early_drop_start: %s\n", strerror(-rc));
	return rc != 0 || sender < 0 || tap < 0 || netdev_query("left", &left) != 0;
}

TEST_GROUP(group_set_up, NULL);

static int set_up(TEST_STATE)
{
	if (works)
		early_drop_set(&drop, left.ifindex, &left.addresses);
	return 0;
}

TEST_FIXTURE(set_up, NULL);

static void drain(int fd)
{
	uint8_t frame[FRAME_LEN];

	while (recv(fd, frame, sizeof(frame), MSG_DONTWAIT) >= 0)
		;
}

/* Receive frames until `marker`. Return true if `frame` was among them. Its IP header, which begins
 * at `from`, is compared, because the kernel removes the tag before it. */
static bool arrives(int fd, const uint8_t *frame, const uint8_t *marker, size_t from)
{
	uint8_t got[FRAME_LEN];
	bool found = false;

	for (;;) {
		struct pollfd pfd = {.fd = fd, .events = POLLIN};

		assert_int_equal(poll(&pfd, 1, 5000), 1);
		assert_true(recv(fd, got, sizeof(got), 0) > 0);
		if (memcmp(got, marker, FRAME_LEN) == 0)
			return found;
		found |= memcmp(got + 14, frame + from, COMPARED) == 0;
	}
}

/* Return true if the frame that `send_it` sends gets past the program. The marker behind it has the
 * same protocol, and always does, so no timeout is needed. The IP header begins at `from`. */
static bool passes_sent(const uint8_t *frame, size_t from, void (*send_it)(const uint8_t *frame))
{
	uint8_t marker[FRAME_LEN] = {[12] = frame[from - 2], frame[from - 1], [100] = 0x5a};
	size_t i = 0;

	while (memcmp(kernel[i].type, frame + from - 2, 2) != 0)
		i++;
	memcpy(marker, left.mac, sizeof(left.mac));
	drain(kernel[i].fd);
	drain(tap);
	send_it(frame);
	assert_int_equal(send(sender, marker, FRAME_LEN, 0), FRAME_LEN);
	/* Our socket has it in any case. */
	assert_true(arrives(tap, frame, marker, from));
	return arrives(kernel[i].fd, frame, marker, from);
}

static void send_short(const uint8_t *frame)
{
	assert_int_equal(send(sender, frame, FRAME_LEN, 0), FRAME_LEN);
}

static bool passes(const uint8_t *frame)
{
	return passes_sent(frame, 14, send_short);
}

/* RoCE to an address of "left". */
static void make_ipv4(uint8_t frame[FRAME_LEN], const char *to)
{
	memset(frame, 0, FRAME_LEN);
	memcpy(frame, left.mac, sizeof(left.mac));
	frame[12] = 0x08;
	frame[14] = 0x45;
	frame[20] = 0x40; /* do not fragment */
	frame[23] = IPPROTO_UDP;
	assert_int_equal(inet_pton(AF_INET, to, frame + 30), 1);
	frame[OFF_PORT4] = ROCE >> 8;
	frame[OFF_PORT4 + 1] = ROCE & 0xff;
}

static void make_ipv6(uint8_t frame[FRAME_LEN], const char *to)
{
	memset(frame, 0, FRAME_LEN);
	memcpy(frame, left.mac, sizeof(left.mac));
	frame[12] = 0x86;
	frame[13] = 0xdd;
	frame[14] = 0x60;
	frame[20] = IPPROTO_UDP;
	assert_int_equal(inet_pton(AF_INET6, to, frame + 38), 1);
	frame[OFF_PORT6] = ROCE >> 8;
	frame[OFF_PORT6 + 1] = ROCE & 0xff;
}

TEST(early_drop__drops_roce_to_own_addresses)
{
	uint8_t frame[FRAME_LEN];

	if (!works)
		skip();
	make_ipv4(frame, "10.7.0.1");
	assert_false(passes(frame));
	make_ipv6(frame, "fd07::1");
	assert_false(passes(frame));
	/* The first address of an interface is link-local. */
	memcpy(frame + 38, left.addresses.list[0].gid, GID_LEN);
	assert_false(passes(frame));
}

TEST(early_drop__passes_other_packets_over_ipv4)
{
	uint8_t frame[FRAME_LEN];

	if (!works)
		skip();
	make_ipv4(frame, "10.7.0.2");
	assert_true(passes(frame));
	make_ipv4(frame, "10.7.0.1");
	frame[OFF_PORT4 + 1]++;
	assert_true(passes(frame));
	make_ipv4(frame, "10.7.0.1");
	frame[23] = IPPROTO_TCP;
	assert_true(passes(frame));
	make_ipv4(frame, "10.7.0.1");
	frame[14] = 0x46; /* one word of options, before which the ports are where they were */
	assert_true(passes(frame));
	make_ipv4(frame, "10.7.0.1");
	frame[20] = 0x20; /* the first fragment */
	assert_true(passes(frame));
	make_ipv4(frame, "10.7.0.1");
	frame[21] = 1; /* a later one */
	assert_true(passes(frame));
	make_ipv4(frame, "10.7.0.1");
	frame[12] = 0x88; /* another protocol, with the same bytes behind its number */
	frame[13] = 0xb5;
	assert_true(passes(frame));
	make_ipv4(frame, "10.7.0.1");
	frame[5] ^= 1; /* the interface sees it, but it is for another one */
	assert_true(passes(frame));
}

TEST(early_drop__passes_other_packets_over_ipv6)
{
	uint8_t frame[FRAME_LEN];

	if (!works)
		skip();
	make_ipv6(frame, "fd07::2");
	assert_true(passes(frame));
	make_ipv6(frame, "fd08::1");
	assert_true(passes(frame));
	make_ipv6(frame, "ff02::1");
	assert_true(passes(frame));
	make_ipv6(frame, "fd07::1");
	frame[OFF_PORT6 + 1]++;
	assert_true(passes(frame));
	make_ipv6(frame, "fd07::1");
	frame[20] = IPPROTO_HOPOPTS;
	assert_true(passes(frame));
}

TEST(early_drop__passes_packets_of_vlans)
{
	uint8_t plain[FRAME_LEN], frame[FRAME_LEN];
	static const uint8_t tag[] = {0x81, 0x00, 0x00, 0x05};

	if (!works)
		skip();
	make_ipv4(plain, "10.7.0.1");
	memcpy(frame, plain, 12);
	memcpy(frame + 12, tag, sizeof(tag));
	memcpy(frame + 16, plain + 12, FRAME_LEN - 16);
	assert_true(passes_sent(frame, 18, send_short));
}

static void send_long(const uint8_t *frame)
{
	/* The kernel puts what is behind hdr_len into pages. */
	struct virtio_net_hdr offload = {.hdr_len = 14};
	static uint8_t rest[LONG_LEN - FRAME_LEN];
	struct iovec iovs[] = {{&offload, sizeof(offload)},
			       {(void *)(uintptr_t)frame, FRAME_LEN},
			       {rest, sizeof(rest)}};
	const int fd = packet_socket("right", 0), on = 1;

	assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)), 0);
	assert_int_equal(writev(fd, iovs, 3), sizeof(offload) + LONG_LEN);
	close(fd);
}

TEST(early_drop__finds_headers_that_the_kernel_keeps_in_pages)
{
	uint8_t frame[FRAME_LEN];

	if (!works)
		skip();
	make_ipv4(frame, "10.7.0.1");
	assert_false(passes_sent(frame, 14, send_long));
	frame[33]++;
	assert_true(passes_sent(frame, 14, send_long));
	make_ipv6(frame, "fd07::1");
	assert_false(passes_sent(frame, 14, send_long));
	frame[53]++;
	assert_true(passes_sent(frame, 14, send_long));
}

TEST(early_drop_set__takes_untagged_addresses_of_the_interface)
{
	struct addresses addresses = {.count = 4};
	uint8_t frame[FRAME_LEN];
	static const int32_t vlans[] = {VLAN_NONE, 5, VLAN_NONE, VLAN_NONE};

	if (!works)
		skip();
	for (uint8_t i = 0; i < 4; i++) {
		addresses.list[i].vlan = vlans[i];
		addresses.list[i].ifindex = left.ifindex + (i == 2);
		gid_from_ipv4((const uint8_t[]){10, 7, 1, i}, addresses.list[i].gid);
	}
	early_drop_set(&drop, left.ifindex, &addresses);
	make_ipv4(frame, "10.7.1.0");
	assert_false(passes(frame));
	frame[33] = 1;
	assert_true(passes(frame));
	frame[33] = 2;
	assert_true(passes(frame));
	frame[33] = 3;
	assert_false(passes(frame));
	/* The former addresses are others' now. */
	make_ipv4(frame, "10.7.0.1");
	assert_true(passes(frame));
}

TEST(early_drop_set__takes_as_many_addresses_as_there_can_be)
{
	static struct addresses addresses;
	uint8_t frame[FRAME_LEN];

	if (!works)
		skip();
	addresses.count = ADDRESSES_MAX;
	for (size_t i = 0; i < ADDRESSES_MAX; i++) {
		addresses.list[i].vlan = VLAN_NONE;
		addresses.list[i].ifindex = left.ifindex;
		gid_from_ipv4((const uint8_t[]){10, 7, 2, (uint8_t)i}, addresses.list[i].gid);
	}
	early_drop_set(&drop, left.ifindex, &addresses);
	make_ipv4(frame, "10.7.2.0");
	frame[33] = ADDRESSES_MAX - 1;
	assert_false(passes(frame));
	frame[33]++;
	assert_true(passes(frame));
	addresses.count = 0;
	early_drop_set(&drop, left.ifindex, &addresses);
	make_ipv4(frame, "10.7.2.0");
	assert_true(passes(frame));
}

TEST(early_drop_renew__follows_the_tuning)
{
	uint8_t frame[FRAME_LEN];

	if (!works)
		skip();
	make_ipv4(frame, "10.7.0.1");
	assert_int_equal(tuning_without("early-drop"), 0);
	early_drop_renew(&drop);
	assert_true(passes(frame));
	assert_int_equal(tuning_without(""), 0);
	early_drop_renew(&drop);
	assert_false(passes(frame));
}

TEST(early_drop_renew__is_needed_from_time_to_time)
{
	uint8_t frame[FRAME_LEN];

	if (!works)
		skip();
	make_ipv4(frame, "10.7.0.1");
	early_drop_renew(&drop);
	/* If it does not end, the test does not end. */
	while (!passes(frame))
		usleep(100000);
	early_drop_renew(&drop);
	assert_false(passes(frame));
}

/* Start a child that attaches a second program, and wait until it has. */
static pid_t start_child(const struct addresses *addresses)
{
	int ready[2];
	pid_t child;
	char c = 0;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		struct early_drop own;

		c = (char)early_drop_start(&own, left.ifindex);
		early_drop_set(&own, left.ifindex, addresses);
		if (write(ready[1], &c, 1) == 1)
			pause();
		_exit(1);
	}
	assert_true(child > 0);
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(c, 0);
	close(ready[0]);
	close(ready[1]);
	return child;
}

TEST(early_drop_start__ends_with_a_killed_process_and_leaves_others_alone)
{
	struct addresses addresses = {.count = 1};
	uint8_t frame[FRAME_LEN];
	pid_t child;

	if (!works)
		skip();
	addresses.list[0] =
		(struct address){.vlan = VLAN_NONE, .ifindex = left.ifindex, .prefix_len = 24};
	gid_from_ipv4((const uint8_t[]){10, 7, 3, 1}, addresses.list[0].gid);
	child = start_child(&addresses);
	make_ipv4(frame, "10.7.3.1");
	assert_false(passes(frame));
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	/* The kernel frees a descriptor's link in the background. */
	while (!passes(frame))
		usleep(10000);
	early_drop_renew(&drop);
	make_ipv4(frame, "10.7.0.1");
	assert_false(passes(frame));
}

TEST(early_drop_start__does_nothing_without_privilege)
{
	struct early_drop own;
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct all[_LINUX_CAPABILITY_U32S_3], some[_LINUX_CAPABILITY_U32S_3];

	if (!works)
		skip();
	assert_int_equal(syscall(SYS_capget, &header, all), 0);
	memcpy(some, all, sizeof(some));
	some[0].effective &= ~(uint32_t)CAP_TO_MASK(CAP_NET_ADMIN);
	assert_int_equal(syscall(SYS_capset, &header, some), 0);
	assert_int_equal(early_drop_start(&own, left.ifindex), -EPERM);
	assert_null(own.memory);
	early_drop_set(&own, left.ifindex, &left.addresses);
	early_drop_renew(&own);
	early_drop_stop(&own);
	assert_int_equal(syscall(SYS_capset, &header, all), 0);
}

/* A filter as a service may have it: what it does not allow ends the process. */
static int forbid_bpf(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = RTE_DIM(code), .filter = code};

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

TEST(early_drop_start__does_not_try_under_a_seccomp_filter)
{
	pid_t child;
	int status;

	if (!works)
		skip();
	child = fork();
	if (child == 0) {
		struct early_drop own;

		if (forbid_bpf() != 0)
			_exit(2);
		_exit(early_drop_start(&own, left.ifindex) == -EPERM ? 0 : 1);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

TEST(early_drop_start__fails_without_an_interface)
{
	struct early_drop own;

	if (!works)
		skip();
	assert_int_equal(early_drop_start(&own, 12345), -ENODEV);
	assert_null(own.memory);
}

/* The last test: nothing is attached after it. */
TEST(early_drop_stop__detaches)
{
	uint8_t frame[FRAME_LEN];

	if (!works)
		skip();
	make_ipv4(frame, "10.7.0.1");
	assert_false(passes(frame));
	early_drop_stop(&drop);
	assert_null(drop.memory);
	assert_true(passes(frame));
}
