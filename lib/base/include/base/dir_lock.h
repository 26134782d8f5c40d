/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lock on the place of a socket in the file system. A server that starts removes a socket that
 * refuses connections, because the server of that socket has died. But a new socket refuses them
 * too, between bind() and listen(). So servers that start at the same moment take turns with this
 * lock.
 */
#ifndef BASE_DIR_LOCK_H
#define BASE_DIR_LOCK_H

/**
 * Lock the directory of a path against other callers. Wait for the lock for a second at most,
 * because any user who can read the directory can hold it.
 *
 * @return
 *   The argument for dir_unlock, also if the lock was not taken.
 */
int dir_lock(const char *path);

void dir_unlock(int lock);

#endif
