/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lock on the place of a socket in the file system. A server that starts removes the socket of a
 * dead one, which refuses connections; so does a fresh socket between bind() and listen(). Servers
 * that start at the same moment take turns with this lock.
 */
#ifndef BASE_PLACE_H
#define BASE_PLACE_H

/**
 * Lock the directory of a path against other callers, for a second at most. Any user who can read
 * the directory can hold the lock, so nobody waits for it without end.
 *
 * @return
 *   For place_unlock.
 */
int place_lock(const char *path);

void place_unlock(int lock);

#endif
