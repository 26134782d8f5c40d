/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bad network in front of a port of any kind: packets are lost, changed, duplicated, delayed and
 * reordered between the port and its user, in both directions, by a seed (impair/impair_path.h).
 *
 * The impaired port takes mbufs only, and one packet in each: it neither lends the port's own
 * buffers to the user nor passes packets of one mbuf on as several. Whatever the port below does
 * with several packets at once, as runs of packet sockets, it does behind the bad network.
 */
#ifndef PORT_IMPAIR_H
#define PORT_IMPAIR_H

struct port;

/**
 * Impair a prepared port, or one that its kind has opened already. Before any thread uses the port.
 * Not MT-safe.
 *
 * @param args
 *   As for impair_config_read; "": the port stays as it is.
 * @return
 *   0 or -errno (logged).
 */
int impair_prepare(struct port *port, const char *args);

#endif
