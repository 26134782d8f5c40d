/* SPDX-License-Identifier: BSD-3-Clause */
/* A set-associative table of requests, by a keyed hash of their peers. */
#include "owner/repeats.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/random.h>

#include <rte_common.h>
#include <rte_jhash.h>

int repeats_init(struct repeats *repeats)
{
	return getrandom(repeats->seeds, sizeof(repeats->seeds), 0) ==
			       (ssize_t)sizeof(repeats->seeds)
		       ? 0
		       : -EIO;
}

static uint64_t key_of(const struct repeats *repeats, const struct repeats_peer *peer)
{
	uint32_t words[7] = {peer->id, (uint32_t)peer->vlan_id, peer->sidr};
	uint32_t high = repeats->seeds[0], low = repeats->seeds[1];

	memcpy(words + 3, peer->gid, sizeof(peer->gid));
	rte_jhash_32b_2hashes(words, RTE_DIM(words), &high, &low);
	return (uint64_t)high << 32 | low;
}

static const struct repeat *find(const struct repeat *set, uint64_t key, uint64_t now_ns)
{
	for (uint32_t i = 0; i < REPEATS_WAYS; i++) {
		if (set[i].key == key && set[i].until_ns > now_ns)
			return &set[i];
	}
	return NULL;
}

/* The place of this peer, or else the one whose time is up first. */
static struct repeat *place(struct repeat *set, uint64_t key)
{
	struct repeat *oldest = set;

	for (uint32_t i = 0; i < REPEATS_WAYS; i++) {
		if (set[i].key == key && set[i].until_ns != 0)
			return &set[i];
		if (set[i].until_ns < oldest->until_ns)
			oldest = &set[i];
	}
	return oldest;
}

void repeats_note(struct repeats *repeats, const struct repeats_peer *peer, uint64_t tid,
		  uint16_t slot, uint32_t generation, uint64_t now_ns)
{
	const uint64_t key = key_of(repeats, peer);

	*place(repeats->sets[key % REPEATS_SETS], key) = (struct repeat){
		.key = key,
		.tid = tid,
		.until_ns = now_ns + REPEATS_NS,
		.generation = generation,
		.slot = slot,
	};
}

const struct repeat *repeats_find(const struct repeats *repeats, const struct repeats_peer *peer,
				  uint64_t now_ns)
{
	const uint64_t key = key_of(repeats, peer);

	return find(repeats->sets[key % REPEATS_SETS], key, now_ns);
}

const struct repeat *repeats_last(const struct repeats *repeats, const struct repeats_peer *peer)
{
	return repeats_find(repeats, peer, 0);
}
