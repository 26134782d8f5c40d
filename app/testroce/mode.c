/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of modes. */
#include "mode.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct mode *const modes[MODE_COUNT] = {
	[MODE_WRITE] = &mode_write,	[MODE_READ] = &mode_read,
	[MODE_SEND] = &mode_send,	[MODE_ATOMIC] = &mode_atomic,
	[MODE_LATENCY] = &mode_latency, [MODE_SOURCE] = &mode_source,
	[MODE_SINK] = &mode_sink,	[MODE_NULL] = &mode_null,
	[MODE_STORAGE] = &mode_storage, [MODE_INCAST] = &mode_incast,
};

int mode_find(const char *name)
{
	for (int i = 0; i < MODE_COUNT; i++)
		if (strcmp(modes[i]->name, name) == 0)
			return i;
	return -ENOENT;
}

void mode_list(char *text, size_t size)
{
	size_t len = 0;

	text[0] = '\0';
	for (int i = 0; i < MODE_COUNT && len < size; i++)
		len += (size_t)snprintf(text + len, size - len, "%s%s", i ? ", " : "",
					modes[i]->name);
}
