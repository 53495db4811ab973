/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* A distilled tree as the policy of klink's queues. Compiled into a shared object with
 * -DTREE_HEADER, -DTREE_OBSERVE (the tree's exported headers), -DTREE_NAME and -DTREE_UPPER (its
 * identifier), -DTREE_DROP (the action that drops) and -DTREE_SCHEMA (the schema hash that is meant). */
#include <string.h>

#include "aqm.h"
#include TREE_HEADER
#include TREE_OBSERVE

#define JOINED(one, other) one##other
#define JOIN(one, other) JOINED(one, other)
#define TREE(part) JOIN(TREE_NAME, part)
#define UPPER(part) JOIN(TREE_UPPER, part)

_Static_assert(!__builtin_strcmp(UPPER(_SCHEMA_HASH), TREE_SCHEMA),
	       "the tree's schema hash differs from what this queue observes");

static int32_t whole(int64_t value)
{
	return value < 0 ? 0 : value < INT32_MAX ? (int32_t)value : INT32_MAX;
}

static int drops(void *memory, const struct aqm_seen *seen)
{
	int32_t observed[UPPER(_OBSERVED)], x[UPPER(_FEATURES)];

	observed[UPPER(_O_queue_packets)] = whole(seen->queue_packets);
	observed[UPPER(_O_dequeue_rate)] = whole(seen->dequeue_rate);
	observed[UPPER(_O_queue_delay_us)] = whole(seen->queue_delay_us);
	TREE(_observe)(memory, observed, x);
	return TREE(_classify)(x) == TREE_DROP;
}

const struct aqm_policy aqm_policy = {UPPER(_INTERVAL_US), sizeof(struct TREE(_memory)), drops};
