/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Closing of a device that still has objects. As the kernel does when the last descriptor of a
 * context is closed, everything is destroyed: peers cannot access the program's memory any more,
 * and all that was counted or open is released.
 *
 * The program may still have pointers to these objects. So their handles and their context stay in
 * memory for ever, and every call on them fails with ENODEV, as in a child of fork().
 */
#include "check.h"
#include "verbs_internal.h"

/* A thread domain has nothing except its memory, so it has no function here. */
static void (*const ends[FACE_KINDS])(struct face_object *object) = {
	[FACE_QP] = qp_end,	      [FACE_COMP_CNTR] = comp_cntr_end,
	[FACE_MW] = mw_end,	      [FACE_MR] = mr_end,
	[FACE_SRQ] = srq_end,	      [FACE_CQ] = cq_end,
	[FACE_CHANNEL] = channel_end, [FACE_AH] = ah_end,
	[FACE_XRCD] = xrcd_end,	      [FACE_PARENT] = parent_end,
	[FACE_DM] = dm_end,	      [FACE_PD] = pd_end,
};

/* Disable posting and polling on a context, and keep its memory. face->lock. */
static void begin_closing(struct face_context *context)
{
	if (!context->closing)
		context_disable(context);
	context->closing = true;
}

/* Take an object of a kind out of its list. Return NULL if there is none. */
static struct face_object *take(struct face_context *root, enum face_kind kind)
{
	struct face_device *face = root->face;
	struct face_object *object = NULL;
	struct face_context *context;

	pthread_mutex_lock(&face->lock);
	TAILQ_FOREACH (context, &face->contexts, link) {
		if (context->root != root || LIST_EMPTY(&context->objects[kind]))
			continue;
		object = LIST_FIRST(&context->objects[kind]);
		LIST_REMOVE(object, link);
		begin_closing(context);
		/* The first of the contexts that share a file leads to all objects: it must be
		 * disabled too. */
		begin_closing(root);
		break;
	}
	pthread_mutex_unlock(&face->lock);
	return object;
}

/* Take a context that had objects out of the device's list. Return NULL if there is none left. */
static struct face_context *take_context(struct face_context *root)
{
	struct face_device *face = root->face;
	struct face_context *context;

	pthread_mutex_lock(&face->lock);
	TAILQ_FOREACH (context, &face->contexts, link) {
		if (context->root == root && context->closing)
			break;
	}
	if (context) {
		TAILQ_REMOVE(&face->contexts, context, link);
		context->generation = FACE_CLOSED;
	}
	pthread_mutex_unlock(&face->lock);
	return context;
}

void close_contexts(struct face_context *root)
{
	struct face_context *context;
	struct face_object *object;

	if (unlikely(check_wanted))
		check_closing(root);
	for (int kind = 0; kind < FACE_KINDS; kind++) {
		while ((object = take(root, (enum face_kind)kind)) != NULL) {
			if (ends[kind])
				ends[kind](object);
		}
	}
	shared_end(root);
	/* The number of their users is not reduced, so their memory is never freed. */
	while ((context = take_context(root)) != NULL)
		channel_fini(&context->async);
}
