/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of a device's objects that its other tables do not contain, to show them to users. */
#ifndef DEVICE_OBJECTS_H
#define DEVICE_OBJECTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct device;

enum device_object_kind {
	DEVICE_OBJECT_PD,  /* a struct pd */
	DEVICE_OBJECT_CQ,  /* a struct cq */
	DEVICE_OBJECT_SRQ, /* a struct srq */
	DEVICE_OBJECT_CTX, /* an open context */
	DEVICE_OBJECT_KINDS,
};

/* List entry of an object, kept next to it by its creator. All zeros before the first
 * objects_add. */
struct device_object {
	TAILQ_ENTRY(device_object) link;
	const void *what;
	bool listed;
	uint32_t number; /* unique among objects of its kind on the device; from 1 on */
};

TAILQ_HEAD(device_object_list, device_object);

struct device_objects {
	pthread_mutex_t lock; /* protects all below */
	struct device_object_list lists[DEVICE_OBJECT_KINDS];
	uint32_t numbers[DEVICE_OBJECT_KINDS]; /* numbers given so far */
};

void objects_init(struct device_objects *objects);
void objects_fini(struct device_objects *objects);

/** List an object. It gets its number the first time. MT-safe. Returns the number. */
uint32_t objects_add(struct device *device, enum device_object_kind kind,
		     struct device_object *object, const void *what);

/** Remove an object from the list: on return nobody sees it any more. Does nothing if it is not
 * listed. MT-safe. */
void objects_remove(struct device *device, enum device_object_kind kind,
		    struct device_object *object);

/** Call `each` for every object of a kind, the oldest first, under the list's lock. MT-safe. */
void objects_each(struct device *device, enum device_object_kind kind,
		  void (*each)(const struct device_object *object, void *arg), void *arg);

#endif
