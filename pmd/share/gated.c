/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An owner of a memif wire: EAL's interrupt thread, which connects it and takes its memory away,
 * has its rounds only while the owner's thread stands still (link/gate.h).
 */
#include <errno.h>
#include <sched.h>
#include <time.h>

#include <rte_lcore.h>

#include "base/log.h"
#include "link/gate.h"
#include "server.h"

#define TURNS_MAX 64

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Interrupt thread, which is no lcore but while it stands in for the owner's. */
static void gated_enter(void *arg)
{
	const unsigned int lcore = RTE_PER_LCORE(_lcore_id);
	struct server *server = arg;

	__atomic_store_n(&server->gate_wanted, true, __ATOMIC_RELEASE);
	pthread_mutex_lock(&server->gate_lock);
	__atomic_store_n(&server->gate_wanted, false, __ATOMIC_RELEASE);
	serve_begin(server);
	/* What a peer sent before it went away is still in its rings, which the driver will unmap.
	 */
	for (int i = 0; i < TURNS_MAX && forward_turn(server) > 0; i++)
		;
	RTE_PER_LCORE(_lcore_id) = lcore;
	reconnect_round_begin(&server->reconnect, now_ns());
}

static uint64_t gated_leave(void *arg)
{
	struct server *server = arg;
	const uint64_t pause_ns = reconnect_round_end(&server->reconnect, now_ns());

	serve_check_link(server);
	pthread_mutex_unlock(&server->gate_lock);
	return pause_ns;
}

static int gated_ended(void *arg)
{
	const struct server *server = arg;

	return __atomic_load_n(&server->gate_ended, __ATOMIC_ACQUIRE);
}

int gated_prepare(struct server *server)
{
	static bool taken;

	if (taken) {
		log_error("only one memif port can be shared by a process");
		return -EBUSY;
	}
	taken = true;
	server->gated = true;
	pthread_mutex_init(&server->gate_lock, NULL);
	return gate_start();
}

void gated_open(struct server *server)
{
	static const struct gate_ops ops = {
		.enter = gated_enter, .leave = gated_leave, .ended = gated_ended};

	if (!server->gated)
		return;
	reconnect_init(&server->reconnect, &server->link.port);
	gate_open(&ops, server, server->link.port.listen_fd);
}

void gated_lock(struct server *server)
{
	if (!server->gated)
		return;
	/* It comes first: a thread that never sleeps would keep it out for long. */
	while (__atomic_load_n(&server->gate_wanted, __ATOMIC_ACQUIRE))
		sched_yield();
	pthread_mutex_lock(&server->gate_lock);
}

void gated_unlock(struct server *server)
{
	if (server->gated)
		pthread_mutex_unlock(&server->gate_lock);
}

void gated_end(struct server *server)
{
	gated_lock(server);
	__atomic_store_n(&server->gate_ended, true, __ATOMIC_RELEASE);
}
