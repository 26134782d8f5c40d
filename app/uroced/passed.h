/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets that the service manager passes to uroced, as sd_listen_fds(3) tells. */
#ifndef UROCED_PASSED_H
#define UROCED_PASSED_H

#include <stddef.h>

/**
 * Take the passed sockets: they are closed on exec, and the environment no longer tells of them.
 * Not MT-safe.
 *
 * @return
 *   Their number; 0 if none were passed to this process; -E2BIG: more than `max`; -ENOTSOCK: one
 *   is not a listening unix socket of type SOCK_SEQPACKET with a path. `error` is then set.
 */
int passed_take(int *fds, size_t max, char *error, size_t error_size);

/** Write the path of a passed socket. */
void passed_path(int fd, char *path, size_t size);

#endif
