/* SPDX-License-Identifier: BSD-3-Clause */
/* The sockets at which programs attach: which process listens on each, and who may connect. */

#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "doctor.h"
#include "config/settings.h"
#include "held.h"

#define OWNER "uroced"

struct look {
	const struct doctor *doctor;
	const char *pid;
	bool has_default;
};

static void tell_socket(void *arg, const struct held_socket *socket)
{
	struct look *look = arg;
	char full[PATH_MAX];

	if (socket->type != SOCK_SEQPACKET || !socket->listens ||
	    strstr(socket->path, "/dpdk_telemetry"))
		return;
	look->has_default |= strcmp(socket->path, SETTINGS_DEFAULT_SOCKET) == 0;
	if (snprintf(full, sizeof(full), "%s%s", look->doctor->host->root, socket->path) >=
	    (int)sizeof(full))
		return;
	if (look->doctor->host->may_write(full))
		doctor_tell(look->doctor, "socket", socket->path, NULL,
			    OWNER " (process %s) listens; this user may attach", look->pid);
	else
		doctor_tell(look->doctor, "socket", socket->path,
			    "join its group, or start " OWNER " with --socket-group or "
			    "--socket-mode, or ask for its --isolated socket",
			    OWNER " (process %s) listens; this user may not attach", look->pid);
}

static void check_default(const struct doctor *doctor)
{
	char full[PATH_MAX];

	if (snprintf(full, sizeof(full), "%s" SETTINGS_DEFAULT_SOCKET, doctor->host->root) >=
	    (int)sizeof(full))
		return;
	if (access(full, F_OK) == 0)
		doctor_tell(doctor, "socket", SETTINGS_DEFAULT_SOCKET,
			    "start uroced, which replaces the file, or as root: "
			    "rm " SETTINGS_DEFAULT_SOCKET,
			    "the file is there, and no process is seen that listens; uroce-run "
			    "would use it");
	else
		doctor_tell(doctor, "socket", SETTINGS_DEFAULT_SOCKET, NULL,
			    "no uroced listens there: programs need a port of their own, or "
			    "--local");
}

void doctor_sockets(const struct doctor *doctor)
{
	struct look look = {.doctor = doctor};
	char **pids, comm[32];
	const size_t count = doctor_list(doctor, "/proc", &pids);
	bool all_seen = true;

	for (size_t i = 0; i < count; i++) {
		if (pids[i][0] < '0' || pids[i][0] > '9' ||
		    !doctor_read(doctor, comm, sizeof(comm), "/proc/%s/comm", pids[i]) ||
		    strcmp(comm, OWNER) != 0)
			continue;
		look.pid = pids[i];
		if (held_each(doctor->host->root, pids[i], tell_socket, &look))
			continue;
		doctor_tell(doctor, "socket", "", NULL,
			    OWNER " (process %s) is another user's: run as root to see its sockets",
			    pids[i]);
		all_seen = false;
	}
	doctor_list_free(pids, count);
	if (!look.has_default && all_seen)
		check_default(doctor);
}
