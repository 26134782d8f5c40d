/* SPDX-License-Identifier: BSD-3-Clause */
/* Obeys the orders that users give through the report. */
#ifndef ENGINE_OBEY_H
#define ENGINE_OBEY_H

struct engine;

/** Execute and answer the order in the report, if there is one. Owner, between two engine polls. */
void obey(struct engine *engine);

#endif
