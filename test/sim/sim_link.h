/* SPDX-License-Identifier: BSD-3-Clause */
/* One direction of a link: it takes frames, and loses, delays, reorders, repeats and damages them
 * by a seed. */
#ifndef SIM_LINK_H
#define SIM_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "clock.h"
#include "rng.h"

/* The faults of a link. Rates are in a million frames. */
struct link_attr {
	uint32_t loss_ppm;
	uint32_t burst_ppm; /* the link goes down for up to burst_ns */
	uint32_t duplicate_ppm;
	uint32_t ghost_ppm; /* repeated after up to ghost_ns, when it was answered long ago */
	uint32_t corrupt_ppm;
	uint32_t reorder_ppm; /* delayed for up to reorder_ns, so that later ones overtake */
	uint32_t mark_ppm;    /* of ECN-capable frames: "congestion experienced" */
	uint64_t burst_ns;
	uint64_t ghost_ns;
	uint64_t reorder_ns;
	uint64_t latency_ns;
	uint64_t jitter_ns; /* added to the latency; keeps the order */
	uint64_t mbps;
	bool inside; /* a hand-over inside one device: no FCS, no padding */
};

struct link;

struct frame {
	TAILQ_ENTRY(frame) link;
	struct link *way; /* that counts it when it is taken; NULL: none does */
	uint32_t len;
	bool trusted; /* from the device to itself */
	/* Aligned as ports deliver frames. The memory ends where the frame does, so that a read
	 * beyond it is detected. */
	uint8_t bytes[] __attribute__((aligned(16)));
};

enum link_fate {
	LINK_SENT,
	LINK_LOST,
	LINK_DUPLICATED,
	LINK_GHOST,
	LINK_DAMAGED,
	LINK_HELD_BACK,
	LINK_FATES,
};

struct link {
	struct clock *clock;
	struct rng rng;
	struct link_attr attr;
	clock_fn deliver; /* (receiver, struct frame); the receiver then owns the frame */
	void *receiver;
	/* Gets each frame's fate; NULL without --verbose. */
	void (*trace)(const struct link *link, enum link_fate fate, const uint8_t *bytes,
		      uint32_t len);
	int from; /* numbers of the hosts, for the trace */
	int to;

	bool cut;	     /* no frame passes any more */
	uint32_t lose_after; /* the frame after so many others is lost, if `loses_one` */
	bool loses_one;
	/* frames that were given to the link, and those that the receiver has taken, or that were
	 * lost */
	uint32_t given;
	uint32_t taken;
	uint64_t busy_until_ns; /* the link carries one frame at a time */
	uint64_t down_until_ns; /* end of the burst of losses */
	uint64_t newest_ns;	/* arrival of the newest frame that keeps the order */
	uint64_t fates[LINK_FATES];
};

/** Return a frame with a copy of these bytes, which free() frees. */
struct frame *frame_make(const uint8_t *bytes, uint32_t len, bool trusted);

/** Send a frame; its bytes are copied. */
void link_send(struct link *link, const uint8_t *bytes, uint32_t len);

#endif
