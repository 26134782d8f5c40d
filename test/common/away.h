/* SPDX-License-Identifier: BSD-3-Clause */
/* A pager of which a test says what is not in memory. */
#ifndef TEST_COMMON_AWAY_H
#define TEST_COMMON_AWAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mem/pager.h"
#include "mem/pd.h"

struct away {
	struct pager pager; /* first */
	/* What is absent: bytes from here on. */
	uintptr_t from;
	size_t length;
	struct mr_touch touch; /* that was asked for last */
};

/* One at a time; static, because tests are. */
static struct away away;

static bool away_look(struct pager *pager, uintptr_t addr, struct mr_touch touch, bool write)
{
	(void)pager;
	(void)write;
	away.touch = touch;
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

/* Regions of this domain that are on-demand ones have it from now on; nothing is absent. */
static inline void away_begin(struct pd *pd)
{
	away = (struct away){.pager.look = away_look};
	pd->pager = &away.pager;
}

#endif
