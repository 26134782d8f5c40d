/* SPDX-License-Identifier: BSD-3-Clause */
/* The set of optimisations that are on. */
#include "base/tuning.h"

#include <errno.h>
#include <string.h>

#define TUNING_ON(field, name, meaning) .field = true,
#define ALL_ON                     \
	{                          \
		TUNINGS(TUNING_ON) \
	}

struct tuning tuning = ALL_ON;

static bool *field_of(struct tuning *wanted, const char *name, size_t len)
{
#define TUNING_MATCH(field, text, meaning)                        \
	if (len == strlen(text) && strncmp(name, text, len) == 0) \
		return &wanted->field;
	TUNINGS(TUNING_MATCH)
	return NULL;
}

static int parse(const char *names, struct tuning *wanted)
{
	while (*names != '\0') {
		const size_t len = strcspn(names, ",");
		bool *field = field_of(wanted, names, len);

		if (!field)
			return -ENOENT;
		*field = false;
		names += len + (names[len] == ',');
	}
	return 0;
}

bool tuning_knows(const char *names)
{
	struct tuning wanted;

	return parse(names, &wanted) == 0;
}

int tuning_without(const char *names)
{
	struct tuning wanted = ALL_ON;
	const int rc = parse(names, &wanted);

	if (rc == 0)
		tuning = wanted;
	return rc;
}

const char *tuning_names(void)
{
#define TUNING_NAME(field, name, meaning) "," name
	static const char names[] = TUNINGS(TUNING_NAME);

	/* Skip the first comma. */
	return &names[1];
}
