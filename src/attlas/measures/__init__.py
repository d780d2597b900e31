"""Measure: arrays in, numbers out."""
