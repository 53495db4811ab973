"""Runs ONNX files of ours: any batch size, and recurrent ones as a sequence."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data.errors import UserError
from models.onnx_safe import open_session

ANSWERS = ("probability", "scores")
"""Outputs that a file of ours may have: [N] of the last label, or [N, labels] of a policy."""


def predict(content: bytes, values: NDArray[np.floating], where: str) -> NDArray[np.float64]:
    """Run a file of ours.

    Parameters
    ----------
    content : bytes
        The ONNX file.
    values : float64 array [N, d]
        Observations; rounded to float32 as the file's input demands. To a model with a state
        (metadata ``state_in`` and ``state_out``) they are one sequence, from the zero state.
    where : str
        Its name, for the message.

    Returns
    -------
    float64 array [N] or [N, labels]
        By the file's output, ``probability`` or ``scores``.

    Raises
    ------
    UserError
        When ONNX Runtime refuses the file or its inputs and outputs aren't ours.
    """
    try:
        return _run(content, values.astype(np.float32), where)
    except UserError:
        raise
    except Exception as error:
        # ONNX Runtime raises many unrelated types, some of them straight from C++.
        reason = str(error).splitlines()[0][:200]
        raise UserError(f"{where}: ONNX Runtime refuses it: {reason}") from None


def decided(answers: NDArray[np.float64], threshold: float) -> NDArray[np.int64]:
    """Classes of answers: above the threshold on [N], the first largest on [N, labels]."""
    above = answers > threshold if answers.ndim == 1 else answers.argmax(axis=1)
    return np.asarray(above, dtype=np.int64)


def _run(content: bytes, values: NDArray[np.float32], where: str) -> NDArray[np.float64]:
    session = open_session(content, where)
    outputs = [output.name for output in session.get_outputs()]
    answer = next((name for name in ANSWERS if name in outputs), None)
    if answer is None:
        raise ValueError(f"no output {' or '.join(ANSWERS)}")
    metadata = session.get_modelmeta().custom_metadata_map
    state_in, state_out = (json.loads(metadata.get(key, "[]")) for key in ("state_in", "state_out"))
    shapes = {given.name: given.shape for given in session.get_inputs()}
    batch = shapes["features"][0]
    if state_in:
        return _sequence(session, answer, state_in, state_out, shapes, values)
    if not isinstance(batch, int):
        return np.asarray(session.run([answer], {"features": values})[0], dtype=np.float64)
    # A fixed batch takes exactly its number of rows: the last one is filled up and shortened again.
    rows = np.concatenate([values, np.repeat(values[-1:], -len(values) % batch, axis=0)])
    parts = [session.run([answer], {"features": part})[0] for part in _parts(rows, batch)]
    return np.concatenate(parts).astype(np.float64)[: len(values)]


def _parts(rows: NDArray[np.float32], batch: int) -> list[NDArray[np.float32]]:
    return [rows[start : start + batch] for start in range(0, len(rows), batch)]


def _sequence(
    session: Any,
    answer: str,
    state_in: list[str],
    state_out: list[str],
    shapes: dict[str, list[Any]],
    values: NDArray[np.float32],
) -> NDArray[np.float64]:
    """Row by row; a batch of more than one gets the same row in every place."""
    batch = shapes["features"][0] if isinstance(shapes["features"][0], int) else 1
    state = {
        name: np.zeros([s if isinstance(s, int) else batch for s in shapes[name]], np.float32)
        for name in state_in
    }
    answers = []
    for row in values:
        given = {"features": np.repeat(row[None], batch, axis=0), **state}
        found, *after = session.run([answer, *state_out], given)
        state = dict(zip(state_in, after, strict=True))
        answers.append(found[0])
    return np.asarray(answers, dtype=np.float64)
