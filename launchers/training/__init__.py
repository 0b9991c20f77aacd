"""Targets that train: configs and scripts of training programs, and the configs that these refer to."""
