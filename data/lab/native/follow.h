/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the congestion control cczoo_follow shares with user space: flows, settings, events. */
#ifndef FOLLOW_H
#define FOLLOW_H

#define FOLLOW_FLOWS 256 /* sockets at once; what comes beyond runs as CUBIC */

enum follow_phase {
	FOLLOW_FREE,   /* nobody's place */
	FOLLOW_START,  /* slow start, until the window is one that an agent may begin with */
	FOLLOW_DRIVEN, /* the window follows its target */
	FOLLOW_ALONE,  /* no word from the agent for too long: CUBIC */
};

/* One, written when the control is loaded and read-only from then on. */
struct follow_settings {
	__u64 interval_ns; /* between decisions */
	__u64 late_ns;     /* so long without an order, and the window is CUBIC's */
	__u32 min_cwnd, max_cwnd;
	__u32 held_milli;  /* a target is at most so much of what the path holds; 0: no such bound */
	__u32 start_cwnd;  /* window at which the Start phase ends, and no bound lies below it */
	__u32 start_intervals; /* it ends after so many intervals in any case */
	__u32 probe_intervals; /* decisions from one draining of the queue to the next; 0: none */
	__u32 reach;       /* for a policy in the kernel: actions go from -reach to +reach */
	__u32 step_milli;  /* of what the path holds: unit of an action */
	__u32 step_segments; /* and at least so much */
	__u32 explore_after; /* intervals without growth that raise the expflag */
	__u32 life_intervals; /* how long estimates of bottleneck and base RTT live */
	__u32 span_intervals; /* a rate is the mean of so many */
	__u32 orders;      /* 1: user space decides; 0: the policy in this control */
	__u32 pad;
	__u8 schema[32];   /* SHA-256 of what is observed, and how */
};

/* An order is one number, so that a reader never sees half of it. */
#define FOLLOW_TARGET_BITS 20
#define FOLLOW_GENERATION_BITS 16
#define FOLLOW_SEQUENCE_BITS 28

static inline __u64 follow_order(__u32 sequence, __u32 generation, __u32 target)
{
	return (__u64)(sequence & ((1U << FOLLOW_SEQUENCE_BITS) - 1))
		       << (FOLLOW_TARGET_BITS + FOLLOW_GENERATION_BITS) |
	       (__u64)(generation & 0xffff) << FOLLOW_TARGET_BITS |
	       (target & ((1U << FOLLOW_TARGET_BITS) - 1));
}

struct follow_flow {
	__u64 order;       /* user space writes this alone */
	__u64 heard;       /* the last order that was new */
	__u64 heard_ns;    /* when it was found, or driving began: nobody else's clock is trusted */
	__u64 next_ns;     /* end of the present interval */
	__u64 inode;       /* network namespace */
	__u32 generation;  /* counts the sockets that had this place */
	__u32 phase;
	__u32 token, sfid; /* 0 on plain TCP */
	__u32 saddr, sport, dport; /* saddr in network order */
	__u32 target;      /* within the bounds, in segments */
	__u32 window;      /* what the window follows now: the target, or less while draining */
	__u32 most;        /* upper bound of the target */
	__u32 unit;        /* of an action, in segments */
	__u32 decisions;
	__u32 draining;    /* intervals left of a Probe phase */
	__u32 fallbacks, returns, bounded, stale; /* what happened so far */
	__u32 taken;       /* place is in use */
	__u32 begun;       /* intervals so far */
	__u32 was_driven;
};

enum follow_event_kind { FOLLOW_ACK, FOLLOW_APPLIED, FOLLOW_PHASE, FOLLOW_DECIDED };

struct follow_event {
	__u64 ts_ns; /* CLOCK_MONOTONIC */
	__u16 slot, generation;
	__u8 kind, phase, ca_state, pad;
	__u32 rtt_us; /* 0: this ACK gave none */
	__u32 cwnd, delivered, mss, in_flight;
	__u32 sequence;  /* of the order applied */
	__u32 took_ns;   /* a decision in the kernel */
};

#endif
