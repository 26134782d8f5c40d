/* SPDX-License-Identifier: BSD-3-Clause */
/* The C library's calls that our calls replace. Include this header first: it declares the calls
 * without 64-bit names. */
#ifndef RSPRELOAD_REAL_H
#define RSPRELOAD_REAL_H

/* If this macro were defined, fcntl would be an alias of fcntl64. */
#undef _FILE_OFFSET_BITS

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL_CALLS(X)    \
	X(socket);       \
	X(bind);         \
	X(listen);       \
	X(accept);       \
	X(accept4);      \
	X(connect);      \
	X(shutdown);     \
	X(close);        \
	X(recv);         \
	X(recvfrom);     \
	X(recvmsg);      \
	X(read);         \
	X(readv);        \
	X(send);         \
	X(sendto);       \
	X(sendmsg);      \
	X(write);        \
	X(writev);       \
	X(poll);         \
	X(ppoll);        \
	X(select);       \
	X(pselect);      \
	X(getpeername);  \
	X(getsockname);  \
	X(setsockopt);   \
	X(getsockopt);   \
	X(fcntl);        \
	X(fcntl64);      \
	X(ioctl);        \
	X(dup);          \
	X(dup2);         \
	X(dup3);         \
	X(epoll_ctl);    \
	X(epoll_wait);   \
	X(epoll_pwait);  \
	X(epoll_pwait2); \
	X(sendfile);

struct real_calls {
#define MEMBER(name) __typeof__(&name) name
	REAL_CALLS(MEMBER)
#undef MEMBER
};

/** Return the C library's calls. MT-safe. */
const struct real_calls *real(void);

/** Return true if the address is in librdmacm, in libibverbs or in what implements it: they make
 * rsockets. MT-safe. */
bool real_is_own(const void *address);

/** Return true if one of these libraries has called the calling function. For these libraries the
 * number of an rsocket is an ordinary descriptor. */
#define REAL_OWN_CALLS() real_is_own(__builtin_return_address(0))

/** Return the rsocket that a descriptor means for the caller of the calling function, or less than
 * 0 if it means none. */
#define REAL_RSOCKET(fd) (fds_get(fd) >= 0 && !REAL_OWN_CALLS() ? fds_get(fd) : -1)

/** Call the function of rsockets or of the C library, depending on the descriptor. */
#define EITHER(fd, name, ...)                                        \
	(REAL_RSOCKET(fd) >= 0 ? r##name(fds_get(fd), ##__VA_ARGS__) \
			       : real()->name(fd, ##__VA_ARGS__))

/** The same for a call that reads, and for one that sends `wanted` bytes. */
#define EITHER_READ(fd, name, ...)                                                                 \
	(REAL_RSOCKET(fd) >= 0 ? epolls_has_read(fds_get(fd), r##name(fds_get(fd), ##__VA_ARGS__)) \
			       : real()->name(fd, ##__VA_ARGS__))
#define EITHER_SEND(fd, wanted, name, ...)                                                   \
	(REAL_RSOCKET(fd) >= 0                                                               \
		 ? epolls_has_sent(fds_get(fd), wanted, r##name(fds_get(fd), ##__VA_ARGS__)) \
		 : real()->name(fd, ##__VA_ARGS__))

#endif
