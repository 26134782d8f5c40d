/* SPDX-License-Identifier: BSD-3-Clause */
/* Assertions of the invariants of a requester's structs between two calls of its engine. They exist
 * only in builds with assertions. */
#ifndef TRANSPORT_CHECK_H
#define TRANSPORT_CHECK_H

#ifndef NDEBUG

struct completer;
struct loss;
struct requester;

/** PSNs are in order, and close to each other; the running timers are those of the state, and a
 * timed packet is in flight. */
void loss_check(const struct loss *loss);

/** The send queue's requests have the PSNs in flight, and the located place is right. */
void requester_check(const struct requester *requester);

/** Responses are kept only while some are missing. */
void completer_check(const struct completer *completer);

#endif

#endif
