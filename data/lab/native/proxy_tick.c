/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The proxy's sums over an interval, and the orders it writes. */
#include <linux/types.h>
#include <stdio.h>
#include <string.h>

#include "proxy.h"

struct sums {
	__u32 generation, mss, cwnd, in_flight, ca_state, delivered;
	__u32 rtt_count, rtt_least_us;
	__u64 rtt_sum_us, delivered_bytes;
	int known;
};

static struct sums sums[FOLLOW_FLOWS];
static struct follow_flow *flows;
static __u64 inode, newest_ns;
static FILE *out;

void tick_begin(struct follow_flow *shared, __u64 wanted, FILE *file)
{
	flows = shared;
	inode = wanted;
	out = file;
}

static void note(const struct follow_event *event)
{
	const struct follow_flow *flow = &flows[event->slot];

	if (event->kind == FOLLOW_APPLIED)
		fprintf(out, "A,%u,%u,%llu\n", event->sequence, event->slot,
			(unsigned long long)event->ts_ns);
	else if (event->kind == FOLLOW_DECIDED)
		fprintf(out, "K,%u,%u,%u,%llu\n", event->sequence, event->slot, event->took_ns,
			(unsigned long long)event->ts_ns);
	else
		fprintf(out, "P,%u,%u,%u,%llu,%u,%u\n", event->slot, event->generation, event->phase,
			(unsigned long long)event->ts_ns, flow->sport, event->cwnd);
}

int tick_event(void *context, void *data, size_t size)
{
	const struct follow_event *event = data;
	struct sums *sum;

	(void)context;
	(void)size;
	if (event->slot >= FOLLOW_FLOWS || (inode && flows[event->slot].inode != inode))
		return 0;
	newest_ns = event->ts_ns;
	sum = &sums[event->slot];
	if (!sum->known || sum->generation != event->generation) {
		memset(sum, 0, sizeof(*sum));
		sum->generation = event->generation;
		sum->known = 1;
	}
	if (event->kind != FOLLOW_ACK) {
		note(event);
		return 0;
	}
	sum->delivered_bytes += (__u64)(event->delivered - sum->delivered) * event->mss;
	sum->delivered = event->delivered;
	sum->mss = event->mss;
	sum->cwnd = event->cwnd;
	sum->in_flight = event->in_flight;
	sum->ca_state = event->ca_state;
	if (event->rtt_us) {
		if (!sum->rtt_count || event->rtt_us < sum->rtt_least_us)
			sum->rtt_least_us = event->rtt_us;
		sum->rtt_count++;
		sum->rtt_sum_us += event->rtt_us;
	}
	return 0;
}

/* What is handed on begins anew, but for what is counted from the flow's first ACK. */
__u32 tick_reports(struct proxy_report reports[FOLLOW_FLOWS], __u64 *event_ns)
{
	__u32 count = 0;

	for (__u32 slot = 0; slot < FOLLOW_FLOWS; slot++) {
		const struct follow_flow *flow = &flows[slot];
		struct sums *sum = &sums[slot];

		if (!flow->taken || (inode && flow->inode != inode) || !sum->known ||
		    sum->generation != (flow->generation & 0xffff) || !sum->mss)
			continue;
		reports[count++] = (struct proxy_report){
			.slot = slot,
			.generation = flow->generation,
			.token = flow->token,
			.sfid = flow->sfid,
			.phase = flow->phase,
			.ca_state = sum->ca_state,
			.mss = sum->mss,
			.cwnd = sum->cwnd,
			.target = flow->target,
			.unit = flow->unit,
			.most = flow->most,
			.in_flight = sum->in_flight,
			.inode = flow->inode,
			.delivered_bytes = sum->delivered_bytes,
			.rtt_sum_us = sum->rtt_sum_us,
			.rtt_count = sum->rtt_count,
			.rtt_least_us = sum->rtt_least_us,
		};
		sum->rtt_sum_us = sum->rtt_count = sum->rtt_least_us = 0;
	}
	*event_ns = newest_ns;
	return count;
}

void tick_write(const struct tick *tick, __u64 written_ns)
{
	for (__u32 i = 0; i < tick->count; i++) {
		const struct proxy_window *window = &tick->windows[i];

		fprintf(out, "T,%llu,%u,%u,%u\n", (unsigned long long)tick->sequence, window->slot,
			window->generation, window->target);
	}
	fprintf(out, "D,%llu,%llu,%llu,%llu,%llu,%llu\n", (unsigned long long)tick->sequence,
		(unsigned long long)tick->tick_ns, (unsigned long long)tick->event_ns,
		(unsigned long long)tick->sent_ns, (unsigned long long)tick->answered_ns,
		(unsigned long long)written_ns);
}
