/* SPDX-License-Identifier: BSD-3-Clause */
/* An ioctl(2) of the test that runs, in place of the C library's. */
#include "ioctl_instead.h"

#include <stdarg.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int (*ioctl_instead)(int fd, unsigned long request, void *arg);

int ioctl_real(int fd, unsigned long request, void *arg)
{
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	return ioctl_instead ? ioctl_instead(fd, request, arg) : ioctl_real(fd, request, arg);
}
