/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the receiver nuwa.bpf.c shares with user space. */
#ifndef NUWA_H
#define NUWA_H

/* One, in the map `control`; user space may change it at any time. */
struct nuwa_control {
	__u32 target_us; /* T_d */
	__u32 gain_milli; /* k, in thousandths */
	__u16 port;      /* of the receiver */
	__u16 pad;
};

/* A sender, by the data that comes from it. */
struct nuwa_key {
	__u32 address; /* network order */
	__u16 sport, dport;
};

struct nuwa_flow {
	__u64 window_q20;  /* segments */
	__u64 since_ns;    /* beginning of the present count of segments */
	__s64 least_us;    /* one-way delay, whose clocks' difference is unknown */
	__s64 last_us;
	__s64 delay_q10;   /* queueing delay as filtered, ms */
	__s64 change_q10;  /* of the delay, from the segment before, ms */
	__s64 noise_q10;   /* variance of a measurement, ms^2 */
	__s64 spread_q10;  /* variance of the filter's estimate, ms^2 */
	__u64 received_bytes, delay_sum_us;
	__u32 delays;      /* counted in delay_sum_us */
	__u32 count, rate; /* segments: so far, and in the last RTT */
	__u32 srtt_us;
	__u32 mss;
	__s32 own_ms;      /* own timestamps less this machine's clock */
	__u32 edge;        /* right edge of what was granted: it never moves back */
	__u32 granted;     /* last window that was written, bytes */
	__u32 own_window;  /* what the receiver itself would have said, bytes */
	__u8 scale, seen_scale, on, gap, missing, any, edge_known, pad;
	__u32 rewritten, unread;
	/* of a policy that chooses k */
	__u32 gain_milli, decisions;
	__u32 least_rtt_us;
	__u32 held_bytes;  /* beyond a gap, as the last ACK reports */
	__u64 next_ns;     /* end of the present interval */
	__u64 received_before, delay_sum_before; /* at its beginning */
	__u64 mean_us, least_mean_us; /* of the delays over the least, of an interval and of all */
	__u32 delays_before, least_mean_known;
};

#endif
