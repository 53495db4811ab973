/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Nuwa's receiver (nuwa.txt section IV, algorithm 1) as two tc programs: one filters the one-way
 * queueing delay of the segments that come in (eqs. 1-4) and moves a window by it (eqs. 5-6), the
 * other writes that window into the ACKs that go out. k is the control's, or what a tree chooses for
 * each flow (NUWA_POLICY, a header that defines tune(), see nuwa_tree.h). All in whole numbers; what the simulator
 * does in data/netsim/cc/nuwa.py, segment for segment.
 *
 * The one-way delay is this machine's clock less the segment's timestamp option, whose clock is
 * another: only differences count. The timestamps are in ms. Options are read where Linux puts
 * them (RFC 7323, appendix A); segments that have them elsewhere are counted and left alone. */
#include "vmlinux.h"

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "nuwa.h"
#include NUWA_TANH

#define ONE_Q10 1024
#define LEAST_NOISE_Q10 ONE_Q10   /* also where delays are exact */
#define PROCESS_NOISE_Q10 ONE_Q10 /* what the delay's variance gains with each segment */
#define LEAST_WINDOW_Q20 (2ULL << 20)
#define MOST_WINDOW_Q20 (1ULL << 40)
#define BETA_Q10 717 /* what CUBIC leaves of a window on loss */
#define TC_ACT_OK 0
#define ETH_P_IP 0x0800
#define ETHERNET_BYTES 14
#define NS_PER_MS 1000000
#define TIMESTAMPS 0x0101080a /* NOP, NOP, kind 8, 10 bytes */
#define SYN_SCALE_AT 16       /* after MSS, SACK permitted and timestamps: NOP, kind 3, 3 bytes */

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct nuwa_control);
} control SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct nuwa_key);
	__type(value, struct nuwa_flow);
} flows SEC(".maps");

static const struct nuwa_flow new_flow = {
	.noise_q10 = LEAST_NOISE_Q10, .spread_q10 = ONE_Q10,
};

#ifdef NUWA_POLICY
#include NUWA_POLICY
#endif

struct segment {
	__u32 saddr, daddr, at, payload, options;
	__u32 from; /* of the IP header, in the packet: there may be a link header before it */
	struct tcphdr tcp;
	__u32 stamp_kind, stamp, echo; /* where Linux puts the timestamps */
};

static __always_inline bool read_segment(struct __sk_buff *skb, struct segment *s)
{
	__u32 stamps[3];
	struct iphdr ip;

	if (skb->protocol != bpf_htons(ETH_P_IP))
		return false;
	if (bpf_skb_load_bytes_relative(skb, 0, &ip, sizeof(ip), BPF_HDR_START_NET))
		return false;
	if (ip.version != 4 || ip.protocol != IPPROTO_TCP || ip.frag_off & bpf_htons(0x3fff))
		return false;
	s->from = skb->len - bpf_ntohs(ip.tot_len) == ETHERNET_BYTES ? ETHERNET_BYTES : 0;
	s->at = ip.ihl * 4;
	if (bpf_skb_load_bytes_relative(skb, s->at, &s->tcp, sizeof(s->tcp), BPF_HDR_START_NET))
		return false;
	s->saddr = ip.saddr;
	s->daddr = ip.daddr;
	s->options = s->tcp.doff * 4 - sizeof(s->tcp);
	s->payload = bpf_ntohs(ip.tot_len) - s->at - s->tcp.doff * 4;
	s->stamp_kind = 0;
	if (s->options >= sizeof(stamps) &&
	    !bpf_skb_load_bytes_relative(skb, s->at + sizeof(s->tcp), stamps, sizeof(stamps),
					 BPF_HDR_START_NET)) {
		s->stamp_kind = bpf_ntohl(stamps[0]);
		s->stamp = bpf_ntohl(stamps[1]);
		s->echo = bpf_ntohl(stamps[2]);
	}
	return true;
}

static __always_inline struct nuwa_flow *flow_of(const struct nuwa_key *key)
{
	struct nuwa_flow *flow = bpf_map_lookup_elem(&flows, key);

	if (flow)
		return flow;
	bpf_map_update_elem(&flows, key, &new_flow, BPF_NOEXIST);
	return bpf_map_lookup_elem(&flows, key);
}

/* Eqs. 1-4. Changes of the delay that follow each other have a covariance of minus the noise's
 * variance, which is how that is estimated. */
