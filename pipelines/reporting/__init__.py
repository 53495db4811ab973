"""The offline report: what was measured, as one HTML page."""
