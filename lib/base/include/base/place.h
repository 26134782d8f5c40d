/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lock on the place of a socket in the file system. A server that starts removes a socket that
 * refuses connections, because the server of that socket has died. But a new socket refuses them
 * too, between bind() and listen(). So servers that start at the same moment take turns with this
 * lock.
 */
#ifndef BASE_PLACE_H
#define BASE_PLACE_H

/**
 * Lock the directory of a path against other callers. Wait for the lock for a second at most,
 * because any user who can read the directory can hold it.
 *
 * @return
 *   The argument for place_unlock, also if the lock was not taken.
 */
int place_lock(const char *path);

void place_unlock(int lock);

#endif
