"""The way back from launch files to a Plan: configs, scripts and command lines that others wrote, or that we did.

Only what is sure is read; the rest is named with the reason. `launchers.reading.sets` reads a set of files.
"""
