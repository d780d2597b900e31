"""Measurements: functions from arrays to numbers."""
