/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* One stage: random loss, a queue at a rate (drop-tail, and maybe a policy), delay with jitter. */
#include "klink.h"

/* splitmix64, as a fraction in [0, 1). */
static double random_fraction(struct stage *stage)
{
	uint64_t z = (stage->random += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* Packets whose service has begun by now_ns no longer wait. Their times are known since they
 * arrived, so no timer is needed for this. */
void stage_advance(struct stage *stage, int64_t now_ns)
{
	while (stage->waiting && stage->waiting->start_ns <= now_ns) {
		stage->waiting_packets--;
		stage->waiting_bytes -= stage->waiting->bytes;
		stage->waiting = stage->waiting->next;
	}
}

static void drop(struct stage *stage, int index, struct packet *packet, int64_t now_ns)
{
	stage->queue_drops++;
	stage->paths[packet->path].drops++;
	record_event(RECORD_DROP, now_ns, index, packet->path, packet->bytes, stage->waiting_packets,
		     stage->waiting_bytes);
	packet_free(packet);
}

/* False where the packet was lost or dropped (and freed). */
bool stage_enter(struct lab *lab, int index, struct packet *packet, int64_t now_ns)
{
	struct stage *stage = &lab->stages[index];
	int64_t finish_ns, release_ns;

	if (stage->loss > 0 && random_fraction(stage) < stage->loss) {
		stage->random_losses++;
		stage->paths[packet->path].losses++;
		record_event(RECORD_LOSS, now_ns, index, packet->path, packet->bytes, 0, 0);
		packet_free(packet);
		return false;
	}
	packet->arrival_ns = packet->start_ns = finish_ns = now_ns;
	if (stage->rate.kind != RATE_NONE) {
		bool refused = aqm_drops(stage, lab->t0_ns, now_ns);

		stage_advance(stage, now_ns);
		if (stage->free_ns > now_ns)
			refused |= (stage->limit_packets >= 0 &&
				    stage->waiting_packets + 1 > stage->limit_packets) ||
				   (stage->limit_bytes >= 0 &&
				    stage->waiting_bytes + packet->bytes > stage->limit_bytes);
		if (refused) {
			drop(stage, index, packet, now_ns);
			return false;
		}
		stage->aqm.accepted++;
		if (stage->free_ns > now_ns) {
			packet->start_ns = stage->free_ns;
			stage->waiting_packets++;
			stage->waiting_bytes += packet->bytes;
			if (!stage->waiting)
				stage->waiting = packet;
		}
		finish_ns = rate_finish(&stage->rate, lab->t0_ns, packet->start_ns, packet->bytes);
		stage->free_ns = finish_ns;
		stage->busy_ns += finish_ns - packet->start_ns;
	}
	release_ns = finish_ns + stage->delay_ns;
	if (stage->jitter_ns)
		release_ns += (int64_t)((double)stage->jitter_ns * random_fraction(stage));
	if (release_ns < stage->last_release_ns)
		release_ns = stage->last_release_ns;
	packet->release_ns = stage->last_release_ns = release_ns;
	packet->next = NULL;
	if (stage->head)
		stage->tail->next = packet;
	else
		stage->head = packet;
	stage->tail = packet;
	return true;
}

/* Takes the packet at the head, which must be there, and counts it as forwarded. */
struct packet *stage_leave(struct stage *stage)
{
	struct packet *packet = stage->head;
	struct path_counters *counters = &stage->paths[packet->path];

	stage_advance(stage, packet->start_ns);
	stage->head = packet->next;
	stage->forwarded_packets++;
	stage->forwarded_bytes += packet->bytes;
	counters->packets++;
	counters->bytes += packet->bytes;
	counters->queue_delay_ns += packet->start_ns - packet->arrival_ns;
	return packet;
}
