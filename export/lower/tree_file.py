"""Lowers an ONNX file: a tree ensemble over the features, or else a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from export.forms.trees import Trees
from export.ir import Form, Ints
from export.lower.network import lower_network
from export.lower.onnx_chain import graph_of, path_to
from export.lower.prepare import NotLowerable, Prepared
from export.lower.trees import added_scores, mean_of_rows, refuse_not_finite
from features.spec import Feature

Floats = NDArray[np.float64]
OPERATORS = frozenset({"TreeEnsembleClassifier", "TreeEnsembleRegressor"})
SAME_CHOICE = frozenset({"Softmax", "LogSoftmax"})
SHAPES = frozenset({"Cast", "Flatten", "Identity", "Reshape", "Squeeze"})
UNSEEN = -1e8
"""The score of a class that training lacked starts from less than this."""


def lower_file(
    content: bytes,
    features: tuple[Feature, ...],
    labels: tuple[str, ...],
    threshold: float,
    kind: str,
) -> Form:
    """Lower an ONNX file that answers with a score per label, or as :func:`lower_network` takes it.

    Parameters
    ----------
    content : bytes
    features : tuple of Feature
    labels : tuple of str
    threshold : float
        Of two classes.
    kind : str
        Of the output, see :class:`models.output.Output`.

    Raises
    ------
    NotLowerable
        When the graph is neither one tree ensemble over the features nor a network of layers.
    """
    graph, constants = graph_of(content)
    used = {node.op_type for node in graph.node}
    if kind == "scores" and used & SAME_CHOICE:
        raise NotLowerable("a softmax of real scores has no integer form")
    if not used & OPERATORS:
        return lower_network(content, features, labels, threshold)
    if "scores" not in {output.name for output in graph.output}:
        raise NotLowerable("trees of two classes: give the model's directory, not its ONNX file")
    first, *rest = path_to(graph, "scores", constants)
    if first.op_type not in OPERATORS:
        raise NotLowerable(f"{first.op_type} before trees has no integer form here")
    try:
        ensemble = _Ensemble(first, len(features))
    except (LookupError, TypeError, ValueError) as error:
        raise NotLowerable(f"a tree ensemble that can't be read: {error}") from None
    if kind == "scores" and ensemble.link:
        raise NotLowerable("a softmax of real scores has no integer form")
    refuse_not_finite(ensemble.weights)
    priors, placed, link = ensemble.priors, np.eye(ensemble.outputs), ensemble.link
    lacking: NDArray[np.bool_] = np.zeros(ensemble.outputs, dtype=bool)
    for node in rest:
        given = [np.asarray(constants[name]) for name in node.input if name in constants]
        shape = given[0].shape if given else ()
        if node.op_type == "MatMul" and len(shape) == 2 and shape[0] == placed.shape[1]:
            # No probability is below 0, so a label that has none is chosen never.
            lacking = np.asarray(~given[0][~lacking].any(axis=0) & bool(link), dtype=bool)
            if link == "LogSoftmax" and lacking.any():
                raise NotLowerable("a label without a logarithm of its probability beats all")
            placed, priors = placed @ given[0], priors @ given[0]
        elif node.op_type == "Add" and not link and shape and given[0].size == placed.shape[1]:
            priors = priors + given[0].ravel()
        elif node.op_type in SAME_CHOICE:
            link = node.op_type
        elif node.op_type not in SHAPES:
            raise NotLowerable(f"{node.op_type} after trees has no integer form here")
    one_each = (placed.sum(axis=1) == 1).all() and set(np.unique(placed)) <= {0.0, 1.0}
    if placed.shape[1] != len(labels) or not one_each:
        raise NotLowerable(f"{placed.shape[1]} scores for {len(labels)} labels")
    if not (priors < np.inf).all():
        raise NotLowerable(f"a score starts from {priors.max()}")
    return ensemble.form(features, labels, placed, priors, lacking, regressor=kind == "scores")


@dataclass(frozen=True)
class _Tree:
    """One tree as scikit-learn has it: arrays [nodes], -1 for the children of a leaf."""

    feature: Ints
    threshold: Floats
    children_left: Ints
    children_right: Ints
    max_depth: int


class _Ensemble:
    """A tree operator's trees as arrays.

    Attributes
    ----------
    outputs : int
    link : str
        ``Softmax`` if the operator itself makes probabilities of its sums, else empty.
    trees : list of _Tree
    weights : list of float64 arrays [nodes, outputs]
    priors : float64 array [outputs]
    """

    def __init__(self, node: Any, n_features: int) -> None:
        import onnx

        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        post = attributes.get("post_transform", b"NONE")
        if post not in {b"NONE", b"SOFTMAX"} or any(
            key.endswith("_as_tensor") for key in attributes
        ):
            raise NotLowerable(f"{node.op_type} with {post.decode()} has no integer form here")
        self.link = "Softmax" if post == b"SOFTMAX" else ""
        prefix = "class" if node.op_type == "TreeEnsembleClassifier" else "target"
        names = attributes.get("classlabels_int64s") or attributes.get("classlabels_strings") or ()
        self.outputs = len(names) if prefix == "class" else int(attributes.get("n_targets", 1))
        if prefix == "class" and self.outputs == 2:
            raise NotLowerable("trees of two classes: give the model's directory")
        base = attributes.get("base_values") or [0.0] * self.outputs
        self.priors = np.asarray(base, dtype=np.float64)
        keys = list(zip(attributes["nodes_treeids"], attributes["nodes_nodeids"], strict=True))
        place = {key: i for i, key in enumerate(keys)}
        weights = np.zeros((len(keys), self.outputs))
        leaves = (attributes[f"{prefix}_{key}"] for key in ("treeids", "nodeids", "ids", "weights"))
        for tree, leaf, output, weight in zip(*leaves, strict=True):
            if not 0 <= output < self.outputs:
                raise NotLowerable(f"a leaf of an output {output} that isn't there")
            weights[place[tree, leaf], output] += weight
        if attributes.get("aggregate_function", b"SUM") == b"AVERAGE":
            weights /= len(set(attributes["nodes_treeids"]))
        elif attributes.get("aggregate_function", b"SUM") != b"SUM":
            raise NotLowerable("trees whose leaves aren't added have no integer form")
        if len(self.priors) != self.outputs or len(place) != len(keys):
            raise NotLowerable("a tree ensemble whose counts differ")
        self.trees: list[_Tree] = []
        self.weights: list[Floats] = []
        for tree in dict.fromkeys(attributes["nodes_treeids"]):
            rows = self._rows(attributes, place, tree)
            self._take(attributes, rows, weights, n_features)

    def _rows(
        self, attributes: Any, place: dict[Any, int], tree: int
    ) -> list[tuple[int, int, int]]:
        """A tree's nodes from its root on, each with its children's places in this list."""
        root = place[
            tree, attributes["nodes_nodeids"][list(attributes["nodes_treeids"]).index(tree)]
        ]
        found, waiting = [(root, -1, -1)], [0]
        while waiting:
            at = waiting.pop()
            node = found[at][0]
            if attributes["nodes_modes"][node] == b"LEAF":
                continue
            if attributes["nodes_modes"][node] != b"BRANCH_LEQ" or len(found) > len(place):
                raise NotLowerable("trees that compare otherwise than by <=, or aren't trees")
            children = []
            for key in ("nodes_truenodeids", "nodes_falsenodeids"):
                children.append(len(found))
                waiting.append(len(found))
                found.append((place[tree, attributes[key][node]], -1, -1))
            found[at] = (node, children[0], children[1])
        return found

    def _take(
        self, attributes: Any, rows: list[tuple[int, int, int]], weights: Floats, n_features: int
    ) -> None:
        nodes = np.array([row[0] for row in rows])
        left, right = (np.array([row[i] for row in rows]) for i in (1, 2))
        feature = np.where(left < 0, -1, np.array(attributes["nodes_featureids"])[nodes])
        if feature.max() >= n_features or feature[left >= 0].min(initial=0) < 0:
            raise NotLowerable("trees that compare a feature that isn't there")
        threshold = np.array(attributes["nodes_values"], dtype=np.float64)[nodes]
        self.weights.append(weights[nodes])
        depth = np.zeros(len(nodes), dtype=np.int64)
        # Children stand behind their parents.
        for at in np.flatnonzero(left >= 0):
            depth[left[at]] = depth[right[at]] = depth[at] + 1
        self.trees.append(_Tree(feature, threshold, left, right, int(depth.max())))

    def form(
        self,
        features: tuple[Feature, ...],
        labels: tuple[str, ...],
        placed: Floats,
        priors: Floats,
        lacking: NDArray[np.bool_],
        *,
        regressor: bool,
    ) -> Trees:
        """The form, with each output at its label; those that are ``lacking`` have none."""
        known = ~lacking & (regressor | (priors > UNSEEN))
        seen = tuple(map(int, np.flatnonzero(known)))
        columns = tuple(range(len(features)))
        prepared = Prepared(None, features, labels, seen, columns, (), 0.5, regressor=regressor)
        scores = [weights @ placed for weights in self.weights]
        adds = [np.flatnonzero(score.any(axis=0)) for score in scores]
        if len(labels) > 1 and not priors.any() and not lacking.any():
            return mean_of_rows(prepared, self.trees, scores)
        if any(len(labels_of) > 1 for labels_of in adds):
            raise NotLowerable("trees with several scores in a leaf that start from others")
        outputs = [int(labels_of[0]) if len(labels_of) else seen[0] for labels_of in adds]
        values = [score[:, label] for score, label in zip(scores, outputs, strict=True)]
        at = {label: i for i, label in enumerate(seen)}
        if never := sorted({labels[label] for label in outputs} - {labels[i] for i in seen}):
            raise NotLowerable(f"a tree adds to {never[0]!r}, which starts too low to be chosen")
        starts = [float(priors[label]) for label in seen]
        return added_scores(prepared, self.trees, values, [at[label] for label in outputs], starts)
