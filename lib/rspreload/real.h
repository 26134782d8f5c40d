/* SPDX-License-Identifier: BSD-3-Clause */
/* The C library's calls behind ours. Included first: the calls have their names of old. */
#ifndef RSPRELOAD_REAL_H
#define RSPRELOAD_REAL_H

/* With it fcntl would be another name for fcntl64. */
#undef _FILE_OFFSET_BITS

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL_CALLS(X)   \
	X(socket);      \
	X(bind);        \
	X(listen);      \
	X(accept);      \
	X(accept4);     \
	X(connect);     \
	X(shutdown);    \
	X(close);       \
	X(recv);        \
	X(recvfrom);    \
	X(recvmsg);     \
	X(read);        \
	X(readv);       \
	X(send);        \
	X(sendto);      \
	X(sendmsg);     \
	X(write);       \
	X(writev);      \
	X(poll);        \
	X(ppoll);       \
	X(select);      \
	X(pselect);     \
	X(getpeername); \
	X(getsockname); \
	X(setsockopt);  \
	X(getsockopt);  \
	X(fcntl);       \
	X(fcntl64);     \
	X(ioctl);       \
	X(dup);         \
	X(dup2);        \
	X(dup3);        \
	X(sendfile);

struct real_calls {
#define MEMBER(name) __typeof__(&name) name
	REAL_CALLS(MEMBER)
#undef MEMBER
};

/** The C library's. MT-safe. */
const struct real_calls *real(void);

/** Return true where this address is in a library that rsockets are made of. MT-safe. */
bool real_is_own(const void *address);

/** Return true where the calling function was called by one of these: to them an rsocket's number
 * is a descriptor like any other. */
#define REAL_OWN_CALLS() real_is_own(__builtin_return_address(0))

/** The rsocket that a descriptor is to who called the calling function; less than 0: none. */
#define REAL_RSOCKET(fd) (fds_get(fd) >= 0 && !REAL_OWN_CALLS() ? fds_get(fd) : -1)

#endif
