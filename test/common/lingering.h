/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets whose last close takes as long as somebody listens. */
#ifndef TEST_COMMON_LINGERING_H
#define TEST_COMMON_LINGERING_H

#include <netinet/in.h>

/** Listen, and neither accept nor read. Set the address to connect to. Skip the test if that is not
 * possible. */
int lingering_listen(struct sockaddr_in *address);

/** Return a socket whose last close takes as long as there is one who listens. */
int lingering_socket(const struct sockaddr_in *address);

/** Send such a socket into another one, where it stays unread. Keep no descriptor of it. */
void lingering_send(int socket, const struct sockaddr_in *address);

/** Return a socket where such a one is unread. */
int lingering_queue(const struct sockaddr_in *address);

#endif
