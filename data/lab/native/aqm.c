/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* A queue whose drops a policy decides, interval by interval (ma-cc.txt section 3.2, eq. 2). */
#include "klink.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "aqm.h"

void aqm_open(struct aqm *aqm, const char *file, const char *where)
{
	void *object = dlopen(file, RTLD_NOW | RTLD_LOCAL);

	if (!object)
		die("%s: policy=%s: %s", where, file, dlerror());
	aqm->policy = dlsym(object, "aqm_policy");
	if (!aqm->policy || !aqm->policy->interval_us)
		die("%s: policy=%s: it defines no aqm_policy", where, file);
	aqm->memory = calloc(1, aqm->policy->memory_bytes ? aqm->policy->memory_bytes : 1);
	if (!aqm->memory)
		die("%s: policy=%s: out of memory", where, file);
}

/* Closes the intervals that ended by now_ns. A queue only shrinks between arrivals, at times known
 * in advance, so this can be made up for at the next one; see sample_queues(). */
static void close_intervals(struct stage *stage, int64_t t0_ns, int64_t now_ns)
{
	struct aqm *aqm = &stage->aqm;
	int64_t interval_ns = aqm->policy->interval_us * 1000LL;

	if (!aqm->next_ns)
		aqm->next_ns = t0_ns + interval_ns;
	for (; aqm->next_ns <= now_ns; aqm->next_ns += interval_ns) {
		struct aqm_seen seen;
		uint64_t out;

		stage_advance(stage, aqm->next_ns);
		out = aqm->accepted - (uint64_t)stage->waiting_packets;
		seen.queue_packets = stage->waiting_packets;
		seen.dequeue_rate = (int64_t)(out - aqm->out) * 1000000000 / interval_ns;
		seen.queue_delay_us =
			stage->free_ns > aqm->next_ns ? (stage->free_ns - aqm->next_ns) / 1000 : 0;
		aqm->out = out;
		aqm->decisions++;
		aqm->dropping = aqm->policy->drops(aqm->memory, &seen);
	}
}

/* Whether the policy drops a packet that comes now; one that it lets in may find the queue full. */
bool aqm_drops(struct stage *stage, int64_t t0_ns, int64_t now_ns)
{
	if (!stage->aqm.policy)
		return false;
	close_intervals(stage, t0_ns, now_ns);
	stage->aqm.drops += stage->aqm.dropping;
	return stage->aqm.dropping;
}
