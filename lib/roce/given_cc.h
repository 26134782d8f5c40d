/* SPDX-License-Identifier: BSD-3-Clause */
/* Congestion control that the caller of libroce has. */
#ifndef ROCE_GIVEN_CC_H
#define ROCE_GIVEN_CC_H

struct cc_attr;
struct given_cc;
struct roce_cc_ops;

/** Create the state of a queue pair, and write it and its functions into `attr`. given_cc_destroy
 * frees it after the queue pair. 0; -EINVAL if the algorithm's state has no room for struct
 * roce_cc; -ENOMEM. */
int given_cc_create(const struct roce_cc_ops *ops, struct cc_attr *attr, struct given_cc **given);
void given_cc_destroy(struct given_cc *given);

#endif
