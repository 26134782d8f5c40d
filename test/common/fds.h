/* SPDX-License-Identifier: BSD-3-Clause */
/* How many descriptors this process has, for tests of what is left open. */
#ifndef TEST_COMMON_FDS_H
#define TEST_COMMON_FDS_H

/** Comparable with each other only: the look itself needs one as well. */
unsigned int fds_count(void);

#endif
