/* SPDX-License-Identifier: BSD-3-Clause */
/* The shortest round trip to each host, and if the host answers late. */
#include "transport/cc_path.h"

#include <stddef.h>
#include <string.h>

#include <rte_common.h>

#define PROBES 8 /* entries that a host may have */

static uint32_t hash_gid(const uint8_t gid[16])
{
	uint64_t words[2];

	memcpy(words, gid, sizeof(words));
	return (uint32_t)((words[0] ^ words[1]) * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

struct cc_path *cc_path_get(struct cc_paths *paths, const uint8_t gid[16])
{
	const uint32_t hash = hash_gid(gid);
	struct cc_path *unused = NULL;

	for (uint32_t i = 0; i < PROBES; i++) {
		struct cc_path *path = &paths->path[(hash + i) % CC_PATHS];

		if (memcmp(path->gid, gid, sizeof(path->gid)) == 0) {
			path->users++;
			return path;
		}
		if (path->users == 0 && unused == NULL)
			unused = path;
	}
	if (unused == NULL)
		return NULL;
	*unused = (struct cc_path){.users = 1};
	memcpy(unused->gid, gid, sizeof(unused->gid));
	return unused;
}

void cc_path_put(struct cc_path *path)
{
	if (path != NULL)
		path->users--;
}

uint64_t cc_path_note(struct cc_path *path, uint64_t rtt_ns, uint64_t now_ns)
{
	uint64_t min_rtt_ns;

	if (now_ns - path->since_ns >= CC_PATH_AGE_NS) {
		path->old_min_rtt_ns = path->min_rtt_ns;
		path->min_rtt_ns = 0;
	}
	if (path->min_rtt_ns == 0) {
		path->min_rtt_ns = rtt_ns;
		path->since_ns = now_ns;
	} else if (rtt_ns < path->min_rtt_ns) {
		path->min_rtt_ns = rtt_ns;
	}
	min_rtt_ns = path->old_min_rtt_ns != 0 ? RTE_MIN(path->old_min_rtt_ns, path->min_rtt_ns)
					       : path->min_rtt_ns;
	if (rtt_ns <= min_rtt_ns + CC_PATH_NEAR_NS)
		path->near_ns = now_ns;
	return min_rtt_ns;
}

void cc_path_note_single(struct cc_path *path, uint8_t *doubts, uint64_t min_rtt_ns,
			 uint64_t rtt_ns, bool is_long)
{
	const int64_t late_ns = rtt_ns > min_rtt_ns ? (int64_t)(rtt_ns - min_rtt_ns) : 0;
	const int64_t error_ns = late_ns - path->late_ns;
	const int64_t away_ns = error_ns < 0 ? -error_ns : error_ns;

	if (path->late_ns == 0 && path->deviation_ns == 0) {
		path->late_ns = late_ns;
		path->deviation_ns = late_ns / 2;
	} else {
		/* The weights of RFC 6298, 2.3. */
		path->deviation_ns += (away_ns - path->deviation_ns) / 4;
		path->late_ns += error_ns / 8;
	}
	if (is_long) {
		path->shorts -= path->shorts > 0;
		if (++*doubts < CC_PATH_DOUBTS)
			return;
		path->is_late = true;
		path->shorts = 0;
		*doubts = 0;
	} else {
		*doubts -= *doubts > 0;
		path->shorts += path->shorts < CC_PATH_DOUBTS;
		if (path->shorts == CC_PATH_DOUBTS)
			path->is_late = false;
	}
}

/*
 * A host that is late varies, so its round trips stay below the mean and four deviations. A queue
 * that was taken for a late host does not vary: what is allowed is less than its delay, so that it
 * becomes shorter.
 */
uint64_t cc_path_late_ns(const struct cc_path *path)
{
	return path->is_late
		       ? (uint64_t)(path->late_ns - path->late_ns / 8 + 4 * path->deviation_ns)
		       : 0;
}
