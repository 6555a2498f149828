"""One file per verb: what the user typed, the library call, what to print."""
