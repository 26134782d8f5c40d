/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that a responder has executed before. */
#ifndef TRANSPORT_DUPLICATE_H
#define TRANSPORT_DUPLICATE_H

#include "transport/responder.h"

/** Answer a request whose PSN is before the expected one. */
void duplicate_answer(struct responder *responder, const struct packet *packet);

#endif
