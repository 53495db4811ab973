"""What only SmartSBD needs: its training steps, groups, conditions, drift and predictions."""
