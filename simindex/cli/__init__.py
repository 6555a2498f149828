"""The `simindex` command.

One file per verb in commands/: open, call the library's method of that name, print.
"""
