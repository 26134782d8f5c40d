/* SPDX-License-Identifier: BSD-3-Clause */
/* What uroced and the service manager tell each other: sockets that it passes, as sd_listen_fds(3)
 * says, and messages to it, as sd_notify(3) sends them. */
#ifndef UROCED_SERVICE_H
#define UROCED_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The name by which the service manager keeps the resume table of a port; its number follows. */
#define SERVICE_TABLE "uroce-resume-"

/* The name of what the service manager closes later. */
#define SERVICE_LATE "uroce-late"

/**
 * Take the passed sockets, and the resume tables that an earlier process has let the service
 * manager keep: they are closed on exec, and the environment no longer tells of them. Of what is
 * closed later, close our copies. Not MT-safe.
 *
 * @param tables
 *   By port: set to the descriptor of its table, if there is one. It is of any kind.
 * @return
 *   The number of sockets; 0 if none were passed to this process; -E2BIG: more than `max`;
 * -ENOTSOCK: one is not a listening unix socket of type SOCK_SEQPACKET with a path. `error` is then
 * set.
 */
int service_take(int *fds, size_t max, int *tables, size_t table_count, char *error,
		 size_t error_size);

/** Write the path of a passed socket. */
void service_path(int fd, char *path, size_t size);

/** Send a state such as "READY=1" to the socket that $NOTIFY_SOCKET names. Returns 0, also if it
 * names none, or -errno. */
int service_notify(const char *state);

/** Return the service's main process if the service manager runs this process beside it
 * (ExecReload= of systemd), or 0. */
pid_t service_main(void);

/** Tell the service manager that a process is the service's main process from now on. 0 or
 * -errno. */
int service_set_main(pid_t pid);

/** Return true if the service manager keeps descriptors for the next process. */
bool service_keeps(void);

/** Let the service manager keep the resume table of a port, in place of an earlier one. 0 or
 * -errno. */
int service_keep_table(int fd, size_t number);

/**
 * Let the service manager close descriptors when the next process calls this: the kernel takes some
 * 20 ms to close them, and a process would end as much later. Those that it keeps by the same name
 * are closed now. 0 or -errno.
 */
int service_close_late(const int *fds, size_t count);

#endif
