/* SPDX-License-Identifier: BSD-3-Clause */
/* Loses, changes, duplicates, delays and reorders packets, by their configuration and its seed. */
#include "impair/impair_path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bitops.h>
#include <rte_cycles.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "damage.h"
#include "random.h"
#include "wire/headers.h"

#define ICRC_BYTES 4
#define TC_SHIFT   20 /* of the traffic class in an IPv6 header's first word */

static struct rte_udp_hdr *udp_of(const struct rte_mbuf *mbuf, const struct udp_frame *headers)
{
	return rte_pktmbuf_mtod_offset(mbuf, struct rte_udp_hdr *, headers->l4_off);
}

bool damage_find(const struct rte_mbuf *mbuf, struct udp_frame *headers)
{
	return roce_frame_find(rte_pktmbuf_mtod(mbuf, const uint8_t *), mbuf->data_len, headers);
}

/* Any bit from the BTH to the end of the UDP payload may be flipped, but only in the first buffer:
 * later ones may be the application's memory (port/dma.h), which must not change. */
bool damage_flip(struct rte_mbuf *mbuf, const struct udp_frame *headers,
		 uint32_t (*random)(void *arg, uint32_t n), void *arg)
{
	const uint32_t udp_len = rte_be_to_cpu_16(udp_of(mbuf, headers)->dgram_len);
	const uint32_t end = RTE_MIN(headers->l4_off + udp_len, (uint32_t)mbuf->data_len);
	uint8_t *frame = rte_pktmbuf_mtod(mbuf, uint8_t *);
	uint32_t bit;

	if (udp_len < sizeof(struct rte_udp_hdr) + sizeof(struct bth) + ICRC_BYTES ||
	    end < headers->len + sizeof(struct bth))
		return false;
	/* The ICRC does not cover one byte of the BTH. Draw from the others. */
	bit = random(arg, (end - headers->len - 1) * 8);
	if (bit >= offsetof(struct bth, ecn) * 8)
		bit += 8;
	frame[headers->len + bit / 8] ^= (uint8_t)(1u << bit % 8);
	return true;
}

void damage_mark(struct rte_mbuf *mbuf, const struct udp_frame *headers)
{
	void *l3 = rte_pktmbuf_mtod_offset(mbuf, void *, headers->l3_off);
	struct rte_ipv4_hdr *ip = l3;

	if (headers->ipv6) {
		((struct rte_ipv6_hdr *)l3)->vtc_flow |=
			rte_cpu_to_be_32((uint32_t)ECN_EXPERIENCED << TC_SHIFT);
		return;
	}
	ip->type_of_service |= ECN_EXPERIENCED;
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
}

static const char *const names[IMPAIR_KINDS] = {
	[IMPAIR_LOST] = "impair_lost",
	[IMPAIR_CORRUPTED] = "impair_corrupted",
	[IMPAIR_DUPLICATED] = "impair_duplicated",
	[IMPAIR_REORDERED] = "impair_reordered",
	[IMPAIR_MARKED] = "impair_marked",
	[IMPAIR_OVERFLOWED] = "impair_overflowed",
};

const char *impair_count_name(enum impair_kind kind)
{
	return names[kind];
}

int impair_path_init(struct impair_path *path, const struct impair_config *config, uint64_t stream,
		     struct impair_counts *counts)
{
	struct impair_random *const randoms[] = {&path->loss, &path->corrupt, &path->bit,
						 &path->dup,  &path->reorder, &path->depth,
						 &path->ce};

	memset(path, 0, sizeof(*path));
	path->config = config;
	path->counts = counts;
	for (size_t i = 0; i < RTE_DIM(randoms); i++)
		random_seed(randoms[i], config->seed, stream * RTE_DIM(randoms) + i);
	path->size = rte_align32pow2(config->limit);
	path->queue = calloc(path->size, sizeof(path->queue[0]));
	return path->queue ? 0 : -ENOMEM;
}

static void path_count(struct impair_path *path, enum impair_kind kind)
{
	path->counts->of[kind]++;
}

void impair_path_fini(struct impair_path *path)
{
	for (; path->left != path->entered; path->left++)
		rte_pktmbuf_free(path->queue[path->left % path->size].mbuf);
	for (uint32_t i = 0; i < path->late_count; i++)
		rte_pktmbuf_free(path->late[i].mbuf);
	path->late_count = 0;
	free(path->queue);
	path->queue = NULL;
}

static bool path_loses(struct impair_path *path)
{
	const struct impair_config *config = path->config;

	if (config->burst_end == 0)
		return random_hits(&path->loss, config->loss);
	if (path->in_burst)
		path->in_burst = !random_hits(&path->loss, config->burst_end);
	else
		path->in_burst = random_hits(&path->loss, config->burst_begin);
	return path->in_burst;
}

static uint32_t draw_bit(void *arg, uint32_t n)
{
	return random_below(arg, n);
}

/* Flip a bit if the draw says so. Return false if the packet must be dropped instead, because a
 * receiver could not notice the wrong bit. */
static bool path_corrupts(struct impair_path *path, struct rte_mbuf *mbuf,
			  const struct udp_frame *headers, bool has_icrc)
{
	if (!random_hits(&path->corrupt, path->config->corrupt))
		return true;
	path_count(path, IMPAIR_CORRUPTED);
	if (!has_icrc || !damage_flip(mbuf, headers, draw_bit, &path->bit))
		return false;
	/* Keep other values, such as PSOCK_ALONE. */
	if (mbuf->port == IMPAIR_VERIFIED)
		mbuf->port = 0;
	return true;
}

