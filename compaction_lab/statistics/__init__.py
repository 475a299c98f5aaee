"""Estimators on plain arrays, and the paired comparison of arms that uses them."""
