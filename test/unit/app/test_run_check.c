/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of app/uroce-run/run_check.c. */
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_common.h>

#include "config/settings.h"
#include "run_check.h"
#include "test.h"

/* A host as getifaddrs() tells of it. */
static struct sockaddr_ll ether = {.sll_family = AF_PACKET, .sll_hatype = ARPHRD_ETHER};
static struct sockaddr_ll loopback = {.sll_family = AF_PACKET, .sll_hatype = ARPHRD_LOOPBACK};
static struct sockaddr ipv4 = {.sa_family = AF_INET};
static struct sockaddr ipv6 = {.sa_family = AF_INET6};

#define ENTRY(i, name, flags, addr)                                                             \
	{                                                                                       \
		&host[(i) + 1], (char[]){name}, flags, (struct sockaddr *)(addr), NULL, {NULL}, \
			NULL                                                                    \
	}

static struct ifaddrs host[] = {
	ENTRY(0, "lo", IFF_UP, &loopback),
	ENTRY(1, "eth0", IFF_UP, &ether),
	ENTRY(2, "eth1", IFF_UP, &ether),
	ENTRY(3, "eth2", 0, &ether),
	ENTRY(4, "eth3", IFF_UP, &ether),
	ENTRY(5, "tun0", IFF_UP, NULL),
	ENTRY(6, "lo", IFF_UP, &ipv4),
	ENTRY(7, "eth0", IFF_UP, &ipv4),
	ENTRY(8, "eth1", IFF_UP, &ipv6),
	ENTRY(9, "eth2", 0, &ipv4),
	{NULL, (char[]){"tun0"}, IFF_UP, &ipv4, NULL, {NULL}, NULL},
};

static void assert_bad(const char *name, int expected, const char *why)
{
	char error[512] = "";

	assert_int_equal(check_interface(host, name, error, sizeof(error)), expected);
	if (strstr(error, why) == NULL || strchr(error, '\n') != NULL)
		fail_msg("%s: the message is '%s'", name, error);
}

TEST(check_interface__with_an_address_of_either_kind)
{
	char error[512];

	assert_int_equal(check_interface(host, "eth0", error, sizeof(error)), 0);
	assert_int_equal(check_interface(host, "eth1", error, sizeof(error)), 0);
}

TEST(check_interface__refusals)
{
	assert_bad("eth9", -ENODEV, "no interface 'eth9'");
	assert_bad("eth", -ENODEV, "no interface 'eth'");
	assert_bad("lo", -EPROTONOSUPPORT, "lo is not Ethernet");
	assert_bad("tun0", -EPROTONOSUPPORT, "tun0 is not Ethernet");
	assert_bad("eth2", -ENETDOWN, "ip link set eth2 up");
	assert_bad("eth3", -EADDRNOTAVAIL, "ip addr add ADDR/LEN dev eth3");
}

static int check(const char *netdev, const char *port, char *error, size_t error_size)
{
	struct settings settings;

	settings_init(&settings);
	if (netdev != NULL)
		settings_set(&settings, "netdev", netdev, error, error_size);
	if (port != NULL)
		settings_set(&settings, "port", port, error, error_size);
	return check_settings(&settings, error, error_size);
}

TEST(check_settings__on_this_host)
{
	char error[512] = "";

	assert_int_equal(check("no-such-iface", NULL, error, sizeof(error)), -ENODEV);
	assert_int_equal(check("lo", NULL, error, sizeof(error)), -EPROTONOSUPPORT);
	assert_int_equal(check(NULL, "net_null0", error, sizeof(error)), 0);
	assert_int_equal(check(NULL, "net_nosuch0", error, sizeof(error)), -ENODEV);
	assert_int_equal(check(NULL, "net_null0,,", error, sizeof(error)), -EINVAL);
	assert_int_equal(check(NULL, "net_af_packet0", error, sizeof(error)), -EINVAL);
	assert_int_equal(check(NULL, "net_af_packet0,iface=no-such-iface", error, sizeof(error)),
			 -ENODEV);
}

/* Rights cannot be got back, so a child gives them up. */
TEST(check_settings__an_interface_beside_the_port_is_uroceds)
{
	struct settings settings;
	char error[512] = "";

	settings_init(&settings);
	settings_set(&settings, "port", "net_null0", error, sizeof(error));
	settings_set(&settings, "kernel", "tap0", error, sizeof(error));
	assert_int_equal(check_settings(&settings, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "run uroced"));
}

TEST(check_settings__without_the_right_to_raw_packets)
{
	char error[512] = "";
	int status, ret;
	pid_t pid;

	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (geteuid() == 0 &&
		    (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || setuid(65534) < 0))
			_exit(1);
		ret = check(NULL, "net_af_packet0,iface=lo", error, sizeof(error));
		if (ret != -EPERM || strstr(error, "CAP_NET_RAW") == NULL)
			_exit(2);
		/* A port that needs no rights is not refused. */
		_exit(check(NULL, "net_null0", error, sizeof(error)) == 0 ? 0 : 3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}
