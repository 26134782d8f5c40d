/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts DPDK for its telemetry alone, while uroced serves programs. */
#include "telemetry_thread.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "eal/privilege.h"
#include "eal/runtime.h"

#define PAUSE_S 5 /* for programs that come back, and for a further restart */

enum telemetry_state {
	TELEMETRY_OFF,
	TELEMETRY_PAUSES,
	TELEMETRY_STARTS, /* DPDK */
};

static enum telemetry_state telemetry_state; /* atomic */
static pthread_t telemetry_thread;

static bool telemetry_step(enum telemetry_state from, enum telemetry_state to)
{
	return __atomic_compare_exchange_n(&telemetry_state, &from, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE);
}

static void *telemetry_thread_run(void *arg)
{
	const struct runtime_config config = {.telemetry = true, .file_prefix = arg};

	/* EAL fills its memory, and meanwhile no other thread can map any. */
	if (__atomic_load_n(&telemetry_state, __ATOMIC_ACQUIRE) == TELEMETRY_PAUSES) {
		sleep(PAUSE_S);
		if (!telemetry_step(TELEMETRY_PAUSES, TELEMETRY_STARTS))
			return NULL;
	}
	if (runtime_start(&config) != 0)
		log_warn("DPDK's telemetry does not answer; programs do not need it");
	__atomic_store_n(&telemetry_state, TELEMETRY_OFF, __ATOMIC_RELEASE);
	return NULL;
}

void telemetry_thread_start(const char *file_prefix, bool is_late)
{
	int rc;

	telemetry_state = is_late ? TELEMETRY_PAUSES : TELEMETRY_STARTS;
	rc = privilege_create_same(&telemetry_thread, telemetry_thread_run,
				   (void *)(uintptr_t)file_prefix);
	if (rc == 0)
		return;
	telemetry_state = TELEMETRY_OFF;
	log_warn("no thread for DPDK's telemetry: %s", strerror(-rc));
}

bool telemetry_thread_stop(bool in_haste)
{
	if (telemetry_step(TELEMETRY_PAUSES, TELEMETRY_OFF) ||
	    __atomic_load_n(&telemetry_state, __ATOMIC_ACQUIRE) != TELEMETRY_STARTS)
		return true;
	if (in_haste)
		return false;
	pthread_join(telemetry_thread, NULL);
	return true;
}