/* Return when a frame arrives: when the line has sent it at its rate, and the delay has passed. */
static uint64_t path_arrival_ns(struct impair_path *path, const struct rte_mbuf *mbuf,
				uint64_t now_ns)
{
	const struct impair_config *config = path->config;

	if (config->rate_bps > 0) {
		path->line_ns = RTE_MAX(path->line_ns, now_ns) +
				(uint64_t)mbuf->pkt_len * 8 * NS_PER_S / config->rate_bps;
		now_ns = path->line_ns;
	}
	return now_ns + config->delay_ns;
}

/* Put a packet into the queue, or among the packets that are overtaken. Return false if too many
 * packets are waiting. */
static bool path_enter(struct impair_path *path, struct rte_mbuf *mbuf, bool is_roce,
		       uint64_t now_ns)
{
	const struct impair_config *config = path->config;
	uint64_t due_ns;

	if (impair_path_count(path) >= config->limit) {
		path_count(path, IMPAIR_OVERFLOWED);
		return false;
	}
	due_ns = path_arrival_ns(path, mbuf, now_ns);
	if (is_roce && path->late_count < IMPAIR_LATE_MAX &&
	    random_hits(&path->reorder, config->reorder)) {
		path_count(path, IMPAIR_REORDERED);
		path->late[path->late_count++] = (struct impair_late){
			.mbuf = mbuf,
			.due_ns = due_ns + config->hold_ns,
			.after = path->entered + 1 + random_below(&path->depth, config->depth),
		};
		return true;
	}
	path->queue[path->entered++ % path->size] =
		(struct impair_held){.mbuf = mbuf, .due_ns = due_ns};
	return true;
}

static void path_duplicate(struct impair_path *path, const struct rte_mbuf *mbuf,
			   struct rte_mempool *pool, uint64_t now_ns)
{
	struct rte_mbuf *copy = rte_pktmbuf_copy(mbuf, pool, 0, UINT32_MAX);

	if (!copy)
		return;
	if (path_enter(path, copy, true, now_ns))
		path_count(path, IMPAIR_DUPLICATED);
	else
		rte_pktmbuf_free(copy);
}

/* Damage a RoCE packet. Return false if it must be dropped. */
static bool path_damage(struct impair_path *path, struct rte_mbuf *mbuf,
			const struct udp_frame *headers, bool has_icrc)
{
	if (path_loses(path)) {
		path_count(path, IMPAIR_LOST);
		return false;
	}
	if (!path_corrupts(path, mbuf, headers, has_icrc))
		return false;
	if (random_hits(&path->ce, path->config->ce)) {
		path_count(path, IMPAIR_MARKED);
		damage_mark(mbuf, headers);
	}
	return true;
}

void impair_path_put(struct impair_path *path, struct rte_mbuf *mbuf, struct rte_mempool *pool,
		     bool has_icrc, uint64_t now_ns)
{
	struct udp_frame headers;
	const bool is_roce = damage_find(mbuf, &headers);
	bool twice;

	if (is_roce && !path_damage(path, mbuf, &headers, has_icrc)) {
		rte_pktmbuf_free(mbuf);
		return;
	}
	twice = is_roce && random_hits(&path->dup, path->config->dup);
	if (!path_enter(path, mbuf, is_roce, now_ns)) {
		rte_pktmbuf_free(mbuf);
		return;
	}
	if (twice)
		path_duplicate(path, mbuf, pool, now_ns);
}

/* Return true if a packet has been overtaken by as many packets as it must be. */
static bool path_is_overtaken(const struct impair_path *path, const struct impair_late *late)
{
	return path->left >= late->after;
}

/* Remove and return the first overtaken packet whose time has come, or NULL. */
static struct rte_mbuf *path_take_late(struct impair_path *path, uint64_t now_ns)
{
	for (uint32_t i = 0; i < path->late_count; i++) {
		struct rte_mbuf *mbuf = path->late[i].mbuf;

		if (!path_is_overtaken(path, &path->late[i]) && path->late[i].due_ns > now_ns)
			continue;
		path->late_count--;
		memmove(&path->late[i], &path->late[i + 1],
			(path->late_count - i) * sizeof(path->late[0]));
		return mbuf;
	}
	return NULL;
}

static struct rte_mbuf *path_take(struct impair_path *path, uint64_t now_ns)
{
	const struct impair_held *held = &path->queue[path->left % path->size];

	if (path->left == path->entered || held->due_ns > now_ns)
		return NULL;
	path->left++;
	return held->mbuf;
}

uint16_t impair_path_get(struct impair_path *path, struct rte_mbuf **mbufs, uint16_t n,
			 uint64_t now_ns)
{
	uint16_t got;

	for (got = 0; got < n; got++) {
		mbufs[got] = path->late_count > 0 ? path_take_late(path, now_ns) : NULL;
		if (!mbufs[got])
			mbufs[got] = path_take(path, now_ns);
		if (!mbufs[got])
			break;
	}
	return got;
}

uint64_t impair_path_due_ns(const struct impair_path *path)
{
	uint64_t due_ns = IMPAIR_NEVER;

	if (path->left != path->entered)
		due_ns = path->queue[path->left % path->size].due_ns;
	for (uint32_t i = 0; i < path->late_count; i++) {
		if (path_is_overtaken(path, &path->late[i]))
			return 0;
		due_ns = RTE_MIN(due_ns, path->late[i].due_ns);
	}
	return due_ns;
}
