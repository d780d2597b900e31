"""Trained students, translators and region counts behind the experiments."""
