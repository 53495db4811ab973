/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The probe's events of one connection as samples in order of time. The probe sees an ACK before
 * it is processed, so an ACK's RTT comes with the subflow's next one: a sample waits for it, and
 * what came after waits with it. The rules are those of data/lab/compact.py and
 * data/formats/klog.py, by which the training logs are read. */
#ifndef AGENT_ORDER_H
#define AGENT_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "probe.h"

#define ORDER_SUBFLOWS 2
/* Some seconds of the fastest connection; what waits longer than HOLD_US, as after the last ACK
 * of a subflow that falls silent, goes without its RTT. */
#define ORDER_SAMPLES 8192
#define HOLD_US 1000000

struct sample {
	uint64_t time_us;
	uint32_t rtt_us;  /* 0: none */
	int8_t ca_state;  /* -1: unchanged */
	uint8_t subflow;
	bool complete;
};

struct order_subflow {
	bool seen, advanced;
	uint32_t ack_seq, rtt_us, cwnd; /* of the last ACK that changed any of them */
	int64_t ack, highest;           /* relative to the first snd_una */
	uint64_t waiting;               /* 1 + number of the sample that lacks its RTT; 0: none */
};

struct order {
	struct sample samples[ORDER_SAMPLES];
	uint64_t put, taken;
	uint64_t late; /* RTTs that came after their sample had gone */
	struct order_subflow subflows[ORDER_SUBFLOWS];
};

static inline void order_put(struct order *order, struct sample sample)
{
	if (order->put - order->taken == ORDER_SAMPLES)
		order->taken++; /* order_take() keeps it from getting here */
	order->samples[order->put++ % ORDER_SAMPLES] = sample;
}

static inline void order_ack(struct order *order, int number, const struct event *event,
			     uint64_t time_us)
{
	struct order_subflow *subflow = &order->subflows[number];
	bool first = !subflow->seen, rtt_changed = event->rtt_us != subflow->rtt_us;

	if (!first && event->ack_seq == subflow->ack_seq && !rtt_changed &&
	    event->cwnd == subflow->cwnd)
		return; /* a pure duplicate says nothing */
	if (subflow->waiting) {
		bool sampled = event->rtt_us && (subflow->advanced || rtt_changed);

		if (subflow->waiting > order->taken) {
			struct sample *sample =
				&order->samples[(subflow->waiting - 1) % ORDER_SAMPLES];

			sample->rtt_us = sampled ? event->rtt_us : 0;
			sample->complete = true;
		} else if (sampled) {
			order->late++;
		}
	}
	subflow->ack += (int32_t)(event->ack_seq - (first ? event->snd_una : subflow->ack_seq));
	subflow->advanced = subflow->ack > subflow->highest;
	if (subflow->advanced)
		subflow->highest = subflow->ack;
	subflow->seen = true;
	subflow->ack_seq = event->ack_seq;
	subflow->rtt_us = event->rtt_us;
	subflow->cwnd = event->cwnd;
	order_put(order, (struct sample){.time_us = time_us, .ca_state = -1,
					 .subflow = (uint8_t)number});
	subflow->waiting = order->put;
}

/* The next sample into *sample; false while it has to wait. */
static inline bool order_take(struct order *order, uint64_t now_us, struct sample *sample)
{
	const struct sample *head = &order->samples[order->taken % ORDER_SAMPLES];

	if (order->taken == order->put)
		return false;
	if (!head->complete && now_us < head->time_us + HOLD_US &&
	    order->put - order->taken < ORDER_SAMPLES)
		return false;
	*sample = *head;
	order->taken++;
	return true;
}

#endif
