/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making queue pairs old: their PSNs are where READs of so many PSNs would have left them. None of
 * those READs is played; the functions of the library that they would have called are, with longer
 * steps, so that whatever these functions keep is as it would be: moved along, or left behind.
 */
#ifndef SIM_AGE_H
#define SIM_AGE_H

#include <stdbool.h>

struct end;
struct sim;

/** Let some of the connected pairs be old, where the variant says so. Nothing is in flight. */
void age_pairs(struct sim *sim);

/** Whether all queue pairs are connected, or have been. */
bool age_is_connected(const struct sim *sim);

/** A packet was taken in: the first loss of a queue pair that has grown old narrows its window, as
 * any does. */
void age_check(struct end *end);

/** Whether nothing that is posted waits any more, complete or not. */
bool age_is_quiet(const struct sim *sim);

#endif