static __always_inline void filter(struct nuwa_flow *f, __s64 one_way_us)
{
	__s64 raw_q10, change_q10, noise_q10, gain_q10;

	if (!f->any || one_way_us < f->least_us)
		f->least_us = one_way_us;
	raw_q10 = (__s64)((__u64)(one_way_us - f->least_us) * ONE_Q10 / 1000);
	if (f->any) {
		__s64 change_us = one_way_us - f->last_us;
		__u64 size_q10 = (__u64)(change_us < 0 ? -change_us : change_us) * ONE_Q10 / 1000;

		change_q10 = change_us < 0 ? -(__s64)size_q10 : (__s64)size_q10;
		noise_q10 = (change_q10 * f->change_q10 >> 10) + f->noise_q10;
		noise_q10 = f->noise_q10 - (noise_q10 >> 6);
		f->noise_q10 = noise_q10 > LEAST_NOISE_Q10 ? noise_q10 : LEAST_NOISE_Q10;
		f->change_q10 = change_q10;
	}
	f->last_us = one_way_us;
	f->any = 1;
	f->spread_q10 += PROCESS_NOISE_Q10;
	gain_q10 = (__s64)((__u64)f->spread_q10 * ONE_Q10 / (__u64)(f->spread_q10 + f->noise_q10));
	f->delay_q10 += gain_q10 * (raw_q10 - f->delay_q10) >> 10;
	f->spread_q10 = f->spread_q10 * (ONE_Q10 - gain_q10) >> 10;
	f->delay_sum_us += one_way_us - f->least_us;
	f->delays++;
}

/* Eqs. 5-6: by how much the window moves with one segment, << 20. */
static __always_inline __s64 step_q20(const struct nuwa_flow *f, const struct nuwa_control *c)
{
	__s64 target_q10 = (__s64)((__u64)c->target_us * ONE_Q10 / 1000), left_q10, theta_q12;
	__u64 size, window;

	if (target_q10 < 1)
		target_q10 = 1;
	left_q10 = target_q10 - f->delay_q10;
	size = (__u64)(left_q10 < 0 ? -left_q10 : left_q10) * 4096 / (__u64)target_q10;
	if (size > 16 * 4096)
		size = 16 * 4096;
	theta_q12 = nuwa_tanh(size);
	window = f->window_q20 > LEAST_WINDOW_Q20 ? f->window_q20 : LEAST_WINDOW_Q20;
	/* theta / 4096 * gain / 1000 / (window >> 20), << 20 */
	size = ((__u64)theta_q12 * (f->gain_milli ? f->gain_milli : c->gain_milli) << 20) / 4096 / 1000;
	size = (size << 20) / window;
	return left_q10 < 0 ? -(__s64)size : (__s64)size;
}

static __always_inline void move_window(struct nuwa_flow *f, const struct nuwa_control *c)
{
	__s64 target_q10 = (__s64)((__u64)c->target_us * ONE_Q10 / 1000), step;
	__u64 rate_q20 = (__u64)f->rate << 20;

	if (!f->on) {
		if (f->delay_q10 < target_q10 && !f->missing)
			return; /* the sender's slow start */
		f->on = 1;
		f->window_q20 = rate_q20 > LEAST_WINDOW_Q20 ? rate_q20 : LEAST_WINDOW_Q20;
	} else if (f->missing && !f->gap) {
		f->window_q20 = f->window_q20 * BETA_Q10 >> 10;
	}
	f->gap = f->missing;
	step = step_q20(f, c);
	/* A window that isn't used says nothing about the network: it must not run away. */
	if (step < 0 || (!f->missing && f->window_q20 < 2 * rate_q20 + (10ULL << 20))) {
		__s64 window = (__s64)f->window_q20 + step;

		f->window_q20 = window < 0 ? 0 : window;
	}
	if (f->window_q20 < LEAST_WINDOW_Q20)
		f->window_q20 = LEAST_WINDOW_Q20;
	if (f->window_q20 > MOST_WINDOW_Q20)
		f->window_q20 = MOST_WINDOW_Q20;
}

SEC("tc")
int nuwa_data(struct __sk_buff *skb)
{
	__u64 now_ns = bpf_ktime_get_ns();
	__u32 zero = 0, now_ms = now_ns / NS_PER_MS;
	struct nuwa_control *c = bpf_map_lookup_elem(&control, &zero);
	struct segment s = {};
	struct nuwa_key key = {};
	struct nuwa_flow *f;
	__s32 rtt_ms;

	if (!c || !read_segment(skb, &s) || bpf_ntohs(s.tcp.dest) != c->port || s.tcp.syn || !s.payload)
		return TC_ACT_OK;
	key.address = s.saddr;
	key.sport = bpf_ntohs(s.tcp.source);
	key.dport = bpf_ntohs(s.tcp.dest);
	f = flow_of(&key);
	if (!f)
		return TC_ACT_OK;
	if (s.stamp_kind != TIMESTAMPS) {
		f->unread++;
		return TC_ACT_OK;
	}
	f->received_bytes += s.payload;
	if (s.payload > f->mss)
		f->mss = s.payload;
	rtt_ms = (__s32)(now_ms + f->own_ms - s.echo);
	if (rtt_ms > 0 && rtt_ms < 60000 && (!f->least_rtt_us || rtt_ms * 1000 < f->least_rtt_us))
		f->least_rtt_us = rtt_ms * 1000;
	if (rtt_ms > 0 && rtt_ms < 60000)
		f->srtt_us = f->srtt_us ? f->srtt_us + ((__s32)(rtt_ms * 1000 - f->srtt_us) >> 3)
					: rtt_ms * 1000;
	filter(f, (__s64)(__s32)(now_ms - s.stamp) * 1000 + now_ns / 1000 % 1000);
	f->count++;
	if (now_ns - f->since_ns >= (__u64)f->srtt_us * 1000) {
		f->rate = f->count;
		f->count = 0;
		f->since_ns = now_ns;
	}
	move_window(f, c);
#ifdef NUWA_POLICY
	tune(&key, f, c, now_ns);
#endif
	return TC_ACT_OK;
}

