"""How classifiers are compared: splits, held-out rows, scores and the papers' tables."""
