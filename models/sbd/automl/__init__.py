"""AutoML: a search over kinds of models and their hyperparameters, by one of two backends."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from data.errors import unknown_name
from models.parallel import Progress, silent

if TYPE_CHECKING:
    from models.sbd.automl.task import Result, Task

BACKENDS: dict[str, str] = {
    "flaml": "models.sbd.automl.flaml_backend",
    "auto-sklearn": "models.sbd.automl.autosklearn_backend",
}
"""Name -> module with ``check()`` (`UserError` unless installed) and ``search(Task) -> Result``."""


def check(backend: str) -> None:
    """Check that a backend is installed before anything long begins.

    Raises
    ------
    UserError
        When no backend has this name, or it isn't installed; the message has the command for it.
    """
    _module(backend).check()


def search(backend: str, task: Task, progress: Progress = silent) -> Result:
    """Search with a backend.

    Parameters
    ----------
    backend : str
        Key of `BACKENDS`.
    task : Task
        What is to be learned, and the budget.
    progress : callable
        Shows how many seconds of the budget have gone.

    Returns
    -------
    Result

    Raises
    ------
    UserError
        When there is no such backend, or its search fails.
    """
    found: Result = _module(backend).search(task, progress)
    return found


def _module(backend: str) -> ModuleType:
    if backend not in BACKENDS:
        raise unknown_name("backend", backend, BACKENDS)
    return importlib.import_module(BACKENDS[backend])
