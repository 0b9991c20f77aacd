"""Targets that start a run on its nodes: batch systems, Kubernetes, cloud launchers, plain shells."""
