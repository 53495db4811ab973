"""Find the extra of the package that brings a library which a command didn't find."""

from __future__ import annotations

from data.errors import UserError

EXTRAS: dict[str, str] = {
    "deltalake": "fleet",
    "dvc": "repro",
    "flaml": "train",
    "fsspec": "fleet",
    "gymnasium": "rl",
    "joblib": "train",
    "lightgbm": "train",
    "lightning": "train",
    "matplotlib": "report",
    "mlflow": "registry",
    "msgpack": "rl",
    "onnxscript": "train",
    "pettingzoo": "rl",
    "pgmpy": "train",
    "pyarrow": "train",
    "ray": "train",
    "ruamel": "repro",
    "s3fs": "fleet",
    "safetensors": "train",
    "scipy": "train",
    "skl2onnx": "train",
    "sklearn": "train",
    "torch": "train",
    "tslearn": "train",
    "xgboost": "train",
}
"""Module -> extra, as in pyproject.toml; all other modules come with the package."""


def missing(error: ModuleNotFoundError) -> UserError | None:
    """Advice on what to install for a missing module; None if no extra brings it.

    Parameters
    ----------
    error : ModuleNotFoundError
        The error that the import has raised.
    """
    module = (error.name or "").partition(".")[0]
    if module not in EXTRAS:
        return None
    return UserError(f"{module} isn't installed: run pip install 'cczoo[{EXTRAS[module]}]'")
