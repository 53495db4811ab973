"""Atheris target of the JSON loader: it refuses with a UserError, or what it made is a form."""

from __future__ import annotations

import copy
import json
import random
import sys

import atheris

with atheris.instrument_imports(include=["export", "features.spec", "data.errors"]):
    import numpy as np

    from data.errors import UserError
    from export.document import dumps, loads
    from export.forms import FORMS, form_module

    for kind in FORMS:
        form_module(kind)

ODD = [None, True, 0, 1, -1, 2, 3, 127, 129, 2**31 - 1, 2**31, -(2**31), 2**63, -(2**63), 2**64]
ODD += [0.5, 1e300, -0.0, "", "f0", "tree", "forest", "linear", "\x00", "é", [], {}, [[]], [0]]


def check(data: bytes) -> None:
    """One execution."""
    try:
        form = loads(data, "model.json")
    except UserError as error:
        if "\n" in str(error):
            raise AssertionError("a message of several lines") from error
        return
    text = dumps(form)
    if dumps(loads(text, "model.json")) != text:
        raise AssertionError("reading what was written gave another form")
    extremes = np.array([[0], [1], [-(2**31)], [2**31 - 1]]).repeat(len(form.features), axis=1)
    form.evaluate(extremes)


def mutate(data: bytes, most: int, seed: int) -> bytes:
    """Change a value of the document, or its bytes."""
    chance = random.Random(seed)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or chance.random() < 0.3:
        return atheris.Mutate(data, most)
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        change(document, chance)
    changed = json.dumps(document).encode()
    return changed if len(changed) <= most else atheris.Mutate(data, most)


def change(document: dict, chance: random.Random) -> None:
    """Walk down at random; replace, remove, double or nudge what is there."""
    at: dict | list = document
    while True:
        if not at:
            return
        key = chance.choice(list(at)) if isinstance(at, dict) else chance.randrange(len(at))
        if not isinstance(at[key], dict | list) or not at[key] or chance.random() < 0.2:
            break
        at = at[key]
    how = chance.random()
    if how < 0.4 and type(at[key]) is int:
        at[key] += chance.choice([-2, -1, 1, 2, 1 << chance.randrange(64)])
    elif how < 0.7:
        at[key] = copy.deepcopy(chance.choice(ODD))
    elif how < 0.85:
        del at[key]
    elif isinstance(at, list):
        at.insert(chance.randrange(len(at) + 1), copy.deepcopy(at[key]))
    else:
        at[chance.choice(["cut", "nodes", "trees", "weights", "x"])] = copy.deepcopy(at[key])


if __name__ == "__main__":
    atheris.Setup(sys.argv, check, custom_mutator=mutate)
    atheris.Fuzz()
