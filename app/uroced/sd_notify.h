/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages to the service manager, as sd_notify(3) sends them. */
#ifndef UROCED_SD_NOTIFY_H
#define UROCED_SD_NOTIFY_H

/** Send a state such as "READY=1" to the socket that $NOTIFY_SOCKET names. Returns 0, also if it
 * names none, or -errno. */
int notify(const char *state);

#endif
