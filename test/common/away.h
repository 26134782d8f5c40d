/* SPDX-License-Identifier: BSD-3-Clause */
/* A pager whose absent pages a test chooses. */
#ifndef TEST_COMMON_AWAY_H
#define TEST_COMMON_AWAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mem/pager.h"
#include "mem/pd.h"

struct away {
	struct pager pager; /* first */
	/* bytes from here on are absent */
	uintptr_t from;
	size_t length;
	struct mr_touch touch; /* of the last call of `look` */
	bool write;	       /* of the same call */
	unsigned int looks;    /* calls */
};

/* There is one pager at a time. It is static, because the functions of tests have no argument for
 * it. */
static struct away away;

static bool away_look(struct pager *pager, uintptr_t addr, struct mr_touch touch, bool write)
{
	(void)pager;
	away.touch = touch;
	away.write = write;
	away.looks++;
	return addr + touch.now <= away.from || addr - away.from >= away.length;
}

static inline void away_go(const void *from, size_t length)
{
	away.from = (uintptr_t)from;
	away.length = length;
}

static inline void away_come(void)
{
	away_go(NULL, 0);
}

/* Give the pager to the domain's on-demand regions; no page is absent. */
static inline void away_begin(struct pd *pd)
{
	away = (struct away){.pager.look = away_look};
	pd->pager = &away.pager;
}

#endif
