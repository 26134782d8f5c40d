/* SPDX-License-Identifier: BSD-3-Clause */
/* Hashes of what differs between hosts, for numbers that must not collide between hosts. */
#ifndef BASE_HOST_H
#define BASE_HOST_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START UINT64_C(0xcbf29ce484222325) /* FNV-1a's */

/** Continue the FNV-1a hash `hash`, or begin with HASH_START. MT-safe. The last byte of the data
 * does not reach all bits, so a caller that uses only some bits of the hash mixes them first. */
uint64_t hash_bytes(uint64_t hash, const void *data, size_t len);

/** Add this host's id and name to the hash: the same in every process of the host. MT-safe. */
uint64_t hash_host(uint64_t hash);

/** Hash a text together with what identifies this host: every bit differs between hosts and texts.
 * MT-safe. */
uint64_t hash_unique(const char *text);

#endif
