/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a responder refuses a request, beside what the check of its memory says (mem/mr.h). */
#ifndef TRANSPORT_REFUSAL_H
#define TRANSPORT_REFUSAL_H

#include "transport/responder.h"

/* Reasons that the checks of placement.c have, too: with the region's key, and with an address and
 * the key. */
#define REFUSAL_SAY_UNMAPPED \
	"the memory of the region 0x%x is not mapped any more, or not for writing"
#define REFUSAL_SAY_ALIGNMENT \
	"the address 0x%" PRIx64 " of the region 0x%x is at no multiple of 8 in its process"

enum refusal {
	REFUSAL_SEQUENCE, /* it does not continue the message in progress, or begins another one */
	REFUSAL_SRQ,	  /* XRC: it names no shared receive queue of the domain */
	REFUSAL_RIGHT,	  /* the queue pair does not allow the operation */
	REFUSAL_MTU,	  /* its payload does not fit the path MTU */
	REFUSAL_LENGTH,	  /* the message is longer than any may be */
	REFUSAL_WRITE_LENGTH, /* the packets of a WRITE have more or fewer bytes than the first said
			       */
	REFUSAL_SHORT_RECEIVE, /* the message is longer than the receive request */
	REFUSAL_RESOURCES,     /* more READs and atomics than agreed */
	REFUSAL_ALIGNMENT,     /* an atomic whose address is not a multiple of 8 */
	REFUSAL_UNMAPPED,      /* the region grants it, and the process has no such memory */
	REFUSAL_CHANGED,       /* the region changed after bytes were placed out of order */
};

/** Return the fault of a refusal, and say why (base/reason.h). */
enum fault refusal_fault(const struct responder *responder, const struct packet *packet,
			 enum refusal refusal);

#endif
