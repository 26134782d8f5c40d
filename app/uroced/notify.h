/* SPDX-License-Identifier: BSD-3-Clause */
/* Telling a service manager how it stands, as sd_notify(3) does. */
#ifndef UROCED_NOTIFY_H
#define UROCED_NOTIFY_H

/** Send a state such as "READY=1" to who asked for it in $NOTIFY_SOCKET. 0 (also where nobody did),
 * or -errno. */
int notify(const char *state);

#endif
