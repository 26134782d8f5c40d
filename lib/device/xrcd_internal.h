/* SPDX-License-Identifier: BSD-3-Clause */
/* An XRC domain, for xrcd.c and xrc_share.c. */
#ifndef XRCD_INTERNAL_H
#define XRCD_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

struct device;
struct pd;
struct xrc_stand_in;
struct xrcd_member;

struct xrcd {
	LIST_ENTRY(xrcd) link;
	struct device *device;
	struct pd *pd;
	LIST_HEAD(, xrcd_member) members; /* under the engine's lock */
	uint32_t opens;			  /* under the device's xrcd_lock */
	bool has_file;
	bool is_shared; /* the owner of the port knows it */
	dev_t dev;
	ino_t ino;
	/* queue pairs that stand in for targets of other processes; engine's thread or lock */
	LIST_HEAD(, xrc_stand_in) stand_ins;
};

#endif
