/* SPDX-License-Identifier: BSD-3-Clause */
/* The rare part of wire/seal.h. */
#include "wire/seal.h"

#include "base/copy.h"

struct piece {
	uint8_t *to;
	struct packet_frag frag;
};

static void copy_piece(void *arg)
{
	const struct piece *piece = arg;

	if (piece->frag.kind == FRAG_ZERO)
		memset(piece->to, 0, piece->frag.len);
	else
		copy_ahead(piece->to, piece->frag.addr, piece->frag.len, 0);
}

int seal_copy_piece(uint8_t *to, struct packet_frag frag)
{
	struct piece piece = {.to = to, .frag = frag};

	if (frag.kind == FRAG_COPY)
		return guard_run(copy_piece, &piece);
	copy_piece(&piece);
	return 0;
}
