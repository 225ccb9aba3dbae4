"""Runs the stages' models: placement, queues, supervision. Sessions never know which runtime they run on."""
