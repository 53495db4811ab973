"""Converts a two-class support vector machine to ONNX's ``SVMClassifier``.

skl2onnx's own conversion reads ``probA_`` and ``probB_``, which scikit-learn 1.11 takes away with
``SVC(probability=True)``. The machines of the zoo have no use for either: their probabilities come
from a sigmoid over the margin, the converter's ``raw_scores``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from data.errors import UserError

OPTIONS = ("zipmap", "raw_scores", "nocl", "output_class_labels")
"""Options that skl2onnx asks every converter of a classifier for."""


def register() -> None:
    """Make :func:`convert_svc` skl2onnx's converter of ``SVC``."""
    from skl2onnx import update_registered_converter
    from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes
    from sklearn.svm import SVC

    update_registered_converter(
        SVC,
        "SklearnSVC",
        calculate_linear_classifier_output_shapes,
        convert_svc,
        options={name: [True, False] for name in OPTIONS},
    )


def convert_svc(scope: Any, operator: Any, container: Any) -> None:
    """Write one machine, as skl2onnx asks its converters to.

    Parameters
    ----------
    scope, operator, container
        skl2onnx's: names, the estimator with its inputs and outputs, the graph's parts.

    Raises
    ------
    UserError
        For a machine of more than two classes or with probabilities of its own.
    """
    from onnx import TensorProto
    from skl2onnx.common._apply_operation import apply_cast

    machine = operator.raw_operator
    if len(machine.classes_) != 2 or getattr(machine, "probability", False) is True:
        raise UserError(
            "SVC: two classes without probability=True are converted: "
            "put CalibratedClassifierCV(ensemble=False) around it for probabilities"
        )
    label, scores = (output.full_name for output in operator.outputs)
    margin = scope.get_unique_variable_name("SVM02")
    container.add_node(
        "SVMClassifier",
        operator.inputs[0].full_name,
        [label, margin],
        op_domain="ai.onnx.ml",
        op_version=1,
        name=scope.get_unique_operator_name("SVMc"),
        kernel_type=machine.kernel.upper(),
        kernel_params=[float(x) for x in (machine._gamma, machine.coef0, machine.degree)],
        support_vectors=machine.support_vectors_.ravel().astype(np.float32),
        coefficients=(-machine.dual_coef_.ravel()).astype(np.float32),
        rho=(-machine.intercept_).astype(np.float32),
        post_transform="NONE",
        vectors_per_class=machine.n_support_.tolist(),
        classlabels_ints=[int(name) for name in machine.classes_],
    )
    if not container.get_options(machine, {"raw_scores": False})["raw_scores"]:
        apply_cast(scope, margin, scores, container, to=TensorProto.FLOAT)
        return
    # ONNX Runtime's margin is that of class 0.
    raw = scope.get_unique_variable_name("raw_scores")
    minus_one = scope.get_unique_variable_name("minus_one")
    apply_cast(scope, margin, raw, container, to=TensorProto.FLOAT)
    container.add_initializer(minus_one, TensorProto.FLOAT, [], [-1])
    container.add_node(
        "Mul", [raw, minus_one], scores, name=scope.get_unique_operator_name("MulRawScores")
    )
