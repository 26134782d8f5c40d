/* SPDX-License-Identifier: BSD-3-Clause */
#include "memif_ends.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "port/memif_caller.h"
#include "test.h"

#define ROUNDS 40

static char dir[] = "/tmp/uroce-line-XXXXXX";
char ends_path[64];

int ends_set_up(TEST_STATE)
{
	if (!mkdtemp(dir))
		return -1;
	snprintf(ends_path, sizeof(ends_path), "%s/wire", dir);
	return 0;
}

int ends_tear_down(TEST_STATE)
{
	return rmdir(dir);
}

int ends_make_no_pool(struct port *port)
{
	(void)port;
	return 0;
}

/* A port without packet buffers: nothing is received here. */
void ends_open(struct port *port, const char *role, const char *more)
{
	char text[256];

	memset(port, 0, sizeof(*port));
	snprintf(text, sizeof(text), "net_memif0,role=%s,socket=%s%s", role, ends_path, more);
	port->make_pool = ends_make_no_pool;
	assert_int_equal(port_prepare(port, text, 0), 0);
	assert_int_equal(port_open(port), 0);
	assert_true(port_has_conn(port));
	assert_false(port_connected(port));
	assert_true(port_link_up(port, false));
}

void ends_close(struct port *port)
{
	port_close(port);
	port_destroy(port);
}

/* Look as often as two ends need for all their messages, and a few times more. */
void ends_run(struct port *a, struct port *b)
{
	for (int i = 0; i < ROUNDS; i++) {
		port_conn_run(a);
		port_conn_run(b);
	}
}

void ends_expect_traffic(struct port *a, struct port *b)
{
	struct port *ends[] = {a, b};

	assert_true(port_connected(a) && port_connected(b));
	for (int i = 0; i < 2; i++) {
		struct pollfd wake = {.fd = port_wake_fd(ends[!i]), .events = POLLIN};

		assert_false(port_arm(ends[!i]));
		assert_int_equal(poll(&wake, 1, 0), 0);
		memset(ends[i]->ops->place(ends[i]->ops_arg, 64), i, 64);
		ends[i]->ops->placed(ends[i]->ops_arg, 64);
		ends[i]->ops->push(ends[i]->ops_arg);
		/* A packet wakes an end that is armed, once. Later packets are seen when the end
		 * looks. */
		assert_int_equal(poll(&wake, 1, 0), 1);
		assert_true(port_arm(ends[!i]));
		assert_int_equal(poll(&wake, 1, 0), 0);
		port_disarm(ends[!i]);
		ends[i]->ops->push(ends[i]->ops_arg);
		assert_int_equal(poll(&wake, 1, 0), 0);
	}
}

int ends_connect(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, ends_path);
	assert_int_equal(connect(fd, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}
