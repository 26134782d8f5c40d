/* SPDX-License-Identifier: BSD-3-Clause */
/* A set-associative table of the requests that may be repeated. The key is a keyed hash of the
 * peer. */
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

static uint32_t count_of(const struct repeat *set, user_t user)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < REPEATS_WAYS; i++)
		count += set[i].user == user;
	return count;
}

/* Choose the entry to displace in a full set: the oldest one of the user that has the most entries.
 * So a user whose processes get many requests displaces entries of its own first. */
static struct repeat *displaced(struct repeat *set)
{
	struct repeat *oldest = set;
	uint32_t most = 0;

	for (uint32_t i = 0; i < REPEATS_WAYS; i++) {
		const uint32_t count = count_of(set, set[i].user);

		if (count > most || (count == most && set[i].until_ns < oldest->until_ns)) {
			most = count;
			oldest = &set[i];
		}
	}
	return oldest;
}

/* Return the entry of this peer; else one that is free or has expired; else one to displace. */
static struct repeat *place(struct repeat *set, uint64_t key, uint64_t now_ns)
{
	struct repeat *free_one = NULL;

	for (uint32_t i = 0; i < REPEATS_WAYS; i++) {
		if (set[i].key == key && set[i].until_ns != 0)
			return &set[i];
		if (set[i].until_ns <= now_ns)
			free_one = &set[i];
	}
	return free_one ? free_one : displaced(set);
}

void repeats_note(struct repeats *repeats, const struct repeats_peer *peer,
		  const struct repeat *went, uint64_t now_ns)
{
	const uint64_t key = key_of(repeats, peer);
	struct repeat *repeat = place(repeats->sets[key % REPEATS_SETS], key, now_ns);

	*repeat = *went;
	repeat->key = key;
	repeat->until_ns = now_ns + REPEATS_NS;
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
