"""The parts that only SmartSBD needs: training steps, groups, conditions, drift, predictions."""
