"""Plays scripted policies in the environments, to show what there is to win in them."""
