"""The turn loop: who speaks, what is speculative, what was heard. Sans-I/O: the clock is passed in."""
