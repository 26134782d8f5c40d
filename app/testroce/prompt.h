/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests at a prompt: one thread reads commands, another thread runs the test. */
#ifndef TESTROCE_PROMPT_H
#define TESTROCE_PROMPT_H

struct control;
struct nic;
struct options;

/** Take commands from stdin until its end or "quit". Not MT-safe. Returns 0, or 1 if a test failed.
 */
int prompt_run(struct nic *nic, struct control *control, const struct options *options);

#endif
