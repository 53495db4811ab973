"""A neural classifier on the raw pair of series: network, training, out-of-sample protocol."""
