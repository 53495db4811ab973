"""C of what a policy's tree sees, written from the definitions in `features.derived`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from export.bundle.manifest import Bundle
from export.fixed import INT32_MAX
from export.params import Options, VerifyParams
from export.render import c_name, render
from export.source import Source
from export.toolchain.harness import (
    RUNTIME,
    CannotRun,
    compile_once,
    find_compiler,
    kernel_flags,
    run_command,
)
from features.derived import (
    LAGS,
    ONE,
    RING,
    Change,
    Column,
    Derived,
    Deriver,
    Extreme,
    Ratio,
    entries,
    features,
)
from features.spec import Feature
from models.families import POLICIES
from models.policies.observed import OBSERVED, observed

SEQUENCES, LENGTH = 60, 64
"""Episodes that verification makes up, and their length."""


def carries(columns: Sequence[Feature]) -> bool:
    """Whether these are what trees of some policy see, as it is defined now."""
    return whose(columns) is not None


def whose(columns: Sequence[Feature]) -> tuple[str, int] | None:
    """Environment and kind of part whose trees see these features, as they are defined now."""
    meanings = [column.meaning for column in columns]
    for environment, kind in OBSERVED:
        known = features(environment, kind, observed(environment, kind)[0])
        if [feature.meaning for feature in known] == meanings:
            return environment, kind
    return None


def _known(columns: Sequence[Feature]) -> tuple[str, int]:
    found = whose(columns)
    if found is None:
        raise ValueError("no policy's tree sees these features")
    return found


def settings(source: Source, options: Options) -> dict[str, Any]:
    """Whose observation it is, and how much is remembered."""
    line = POLICIES[source.family]
    return {"environment": line.environment, "kind": line.kind, "ring": RING}


def emit(source: Source, options: Options) -> dict[str, str]:
    """One header, to be included after the model's own."""
    environment, kind = _known(source.features)
    own, _ = observed(environment, kind)
    all_of_them = entries(environment, kind, own)
    kept = list(dict.fromkeys(one.of for one in all_of_them if isinstance(one, Change)))
    place = {one.name: i for i, one in enumerate(all_of_them)}
    extremes = [one.name for one in all_of_them if isinstance(one, Extreme)]
    steps = [
        _step(i, one, spec, place, kept, extremes)
        for i, (one, spec) in enumerate(zip(all_of_them, source.features, strict=True))
    ]
    text = render(
        "observe.h.j2",
        source=source,
        one=ONE,
        ring=RING,
        longest=max(LAGS),
        interval_us=_interval_us(environment),
        columns=[f for f, one in zip(source.features, all_of_them, strict=True)
                 if isinstance(one, Column)],
        extremes=extremes,
        kept=[place[name] for name in kept],
        steps=steps,
    )  # fmt: skip
    return {f"{source.identifier}_observe.h": text}


def _interval_us(environment: str) -> int:
    from models.policies.scenes import ENVIRONMENTS

    settings = ENVIRONMENTS[environment].settings()
    params: Any = settings.parse({}, environment)
    return int(params.params.observation.interval_us)


def _step(
    at: int, one: Derived, spec: Feature, place: dict[str, int], kept: list[str],
    extremes: list[str],
) -> dict[str, Any]:  # fmt: skip
    step: dict[str, Any] = {
        "at": at,
        "name": one.name,
        "low": int(spec.low),
        "high": int(spec.high),
    }
    if isinstance(one, Column):
        return step | {"kind": "column"}
    if isinstance(one, Extreme):
        more = {"of": place[one.of], "slot": extremes.index(one.name), "least": one.least}
        return step | {"kind": "extreme", **more}
    if isinstance(one, Ratio):
        products = {
            name: " * ".join([f"{constant}ULL", *(f"(uint64_t)x[{place[n]}]" for n in names)])
            for name, constant, names in (
                ("top", one.times, one.top),
                ("bottom", one.over, one.bottom),
            )
        }
        return step | {"kind": "ratio", **products}
    more = {"of": place[one.of], "slot": kept.index(one.of), "lag": one.lag}
    return step | {"kind": "change", **more}


def prove(bundle: Bundle, params: VerifyParams, work: Path) -> dict[str, Any]:
    """Feed made-up episodes, tame and extreme, and compare every number and class."""
    if bundle.form is None:
        raise CannotRun("feature code is only made beside a form")
    environment, kind = _known(bundle.features)
    deriver = Deriver(environment, kind, observed(environment, kind)[0], 1)
    started, rows = _episodes(params.seed, deriver)
    given = np.concatenate([started[:, None], rows], axis=1).astype(np.int32)
    program, flags = _built(bundle, rows.shape[1], len(bundle.features), work, params.timeout_s)
    done = run_command([str(program)], params.timeout_s, given.tobytes())
    found = np.frombuffer(done.stdout, np.int32).reshape(-1, len(bundle.features) + 1)
    if done.returncode or len(found) != len(rows):
        raise CannotRun(f"the feature code answered {len(found)} of {len(rows)} rows")
    meant = np.concatenate(
        [
            deriver.update(row[None], np.array([flag]))
            for row, flag in zip(rows, started, strict=True)
        ]
    )
    classes = bundle.form.evaluate(meant).classes
    wrong = (found[:, :-1] != meant).any(axis=1) | (found[:, -1] != classes)
    return {"rows": len(rows), "mismatches": int(wrong.sum()), "flags": flags}


def _episodes(seed: int, deriver: Deriver) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Observations that wander, jump, vanish and leave their ranges; where episodes begin."""
    rng = np.random.default_rng(seed)
    width = sum(isinstance(one, Column) for one in deriver.entries)
    high = np.array([feature.high for feature in deriver.features[:width]])
    episodes = []
    for number in range(SEQUENCES):
        first = high ** rng.uniform(0, 1, width)
        steps = rng.normal(0, 0.3 if number % 2 else 2.0, (LENGTH, width)).cumsum(axis=0)
        values = np.floor(first * np.exp(np.clip(steps, -40, 40)))
        values[rng.random(values.shape) < 0.05] = 0
        values[rng.random(values.shape) < 0.02] = INT32_MAX
        episodes.append(np.minimum(values, INT32_MAX).astype(np.int64))
    started = np.zeros(SEQUENCES * LENGTH, bool)
    started[::LENGTH] = True
    return started, np.concatenate(episodes)


def _built(
    bundle: Bundle, observed_count: int, feature_count: int, work: Path, timeout_s: float
) -> tuple[Path, list[str]]:
    """The driver with a bundle's headers, compiled as a kernel compiles but for libc."""
    name = bundle.identifier
    defines = {
        "MODEL": f'"{name}.h"',
        "OBSERVE": f'"{name}_observe.h"',
        "MEMORY": f"{name}_memory",
        "BEGIN": f"{name}_begin",
        "OBSERVE_ONE": f"{name}_observe",
        "CLASSIFY": f"{name}_classify",
        "OBSERVED": f"{c_name(name)}_OBSERVED",
        "FEATURES": f"{c_name(name)}_FEATURES",
    }
    flags = [flag for flag in kernel_flags() if flag != "-ffreestanding"]
    # Headers that are included for their functions have some that one program doesn't call.
    command = [*find_compiler(), *flags, "-Wno-unused-function"]
    command += [f"-D{key}={value}" for key, value in defines.items()]
    program = work / "observe"
    included = [bundle.directory / f"{name}.h", bundle.directory / f"{name}_observe.h"]
    compile_once(command, [RUNTIME / "observe_driver.c"], program, timeout_s, included)
    return program, flags