#ifdef NUWA_POLICY
/* Data beyond a gap, by the SACK blocks that follow the timestamps: three at most have room. */
static __always_inline __u32 held(struct __sk_buff *skb, const struct segment *s)
{
	__u32 at = s->at + sizeof(s->tcp) + 12, total = 0, edges[2];
	__u8 head[4];

	if (s->options <= 16 ||
	    bpf_skb_load_bytes_relative(skb, at, head, sizeof(head), BPF_HDR_START_NET) || head[2] != 5)
		return 0;
	for (__u32 i = 0; i < 3; i++) {
		if (i * 8 + 10 > head[3] ||
		    bpf_skb_load_bytes_relative(skb, at + 4 + i * 8, edges, sizeof(edges),
						BPF_HDR_START_NET))
			break;
		total += bpf_ntohl(edges[1]) - bpf_ntohl(edges[0]);
	}
	return total;
}
#endif

/* How the receiver's own window field is scaled, of its SYN ACK. */
static __always_inline void learn_scale(struct __sk_buff *skb, const struct segment *s, struct nuwa_flow *f)
{
	__u8 option[4];

	if (s->options >= SYN_SCALE_AT + sizeof(option) &&
	    !bpf_skb_load_bytes_relative(skb, s->at + sizeof(s->tcp) + SYN_SCALE_AT, option,
					 sizeof(option), BPF_HDR_START_NET) &&
	    option[0] == 1 && option[1] == 3 && option[2] == 3 && option[3] <= 14) {
		f->scale = option[3];
		f->seen_scale = 1;
	}
}

SEC("tc")
int nuwa_ack(struct __sk_buff *skb)
{
	__u32 zero = 0, ack, edge, granted, field;
	struct nuwa_control *c = bpf_map_lookup_elem(&control, &zero);
	struct segment s = {};
	struct nuwa_key key = {};
	struct nuwa_flow *f;
	__be16 before, after;

	if (!c || !read_segment(skb, &s) || bpf_ntohs(s.tcp.source) != c->port || !s.tcp.ack)
		return TC_ACT_OK;
	key.address = s.daddr;
	key.sport = bpf_ntohs(s.tcp.dest);
	key.dport = bpf_ntohs(s.tcp.source);
	f = flow_of(&key);
	if (!f)
		return TC_ACT_OK;
	if (s.tcp.syn) {
		learn_scale(skb, &s, f);
		return TC_ACT_OK;
	}
	if (s.stamp_kind != TIMESTAMPS || !f->seen_scale) {
		f->unread++;
		return TC_ACT_OK;
	}
	f->own_ms = (__s32)(s.stamp - (__u32)(bpf_ktime_get_ns() / NS_PER_MS));
	f->missing = s.options > 12; /* SACK blocks follow the timestamps */
#ifdef NUWA_POLICY
	f->held_bytes = f->missing ? held(skb, &s) : 0;
#endif
	before = s.tcp.window;
	f->own_window = (__u32)bpf_ntohs(before) << f->scale;
	if (!f->on || !f->mss || s.tcp.rst)
		return TC_ACT_OK;
	ack = bpf_ntohl(s.tcp.ack_seq);
	granted = (f->window_q20 >> 20) * f->mss;
	edge = ack + granted;
	if (f->edge_known && (__s32)(f->edge - edge) > 0)
		edge = f->edge;
	granted = edge - ack;
	if (granted >= f->own_window)
		return TC_ACT_OK; /* what the receiver has no room for is never granted */
	f->edge = edge;
	f->edge_known = 1;
	f->granted = granted;
	/* Rounded up: less than what was granted would move the edge back. */
	field = (granted + (1U << (f->scale & 15)) - 1) >> (f->scale & 15);
	after = bpf_htons(field < 65535 ? field : 65535);
	if (after == before)
		return TC_ACT_OK;
	bpf_l4_csum_replace(skb, s.from + s.at + __builtin_offsetof(struct tcphdr, check), before, after,
			    sizeof(after));
	if (!bpf_skb_store_bytes(skb, s.from + s.at + __builtin_offsetof(struct tcphdr, window), &after,
				 sizeof(after), 0))
		f->rewritten++;
	return TC_ACT_OK;
}
