"""Bundles: their manifest and certificate, signatures, and their files made anew."""
