/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that assert the invariants of a requester's structs between two calls of its engine.
 * They exist only where assertions are on. */
#ifndef TRANSPORT_CHECK_H
#define TRANSPORT_CHECK_H

#ifndef NDEBUG

struct completer;
struct flight;
struct recovery;
struct requester;

/** PSNs are in their order, and near each other. */
void flight_check(const struct flight *flight);

/** The timers that run are those of its state, and a timed packet is in the air. */
void recovery_check(const struct recovery *recovery, const struct flight *flight);

/** The send queue's requests have the PSNs of the flight, and the place is where it says. */
void requester_check(const struct requester *requester);

/** Responses are kept only while some are missing. */
void completer_check(const struct completer *completer);

#endif

#endif
