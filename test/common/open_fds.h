/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts the descriptors of this process, for tests that nothing stays open, and its threads, which
 * may close some. */
#ifndef TEST_COMMON_OPEN_FDS_H
#define TEST_COMMON_OPEN_FDS_H

/**
 * Compare the values only with each other: the count includes the descriptor that it needs itself.
 */
unsigned int fds_count(void);

/** Wait until no more are open, because threads close some of them, at any time. */
void fds_wait(unsigned int count);

/** Likewise for threads. */
unsigned int threads_count(void);

/** Wait until there are no more threads. */
void threads_wait(unsigned int count);

#endif
