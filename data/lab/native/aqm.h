/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What klink and a queue's policy, a shared object, say to one another. */
#ifndef AQM_H
#define AQM_H

#include <stdint.h>

/* What a router of MA-CC observes at an interval's end (ma-cc.txt section 3.2). */
struct aqm_seen {
	int64_t queue_packets;  /* that wait */
	int64_t dequeue_rate;   /* packets/s over the interval */
	int64_t queue_delay_us; /* that a packet would wait which came now */
};

/* What a policy's object exports as `aqm_policy`. */
struct aqm_policy {
	uint32_t interval_us;
	uint32_t memory_bytes; /* of each queue; zeroed at its beginning */
	int (*drops)(void *memory, const struct aqm_seen *seen); /* all that come until the next end? */
};

#endif
