/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiving half of a stream: ring, grants and credits. */
#include "rs_in.h"

#include <errno.h>
#include <string.h>

#include <rte_common.h>

void rs_in_init(struct rs_in *in, uint8_t *ring, uint32_t size, uint16_t requests)
{
	const uint32_t part = size / 2;

	*in = (struct rs_in){
		.ring = ring,
		.part = part,
		.promised = part,
		.freed = part,
		.next = part,
		.requests = requests,
	};
}

void rs_in_count(struct rs_in *in)
{
	in->taken++;
}

int rs_in_data(struct rs_in *in, uint32_t len)
{
	if (len == 0 || len > in->promised)
		return -EPROTO;
	in->promised -= len;
	in->ready += len;
	return 0;
}

bool rs_in_is_due(const struct rs_in *in)
{
	return in->freed >= in->part || (uint16_t)(in->taken - in->told) >= in->requests / 2;
}

void rs_in_grant(struct rs_in *in, struct rs_grant *grant)
{
	in->told = in->taken;
	*grant = (struct rs_grant){.credits = (uint16_t)(in->taken + in->requests)};
	if (in->freed < in->part)
		return;
	grant->offset = in->next;
	grant->length = in->part;
	in->next = in->next == 0 ? in->part : 0;
	in->freed -= in->part;
	in->promised += in->part;
}

size_t rs_in_peek(const struct rs_in *in, size_t skip, void *data, size_t len)
{
	const uint32_t size = 2 * in->part;
	uint32_t from, first;

	if (skip >= in->ready)
		return 0;
	len = RTE_MIN(len, in->ready - skip);
	if (!data)
		return len;
	from = (uint32_t)((in->head + skip) % size);
	first = (uint32_t)RTE_MIN(len, (size_t)(size - from));
	memcpy(data, in->ring + from, first);
	memcpy((uint8_t *)data + first, in->ring, len - first);
	return len;
}

size_t rs_in_read(struct rs_in *in, void *data, size_t len)
{
	const uint32_t got = (uint32_t)rs_in_peek(in, 0, data, len);

	in->head = (in->head + got) % (2 * in->part);
	in->ready -= got;
	in->freed += got;
	return got;
}
