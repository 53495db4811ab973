/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* From the probe's events to verdicts, and to what the kernel answers to them. */
#include "agent.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include <bpf/bpf.h>

#include CC_H
#include SBD_H

#include "agent_order.h"
#include "probe.h"

#define PASTE(a, b) a##b
#define NAMED(model, suffix) PASTE(model, suffix)
#define CLASSIFY NAMED(MODEL, _classify)
#define DECISION NAMED(MODEL, _decision)
#define FEATURES (sizeof(((struct DECISION *)NULL)->features) / sizeof(__s32))

#define MAX_CONNECTIONS 64

struct connection {
	__u32 token; /* 0: this place is free */
	__u64 heard_us;
	struct order order;
	struct sbd sbd;
	struct DECISION decision;
	bool asked; /* the kernel has not yet answered */
	__u32 window_class; /* of the window alone */
#ifdef SBD_NO_WINDOW
	__u32 held; /* the class that holds until a verdict says otherwise */
	int verdict;
#endif
	__u64 decided_ns, features_ns, classify_ns;
};

static struct connection connections[MAX_CONNECTIONS];

const size_t decision_bytes = sizeof(struct DECISION), state_bytes = sizeof(struct sbd);

static struct connection *connection_of(struct agent *agent, __u32 token, __u64 time_us)
{
	struct connection *oldest = &connections[0];

	for (int i = 0; i < MAX_CONNECTIONS; i++) {
		struct connection *connection = &connections[i];

		if (connection->token == token) {
			connection->heard_us = time_us;
			return connection;
		}
		if (connection->heard_us < oldest->heard_us)
			oldest = connection;
	}
	agent->late += oldest->order.late;
	memset(oldest, 0, sizeof(*oldest));
	sbd_init(&oldest->sbd, agent->wifi);
#ifdef SBD_NO_WINDOW
	oldest->held = 1; /* coupled until the first verdict */
#endif
	oldest->token = token;
	oldest->heard_us = time_us;
	return oldest;
}

static void write_verdict(FILE *out, const struct connection *connection,
			  const struct DECISION *answer)
{
	const struct DECISION *asked = &connection->decision;

	fprintf(out, "{\"decided_ns\": %" PRIu64 ", \"token\": \"%08x\", \"sequence\": %u, ",
		(uint64_t)connection->decided_ns, connection->token, asked->sequence);
	for (size_t i = 0; i < FEATURES; i++)
		fprintf(out, "%s%d", i ? ", " : "\"features\": [", asked->features[i]);
	fprintf(out, "], \"class\": %u, ", asked->class);
#ifdef SBD_NO_WINDOW
	fprintf(out, "\"window_class\": %u, \"verdict\": %d, ", connection->window_class,
		connection->verdict);
#endif
	if (answer)
		fprintf(out, "\"kernel_class\": %u, \"kernel_ns\": %" PRIu64 ", ",
			answer->kernel_class, (uint64_t)answer->decided_ns);
	else
		fputs("\"kernel_class\": null, \"kernel_ns\": null, ", out);
	fprintf(out, "\"features_ns\": %" PRIu64 ", \"classify_ns\": %" PRIu64 "}\n",
		(uint64_t)connection->features_ns, (uint64_t)connection->classify_ns);
}

/* Reads the kernel's answer, if it is there. */
static void read_answer(struct agent *agent, struct connection *connection)
{
	struct DECISION answer;

	if (bpf_map_lookup_elem(agent->decisions, &connection->token, &answer) ||
	    answer.answered_sequence != connection->decision.sequence)
		return;
	connection->asked = false;
	connection->decision.kernel_class = answer.kernel_class;
	connection->decision.answered_sequence = answer.answered_sequence;
	agent->answers++;
	agent->mismatches += answer.kernel_class != connection->decision.class;
	write_verdict(agent->out, connection, &answer);
}

static void decide(struct agent *agent, struct connection *connection)
{
	struct DECISION *decision = &connection->decision;
	__u64 begin_ns, featured_ns;
	int32_t x[FEATURES];

	if (connection->asked) {
		read_answer(agent, connection);
		if (connection->asked)
			write_verdict(agent->out, connection, NULL);
	}
	begin_ns = now_ns();
	if (!sbd_features(&connection->sbd, x))
		return;
	featured_ns = now_ns();
	decision->class = connection->window_class = (__u32)CLASSIFY(x);
#ifdef SBD_NO_WINDOW
	/* The kernel gets the state as it was before, and comes to the same verdict. */
	decision->state = connection->sbd.state;
	decision->held = connection->held;
	connection->verdict = sbd_judge(&connection->sbd, x);
	if (connection->verdict >= 0)
		connection->held = (__u32)connection->verdict;
	decision->class = connection->held;
#endif
	connection->decided_ns = decision->decided_ns = now_ns();
	connection->features_ns = featured_ns - begin_ns;
	connection->classify_ns = connection->decided_ns - featured_ns;
	for (size_t i = 0; i < FEATURES; i++)
		decision->features[i] = x[i];
	decision->sequence++;
	if (bpf_map_update_elem(agent->decisions, &connection->token, decision, BPF_ANY))
		die("write the decision on %08x: %s", connection->token, strerror(errno));
	connection->asked = true;
	agent->verdicts++;
	agent->features_ns += connection->features_ns;
	agent->classify_ns += connection->classify_ns;
}

/* For ring_buffer__new(). */
int agent_event(void *context, void *data, size_t size)
{
	struct agent *agent = context;
	const struct event *event = data;
	__u64 time_us = event->ts_ns / 1000;
	struct connection *connection;
	struct sample sample;
	int number;

	(void)size;
	/* A SYN's own events come before the subflow has its number. */
	if (!event->token || !event->sfid || event->sfid > ORDER_SUBFLOWS)
		return 0;
	number = (int)event->sfid - 1;
	agent->events++;
	connection = connection_of(agent, event->token, time_us);
	if (event->kind == EVENT_PROBE)
		order_ack(&connection->order, number, event, time_us);
	else if (event->kind == EVENT_STATE)
		order_put(&connection->order,
			  (struct sample){.time_us = time_us, .ca_state = (int8_t)event->arg,
					  .subflow = (uint8_t)number, .complete = true});
	while (order_take(&connection->order, time_us, &sample)) {
		if (!sample.rtt_us && sample.ca_state < 0)
			continue;
		if (agent->samples)
			fprintf(agent->samples, "%" PRIu64 " %u %u %d\n", sample.time_us,
				sample.subflow, sample.rtt_us, sample.ca_state);
		sbd_sample(&connection->sbd, sample.subflow, sample.time_us, sample.rtt_us,
			   sample.ca_state);
		while (sbd_ready(&connection->sbd))
			decide(agent, connection);
	}
	return 0;
}

void agent_read_answers(struct agent *agent)
{
	for (int i = 0; i < MAX_CONNECTIONS; i++)
		if (connections[i].asked)
			read_answer(agent, &connections[i]);
}

/* Writes down what the kernel will answer no more. */
void agent_finish(struct agent *agent)
{
	for (int i = 0; i < MAX_CONNECTIONS; i++) {
		agent->late += connections[i].order.late;
		if (connections[i].asked)
			write_verdict(agent->out, &connections[i], NULL);
	}
}
