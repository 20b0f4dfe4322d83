"""Expressions with types: analysis of raw expressions, and their text."""
