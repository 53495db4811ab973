"""Every result file and its schema, by its place in the folder of results."""

from __future__ import annotations

from typing import Any

from data.results import ResultFile
from models.qos.results import QOS
from models.sbd.results.accuracy import MIXED, RULES, TABLE5, TABLE6, TRANSFER
from models.sbd.results.automl import AUTO_TABLE5, SEARCHED, SPLIT
from models.sbd.results.budget import PARETO
from models.sbd.results.groups import GROUPS, KEPT
from models.sbd.results.kept import HEADLINE, METRICS
from models.sbd.results.neural import CHOICE, CURVE, NEURAL
from models.sbd.results.scores import CONFUSION, DELAY
from models.sbd.results.search import BEST, MI
from models.sbd.results.verdicts import CALIBRATION, LOFO, PLUS
from pipelines.results import NUMBERS, REGISTERED, REPRODUCTION
from pipelines.rl.results import CURVE as LEARNED
from pipelines.rl.results import FOLDER, SHOWN, TRAJECTORY, VERDICT

FILES: dict[str, ResultFile[Any]] = {
    **{
        f"sbd/{file.name}": file
        for file in (
            *(MI, BEST),
            *(PLUS, TABLE5, TABLE6, MIXED, TRANSFER, LOFO, CALIBRATION, CONFUSION, DELAY, RULES),
            *(METRICS, HEADLINE),
        )
    },
    **{f"neural/{file.name}": file for file in (CHOICE, NEURAL, CURVE)},
    **{f"groups/{file.name}": file for file in (GROUPS, KEPT)},
    f"qos/{QOS.name}": QOS,
    f"auto/{SEARCHED.name}": SEARCHED,
    **{f"auto-table5/{file.name}": file for file in (AUTO_TABLE5, SPLIT)},
    f"budget/{PARETO.name}": PARETO,
    **{
        f"{FOLDER}/{name}/{file.name}": file
        for name in SHOWN
        for file in (VERDICT, LEARNED, TRAJECTORY)
    },
    **{file.name: file for file in (REPRODUCTION, REGISTERED, NUMBERS)},
}
"""Path below ``reports`` (or below ``--out``, if no stage makes the file) -> its schema."""
