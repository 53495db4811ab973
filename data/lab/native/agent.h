/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the agent's files share. */
#ifndef AGENT_H
#define AGENT_H

#include <linux/types.h>
#include <stddef.h>
#include <stdio.h>

struct agent {
	int decisions; /* the congestion control's map */
	int wifi;      /* number of the subflow over WiFi; -1: the one of smaller RTT */
	FILE *out;
	FILE *samples; /* a copy of what sbd_sample() is called with; NULL: none */
	__u64 events, verdicts, answers, mismatches, late;
	__u64 features_ns, classify_ns;
};

/* agent.c */
__attribute__((format(printf, 1, 2), noreturn)) void die(const char *format, ...);
__u64 now_ns(void);

/* agent_detect.c */
extern const size_t decision_bytes, state_bytes;
int agent_event(void *agent, void *event, size_t size);
void agent_read_answers(struct agent *agent);
void agent_finish(struct agent *agent);

#endif
