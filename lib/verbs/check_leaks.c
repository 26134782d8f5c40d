/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects that the program has not ended when it closes their device, or exits. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "verbs_internal.h"

#define CAUSE_MAX (ORIGIN_TEXT_MAX + 32)

static const struct {
	const char *name, *end;
} kinds[FACE_KINDS] = {
	[FACE_QP] = {"queue pair", "ibv_destroy_qp"},
	[FACE_COMP_CNTR] = {"completion counter", "ibv_destroy_comp_cntr"},
	[FACE_MW] = {"memory window", "ibv_dealloc_mw"},
	[FACE_MR] = {"memory region", "ibv_dereg_mr"},
	[FACE_SRQ] = {"shared receive queue", "ibv_destroy_srq"},
	[FACE_CQ] = {"completion queue", "ibv_destroy_cq"},
	[FACE_CHANNEL] = {"completion channel", "ibv_destroy_comp_channel"},
	[FACE_AH] = {"address handle", "ibv_destroy_ah"},
	[FACE_XRCD] = {"XRC domain", "ibv_close_xrcd"},
	[FACE_PARENT] = {"parent domain", "ibv_dealloc_pd"},
	[FACE_TD] = {"thread domain", "ibv_dealloc_td"},
	[FACE_DM] = {"device memory allocation", "ibv_free_dm"},
	[FACE_PD] = {"protection domain", "ibv_dealloc_pd"},
};

/* Return how many objects of a list the same place in the program has created. */
static unsigned int count_alike(const struct face_object_list *list, const char *origin)
{
	const struct face_object *object;
	char other[ORIGIN_TEXT_MAX];
	unsigned int count = 0;

	LIST_FOREACH (object, list, link)
		count += strcmp(origin_write(object, "the first", other), origin) == 0;
	return count;
}

/* Return the name of the call that ends an object. */
static const char *end_of(enum face_kind kind, const struct face_object *object)
{
	return kind == FACE_MR && container_of(object, struct face_mr, object)->imported
		       ? "ibv_unimport_mr"
		       : kinds[kind].end;
}

/* Tell of an object once for each place that has created some, and so for the first one in the
 * list. */
static void tell(const struct face_context *context, enum face_kind kind,
		 const struct face_object *object, const char *when)
{
	char origin[ORIGIN_TEXT_MAX], cause[CAUSE_MAX];
	const struct face_object *other;
	unsigned int count;

	/* librdmacm.so.1 keeps what it has created for itself until the end. */
	if (origin_is_of_rdmacm(object))
		return;
	origin_write(object, "the first", origin);
	LIST_FOREACH (other, &context->objects[kind], link) {
		char text[ORIGIN_TEXT_MAX];

		if (other == object)
			break;
		if (strcmp(origin_write(other, "the first", text), origin) == 0)
			return;
	}
	count = count_alike(&context->objects[kind], origin);
	snprintf(cause, sizeof(cause), "%s%s", kinds[kind].name, origin);
	check_finding(CHECK_LEAK, cause, "%s %u %s%s left of %s, which %s must end%s", when, count,
		      kinds[kind].name, count == 1 ? " is" : "s are", context->face->ibv.name,
		      end_of(kind, object), origin);
}

static void tell_all(const struct face_context *context, const char *when)
{
	const struct face_object *object;

	for (int kind = 0; kind < FACE_KINDS; kind++) {
		LIST_FOREACH (object, &context->objects[kind], link)
			tell(context, (enum face_kind)kind, object, when);
	}
}

void check_closing(struct face_context *root)
{
	struct face_device *face = root->face;
	const struct face_context *context;

	pthread_mutex_lock(&face->lock);
	TAILQ_FOREACH (context, &face->contexts, link) {
		if (context->root == root)
			tell_all(context, "at ibv_close_device");
	}
	pthread_mutex_unlock(&face->lock);
}

static void look_at_end(struct face_device *face, void *arg __rte_unused)
{
	const struct face_context *context;
	char origin[ORIGIN_TEXT_MAX];

	pthread_mutex_lock(&face->lock);
	TAILQ_FOREACH (context, &face->contexts, link) {
		if (context_is_orphan(&context->verbs.context) || !context->open)
			continue;
		if (!origin_is_of_rdmacm(context))
			check_finding(
				CHECK_LEAK, origin_write(context, "it", origin),
				"at the end of the process %s is open, which ibv_close_device must "
				"close%s",
				face->ibv.name, origin);
		tell_all(context, "at the end of the process");
	}
	pthread_mutex_unlock(&face->lock);
}

/*
 * A program that fails need not clean up. This runs behind the handlers of atexit(3) and the
 * destructors of the program and of the libraries that use this one, which may end objects.
 */
static void __attribute__((destructor(101))) check_at_end(void)
{
	if (likely(!check_wanted))
		return;
	if (check_ends_well())
		device_list_visit(look_at_end, NULL);
	check_end();
}
