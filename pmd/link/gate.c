/* SPDX-License-Identifier: BSD-3-Clause */
/* The callback that EAL's interrupt thread lives in: its descriptor is always readable. */
#include "link/gate.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <rte_interrupts.h>

#define GATE_POLL_NS 1000000

static struct {
	const struct gate_ops *ops;
	void *user;
	int wake_fd;
	struct rte_intr_handle *handle;
	bool reached; /* atomic: the interrupt thread has come */
	bool open;    /* atomic */
	bool inside;  /* interrupt thread: between enter and leave */
} gate;

static void gate_sleep(uint64_t ns, int fd)
{
	const struct timespec time = {.tv_sec = (time_t)(ns / 1000000000),
				      .tv_nsec = (long)(ns % 1000000000)};
	struct pollfd poll = {.fd = fd, .events = POLLIN};

	ppoll(&poll, 1, &time, NULL);
}

static void gate_callback(void *arg)
{
	uint64_t pause_ns = GATE_POLL_NS;

	(void)arg;
	/* Pairs with gate_start's acquire load: from here on no other callback runs. */
	__atomic_store_n(&gate.reached, true, __ATOMIC_RELEASE);
	if (gate.inside) {
		gate.inside = false;
		pause_ns = gate.ops->leave(gate.user);
	}
	while (!__atomic_load_n(&gate.open, __ATOMIC_ACQUIRE))
		gate_sleep(GATE_POLL_NS, -1);
	gate_sleep(pause_ns, gate.wake_fd);
	while (gate.ops->ended(gate.user))
		pause();
	gate.ops->enter(gate.user);
	gate.inside = true;
}

int gate_start(void)
{
	const int fd = eventfd(1, EFD_CLOEXEC);
	int rc;

	if (fd < 0)
		return -errno;
	gate.handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	if (!gate.handle || rte_intr_fd_set(gate.handle, fd) != 0 ||
	    rte_intr_type_set(gate.handle, RTE_INTR_HANDLE_EXT) != 0) {
		close(fd);
		return -ENOMEM;
	}
	rc = rte_intr_callback_register(gate.handle, gate_callback, NULL);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	while (!__atomic_load_n(&gate.reached, __ATOMIC_ACQUIRE))
		gate_sleep(GATE_POLL_NS / 10, -1);
	return 0;
}

void gate_open(const struct gate_ops *ops, void *user, int wake_fd)
{
	gate.wake_fd = wake_fd;
	gate.ops = ops;
	gate.user = user;
	/* Pairs with the callback's acquire load, behind which it reads them. */
	__atomic_store_n(&gate.open, true, __ATOMIC_RELEASE);
}

int gate_fd(void)
{
	return gate.handle ? rte_intr_fd_get(gate.handle) : -1;
}
