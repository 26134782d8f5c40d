/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages that are not in memory for a while. */
#include "absent.h"

#include <string.h>
#include <sys/mman.h>

#include "device/device.h"
#include "mem/pd.h"
#include "sim.h"

#define PAGE_BYTES 4096u

/* An access to an absent page is a fault, except where the program takes the memory away for
 * good. */
static void protect(const struct absence *absence, uintptr_t page, int access)
{
	struct sim *sim = absence->host->sim;

	if (sim->scenario != SCENARIO_LOST)
		sim_check(sim, mprotect((void *)page, PAGE_BYTES, access) == 0, "mprotect");
}

/* Make a page present until it is asked for once more. */
static void come(void *context, void *argument)
{
	struct host *host = context;
	struct absent_page *absent = argument;

	absent->came = true;
	protect(&host->absence, absent->page, PROT_READ | PROT_WRITE);
	if (host->device != NULL)
		engines_pages_came(host);
}

static struct absent_page *find(struct absence *absence, uintptr_t page)
{
	for (unsigned int i = 0; i < ABSENT_PAGES; i++) {
		if (absence->pages[i].page == page)
			return &absence->pages[i];
	}
	return NULL;
}

/* The time ranges from a microsecond, as for a page that is only not mapped, to 100 ms, as for one
 * from another host. */
static uint64_t draw_ns(struct rng *rng)
{
	uint64_t ns = 1000;

	for (int i = 0; i < 5 && rng_chance(rng, 400000); i++)
		ns *= 10;
	return rng_range(rng, ns / 2, ns);
}

static void leave(struct absence *absence, struct absent_page *absent, uintptr_t page)
{
	struct host *host = absence->host;

	absent->page = page;
	absent->came = false;
	host->sim->stats_absent++;
	protect(absence, page, PROT_NONE);
	clock_at(host->clock, host->clock->now_ns + draw_ns(&absence->rng), come, host, absent);
}

static bool is_there(struct absence *absence, uintptr_t page)
{
	struct absent_page *absent = find(absence, page);

	if (absent != NULL) {
		if (absent->came)
			absent->page = 0;
		return absent->page == 0;
	}
	absent = find(absence, 0);
	if (absent == NULL || absence->host->sim->draining ||
	    !rng_chance(&absence->rng, absence->ppm))
		return true;
	leave(absence, absent, page);
	return false;
}

static bool look(struct pager *pager, uintptr_t addr, struct mr_touch touch, bool write)
{
	struct absence *absence = (struct absence *)(void *)pager;
	const uintptr_t end = addr + touch.now;

	(void)write;
	for (uintptr_t page = addr & ~(uintptr_t)(PAGE_BYTES - 1); page < end; page += PAGE_BYTES) {
		if (!is_there(absence, page))
			return false;
	}
	return true;
}

void absent_start(struct host *host)
{
	const struct sim *sim = host->sim;

	memset(&host->absence, 0, sizeof(host->absence));
	if (sim->variant.absent == 0)
		return;
	host->absence = (struct absence){
		.pager.look = look,
		.host = host,
		.rng = rng_fork(sim->seed, 510 + (uint64_t)host->number),
		.ppm = sim->variant.absent,
	};
	host->device->pager = &host->absence.pager;
	host->pd->pager = &host->absence.pager;
}
