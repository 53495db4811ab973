/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the proxy and a decision engine say to one another: whole structs over a stream socket, in
 * this machine's byte order, which must be little-endian. */
#ifndef PROXY_H
#define PROXY_H

#include <linux/types.h>

#include "follow.h"

#define PROXY_MAGIC 0x31505a43 /* "CZP1" */

/* First from each side. The engine hangs up where the schema is not its policy's. */
struct proxy_hello {
	__u32 magic, interval_us;
	__u8 schema[32];
};

/* After every interval: a header, then a report of each flow. A proxy that was kept from running
 * sums up several intervals: how many, the time tells at which it collected them. */
struct proxy_header {
	__u32 magic, count;
	__u64 sequence, collected_ns;
};

struct proxy_report {
	__u32 slot, generation, token, sfid;
	__u32 phase, ca_state, mss, cwnd;
	__u32 target, unit, most, in_flight;
	__u64 inode;
	__u64 delivered_bytes;
	__u64 rtt_sum_us;
	__u32 rtt_count, rtt_least_us;
};

/* The answer: a header with the same sequence, then a window of each flow that is decided for. */
struct proxy_window {
	__u32 slot, generation, target, pad;
};

struct tick {
	__u64 sequence, tick_ns, event_ns, sent_ns, answered_ns;
	__u32 count;
	struct proxy_window windows[FOLLOW_FLOWS];
};

/* proxy_tick.c: sums of the present interval */
void tick_begin(struct follow_flow *flows, __u64 inode, FILE *out);
int tick_event(void *context, void *data, size_t size);
__u32 tick_reports(struct proxy_report reports[FOLLOW_FLOWS], __u64 *newest_ns);
void tick_write(const struct tick *tick, __u64 written_ns);

#endif
