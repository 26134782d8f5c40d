/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests at a prompt: one thread reads commands, another one runs the test that they ask for. */
#ifndef TESTROCE_PROMPT_H
#define TESTROCE_PROMPT_H

struct control;
struct nic;
struct options;

/** Take commands from stdin until its end or "quit". Not MT-safe. 0; or 1 where a test failed. */
int prompt_run(struct nic *nic, struct control *control, const struct options *options);

#endif
