/* SPDX-License-Identifier: BSD-3-Clause */
/* An ioctl(2) of the test that runs, in place of the C library's. */
#ifndef TEST_MEM_IOCTL_INSTEAD_H
#define TEST_MEM_IOCTL_INSTEAD_H

/** The function that every ioctl of this room calls; NULL: the C library's. */
extern int (*ioctl_instead)(int fd, unsigned long request, void *arg);

/** Call the C library's. */
int ioctl_real(int fd, unsigned long request, void *arg);

#endif
