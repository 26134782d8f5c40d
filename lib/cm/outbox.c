/* SPDX-License-Identifier: BSD-3-Clause */
/* MADs that wait for the engine's next pass. */
#include "outbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct outbox_mad *place(struct outbox_mad *mads, uint32_t room, uint32_t index)
{
	return &mads[index & (room - 1)];
}

static int grow(struct outbox *outbox)
{
	const uint32_t room = outbox->room ? 2 * outbox->room : OUTBOX_KEPT;
	struct outbox_mad *mads;

	if (room > OUTBOX_MAX)
		return -ENOBUFS;
	mads = reallocarray(NULL, room, sizeof(*mads));
	if (!mads)
		return -ENOMEM;
	for (uint32_t i = outbox->head; i != outbox->tail; i++)
		*place(mads, room, i) = *place(outbox->mads, outbox->room, i);
	free(outbox->mads);
	outbox->mads = mads;
	outbox->room = room;
	return 0;
}

int outbox_push(struct outbox *outbox, const struct gsi_address *to, const uint8_t *mad)
{
	const uint32_t count = outbox->tail - outbox->head;
	const int rc = count == outbox->room ? grow(outbox) : 0;
	struct outbox_mad *slot;

	if (rc != 0)
		return rc;
	slot = place(outbox->mads, outbox->room, outbox->tail++);
	slot->to = *to;
	memcpy(slot->bytes, mad, sizeof(slot->bytes));
	return 0;
}

const struct outbox_mad *outbox_first(const struct outbox *outbox)
{
	if (outbox->head == outbox->tail)
		return NULL;
	return place(outbox->mads, outbox->room, outbox->head);
}

void outbox_pop(struct outbox *outbox)
{
	/* Give back what a storm of connections has taken. */
	if (++outbox->head == outbox->tail && outbox->room > OUTBOX_KEPT)
		outbox_fini(outbox);
}

void outbox_fini(struct outbox *outbox)
{
	free(outbox->mads);
	*outbox = (struct outbox){0};
}
