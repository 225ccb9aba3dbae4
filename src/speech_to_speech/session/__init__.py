"""Drives one session: carries events, results and the time into the sans-I/O core, and its requests to the stages."""
