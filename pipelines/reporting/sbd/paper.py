"""Figures that the SmartSBD paper prints, to stand beside this project's."""

from __future__ import annotations

MUTUAL_INFORMATION: dict[str, tuple[float, int]] = {
    "RTT_ED": (0.1694, 3),
    "CState_ED": (0.1325, 5),
    "Thpt_ED": (0.0, 18),
    "RTT_DTWD": (0.1830, 2),
    "CState_DTWD": (0.1018, 9),
    "Thpt_DTWD": (0.0049, 17),
    "RTT_CState_ED": (0.1281, 7),
    "CState_Thpt_ED": (0.0922, 10),
    "RTT_Thpt_ED": (0.0476, 15),
    "RTT_CState_DTWD": (0.1503, 4),
    "CState_Thpt_DTWD": (0.0852, 12),
    "RTT_Thpt_DTWD": (0.0078, 16),
    "RTT_CState_Thpt_ED": (0.0587, 14),
    "RTT_CState_Thpt_DTWD": (0.0616, 13),
    "Min_RTT_Ratio": (0.1320, 6),
    "RTT_SD_Ratio": (0.2638, 1),
    "CState_SD_Ratio": (0.1164, 8),
    "Thpt_SD_Ratio": (0.0901, 11),
}
"""Table 3: feature -> (mutual information in nats, rank)."""

SITES = ("shanghai", "guangzhou", "silicon-valley", "frankfurt")

_COLUMNS = (*SITES, "ALL")
_TABLE5: dict[str, tuple[tuple[float, float, float], ...]] = {
    "smartsbd-dt": (
        (0.974, 0.957, 0.992),
        (0.955, 0.939, 0.971),
        (0.807, 0.794, 0.819),
        (0.848, 0.809, 0.887),
        (0.896, 0.875, 0.917),
    ),
    "smartsbd-rf": (
        (0.981, 0.966, 0.996),
        (0.957, 0.930, 0.985),
        (0.854, 0.866, 0.842),
        (0.884, 0.864, 0.904),
        (0.919, 0.907, 0.932),
    ),
    "smartsbd-svm": (
        (0.977, 0.976, 0.979),
        (0.966, 0.956, 0.975),
        (0.907, 0.884, 0.930),
        (0.900, 0.850, 0.950),
        (0.937, 0.916, 0.959),
    ),
    "auto-sklearn": (
        (0.990, 0.984, 0.996),
        (0.968, 0.960, 0.976),
        (0.933, 0.930, 0.935),
        (0.937, 0.907, 0.967),
        (0.957, 0.945, 0.969),
    ),
    "sbd": (
        (0.615, 0.728, 0.502),
        (0.732, 0.750, 0.714),
        (0.635, 0.820, 0.450),
        (0.613, 0.716, 0.510),
        (0.649, 0.754, 0.544),
    ),
    "dwc": (
        (0.595, 0.310, 0.880),
        (0.625, 0.480, 0.770),
        (0.535, 0.160, 0.910),
        (0.490, 0.120, 0.860),
        (0.561, 0.268, 0.855),
    ),
    "ton20": (
        (0.376, 0.267, 0.485),
        (0.454, 0.461, 0.447),
        (0.473, 0.154, 0.793),
        (0.503, 0.183, 0.823),
        (0.452, 0.266, 0.637),
    ),
}
TABLE5: dict[tuple[str, str], dict[str, float]] = {
    (scheme, site): dict(zip(("both", "sb", "nsb"), figures, strict=True))
    for scheme, rows in _TABLE5.items()
    for site, figures in zip(_COLUMNS, rows, strict=True)
}
"""Table 5: (our name of the scheme, site or ALL) -> accuracy of both classes, SB, NSB."""

UNSEEN = 0.861
"""Section 1: mean accuracy over the unseen cases of Table 6 (section 5.2 prints 0.858)."""

AIMS = {
    "within": 0.957,
    "tree": 0.90,
    "unseen": 0.90,
    "plus_window": 0.95,
    "plus_connection": 0.98,
}
"""This project's aims; ``within`` is the paper's best figure (Table 5, auto-sklearn)."""
