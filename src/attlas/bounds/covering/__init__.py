"""Covering numbers of attention classes and the integral that turns them into complexity."""
