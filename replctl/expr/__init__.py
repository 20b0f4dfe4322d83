"""Typed expressions: analyse raw expressions, and print typed ones as text."""
