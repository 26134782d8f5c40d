/* SPDX-License-Identifier: BSD-3-Clause */
/* A network of one's own for a test: a namespace with two interfaces at the ends of one cable. */
#ifndef NETNS_H
#define NETNS_H

#include <stdbool.h>

/**
 * Enter a new network namespace with veth interfaces "left" (10.7.0.1/24, fd07::1/64) and "right"
 * (10.7.0.2/24), both up, with an MTU of 9000. false where this process may not, or ip(8) is
 * missing: the test is skipped.
 */
bool netns_enter(void);

/** Run a command; whether it exited with 0. */
bool netns_run(const char *command);

#endif
