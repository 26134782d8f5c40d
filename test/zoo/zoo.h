/* SPDX-License-Identifier: BSD-3-Clause */
/* Small wrong programs, each for one mistake, and the right twin of each. */
#ifndef ZOO_H
#define ZOO_H

#include <stdbool.h>

/* A table ends with a case without a name. */
struct zoo_case {
	const char *name;
	void (*run)(void);
};

#define CASE(name)          \
	{                   \
#name, name \
	}

extern const struct zoo_case zoo_verbs[], zoo_silent[], zoo_check[], zoo_cm[];

/* Run the wrong program, and not its right twin. */
extern bool wrong;

/** End the program if something fails that is no part of the mistake. */
void must(bool ok, const char *what);

/** Open the device, for cases of verbs. */
void zoo_set_up(void);

/** End all of it, and of what they have created by zoo_world.h. */
void zoo_tear_down(void);

#endif
