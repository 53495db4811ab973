"""A function's table as a header for BPF programs: every index is masked, as the verifier asks."""

from __future__ import annotations

from export.forms.curve import Curve

HEAD = """/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* {name}: {q} fractional bits of a number with {places} fractional bits, 0 or above; constant
 * beyond the table. Written by export/bpf/curve.py: change the model, not this file. */
#ifndef {upper}_BPF_H
#define {upper}_BPF_H

static const __u32 {name}_entries[{size}] = {{
"""
BODY = """}};

static __always_inline __s64 {name}(__u64 x)
{{
	__u64 at = (x * {mul}ULL + {half}ULL) >> {down};
	__u32 i = (__u32)(at >> {frac});
	__s64 low, high;

	if (x >= {limit}ULL)
		return {final};
	asm volatile("" : "+r"(i));
	low = {name}_entries[i & {mask}];
	i++;
	asm volatile("" : "+r"(i));
	high = {name}_entries[i & {mask}];
	return low + (((high - low) * (__s64)(at & {part}) + {half_step}) >> {frac});
}}

#endif
"""
_IN_A_ROW = 12


def header(curve: Curve, name: str) -> str:
    """C of ``static __always_inline __s64 <name>(__u64 x)``, the curve's value of x >= 0.

    Parameters
    ----------
    curve : Curve
        With a line between its entries, as `export.tanh.tanh_curve` makes it.
    name : str
        In C.
    """
    size = 1 << (len(curve.entries) - 1).bit_length()
    # What the mask could reach and the limit keeps out.
    entries = [*curve.entries, *[curve.entries[-1]] * (size - len(curve.entries))]
    rows = [entries[i : i + _IN_A_ROW] for i in range(0, size, _IN_A_ROW)]
    table = "".join("\t" + ", ".join(map(str, row)) + ",\n" for row in rows)
    head = HEAD.format(name=name, upper=name.upper(), size=size, q=curve.q, places=curve.places)
    body = BODY.format(
        name=name, mul=curve.mul, half=curve.half, down=curve.down, frac=curve.frac,
        limit=curve.limit, final=curve.entries[-1], mask=size - 1, part=(1 << curve.frac) - 1,
        half_step=curve.half_step,
    )  # fmt: skip
    return head + table + body
