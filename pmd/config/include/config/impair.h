/* SPDX-License-Identifier: BSD-3-Clause */
/* Damage that a port does to packets on purpose, as users write it: "loss=0.01,delay=50us". */
#ifndef CONFIG_IMPAIR_H
#define CONFIG_IMPAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMPAIR_ALL	   (UINT64_C(1) << 62) /* the fraction 1 */
#define IMPAIR_DEPTH_MAX   1000
#define IMPAIR_LIMIT_MAX   16384
#define IMPAIR_DELAY_MAX_S 1

/* Fractions are parts of IMPAIR_ALL. Each direction gets the damage separately. */
struct impair_config {
	uint64_t loss; /* packets that get lost; independently of each other if burst_end is 0 */
	/* Gilbert-Elliott model: the chance that a burst of losses begins after a packet that got
	 * through, and the chance that it ends after a lost packet. burst_end 0: no bursts. */
	uint64_t burst_begin;
	uint64_t burst_end;
	uint64_t corrupt;  /* packets in which one bit is flipped */
	uint64_t dup;	   /* packets that arrive twice */
	uint64_t reorder;  /* packets that others overtake */
	uint32_t depth;	   /* 1 to `depth` packets overtake such a packet, each number as likely */
	uint64_t hold_ns;  /* the longest time that such a packet waits to be overtaken */
	uint64_t ce;	   /* packets that are marked "congestion experienced" */
	uint64_t delay_ns; /* of each packet */
	uint64_t rate_bps; /* bits of frames in a second; 0: no limit */
	uint32_t limit;	   /* packets that wait at once; further ones are dropped */
	uint64_t seed;
	bool rx, tx; /* the directions that are damaged */
};

/** Read arguments: KEY=VALUE,... (doc/user/bad-networks.md). MT-safe. 0, or -EINVAL with one line
 * in `error`.
 */
int impair_config_read(const char *text, struct impair_config *config, char *error,
		       size_t error_size);

/**
 * Split "impair,ARGS,next=PORT". MT-safe.
 *
 * @param args
 *   Gets ARGS; "" if `port` does not begin with "impair,".
 * @param next
 *   Set to PORT, within `port`; or to all of `port`.
 * @return
 *   0, or -EINVAL with one line in `error`.
 */
int impair_config_split(const char *port, char *args, size_t args_size, const char **next,
			char *error, size_t error_size);

/** Return how many packets a port with these arguments holds back at most. 0: none, or the
 * arguments are wrong. MT-safe. */
uint32_t impair_config_buffers(const char *text);

/** Return true if packets are held back, so that they need buffers and time. MT-safe. */
static inline bool impair_config_holds(const struct impair_config *config)
{
	return config->delay_ns > 0 || config->rate_bps > 0 || config->reorder > 0;
}

#endif
