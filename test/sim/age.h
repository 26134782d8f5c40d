/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs age: their PSNs jump to where READs of so many PSNs would have left them. Those READs
 * are not played. The functions of the library that they would have called are called, in longer
 * steps. So a PSN that these functions keep is moved along, or left behind, as it would be.
 */
#ifndef SIM_AGE_H
#define SIM_AGE_H

#include <stdbool.h>

struct end;
struct sim;

/** Age some of the connected pairs, if the variant says so. Nothing may be in flight. */
void age_pairs(struct sim *sim);

/** Return true if no queue pair is still to be connected. */
bool age_is_connected(const struct sim *sim);

/** Check, after each packet that an end takes in, that the first loss since it aged narrows its
 * window. */
void age_check(struct end *end);

/** Return true if every request that is posted was executed, with or without a completion. */
bool age_is_quiet(const struct sim *sim);

#endif
