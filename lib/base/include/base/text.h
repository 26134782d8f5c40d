/* SPDX-License-Identifier: BSD-3-Clause */
/* Text that is written into a caller's buffer. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stddef.h>

#include <rte_common.h>

/* Text that is being written. The part that does not fit is counted, and not written. */
struct text {
	char *at;
	size_t size;
	size_t len;
};

void __rte_format_printf(2, 3) text_add(struct text *text, const char *format, ...);

/** Write why a value is refused. Returns -EINVAL. */
int __rte_format_printf(2, 3) text_refuse(struct text *why, const char *format, ...);

#endif
