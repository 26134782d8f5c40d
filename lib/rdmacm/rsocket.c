/* SPDX-License-Identifier: BSD-3-Clause */
/* rsockets are not supported yet: each call fails. */
#include <rdma/rsocket.h>

#include "id.h"

#define UNSUPPORTED(type, name, ...) \
	type name(__VA_ARGS__)       \
	{                            \
		errno = EOPNOTSUPP;  \
		return (type)-1;     \
	}
/* The parameters are ignored. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

UNSUPPORTED(int, rsocket, int domain, int type, int protocol)
UNSUPPORTED(int, rbind, int socket, const struct sockaddr *addr, socklen_t addrlen)
UNSUPPORTED(int, rlisten, int socket, int backlog)
UNSUPPORTED(int, raccept, int socket, struct sockaddr *addr, socklen_t *addrlen)
UNSUPPORTED(int, rconnect, int socket, const struct sockaddr *addr, socklen_t addrlen)
UNSUPPORTED(int, rshutdown, int socket, int how)
UNSUPPORTED(int, rclose, int socket)
UNSUPPORTED(ssize_t, rrecv, int socket, void *buf, size_t len, int flags)
UNSUPPORTED(ssize_t, rrecvfrom, int socket, void *buf, size_t len, int flags,
	    struct sockaddr *src_addr, socklen_t *addrlen)
UNSUPPORTED(ssize_t, rrecvmsg, int socket, struct msghdr *msg, int flags)
UNSUPPORTED(ssize_t, rsend, int socket, const void *buf, size_t len, int flags)
UNSUPPORTED(ssize_t, rsendto, int socket, const void *buf, size_t len, int flags,
	    const struct sockaddr *dest_addr, socklen_t addrlen)
UNSUPPORTED(ssize_t, rsendmsg, int socket, const struct msghdr *msg, int flags)
UNSUPPORTED(ssize_t, rread, int socket, void *buf, size_t count)
UNSUPPORTED(ssize_t, rreadv, int socket, const struct iovec *iov, int iovcnt)
UNSUPPORTED(ssize_t, rwrite, int socket, const void *buf, size_t count)
UNSUPPORTED(ssize_t, rwritev, int socket, const struct iovec *iov, int iovcnt)
UNSUPPORTED(int, rpoll, struct pollfd *fds, nfds_t nfds, int timeout)
UNSUPPORTED(int, rselect, int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds,
	    struct timeval *timeout)
UNSUPPORTED(int, rgetpeername, int socket, struct sockaddr *addr, socklen_t *addrlen)
UNSUPPORTED(int, rgetsockname, int socket, struct sockaddr *addr, socklen_t *addrlen)
UNSUPPORTED(int, rsetsockopt, int socket, int level, int optname, const void *optval,
	    socklen_t optlen)
UNSUPPORTED(int, rgetsockopt, int socket, int level, int optname, void *optval, socklen_t *optlen)
UNSUPPORTED(int, rfcntl, int socket, int cmd, ...)
UNSUPPORTED(off_t, riomap, int socket, void *buf, size_t len, int prot, int flags, off_t offset)
UNSUPPORTED(int, riounmap, int socket, void *buf, size_t len)
UNSUPPORTED(size_t, riowrite, int socket, const void *buf, size_t count, off_t offset, int flags)
