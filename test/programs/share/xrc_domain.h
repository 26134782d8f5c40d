/* SPDX-License-Identifier: BSD-3-Clause */
/* An XRC domain of several processes, which know it by a file. */
#ifndef TEST_PROGRAMS_XRC_DOMAIN_H
#define TEST_PROGRAMS_XRC_DOMAIN_H

#include <stdlib.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "must.h"

/* Return a file that has no name any more. The caller's children have it, too. */
static inline int xrc_file(void)
{
	char name[] = "/tmp/uroce-xrc-XXXXXX";
	const int file = mkstemp(name);

	MUST(file >= 0 && unlink(name) == 0);
	return file;
}

/* Open the first device. */
static inline struct ibv_context *xrc_open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	MUST(list && list[0]);
	context = ibv_open_device(list[0]);
	MUST(context);
	ibv_free_device_list(list);
	return context;
}

/* Open the domain of a file. Return NULL if the device refuses. */
static inline struct ibv_xrcd *xrc_open_domain(struct ibv_context *context, int file, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = file,
		.oflags = oflags,
	};

	return ibv_open_xrcd(context, &attr);
}

#endif
