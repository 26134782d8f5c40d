/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes text into a caller's buffer. */
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static void __rte_format_printf(2, 0) text_vadd(struct text *text, const char *format, va_list args)
{
	const size_t used = RTE_MIN(text->len, text->size);
	int len;

	len = vsnprintf(text->at + used, text->size - used, format, args);
	if (len > 0)
		text->len += (size_t)len;
}

void text_add(struct text *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	text_vadd(text, format, args);
	va_end(args);
}

int text_refuse(struct text *why, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	text_vadd(why, format, args);
	va_end(args);
	return -EINVAL;
}
