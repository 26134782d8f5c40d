/* SPDX-License-Identifier: BSD-3-Clause */
/* An isolated process of a user, attached to a server. */
#ifndef ATTACH_RIG_H
#define ATTACH_RIG_H

#include <sys/types.h>

#include "server.h"
#include "share/message.h"

/** Attach it. Returns its end of the socket; `welcome` is the answer that waits there first. */
int attach_rig(struct server *server, uid_t uid, struct share_message *welcome);

#endif
