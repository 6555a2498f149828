"""`python -m simindex` is the `simindex` command."""

from simindex.cli.main import main

if __name__ == "__main__":
    main()
