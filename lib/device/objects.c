/* SPDX-License-Identifier: BSD-3-Clause */
/* One list for each kind, all under one lock, which is held for short times only. */
#include "device/objects.h"

#include "device/device.h"

void objects_init(struct device_objects *objects)
{
	pthread_mutex_init(&objects->lock, NULL);
	for (int kind = 0; kind < DEVICE_OBJECT_KINDS; kind++)
		TAILQ_INIT(&objects->lists[kind]);
}

void objects_fini(struct device_objects *objects)
{
	pthread_mutex_destroy(&objects->lock);
}

uint32_t objects_add(struct device *device, enum device_object_kind kind,
		     struct device_object *object, const void *what)
{
	struct device_objects *objects = &device->objects;

	pthread_mutex_lock(&objects->lock);
	if (object->number == 0)
		object->number = ++objects->numbers[kind];
	object->what = what;
	object->listed = true;
	TAILQ_INSERT_TAIL(&objects->lists[kind], object, link);
	pthread_mutex_unlock(&objects->lock);
	return object->number;
}

void objects_remove(struct device *device, enum device_object_kind kind,
		    struct device_object *object)
{
	struct device_objects *objects = &device->objects;

	pthread_mutex_lock(&objects->lock);
	if (object->listed)
		TAILQ_REMOVE(&objects->lists[kind], object, link);
	object->listed = false;
	pthread_mutex_unlock(&objects->lock);
}

void objects_each(struct device *device, enum device_object_kind kind,
		  void (*each)(const struct device_object *object, void *arg), void *arg)
{
	struct device_objects *objects = &device->objects;
	const struct device_object *object;

	pthread_mutex_lock(&objects->lock);
	TAILQ_FOREACH (object, &objects->lists[kind], link)
		each(object, arg);
	pthread_mutex_unlock(&objects->lock);
}
