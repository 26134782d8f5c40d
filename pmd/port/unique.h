/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers that differ between hosts and stay the same on one. */
#ifndef UNIQUE_H
#define UNIQUE_H

#include <stdint.h>

/** Hash a text together with what identifies this host. MT-safe. */
uint64_t unique_hash(const char *text);

#endif
