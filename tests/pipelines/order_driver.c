/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Lines of events in, lines of samples out, late RTTs on stderr. */
#include <linux/types.h>
#include <inttypes.h>
#include <stdio.h>
#include "agent_order.h"

static struct order order;

int main(void)
{
	struct event event = {0};
	struct sample sample;
	unsigned kind, arg;

	while (scanf("%u %llu %u %u %u %u %u %u", &kind, &event.ts_ns, &event.sfid,
		     &event.ack_seq, &event.snd_una, &event.rtt_us, &event.cwnd, &arg) == 8) {
		uint64_t time_us = event.ts_ns / 1000;

		if (kind == EVENT_PROBE)
			order_ack(&order, (int)event.sfid - 1, &event, time_us);
		else
			order_put(&order, (struct sample){.time_us = time_us, .complete = true,
				  .ca_state = (int8_t)arg, .subflow = (uint8_t)(event.sfid - 1)});
		while (order_take(&order, time_us, &sample))
			if (sample.rtt_us || sample.ca_state >= 0)
				printf("%" PRIu64 " %d %u %d\n", sample.time_us,
				       sample.subflow + 1, sample.rtt_us, sample.ca_state);
	}
	fprintf(stderr, "%" PRIu64, order.late);
	return 0;
}
