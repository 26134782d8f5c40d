/* SPDX-License-Identifier: BSD-3-Clause */
/* Executes the commands that users give through the report. */
#ifndef ENGINE_COMMANDS_H
#define ENGINE_COMMANDS_H

struct engine;

/** Execute and answer the command in the report, if there is one. Owner, between two engine polls.
 */
void commands_execute(struct engine *engine);

#endif
