"""Break down errors on Table 6's unseen cases: ``python -m pipelines.reporting.sbd.unseen``."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from models.sbd.params import THRESHOLD
from models.sbd.windows import read, windows

MODELS = ("smartsbd-dt-top1", "smartsbd-dt", "smartsbd-rf", "smartsbd-plus-lr", "threshold")


def breakdown(features: Path, predictions: Path) -> pl.DataFrame:
    """Compute the accuracy on the unseen cases by class and by losses within the window.

    Parameters
    ----------
    features : Path
        Table of ``cczoo features sbd``.
    predictions : Path
        ``predictions.parquet`` of the protocol step.

    Returns
    -------
    polars.DataFrame
        ``trained`` (unseen: on the sites; unseen-varied: on the randomised campaign too),
        ``model``, accuracy of SB and NSB windows in which the subflows' congestion states ever
        differed (``*_loss``) or never did (``*_quiet``), and of first windows (``first``).
    """
    frame = windows(read(features)).frame.with_row_index("row")
    known = pl.read_parquet(predictions).filter(
        pl.col("protocol").is_in(["unseen", "unseen-varied"]) & pl.col("model").is_in(MODELS)
    )
    right = (pl.col("probability") > THRESHOLD) == (pl.col("label") == "SB")
    # A distance of zero between 0/1 series: neither subflow was in Recovery or Loss alone.
    quiet = pl.col("CState_ED") == 0
    joined = known.with_columns(pl.col("row").cast(pl.UInt32)).join(frame, on="row")
    columns = {
        f"{label.lower()}_{name}": right.filter((pl.col("label") == label) & mask).mean()
        for label in ("SB", "NSB")
        for name, mask in (("loss", ~quiet), ("quiet", quiet))
    }
    return (
        joined.group_by(pl.col("protocol").alias("trained"), "model")
        .agg(
            **columns,
            first=right.filter(pl.col("window") == 0).mean(),
            quiet_nsb_share=(quiet & (pl.col("label") == "NSB")).sum()
            / (pl.col("label") == "NSB").sum(),
        )
        .sort("trained", "model")
    )


if __name__ == "__main__":
    table = breakdown(Path("data/processed/sbd.parquet"), Path("reports/sbd/predictions.parquet"))
    with pl.Config(tbl_rows=20, tbl_cols=12, float_precision=3, tbl_width_chars=160):
        print(table)
