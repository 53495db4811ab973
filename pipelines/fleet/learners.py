"""Models and trainings that learned from certain connections of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

STORE_TAG, WHERE_TAG, VERSION_TAG = "store_id", "store_where", "store_version"
"""Tags of an MLflow run that learned from a selection of a store."""


def learners(store: str, gone: pl.DataFrame) -> list[dict[str, Any]]:
    """Versions of models whose training selected one of some connections.

    A training without any, as of a policy from decisions, is listed by its own name. A model
    counts if its condition selects one of them now: which of them were there already when it was
    trained isn't known.

    Parameters
    ----------
    store : str
        Name of the store that no other has.
    gone : polars.DataFrame
        Rows of connections.
    """
    from data.errors import UserError
    from data.fleet.where import Where
    from pipelines import tracking

    if tracking.is_missing():
        return []
    client = tracking.client()
    found = []
    with tracking.reported():
        for experiment in client.search_experiments():
            condition = f"tags.{STORE_TAG} = '{store}'"
            for run in tracking.search_runs(experiment.name, condition):
                text = run.data.tags.get(WHERE_TAG, "")
                try:
                    hit = Where(text).mask(gone).any()
                except UserError:
                    hit = True  # a column that the store hasn't any more: rather too many than few
                if hit:
                    versions = client.search_model_versions(f"run_id = '{run.info.run_id}'")
                    named: list[tuple[str, int | None]] = [
                        (one.name, int(one.version)) for one in versions
                    ]
                    found += [
                        {
                            "name": name,
                            "version": version,
                            "run": run.info.run_id,
                            "where": text or "all",
                        }
                        for name, version in named or [(run.info.run_name, None)]
                    ]
    return sorted(found, key=lambda one: (one["name"], one["version"] or 0))
