/* SPDX-License-Identifier: BSD-3-Clause */
/* What differs from host to host, as a hash: for numbers that must not collide between hosts. */
#ifndef BASE_HOST_H
#define BASE_HOST_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START UINT64_C(0xcbf29ce484222325) /* FNV-1a's */

/** FNV-1a: go on from `hash`, or begin with HASH_START. MT-safe. Its last bytes reach the upper
 * bits only. */
uint64_t hash_bytes(uint64_t hash, const void *data, size_t len);

/** Hash this host's id and name; the same at every call. MT-safe. */
uint64_t hash_host(uint64_t hash);

#endif
