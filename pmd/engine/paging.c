/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine's side of pages that are not in memory: the pager's threads, and their notifications.
 */
#include "paging.h"

#include <pthread.h>
#include <string.h>

#include "base/log.h"
#include "device/device.h"
#include "eal/privilege.h"
#include "engine/engines.h"
#include "engine/engine.h"
#include "engine/shared.h"
#include "mem/pager.h"
#include "qp/qp.h"

static int paging_start_thread(void *(*run)(void *arg), void *arg)
{
	pthread_t thread;
	const int rc = privilege_create(&thread, run, arg, false);

	if (rc != 0)
		return rc;
	pthread_setname_np(thread, "uroce-page");
	pthread_detach(thread);
	return 0;
}

static void paging_run(struct qp *qp, void *engine)
{
	engine_mark_ready(engine, qp);
}

void paging_wake(struct engine *engine)
{
	/* Clear this before the queue pairs look: a page that arrives later is reported again. */
	__atomic_store_n(&engine->pages_came, false, __ATOMIC_SEQ_CST);
	qp_wake_waiting(&engine->home->waiting, paging_run, engine);
}

/* Report that pages have arrived to one engine. The owner may have read the flag just
 * before, and then released the engine. So this thread stays until the next owner or itself has
 * taken the flag. */
static int paging_tell(struct engine *engine, void *arg __rte_unused)
{
	unsigned int tries = 0;

	__atomic_store_n(&engine->pages_came, true, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&engine->pages_came, __ATOMIC_SEQ_CST) &&
	       !__atomic_load_n(&engine->ended, __ATOMIC_ACQUIRE)) {
		if (engine_try(engine)) {
			engine_transmit(engine);
			engine_release(engine);
			return 0;
		}
		tries = shared_wait(tries);
	}
	return 0;
}

/* Any engine's queue pairs may have waited for the page. Runs on a pager's thread. */
static void paging_came(void *arg)
{
	struct engine *first = arg;

	paging_tell(first, NULL);
	engines_each_other(first->engines, paging_tell, NULL);
}

static uint64_t paging_clock(void *arg)
{
	const struct engine *first = arg;

	return clock_ns(&first->clock);
}

void paging_start(struct engine *engine)
{
	const struct pager_config config = {
		.now_ns = &engine->now_ns,
		.clock = engine->engines ? paging_clock : NULL,
		.came = paging_came,
		.user = engine,
		.start = paging_start_thread,
	};
	const int rc = pager_create(&config, &engine->device->pager);

	if (rc != 0)
		log_info("%s: an absent page of an on-demand region stops the device until the "
			 "page is in memory: %s",
			 engine->device->config.name, strerror(-rc));
}
